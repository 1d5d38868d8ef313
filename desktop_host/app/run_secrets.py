"""Secrets of a `--mcp-config` file: for this run only, over the profile's vault."""

from __future__ import annotations

from desktop_host.core.admin import SecretStore
from desktop_host.core.values import FrozenDict


class RunSecrets:
    """A `SecretStore` that knows some secrets for the time of a run and leaves the rest to the vault."""

    def __init__(self, vault: SecretStore, known: FrozenDict) -> None:
        self._vault = vault
        self._known = known

    def __repr__(self) -> str:
        return f"RunSecrets({len(self._known)} known)"

    async def get(self, name: str) -> str | None:
        """A secret of this run, else the vault's."""
        if name in self._known:
            return str(self._known[name])
        return await self._vault.get(name)

    async def put(self, name: str, value: str) -> None:
        """Keep a secret in the vault."""
        await self._vault.put(name, value)

    async def delete(self, name: str) -> bool:
        """Delete a secret of the vault."""
        return await self._vault.delete(name)

    async def names(self) -> tuple[str, ...]:
        """The vault's names."""
        return await self._vault.names()

    async def probe(self) -> FrozenDict:
        """The vault's health."""
        return await self._vault.probe()
