"""What a collector is told of requests: the GenAI conventions' words for every wire, for retries and for failures."""

from __future__ import annotations

from contextlib import aclosing, nullcontext
from typing import Any

import pytest

from desktop_host.core.errors import ModelFault
from tests.contract.chat_model_contract import asked, collect
from tests.fakes.manual_clock import ManualClock
from tests.fakes.model_server import ModelServer, answer
from tests.fakes.remote import models, ref_of
from tests.fakes.wires import WIRES, Say, reply


class Kept:
    """A span that keeps what it is told."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.values: dict[str, Any] = {}
        self.events: list[str] = []
        self.failed = ""
        self.ended = 0

    def put(self, **values: Any) -> None:
        self.values |= {name.replace("__", "."): v for name, v in values.items() if v is not None}

    def content(self, **values: Any) -> None:
        """Content is not of interest here."""

    def event(self, name: str, **_values: Any) -> None:
        self.events.append(name)

    def fail(self, code: str, message: str = "") -> None:
        self.failed = code

    def end(self) -> None:
        self.ended += 1


class Keeping:
    """A `Tracing` that keeps its spans."""

    def __init__(self) -> None:
        self.spans: list[Kept] = []

    def begin(self, name: str, kind: str = "internal", **values: Any) -> Kept:
        span = Kept(name, kind)
        span.put(**values)
        self.spans.append(span)
        return span

    def inside(self, span: Any) -> Any:
        return nullcontext()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_request_is_told_with_provider_model_tokens_and_end(wire):
    kept = Keeping()
    async with ModelServer() as server, models(tracing=kept) as catalog:
        server.script(reply(wire, Say("fine")))
        await collect(await catalog.open(ref_of(wire, server)), asked("hi"))
        port = server.port
    (span,) = kept.spans
    values = span.values
    assert (span.kind, span.failed, span.ended) == ("client", "", 1) and span.name.startswith("chat ")
    assert values["gen_ai.provider.name"] == ("anthropic" if wire.startswith("anthropic") else "openai")
    assert (values["server.address"], values["server.port"]) == ("127.0.0.1", port)
    assert values["gen_ai.response.finish_reasons"] == ["stop"] and values["gen_ai.usage.output_tokens"] > 0
    assert values["gen_ai.response.time_to_first_chunk"] >= 0 and values["desktop_host.cost_usd"] == 0.0


async def test_retries_are_events_of_one_span_and_a_failure_has_its_code():
    kept, clock = Keeping(), ManualClock()
    async with ModelServer() as server, models(tracing=kept, clock=clock) as catalog:
        server.script(answer({"error": {"message": "no"}}, 401))
        with pytest.raises(ModelFault):
            await collect(await catalog.open(ref_of("compat", server)), asked("hi"))
    assert (kept.spans[0].failed, kept.spans[0].ended) == ("auth", 1)


async def test_a_request_that_is_left_is_told_as_cancelled():
    kept = Keeping()
    async with ModelServer() as server, models(tracing=kept) as catalog:
        server.script(reply("compat", Say("one two three")))
        model = await catalog.open(ref_of("compat", server))
        async with aclosing(model.stream(asked("hi"))) as events:  # type: ignore[type-var]
            async for _event in events:
                break
    assert (kept.spans[0].failed, kept.spans[0].ended) == ("cancelled", 1)
