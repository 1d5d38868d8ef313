"""What a person does with one server by name: use it without a model, look into it, keep an eye on it."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from desktop_host.core.admin import SecretStore
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.exchange import Origin, Progress, ToolOutcome
from desktop_host.core.messages import Message
from desktop_host.core.server_ports import Completion, SavedResource
from desktop_host.core.servers import (
    LOG_LEVELS,
    ImportedServer,
    LogLine,
    PromptSpec,
    ResourceSpec,
    ServerConfig,
    WireFrame,
)
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict
from desktop_host.servers.book import Book
from desktop_host.servers.clashes import twin
from desktop_host.servers.completion import complete
from desktop_host.servers.desk import Desk
from desktop_host.servers.icons import Icons
from desktop_host.servers.pool import Pool
from desktop_host.servers.resend import resend
from desktop_host.servers.resource_files import kept_small, save

_log = logging.getLogger(__name__)

WATCHED = "watched"
"""Told among the changed lists where a resource is watched from now on, or no longer."""


class ByHand(ABC):
    """The part of `Servers` that a face uses without a session."""

    _folder: Path
    _book: Book
    _pool: Pool
    _desk: Desk
    _secrets: SecretStore

    def __init__(self) -> None:
        self._icons = Icons()
        self._eyes: dict[tuple[str, str], asyncio.Task[None]] = {}
        """Watched resources by server and address."""

    def tools(self, name: str) -> tuple[ToolSpec, ...]:
        return self._desk.tools(self._book.get(name), None)

    async def call_tool(
        self, name: str, tool: str, arguments: FrozenDict, progress: Callable[[Progress], None] | None = None
    ) -> ToolOutcome:
        config = self._book.get(name)
        await self._pool.keeper(config).ensure()
        return await self._desk.call(config, tool, arguments, session=None, call_id=None, progress=progress)

    async def resources(self, name: str) -> tuple[ResourceSpec, ...]:
        return await self._desk.resources(self._book.get(name))

    async def read_resource(self, name: str, uri: str, origin: Origin | None = None) -> ToolOutcome:
        outcome = await self._desk.read_resource(self._book.get(name), uri, origin)
        if origin is not None:  # A client outside reads it: it gets the whole, not a link to a file of ours.
            return outcome
        return await asyncio.to_thread(kept_small, outcome, self._files(name))

    async def save_resource(self, name: str, uri: str) -> SavedResource:
        outcome = await self._desk.read_resource(self._book.get(name), uri)
        return await asyncio.to_thread(save, outcome, uri, self._files(name))

    async def prompts(self, name: str) -> tuple[PromptSpec, ...]:
        return await self._desk.prompts(self._book.get(name))

    async def get_prompt(
        self, name: str, prompt: str, arguments: FrozenDict, origin: Origin | None = None
    ) -> tuple[Message, ...]:
        return await self._desk.get_prompt(self._book.get(name), prompt, arguments, origin)

    async def complete(self, name: str, ref: str, argument: str, value: str, context: FrozenDict = EMPTY) -> Completion:
        keeper = self._pool.keeper(self._book.get(name))
        return await complete(keeper, ref, argument, value, context)

    async def set_log_level(self, name: str, level: str) -> None:
        if level not in LOG_LEVELS:
            raise UserFault(
                "bad_config", f"{level!r} is no log level; there are {', '.join(LOG_LEVELS)}",
                reason="bad_choice", server=name, key="logLevel", choices=", ".join(LOG_LEVELS),
            )  # fmt: skip
        await self.update(replace(self._book.get(name), log_level=level))
        open_ = [k.connection for k in self._pool.of_server(name) if k.connection is not None]
        await asyncio.gather(*(c.log_level_changed() for c in open_))

    def watch(self, name: str, uri: str) -> AsyncGenerator[str, None]:
        return self._desk.watch(self._book.get(name), uri)

    async def subscribe(self, name: str, uri: str, on: bool = True) -> None:
        key = (name, uri)
        config = self._book.get(name)
        if not on:
            if task := self._eyes.pop(key, None):
                task.cancel()
                await asyncio.wait({task})
                self._pool.tell(name, (WATCHED,))
            return
        if key in self._eyes and not self._eyes[key].done():
            return
        await self._pool.keeper(config).ensure()
        task = asyncio.create_task(self._look(config, uri))
        self._eyes[key] = task
        await asyncio.wait({task}, timeout=0.5)  # A refusal comes at once; what comes later is logged.
        if task.done():
            self._eyes.pop(key, None)
            task.result()
        else:
            task.add_done_callback(lambda ended: self._closed(key, ended))
            self._pool.tell(name, (WATCHED,))

    def learn_secrets(self, name: str, values: frozenset[str]) -> None:
        for config in self._book.all():
            if config.name == name:
                self._pool.wiring(config).redact.learn(values)

    def subscribed(self, name: str) -> tuple[str, ...]:
        return tuple(uri for (server, uri), task in self._eyes.items() if server == name and not task.done())

    async def icon(self, name: str, kind: str = "server", item: str = "", dark: bool = False) -> bytes | None:
        config = self._book.get(name)
        return await self._icons.of(config, self._pool.of_server(name), kind, item, dark)

    def logs(self, name: str) -> tuple[LogLine, ...]:
        return self._pool.wiring(self._book.get(name)).log.lines()

    def trace(self, name: str) -> tuple[WireFrame, ...]:
        return self._pool.wiring(self._book.get(name)).wire.frames()

    def closed(self, name: str) -> frozenset[int]:
        return self._pool.wiring(self._book.get(name)).wire.closed()

    async def resend(self, name: str, method: str, params: FrozenDict) -> FrozenDict:
        config = self._book.get(name)
        arguments = params.get("arguments", EMPTY)
        if method == "tools/call" and isinstance(arguments, FrozenDict):
            # The same way as any call by hand: a tool that is switched off stays off, arguments are checked.
            outcome = await self.call_tool(name, str(params.get("name")), arguments)
            return outcome.raw if isinstance(outcome.raw, FrozenDict) else EMPTY
        return await resend(self._pool.keeper(config), method, params)

    async def twins(self, servers: tuple[ImportedServer, ...]) -> FrozenDict:
        there = self._book.all()
        found = {one.config.name: await twin(one, there, self._secrets.get) for one in servers}
        return FrozenDict({name: old for name, old in found.items() if old})

    @abstractmethod
    async def update(self, config: ServerConfig) -> None:
        """Change a server's configuration."""

    def _files(self, name: str) -> Path:
        return self._folder / "files" / name

    async def _look(self, config: ServerConfig, uri: str) -> None:
        try:
            async with aclosing(self._desk.watch(config, uri)) as updates:
                async for updated in updates:
                    self._pool.tell(config.name, (f"resource:{updated}",))
        except HostError as error:
            _log.info("%s: %s is watched no more: %s", config.name, uri, error.message)
            raise

    def _closed(self, key: tuple[str, str], eye: asyncio.Task[None]) -> None:
        """An eye closed: by ourselves, or since its server no longer allows it (which was logged)."""
        if not eye.cancelled() and (error := eye.exception()) is not None and not isinstance(error, HostError):
            _log.error("watching %s of %s failed", key[1], key[0], exc_info=error)
        if self._eyes.get(key) is eye:
            del self._eyes[key]
            self._pool.tell(key[0], (WATCHED,))

    async def _close_eyes(self, name: str | None = None) -> None:
        gone = [key for key in self._eyes if name is None or key[0] == name]
        tasks = {self._eyes.pop(key) for key in gone}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
            for server in {server for server, _ in gone}:
                self._pool.tell(server, (WATCHED,))
