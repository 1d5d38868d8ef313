"""A vault in memory: it behaves as the real ones (same contract suite) and can be locked by a test."""

from __future__ import annotations

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.values import FrozenDict


class MemoryVault:
    """A `SecretStore`. `fault` set to an error code makes every access fail as a real store would."""

    def __init__(self, secrets: dict[str, str] | None = None) -> None:
        self._secrets = dict(secrets or {})
        self.fault: str | None = None

    def __repr__(self) -> str:
        return f"<MemoryVault of {len(self._secrets)}>"

    async def get(self, name: str) -> str | None:
        if name not in self._secrets:
            return None
        self._check()
        return self._secrets[name]

    async def put(self, name: str, value: str) -> None:
        if not name or len(name) > 512 or not name.isprintable() or not value:
            raise UserFault("usage", "a secret needs a printable name and a value", name=name[:80], reason="bad_secret")
        self._check()
        self._secrets[name] = value

    async def delete(self, name: str) -> bool:
        if name not in self._secrets:
            return False
        self._check()
        del self._secrets[name]
        return True

    async def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._secrets))

    async def probe(self) -> FrozenDict:
        remedy = f"remedy.{self.fault}" if self.fault else ""
        return FrozenDict({"store": "memory", "ok": not self.fault, "detail": self.fault or "", "remedy": remedy})

    def describe(self) -> FrozenDict:
        return FrozenDict({"store": "memory", "detail": ""})

    async def close(self) -> None:
        """Nothing is open."""

    def _check(self) -> None:
        if self.fault:
            raise KnownFault(self.fault, "the vault does not open", reason="test")
