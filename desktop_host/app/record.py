"""Which database holds the record of a profile that is being opened."""

from __future__ import annotations

import os

from desktop_host.core.admin import SecretStore
from desktop_host.core.errors import UserFault
from desktop_host.diagnostics import Redactor
from desktop_host.profiles.settings_file import SettingsFile
from desktop_host.servers.placeholders import expand
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
