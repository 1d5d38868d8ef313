"""Routes at work: which model of a chain is asked for a request, and what happened to those before it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from desktop_host.core.errors import HostError, ModelFault
from desktop_host.core.messages import Image, ToolResult
from desktop_host.core.models import ModelEvent, ModelRequest, ModelSwitched, RetryWaiting
from desktop_host.core.ports import ChatModel, Clock
from desktop_host.core.routes import Considered, Facts, Health, Needs, Route, consider
from desktop_host.core.tokens import of_request
from desktop_host.providers.retry import is_visible

STAYS = frozenset({"content_filter", "bad_history", "thinking_binding"})
"""Faults of the conversation, not of the model: another model is not asked behind the person's back."""
WAITED_S = 3.0
"""A model that another can stand in for is tried once more, and only where it asks for no longer pause."""
REMEMBERED = 256
"""Conversations whose last model is known, so that a change can be told."""


@dataclass
class Past:
    """What happened with models before; shared by all routes of a profile."""

    health: Health = field(default_factory=Health)
    last: OrderedDict[tuple[str, str], str] = field(default_factory=OrderedDict)
    """The model that a route gave a conversation the last time."""

    def answers(self, route: str, conversation: str, model: str) -> None:
        """A model answers a conversation."""
        self.health.answered(model)
        self.last[(route, conversation)] = model
        self.last.move_to_end((route, conversation))
        while len(self.last) > REMEMBERED:
            self.last.popitem(last=False)


LookUp = Callable[[Route, ModelRequest | None, Needs], Awaitable[dict[str, Facts]]]
"""What is known now of the models of a route."""


def needs_of(request: ModelRequest) -> Needs:
    """What a request asks of a model."""
    blocks = [b for m in request.messages for b in m.blocks]
    blocks += [b for r in blocks if isinstance(r, ToolResult) for b in r.content]
    return Needs(
        of_request(request.messages, request.system, request.tools),
        any(isinstance(b, Image) for b in blocks),
        bool(request.tools),
        request.price_limit,
    )


class Routed:
    """A `ChatModel` over a route. Falls back before anything was shown, never after."""

    def __init__(
        self,
        route: Route,
        open_model: Callable[[str], Awaitable[ChatModel]],
        look: LookUp,
        past: Past,
        clock: Clock,
    ) -> None:
        """Take a route.

        Args:
            route: the chain.
            open_model: opens the model of a REF.
            look: what is known of the models of a chain for a request.
            past: failures and last models, kept between requests.
            clock: what failures are dated by.
        """
        self._route = route
        self._open = open_model
        self._look = look
        self._past = past
        self._clock = clock

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer one request; `ModelSwitched` tells when another model than the last time answers.

        Raises:
            ModelFault: what the last model said, or `model_missing` where none may answer.
        """
        needs = needs_of(request)
        order = consider(self._route, needs, await self._look(self._route, request, needs))
        asked = [one for one in order if one.usable]
        if not asked:
            raise self._nobody(order)
        before = self._past.last.get((self._route.name, request.conversation)) or self._route.chain[0].model
        why = _why(order, before)
        for place, one in enumerate(asked):
            if one.model != before:
                yield ModelSwitched(before, one.model, why)
            visible = False
            try:
                async with aclosing((await self._open(one.model)).stream(request)) as events:
                    async for event in events:
                        visible = visible or is_visible(event)
                        if isinstance(event, RetryWaiting) and place + 1 < len(asked) and _too_long(event):
                            raise ModelFault(event.code, event.message, retryable=True, model=one.model)
                        yield event
                self._past.answers(self._route.name, request.conversation, one.model)
                return
            except HostError as fault:
                if isinstance(fault, ModelFault) and (visible or fault.visible or fault.code in STAYS):
                    raise
                self._past.health.failed(one.model, fault.code, self._clock.monotonic())
                if place + 1 == len(asked):
                    raise
                before, why = one.model, fault.code

    def _nobody(self, order: tuple[Considered, ...]) -> ModelFault:
        reasons = "; ".join(f"{one.model}: {', '.join(one.reasons)}" for one in order)
        too_long = all("too_long" in one.reasons for one in order)
        return ModelFault(
            "context_overflow" if too_long else "model_missing",
            f"no model of the route {self._route.name} may answer ({reasons})",
            route=self._route.name, model=self._route.name, detail=reasons,
        )  # fmt: skip


def _too_long(waiting: RetryWaiting) -> bool:
    return waiting.attempt > 1 or waiting.delay_s > WAITED_S


def _why(order: tuple[Considered, ...], before: str) -> str:
    """Why the model of the last time does not answer now: the code for the notice."""
    for one in order:
        if one.model == before and one.reasons != ("next",):
            return one.reasons[0].partition(":")[2] or one.reasons[0]
    return order[0].reasons[0]


def usable_window(order: tuple[Considered, ...]) -> int | None:
    """The context window to plan by: the largest of a chain's usable models."""
    windows = [one.facts.window for one in order if one.facts.ready and one.facts.window]
    return max(windows, default=None)
