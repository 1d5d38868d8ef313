"""The tool calls of one step: all at once, each through the gate, results in the order of the calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from desktop_host.core.apps import for_model, page_of
from desktop_host.core.asks import Advice
from desktop_host.core.errors import HostError
from desktop_host.core.events import ToolProgress, ToolRequested, ToolSettled, ToolStarted
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.host_tools import ALIAS
from desktop_host.core.messages import Outcome, Text, ToolCall
from desktop_host.core.permissions import Effect, Verdict
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict, Json, canonical
from desktop_host.engine import tasks
from desktop_host.engine.context import SessionContext
from desktop_host.engine.parts import Parts
from desktop_host.engine.time_left import TimeLeft
from desktop_host.engine.tool_search import RESET
from desktop_host.engine.toolkit import Resolved

META_CHARS = 65_536
"""Of `_meta` of a result, as JSON, that a page may have."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Decided:
    call: ToolCall
    spec: ToolSpec | None
    verdict: Verdict
    answer: str | None = None
    """What to answer at once, without running anything."""
    locked: tuple[str, ...] = ()
    """Arguments that the person has fixed."""
    advice: Advice | None = None
    page: str = ""
    """The tool whose page asks."""


class Calls:
    """Runs the calls of one reply of the model."""

    def __init__(self, context: SessionContext, parts: Parts) -> None:
        self._context = context
        self._parts = parts
        self._progress: dict[str, Progress] = {}
        self._speeds: dict[str, TimeLeft] = {}
        self._reported = asyncio.Event()

    async def run(self, calls: tuple[ToolCall, ...]) -> None:
        """Decide, ask where needed, run and journal every call.

        A failure of one call never touches its siblings. Cancelling leaves the unsettled ones to the turn.

        Raises:
            HostError: a call could not be journaled; the others are cancelled, since nothing can be kept.
        """
        decided = [await self._announced(await self._decide(self._resolved(call), call)) for call in calls]
        limit = asyncio.Semaphore(self._parts.settings.current().tools.parallel)
        pump = asyncio.create_task(self._pump())
        try:
            async with asyncio.TaskGroup() as group:
                for one in decided:
                    group.create_task(self._settle(one, limit))
        except ExceptionGroup as group:  # A group has no code; the one failure that a person can act on has.
            named, _others = group.split(HostError)
            raise next(_leaves(named or group)) from group
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)

    async def of_page(self, spec: ToolSpec, call: ToolCall, page: str) -> ToolOutcome:
        """Run a call that a page of a server asked for, by the rules that hold for the model's.

        Args:
            spec: the tool; it may be for pages alone.
            call: its id begins with `apps.CALLS`.
            page: the tool that the page belongs to.

        Raises:
            HostError: it could not be journaled.
        """
        toolkit = self._parts.toolkit
        resolved = toolkit.of_page(self._context.session, spec, call) if toolkit else Resolved(spec, call)
        decided = replace(await self._decide(resolved, call), page=page)
        await self._announced(decided)
        pump = asyncio.create_task(self._pump())
        try:
            return await self._settle(decided, asyncio.Semaphore())
        except asyncio.CancelledError:
            if call.id in self._context.conversation.pages.open:
                await self._context.emit(ToolSettled(call.id, Outcome.CANCELLED))
            raise
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)

    async def _decide(self, resolved: Resolved, call: ToolCall) -> _Decided:
        spec, call = resolved.spec, resolved.call
        if spec is None or resolved.answer is not None:
            reason = "unknown_tool" if spec is None else "group_off"
            decided = _Decided(call, spec, Verdict(Effect.DENY, reason), resolved.answer)
        elif call.problem is not None:
            text = f"The arguments could not be read ({call.problem}); nothing was run. Send one JSON object."
            decided = _Decided(call, spec, Verdict(Effect.DENY, "bad_arguments"), text)
        else:
            verdict = await self._parts.gate.decide(spec, call, self._context.rules, foreign=self._context.foreign)
            advice = None if verdict.effect is Effect.DENY else await tasks.second_opinion(self._context, spec, call)
            if advice is not None and advice.verdict != "safe" and verdict.effect is Effect.ALLOW:
                verdict = Verdict(Effect.ASK, "safety_check")
            decided = _Decided(call, spec, verdict, locked=resolved.locked, advice=advice)
        return decided

    async def _announced(self, decided: _Decided) -> _Decided:
        call, spec = decided.call, decided.spec
        await self._context.emit(
            ToolRequested(
                call.id,
                spec.server if spec else "",
                spec.name if spec else call.wire_name,
                call.wire_name,
                call.arguments,
                decided.verdict.effect,
                decided.verdict.reason,
                spec.display_name if spec else call.wire_name,
                decided.page,
                spec is None or for_model(spec),
            )
        )
        return decided

    def _resolved(self, call: ToolCall) -> Resolved:
        context, toolkit = self._context, self._parts.toolkit
        if toolkit is not None:
            return toolkit.resolve(context.session, context.options.servers, context.table, call)
        spec = context.table.find(call.wire_name)
        return Resolved(spec, call, None if spec else context.table.unknown(call.wire_name))

    async def _settle(self, one: _Decided, limit: asyncio.Semaphore) -> ToolOutcome:
        started = self._parts.clock.monotonic()
        try:
            outcome = await self._outcome(one, limit)
        except HostError as error:
            outcome = ToolOutcome(Outcome.ERROR, (Text(error.message),))
        except Exception:  # Each call has a result, or the conversation could not go on.
            _log.exception("running %s failed", one.call.wire_name)
            outcome = ToolOutcome(Outcome.ERROR, (Text("The host failed while it ran this tool; its log says why."),))
        took = outcome.duration_ms or (self._parts.clock.monotonic() - started) * 1000
        problem = str(outcome.raw.get("host_error", "")) if isinstance(outcome.raw, FrozenDict) else ""
        await self._context.emit(
            ToolSettled(
                one.call.id, outcome.outcome, outcome.content, outcome.structured, took, problem, _meta(one, outcome)
            )
        )
        return outcome

    async def _outcome(self, one: _Decided, limit: asyncio.Semaphore) -> ToolOutcome:
        if one.answer is not None or one.spec is None:
            return ToolOutcome(Outcome.ERROR, (Text(one.answer or ""),))
        verdict = one.verdict
        if verdict.effect is Effect.ASK:
            verdict, rule = await self._parts.gate.ask(
                self._context.session, one.spec, one.call, lambda: self._context.rules, one.locked,
                foreign=self._context.foreign, advice=one.advice,
            )  # fmt: skip
            if rule is not None:
                await self._context.add_rule(rule)
            await self._parts.gate.recheck()
        if verdict.effect is not Effect.ALLOW:
            return ToolOutcome(Outcome.DENIED)
        async with limit:
            await self._context.emit(ToolStarted(one.call.id))
            if one.spec.full_name == f"{ALIAS}.{RESET}":
                self._context.apply_tools()
            return await self._traced(one.spec, one.call, verdict)

    async def _traced(self, spec: ToolSpec, call: ToolCall, verdict: Verdict) -> ToolOutcome:
        """Run it, and tell of it: a server's tool by the MCP conventions, one of our own by those of GenAI."""
        own, tracing = spec.server == ALIAS, self._parts.tracing
        span = tracing.begin(
            f"execute_tool {spec.name}" if own else f"tools/call {spec.name}", "internal" if own else "client",
            gen_ai__operation__name="execute_tool", gen_ai__tool__name=spec.name, gen_ai__tool__call__id=call.id,
            gen_ai__tool__type="function", gen_ai__conversation__id=self._context.session,
            mcp__method__name=None if own else "tools/call", desktop_host__server=spec.server,
        )  # fmt: skip
        try:
            with tracing.inside(span):
                span.content(gen_ai__tool__call__arguments=call.arguments)
                outcome = await self._parts.tools.call(
                    self._context.session, call.id, spec, call.arguments, verdict,
                    lambda report: self._report(call.id, report),
                )  # fmt: skip
            span.put(desktop_host__outcome=outcome.outcome.value)
            span.content(gen_ai__tool__call__result="\n".join(b.text for b in outcome.content if isinstance(b, Text)))
            if outcome.outcome is not Outcome.OK:
                # `tool_error`: the tool ran and said that it failed (MCP conventions).
                span.fail("tool_error" if outcome.outcome is Outcome.ERROR else outcome.outcome.value)
            return outcome
        except BaseException as error:
            span.fail(error.code if isinstance(error, HostError) else type(error).__name__)
            raise
        finally:
            span.end()

    def _report(self, call_id: str, report: Progress) -> None:
        self._progress[call_id] = report
        self._reported.set()

    async def _pump(self) -> None:
        """Emit the newest report of each call; a chatty server cannot flood the stream."""
        while True:
            await self._reported.wait()
            self._reported.clear()
            reports, self._progress = self._progress, {}
            for call_id, r in reports.items():
                speed = self._speeds.setdefault(call_id, TimeLeft())
                left = speed.estimate(self._parts.clock.monotonic(), r.progress, r.total)
                if call_id in self._context.conversation.unsettled or call_id in self._context.conversation.pages.open:
                    await self._context.emit(ToolProgress(call_id, r.progress, r.total, r.message, left))


def _meta(one: _Decided, outcome: ToolOutcome) -> Json:
    """`_meta` of a result whose tool has a page, which may want it; the journal keeps no more than it must."""
    if one.spec is None or page_of(one.spec) is None or not isinstance(outcome.raw, FrozenDict):
        return None
    meta: Json = outcome.raw.get("_meta")
    return meta if meta and len(canonical(meta)) <= META_CHARS else None


def _leaves(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        yield from _leaves(error) if isinstance(error, ExceptionGroup) else (error,)
