"""Everything that waits for a person: open asks with their futures.

An ask is answered by the person (`answer`), by the policy of a headless run, or dismissed with the turn it
belongs to. Whatever the policy does not cover is refused and remembered as undecided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from desktop_host.core.asks import (
    Allow,
    Answer,
    ApproveTool,
    Ask,
    Dismiss,
    Edited,
    Filled,
    FillForm,
    OpenUrl,
    Refuse,
    ReviewReply,
    ReviewSampling,
    action_of,
)
from desktop_host.core.events import AskRaised, AskSettled, Event
from desktop_host.core.values import EMPTY, FrozenDict, freeze

Emit = Callable[[str | None, Event], Awaitable[None]]
"""Puts an event on the line of a session; None: of no session."""


@dataclass(frozen=True, slots=True)
class HeadlessPolicy:
    """Who answers asks where no person watches. What it does not cover is refused."""

    answers: tuple[FrozenDict, ...] = ()
    """The list of `--answers`, used in order by kind."""
    allow_sampling: frozenset[str] = frozenset()
    """Aliases whose sampling requests are allowed."""


class Inbox:
    """The open asks of a host."""

    def __init__(
        self, emit: Emit, policy: HeadlessPolicy | None, face: Callable[[str], tuple[str, str]] = lambda s: (s, "")
    ) -> None:
        self._emit = emit
        self._face = face
        """For a session: the one in which its questions are asked, and the name of the part of that it is."""
        self._policy = policy
        self._open: dict[str, tuple[Ask, asyncio.Future[tuple[Answer, str]]]] = {}
        """By id: the ask and what will hold its answer and who gave it."""
        self._left = list(policy.answers) if policy else []
        self._undecided: set[str] = set()

    def open(self, session: str | None = None) -> tuple[Ask, ...]:
        """The open asks, oldest first; of one session or of all."""
        return tuple(a for a, _ in self._open.values() if session is None or a.session == session)

    def take_undecided(self, session: str) -> bool:
        """Whether an ask of this session was refused for want of a person since the last time asked."""
        found = session in self._undecided
        self._undecided.discard(session)
        return found

    async def ask(self, ask: Ask) -> Answer:
        """Raise an ask and wait for its answer. Cancelling dismisses it.

        What a sub-task asks stands in the conversation of which it is a part.
        """
        if ask.session is not None:
            session, part = self._face(ask.session)
            ask = replace(ask, session=session, part=part) if part else ask
        if self._policy is not None:
            await self._emit(ask.session, AskRaised(ask))
            answer = self._by_policy(self._policy, ask)
            if answer is None:
                self._undecided.add(ask.session or "")
                answer = Refuse()
            await self._emit(ask.session, AskSettled(ask.ask_id, action_of(answer), "policy"))
            return answer
        future: asyncio.Future[tuple[Answer, str]] = asyncio.get_running_loop().create_future()
        self._open[ask.ask_id] = (ask, future)  # before it is told: the answer may come at once
        try:
            await self._emit(ask.session, AskRaised(ask))
            answer, by = await future
        except asyncio.CancelledError:
            await self._emit(ask.session, AskSettled(ask.ask_id, "dismissed", "policy"))
            raise
        finally:
            self._open.pop(ask.ask_id, None)
        await self._emit(ask.session, AskSettled(ask.ask_id, action_of(answer), by))
        return answer

    def answer(self, ask_id: str, answer: Answer, by: str = "person") -> bool:
        """Answer an ask. False: it is gone, or answered already."""
        found = self._open.get(ask_id)
        if found is None or found[1].done():
            return False
        found[1].set_result((answer, by))
        return True

    def dismiss(self, session: str | None = None) -> None:
        """Close the open asks of a session (None: all) without an answer."""
        for ask, future in list(self._open.values()):
            if (session is None or ask.session == session) and not future.done():
                future.set_result((Dismiss(), "policy"))

    def _by_policy(self, policy: HeadlessPolicy, ask: Ask) -> Answer | None:
        for i, given in enumerate(self._left):
            if given.get("kind") == ask.kind:
                del self._left[i]
                return _answer(ask, given)
        if isinstance(ask, (ReviewSampling, ReviewReply)) and ask.server in policy.allow_sampling:
            return Allow()
        if isinstance(ask, ReviewReply):
            return Allow()  # its request was allowed by policy; nobody is here to read the reply
        return None


def _answer(ask: Ask, given: FrozenDict) -> Answer:
    action = str(given.get("action", ""))
    if action in ("allow", "accept"):
        match ask:
            case ApproveTool():
                return Allow(tool_digest=ask.tool_digest)
            case FillForm():
                content = given.get("content")
                return Filled(freeze(content) if isinstance(content, dict) else EMPTY)
            case OpenUrl():
                return Allow()
            case ReviewSampling() | ReviewReply():
                edit, model = given.get("edit"), given.get("model")
                wanted = model if isinstance(model, str) else None
                return Edited(str(edit), model=wanted) if isinstance(edit, str) else Allow(model=wanted)
    if action == "cancel":
        return Dismiss()
    return Refuse()
