"""The agent loop of one turn: ask the model, run its tools, ask again, until it is done or must stop."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from desktop_host.core.errors import HostError, ModelFault
from desktop_host.core.events import Event, Notice, ToolSettled, TurnEnded, UserSaid
from desktop_host.core.messages import Outcome, StopReason
from desktop_host.core.models import Completed
from desktop_host.core.sessions import SessionState, Signal, TurnStatus, TurnStop
from desktop_host.core.skills import SkillPlan
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.engine import skills, tasks
from desktop_host.engine.asking import Asking
from desktop_host.engine.calls import Calls
from desktop_host.engine.compaction import Compactor
from desktop_host.engine.context import SessionContext

_log = logging.getLogger(__name__)
AGENT = "Desktop Host"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended."""

    status: TurnStatus
    stop: TurnStop
    text: str = ""
    error: FrozenDict | None = None


class Turn:
    """One turn of a session; `run` always comes to an end that is journaled."""

    def __init__(self, context: SessionContext, opening: tuple[Event, ...], said: str | None) -> None:
        self._context = context
        self._parts = context.parts
        self._opening = opening
        self._said = said
        """What the person wrote, for the skills; None where a turn is resumed."""
        self._asking: Asking | None = None
        self._compactor = Compactor(context)
        self._overflowed = False
        """A summary was made in this turn because the model refused the conversation; once is enough."""

    async def run(self) -> Ending:
        """Run to the end. Cancelling interrupts: the turn is closed in order and the ending returned."""
        tracing = self._parts.tracing
        span = tracing.begin(
            f"invoke_agent {AGENT}", gen_ai__operation__name="invoke_agent", gen_ai__agent__name=AGENT,
            gen_ai__conversation__id=self._context.session,
        )  # fmt: skip
        try:
            with tracing.inside(span):
                ending = await self._run()
            span.put(desktop_host__turn__status=ending.status.value, desktop_host__turn__stop=ending.stop.value)
            if ending.status is not TurnStatus.DONE:
                span.fail(str(ending.error["code"]) if ending.error else ending.stop.value)
            return ending
        finally:
            span.end()

    async def _run(self) -> Ending:
        context = self._context
        limit = context.options.turn_timeout_s or self._parts.settings.current().sessions.turn_timeout_s or None
        try:
            await context.emit(*self._opening)
            await context.signal(Signal.BEGIN)
            async with asyncio.timeout(limit) as deadline:
                ending = await self._loop()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            ending = Ending(TurnStatus.INTERRUPTED, TurnStop.INTERRUPTED)
        except TimeoutError:
            if not deadline.expired():
                _log.exception("the turn failed")
            ending = _failed(HostError("turn_timeout", f"the turn took longer than {limit} s", seconds=limit))
        except HostError as error:
            ending = _failed(error)
        except Exception as error:
            _log.exception("the turn failed")
            ending = _failed(HostError("bug", f"{type(error).__name__}: {error}"))
        return await self._close(ending)

    async def _loop(self) -> Ending:
        context = self._context
        # First: a model that cannot be opened must not cost the start of every server.
        await self._parts.models.open(context.model_ref)
        await self._parts.tools.prepare(context.session, context.options.servers, context.options.roots)
        plan = await self._choose_skills()
        await context.freeze(await tasks.pick_tools(context))
        fresh = any(isinstance(event, UserSaid) and event.fresh for event in self._opening)
        active = tuple(f"{pin.name}@{pin.version}" if pin.version else pin.name for pin in plan.chosen)
        self._asking = Asking(context, active, fresh)
        ref = await self._ref(plan)
        steps = context.options.max_steps or self._parts.settings.current().tools.max_steps
        for _step in range(steps):
            done = await self._ask(self._asking, ref)
            text = done.message.text
            match done.stop:
                case StopReason.REFUSAL:
                    refused = ModelFault("content_filter", done.detail or "the model declined", model=done.model)
                    return Ending(TurnStatus.FAILED, TurnStop.REFUSAL, text, _error(refused))
                case StopReason.CONTEXT:
                    raise _overflow(done)
                case StopReason.LENGTH:
                    return Ending(TurnStatus.DONE, TurnStop.LENGTH, text)
                case StopReason.PAUSE:
                    continue
                case _:
                    if not done.message.calls:
                        if not text:
                            await context.emit(Notice("empty_reply", FrozenDict({"model": done.model})))
                        return Ending(TurnStatus.DONE, TurnStop.END, text)
            await context.signal(Signal.CALL_TOOLS)
            await Calls(context, self._parts).run(done.message.calls)
            await context.signal(Signal.TOOLS_SETTLED)
        spent = HostError("max_steps", f"the turn reached its limit of {steps} steps", steps=steps)
        return Ending(TurnStatus.FAILED, TurnStop.MAX_STEPS, "", _error(spent))

    async def _choose_skills(self) -> SkillPlan:
        return SkillPlan() if self._said is None else await skills.choose(self._context, self._said)

    async def _ref(self, plan: SkillPlan) -> str:
        """The model of this turn: the one that a skill prefers, if it can be opened, else the session's."""
        if plan.route and plan.route != self._context.model_ref:
            try:
                await self._parts.models.open(plan.route)
                return plan.route
            except HostError as fault:
                _log.info("the model %s of a skill is not used: %s", plan.route, fault)
                await self._context.emit(Notice("skill_route_unknown", FrozenDict({"model": plan.route})))
        kind = await tasks.kind_of(self._context, self._said) if self._said else None
        return kind or self._context.model_ref

    async def _ask(self, asking: Asking, ref: str) -> Completed:
        """One request; what no longer fits is summarised, before it overflows or once it was refused."""
        compactor = self._compactor
        await compactor.make_room(ref)
        try:
            done = await asking.ask(ref)
            if done.stop is not StopReason.CONTEXT:
                return done
            fault = _overflow(done)
        except ModelFault as refused:
            fault = refused
        if fault.code not in ("context_overflow", "too_large") or fault.visible or self._overflowed:
            raise fault
        self._overflowed = True
        compactor.refused(ref)
        await asking.give_up()
        if not await compactor.compact(ref, "overflow"):
            raise fault
        return await asking.ask(ref)

    async def _close(self, ending: Ending) -> Ending:
        """Close the turn: partial text, open calls, the end itself. Nothing may stop this."""
        context = self._context
        context.live = None
        try:
            events: list[Event] = []
            events += self._asking.leftovers() if self._asking else []
            events += [ToolSettled(i, Outcome.CANCELLED) for i in sorted(context.conversation.unsettled)]
            if not ending.text and self._asking and self._asking.text and ending.status is not TurnStatus.DONE:
                ending = Ending(ending.status, ending.stop, "".join(self._asking.text), ending.error)
            events.append(TurnEnded(ending.status, ending.stop, ending.text, ending.error))
            await context.emit(*events)
            if self._asking is not None:
                await self._asking.close()
            if self._parts.skills is not None:
                await self._parts.skills.settle(context.session, ending.status.value)
        except HostError as error:
            _log.exception("the end of the turn could not be written; it is closed when the session opens again")
            ending = _failed(error)
        signal = {TurnStatus.DONE: Signal.FINISH, TurnStatus.INTERRUPTED: Signal.INTERRUPT}.get(
            ending.status, Signal.FAIL
        )
        if context.state is SessionState.IDLE:
            return ending
        await context.signal(signal)
        return ending


def _overflow(done: Completed) -> ModelFault:
    return ModelFault(
        "context_overflow", "the conversation no longer fits the model", visible=bool(done.message.text),
        model=done.model,
    )  # fmt: skip


def _error(error: HostError) -> FrozenDict:
    frozen: FrozenDict = freeze({"code": error.code, "message": error.message, "params": _plain(error.params)})
    return frozen


def _plain(params: dict[str, object]) -> dict[str, object]:
    return {k: v if isinstance(v, (bool, int, float, str, type(None))) else str(v) for k, v in params.items()}


def _failed(error: HostError) -> Ending:
    stop = TurnStop.BUDGET if error.code in ("budget_spent", "price_unknown", "quota_spent") else TurnStop.ERROR
    return Ending(TurnStatus.FAILED, stop, "", _error(error))
