"""The agent loop of one turn: ask the model, run its tools, ask again, until it is done or must stop."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, suppress
from dataclasses import dataclass

from desktop_host.core.errors import HostError, ModelFault
from desktop_host.core.events import (
    AssistantSaid,
    Event,
    Notice,
    RetryScheduled,
    RouteChanged,
    SkillsChosen,
    ThinkingStreamed,
    TokenDelta,
    ToolSettled,
    TurnEnded,
    UsageRecorded,
)
from desktop_host.core.messages import Message, Outcome, Role, StopReason, Text, Thinking, ToolCall
from desktop_host.core.models import (
    Completed,
    ModelNotice,
    ModelRequest,
    ModelSwitched,
    RetryWaiting,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from desktop_host.core.ports import ChatModel
from desktop_host.core.sessions import SessionState, Signal, TurnStatus, TurnStop
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.engine.calls import Calls
from desktop_host.engine.context import SessionContext

_log = logging.getLogger(__name__)
DRAFT_EVERY_S = 1.0


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
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._asking: str | None = None
        """REF of the model that is being asked, while it is."""
        self._draft: asyncio.Task[None] | None = None
        self._draft_at = 0.0
        self._tokens = 0

    async def run(self) -> Ending:
        """Run to the end. Cancelling interrupts: the turn is closed in order and the ending returned."""
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
        await self._parts.tools.prepare(context.session, context.options.servers, context.options.roots)
        await self._choose_skills()
        prefix = await context.freeze()
        model = await self._parts.models.open(context.model_ref)
        steps = context.options.max_steps or self._parts.settings.current().tools.max_steps
        for _step in range(steps):
            self._check_budget()
            request = ModelRequest(
                context.conversation.messages(),
                prefix.system,
                prefix.tools,
                max_tokens=self._parts.settings.current().model.max_tokens or None,
                effort=self._effort(),
                conversation=context.session,
                step_index=context.conversation.requests,
            )
            done = await self._ask(model, request)
            text = done.message.text
            match done.stop:
                case StopReason.REFUSAL:
                    refused = ModelFault("content_filter", done.detail or "the model declined", model=done.model)
                    return Ending(TurnStatus.FAILED, TurnStop.REFUSAL, text, _error(refused))
                case StopReason.CONTEXT:
                    raise ModelFault("context_overflow", "the conversation no longer fits the model", model=done.model)
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

    async def _choose_skills(self) -> None:
        context = self._context
        if self._said is None:
            return
        if self._parts.skills is None:
            await context.emit(SkillsChosen())
            return
        plan = await self._parts.skills.plan(context.session, self._said, context.options.skills)
        await context.emit(SkillsChosen(plan.chosen, "\n\n".join(plan.bodies)))

    async def _ask(self, model: ChatModel, request: ModelRequest) -> Completed:
        """One request of the model, streamed; its reply is journaled, whole or in part."""
        context = self._context
        self._text, self._thinking = [], []
        context.live = (self._text, self._thinking)
        self._asking = context.model_ref
        done: Completed | None = None
        async with aclosing(model.stream(request)) as stream:  # type: ignore[type-var]
            async for event in stream:
                match event:
                    case TextDelta(text=text):
                        self._text.append(text)
                        await context.emit(TokenDelta(text))
                        self._keep_draft()
                    case ThinkingDelta(text=text):
                        self._thinking.append(text)
                        await context.emit(ThinkingStreamed(text))
                        self._keep_draft()
                    case ToolCallDelta():
                        pass
                    case RetryWaiting() as wait:
                        until = self._parts.clock.now() + wait.delay_s
                        await context.emit(RetryScheduled(wait.attempt, wait.delay_s, wait.code, wait.message, until))
                    case ModelSwitched() as switch:
                        await context.emit(RouteChanged(switch.from_ref, switch.to_ref, switch.reason))
                    case ModelNotice(code=code, params=params):
                        await context.emit(Notice(code, params))
                    case Completed():
                        done = event
        if done is None:
            raise ModelFault("stream_truncated", "the reply was cut off", visible=bool(self._text))
        await self._said_by_model(done)
        return done

    async def _said_by_model(self, done: Completed) -> None:
        usage = done.usage
        self._tokens += usage.total
        spent = self._context.spent_usd
        self._context.spent_usd = None if spent is None or usage.cost_usd is None else spent + usage.cost_usd
        message = done.message
        if done.stop in (StopReason.LENGTH, StopReason.REFUSAL, StopReason.CONTEXT) and message.calls:
            # Arguments may be cut although they parse: none of these calls may run, nor be sent back.
            message = Message(message.role, tuple(b for b in message.blocks if not isinstance(b, ToolCall)))
        partial = done.stop in (StopReason.REFUSAL, StopReason.CONTEXT)
        self._asking = self._context.live = None
        await self._context.emit(
            AssistantSaid(message, done.model, partial=partial),
            UsageRecorded(
                done.model, "chat", usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning,
                usage.cost_usd,
            ),
        )  # fmt: skip
        await self._drop_draft()

    def _effort(self) -> str | None:
        effort = self._context.options.effort or self._parts.settings.current().model.effort
        return None if effort == "default" else effort

    def _check_budget(self) -> None:
        """Stop before a request that the budget no longer covers.

        Raises:
            HostError: `budget_spent` or `price_unknown`.
        """
        options = self._context.options
        if options.token_budget is not None and self._tokens >= options.token_budget:
            raise HostError("budget_spent", f"the turn used {self._tokens} tokens", budget=options.token_budget)
        if options.budget_usd is None:
            return
        if self._context.spent_usd is None:
            if options.token_budget is None:
                raise HostError("price_unknown", "the price of this model is unknown", model=self._context.model_ref)
        elif self._context.spent_usd >= options.budget_usd:
            raise HostError("budget_spent", f"the chat cost ${self._context.spent_usd:.4f}", budget=options.budget_usd)

    def _keep_draft(self) -> None:
        """Keep what was streamed about once a second, without holding up the stream."""
        now = self._parts.clock.monotonic()
        if now - self._draft_at < DRAFT_EVERY_S or (self._draft and not self._draft.done()):
            return
        self._draft_at = now
        text, thinking = "".join(self._text), "".join(self._thinking)
        self._draft = asyncio.create_task(self._save_draft(text, thinking))

    async def _save_draft(self, text: str, thinking: str) -> None:
        try:
            await self._parts.history.save_draft(self._context.session, self._context.log.turn, text, thinking)
        except HostError:
            _log.warning("the draft could not be kept", exc_info=True)

    async def _drop_draft(self) -> None:
        if self._draft is not None:
            with suppress(asyncio.CancelledError):
                await self._draft
            self._draft = None
            await self._parts.history.clear_draft(self._context.session)

    async def _close(self, ending: Ending) -> Ending:
        """Close the turn: partial text, open calls, the end itself. Nothing may stop this."""
        context = self._context
        context.live = None
        try:
            events: list[Event] = []
            if self._asking is not None:
                events.append(AssistantSaid(partial_message(self._text, self._thinking), self._asking, partial=True))
            events += [ToolSettled(i, Outcome.CANCELLED) for i in sorted(context.conversation.unsettled)]
            if not ending.text and self._text and ending.status is not TurnStatus.DONE:
                ending = Ending(ending.status, ending.stop, "".join(self._text), ending.error)
            events.append(TurnEnded(ending.status, ending.stop, ending.text, ending.error))
            await context.emit(*events)
            await self._drop_draft()
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


def partial_message(text: list[str], thinking: list[str]) -> Message:
    """The message of a reply that was cut off: what was shown, no calls, nothing native."""
    parts = [Thinking("".join(thinking)) if thinking else None, Text("".join(text)) if text else None]
    return Message(Role.ASSISTANT, tuple(p for p in parts if p))


def _error(error: HostError) -> FrozenDict:
    frozen: FrozenDict = freeze({"code": error.code, "message": error.message, "params": _plain(error.params)})
    return frozen


def _plain(params: dict[str, object]) -> dict[str, object]:
    return {k: v if isinstance(v, (bool, int, float, str, type(None))) else str(v) for k, v in params.items()}


def _failed(error: HostError) -> Ending:
    stop = TurnStop.BUDGET if error.code in ("budget_spent", "price_unknown", "quota_spent") else TurnStop.ERROR
    return Ending(TurnStatus.FAILED, stop, "", _error(error))
