"""The built-in tool `host.read_result`: the rest of a result that was too long for the model."""

from __future__ import annotations

from collections.abc import Callable

from desktop_host.core.events import ToolSettled
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.host_tools import ALIAS
from desktop_host.core.messages import EmbeddedResource, Outcome, Text
from desktop_host.core.ports import History
from desktop_host.core.tools import ToolHints, ToolSpec
from desktop_host.core.values import FrozenDict, canonical, freeze
from desktop_host.engine.context import SessionContext

MOST = 30_000
"""Characters that one call gives at most."""
USUAL = 10_000

SPEC = ToolSpec(
    ALIAS,
    "read_result",
    "Read on in a tool result that was cut because it was long. The note in the cut result names its call_id.",
    freeze({
        "type": "object",
        "properties": {
            "call_id": {"type": "string"},
            "offset": {"type": "integer", "minimum": 0, "description": "First character, counted from 0"},
            "length": {"type": "integer", "minimum": 1, "maximum": MOST},
        },
        "required": ["call_id", "offset"],
    }),
    title="Read on in a long result",
    hints=ToolHints(read_only=True, destructive=False, idempotent=True, open_world=False),
)  # fmt: skip


class ResultReader:
    """`HostTools` with the one tool. Small local models are not told of it: their results are cut for good."""

    def __init__(self, history: History, context: Callable[[str], SessionContext | None]) -> None:
        self._history = history
        self._context = context

    def specs(self, session: str) -> tuple[ToolSpec, ...]:
        context = self._context(session)
        local = context is not None and context.model_ref.partition("/")[0] == "local"
        without = context is not None and context.options.servers == ()
        return () if local or without else (SPEC,)

    async def call(
        self,
        session: str,
        call_id: str,
        spec: ToolSpec,
        arguments: FrozenDict,
        progress: Callable[[Progress], None],
    ) -> ToolOutcome:
        wanted, offset = str(arguments.get("call_id", "")), arguments.get("offset", 0)
        length = arguments.get("length", USUAL)
        if type(offset) is not int or type(length) is not int or offset < 0 or length < 1:
            return _error("offset must be a whole number from 0, and length one from 1")
        whole = await self._whole(session, wanted)
        if whole is None:
            return _error(f"No cut result of this conversation has the call_id {wanted!r}.")
        part = whole[offset : offset + min(length, MOST)]
        end = offset + len(part)
        rest = f"{len(whole) - end:,} more follow" if end < len(whole) else "the end"
        return ToolOutcome(Outcome.OK, (Text(f"{part}\n[characters {offset:,} to {end:,}; {rest}]"),))

    async def release(self, session: str) -> None:
        """Nothing is kept open."""

    async def _whole(self, session: str, call_id: str) -> str | None:
        context = self._context(session)
        seq = context.conversation.long.get(call_id) if context else None
        if seq is None:
            return None
        for stamped in await self._history.read(session, after=seq - 1, limit=1):
            if isinstance(stamped.event, ToolSettled) and stamped.event.call_id == call_id:
                return _text(stamped.event)
        return None


def _text(settled: ToolSettled) -> str:
    parts = [b.text for b in settled.content if isinstance(b, (Text, EmbeddedResource)) and b.text is not None]
    if not settled.content and settled.structured is not None:
        parts = [canonical(settled.structured)]
    return "\n".join(parts)


def _error(text: str) -> ToolOutcome:
    return ToolOutcome(Outcome.ERROR, (Text(text),))
