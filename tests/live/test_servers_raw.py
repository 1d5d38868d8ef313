"""The misbehaving server in every one of its modes: clear words, nothing lost, nobody left, no other server touched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from desktop_host.core.messages import Outcome
from desktop_host.core.servers import ServerState, Timeouts
from desktop_host.core.transcript import ToolEntry
from desktop_host.i18n import Translator, install
from desktop_host.ui.widgets.server_words import problem_text
from tests.fakes.servers.stage import Stage, alive, raw, stage, text, until

pytestmark = pytest.mark.live
LIMITS = Timeouts(connect_s=8, call_s=2, call_max_s=4)


@asynccontextmanager
async def beside_another(folder: Path, *flags: str, limits: Timeouts = LIMITS) -> AsyncIterator[Stage]:
    """The server with these flags as `it`, and a good one as `other`, which must notice nothing; then all are gone."""
    pids = folder / "pids"
    pids.mkdir()
    async with stage(
        folder, raw("it", *flags, env={"RAW_PIDS": str(pids)}, timeouts=limits), raw("other"), scale=0.02
    ) as s:
        await s.until_state("other", ServerState.READY)
        process = s.servers.status("other").pid
        yield s
        assert text(await s.call("other", "echo", m="still here")) == "still here"
        assert s.servers.status("other").pid == process, "another server was touched"
        started = [int(p.read_text()) for p in pids.glob("*.pid")]
        assert started or "slow" in flags  # That one never comes so far.
    await until(lambda: not [p for p in started if alive(p)], 5, lambda: f"left: {[p for p in started if alive(p)]}")


def told(s: Stage) -> None:
    """What a person reads of the failed server: its name, what happened and what to do, in both languages."""
    error = s.servers.status("it").error
    assert error is not None
    seen = set()
    for language in ("en", "zh_CN"):
        what, mend = Translator(language).failure(error)
        sentence = Translator(language).text("cli.server_changed", server="it", reason=what, remedy=mend)
        assert "it" in sentence and what in sentence and mend in sentence
        assert what and mend and "{" not in sentence and "remedy." not in sentence and "failure." not in sentence
        assert (language == "zh_CN") == any(c >= "\u4e00" for c in what)
        seen.add(sentence)
    assert len(seen) == 2


def explained(problem: str) -> None:
    """The same for a call that the host could not have done."""
    entry = ToolEntry("c", 1, "c", "it", "crash", problem=problem)
    sentences = []
    for language in ("en", "zh_CN"):
        install(language)
        sentences.append(problem_text(entry))
        assert Translator(language).has(f"chat.tool.problem.{problem}")
        assert "it" in sentences[-1] and "{" not in sentences[-1]
    install("en")
    assert sentences[0] != sentences[1]


@pytest.mark.parametrize("flags", [(), ("strict",), ("silent",), ("extra",), ("badtool",), ("child",)])
async def test_oddities_of_the_start_cost_nothing(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Hazards D38, E56, G74."""
    limits = Timeouts(connect_s=3, call_s=2, call_max_s=4) if "silent" in flags else LIMITS
    async with beside_another(tmp_path, *flags, limits=limits) as s:
        await s.until_state("it", ServerState.READY)
        assert text(await s.call("it", "echo", m="hi")) == "hi"
        names = {t.name for t in s.servers.tools("it")}
        assert {"echo", "big", "crash", "env"} <= names
        if "badtool" in flags:
            bad = next(t for t in s.servers.tools("it") if t.name == "bad")
            assert bad.problem, "one bad tool costs itself alone, and says so"


@pytest.mark.parametrize("flags", [("child",), ("childsession",), ("child", "ignoreterm", "noexit")])
async def test_whoever_it_started_ends_with_it(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Hazards D38, D43."""
    async with beside_another(tmp_path, *flags) as s:
        await s.until_state("it", ServerState.READY)
        child = int((tmp_path / "pids" / "child.pid").read_text())
        assert alive(child)
        await s.servers.stop("it")
        await until(lambda: not alive(child), 5)


async def test_a_child_in_a_session_of_its_own_ends_even_where_its_parent_crashed(tmp_path: Path) -> None:
    """Hazard D38."""
    async with beside_another(tmp_path, "childsession") as s:
        await s.until_state("it", ServerState.READY)
        child = int((tmp_path / "pids" / "child.pid").read_text())
        assert (await s.call("it", "crash")).outcome is Outcome.ERROR
        await until(lambda: not alive(child), 5)
        await s.until_state("it", ServerState.READY)


async def test_one_that_comes_too_slowly_is_given_up_in_words(tmp_path: Path) -> None:
    """Hazard D44."""
    async with beside_another(tmp_path, "slow", limits=Timeouts(connect_s=0.5, call_s=2, call_max_s=4)) as s:
        await until(lambda: s.servers.status("it").error)
        told(s)
        await s.servers.stop("it")
        assert (await s.call("it", "echo", m="x")).outcome is Outcome.ERROR


async def test_one_that_dies_again_and_again_is_told_and_its_calls_come_back_as_outcomes(tmp_path: Path) -> None:
    """Hazards D40, D53."""
    async with beside_another(tmp_path, "die3") as s:
        await s.until_state("it", ServerState.READY)
        outcome = await s.call("it", "hang")
        assert (outcome.outcome, outcome.raw["host_error"]) == (Outcome.ERROR, "server_lost")
        explained("server_lost")
        await until(lambda: s.servers.status("it").error)
        error = s.servers.status("it").error
        assert error is not None and error.exit_code == 3
        told(s)


@pytest.mark.parametrize(
    ("tool", "arguments", "outcome", "says", "problem"),
    [
        ("echo", {"m": "hi"}, Outcome.OK, "hi", ""),
        ("echo", {"m": 5}, Outcome.ERROR, "$.m", "usage"),
        ("big", {"n": 2_000_000}, Outcome.OK, "x" * 100, ""),
        ("crash", {}, Outcome.ERROR, "was lost during the call", "server_lost"),
        ("hang", {}, Outcome.TIMED_OUT, "no sign of life", "tool_timed_out"),
        ("progress", {}, Outcome.OK, "done", ""),
        ("garbage", {}, Outcome.OK, "after garbage", ""),
        ("latin1", {}, Outcome.OK, "after latin1", ""),
        ("ask", {}, Outcome.OK, '"action": "accept"', ""),
        ("sample", {}, Outcome.OK, "a summary", ""),
        ("badstruct", {}, Outcome.OK, "{}", ""),
        ("nostruct", {}, Outcome.OK, "only text", ""),
        ("env", {}, Outcome.OK, "PATH", ""),
        ("no_such_tool", {}, Outcome.ERROR, "no longer available", "not_found"),
    ],
)
async def test_every_tool_ends_in_an_outcome_and_the_next_call_works(
    tmp_path: Path, tool: str, arguments: dict[str, object], outcome: Outcome, says: str, problem: str
) -> None:
    """Hazards C35, D40, H83, M127."""
    async with beside_another(tmp_path) as s:
        await s.until_state("it", ServerState.READY)
        pending = asyncio.create_task(s.call("it", "echo", call_id="c2", m="meanwhile"))
        got = await s.call("it", tool, **arguments)
        assert (got.outcome, says in text(got)) == (outcome, True), text(got)[:300]
        assert (got.raw.get("host_error", "") if problem else "") == problem  # type: ignore[union-attr]
        if problem:
            explained(problem)
            assert "it" in text(got) or tool in text(got)
        if tool not in ("crash", "progress"):  # The server does one thing at a time: beside 3 s of it a call times out.
            assert text(await pending) == "meanwhile", "a call beside it is not lost"
        await asyncio.wait({pending})
        assert text(await s.call("it", "echo", m="next")) == "next"
