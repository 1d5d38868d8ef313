"""The configured servers: those of the profile's file, and those given for this run only."""

from __future__ import annotations

from pathlib import Path

from desktop_host.core.errors import UserFault
from desktop_host.core.servers import ServerConfig, ServerScope, Stdio
from desktop_host.core.tools import ALIAS
from desktop_host.servers.config_file import ConfigFile
from desktop_host.servers.wiring import idle_s


class Book:
    """All configurations in order. A server given for this run hides one of the profile with the same name."""

    def __init__(self, path: Path, extra: tuple[ServerConfig, ...], with_profile: bool) -> None:
        self._file = ConfigFile(path)
        self._extra = {c.name: c for c in extra}
        self._with_profile = with_profile
        self._own: tuple[ServerConfig, ...] = ()

    async def load(self) -> None:
        """Read the file.

        Raises:
            UserFault: `bad_config`; the file is left as it is.
        """
        self._own = await self._file.load() if self._with_profile else ()

    def all(self) -> tuple[ServerConfig, ...]:
        """Every server, the file's order first."""
        own = tuple(self._extra.get(c.name, c) for c in self._own)
        names = {c.name for c in own}
        return own + tuple(c for c in self._extra.values() if c.name not in names)

    def get(self, name: str) -> ServerConfig:
        """One server.

        Raises:
            UserFault: `not_found`.
        """
        found = next((c for c in self.all() if c.name == name), None)
        if found is None:
            raise UserFault("not_found", f"there is no server named {name!r}", kind="server", name=name)
        return found

    async def add(self, config: ServerConfig) -> None:
        """Add a server and save.

        Raises:
            UserFault: `bad_config`: the name is taken or not allowed.
        """
        check(config)
        if any(c.name == config.name for c in self.all()):
            raise UserFault(
                "bad_config",
                f"there is a server named {config.name!r} already",
                reason="name_taken",
                server=config.name,
            )
        await self._save((*self._own, config))

    async def put(self, config: ServerConfig) -> None:
        """Change a server and save; one of this run is changed for this run only.

        Raises:
            UserFault: `not_found` or `bad_config`.
        """
        check(config)
        self.get(config.name)
        if config.name in self._extra:
            self._extra[config.name] = config
            return
        await self._save(tuple(config if c.name == config.name else c for c in self._own))

    async def remove(self, name: str) -> None:
        """Forget a server and save.

        Raises:
            UserFault: `not_found`.
        """
        self.get(name)
        if self._extra.pop(name, None) is None:
            await self._save(tuple(c for c in self._own if c.name != name))

    async def _save(self, configs: tuple[ServerConfig, ...]) -> None:
        if not self._with_profile:
            # The profile's own servers were left out of this run; saving must not lose them.
            kept = await self._file.load()
            names = {c.name for c in configs}
            await self._file.save((*(c for c in kept if c.name not in names), *configs))
            self._own = configs
        else:
            # What came back holds servers that were added to the file by hand meanwhile.
            self._own = await self._file.save(configs)


def check(config: ServerConfig) -> None:
    """Refuse what could not work.

    Raises:
        UserFault: `bad_config` with `reason`.
    """

    def refuse(reason: str, message: str) -> UserFault:
        return UserFault("bad_config", message, reason=reason, server=config.name)

    if not ALIAS.fullmatch(config.name) or config.name == "host":
        raise refuse("bad_name", f"{config.name!r} cannot be a server's name: 1 to 32 of a-z, 0-9 and -, not 'host'")
    if isinstance(config.launch, Stdio):
        if not config.launch.command.strip():
            raise refuse("no_command", f"{config.name}: the command is empty")
        if config.scope is ServerScope.CALL:
            raise refuse("scope_call", f"{config.name}: a connection per call is for HTTP servers only")
    elif not config.launch.url.startswith(("http://", "https://", "${")):
        raise refuse("bad_url", f"{config.name}: the address must begin with http:// or https://")
    limits = config.timeouts
    if min(limits.connect_s, idle_s(limits), limits.call_max_s) <= 0:
        raise refuse("bad_timeout", f"{config.name}: time limits must be above zero")
