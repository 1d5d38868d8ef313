"""Tool calls that become tasks: the extension of 2026-07-28 over both wires; a lost server in either era."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from desktop_host.core.exchange import ElicitReply, FormRequest, Progress, SamplingRequest, ToolOutcome
from desktop_host.core.messages import Outcome
from desktop_host.core.servers import Http, Protocol, ServerConfig, ServerState, Timeouts
from desktop_host.core.values import freeze
from tests.fakes.servers.stage import ALLOW, HERE, OpenReviewer, Stage, script, stage, text, until
from tests.live.http_kit import free_port, listening

pytestmark = pytest.mark.live
LIMITS = Timeouts(connect_s=30, call_s=20, call_max_s=60)


@contextlib.asynccontextmanager
async def served(store: Path, port: int = 0) -> AsyncIterator[tuple[str, int]]:
    port = port or free_port()
    words = (sys.executable, str(HERE / "longer.py"), "--http", str(port), "--store", str(store))
    async with listening(port, *words) as base:
        yield f"{base}/mcp", port


@contextlib.asynccontextmanager
async def staged(
    folder: Path, transport: str, reviewer: OpenReviewer | None = None, limits: Timeouts = LIMITS, **changes: Any
) -> AsyncIterator[Stage]:
    store = folder / "tasks.json"
    async with contextlib.AsyncExitStack() as stack:
        if transport == "stdio":
            config = script("longer", "longer.py", "--store", str(store), timeouts=limits, **changes)
        else:
            url, _ = await stack.enter_async_context(served(store))
            config = ServerConfig("longer", Http(url), timeouts=limits, **changes)
        yield await stack.enter_async_context(stage(folder, config, reviewer=reviewer))


async def log(s: Stage) -> list[list[Any]]:
    """What was asked of the server: the verb, and whether the header named the task (None over stdio)."""
    told: list[list[Any]] = json.loads(text(await s.call("longer", "log")))
    return told


def host_error(outcome: ToolOutcome) -> object:
    assert isinstance(outcome.raw, dict) or outcome.raw is not None
    return outcome.raw.get("host_error")  # type: ignore[union-attr]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_call_that_becomes_a_task_is_followed_to_its_result(tmp_path: Path, transport: str) -> None:
    async with staged(tmp_path, transport) as s:
        assert s.servers.status("longer").era == "2026-07-28"
        told: list[Progress] = []
        spec = next(t for t in s.servers.session_tools("s1") if t.name == "work")
        arguments = freeze({"seconds": 0.7, "what": "tea"})
        outcome = await s.servers.call("s1", "c", spec, arguments, ALLOW, told.append)
        assert (outcome.outcome, text(outcome)) == (Outcome.OK, "done: tea")
        assert outcome.structured == {"said": "done: tea"}
        assert [p.message for p in told][:2] == ["begun", "tea is on its way"]
        assert text(await s.call("longer", "at_once")) == "now"
        seen = await log(s)
        assert [verb for verb, _ in seen].count("call") == 1
        assert {named for verb, named in seen if verb == "get"} == {None if transport == "stdio" else True}


async def test_in_the_older_era_and_without_the_extension_the_same_call_is_plain(tmp_path: Path) -> None:
    async with staged(tmp_path, "stdio", protocol=Protocol.LEGACY) as s:
        assert text(await s.call("longer", "work", what="tea")) == "without a task"


async def test_how_a_task_fails_is_told_apart(tmp_path: Path) -> None:
    async with staged(tmp_path, "stdio") as s:
        broken = await s.call("longer", "breaks")
        assert broken.outcome is Outcome.ERROR
        assert "the quota is spent (code -32603)" in text(broken)
        said_no = await s.call("longer", "says_no")
        assert (said_no.outcome, text(said_no)) == (Outcome.ERROR, "done: says_no")
        given_up = await s.call("longer", "gives_up")
        assert (given_up.outcome, host_error(given_up)) == (Outcome.ERROR, "tool_failed")
        assert "the machine is switched off" in text(given_up)
        odd = await s.call("longer", "nonsense")
        assert (odd.outcome, host_error(odd)) == (Outcome.ERROR, "protocol_error")
        assert (await log(s))[-1][0] == "cancel"


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_what_a_task_asks_is_asked_once_and_answered_while_its_time_stands_still(
    tmp_path: Path, transport: str
) -> None:
    reviewer = OpenReviewer(ElicitReply("accept", freeze({"name": "Ada"})), folders={"s1": (str(tmp_path),)})
    reviewer.gate = asyncio.Event()
    limits = Timeouts(connect_s=30, call_s=1.5, call_max_s=60)
    async with staged(tmp_path, transport, reviewer, limits) as s:
        running = asyncio.create_task(s.call("longer", "both", call_id="c7"))
        await until(lambda: len(reviewer.asked) == 2)
        began = [verb for verb, _ in await log(s)].count("get")
        loop = asyncio.get_running_loop()
        since = loop.time()
        while loop.time() - since < 2.5:  # Longer than a call may be silent, and the task is read all the while.
            polls = [verb for verb, _ in await log(s)].count("get")
            await asyncio.sleep(0.1)
        assert polls >= began + 3
        assert not running.done()
        reviewer.gate.set()
        answers = json.loads(text(await asyncio.wait_for(running, 10)))
        assert answers["name"] == {"action": "accept", "content": {"name": "Ada"}}
        assert answers["summary"]["content"] == {"type": "text", "text": "a summary"}
        assert {(type(q), o.session, o.call_id) for o, q in reviewer.asked} == {
            (FormRequest, "s1", "c7"), (SamplingRequest, "s1", "c7")
        }  # fmt: skip
        assert len(reviewer.asked) == 2
        roots = json.loads(text(await s.call("longer", "roots")))
        assert roots["where"]["roots"][0]["uri"] == tmp_path.as_uri()


async def test_a_refused_question_ends_the_call_and_cancels_the_task(tmp_path: Path) -> None:
    async with staged(tmp_path, "stdio", OpenReviewer(refuse_sampling=True)) as s:
        outcome = await s.call("longer", "sum_up")
        assert (outcome.outcome, host_error(outcome)) == (Outcome.ERROR, "permission")
        assert (await log(s))[-1][0] == "cancel"


async def test_a_question_that_the_server_takes_back_is_closed(tmp_path: Path) -> None:
    """Hazard M128."""
    closed = asyncio.Event()

    class Waiting(OpenReviewer):
        async def _wait(self) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                closed.set()

    async with staged(tmp_path, "stdio", Waiting()) as s:
        outcome = await s.call("longer", "changes_its_mind", seconds=1)
        assert text(outcome) == "never mind"
        assert closed.is_set()


async def test_a_task_that_asks_on_and_on_is_stopped(tmp_path: Path) -> None:
    async with staged(tmp_path, "stdio") as s:
        outcome = await s.call("longer", "asks_on")
        assert host_error(outcome) == "protocol_error"
        assert "kept asking" in text(outcome)
        assert len(s.reviewer.asked) == 20
        assert (await log(s))[-1][0] == "cancel"


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_stop_cancels_the_task_itself(tmp_path: Path, transport: str) -> None:
    """Hazard E61."""
    async with staged(tmp_path, transport) as s:
        running = asyncio.create_task(s.call("longer", "work", seconds=60))
        await until(lambda: (tmp_path / "tasks.json").exists() and '"get"' in (tmp_path / "tasks.json").read_text())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        [task] = json.loads((tmp_path / "tasks.json").read_text())["tasks"].values()
        assert task["cancelled"]


async def test_a_task_that_takes_too_long_is_cancelled_and_told(tmp_path: Path) -> None:
    """The limit of calls is shorter than the start of the server takes, and does not touch it."""
    limits = Timeouts(connect_s=30, call_s=20, call_max_s=0.6)
    async with staged(tmp_path, "stdio", limits=limits) as s:
        outcome = await s.call("longer", "work", seconds=60)
        assert outcome.outcome is Outcome.TIMED_OUT
        assert (await log(s))[-1][0] == "cancel"


async def test_the_result_comes_although_the_http_server_was_away_meanwhile(tmp_path: Path) -> None:
    store = tmp_path / "tasks.json"
    async with contextlib.AsyncExitStack() as stack:
        async with served(store) as (url, port):
            s = await stack.enter_async_context(stage(tmp_path, ServerConfig("longer", Http(url), timeouts=LIMITS)))
            running = asyncio.create_task(s.call("longer", "work", seconds=3, what="tea"))
            await until(lambda: store.exists() and '"get"' in store.read_text())
        assert not running.done()
        async with served(store, port):
            outcome = await asyncio.wait_for(running, 20)
            assert (outcome.outcome, text(outcome)) == (Outcome.OK, "done: tea")
            assert [verb for verb, _ in await log(s)].count("call") == 1


async def test_the_result_of_a_kept_task_comes_after_its_server_crashed_and_nothing_runs_twice(tmp_path: Path) -> None:
    """Hazard D40."""
    store = tmp_path / "tasks.json"
    async with staged(tmp_path, "stdio") as s:
        running = asyncio.create_task(s.call("longer", "work", seconds=2, what="tea"))
        await until(lambda: store.exists() and '"get"' in store.read_text())
        pid = s.servers.status("longer").pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        outcome = await asyncio.wait_for(running, 20)
        assert (outcome.outcome, text(outcome)) == (Outcome.OK, "done: tea")
        assert [verb for verb, _ in await log(s)].count("call") == 1


async def test_a_task_that_died_with_its_server_is_told_and_never_started_again(tmp_path: Path) -> None:
    limits = Timeouts(connect_s=30, call_s=20, call_max_s=60)
    config = script("longer", "longer.py", timeouts=limits)  # Tasks are kept in memory alone.
    async with stage(tmp_path, config) as s:
        running = asyncio.create_task(s.call("longer", "work", seconds=30))
        await until(lambda: sum(f.message.get("method") == "tasks/get" for f in s.servers.trace("longer")) > 0)
        pid = s.servers.status("longer").pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        outcome = await asyncio.wait_for(running, 20)
        assert outcome.outcome is Outcome.ERROR
        assert "Task not found" in text(outcome)
        await s.until_state("longer", ServerState.READY)
        assert json.loads(text(await s.call("longer", "log"))) == [["get", None]]


async def test_a_task_of_the_older_era_that_died_with_its_server_is_never_started_again(tmp_path: Path) -> None:
    note = tmp_path / "note"
    async with stage(tmp_path, script("tasked", "tasked.py", str(note), timeouts=LIMITS)) as s:
        running = asyncio.create_task(s.call("tasked", "pay"))
        await until(lambda: any(f.message.get("method") == "tasks/get" for f in s.servers.trace("tasked")))
        pid = s.servers.status("tasked").pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        outcome = await asyncio.wait_for(running, 20)
        assert outcome.outcome is Outcome.ERROR
        assert "Task not found" in text(outcome)
    assert note.read_text() == "paid\n"


async def test_a_tool_that_says_in_the_newer_era_that_it_needs_a_task_is_called_as_any(tmp_path: Path) -> None:
    async with stage(tmp_path, script("tasked", "tasked.py", "-", "modern", timeouts=LIMITS)) as s:
        assert s.servers.status("tasked").era == "2026-07-28"
        [tool] = s.servers.session_tools("s1")
        assert (tool.enabled, tool.problem) == (True, None)
        assert text(await s.call("tasked", "pay")) == "paid"
        [sent] = [f.message for f in s.servers.trace("tasked") if f.message.get("method") == "tools/call"]
        assert "task" not in sent["params"]
