"""Servers ask a human, or the human's model, through this: sampling, elicitation, consent to URLs, roots."""

from __future__ import annotations

import os
import re
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from desktop_host.core.admin import ModelAdmin
from desktop_host.core.asks import (
    Allow,
    Dismiss,
    Edited,
    Filled,
    FillForm,
    OpenUrl,
    Refuse,
    ReviewReply,
    ReviewSampling,
    SamplingCost,
)
from desktop_host.core.errors import UserFault
from desktop_host.core.events import Notice
from desktop_host.core.exchange import ElicitReply, FormRequest, Origin, SamplingReply, SamplingRequest, UrlRequest
from desktop_host.core.messages import Message, StopReason, Text, Thinking
from desktop_host.core.models import ModelRequest, Purpose
from desktop_host.core.ports import Clock
from desktop_host.core.routes import ref_for
from desktop_host.core.servers import SamplingPolicy
from desktop_host.core.settings import Settings
from desktop_host.core.tokens import of_request
from desktop_host.core.values import EMPTY, FrozenDict, Json
from desktop_host.engine.asking import answered, used
from desktop_host.engine.context import SessionContext
from desktop_host.engine.forms import completed
from desktop_host.engine.inbox import Emit, Inbox
from desktop_host.engine.outside import Asker, Askers
from desktop_host.engine.rounds import Rounds
from desktop_host.engine.spending import Need, Spending

_STOP = {
    StopReason.END: "endTurn",
    StopReason.LENGTH: "maxTokens",
    StopReason.STOP_SEQUENCE: "stopSequence",
    StopReason.TOOLS: "toolUse",
    StopReason.REFUSAL: "refusal",
}


@dataclass
class _Spent:
    """What a server's sampling used."""

    day: int = 0
    tokens: int = 0
    recent: deque[float] = field(default_factory=deque)
    """When it asked within the last minute, on the monotonic clock."""


class HostReviewer:
    """The `Reviewer` of a host."""

    def __init__(
        self,
        inbox: Inbox,
        models: ModelAdmin,
        clock: Clock,
        *,
        context: Callable[[str | None], SessionContext | None],
        emit: Emit,
        policy: Callable[[str], SamplingPolicy],
        settings: Callable[[], Settings],
        spending: Spending,
        keep: Callable[[str, SamplingPolicy], Awaitable[None]] | None = None,
        askers: Askers | None = None,
    ) -> None:
        """`keep` changes the policy of a server, where the person says "always"; `askers`: calls from outside."""
        self._inbox = inbox
        self._rounds = Rounds()
        self._models = models
        self._context = context
        self._emit = emit
        self._clock = clock
        self._policy = policy
        self._settings = settings
        self._spending = spending
        self._keep = keep
        self._askers = askers or Askers()
        self._spent: dict[str, _Spent] = {}
        self._running: set[str] = set()
        self._requests: dict[str, int] = {}

    def roots(self, session: str | None) -> tuple[str, ...]:
        """The folders of this session, else those of the profile."""
        context = self._context(session)
        own = context.options.roots if context else ()
        listed = re.split(r"[;\n]", self._settings().tools.roots)
        return own or tuple(os.path.abspath(os.path.expanduser(f.strip())) for f in listed if f.strip())

    async def elicit(self, origin: Origin, request: FormRequest | UrlRequest) -> ElicitReply:
        """Ask the person; values of a form are completed from its defaults and checked before they leave."""
        count = self._rounds.next(origin)
        if count is None:
            return ElicitReply("stop")
        asker = self._askers.of(origin)
        if asker is not None and asker.client.takes(request):
            reply = await asker.client.elicit(origin.server, asker.tool, request)
            await self._passed_on(origin, asker, "url" if isinstance(request, UrlRequest) else "elicitation")
            if reply.action != "accept" or isinstance(request, UrlRequest):
                return reply
            return ElicitReply("accept", completed(reply.content or EMPTY, request.schema))
        who = (uuid.uuid4().hex, origin.session, origin.call_id, origin.server, request.message)
        if isinstance(request, UrlRequest):
            answer = await self._inbox.ask(OpenUrl(*who, request.url, round=count))
            if isinstance(answer, Allow):
                return ElicitReply("accept")
        else:
            answer = await self._inbox.ask(FillForm(*who, request.schema, round=count))
            if isinstance(answer, Filled):
                return ElicitReply("accept", completed(answer.values, request.schema))
        if isinstance(answer, Refuse) and answer.stop:
            self._rounds.stop(origin)
            return ElicitReply("stop")
        return ElicitReply(_no(answer))

    async def sample(self, origin: Origin, request: SamplingRequest) -> SamplingReply:
        """Let the model answer a server: policy, rate, the person's review, the request, the reply's review.

        Raises:
            UserFault: `permission`, refused by policy, limit or person.
        """
        policy = self._policy(origin.server)
        self._admit(origin.server, policy)
        wanted = request.max_tokens
        request = replace(request, max_tokens=min(wanted, policy.max_tokens))
        asker = self._askers.of(origin)
        if asker is not None and asker.client.takes(request):
            passed = await asker.client.sample(origin.server, asker.tool, request)
            await self._passed_on(origin, asker, "sampling")
            return passed
        ref = await self._pick(origin, request)
        cost = await self._cost(origin, request, ref, policy, wanted)
        if policy.daily_usd and cost.spent_usd + (cost.estimate_usd or 0.0) > policy.daily_usd:
            raise _refused(origin.server, "sampling_budget", f"its ${policy.daily_usd:g} of today do not cover this")
        self._running.add(origin.server)
        try:
            if policy.mode != "allow":
                review = ReviewSampling(
                    uuid.uuid4().hex, origin.session, origin.call_id, origin.server, request, ref, cost
                )
                answer = await self._inbox.ask(review)
                match answer:
                    case Allow():
                        pass
                    case Edited(text=text):
                        request = replace(request, messages=_edited(request.messages, text))
                    case _:
                        raise UserFault("permission", "the person refused the sampling request", reason="refused")
                if answer.daily is not None and self._keep is not None:
                    cap = answer.daily
                    policy = replace(policy, mode="allow", daily_tokens=cap.tokens, daily_usd=cap.usd)
                    await self._keep(origin.server, policy)
            reply = await self._ask(origin, request, ref, policy)
            if policy.mode == "allow":
                return reply
            back = ReviewReply(
                uuid.uuid4().hex, origin.session, origin.call_id, origin.server, reply.blocks, reply.model
            )
            match await self._inbox.ask(back):
                case Allow():
                    return reply
                case Edited(text=text):
                    return replace(reply, blocks=(Text(text),))
                case _:
                    raise UserFault("permission", "the person kept the reply back", reason="refused")
        finally:
            self._running.discard(origin.server)

    def logged(self, origin: Origin, level: str, logger: str | None, data: Json) -> None:
        """A line that a server logged during a call: a client outside that made the call gets it."""
        asker = self._askers.of(origin)
        if asker is not None:
            asker.client.log(origin.server, level, logger, data)

    async def _passed_on(self, origin: Origin, asker: Asker, kind: str) -> None:
        if origin.session is not None:
            told = {"server": origin.server, "tool": asker.tool, "kind": kind}
            await self._emit(origin.session, Notice("passed_on", FrozenDict(told)))

    def _admit(self, server: str, policy: SamplingPolicy) -> None:
        if policy.mode == "off":
            raise _refused(server, "sampling_off", "switched off")
        if server in self._running:
            raise _refused(server, "sampling_depth", "another request of this server is under way")
        spent = self._spent.setdefault(server, _Spent())
        now, day = self._clock.monotonic(), int(self._clock.now() // 86_400)
        if spent.day != day:
            spent.day, spent.tokens = day, 0
        while spent.recent and now - spent.recent[0] > 60:
            spent.recent.popleft()
        if len(spent.recent) >= policy.per_minute:
            raise _refused(server, "sampling_rate", f"more than {policy.per_minute} requests a minute")
        if spent.tokens >= policy.daily_tokens:
            raise _refused(server, "sampling_budget", f"its {policy.daily_tokens} tokens of today are spent")
        spent.recent.append(now)

    async def _cost(
        self, origin: Origin, request: SamplingRequest, ref: str, policy: SamplingPolicy, wanted: int
    ) -> SamplingCost:
        """What the person is told of money and tokens before it is sent."""
        tokens = of_request(request.messages, request.system or "", request.tools)
        asked = ModelRequest(request.messages, request.system or "", request.tools, max_tokens=request.max_tokens)
        quote = await self._models.quote(ref, asked, tokens)
        usd = None if quote is None else quote.fixed_usd + quote.per_token_usd * request.max_tokens
        limit = policy.daily_usd or self._settings().budgets.server_day_usd or 0.0
        spent = await self._spending.server_today(origin.server)
        return SamplingCost(tokens, usd, self.spent(origin.server), policy.daily_tokens, spent, limit, wanted)

    async def _pick(self, origin: Origin, request: SamplingRequest) -> str:
        """The model: the first hint that a usable model's name holds, else the route `sampling`, else the chat's."""
        context = self._context(origin.session)
        settings = self._settings()
        own = ref_for(settings.routes, Purpose.SAMPLING, context.model_ref if context else settings.model.default)
        if request.hints:
            ready = [e.ref for e in await self._models.entries() if e.ready]
            for hint in request.hints:
                for ref in (own, *ready):
                    if hint.lower() in ref.lower():
                        return ref
        return own

    async def _ask(self, origin: Origin, request: SamplingRequest, ref: str, policy: SamplingPolicy) -> SamplingReply:
        conversation = f"{origin.session or ''}:sampling:{origin.server}"
        place = self._requests.get(conversation, 0)
        self._requests[conversation] = place + 1
        asked = ModelRequest(
            request.messages,
            request.system or "",
            request.tools,
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            purpose=Purpose.SAMPLING,
            tool_choice=request.tool_choice,
            stop=request.stop,
            effort="low",
            conversation=conversation,
            step_index=place,
        )
        context = self._context(origin.session)
        grant = await self._spending.admit(Need(
            ref, asked, of_request(asked.messages, asked.system, asked.tools), origin.session,
            context.options.budget_usd if context else None, origin.server, policy.daily_usd or None,
        ))  # fmt: skip
        try:
            done = await answered(await self._models.open(grant.ref), grant.request)
        except BaseException:
            await grant.abandon(0, sent=False)
            raise
        notices = await grant.settle(done.usage, cached=done.cached)
        self._spent[origin.server].tokens += done.usage.total
        if origin.session:
            await self._emit(origin.session, used(done, "sampling", server=origin.server))
            for notice in notices:
                await self._emit(origin.session, notice)
        blocks = tuple(b for b in done.message.blocks if not isinstance(b, Thinking)) or (Text(""),)
        return SamplingReply(blocks, done.model, _STOP.get(done.stop, "endTurn"))

    def spent(self, server: str) -> int:
        """Tokens that this server's sampling used today."""
        found = self._spent.get(server)
        return found.tokens if found and found.day == int(self._clock.now() // 86_400) else 0


def _refused(server: str, reason: str, text: str) -> UserFault:
    return UserFault("permission", f"sampling for {server}: {text}", server=server, reason=reason)


def _no(answer: object) -> str:
    return "cancel" if isinstance(answer, Dismiss) else "decline"


def _edited(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """The messages with the last one's text replaced."""
    last = messages[-1]
    others = tuple(b for b in last.blocks if not isinstance(b, Text))
    return (*messages[:-1], Message(last.role, (Text(text), *others)))
