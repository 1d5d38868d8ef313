"""The servers' tools and the host's own as one source."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.host_tools import ALIAS, HostTools
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.permissions import Effect, Verdict
from desktop_host.core.ports import ToolSource
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict

WHOLE = "form"
"""The place that stands for all arguments: one is missing, or there is none of that name."""
Check = Callable[[FrozenDict, FrozenDict], tuple[str, str] | None]
"""The first place of a value that does not fit a schema, and why; None where it fits."""


class BuiltinTools:
    """A `ToolSource` that adds the alias `host` to another. The host's own hints are trusted.

    `check` says where arguments do not fit a schema, and why: none that is needed is missing when a tool of the host
    is run. What a value may be each tool judges itself, in better words than a schema has.
    """

    def __init__(self, servers: ToolSource, own: tuple[HostTools, ...], check: Check) -> None:
        self._servers = servers
        self._own = own
        self._check = check

    async def prepare(self, session: str, aliases: tuple[str, ...] | None, roots: tuple[str, ...]) -> None:
        await self._servers.prepare(session, aliases, roots)

    def session_tools(self, session: str, aliases: tuple[str, ...] | None = None) -> tuple[ToolSpec, ...]:
        own = [spec for source in self._own for spec in source.specs(session)]
        every = [*self._servers.session_tools(session, aliases), *own]
        return tuple(sorted(every, key=lambda t: (t.server, t.name)))

    def is_trusted(self, alias: str) -> bool:
        return alias == ALIAS or self._servers.is_trusted(alias)

    async def call(
        self,
        session: str,
        call_id: str,
        spec: ToolSpec,
        arguments: FrozenDict,
        verdict: Verdict,
        progress: Callable[[Progress], None],
    ) -> ToolOutcome:
        if spec.server != ALIAS:
            return await self._servers.call(session, call_id, spec, arguments, verdict, progress)
        if verdict.effect is not Effect.ALLOW:
            raise UserFault("permission", f"{spec.full_name} was not allowed", tool=spec.full_name)
        for source in self._own:
            if any(s.name == spec.name for s in source.specs(session)):
                wrong = await asyncio.to_thread(self._check, spec.input_schema, arguments)
                if wrong is not None and wrong[0] == WHOLE:
                    form = json.dumps(spec.input_schema, ensure_ascii=False)
                    text = f"The arguments do not fit {spec.name}: {wrong[1]}. They must match: {form}"
                    return ToolOutcome(Outcome.ERROR, (Text(text),))
                return await source.call(session, call_id, spec, arguments, progress)
        raise UserFault("not_found", f"the host has no tool {spec.name!r} any more", kind="tool", name=spec.name)

    async def release(self, session: str) -> None:
        for source in self._own:
            await source.release(session)
        await self._servers.release(session)
