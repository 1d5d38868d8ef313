"""How long a session waits for its servers: as long as they come, but not for one that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from desktop_host.core.servers import ServerState, Stdio
from desktop_host.servers.command_line import fetches
from desktop_host.servers.keeper import Keeper

QUIET_S = 5.0
"""Once a server is ready, how long the others have to show that they come too."""
FETCH_S = 45.0
"""The same where one of them may still be fetched (`npx`, `uvx`, `docker` and the like)."""


class Patience:
    """Waits for servers to settle. One that was too slow once keeps nobody waiting again until it has settled."""

    def __init__(self) -> None:
        self._late: set[Keeper] = set()

    async def settle(self, keepers: Iterable[Keeper]) -> None:
        """Start all; returns when each is ready or has failed, or nothing more is to be expected soon.

        Those that are left go on starting by themselves. Where no server is ready yet, the slow ones are all
        there is: then their own time limit holds.
        """
        every = tuple(keepers)
        self._late = {k for k in self._late if k.state is ServerState.STARTING}
        waits = {asyncio.create_task(k.start()): k for k in every if k not in self._late}
        pending = set(waits)
        try:
            while pending:
                ready = any(k.state is ServerState.READY for k in every)
                slow = any(_fetches(waits[task]) for task in pending)
                limit = (FETCH_S if slow else QUIET_S) if ready else None
                done, pending = await asyncio.wait(pending, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    break
            self._late |= {waits[task] for task in pending}
        finally:
            for task in pending:
                task.cancel()  # Ends the waiting, not the server's start.


def _fetches(keeper: Keeper) -> bool:
    launch = keeper.wiring.config.launch
    return isinstance(launch, Stdio) and fetches(launch.command)
