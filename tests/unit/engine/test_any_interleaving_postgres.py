"""The same, shortened, with the journal in the real PostgreSQL: two hosts of one session, one dead after the other.

Hazards J101, J103.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop_host.core.errors import KnownFault
from desktop_host.storage import Storage, open_storage
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.rig import Rig
from tests.unit.engine.test_any_interleaving import STEPS, Life, live

EXAMPLES = 60 if os.environ.get("DESKTOP_HOST_FULL") else 8


class SharedLife(Life):
    """One session in a shared database, through several processes."""

    def __init__(self, server: PostgresServer, stack: contextlib.AsyncExitStack) -> None:
        super().__init__()
        self._server, self._stack = server, stack
        self._params = server.emptied()
        self._storage: Storage | None = None

    async def open(self) -> Rig:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory())
        self._storage = await self._stack.enter_async_context(open_storage(Path(folder), shared=self._params))
        return Rig([], storage=self._storage, permission="allow")

    def die(self) -> None:
        assert self._storage is not None
        dead = self._storage.database

        async def nothing(_work: object) -> None:
            raise KnownFault("database_error", "killed")

        dead.write = nothing  # type: ignore[method-assign, assignment]
        # A real kill -9 is told by the process's end; this one is still ours.
        self._server.admin("DELETE FROM desktop_host.leases", self._params["dbname"])

    async def do(self, step: str) -> None:
        await super().do(step)
        # The journal answers in milliseconds here, not at once: let some of it happen between two steps.
        assert self._storage is not None
        await self._storage.database.read(lambda db: db.clock())


@settings(
    max_examples=EXAMPLES, deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=25))
def test_any_interleaving_leaves_a_valid_history_in_a_shared_database(
    postgres: PostgresServer, steps: list[str]
) -> None:
    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            await live(SharedLife(postgres, stack), steps)

    asyncio.run(run())
