"""Tools of the host itself (alias `host`): how a room offers some to the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict

ALIAS = "host"


class HostTools(Protocol):
    """Some built-in tools. They run through the same gate as any server's."""

    def specs(self, session: str) -> tuple[ToolSpec, ...]:
        """The tools now offered to a session; their definitions should not change while it is open."""
        ...

    async def call(
        self,
        session: str,
        call_id: str,
        spec: ToolSpec,
        arguments: FrozenDict,
        progress: Callable[[Progress], None],
    ) -> ToolOutcome:
        """Run one call that the gate has allowed. Failures come back as outcomes."""
        ...

    async def release(self, session: str) -> None:
        """Let go of what was opened for this session alone."""
        ...
