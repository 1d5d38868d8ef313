"""Parts of a task in sessions of their own, from disk to the journal: side by side, joined in order, never alone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from desktop_host.app.compose import open_host
from desktop_host.core.asks import Allow
from desktop_host.core.entries import ToolEntry
from desktop_host.core.events import AskRaised, SubtaskChanged, ToolRequested, ToolSettled, TurnEnded
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.permissions import Effect, Life, Rule, Scope
from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.core.sessions import SessionOptions, TurnStatus
from desktop_host.engine.host import HeadlessPolicy, Host, HostSpec, UserInput
from desktop_host.skills.rollout import route

RAW = Path(__file__).parents[1] / "fakes" / "servers" / "raw.py"


class Stage:
    """A profile whose skills each have a scripted model of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def script(self, name: str, *replies: Any) -> str:
        path = self.home / f"{name}.json"
        path.write_text(json.dumps([r if isinstance(r, list) else [r] for r in replies]), "utf-8")
        return f"script:{path}"

    def skill(self, name: str, *replies: Any, version: str = "", body: str = "Do it.", **meta: str) -> None:
        folder = self.home / "profiles" / "default" / "skills" / name
        if version:
            folder = folder / version / name
        folder.mkdir(parents=True)
        meta["route"] = self.script(name + version, *replies)
        rows = "".join(f'  desktop-host-{key}: "{value}"\n' for key, value in meta.items())
        (folder / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: About {name}.\nmetadata:\n{rows}---\n{body}\n", "utf-8"
        )

    @asynccontextmanager
    async def host(self, *, person: bool = False):
        async with open_host(HostSpec(self.home, headless=None if person else HeadlessPolicy())) as host:
            await host.skills.rescan()
            yield host


@pytest.fixture
def stage(tmp_path) -> Stage:
    (tmp_path / "home").mkdir()
    return Stage(tmp_path / "home")


def text(words: str, ms: int = 0) -> list[dict[str, Any]]:
    return [*([{"delay_ms": ms}] if ms else []), {"text": words}]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": {"tool": tool, "arguments": arguments}}


def fork(*tasks: dict[str, Any]) -> dict[str, Any]:
    return call("host.run_subtasks", tasks=list(tasks))


async def say(host: Host, session: str, words: str = "go"):
    return await (await host.submit(session, UserInput(words))).done


async def events(host: Host, session: str, kind: type) -> list[Any]:
    return [s.event for s in await host.history.read(session) if isinstance(s.event, kind)]


async def result(host: Host, session: str) -> tuple[Outcome, str]:
    settled = (await events(host, session, ToolSettled))[-1]
    return settled.outcome, "".join(b.text for b in settled.content if isinstance(b, Text))


async def until(true, within: float = 20) -> None:
    end = time.monotonic() + within
    while not await true():
        assert time.monotonic() < end, "it did not come true in time"
        await asyncio.sleep(0.02)


def states(found: list[SubtaskChanged], number: int) -> list[str]:
    return [e.state for e in found if e.number == number]


async def test_parts_run_side_by_side_and_their_results_are_joined_in_the_order_of_the_call(stage):
    stage.skill("flights", text("Flight at nine.", ms=600))
    stage.skill("hotels", text("Room with a view."))
    ref = stage.script(
        "main",
        fork({"name": "Flights", "task": "find one", "skill": "flights"},
             {"name": "Hotels", "task": "find one", "skill": "hotels"}),
        [{"expect": {"last_result_contains": "Room with a view."}}, {"text": "All booked."}],
    )  # fmt: skip
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        done = await say(host, session)
        assert (done.status, done.text) == (TurnStatus.DONE, "All booked.")
        outcome, told = await result(host, session)
        assert outcome is Outcome.OK
        assert told == (
            "[Part 1 of 2, Flights: done by flights]\nFlight at nine.\n\n"
            "[Part 2 of 2, Hotels: done by hotels]\nRoom with a view."
        )
        changes = await events(host, session, SubtaskChanged)
        assert states(changes, 1) == states(changes, 2) == ["waiting", "running", "done"]
        order = [(e.number, e.state) for e in changes]
        assert order.index((2, "done")) < order.index((1, "done")), "the quick one did not wait for the slow one"
        entry = next(e for e in (await host.transcript(session)).entries if isinstance(e, ToolEntry))
        assert [(p.last.name, p.last.state) for p in entry.subtasks] == [("Flights", "done"), ("Hotels", "done")]
        assert [r.session for r in await host.history.rows()] == [session], "parts are not listed"
        part = await host.transcript(entry.subtasks[0].last.child)
        assert [getattr(e, "text", "") for e in part.entries][:1] == ["find one"]
        ids = [p.last.child for p in entry.subtasks]
        await host.delete(session)
        for gone in ids:
            with pytest.raises(Exception, match="no session"):
                await host.history.row(gone)


async def test_a_part_that_fails_is_named_and_costs_itself_alone(stage):
    stage.skill("good", text("Here."))
    stage.skill("bad", {"error": {"code": "server_failed"}})
    ref = stage.script("main", fork(
        {"name": "A", "task": "x", "skill": "bad"}, {"name": "B", "task": "x", "skill": "good"},
        {"name": "C", "task": "x", "skill": "nowhere"},
    ), text("done"))  # fmt: skip
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        assert (await say(host, session)).status is TurnStatus.DONE
        outcome, told = await result(host, session)
        first, second, third = told.split("\n\n")
        assert outcome is Outcome.OK
        assert first.startswith("[Part 1 of 3, A: failed by bad, server_failed: ")
        assert second == "[Part 2 of 3, B: done by good]\nHere."
        assert third.startswith("[Part 3 of 3, C: failed by nowhere, not_found: there is no skill 'nowhere'")


async def test_a_call_whose_parts_all_fail_is_an_error(stage):
    stage.skill("bad", {"error": {"code": "server_failed"}})
    ref = stage.script("main", fork({"task": "x", "skill": "bad"}), text("done"))
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        await say(host, session)
        assert (await result(host, session))[0] is Outcome.ERROR


@pytest.mark.parametrize("named", ["call", "skill"])
async def test_where_a_skill_fails_its_fallback_stands_in_and_the_result_says_so(stage, named):
    """Degradation: the one that the call names, else the one that the skill itself names."""
    stage.skill("fancy", {"error": {"code": "server_failed"}}, **({"fallback": "plain"} if named == "skill" else {}))
    stage.skill("plain", text("Plainly done."))
    task = {"name": "A", "task": "x", "skill": "fancy"} | ({"fallback": "plain"} if named == "call" else {})
    ref = stage.script("main", fork(task), text("ok"))
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        await say(host, session)
        outcome, told = await result(host, session)
        assert outcome is Outcome.OK and told.endswith("Plainly done.")
        assert told.startswith("[Part 1 of 1, A: done by plain, because fancy failed (server_failed: ")
        changes = await events(host, session, SubtaskChanged)
        assert [(e.state, e.skill) for e in changes] == [
            ("waiting", "fancy"), ("running", "fancy"), ("failed", "fancy"), ("running", "plain"), ("done", "plain"),
        ]  # fmt: skip
        assert changes[-1].instead_of == "fancy"


async def test_a_part_may_build_on_earlier_ones_and_is_skipped_where_one_gave_nothing(stage):
    """Sequential hand-over: the later part reads the earlier one's result."""
    stage.skill("find", text("Data is in a.csv."))
    stage.skill("bad", {"error": {"code": "server_failed"}})
    stage.skill("write", text("Report."))
    ref = stage.script("main", fork(
        {"name": "Find", "task": "find it", "skill": "find"}, {"name": "Bad", "task": "x", "skill": "bad"},
        {"name": "Write", "task": "write it", "skill": "write", "after": [1]},
        {"name": "Never", "task": "x", "skill": "write", "after": [2]},
    ), text("ok"))  # fmt: skip
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        await say(host, session)
        changes = await events(host, session, SubtaskChanged)
        assert states(changes, 4) == ["waiting", "skipped"]
        writing = next(e.child for e in changes if e.number == 3 and e.child)
        said = (await host.transcript(writing)).entries[0]
        assert said.text == "write it\n\n[Result of part 1, Find]\nData is in a.csv."  # type: ignore[union-attr]
        told = (await result(host, session))[1]
        assert "[Part 4 of 4, Never: skipped by write, not_run: part 2, Bad, gave no result]" in told


@pytest.mark.parametrize(
    ("tasks", "word"),
    [
        ([], "1 to 8"), ([{"task": "x"}] * 9, "1 to 8"), ([{"name": "x"}], "task 1 has no text"),
        ([{"task": "x", "after": [1]}], "earlier tasks only"), ([{"task": "x"}, {"task": "y", "after": [3]}], "task 2"),
    ],
)  # fmt: skip
async def test_a_call_that_cannot_be_run_says_why_and_runs_nothing(stage, tasks, word):
    stage.skill("any", text("x"))
    ref = stage.script("main", fork(*tasks), text("ok"))
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        await say(host, session)
        outcome, told = await result(host, session)
        assert outcome is Outcome.ERROR and word in told
        assert await events(host, session, SubtaskChanged) == []


async def server(host: Host) -> None:
    await host.servers.add(ServerConfig("raw", Stdio(sys.executable, (str(RAW),))))


async def test_a_part_passes_the_same_gate_its_question_stands_above_and_a_grant_holds_for_all_parts(stage):
    use = call("raw.echo", m="hello")
    stage.skill("one", use, text("1"))
    stage.skill("two", use, text("2"))
    ref = stage.script("main", fork(
        {"name": "First", "task": "x", "skill": "one"}, {"name": "Second", "task": "x", "skill": "two", "after": [1]},
    ), use, text("ok"))  # fmt: skip
    async with stage.host(person=True) as host:
        await server(host)
        session = await host.new_session(SessionOptions(model=ref))
        ticket = await host.submit(session, UserInput("go"))
        await until(lambda: _allow(host))
        done = await ticket.done
        assert done.text == "ok"
        (raised,) = await events(host, session, AskRaised)
        assert (raised.ask.session, raised.ask.part, raised.ask.tool) == (session, "First", "echo")
        parts = {e.child for e in await events(host, session, SubtaskChanged) if e.child}
        for part in parts:
            assert await events(host, part, AskRaised) == []
            assert [e.outcome for e in await events(host, part, ToolSettled)] == [Outcome.OK]


async def _allow(host: Host) -> bool:
    for ask in host.asks():
        return await host.answer(ask.ask_id, Allow(Life.SESSION, Scope.TOOL, getattr(ask, "tool_digest", None)))
    return False


async def test_without_a_person_a_part_is_refused_and_the_run_says_that_it_was_undecided(stage):
    stage.skill("one", call("raw.echo", m="x"), text("no"))
    ref = stage.script("main", fork({"name": "First", "task": "x", "skill": "one"}), text("ok"))
    async with stage.host() as host:
        await server(host)
        session = await host.new_session(SessionOptions(model=ref))
        done = await say(host, session)
        assert done.undecided, "exit code 3 on the command line"
        part = (await events(host, session, SubtaskChanged))[-1].child
        assert [e.outcome for e in await events(host, part, ToolSettled)] == [Outcome.DENIED]


async def test_what_is_denied_above_is_denied_in_every_part(stage):
    stage.skill("one", call("raw.echo", m="x"), text("no"))
    ref = stage.script("main", fork({"task": "x", "skill": "one"}), text("ok"))
    async with stage.host() as host:
        await server(host)
        rules = (Rule(Effect.DENY, "raw.*"), Rule(Effect.ALLOW, "raw.echo"))
        session = await host.new_session(SessionOptions(model=ref, rules=rules))
        await say(host, session)
        part = (await events(host, session, SubtaskChanged))[-1].child
        (asked,) = await events(host, part, ToolRequested)
        assert asked.verdict is Effect.DENY
        kept = (await host.history.options(part)).rules
        assert [r.effect for r in kept] == [Effect.DENY], "also if somebody goes on in the part itself"


async def test_parts_spend_the_tokens_and_the_money_of_the_turn_above(stage):
    used = {"usage": {"input": 900, "output": 200, "cost_usd": 0.4}}
    stage.skill("dear", [used, {"text": "one"}])
    ref = stage.script("main", fork(
        {"name": "A", "task": "x", "skill": "dear"}, {"name": "B", "task": "x", "skill": "dear", "after": [1]},
        {"name": "C", "task": "x", "skill": "dear", "after": [2]},
    ), text("ok"))  # fmt: skip
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=(), budget_usd=1.0))
        await say(host, session)
        changes = await events(host, session, SubtaskChanged)
        assert [states(changes, n)[-1] for n in (1, 2, 3)] == ["done", "done", "failed"]
        assert changes[-1].error["code"] == "budget_spent"
        (row,) = await host.ledger.usage("session")
        assert (row["session"], row["cost_usd"]) == (session, pytest.approx(0.8))
        shown = await host.transcript(session)
        assert shown.cost_usd == pytest.approx(0.8) and shown.input_tokens == 1800
        tokens = await host.new_session(SessionOptions(model=ref, servers=(), token_budget=2500))
        await say(host, tokens)
        last = [states(await events(host, tokens, SubtaskChanged), n)[-1] for n in (1, 2, 3)]
        assert "failed" in last or "skipped" in last


async def test_a_part_may_fork_once_more_and_no_deeper(stage):
    stage.skill("leaf", fork({"task": "too deep", "skill": "leaf"}), text("leaf done"))
    stage.skill("middle", fork({"name": "Leaf", "task": "x", "skill": "leaf"}), text("middle done"))
    ref = stage.script("main", fork({"name": "Middle", "task": "x", "skill": "middle"}), text("ok"))
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        await say(host, session)
        middle = (await events(host, session, SubtaskChanged))[-1].child
        leaf = (await events(host, middle, SubtaskChanged))[-1].child
        assert (await result(host, leaf))[0] is Outcome.ERROR, "a part of a part has no such tool"
        assert "no tool" in (await result(host, leaf))[1] or "unknown" in (await result(host, leaf))[1].lower()
        assert (await result(host, session))[1].endswith("middle done")


async def test_stop_ends_all_parts_at_once(stage):
    stage.skill("slow", text("never", ms=60_000))
    ref = stage.script("main", fork(*({"name": n, "task": "x", "skill": "slow"} for n in "ABC")), text("ok"))
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        ticket = await host.submit(session, UserInput("go"))

        async def running() -> bool:
            found = await events(host, session, SubtaskChanged)
            return sum(e.state == "running" for e in found) == 3

        await until(running)
        began = time.monotonic()
        await host.interrupt(session)
        assert time.monotonic() - began < 5
        assert (await ticket.done).status is TurnStatus.INTERRUPTED
        changes = await events(host, session, SubtaskChanged)
        assert [states(changes, n)[-1] for n in (1, 2, 3)] == ["cancelled"] * 3
        for part in {e.child for e in changes if e.child}:
            assert [e.status for e in await events(host, part, TurnEnded)] == [TurnStatus.INTERRUPTED]
            assert host._sessions.find(part) is None


async def test_a_part_uses_the_version_that_its_conversation_has(stage):
    weights = '[versions."1.0.0"]\nstatus = "stable"\nweight = 0.5\n[versions."2.0.0"]\nstatus = "beta"\nweight = 0.5\n'
    stage.skill("rail", text("one"), version="1.0.0")
    stage.skill("rail", text("two"), version="2.0.0")
    (stage.home / "profiles/default/skills/rail/rollout.toml").write_text(weights)
    ref = stage.script("main", fork(*({"task": f"x{n}", "skill": "rail"} for n in range(6))), text("ok"))
    async with stage.host() as host:
        found = await host.skills.skills()
        assert any(r.name == "rail" and len(r.versions) == 2 for r in found)
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        await say(host, session)
        changes = [e for e in await events(host, session, SubtaskChanged) if e.state == "done"]
        rollout = host._parts.skills.library.snapshot.skills["rail"].rollout
        assert {e.skill for e in changes} == {f"rail@{route(session, 'rail', rollout)}"} and len(changes) == 6
        results = {r.version: r.turns for r in await host.skills.results("rail")}
        assert results[route(session, "rail", rollout)] == 6


def _killed(home: Path, ref: str) -> list[dict[str, Any]]:
    """What a run told before it was killed: as soon as one part was done and the other ran."""
    words = [sys.executable, "-m", "desktop_host", "--home", str(home), "--json", "chat", "--model", ref, "go"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    assert process.stdout is not None
    seen: list[dict[str, Any]] = []
    for line in process.stdout:
        seen.append(json.loads(line))
        changes = [e for e in seen if e["type"] == "subtask_changed"]
        if {(e["number"], e["state"]) for e in changes} >= {(1, "done"), (2, "running")}:
            break
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return seen


async def test_after_a_crash_the_finished_parts_stand_and_the_others_are_unknown(stage):
    """The host is killed while one part still runs; nothing runs again by itself."""
    stage.skill("quick", text("Quick result."))
    stage.skill("slow", text("never", ms=120_000))
    ref = stage.script("main", fork(
        {"name": "Quick", "task": "x", "skill": "quick"}, {"name": "Slow", "task": "x", "skill": "slow"},
    ), text("ok"))  # fmt: skip
    seen = await asyncio.to_thread(_killed, stage.home, ref)
    session = next(e["session"] for e in seen if e["type"] == "subtask_changed")
    async with stage.host() as host:
        shown = await host.transcript(session)
        entry = next(e for e in shown.entries if isinstance(e, ToolEntry))
        assert [(p.last.name, p.last.state) for p in entry.subtasks] == [("Quick", "done"), ("Slow", "unknown")]
        assert entry.outcome is Outcome.UNKNOWN
        told = "".join(b.text for b in entry.content if isinstance(b, Text))
        assert "[Part 1, Quick: done]\nQuick result." in told and "[Part 2, Slow: not finished]" in told
        assert (await (await host.resume(session)).done).text == "ok"


async def test_the_state_of_a_skills_run_stays_with_the_session(stage):
    stage.skill("good", text("Here."))
    stage.skill("other", text("x"), keywords="zebra")
    ref = stage.script("main", fork({"name": "A", "task": "count", "skill": "good"}), text("ok"),
                       {"error": {"code": "server_failed"}})  # fmt: skip
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        await say(host, session)
        assert (await say(host, session, "zebra")).status is not TurnStatus.INTERRUPTED
    async with stage.host() as host:
        kept = await host.history.state(session, "skills")
        runs = [(r["skill"], r["by"], r["input"], r["status"]) for r in kept["runs"]]
        assert runs[0] == ("good", "sub-task", "count", "done") and runs[1][:2] == ("other", "message")
        assert runs[1][3] in ("done", "failed")
