"""The built-in tool `host.run_subtasks`: parts of a task, each a turn of its own, side by side, joined in order.

A part is a session below the one that hands it out: its own context, the same model, servers and rules, the same
gate (what it asks stands in the conversation above), the same money and tokens. Its failure costs itself alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.events import SubtaskChanged, UsageRecorded, UserSaid
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.host_tools import ALIAS
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.models import Usage
from desktop_host.core.permissions import Effect
from desktop_host.core.ports import SkillSource
from desktop_host.core.sessions import TurnStatus
from desktop_host.core.tools import ToolHints, ToolSpec
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.engine import skills
from desktop_host.engine.context import SessionContext
from desktop_host.engine.sessions import Sessions
from desktop_host.engine.subtask_parts import MAX_PARTS, Part, joined, parts_of
from desktop_host.engine.tickets import TurnResult

MAX_A_TURN = 32
"""Parts of one turn, those of its parts included: what goes in circles ends."""
MAX_DEPTH = 2
"""A part may hand out parts; theirs may not."""
MAX_FALLBACKS = 2
_HOPELESS = frozenset({"budget_spent", "quota_spent", "price_unknown"})
"""Another skill would fail the same way."""
_log = logging.getLogger(__name__)

SPEC = ToolSpec(
    ALIAS,
    "run_subtasks",
    "Hand parts of a task to sub-tasks that work side by side, each in a conversation of its own, and get all results "
    "in order. Use it for parts that do not depend on each other and take several steps each, or where a skill says "
    "so. A part sees nothing of this conversation: tell it all it needs. A part that failed is named; the others "
    "stand.",
    freeze({
        "type": "object",
        "properties": {
            "tasks": {
                "type": "array", "minItems": 1, "maxItems": MAX_PARTS,
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "description": "A few words for the person who watches"},
                        "task": {"type": "string", "description": "What to do, with all facts and the form wanted"},
                        "skill": {"type": "string", "description": "Name of the skill it works by"},
                        "fallback": {"type": "string", "description": "Skill to try where that one fails"},
                        "after": {
                            "type": "array", "items": {"type": "integer", "minimum": 1},
                            "description": "Numbers (from 1) of earlier tasks whose results it is to be given",
                        },
                    },
                    "required": ["task"], "additionalProperties": False,
                },
            },
        },
        "required": ["tasks"], "additionalProperties": False,
    }),
    title="Work on parts side by side",
    hints=ToolHints(read_only=True, destructive=False, open_world=False),
    group=skills.GROUP,
)  # fmt: skip


class Subtasks:
    """`HostTools` with the one tool.

    Args:
        sessions: gives the sessions of the host.
        source: the skills.
        offered: whether a session has skills at all.
    """

    def __init__(
        self, sessions: Callable[[], Sessions], source: SkillSource, offered: Callable[[str], bool]
    ) -> None:  # fmt: skip
        self._sessions = sessions
        self._source = source
        self._offered = offered

    def specs(self, session: str) -> tuple[ToolSpec, ...]:
        """The tool, where there are skills, the model is no small one and the session no part of a part."""
        context = self._sessions().context(session)
        if context is None or context.options.depth >= MAX_DEPTH or context.model_ref.startswith("local"):
            return ()
        return (SPEC,) if self._offered(session) else ()

    async def call(
        self, session: str, call_id: str, spec: ToolSpec, arguments: FrozenDict,
        progress: Callable[[Progress], None],
    ) -> ToolOutcome:  # fmt: skip
        """Run the parts. Cancelling stops them all."""
        context = self._sessions().context(session)
        if context is None:
            return _error("This conversation is closed.")
        try:
            parts = parts_of(arguments)
        except UserFault as fault:
            return _error(fault.message)
        spent = context.root.spent
        if spent.subtasks + len(parts) > MAX_A_TURN:
            return _error(f"A turn may have {MAX_A_TURN} sub-tasks; {spent.subtasks} ran already.")
        spent.subtasks += len(parts)
        return await _Run(self._sessions(), self._source, context, call_id, parts, progress).all()

    async def release(self, session: str) -> None:
        """Nothing is kept open: parts end with their call."""


class _Run:
    """The parts of one call."""

    def __init__(
        self, sessions: Sessions, source: SkillSource, context: SessionContext, call_id: str,
        parts: tuple[Part, ...], progress: Callable[[Progress], None],
    ) -> None:  # fmt: skip
        self._sessions, self._source, self._context = sessions, source, context
        self._call_id, self._parts, self._progress = call_id, parts, progress
        loop = asyncio.get_running_loop()
        self._ends: dict[int, asyncio.Future[SubtaskChanged]] = {p.number: loop.create_future() for p in parts}
        self._last: dict[int, SubtaskChanged] = {}
        self._limit = asyncio.Semaphore(context.parts.settings.current().tools.parallel)

    async def all(self) -> ToolOutcome:
        """Run every part to its end; the results in the order of the call."""
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(self._one(part))
        return joined(tuple(self._ends[p.number].result() for p in self._parts))

    async def _one(self, part: Part) -> None:
        now = SubtaskChanged(self._call_id, part.number, part.name, "waiting", skill=part.skill)
        try:
            await self._tell(now)
            now = await self._to_the_end(part, now)
        except asyncio.CancelledError:
            last = self._last.get(part.number, now)
            if last.state in ("waiting", "running"):
                await self._tell(replace(last, state="cancelled"))
            raise
        except Exception as error:
            if not isinstance(error, HostError):
                _log.exception("part %d of %s failed", part.number, self._call_id)
                error = HostError("bug", f"{type(error).__name__}: {error}")
            now = replace(now, state="failed", error=_fault(error))
            await self._tell(now)
        self._ends[part.number].set_result(now)
        over = sum(end.done() for end in self._ends.values())
        self._progress(Progress(over, len(self._parts), part.name))

    async def _to_the_end(self, part: Part, now: SubtaskChanged) -> SubtaskChanged:
        given = []
        for number in part.after:
            before = await asyncio.shield(self._ends[number])
            if before.state != "done":
                now = replace(now, state="skipped", error=freeze({
                    "code": "not_run", "message": f"part {number}, {before.name}, gave no result", "params": {},
                }))  # fmt: skip
                await self._tell(now)
                return now
            given.append(f"[Result of part {number}, {before.name}]\n{before.text}")
        text = "\n\n".join([part.task, *given])
        async with self._limit:
            waiting = [part.skill, *([part.fallback] if part.fallback else [])]
            tried: list[str] = []
            while True:
                skill = waiting.pop(0)
                tried.append(skill)
                now, named = await self._attempt(part, replace(now, skill=skill), text)
                if not part.fallback:
                    waiting += [n for n in named if n not in (*tried, *waiting)]
                code = str((now.error or FrozenDict()).get("code", ""))
                if now.state == "done" or not waiting or code in _HOPELESS or len(tried) > MAX_FALLBACKS:
                    return now
                now = replace(now, instead_of=skill, child="", text="", input_tokens=0, output_tokens=0,
                              cost_usd=0.0)  # fmt: skip

    async def _attempt(self, part: Part, now: SubtaskChanged, text: str) -> tuple[SubtaskChanged, tuple[str, ...]]:
        """One turn of a new session; how it ended, and the skills that may stand in."""
        above = self._context
        wanted = (now.skill,) if now.skill else above.options.skills
        # What allows something is asked of the conversation above while the part runs; what denies stays for good.
        denied = tuple(r for r in (*above.options.rules, *above.granted) if r.effect is Effect.DENY)
        options = replace(
            above.options, skills=wanted, rules=denied, parent=above.session, depth=above.options.depth + 1,
            model=above.options.model or above.model_ref,
        )  # fmt: skip
        session = await self._sessions.create(options, part.name)
        fallbacks: tuple[str, ...] = ()
        try:
            version, fallbacks = await self._source.hand_over(above.session, session, now.skill, text)
            now = replace(now, child=session, skill=version)
            actor = await self._sessions.actor(session)
            await actor.context.join(above, part.name)
            ticket = await actor.submit(UserSaid(text, source=f"subtask:{above.session}"))
            now = replace(now, state="running")
            await self._tell(now)
            now = await self._ended(now, await ticket.done)
        except HostError as error:
            now = replace(now, state="failed", child=session, error=_fault(error))
        finally:
            await self._sessions.release(session)
        await self._tell(now)
        return now, fallbacks

    async def _ended(self, now: SubtaskChanged, result: TurnResult) -> SubtaskChanged:
        usage = Usage(cost_usd=0.0)
        for stamped in await self._context.parts.history.read(result.session):
            if isinstance(e := stamped.event, UsageRecorded):
                usage += Usage(e.input, e.output, e.cache_read, e.cache_write, e.reasoning, e.cost_usd)
        read = usage.input + usage.cache_read + usage.cache_write
        now = replace(now, input_tokens=read, output_tokens=usage.output, cost_usd=usage.cost_usd, text=result.text)
        if result.status is TurnStatus.DONE and result.text.strip():
            return replace(now, state="done", error=now.error if now.instead_of else None)
        empty = {"code": "empty_reply", "message": "it gave no result", "params": {}}
        if result.status is TurnStatus.INTERRUPTED:
            empty = {"code": "interrupted", "message": "it was stopped", "params": {}}
        return replace(now, state="failed", error=result.error or freeze(empty))

    async def _tell(self, event: SubtaskChanged) -> None:
        self._last[event.number] = event
        await self._context.emit(event)


def _fault(error: HostError) -> FrozenDict:
    params = {k: v if isinstance(v, (bool, int, float, str, type(None))) else str(v) for k, v in error.params.items()}
    fault: FrozenDict = freeze({"code": error.code, "message": error.message, "params": params})
    return fault


def _error(text: str) -> ToolOutcome:
    return ToolOutcome(Outcome.ERROR, (Text(text),))
