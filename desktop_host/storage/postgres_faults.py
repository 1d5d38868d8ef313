"""What a person is told when PostgreSQL cannot be used; never with a password."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from desktop_host.core.errors import HostError, KnownFault

if TYPE_CHECKING:
    import psycopg

EXTRA = "desktop-host[postgres]"
"""What brings the driver along."""
AGAIN = frozenset({"40001", "40P01"})
"""Another transaction was in the way: the same work may be run again."""
_LOST = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03"})
"""The server ends this connection, or is starting: one may come back later."""
_TOLD: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("not_admitted", ("pg_hba.conf",)),
    ("password", ("authentication failed", "no password supplied", "role \"")),
    ("no_database", ("\" does not exist",)),
    ("too_many", ("too many clients", "too many connections", "remaining connection slots")),
    ("tls", ("ssl", "certificate", "tls")),
    ("host", (
        "could not translate", "name or service not known", "resolve host", "connection refused", "timeout",
        "timed out", "no route", "unreachable", "no such file",
    )),
)  # fmt: skip
"""Reasons by words of the message: libpq gives a failed connection no code. Other languages get `refused`."""
_STATES = {
    "42501": "permission", "28000": "password", "28P01": "password", "3D000": "no_database", "53300": "too_many",
    "25006": "read_only", "0A000": "version",
}  # fmt: skip


def unavailable(reason: str, message: str, place: str, **params: object) -> KnownFault:
    """The fault of a shared store that cannot be used now. `place` is its address, without a password."""
    return KnownFault(
        "storage_unavailable", message, retryable=reason == "lost", reason=reason, place=place, **params
    )  # fmt: skip


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, or there was none to be had; trying again may help."""
    import psycopg

    if error.sqlstate in _LOST or (error.sqlstate or "").startswith("08"):
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


def fault_of(
    error: psycopg.Error, place: str, params: Mapping[str, str], *, lost: bool = False
) -> HostError | None:  # fmt: skip
    """The fault behind an error of the driver; None where it is a bug of ours.

    Args:
        error: what psycopg raised.
        place: the address, without a password.
        params: what was connected with; their password is kept out of the message.
        lost: there was a connection before.
    """
    told = _hidden(" ".join(str(error).split()), params)
    state = error.sqlstate or ""
    if state == "53100":
        return KnownFault("disk_full", f"{place}: {told}", path=place, free_bytes=None)
    if state == "55P03":
        return KnownFault("database_error", f"{place}: {told}", retryable=True, reason="locked", path=place)
    if state[:5] in ("XX001", "XX002"):
        return KnownFault("database_error", f"{place}: {told}", reason="corrupt", path=place)
    if state in _STATES:
        return unavailable(_STATES[state], told, place)
    if is_lost(error):
        reason = _reason(told)
        # A connection that stood and broke (it has no `pgconn` here) is no trouble with TLS.
        broke = reason in ("host", "refused") or (reason == "tls" and error.pgconn is None)
        return unavailable("lost" if lost and broke else reason, told, place)
    return None


def is_final(error: psycopg.Error) -> bool:
    """Whether the server refuses us for a reason that waiting does not mend."""
    return error.pgconn is not None and _reason(str(error)) in ("not_admitted", "password", "no_database", "tls")


def _reason(told: str) -> str:
    words = told.casefold()
    return next((reason for reason, signs in _TOLD if any(sign in words for sign in signs)), "refused")


def _hidden(text: str, params: Mapping[str, str]) -> str:
    for name in ("password", "sslpassword"):
        if params.get(name):
            text = text.replace(params[name], "***")
    return text
