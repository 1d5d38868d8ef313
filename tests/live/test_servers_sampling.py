"""Sampling over the wire in both eras, field by field; and pages that a server wants visited first."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from desktop_host.core.errors import HostError
from desktop_host.core.exchange import ElicitReply, Origin, SamplingReply, SamplingRequest
from desktop_host.core.messages import Outcome, Text, ToolCall, ToolResult
from desktop_host.core.servers import SamplingPolicy, ServerConfig
from desktop_host.core.tools import wire_name
from desktop_host.core.values import freeze
from tests.fakes.servers.stage import OpenReviewer, script, stage, text, until

pytestmark = pytest.mark.live
ERAS = ("legacy", "modern")


@dataclass
class Model(OpenReviewer):
    """Answers with these blocks, or fails with this code."""

    blocks: tuple[Any, ...] = ()
    fail: str = ""
    stop: str = "toolUse"
    gone: list[str] = field(default_factory=list)

    async def sample(self, origin: Origin, request: SamplingRequest) -> SamplingReply:
        self.asked.append((origin, request))
        await self._wait()
        if self.fail:
            raise HostError(self.fail, f"no: {self.fail}")
        return SamplingReply(self.blocks, "m-1", self.stop)


def asking(era: str, **more: Any) -> ServerConfig:
    return script("asking", "asking.py", era, **more)


@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_call_of_the_model_goes_back_under_the_servers_own_name(tmp_path: Path, era: str) -> None:
    called = ToolCall("w9", wire_name("asking", "get.weather/now"), freeze({"city": "Oslo"}))
    reviewer = Model(blocks=(Text("Let me look."), called))
    async with stage(tmp_path, asking(era), reviewer=reviewer) as s:
        reply = json.loads(text(await s.call("asking", "with-tools")))
        assert s.servers.status("asking").era == ("2026-07-28" if era == "modern" else "2025-11-25")
    assert reply["content"] == [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "w9", "name": "get.weather/now", "input": {"city": "Oslo"}},
    ]
    assert (reply["stopReason"], reply["model"], reply["role"]) == ("toolUse", "m-1", "assistant")
    request = reviewer.asked[0][1]
    assert ([t.name for t in request.tools], request.tool_choice) == (["get_weather", "get.weather/now"], "required")
    assert reviewer.asked[0][0].calls[0].name == "with-tools"


@pytest.mark.parametrize("era", ERAS)
async def test_calls_and_results_of_an_earlier_round_reach_the_model_as_such(tmp_path: Path, era: str) -> None:
    reviewer = Model(blocks=(Text("It rains."),), stop="endTurn")
    async with stage(tmp_path, asking(era), reviewer=reviewer) as s:
        reply = json.loads(text(await s.call("asking", "with-result")))
    assert reply["content"] == {"type": "text", "text": "It rains."}
    _, use, result = reviewer.asked[0][1].messages
    assert use.blocks == (ToolCall("w1", wire_name("asking", "get_weather"), freeze({"city": "Oslo"})),)
    assert isinstance(result.blocks[0], ToolResult) and result.blocks[0].call_id == "w1"


@pytest.mark.parametrize("era", ERAS)
async def test_every_field_is_read_and_what_must_not_pass_does_not(tmp_path: Path, era: str) -> None:
    reviewer = Model(blocks=(Text("ok"),))
    async with stage(tmp_path, asking(era), reviewer=reviewer) as s:
        await s.call("asking", "everything")
    r = reviewer.asked[0][1]
    assert (r.system, r.temperature, r.stop, r.max_tokens) == ("Be brief.", 0.25, ("END", "\n\n"), 100)
    assert (r.hints, r.cost_priority, r.speed_priority, r.intelligence_priority) == (
        ("nothing", "haiku"),
        0.1,
        0.9,
        0.3,
    )
    assert r.context == "allServers", "shown to the person, granted by nobody"
    assert "vendor" not in repr(r), "metadata is not forwarded"


@pytest.mark.parametrize("era", ERAS)
async def test_of_two_calls_at_once_the_one_that_asks_is_named_or_both_are_and_none_is_guessed(
    tmp_path: Path, era: str
) -> None:
    """Nothing on a legacy connection tells which call asks; two chats at once are refused there."""
    gate = asyncio.Event()
    reviewer = Model(blocks=(Text("ok"),), gate=gate)
    async with stage(tmp_path, asking(era), reviewer=reviewer) as s:
        calls = [
            asyncio.create_task(s.call("asking", tool, call_id=call_id))
            for tool, call_id in (("everything", "c1"), ("with-result", "c2"))
        ]
        await until(lambda: len(reviewer.asked) == 2)
        gate.set()
        await asyncio.gather(*calls)
        told = sorted((o.call_id or "", tuple(c.name for c in o.calls)) for o, _r in reviewer.asked)
        if era == "modern":
            assert told == [("c1", ("everything",)), ("c2", ("with-result",))]
        else:
            assert ("", ("everything", "with-result")) in told, "the second question has two calls to belong to"
        assert all(o.session == "s1" for o, _r in reviewer.asked)


@pytest.mark.parametrize("tool", ["unbalanced", "twice-named", "audio"])
async def test_a_request_that_breaks_the_protocol_is_told_what_is_wrong_and_the_call_goes_on(
    tmp_path: Path, tool: str
) -> None:
    reviewer = Model(fail="unsupported_param" if tool == "audio" else "")
    async with stage(tmp_path, asking("legacy"), reviewer=reviewer) as s:
        outcome = await s.call("asking", tool)
    error = json.loads(text(outcome))
    assert (outcome.outcome, error["code"]) == (Outcome.OK, -32602)
    assert {"unbalanced": "w1", "twice-named": "get_weather", "audio": "unsupported_param"}[tool] in error["message"]
    assert bool(reviewer.asked) is (tool == "audio")


async def test_a_call_of_a_tool_that_was_not_offered_never_reaches_the_server(tmp_path: Path) -> None:
    reviewer = Model(blocks=(ToolCall("x", "files__delete_all"),))
    async with stage(tmp_path, asking("legacy"), reviewer=reviewer) as s:
        outcome = await s.call("asking", "with-tools")
        frames = repr([f.message for f in s.servers.trace("asking") if f.direction == "out"])
    assert json.loads(text(outcome))["code"] == -32603
    assert "delete_all" not in frames


@pytest.mark.parametrize("fault", ["decision_needed", "budget_spent", "price_unknown", "quota_spent"])
async def test_a_refusal_is_error_minus_one_and_the_call_goes_on(tmp_path: Path, fault: str) -> None:
    async with stage(tmp_path, asking("legacy"), reviewer=Model(fail=fault)) as s:
        outcome = await s.call("asking", "with-tools")
    error = json.loads(text(outcome))
    assert (outcome.outcome, error["code"]) == (Outcome.OK, -1)


async def test_a_refusal_in_the_modern_era_ends_that_call_and_says_so(tmp_path: Path) -> None:
    """The protocol has no word for a refused request there: a call without its answer cannot go on."""
    async with stage(tmp_path, asking("modern"), reviewer=OpenReviewer(refuse_sampling=True)) as s:
        outcome = await s.call("asking", "with-tools")
        assert outcome.outcome is Outcome.ERROR and "asked for something that it did not get" in text(outcome)
        assert json.loads(text(await s.call("asking", "capabilities"))) is not None, "the server is as it was"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", ["ask", "off"])
async def test_what_is_declared_is_what_is_done(tmp_path: Path, era: str, mode: str) -> None:
    """`sampling.tools` is declared, `sampling.context` is not; a server that may not ask is not told that it may."""
    async with stage(tmp_path, asking(era, sampling=SamplingPolicy(mode=mode))) as s:
        declared = json.loads(text(await s.call("asking", "capabilities")))
    assert declared.get("sampling") == ({"tools": {}} if mode == "ask" else None)
    assert declared["elicitation"] == {"form": {}, "url": {}}
    assert ("roots" in declared) is True


async def test_a_page_that_is_still_wanted_is_asked_for_again_and_goes_on_when_the_server_says_so(
    tmp_path: Path,
) -> None:
    class Slow(OpenReviewer):
        closed = 0

        async def elicit(self, origin: Origin, request: Any) -> ElicitReply:
            self.asked.append((origin, request))
            if len(self.asked) > 1:  # The person is in the browser; nobody answers here.
                try:
                    await asyncio.Event().wait()
                finally:
                    self.closed += 1
            return ElicitReply("accept")

    reviewer = Slow()
    async with stage(tmp_path, asking("legacy"), reviewer=reviewer) as s:
        paying = asyncio.create_task(s.call("asking", "pay"))
        await until(lambda: len(reviewer.asked) == 2)
        assert [r.url for _o, r in reviewer.asked] == ["https://pay.example/42"] * 2
        assert reviewer.asked[0][0].calls == reviewer.asked[1][0].calls
        await s.call("asking", "done", call_id="c2")
        assert json.loads(text(await asyncio.wait_for(paying, 10))) == "paid"
        assert reviewer.closed == 1, "the question closes itself"


async def test_a_page_that_the_person_will_not_open_again_ends_the_call(tmp_path: Path) -> None:
    class Tired(OpenReviewer):
        async def elicit(self, origin: Origin, request: Any) -> ElicitReply:
            self.asked.append((origin, request))
            return ElicitReply("accept" if len(self.asked) == 1 else "stop")

    async with stage(tmp_path, asking("legacy"), reviewer=Tired()) as s:
        outcome = await s.call("asking", "pay")
        assert outcome.outcome is Outcome.ERROR and "pay first" in text(outcome)


async def test_a_server_that_never_has_enough_pages_is_left(tmp_path: Path) -> None:
    reviewer = OpenReviewer()
    async with stage(tmp_path, script("asking", "asking.py", "legacy", "insist"), reviewer=reviewer) as s:
        outcome = await s.call("asking", "pay")
        assert outcome.outcome is Outcome.ERROR and len(reviewer.asked) == 10
