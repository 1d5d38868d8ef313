"""Which key goes to which address, and to no other."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from desktop_host.core.admin import SecretStore
from desktop_host.core.errors import KnownFault
from desktop_host.providers.clients import is_loopback
from desktop_host.providers.refs import Remote

VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""Used only where the profile has no key, and only for the vendors' own hosts."""


class Keys:
    """Finds keys in the vault and in the environment."""

    def __init__(self, secrets: SecretStore, environ: Mapping[str, str]) -> None:
        self._secrets = secrets
        self._environ = environ

    async def find(self, place: Remote) -> str | None:
        """The key of an address, checked; None where there is none.

        Raises:
            KnownFault: `auth`, the key cannot be one; `vault_unavailable` or `vault_locked`.
        """
        for name in place.secrets:
            found = await self._secrets.get(name)
            if found is not None and found.strip():
                return self._checked(found, name, place)
        if place.vendor is not None:
            variable = VARIABLES[place.vendor]
            found = self._environ.get(variable, "")
            if found.strip():
                return self._checked(found, variable, place)
        return None

    async def need(self, place: Remote) -> str:
        """The key of an address; empty only on loopback.

        Raises:
            KnownFault: `auth` without a key, and as `find`.
        """
        found = await self.find(place)
        if found is None and not is_loopback(place.base_url):
            name = place.secrets[0]
            raise KnownFault(
                "auth", f"there is no key for {place.provider}; set the secret {name!r}",
                provider=place.provider, host=urlsplit(place.base_url).netloc, model=place.model, reason="no_key",
                secret=name, detail=f"no key is set ({name})",
            )  # fmt: skip
        return found or ""

    async def has(self, place: Remote) -> bool:
        """Whether an address can be used as far as keys go. Never raises: a locked vault is no key."""
        if is_loopback(place.base_url):
            return True
        try:
            return await self.find(place) is not None
        except KnownFault:
            return False

    @staticmethod
    def _checked(key: str, name: str, place: Remote) -> str:
        stripped = key.strip()
        if not stripped.isascii() or any(c.isspace() or not c.isprintable() for c in stripped):
            raise KnownFault(
                "auth", f"the key {name!r} holds blanks or other characters that no key has; enter it anew",
                provider=place.provider, model=place.model, reason="bad_key", secret=name,
                detail=f"the key {name} holds blanks or other characters that no key has",
            )  # fmt: skip
        return stripped
