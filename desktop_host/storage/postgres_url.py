"""The address of a shared database, with its secrets filled in at the last moment."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from desktop_host.core.errors import UserFault
from desktop_host.storage.postgres_faults import EXTRA, unavailable

_PLACEHOLDER = re.compile(r"\$\{[^{}]*\}")

Fill = Callable[[str], Awaitable[str]]


async def params_of(url: str, fill: Fill) -> dict[str, str]:
    """The parameters for libpq that are in a `postgresql://` address.

    A placeholder is filled in after the address was taken apart, so a password may hold any character; an address
    that is one placeholder as a whole is filled in first.

    Args:
        url: the address as the settings have it.
        fill: gives the text of a `${…}`.

    Raises:
        UserFault: `bad_settings`, it is no such address; what `fill` raises.
        KnownFault: `storage_unavailable`, the driver is not installed.
    """
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise unavailable("no_driver", str(error), "", extra=EXTRA) from error
    if _PLACEHOLDER.fullmatch(url):
        url = await fill(url)
    filled: dict[str, str] = {}

    def mark(found: re.Match[str]) -> str:
        token = f"placeholder{len(filled)}x"
        filled[token] = found[0]
        return token

    plain = _PLACEHOLDER.sub(mark, url)
    if not plain.startswith(("postgresql://", "postgres://")):
        raise _bad("it does not begin with postgresql://")
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(plain).items() if value is not None}
    except ProgrammingError as error:
        # libpq quotes the piece it stumbles over, which may be a password.
        raise _bad("libpq cannot read it") from error
    values = {token: await fill(text) for token, text in filled.items()}
    for name, value in parts.items():
        for token, text in values.items():
            value = value.replace(token, text)
        parts[name] = value
    return parts


def _bad(why: str) -> UserFault:
    return UserFault(
        "bad_settings", f"storage.url is no address of a PostgreSQL database: {why}", key="storage.url",
        reason="storage_url",
    )  # fmt: skip
