"""The setting of where the record is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from desktop_host.core.errors import UserFault

_PLACEHOLDER = re.compile(r"\$\{(?:keyring:[^{}]+|(?:env:)?[A-Za-z_][A-Za-z0-9_]*)\}")
"""One that holds no text of its own, as `${VAR:-text}` does."""
_USER = re.compile(r"//[^/?#@]*?:(?P<password>.*)@", re.DOTALL)
_QUERY = re.compile(r"[?&](?:ssl)?password=(?P<password>[^&]*)", re.IGNORECASE)


def check_url(value: str) -> None:
    """Let through what may stand in a file: nothing, a `postgresql://` address without a password, or placeholders.

    Raises:
        UserFault: `bad_settings` with `reason` `password_in_clear` or `storage_url`; never with the value.
    """
    rest = _PLACEHOLDER.sub("", value)
    if not rest:
        return
    if not value.startswith(("postgresql://", "postgres://")):
        raise UserFault(
            "bad_settings", "storage.url: not the address of a PostgreSQL database", key="storage.url",
            reason="storage_url",
        )  # fmt: skip
    if any(found["password"] for pattern in (_USER, _QUERY) for found in pattern.finditer(rest)):
        raise UserFault(
            "bad_settings", "storage.url: a password may not stand in the settings", key="storage.url",
            reason="password_in_clear",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Storage:
    """Where conversations, usage and kept answers are."""

    url: str = field(default="", metadata={"widget": "address", "check": check_url})
    """Empty: the profile's own file. `postgresql://USER:${keyring:NAME}@HOST/DATABASE`: a database that computers
    share; taken up when the profile is opened."""
