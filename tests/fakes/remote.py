"""Models of a profile whose address is a server of the test's own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from desktop_host.core.errors import UserFault
from desktop_host.core.models import ModelEntry
from desktop_host.core.ports import ChatModel
from desktop_host.core.settings import Settings
from desktop_host.providers.catalog import Models
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_vault import MemoryVault
from tests.fakes.model_server import ModelServer
from tests.fakes.rig import MemorySettings
from tests.fakes.wires import Say, base_of, reply


class NoLocalModels:
    """A machine without embedded models."""

    async def open(self, name: str | None) -> ChatModel:
        raise UserFault("not_found", "there is no local model", name=name)

    def entries(self) -> tuple[ModelEntry, ...]:
        return (ModelEntry("local/tiny", "Tiny", "local", False, "no_weights"),)

    async def fetch(self, name: str, progress: Any) -> None:
        raise UserFault("not_found", name=name)

    async def remove(self, name: str) -> None:
        raise UserFault("not_found", name=name)

    async def close(self) -> None:
        """Nothing is open."""


def no_script(path: Path) -> ChatModel:
    raise UserFault("not_found", str(path))


@asynccontextmanager
async def models(
    *,
    settings: Settings | None = None,
    secrets: dict[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    clock: ManualClock | None = None,
    **more: Any,
) -> AsyncIterator[Models]:
    """A catalog on fakes, closed at the end."""
    local: Any = NoLocalModels()
    opened = Models(
        MemorySettings(settings or Settings()), MemoryVault(secrets), clock or ManualClock(), local=local,
        scripted=no_script, environ=environ or {}, **more,
    )  # fmt: skip
    try:
        yield opened
    finally:
        await opened.close()


def ref_of(wire: str, server: ModelServer, model: str = "m-1") -> str:
    return f"{wire}:{base_of(wire, server.url)}#{model}"


@asynccontextmanager
async def stage(wire: str, *answers: Say, model: str = "m-1") -> AsyncIterator[ChatModel]:
    """A model at a server that gives these answers."""
    async with ModelServer() as server, models() as catalog:
        server.script(*(reply(wire, answer) for answer in answers))
        yield await catalog.open(ref_of(wire, server, model))


def sent(server: ModelServer, place: int = -1) -> Any:
    """A posted body."""
    return json.loads(server.posts[place].raw)
