"""Tools that are plain async functions: a `ToolSource` for engine tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.permissions import Effect, Verdict
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict, freeze

Run = Callable[[FrozenDict, Callable[[Progress], None]], Awaitable[ToolOutcome]]


@dataclass
class FunctionTools:
    """Register functions with `add`; what was called, cancelled and released is kept."""

    specs: dict[str, ToolSpec] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    called: list[tuple[str, FrozenDict]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    trusted: set[str] = field(default_factory=set)

    def add(self, full_name: str, run: Run | str, *, description: str = "", schema: dict | None = None) -> ToolSpec:
        server, _, name = full_name.partition(".")
        spec = ToolSpec(server, name, description, freeze(schema or {"type": "object"}))
        self.specs[full_name] = spec
        if isinstance(run, str):
            text = run

            async def answer(_arguments: FrozenDict, _progress: Callable[[Progress], None]) -> ToolOutcome:
                return ToolOutcome(Outcome.OK, (Text(text),))

            run = answer
        self.runs[full_name] = run
        return spec

    async def prepare(self, session: str, aliases: tuple[str, ...] | None, roots: tuple[str, ...]) -> None:
        await asyncio.sleep(0)

    def session_tools(self, session: str, aliases: tuple[str, ...] | None = None) -> tuple[ToolSpec, ...]:
        return tuple(s for _, s in sorted(self.specs.items()) if aliases is None or s.server in aliases)

    def is_trusted(self, alias: str) -> bool:
        return alias in self.trusted

    async def call(
        self,
        session: str,
        call_id: str,
        spec: ToolSpec,
        arguments: FrozenDict,
        verdict: Verdict,
        progress: Callable[[Progress], None],
    ) -> ToolOutcome:
        if verdict.effect is not Effect.ALLOW:
            raise UserFault("permission", "not allowed")
        self.called.append((spec.full_name, arguments))
        if spec.full_name not in self.runs:
            return ToolOutcome(Outcome.ERROR, (Text("tool no longer available"),))
        try:
            return await self.runs[spec.full_name](arguments, progress)
        except asyncio.CancelledError:
            self.cancelled.append(spec.full_name)
            raise

    async def release(self, session: str) -> None:
        self.released.append(session)
