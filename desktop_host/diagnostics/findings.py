"""Making findings: one that is well, one that is not, and one of a fault that has a code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from desktop_host.core.diagnosis import Finding
from desktop_host.core.errors import HostError
from desktop_host.core.values import FrozenDict

Check: TypeAlias = Callable[[], Awaitable[Finding]]

_ACTS = {
    "auth": "models", "billing": "models", "permission": "models", "unknown_model": "models",
    "model_missing": "models", "network": "settings", "tls": "settings", "proxy": "settings",
    "vault_locked": "unlock", "budget_spent": "costs", "quota_spent": "costs", "price_unknown": "costs",
    "bad_tool_schema": "servers",
}  # fmt: skip
"""What the app can do about a fault."""


def well(check: str, say: str = "", **params: Any) -> Finding:
    """All is well."""
    return Finding(check, True, say and f"doctor.say.{say}", FrozenDict(params))


def ill(check: str, say: str, remedy: str, *, place: str = "", act: str = "", **params: Any) -> Finding:
    """Something is wrong; `say` and `remedy` are the last parts of their locale keys."""
    return Finding(
        check, False, f"doctor.say.{say}", FrozenDict(params), f"doctor.remedy.{remedy}", place, act,
    )  # fmt: skip


def faulty(check: str, fault: HostError, *, place: str = "", act: str = "") -> Finding:
    """Something is wrong that has an error code: its own texts serve."""
    return Finding(
        check, False, f"error:{fault.code}", plain(fault), "", place or _place(fault), act or _ACTS.get(fault.code, "")
    )


def plain(fault: HostError) -> FrozenDict:
    """What a fault's sentence needs, as JSON values."""
    told = {k: v if isinstance(v, (bool, int, float, str, type(None))) else str(v) for k, v in fault.params.items()}
    return FrozenDict({**told, "message": fault.message})


def _place(fault: HostError) -> str:
    given = (fault.params.get(name) for name in ("file", "path", "server", "host", "key"))
    return next((str(value) for value in given if value), "")
