from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from desktop_host.storage import open_storage
from tests.contract.history_contract import Desk, HistoryContract, LedgerContract
from tests.fakes.memory_history import MemoryHistory, MemoryLedger, World


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    world = World()
    async with AsyncExitStack() as stack:

        async def memory() -> Desk:
            return Desk(MemoryHistory(world), MemoryLedger(world), memory)

        async def database() -> Desk:
            storage = await stack.enter_async_context(open_storage(tmp_path / "profile", shared=shared))
            return Desk(storage.history, storage.ledger, database)

        shared = request.getfixturevalue("postgres").emptied() if request.param == "postgresql" else None
        yield await (memory() if request.param == "memory" else database())


class TestHistory(HistoryContract):
    pass


class TestLedger(LedgerContract):
    pass
