"""Servers ask a human, or the human's model, through this: sampling, elicitation, consent to URLs, roots."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace

from desktop_host.core.admin import ModelAdmin
from desktop_host.core.asks import Allow, Dismiss, Filled, FillForm, OpenUrl, Refuse
from desktop_host.core.events import Notice
from desktop_host.core.exchange import ElicitReply, FormRequest, Origin, SamplingReply, SamplingRequest, UrlRequest
from desktop_host.core.ports import Clock
from desktop_host.core.servers import SamplingPolicy
from desktop_host.core.settings import Settings
from desktop_host.core.values import EMPTY, FrozenDict, Json
from desktop_host.engine.allowance import Allowance
from desktop_host.engine.context import SessionContext
from desktop_host.engine.forms import FormCheck, completed
from desktop_host.engine.inbox import Emit, Inbox
from desktop_host.engine.outside import Asker, Askers
from desktop_host.engine.rounds import Rounds
from desktop_host.engine.sampling import Sampling
from desktop_host.engine.spending import Spending


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
        check: FormCheck,
    ) -> None:
        """Put it together.

        Args:
            inbox: where the person is asked.
            models: who may answer servers.
            clock: the host's.
            context: what an open session knows.
            emit: puts events on a session's line.
            policy: whether a server may ask, by alias.
            settings: of the profile.
            spending: budgets and what was spent.
            keep: changes the policy of a server, where the person says "always".
            askers: calls from outside.
            check: judges the values of forms.
        """
        self._inbox = inbox
        self._rounds = Rounds()
        self._context = context
        self._policy = policy
        self._settings = settings
        self._emit, self._check = emit, check
        self._askers = askers or Askers()
        self._allowance = Allowance(clock, spending)
        self._sampling = Sampling(
            inbox, models, self._allowance, spending, context=context, emit=emit, settings=settings,
            keep=keep,
        )  # fmt: skip

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
            return ElicitReply("accept", completed(reply.content or EMPTY, request.schema, self._check))
        who = (uuid.uuid4().hex, origin.session, origin.call_id, origin.server, request.message)
        if isinstance(request, UrlRequest):
            again = self._rounds.opened(origin, request.url)
            ask = OpenUrl(*who, request.url, count, origin.calls, again, request.purpose)
            answer = await self._inbox.ask(ask)
            if isinstance(answer, Allow):
                self._rounds.open(origin, request.url)
                return ElicitReply("accept")
        else:
            answer = await self._inbox.ask(FillForm(*who, request.schema, count, origin.calls))
            if isinstance(answer, Filled):
                return ElicitReply("accept", completed(answer.values, request.schema, self._check, whole=answer.whole))
        if isinstance(answer, Refuse) and answer.stop:
            self._rounds.stop(origin)
            return ElicitReply("stop")
        return ElicitReply(_no(answer))

    async def sample(self, origin: Origin, request: SamplingRequest) -> SamplingReply:
        """Let the model answer a server, or whoever made the call from outside: see `Sampling.answer`."""
        policy, asker = self._policy(origin.server), self._askers.of(origin)
        if asker is None or not asker.client.takes(request):
            return await self._sampling.answer(origin, request, policy)
        async with self._allowance.admitted(origin, policy, 0, request.max_tokens) as most:
            passed = await asker.client.sample(origin.server, asker.tool, replace(request, max_tokens=most))
            await self._passed_on(origin, asker, "sampling")
            return passed

    def logged(self, origin: Origin, level: str, logger: str | None, data: Json) -> None:
        """A line that a server logged during a call: a client outside that made the call gets it."""
        asker = self._askers.of(origin)
        if asker is not None:
            asker.client.log(origin.server, level, logger, data)

    async def _passed_on(self, origin: Origin, asker: Asker, kind: str) -> None:
        if origin.session is not None:
            told = {"server": origin.server, "tool": asker.tool, "kind": kind}
            await self._emit(origin.session, Notice("passed_on", FrozenDict(told)))


def _no(answer: object) -> str:
    return "cancel" if isinstance(answer, Dismiss) else "decline"
