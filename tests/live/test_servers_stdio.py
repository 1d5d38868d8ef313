"""The supervisor against stdio servers that misbehave."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_host.core.errors import HostError, KnownFault, UserFault
from desktop_host.core.exchange import ElicitReply, FormRequest, Progress, SamplingRequest, UrlRequest
from desktop_host.core.messages import Audio, EmbeddedResource, Image, Outcome, ResourceLink, Text
from desktop_host.core.permissions import Effect, Verdict
from desktop_host.core.servers import SamplingPolicy, ServerConfig, ServerScope, ServerState, Stdio, Timeouts
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from desktop_host.diagnostics import workings
from desktop_host.i18n import Translator
from desktop_host.servers.records import MASK
from tests.fakes.memory_vault import MemoryVault
from tests.fakes.servers.stage import ALLOW, OpenReviewer, WallClock, alive, raw, script, stage, text, until

pytestmark = pytest.mark.live
SHORT = Timeouts(connect_s=3, call_s=1, call_max_s=3)


async def test_a_server_starts_lists_and_answers(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        status = s.servers.status("raw")
        assert (status.state, status.era, status.tools, status.server["name"]) == (
            ServerState.READY,
            "2025-06-18",
            12,
            "raw",
        )
        outcome = await s.call("raw", "echo", m="hi")
        assert (outcome.outcome, text(outcome)) == (Outcome.OK, "hi")
        assert outcome.duration_ms > 0
        await until(lambda: s.states("raw")[-1] == "ready")
        assert s.states("raw") == ["starting", "ready"]


async def test_a_call_without_a_permission_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        for effect in (Effect.ASK, Effect.DENY):
            with pytest.raises(UserFault) as caught:
                await s.servers.call("s1", "c", ToolSpec("raw", "echo"), EMPTY, Verdict(effect, "x"), lambda _p: None)
            assert caught.value.code == "permission"


async def test_arguments_that_do_not_fit_are_told_and_never_sent(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        outcome = await s.call("raw", "echo", m=5)
        assert outcome.outcome is Outcome.ERROR
        assert "$.m" in text(outcome)
        assert '"properties"' in text(outcome)
        assert not [f for f in s.servers.trace("raw") if f.message.get("method") == "tools/call"]


async def test_a_banner_and_json_that_is_no_message_are_logged_and_harm_nothing(tmp_path: Path) -> None:
    """Hazards C35, C37."""
    async with stage(tmp_path, script("odd", "odd.py", "banner", "jsonlog", "flood")) as s:
        assert text(await s.call("odd", "quick")).startswith("quick from")
        lines = [x.text for x in s.servers.logs("odd") if x.source == "stdout"]
        assert lines[0].startswith("🚀 Server started")
        assert '{"level":"info","msg":"boot"}' in lines


async def test_garbage_and_bytes_that_are_no_utf8_cost_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        assert text(await s.call("raw", "garbage")) == "after garbage"
        assert text(await s.call("raw", "latin1")) == "after latin1"
        await until(lambda: len([x for x in s.servers.logs("raw") if x.source == "stdout"]) == 2)


async def test_half_a_surrogate_pair_is_replaced_and_the_answer_used(tmp_path: Path) -> None:
    async with stage(tmp_path, script("raw", "raw.py", "unreadable")) as s:
        assert text(await s.call("raw", "half")) == "half \ufffd of a pair"
        await until(lambda: any("surrogate" in x.text for x in s.servers.logs("raw")))


async def test_an_answer_that_is_no_json_is_told_at_once_to_its_call(tmp_path: Path) -> None:
    async with stage(tmp_path, script("raw", "raw.py", "unreadable")) as s:
        async with asyncio.timeout(20):
            made = await s.call("raw", "broken")
        assert made.outcome is not Outcome.OK
        assert "not readable JSON" in text(made)
        assert text(await s.call("raw", "echo", m="still here"))


async def test_a_server_that_dies_of_the_probe_is_started_afresh_and_its_era_remembered(tmp_path: Path) -> None:
    config = script("raw", "raw.py", "strict")
    async with stage(tmp_path, config) as s:
        assert s.servers.status("raw").state is ServerState.READY
    assert "2025-06-18" in (tmp_path / "server-eras.json").read_text()
    async with stage(tmp_path, config) as s:
        first = next(f for f in s.servers.trace("raw"))
        assert first.message["method"] == "initialize"


async def test_a_server_that_ignores_the_probe_gets_another_start_when_time_is_short(tmp_path: Path) -> None:
    async with stage(tmp_path, raw("raw", "silent", timeouts=SHORT)) as s:
        assert s.servers.status("raw").state is ServerState.READY


async def test_a_server_that_never_answers_fails_in_time_and_blocks_no_other(tmp_path: Path) -> None:
    """Hazards B26, D44."""
    sleeper = ServerConfig("sleeper", Stdio("sleep", ("600",)), timeouts=replace(SHORT, connect_s=1))
    async with stage(tmp_path, sleeper, raw(), start=False) as s:
        waits = asyncio.create_task(s.servers.autostart())
        await s.until_state("raw", ServerState.READY)
        assert s.servers.status("sleeper").state is ServerState.STARTING
        await waits
        status = s.servers.status("sleeper")
        assert status.state in (ServerState.WAITING, ServerState.FAILED, ServerState.STARTING)
        assert status.error is not None
        assert (status.error.code, status.error.remedy) == ("connect_timeout", "remedy.server.timeout")


async def test_a_missing_command_fails_at_once_with_all_that_is_needed_to_mend_it(tmp_path: Path) -> None:
    """Hazards B26, B29, B31."""
    config = ServerConfig("none", Stdio("no-such-program-here", ("-y",)))
    async with stage(tmp_path, config, raw()) as s:
        status = s.servers.status("none")
        assert (status.state, status.restarts) == (ServerState.FAILED, 0)
        error = status.error
        assert error is not None
        assert (error.code, error.remedy) == ("server_failed", "remedy.server.command_not_found")
        assert (error.command, bool(error.path)) == (("no-such-program-here", "-y"), True)
        assert (await s.call("none", "x")).outcome is Outcome.ERROR
        with pytest.raises(KnownFault) as caught:
            await s.servers.resources("none")
        assert caught.value.params["remedy"] == error.remedy


async def test_a_program_that_ends_at_once_is_reported_with_exit_code_and_output(tmp_path: Path) -> None:
    """Hazards B31, B32, D53."""
    async with stage(tmp_path, script("odd", "odd.py", "fail"), scale=0.02) as s:
        await s.until_state("odd", ServerState.FAILED)
        error = s.servers.status("odd").error
        assert error is not None
        assert (error.exit_code, error.remedy) == (4, "remedy.server.missing_module")
        assert error.stderr == ("Error: Cannot find module 'left-pad'",)
        assert error.bad_stdout == "hello from stdout"
        assert s.servers.status("odd").restarts == 5
        told = Translator("en").finding(workings.server(s.servers.status("odd")))
        assert "lost 5 times in a row, with exit code 4; its last line: Error: Cannot find module" in told[1]
        assert len(s.events) < 30, "a crash loop must not flood"
    async with stage(tmp_path, script("odd", "odd.py", "exit0"), scale=0.02) as s:
        await s.until_state("odd", ServerState.FAILED)
        error = s.servers.status("odd").error
        assert error is not None
        assert (error.exit_code, error.remedy) == (0, "remedy.server.exited_at_once")


async def test_restarts_come_at_growing_distances_that_vary_and_end(tmp_path: Path) -> None:
    """Hazard D47."""

    class Patient(WallClock):
        slept: list[float]

        async def sleep(self, seconds: float) -> None:
            self.slept.append(seconds)
            await super().sleep(seconds)

    told: list[list[float]] = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        clock = Patient(0.01)
        clock.slept = []
        folder.mkdir()
        async with stage(folder, script("odd", "odd.py", "fail"), clock=clock) as s:
            await s.servers.prepare("s2", None, ())  # A second chat shares the one server and its pace.
            await s.until_state("odd", ServerState.FAILED)
            await s.servers.prepare("s3", None, ())
        told.append(clock.slept)
    for slept in told:
        assert [round(math.log2(seconds / 0.99)) for seconds in slept] == [0, 1, 2, 3, 4], slept
    assert told[0] != told[1], "the same distances every time: all hosts would come back at once"


async def test_a_clock_that_is_set_back_hides_nothing_of_what_a_server_said(tmp_path: Path) -> None:
    """Hazard B31."""

    class Backwards(WallClock):
        seconds = 2e9

        def now(self) -> float:
            self.seconds -= 60
            return self.seconds

    async with stage(tmp_path, script("odd", "odd.py", "fail"), clock=Backwards(0.01)) as s:
        await s.until_state("odd", ServerState.FAILED)
        error = s.servers.status("odd").error
        assert error is not None
        assert error.stderr == ("Error: Cannot find module 'left-pad'",), "this attempt's words, and no other's"


async def test_a_crash_in_a_call_is_an_outcome_and_the_server_comes_back(tmp_path: Path) -> None:
    """Hazards D40, D46."""
    async with stage(tmp_path, raw()) as s:
        before = s.servers.status("raw").pid
        outcome = await s.call("raw", "crash")
        assert (outcome.outcome, outcome.raw["host_error"]) == (Outcome.ERROR, "server_lost")
        assert text(await s.call("raw", "echo", m="again")) == "again"
        status = s.servers.status("raw")
        assert status.pid != before
        assert status.restarts == 1


async def test_a_crash_between_calls_is_noticed_at_once(tmp_path: Path) -> None:
    """Hazard D40."""
    async with stage(tmp_path, raw(), scale=1) as s:
        pid = s.servers.status("raw").pid
        assert pid is not None
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        await s.until_state("raw", ServerState.WAITING, 5)
        assert time.monotonic() - began < 1.5
        error = s.servers.status("raw").error
        assert error is not None
        assert (error.code, error.exit_code) == ("server_lost", -9)
        assert [t.name for t in s.servers.session_tools("s1")], "tools stay listed while it is on its way back"


async def test_kill_9_in_mid_call_ends_all_calls_and_no_other_server(tmp_path: Path) -> None:
    async with stage(tmp_path, raw("a"), raw("b")) as s:
        hanging = [asyncio.create_task(s.call("a", "hang", call_id=f"c{n}")) for n in range(5)]
        await until(lambda: sum(f.message.get("method") == "tools/call" for f in s.servers.trace("a")) == 5)
        pid = s.servers.status("a").pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        outcomes = await asyncio.wait_for(asyncio.gather(*hanging), 5)
        assert {o.raw["host_error"] for o in outcomes} == {"server_lost"}
        assert text(await s.call("b", "echo", m="b")) == "b"


async def test_a_silent_call_times_out_is_cancelled_and_the_server_stays(tmp_path: Path) -> None:
    async with stage(tmp_path, raw("raw", timeouts=SHORT)) as s:
        outcome = await s.call("raw", "hang")
        assert outcome.outcome is Outcome.TIMED_OUT
        await until(lambda: any("notifications/cancelled" in x.text for x in s.servers.logs("raw")))
        assert text(await s.call("raw", "echo", m="still")) == "still"


async def test_progress_keeps_a_call_alive_and_is_passed_on(tmp_path: Path) -> None:
    """Hazard E59."""
    told: list[Progress] = []
    async with stage(tmp_path, raw("raw", timeouts=Timeouts(5, 1.5, 20))) as s:
        spec = next(t for t in s.servers.session_tools("s1") if t.name == "progress")
        outcome = await s.servers.call("s1", "c", spec, EMPTY, ALLOW, told.append)
        assert (outcome.outcome, len(told)) == (Outcome.OK, 10)
        assert told[-1] == Progress(10, 10, "s9")


async def test_progress_does_not_beat_the_limit_in_all(tmp_path: Path) -> None:
    async with stage(tmp_path, raw("raw", timeouts=Timeouts(3, 1, 1.5))) as s:
        assert (await s.call("raw", "progress")).outcome is Outcome.TIMED_OUT


async def test_the_deadline_stands_still_while_a_person_is_asked(tmp_path: Path) -> None:
    reviewer = OpenReviewer(gate=asyncio.Event())
    async with stage(tmp_path, raw("raw", timeouts=Timeouts(5, 0.5, 10)), reviewer=reviewer) as s:
        call = asyncio.create_task(s.call("raw", "ask"))
        await until(lambda: reviewer.asked)
        done, _ = await asyncio.wait({call}, timeout=1.2)
        assert not done
        assert reviewer.gate is not None
        reviewer.gate.set()
        assert json.loads(text(await call)) == {"action": "accept", "content": {"name": "bob", "confirm": True}}


async def test_stop_sends_cancelled_and_the_tool_never_finishes(tmp_path: Path) -> None:
    """Hazard E61."""
    async with stage(tmp_path, script("odd", "odd.py", env={"ODD_DIR": str(tmp_path)})) as s:
        call = asyncio.create_task(s.call("odd", "slow_write", s=1.0))
        await until((tmp_path / "begun").exists)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until((tmp_path / "cancelled").exists)
        assert (await s.call("odd", "slow_write", s=1.3, call_id="c2")).outcome is Outcome.OK
        assert (tmp_path / "written").read_text().count("\n") == 1


async def test_questions_carry_the_call_they_came_from(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        assert json.loads(text(await s.call("raw", "ask", call_id="c7")))["action"] == "accept"
        origin, request = s.reviewer.asked[0]
        assert (origin.server, origin.session, origin.call_id) == ("raw", "s1", "c7")
        assert isinstance(request, FormRequest)
        assert request.schema["properties"]["name"]["type"] == "string"


async def test_a_question_that_belongs_to_one_of_several_calls_is_refused_not_guessed(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        other = asyncio.create_task(s.call("raw", "hang", session="s2"))
        await until(lambda: any(f.message.get("method") == "tools/call" for f in s.servers.trace("raw")))
        assert "cannot tell which conversation" in text(await s.call("raw", "ask"))
        assert "cannot tell which conversation" in text(await s.call("raw", "sample"))
        assert s.reviewer.asked == []
        other.cancel()
        await asyncio.wait({other})


async def test_a_connection_of_one_session_needs_no_guess(tmp_path: Path) -> None:
    async with stage(tmp_path, raw("raw", scope=ServerScope.SESSION), start=False) as s:
        await asyncio.gather(s.servers.prepare("s1", None, ()), s.servers.prepare("s2", None, ()))
        pids = {k.connection.pid for k in s.servers._pool.of_server("raw") if k.connection}
        assert len(pids) == 2
        hanging = asyncio.create_task(s.call("raw", "hang", session="s2"))
        also = asyncio.create_task(s.call("raw", "hang", session="s2", call_id="x"))
        await until(lambda: sum(f.message.get("method") == "tools/call" for f in s.servers.trace("raw")) == 2)
        assert "accept" in text(await s.call("raw", "ask", session="s2", call_id="y"))
        assert s.reviewer.asked[0][0].session == "s2"
        for task in (hanging, also):
            task.cancel()
        await asyncio.wait({hanging, also})
        await s.servers.release("s2")
        assert sum(alive(p) for p in pids) == 1


async def test_sampling_is_answered_or_refused_and_the_call_goes_on(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        reply = json.loads(text(await s.call("raw", "sample")))
        assert (reply["model"], reply["content"]["text"], reply["stopReason"]) == ("fake-model", "a summary", "endTurn")
        request = s.reviewer.asked[0][1]
        assert isinstance(request, SamplingRequest)
        assert (request.max_tokens, request.messages[0].text) == (5, "hi")
        s.reviewer.refuse_sampling = True
        outcome = await s.call("raw", "sample")
        assert (outcome.outcome, json.loads(text(outcome))["code"]) == (Outcome.OK, -1)
        await s.servers.update(replace(s.servers.configs()[0], sampling=SamplingPolicy(mode="off")))
        assert "switched off" in text(await s.call("raw", "sample"))


async def test_a_form_that_is_declined_carries_no_values(tmp_path: Path) -> None:
    """Hazard M127."""
    reviewer = OpenReviewer(answer=ElicitReply("decline", FrozenDict({"name": "x"})))
    async with stage(tmp_path, raw(), reviewer=reviewer) as s:
        assert json.loads(text(await s.call("raw", "ask"))) == {"action": "decline"}


async def test_a_url_that_must_be_opened_first_is_asked_for_and_the_call_sent_again(tmp_path: Path) -> None:
    """Hazard M130."""
    async with stage(tmp_path, script("odd", "odd.py")) as s:
        assert text(await s.call("odd", "url")) == "signed in"
        assert s.reviewer.asked[0][1] == UrlRequest("sign in", "https://example.com/in", "e1")
    reviewer = OpenReviewer(answer=ElicitReply("decline"))
    async with stage(tmp_path, script("odd", "odd.py"), reviewer=reviewer) as s:
        assert "sign in first" in text(await s.call("odd", "url"))


async def test_bad_tools_are_repaired_one_by_one_and_the_others_stay(tmp_path: Path) -> None:
    """Hazards F71, G73, G74, G76, G77, G79."""
    async with stage(tmp_path, script("odd", "odd.py", "bad")) as s:
        tools = {t.name: t for t in s.servers.tools("odd")}
        assert tools["empty"].problem == "schema_not_object"
        assert tools["empty"].input_schema == {"type": "object"}
        assert tools["string"].problem == "schema_not_object description_bad"
        assert tools["none"].problem == "schema_missing"
        assert tools["badout"].problem is None
        assert tools["listout"].problem == "output_schema_bad"
        assert (tools["task"].problem, tools["task"].enabled) == ("task_required", False)
        assert tools["quick"].description == ""
        assert tools["anyof"].input_schema["anyOf"], "the original schema stays whole"
        assert text(await s.call("odd", "empty", x=1)) == '{"x": 1}'
        assert "not valid under any" in text(await s.call("odd", "anyof"))
        assert text(await s.call("odd", "anyof", a=1)) == '{"a": 1}'
        assert text(await s.call("odd", "remote", x=1)) == '{"x": 1}', (
            "a remote reference is not fetched and judges nothing"
        )
        assert "no longer available" in text(await s.call("odd", "task"))
        assert len([x for x in s.servers.logs("odd") if "left out" in x.text]) == 2


async def test_results_are_never_lost_to_a_schema(tmp_path: Path) -> None:
    async with stage(tmp_path, raw(), script("odd", "odd.py")) as s:
        wrong = await s.call("raw", "badstruct")
        assert (wrong.outcome, wrong.structured) == (Outcome.OK, {"x": "no"})
        assert text(await s.call("raw", "nostruct")) == "only text"
        told = [line.text for line in s.servers.logs("raw") if "outputSchema" in line.text]
        assert "does not fit" in told[0] and "'no' is not of type" in told[0] and "no structuredContent" in told[1]
        odd = await s.call("odd", "odd_result")
        assert (odd.outcome, text(odd), odd.structured) == (Outcome.OK, "just a string", (1, 2))
        assert odd.raw["extra"] == 1
        nothing = await s.call("odd", "nothing")
        assert (nothing.outcome, nothing.content) == (Outcome.OK, ())
        assert (await s.call("odd", "error")).outcome is Outcome.ERROR


async def test_every_kind_of_content_arrives_as_what_it_is(tmp_path: Path) -> None:
    """Hazards I97, I98, I100."""
    async with stage(tmp_path, script("odd", "odd.py")) as s:
        blocks = (await s.call("odd", "kinds")).content
        assert isinstance(blocks[0], Text)
        assert blocks[0].annotations == {"audience": ("user",), "priority": 0.5}
        assert isinstance(blocks[1], Image)
        assert blocks[2] == Audio("AAAA", "audio/wav")
        assert blocks[3] == ResourceLink("file:///x", "x", size=3)
        assert blocks[4] == EmbeddedResource("a://b", None, None, "AAAA")
        assert isinstance(blocks[5], Text)
        assert "hologram" in blocks[5].text
        assert isinstance(blocks[6], Text)


async def test_big_results_pass_whole_and_the_wire_log_stays_small(tmp_path: Path) -> None:
    """Hazard I92."""
    async with stage(tmp_path, raw(), script("odd", "odd.py")) as s:
        outcome = await s.call("raw", "big", n=2_000_000)
        assert len(text(outcome)) == 2_000_000
        image = "A" * 400_000
        block = (await s.call("odd", "kinds", image=image)).content[1]
        assert isinstance(block, Image)
        assert block.data == image
        assert len(json.dumps([f.message for f in s.servers.trace("raw")])) < 60_000


async def test_lists_that_change_are_fetched_again_once(tmp_path: Path) -> None:
    """Hazard E58."""
    async with stage(tmp_path, script("odd", "odd.py", env={"ODD_DIR": str(tmp_path)})) as s:
        count = len(s.servers.tools("odd"))
        fetched = (tmp_path / "lists").read_text().count("\n")
        await s.call("odd", "late")
        await until(lambda: len(s.servers.tools("odd")) == count + 1)
        await until(lambda: s.told_tools("odd") == count + 1)
        assert (tmp_path / "lists").read_text().count("\n") <= fetched + 2


async def test_pages_are_followed_and_a_null_cursor_ends_them(tmp_path: Path) -> None:
    async with stage(tmp_path, script("odd", "odd.py", "n57", "pages"), script("two", "odd.py", "n57", "nulls")) as s:
        assert len(s.servers.tools("odd")) == len(s.servers.tools("two")) == 68


async def test_resources_prompts_and_logs_are_read(tmp_path: Path) -> None:
    async with stage(tmp_path, script("odd", "odd.py"), start=False) as s:
        assert [r.uri for r in await s.servers.resources("odd")] == ["odd://a"]
        read = await s.servers.read_resource("odd", "odd://a")
        assert read.content == (EmbeddedResource("odd://a", text="aaa"), EmbeddedResource("odd://a/bin", blob="AAAA"))
        with pytest.raises(UserFault) as caught:
            await s.servers.read_resource("odd", "odd://none")
        assert caught.value.code == "not_found"
        [prompt] = await s.servers.prompts("odd")
        assert (prompt.name, prompt.arguments[0].required) == ("greet", True)
        [message] = await s.servers.get_prompt("odd", "greet", FrozenDict({"who": "you"}))
        assert message.text == "hello you"
        await until(lambda: any(x.source == "message" for x in s.servers.logs("odd")))
        assert next(x for x in s.servers.logs("odd") if x.source == "message").text == 'odd: {"a": 1}'
        assert s.servers.status("odd").instructions == "be odd"
    assert "GOT" not in (tmp_path / "logs" / "odd.log").read_text()


async def test_a_watched_resource_tells_its_updates_and_is_left_politely(tmp_path: Path) -> None:
    async with stage(tmp_path, script("odd", "odd.py", env={"ODD_DIR": str(tmp_path)}), start=False) as s:
        seen = []
        updates = s.servers.watch("odd", "odd://a")
        async for uri in updates:
            seen.append(uri)
            if len(seen) == 2:
                break
        await updates.aclose()  # type: ignore[attr-defined]
        assert seen == ["odd://a", "odd://a"]
        await until((tmp_path / "unsubscribed").exists)


async def test_roots_are_those_of_the_session_and_changes_are_told(tmp_path: Path) -> None:
    reviewer = OpenReviewer(folders={"s1": ("/a b",), None: ()})
    async with stage(tmp_path, script("odd", "odd.py", env={"ODD_DIR": str(tmp_path)}), reviewer=reviewer) as s:
        await s.servers.prepare("s1", None, ("/a b",))
        assert json.loads(text(await s.call("odd", "roots"))) == {"roots": [{"uri": "file:///a%20b", "name": "a b"}]}
        reviewer.folders["s1"] = ("/a b", "/c")
        await s.servers.prepare("s1", None, ("/a b", "/c"))
        await until((tmp_path / "roots_changed").exists)
        hello = json.loads((tmp_path / "hello").read_text().splitlines()[0])
        assert set(hello["capabilities"]) == {"sampling", "elicitation", "roots", "extensions"}
        assert hello["clientInfo"]["name"] == "desktop-host"


async def test_a_secret_reaches_its_server_alone_and_is_masked_wherever_it_is_shown(tmp_path: Path) -> None:
    """Hazards O136, O137."""
    vault = MemoryVault({"odd-key": "s3cr3t-value-1"})
    config = script("odd", "odd.py", "secret", env={"API_KEY": "${keyring:odd-key}"})
    async with stage(tmp_path, config, raw(), vault=vault) as s:
        assert text(await s.call("odd", "secret")) == MASK
        # It got the very value; what it says of it reaches neither the record nor a model.
        assert text(await s.call("odd", "secret", digest=True)) == hashlib.sha256(b"s3cr3t-value-1").hexdigest()
        await until(lambda: any("the key is" in x.text for x in s.servers.logs("odd")))
        shown = f"{s.servers.logs('odd')} {s.servers.trace('odd')} {s.servers.statuses()} {s.servers.export()}"
        assert "s3cr3t" not in shown
        assert "API_KEY" not in json.loads(text(await s.call("raw", "env")))
    assert "s3cr3t" not in (tmp_path / "logs" / "odd.log").read_text()


async def test_a_missing_secret_is_named_before_anything_starts(tmp_path: Path) -> None:
    """Hazard A7."""
    async with stage(tmp_path, raw("raw", env={"TOKEN": "${keyring:gone}"})) as s:
        status = s.servers.status("raw")
        assert status.state is ServerState.FAILED
        assert status.error is not None
        assert "gone" in status.error.message


async def test_the_same_tool_on_two_servers_is_two_tools(tmp_path: Path) -> None:
    """Hazard F68."""
    async with stage(tmp_path, script("b", "odd.py"), script("a", "odd.py")) as s:
        names = [t.full_name for t in s.servers.session_tools("s1") if t.name == "quick"]
        assert names == ["a.quick", "b.quick"]
        assert text(await s.call("a", "quick")) != text(await s.call("b", "quick"))


async def test_a_setting_that_is_not_its_launch_never_restarts_a_server(tmp_path: Path) -> None:
    """Hazard A11."""
    async with stage(tmp_path, script("odd", "odd.py")) as s:
        pid = s.servers.status("odd").pid
        running = asyncio.create_task(s.call("odd", "slow_write", s=0.5))
        await s.servers.set_tool_enabled("odd", "quick", False)
        await s.servers.update(replace(s.servers.configs()[0], trusted=True, title="New"))
        assert (await running).outcome is Outcome.OK
        assert (s.servers.status("odd").pid, s.servers.is_trusted("odd")) == (pid, True)
        assert "switched off" in text(await s.call("odd", "quick"))
        assert not next(t for t in s.servers.session_tools("s1") if t.name == "quick").enabled
        launch = s.servers.configs()[0].launch
        assert isinstance(launch, Stdio)
        await s.servers.update(replace(s.servers.configs()[0], launch=replace(launch, args=(*launch.args, "n3"))))
        await s.until_state("odd", ServerState.READY)
        assert s.servers.status("odd").pid != pid


async def test_a_launch_that_is_changed_lets_the_calls_that_run_end_first(tmp_path: Path) -> None:
    """Hazard A11."""
    async with stage(tmp_path, script("odd", "odd.py")) as s:
        pid = s.servers.status("odd").pid
        assert pid is not None
        running = asyncio.create_task(s.call("odd", "slow_write", s=1.5))
        await until(lambda: s.servers._pool.of_server("odd")[0].connection.floor.calls)  # type: ignore[union-attr]
        launch = s.servers.configs()[0].launch
        assert isinstance(launch, Stdio)
        await s.servers.update(replace(s.servers.configs()[0], launch=replace(launch, env=freeze({"NEW": "1"}))))
        await s.until_state("odd", ServerState.READY)
        assert s.servers.status("odd").pid not in (None, pid) and not running.done() and alive(pid)
        assert (await running).outcome is Outcome.OK
        await until(lambda: not alive(pid), 10)


async def test_a_disabled_or_removed_server_answers_that_its_tools_are_gone(tmp_path: Path) -> None:
    async with stage(tmp_path, script("odd", "odd.py"), raw()) as s:
        spec = next(t for t in s.servers.session_tools("s1") if t.full_name == "odd.quick")
        pid = s.servers.status("odd").pid
        assert pid is not None
        await s.servers.enable("odd", False)
        assert s.servers.status("odd").state is ServerState.DISABLED
        assert not alive(pid)
        outcome = await s.servers.call("s1", "c", spec, EMPTY, ALLOW, lambda _p: None)
        assert "no longer available" in text(outcome)
        await s.servers.remove("odd")
        with pytest.raises(UserFault):
            s.servers.status("odd")
        outcome = await s.servers.call("s1", "c", spec, EMPTY, ALLOW, lambda _p: None)
        assert "no longer available" in text(outcome)


async def test_a_server_that_ignores_every_request_to_end_is_ended_with_its_children(tmp_path: Path) -> None:
    """Hazards D38, D43."""
    env = {"RAW_PIDS": str(tmp_path)}
    began = 0.0
    async with stage(tmp_path, raw("raw", "ignoreterm", "noexit", "child", env=env), raw("polite", "child")) as s:
        child = int((tmp_path / "child.pid").read_text())
        assert alive(child)
        assert s.servers.status("polite").state is ServerState.READY
        began = time.monotonic()
    assert time.monotonic() - began < 7
    await until(lambda: not alive(child), 3)


async def test_servers_of_a_host_that_was_killed_are_ended_at_the_next_start(tmp_path: Path) -> None:
    """Hazard D38."""
    code = (
        "import subprocess, sys, os, json, time\n"
        "from pathlib import Path\n"
        "from desktop_host.servers.orphans import PidFile\n"
        "p = subprocess.Popen(['sleep', '300'], start_new_session=True, stdout=subprocess.DEVNULL)\n"
        f"PidFile(Path({str(tmp_path / 'processes')!r})).add(p.pid, 'left')\n"
        "print(p.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    pid = int(out)
    assert alive(pid)
    async with stage(tmp_path, raw()):
        await until(lambda: not alive(pid), 5)


async def test_a_trial_connects_and_tells_without_touching_the_running_server(tmp_path: Path) -> None:
    async with stage(tmp_path, script("odd", "odd.py")) as s:
        pid = s.servers.status("odd").pid
        trial = await s.servers.test(s.servers.configs()[0])
        assert (trial.ok, trial.era, trial.tools, trial.resources, trial.prompts) == (True, "2025-11-25", 11, 1, 1)
        assert trial.connect_ms is not None
        assert trial.server["title"] == "Odd"
        assert s.servers.status("odd").pid == pid
        failed = await s.servers.test(script("bad", "odd.py", "fail"))
        assert failed.error is not None
        assert (failed.ok, failed.error.exit_code) == (False, 4)


async def test_verbs_by_name_start_only_the_server_they_need(tmp_path: Path) -> None:
    async with stage(tmp_path, raw("a"), raw("b"), start=False) as s:
        outcome = await s.servers.call_tool("a", "echo", FrozenDict({"m": "x"}))
        assert text(outcome) == "x"
        assert [x.state for x in s.servers.statuses()] == [ServerState.READY, ServerState.STOPPED]
        with pytest.raises(HostError):
            await s.servers.call_tool("c", "echo", EMPTY)


async def test_stopping_while_a_server_starts_is_clean(tmp_path: Path) -> None:
    async with stage(tmp_path, raw("raw", "slow"), start=False) as s:
        starting = asyncio.create_task(s.servers.start("raw"))
        await until(lambda: (tmp_path / "processes").exists() and list((tmp_path / "processes").glob("*.json")))
        await s.servers.stop("raw")
        await starting
        assert s.servers.status("raw").state is ServerState.STOPPED
        assert not list((tmp_path / "processes").glob("*.json"))


async def test_a_line_over_the_limit_costs_its_call_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from desktop_host.servers import stdio

    monkeypatch.setitem(stdio.StdioTransport.__init__.__kwdefaults__, "line_limit", 100_000)
    async with stage(tmp_path, raw()) as s:
        assert "longer than 100000 bytes" in text(await s.call("raw", "big", n=500_000))
        assert text(await s.call("raw", "echo", m="after")) == "after"


async def test_what_a_person_stopped_no_session_starts_again(tmp_path: Path) -> None:
    async with stage(tmp_path, raw()) as s:
        await s.servers.stop("raw")
        await s.servers.prepare("s2", None, ())
        assert s.servers.status("raw").state is ServerState.STOPPED
        assert "its server was stopped" in text(await s.call("raw", "echo", m="x"))
        await s.servers.start("raw")
        assert text(await s.call("raw", "echo", m="x")) == "x"


async def test_a_server_that_was_given_up_costs_the_next_turns_nothing(tmp_path: Path) -> None:
    """Hazards B26, D47."""
    async with stage(tmp_path, script("odd", "odd.py", "fail", env={"ODD_DIR": str(tmp_path)}), scale=0.02) as s:
        await s.until_state("odd", ServerState.FAILED)
        starts = (tmp_path / "starts").read_text()
        await s.servers.prepare("s1", None, ())
        assert (await s.call("odd", "quick")).outcome is Outcome.ERROR
        assert (tmp_path / "starts").read_text() == starts
        await s.servers.update(script("odd", "odd.py"))
        await s.until_state("odd", ServerState.READY)


async def test_servers_are_added_started_and_kept_in_the_profile(tmp_path: Path) -> None:
    async with stage(tmp_path, start=False) as s:
        await s.servers.autostart()
        [found] = s.servers.parse(f"{sys.executable} {script('x', 'odd.py').launch.args[0]}")  # type: ignore[union-attr]
        added = await s.servers.add(replace(found.config, name="mine"), FrozenDict({"key-1": "value-1"}))
        assert await s.vault.get("key-1") == "value-1"
        await s.until_state(added.name, ServerState.READY)
        with pytest.raises(UserFault):
            await s.servers.add(added)
        with pytest.raises(UserFault):
            await s.servers.add(replace(added, name="Not An Alias"))
    async with stage(tmp_path, raw(), start=False) as s:
        assert [c.name for c in s.servers.configs()] == ["mine", "raw"]
        await s.servers.enable("mine", False)
        assert "raw" not in (tmp_path / "servers.json").read_text()
        await s.servers.remove("mine")
        assert [c.name for c in s.servers.configs()] == ["raw"]
