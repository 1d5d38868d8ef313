"""Which database holds the record of a profile that is being opened."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from desktop_host.core.admin import SecretStore
from desktop_host.core.errors import UserFault
from desktop_host.core.ports import History
from desktop_host.diagnostics import Redactor
from desktop_host.profiles.settings_file import SettingsFile
from desktop_host.profiles.store import ProfileFolder
from desktop_host.profiles.vault import open_vault
from desktop_host.servers.placeholders import expand
from desktop_host.storage import open_storage
from desktop_host.storage.postgres_url import params_of

KEY = "storage.url"


async def shared_record(settings: SettingsFile, secrets: SecretStore, redactor: Redactor) -> dict[str, str] | None:
    """Parameters of the shared database that the settings name, its secrets filled in; None: the profile's own file.

    Raises:
        UserFault: `bad_settings`: the setting is no address, or holds a password in clear. Nothing is opened in its
            stead: what was said would then be kept in two places. `bad_config`: a secret or variable is missing.
        KnownFault: `vault_unavailable`, `vault_locked`, `storage_unavailable` (the driver is not installed).
    """
    if any(problem["key"] in (KEY, "storage") for problem in settings.problems()):
        raise UserFault(
            "bad_settings", f"{KEY} in {settings.path} is no address of a PostgreSQL database, or holds a password",
            key=KEY, file=str(settings.path), reason="storage_refused",
        )  # fmt: skip
    url = settings.current().storage.url
    if not url:
        return None

    async def fill(text: str) -> str:
        return await expand(text, secrets, os.environ, where=KEY)

    params = await params_of(url, fill)
    for name in ("password", "sslpassword"):
        if params.get(name):
            redactor.add(params[name])
    return params


@asynccontextmanager
async def opened_history(profile: ProfileFolder) -> AsyncIterator[History]:
    """The sessions of a profile without a host: nothing of it starts.

    Raises:
        As `shared_record` and `open_storage`.
    """
    redactor = Redactor()
    settings = await SettingsFile.open(profile.path / "settings.toml")
    secrets = await open_vault(profile.uuid, profile.path, seen=redactor.add)
    try:
        async with open_storage(profile.path, shared=await shared_record(settings, secrets, redactor)) as storage:
            yield storage.history
    finally:
        await secrets.close()
