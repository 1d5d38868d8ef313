"""Checks of the profile: its settings file, database, vault, keys and the model of new chats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from desktop_host.core.admin import ModelAdmin, SecretStore, SettingsStore
from desktop_host.core.diagnosis import Finding
from desktop_host.core.values import FrozenDict
from desktop_host.diagnostics.findings import ill, well
from desktop_host.diagnostics.redaction import Redactor

VENDOR_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
PROBE = "doctor-probe"
"""A secret that is written and deleted to make the store ask for what unlocks it."""
_VALUE_CHARS = 80


class Sound(Protocol):
    """A store that can say where it is and what is wrong with it."""

    async def problem(self) -> str | None: ...
    def where(self) -> FrozenDict: ...


def settings_file(settings: SettingsStore) -> Finding:
    """Every line of the settings file is used."""
    found: tuple[Mapping[str, Any], ...] = getattr(settings, "problems", tuple)()
    if not found:
        return well("settings", "settings")
    first = found[0]
    code = "settings_key" if first["code"] == "unknown_key" else "settings_value"
    return ill(
        "settings", code, "settings", place="settings.toml", act="settings", key=str(first["key"]),
        value=Redactor()(str(first.get("value", "")))[:_VALUE_CHARS], count=len(found),
        keys=", ".join(str(p["key"]) for p in found),
    )  # fmt: skip


async def database(storage: Sound) -> Finding:
    """The store in use answers, and its own check finds nothing."""
    used = storage.where()
    problem = await storage.problem()
    if problem is None:
        return well("database", "database", detail=used["detail"], where=used["place"])
    if used["store"] == "sqlite":
        return ill("database", "database_bad", "database", place="host.db", detail=problem)
    return ill("database", "database_shared_bad", "database_shared", place=str(used["place"]), detail=problem)


async def vault(secrets: SecretStore) -> Finding:
    """The vault keeps what it is given."""
    probe = await secrets.probe()
    if probe["ok"]:
        return well("secrets", "vault", store=str(probe["store"]), where=str(probe["detail"] or ""))
    remedy = str(probe["remedy"])
    _, code, *reason = remedy.split(".")
    params = FrozenDict({"message": str(probe["detail"]), "reason": reason[0] if reason else ""})
    return Finding("secrets", False, f"error:{code}", params, remedy, act="unlock" if code == "vault_locked" else "")


async def unlock(secrets: SecretStore) -> None:
    """Let the store ask the person for what unlocks it.

    Raises:
        KnownFault: `vault_locked` or `vault_unavailable`.
    """
    await secrets.put(PROBE, "x" * 16)
    await secrets.delete(PROBE)


async def keys(secrets: SecretStore, environ: Mapping[str, str]) -> Finding:
    """Which keys there are; by name."""
    names = [*await secrets.names(), *(f"${variable}" for variable in VENDOR_KEYS if environ.get(variable))]
    return well("keys", "keys", names=", ".join(names)) if names else well("keys", "no_keys")


async def model(settings: SettingsStore, models: ModelAdmin) -> Finding:
    """The model of new chats can be used."""
    wanted = settings.current().model.default
    entries = await models.entries()
    exact = [e for e in entries if e.ref == wanted]
    near = exact or [e for e in entries if e.source == wanted.partition("/")[0]]
    if not near or any(e.ready for e in near):
        return well("model", "model", model=wanted)
    reason = near[0].reason or "unknown"
    return ill("model", f"model_{reason}", f"model_{reason}", place=wanted, act="models", model=wanted)
