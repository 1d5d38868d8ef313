"""The supervisor with a server of the SDK, in both eras, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_host.core.exchange import FormRequest, Progress, SamplingRequest
from desktop_host.core.messages import Outcome
from desktop_host.core.servers import Http, Protocol, ServerConfig, ServerState, Timeouts
from desktop_host.core.values import FrozenDict, freeze
from tests.fakes.servers.stage import ALLOW, HERE, OpenReviewer, script, stage, text, until
from tests.live.http_kit import free_port, listening

pytestmark = pytest.mark.live
LIMITS = Timeouts(connect_s=30, call_s=20, call_max_s=60)


@contextlib.asynccontextmanager
async def served(port: int = 0) -> AsyncIterator[tuple[str, int]]:
    """The server over HTTP, on a port that is free now."""
    port = port or free_port()
    async with listening(port, sys.executable, str(HERE / "modern.py"), "--http", str(port)) as base:
        yield f"{base}/mcp", port


@contextlib.asynccontextmanager
async def config(transport: str, protocol: Protocol) -> AsyncIterator[ServerConfig]:
    if transport == "stdio":
        yield script("modern", "modern.py", timeouts=LIMITS, protocol=protocol)
        return
    async with served() as (url, _):
        yield ServerConfig("modern", Http(url), timeouts=LIMITS, protocol=protocol)


ERAS = [(Protocol.AUTO, "2026-07-28"), (Protocol.LEGACY, "2025-11-25"), (Protocol.MODERN, "2026-07-28")]


@pytest.mark.parametrize(("protocol", "era"), ERAS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_both_eras_ask_show_progress_read_and_prompt(
    tmp_path: Path, transport: str, protocol: Protocol, era: str
) -> None:
    async with config(transport, protocol) as made, stage(tmp_path, made) as s:
        status = s.servers.status("modern")
        assert (status.era, status.instructions, status.server["name"]) == (era, "be modern", "modern")
        assert text(await s.call("modern", "delete", what="x", call_id="c9")) == "deleted x"
        origin, asked = s.reviewer.asked[-1]
        assert isinstance(asked, FormRequest)
        assert (origin.session, origin.call_id) == ("s1", "c9")
        assert text(await s.call("modern", "summarise", what="y")) == "[fake-model] a summary"
        assert isinstance(s.reviewer.asked[-1][1], SamplingRequest)
        told: list[Progress] = []
        spec = next(t for t in s.servers.session_tools("s1") if t.name == "steps")
        outcome = await s.servers.call("s1", "c", spec, freeze({"n": 2}), ALLOW, told.append)
        assert (text(outcome), [p.message for p in told]) == ("done", ["step 1", "step 2"])
        assert (await s.servers.read_resource("modern", "modern://a")).content[0].text == "aaa"  # type: ignore[union-attr]
        [message] = await s.servers.get_prompt("modern", "hello", FrozenDict({"who": "you"}))
        assert message.text == "hello you"
        assert len(text(await s.call("modern", "big", n=2_000_000))) == 2_000_000


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_two_calls_that_ask_at_once_are_told_apart_in_the_modern_era(tmp_path: Path, transport: str) -> None:
    async with config(transport, Protocol.AUTO) as made, stage(tmp_path, made) as s:
        await asyncio.gather(
            s.call("modern", "delete", what="a", session="s1", call_id="c1"),
            s.call("modern", "delete", what="b", session="s2", call_id="c2"),
        )
        asked = {(o.session, o.call_id, r.message) for o, r in s.reviewer.asked}
        assert asked == {("s1", "c1", "Really a?"), ("s2", "c2", "Really b?")}


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_tool_added_later_arrives_over_the_held_stream(tmp_path: Path, transport: str) -> None:
    """Hazard E58."""
    async with config(transport, Protocol.AUTO) as made, stage(tmp_path, made) as s:
        await s.call("modern", "grow")
        await until(lambda: any(t.name == "grown" for t in s.servers.tools("modern")), 5)


async def test_a_watched_resource_tells_its_updates_in_the_modern_era(tmp_path: Path) -> None:
    async with config("stdio", Protocol.AUTO) as made, stage(tmp_path, made) as s:
        updates = s.servers.watch("modern", "modern://a")
        first = asyncio.ensure_future(anext(updates))
        await until(lambda: any("resourceSubscriptions" in str(f.message) for f in s.servers.trace("modern")))
        await until(lambda: any("acknowledged" in str(f.message) for f in s.servers.trace("modern")))
        await s.call("modern", "touch")
        assert await asyncio.wait_for(first, 5) == "modern://a"
        await updates.aclose()  # type: ignore[attr-defined]


async def test_a_modern_http_server_that_restarts_is_used_again(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with served() as (url, port):
            s = await stack.enter_async_context(
                stage(tmp_path, ServerConfig("modern", Http(url), timeouts=LIMITS), scale=0.3)
            )
            assert text(await s.call("modern", "echo", m="1")) == "1"
            slow = asyncio.create_task(s.call("modern", "sleep", seconds=30, call_id="c2"))
            await until(lambda: sum(f.message.get("method") == "tools/call" for f in s.servers.trace("modern")) == 2)
        outcome = await asyncio.wait_for(slow, 10)
        assert outcome.outcome is Outcome.ERROR
        async with served(port):
            assert text(await s.call("modern", "echo", m="2")) == "2"


async def test_a_refused_question_ends_the_call_with_an_error_in_the_modern_era(tmp_path: Path) -> None:
    reviewer = OpenReviewer(refuse_sampling=True)
    async with config("stdio", Protocol.AUTO) as made, stage(tmp_path, made, reviewer=reviewer) as s:
        outcome = await s.call("modern", "summarise", what="y")
        assert (outcome.outcome, s.servers.status("modern").state) == (Outcome.ERROR, ServerState.READY)
        assert text(await s.call("modern", "echo", m="on")) == "on"


async def test_a_cancelled_call_reaches_a_modern_server(tmp_path: Path) -> None:
    async with config("stdio", Protocol.AUTO) as made, stage(tmp_path, replace(made)) as s:
        call = asyncio.create_task(s.call("modern", "sleep", seconds=30))
        await until(lambda: any(f.message.get("method") == "tools/call" for f in s.servers.trace("modern")))
        call.cancel()
        await asyncio.wait({call})
        await until(
            lambda: any(f.message.get("method") == "notifications/cancelled" for f in s.servers.trace("modern"))
        )
        assert text(await s.call("modern", "echo", m="on")) == "on"
