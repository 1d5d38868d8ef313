from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from desktop_host.storage import open_storage
from tests.contract.purses_contract import AnswersContract, PursesContract, Till
from tests.fakes.memory_purses import MemoryAnswers, MemoryPurses


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def till(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Till]:
    async with AsyncExitStack() as stack:
        shared = Till(MemoryPurses(), MemoryAnswers(), None)  # type: ignore[arg-type]

        async def memory() -> Till:
            shared.another = memory
            return shared

        async def database() -> Till:
            storage = await stack.enter_async_context(open_storage(tmp_path / "profile", shared=server))
            return Till(storage.purses, storage.answers, database)

        server = request.getfixturevalue("postgres").emptied() if request.param == "postgresql" else None
        yield await (memory() if request.param == "memory" else database())


class TestPurses(PursesContract):
    pass


class TestAnswers(AnswersContract):
    pass
