"""A server asks the host's model: who may answer and for how much, the person's word, the answer."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

from desktop_host.core.admin import ModelAdmin
from desktop_host.core.asks import Allow, Edited, ReviewReply, ReviewSampling, SamplingCost
from desktop_host.core.errors import HostError, ModelFault, PeerFault, UserFault
from desktop_host.core.exchange import Origin, SamplingReply, SamplingRequest
from desktop_host.core.messages import Audio, ContentBlock, Message, StopReason, Text, Thinking, ToolCall
from desktop_host.core.model_choice import Candidate, ModelChoice, Wishes, choose
from desktop_host.core.models import Completed, ModelEntry, ModelNotice, ModelRequest, Purpose, TextDelta
from desktop_host.core.routes import find, ref_for
from desktop_host.core.servers import SamplingPolicy
from desktop_host.core.settings import Settings
from desktop_host.core.tokens import of_request, of_text
from desktop_host.engine.allowance import Allowance, money_cap, refused
from desktop_host.engine.asking import used
from desktop_host.engine.context import SessionContext
from desktop_host.engine.inbox import Emit, Inbox
from desktop_host.engine.spending import Need, Spending

OFFERED = 40
"""Models that a person may choose from."""
_STOP = {
    StopReason.END: "endTurn",
    StopReason.LENGTH: "maxTokens",
    StopReason.STOP_SEQUENCE: "stopSequence",
    StopReason.TOOLS: "toolUse",
    StopReason.REFUSAL: "refusal",
}
_CUT = (StopReason.LENGTH, StopReason.REFUSAL, StopReason.CONTEXT)
"""Ends after which a call in the answer may be half of one."""


class Sampling:
    """Answers `sampling/createMessage`."""

    def __init__(
        self,
        inbox: Inbox,
        models: ModelAdmin,
        allowance: Allowance,
        spending: Spending,
        *,
        context: Callable[[str | None], SessionContext | None],
        emit: Emit,
        settings: Callable[[], Settings],
        keep: Callable[[str, SamplingPolicy], Awaitable[None]] | None,
    ) -> None:
        """`keep` changes the policy of a server, where the person says "always"."""
        self._inbox, self._models = inbox, models
        self._allowance, self._spending = allowance, spending
        self._context, self._emit, self._settings, self._keep = context, emit, settings, keep
        self._requests: dict[str, int] = {}

    async def answer(self, origin: Origin, request: SamplingRequest, policy: SamplingPolicy) -> SamplingReply:
        """One request, from the server and back to it.

        Raises:
            UserFault: `permission`, refused by policy, limit or person.
            HostError: `unsupported_param`, it holds what no model of this host takes; what the model failed with.
        """
        if any(isinstance(b, Audio) for m in request.messages for b in m.blocks):
            raise HostError("unsupported_param", "audio is not supported: no model of this host takes it",
                            param="audio")  # fmt: skip
        wanted, tokens = request.max_tokens, of_request(request.messages, request.system or "", request.tools)
        async with self._allowance.admitted(origin, policy, tokens, wanted) as most:
            request = replace(request, max_tokens=most)
            choice = await self._choice(origin, request, tokens)
            ref = choice.ref
            if policy.mode != "allow":
                ask = ReviewSampling(
                    uuid.uuid4().hex, origin.session, origin.call_id, origin.server, request, ref,
                    await self._cost(origin, choice, policy, tokens, wanted), origin.calls, choice,
                )  # fmt: skip
                answer = await self._inbox.ask(ask)
                if not isinstance(answer, (Allow, Edited)):
                    raise UserFault("permission", "the person refused the sampling request", reason="refused")
                ref = answer.model if answer.model in {c.ref for c in choice.candidates} and answer.model else ref
                if isinstance(answer, Edited):
                    request = replace(request, messages=_edited(request.messages, answer.text))
                if answer.daily is not None and self._keep is not None:
                    policy = replace(policy, mode="allow", daily_tokens=answer.daily.tokens, daily_usd=answer.daily.usd)
                    await self._keep(origin.server, policy)
            cost = next((c.cost_usd for c in choice.candidates if c.ref == ref), None)
            await self._affordable(origin.server, policy, cost)
            reply, left_out = await self._ask(origin, request, ref, None if cost is None else money_cap(policy))
            if policy.mode == "allow":
                return reply
            return await self._reviewed(origin, reply, left_out)

    async def _reviewed(self, origin: Origin, reply: SamplingReply, left_out: tuple[str, ...]) -> SamplingReply:
        back = ReviewReply(
            uuid.uuid4().hex, origin.session, origin.call_id, origin.server, reply.blocks, reply.model, origin.calls,
            left_out, reply.stop,
        )  # fmt: skip
        match await self._inbox.ask(back):
            case Allow():
                return reply
            case Edited(text=text):
                return replace(reply, blocks=(Text(text),))
            case _:
                raise UserFault("permission", "the person kept the reply back", reason="refused")

    # ---- which model, and what it costs
    async def _choice(self, origin: Origin, request: SamplingRequest, tokens: int) -> ModelChoice:
        context, settings = self._context(origin.session), self._settings()
        chat = context.model_ref if context else settings.model.default
        own = ref_for(settings.routes, Purpose.SAMPLING, chat)
        reason = "route" if own != chat else "script" if own.startswith("script:") else "chat"
        entries = {e.ref: e for e in await self._models.entries() if e.ready}
        refs = [own, *(ref for ref in entries if ref != own)][:OFFERED]
        asked = _model_request(request)
        found = [await self._candidate(ref, self._known(ref, entries), asked, tokens) for ref in refs]
        wishes = Wishes(request.hints, request.cost_priority, request.speed_priority, request.intelligence_priority)
        return choose(own, found, wishes, reason=reason, kin=self._models.kin())

    def _known(self, ref: str, entries: dict[str, ModelEntry]) -> ModelEntry | None:
        """What is known of a model; a route is known by its first model that can be asked."""
        route = find(self._settings().routes, ref)
        names = [link.model for link in route.chain] if route else [ref]
        return next((entries[name] for name in names if name in entries), None)

    async def _candidate(self, ref: str, known: ModelEntry | None, asked: ModelRequest, tokens: int) -> Candidate:
        quote = await self._models.quote(ref, asked, tokens)
        cost = None if quote is None else quote.fixed_usd + quote.per_token_usd * (asked.max_tokens or 0)
        title = known.title if known and known.ref == ref else ref
        return Candidate(ref, title, cost, known.speed if known else None, known.intelligence if known else None)

    async def _cost(
        self, origin: Origin, choice: ModelChoice, policy: SamplingPolicy, tokens: int, wanted: int
    ) -> SamplingCost:
        """What the person is told of money and tokens before it is sent."""
        estimate = next((c.cost_usd for c in choice.candidates if c.ref == choice.ref), None)
        limits = [usd for usd in (money_cap(policy), self._settings().budgets.server_day_usd) if usd]
        today = await self._spending.server_today(origin.server)
        return SamplingCost(
            tokens, estimate, today.tokens, policy.daily_tokens, today.spent_usd, min(limits, default=0.0), wanted
        )

    async def _affordable(self, server: str, policy: SamplingPolicy, cost: float | None) -> None:
        cap = money_cap(policy)
        if cap is None or cost is None:
            return
        if (await self._spending.server_today(server)).spent_usd + cost > cap:
            raise refused(server, "sampling_budget", f"its ${cap:g} of today do not cover this")

    # ---- the request
    async def _ask(
        self, origin: Origin, request: SamplingRequest, ref: str, cap: float | None
    ) -> tuple[SamplingReply, tuple[str, ...]]:
        conversation = f"{origin.session or ''}:sampling:{origin.server}"
        place = self._requests.get(conversation, 0)
        self._requests[conversation] = place + 1
        asked = replace(_model_request(request), conversation=conversation, step_index=place)
        context = self._context(origin.session)
        payer = context.root if context else None
        grant = await self._spending.admit(Need(
            ref, asked, of_request(asked.messages, asked.system, asked.tools),
            payer.session if payer else origin.session, payer.options.budget_usd if payer else None, origin.server, cap,
        ))  # fmt: skip
        written: list[str] = []
        notices: list[ModelNotice] = []
        try:
            model = await self._models.open(grant.ref)
            done: Completed | None = None
            async with aclosing(model.stream(grant.request)) as stream:
                async for event in stream:
                    match event:
                        case TextDelta(text=text):
                            written.append(text)
                        case ModelNotice():
                            notices.append(event)
                        case Completed():
                            done = event
            if done is None:
                raise ModelFault("stream_truncated", "the reply was cut off")
        except BaseException as error:
            output = of_text("".join(written))
            await grant.abandon(output, sent=isinstance(error, asyncio.CancelledError) or output > 0)
            raise
        told = await grant.settle(done.usage, cached=done.cached)
        if origin.session:
            await self._emit(origin.session, used(done, "sampling", server=origin.server))
            for news in told:
                await self._emit(origin.session, news)
        return SamplingReply(_blocks(done), done.model, _STOP.get(done.stop, "endTurn")), _left_out(notices)


def _model_request(request: SamplingRequest) -> ModelRequest:
    return ModelRequest(
        request.messages, request.system or "", request.tools, max_tokens=request.max_tokens,
        temperature=request.temperature, purpose=Purpose.SAMPLING, tool_choice=request.tool_choice,
        stop=request.stop, effort="low",
    )  # fmt: skip


def _blocks(done: Completed) -> tuple[ContentBlock, ...]:
    """What of an answer goes back: no thinking, and no call that may be half of one."""
    blocks = tuple(b for b in done.message.blocks if not isinstance(b, Thinking))
    if done.stop in _CUT:
        blocks = tuple(b for b in blocks if not isinstance(b, ToolCall))
    broken = next((b for b in blocks if isinstance(b, ToolCall) and b.problem), None)
    if broken is not None:
        raise PeerFault("protocol_error", f"the model's call of {broken.wire_name!r} cannot be read: {broken.problem}")
    return blocks or (Text(""),)


def _left_out(notices: list[ModelNotice]) -> tuple[str, ...]:
    """What of the server's request the model did not take. The effort is the host's own wish."""
    found = []
    for notice in notices:
        match notice.code:
            case "temperature_dropped":
                found.append("temperature")
            case "param_dropped" if notice.params.get("param") in ("temperature", "stop", "stop_sequences"):
                found.append(str(notice.params["param"]).removesuffix("_sequences"))
            case "images_dropped":
                found.append("images")
            case "tools_unsupported":
                found.append("tools")
    return tuple(dict.fromkeys(found))


def _edited(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """The messages with the last one's text replaced."""
    last = messages[-1]
    others = tuple(b for b in last.blocks if not isinstance(b, Text))
    return (*messages[:-1], Message(last.role, (Text(text), *others)))
