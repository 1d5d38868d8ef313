"""Requests of the wire sent again over a real connection, in both eras."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop_host.core.errors import HostError, PeerFault, UserFault
from desktop_host.core.servers import WireFrame
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from tests.fakes.servers.stage import raw, script, stage, text

pytestmark = pytest.mark.live


def sent(frames: tuple[WireFrame, ...], method: str) -> list[FrozenDict]:
    return [f.message for f in frames if f.direction == "out" and f.message.get("method") == method]


async def test_a_list_is_asked_for_again_and_its_result_comes_as_it_came(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        before = len(sent(s.servers.trace("raw"), "tools/list"))
        got = await s.servers.resend("raw", "tools/list", EMPTY)
        assert {t["name"] for t in got["tools"]} >= {"echo"}
        assert len(sent(s.servers.trace("raw"), "tools/list")) == before + 1


async def test_a_call_is_sent_again_with_other_arguments(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        assert text(await s.call("raw", "echo", m="one")) == "one"
        params = freeze({"name": "echo", "arguments": {"m": "two"}})
        got = await s.servers.resend("raw", "tools/call", params)
        assert got["content"][0]["text"] == "two"
        assert [m["params"]["arguments"]["m"] for m in sent(s.servers.trace("raw"), "tools/call")] == ["one", "two"]


async def test_a_tool_that_is_switched_off_stays_off(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        await s.servers.set_tool_enabled("raw", "echo", False)
        await s.servers.resend("raw", "tools/call", freeze({"name": "echo", "arguments": {"m": "x"}}))
        assert sent(s.servers.trace("raw"), "tools/call") == []


@pytest.mark.parametrize("method", ["initialize", "subscriptions/listen"])
async def test_what_holds_the_connection_is_not_sent_by_hand(tmp_path: Path, method: str) -> None:
    async with stage(tmp_path, raw()) as s:
        with pytest.raises(UserFault) as caught:
            await s.servers.resend("raw", method, EMPTY)
        assert caught.value.params["reason"] == "cannot_resend"


async def test_a_refusal_of_the_server_is_told_and_the_connection_lives(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        with pytest.raises(PeerFault) as caught:
            await s.servers.resend("raw", "no/such", freeze({"a": 1}))
        assert "no/such" in caught.value.message
        assert text(await s.call("raw", "echo", m="still")) == "still"


async def test_a_modern_server_answers_again_too(tmp_path: Path) -> None:
    async with stage(tmp_path, script("modern", "modern.py")) as s:
        got = await s.servers.resend("modern", "tools/list", EMPTY)
        assert got["tools"]
        with pytest.raises(HostError):
            await s.servers.resend("modern", "no/such", EMPTY)
