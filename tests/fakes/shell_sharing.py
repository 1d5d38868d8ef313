"""The window's gateway in memory."""

from __future__ import annotations

from dataclasses import replace

from desktop_host.core.admin import SecretStore, SettingsStore
from desktop_host.core.errors import KnownFault
from desktop_host.core.sharing import Guest, Heard, Sharing

AT = 1_790_000_000.0
BUSY_PORT = 9999


class ShellSharing:
    """A `Sharer`; the port `BUSY_PORT` is taken."""

    def __init__(self, settings: SettingsStore, secrets: SecretStore) -> None:
        self._settings, self._secrets = settings, secrets
        self.now = Sharing()
        self.turned: list[bool] = []
        self.keys = 0

    def visited(self) -> None:
        """Two apps came."""
        self.now = replace(
            self.now,
            guests=(Guest("main", "claude-code 2.1.0", AT, 12), Guest("main", "", AT - 60, 1)),
            heard=(
                Heard(AT, "main", "claude-code 2.1.0", "tools/call", "files__read_text_file", True, 8.4),
                Heard(AT - 2, "main", "claude-code 2.1.0", "tools/call", "weather__forecast", False, 310.0),
                Heard(AT - 4, "main", "claude-code 2.1.0", "tools/list", "", True, 1.2),
            ),
        )

    async def state(self) -> Sharing:
        return replace(self.now, has_key=bool(await self._secrets.get("gateway")))

    async def turn(self, on: bool) -> Sharing:
        self.turned.append(on)
        port = self._settings.current().gateway.port
        if on and port == BUSY_PORT:
            fault = KnownFault("network", f"127.0.0.1:{port} cannot be taken: Address already in use",
                               address=f"127.0.0.1:{port}")  # fmt: skip
            self.now = replace(self.now, on=False, url="", fault=fault)
        else:
            self.now = replace(self.now, on=on, url=f"http://127.0.0.1:{port}/mcp" if on else "", fault=None)
        return await self.state()

    async def new_key(self) -> str:
        self.keys += 1
        key = f"key-number-{self.keys}-{'x' * 32}"
        await self._secrets.put("gateway", key)
        return key
