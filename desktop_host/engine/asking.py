"""One request of the model at a time: paid for, streamed, journaled, its draft kept."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, suppress
from dataclasses import replace

from desktop_host.core.errors import HostError, ModelFault
from desktop_host.core.events import (
    AssistantSaid,
    Event,
    Notice,
    RetryScheduled,
    RouteChanged,
    ThinkingStreamed,
    TokenDelta,
    UsageRecorded,
)
from desktop_host.core.messages import Message, Role, StopReason, Text, Thinking, ToolCall
from desktop_host.core.models import (
    Completed,
    ModelNotice,
    ModelRequest,
    ModelSwitched,
    RetryWaiting,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from desktop_host.core.ports import ChatModel
from desktop_host.core.tokens import elsewhere, of_text
from desktop_host.core.values import FrozenDict
from desktop_host.engine.context import SessionContext, TurnSpent
from desktop_host.engine.conversation import LEFT_OUT
from desktop_host.engine.pictures import MOST
from desktop_host.engine.spending import Grant, Need

_log = logging.getLogger(__name__)
DRAFT_EVERY_S = 1.0
LEAST_TOKENS = 16
"""A token budget with less left is spent."""


class Asking:
    """The requests of one turn."""

    def __init__(self, context: SessionContext, skills: tuple[str, ...], fresh: bool) -> None:
        self._context = context
        self._parts = context.parts
        self._skills = skills
        """`name@version` of those active in this turn."""
        self._fresh = fresh
        self._asked: str | None = None
        """REF of the model that is being asked, while it is."""
        if context.parent is None:
            context.spent = TurnSpent()
        self._spent = context.root.spent
        """Tokens of this turn so far, its tool rounds and sub-tasks included."""
        self.text: list[str] = []
        """What was streamed of the last reply."""
        self._thinking: list[str] = []
        self._draft: asyncio.Task[None] | None = None
        self._draft_at = 0.0
        self._full: HostError | None = None
        """The disk had no room for the last draft."""

    async def ask(self, ref: str) -> Completed:
        """Ask a model to go on with the conversation.

        Raises:
            HostError: what went wrong; `budget_spent`, `quota_spent`, `price_unknown` before anything was sent.
        """
        context = self._context
        request, input_tokens = self._request()
        if context.conversation.left_out and not context.conversation.told_left_out:
            await context.emit(Notice(LEFT_OUT, FrozenDict({"most": MOST})))
        grant = await self._parts.spending.admit(Need(
            ref, request, input_tokens, context.root.session, context.root.options.budget_usd,
            most_tokens=self._most(ref), tokens_limited=self._limit is not None,
        ))  # fmt: skip
        self.text, self._thinking = [], []
        try:
            model = await self._parts.models.open(grant.ref)
            await self._tell_model(ref, grant.ref)
            done = await self._stream(model, grant)
            done = replace(done, message=context.conversation.own_ids(done.message))
        except BaseException as error:
            written = of_text("".join(self.text)) + of_text("".join(self._thinking))
            stopped = isinstance(error, asyncio.CancelledError) and self._asked is not None
            await grant.abandon(written, sent=stopped or written > 0)
            raise
        notices = await grant.settle(done.usage, cached=done.cached)
        await self._said(done, notices)
        return done

    def leftovers(self) -> list[Event]:
        """What is to be journaled of a reply that was cut off."""
        if self._asked is None:
            return []
        return [AssistantSaid(partial_message(self.text, self._thinking), self._asked, partial=True)]

    async def give_up(self) -> None:
        """Journal a request that failed with nothing shown, so that the next one counts as another."""
        if self._asked is not None:
            cut = self.leftovers()
            self._asked = None
            await self._context.emit(*cut)

    @property
    def _limit(self) -> int | None:
        return self._context.root.options.token_budget or self._parts.settings.current().budgets.turn_tokens or None

    def _request(self) -> tuple[ModelRequest, int]:
        """The next request, and an estimate of its input tokens.

        Raises:
            HostError: `budget_spent`, the turn's tokens do not cover it.
        """
        context, settings = self._context, self._parts.settings.current()
        prefix = context.prefix
        assert prefix is not None
        effort = context.options.effort or settings.model.effort
        tokens = context.conversation.tokens(prefix.system, prefix.tools)
        request = ModelRequest(
            context.conversation.messages(),
            prefix.system,
            prefix.tools,
            max_tokens=settings.model.max_tokens or None,
            effort=None if effort == "default" else effort,
            conversation=context.session,
            step_index=context.conversation.requests,
            cacheable=not self._fresh,
        )
        limit = self._limit
        if limit is not None:
            left = limit - self._spent.tokens - tokens
            if left < LEAST_TOKENS:
                spent = self._spent.tokens
                raise HostError(
                    "budget_spent",
                    f"the turn used {spent} of {limit} tokens, and the next request needs about {tokens}",
                    reason="turn" if spent >= limit else "turn_short", remedy="remedy.budget_spent.turn",
                    scope="turn", limit=limit, budget=limit, spent=spent, needs=tokens,
                )  # fmt: skip
            request = replace(request, max_tokens=min(left, request.max_tokens or left))
        return request, tokens

    def _most(self, ref: str) -> int:
        """What the input of the next request can have at most."""
        context, prefix = self._context, self._context.prefix
        assert prefix is not None
        bound = context.conversation.most(prefix.system, prefix.tools)
        return bound if context.answering in (None, ref) else elsewhere(bound)

    async def _tell_model(self, wanted: str, ref: str) -> None:
        """Tell where another model answers than the one chosen for the chat, and where that one is back."""
        chosen = self._context.model_ref
        before, self._context.answering = self._context.answering or chosen, ref
        if before != ref and (ref != chosen or before != self._context.chosen):
            reason = "budget" if ref != wanted else "task" if ref != chosen else "first"
            await self._context.emit(RouteChanged(before, ref, reason))
        self._context.chosen = chosen

    async def _stream(self, model: ChatModel, grant: Grant) -> Completed:
        context = self._context
        context.live = (self.text, self._thinking)
        self._asked = grant.ref
        done: Completed | None = None
        async with aclosing(model.stream(grant.request)) as stream:
            async for event in stream:
                match event:
                    case TextDelta(text=text):
                        self.text.append(text)
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
            raise ModelFault("stream_truncated", "the reply was cut off", visible=bool(self.text))
        return done

    async def _said(self, done: Completed, notices: tuple[Notice, ...]) -> None:
        message = done.message
        if done.stop in (StopReason.LENGTH, StopReason.REFUSAL, StopReason.CONTEXT) and message.calls:
            # Arguments may be cut although they parse: none of these calls may run, nor be sent back.
            message = Message(message.role, tuple(b for b in message.blocks if not isinstance(b, ToolCall)))
        partial = done.stop in (StopReason.REFUSAL, StopReason.CONTEXT)
        self._asked = self._context.live = None
        events: list[Event] = [AssistantSaid(message, done.model, partial=partial, cached=done.cached)]
        if not done.cached:
            events.append(used(done, "chat", skills=self._skills))
        await self._context.emit(*events, *notices, *self._count(done.usage))
        await self._drop_draft()

    def _count(self, usage: Usage) -> list[Event]:
        before, limit = self._spent.tokens, self._limit
        self._spent.tokens += usage.total
        if limit is not None and self._spent.tokens >= limit * 0.8 > before:
            return [Notice("turn_tokens_near", FrozenDict({"spent": self._spent.tokens, "limit": limit}))]
        return []

    def _keep_draft(self) -> None:
        """Keep what was streamed about once a second, without holding up the stream.

        Raises:
            HostError: `disk_full`, at the last try: what comes now could not be kept either.
        """
        if self._full is not None:
            raise self._full
        now = self._parts.clock.monotonic()
        if now - self._draft_at < DRAFT_EVERY_S or (self._draft and not self._draft.done()):
            return
        self._draft_at = now
        self._draft = asyncio.create_task(self._save_draft("".join(self.text), "".join(self._thinking)))

    async def _save_draft(self, text: str, thinking: str) -> None:
        try:
            await self._parts.history.save_draft(self._context.session, self._context.log.turn, text, thinking)
        except HostError as error:
            self._full = error if error.code == "disk_full" else None
            _log.warning("the draft could not be kept", exc_info=True)

    async def _drop_draft(self) -> None:
        if self._draft is not None:
            with suppress(asyncio.CancelledError):
                await self._draft
            self._draft = None
            await self._parts.history.clear_draft(self._context.session)

    async def close(self) -> None:
        """Drop the draft; the turn is over."""
        await self._drop_draft()


def used(done: Completed, purpose: str, *, server: str = "", skills: tuple[str, ...] = ()) -> UsageRecorded:
    """The event of what a request used."""
    u = done.usage
    return UsageRecorded(
        done.model, purpose, u.input, u.output, u.cache_read, u.cache_write, u.reasoning, u.cost_usd, server, skills
    )


def partial_message(text: list[str], thinking: list[str]) -> Message:
    """The message of a reply that was cut off: what was shown, no calls, nothing native."""
    parts = [Thinking("".join(thinking)) if thinking else None, Text("".join(text)) if text else None]
    return Message(Role.ASSISTANT, tuple(p for p in parts if p))


async def answered(model: ChatModel, request: ModelRequest) -> Completed:
    """The whole answer of a request that nobody watches.

    Raises:
        ModelFault: the request failed or the stream was cut.
    """
    done: Completed | None = None
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            if isinstance(event, Completed):
                done = event
    if done is None:
        raise ModelFault("stream_truncated", "the reply was cut off")
    return done
