"""`chat` and `sessions` in process, on the real engine with fakes at its rim."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from desktop_host import i18n
from desktop_host.cli.main import run
from desktop_host.core.errors import KnownFault, ModelFault
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Outcome, Text
from desktop_host.engine.host import HostSpec
from tests.fakes.list_model import call
from tests.fakes.memory_history import World
from tests.fakes.rig import Rig


@pytest.fixture(autouse=True)
def _english(monkeypatch):
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    yield
    i18n.install("en")


class Box:
    """Runs the command line on a fresh engine; the world (what was stored) stays from run to run."""

    def __init__(self, capfd: Any) -> None:
        self._capfd = capfd
        self.world = World()
        self.replies: list[list[Any]] = []
        self.permission = "ask"
        self.tools: dict[str, Any] = {}
        self.rig: Rig | None = None

    @asynccontextmanager
    async def _open(self, spec: HostSpec) -> AsyncIterator[Any]:
        rig = self.rig = Rig(self.replies, world=self.world, headless=spec.headless, permission=self.permission)
        for name, run_tool in self.tools.items():
            rig.tools.add(name, run_tool)
        try:
            yield rig.host
        finally:
            await rig.close()

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        code = run(list(argv), self._open)
        out, err = self._capfd.readouterr()
        return code, out, err

    def json(self, *argv: str) -> tuple[int, list[dict[str, Any]]]:
        code, out, _ = self(*argv, "--json")
        return code, [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def box(capfd):
    return Box(capfd)


def _types(events: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(e["type"] for e in events))


def test_the_answer_goes_to_standard_output_and_nothing_else(box):
    box.replies = [["Hello ", "there."]]
    assert box("chat", "hi") == (0, "Hello there.\n", "")


def test_json_tells_every_event_from_the_opening_to_the_end(box):
    box.replies = [["let me see", call("kb.search", q="x")], ["found ", "it"]]
    box.tools["kb.search"] = "42 results"
    code, events = box.json("chat", "what?", "--allow", "kb.*")
    assert code == 0
    assert _types(events)[0] == "session_opened"
    order = [e["type"] for e in events if e["type"] in ("user_said", "turn_started", "tool_requested", "tool_started",
                                                        "tool_settled", "turn_ended")]  # fmt: skip
    assert order == ["user_said", "turn_started", "tool_requested", "tool_started", "tool_settled", "turn_ended"]
    assert all({"seq", "t", "session", "turn", "type"} <= e.keys() for e in events)
    own = [e["seq"] for e in events if e["session"]]
    assert own == sorted(set(own))
    by = {e["type"]: e for e in events}
    assert by["tool_requested"]["verdict"] == "allow"
    assert by["tool_settled"]["content"] == [{"type": "text", "text": "42 results"}]
    assert (by["turn_ended"]["status"], by["turn_ended"]["text"]) == ("done", "found it")
    assert events[-1] == by["state_changed"]
    assert by["state_changed"]["state"] == "idle"


def test_tools_are_told_beside_the_answer(box):
    box.replies = [["one", call("kb.search", q="x")], ["two"]]
    box.tools["kb.search"] = "42 results"
    code, out, err = box("chat", "q", "--allow", "kb.*")
    assert (code, out) == (0, "one\n\ntwo\n")
    assert '→ kb.search {"q":"x"}' in err
    assert "42 results" in err


def test_an_ask_that_nobody_decides_exits_3_though_the_turn_ends_well(box):
    box.replies = [[call("kb.search")], ["I may not"]]
    box.tools["kb.search"] = "42"
    code, events = box.json("chat", "q")
    by = {e["type"]: e for e in events}
    assert code == 3
    assert by["turn_ended"]["status"] == "done"
    assert (by["ask_settled"]["action"], by["ask_settled"]["by"]) == ("refuse", "policy")
    assert by["tool_settled"]["outcome"] == "denied"
    assert (events[-1]["type"], events[-1]["code"]) == ("error", "decision_needed")
    assert "--allow" in events[-1]["remedy"]


def test_an_explicit_deny_is_no_missing_decision(box):
    box.replies = [[call("kb.search")], ["I may not"]]
    box.tools["kb.search"] = "42"
    code, events = box.json("chat", "q", "--allow", "*", "--deny", "kb.s*")
    assert code == 0
    assert {e["type"]: e for e in events}["tool_requested"]["verdict"] == "deny"


def test_answers_decide_in_order(box, tmp_path):
    box.replies = [[call("kb.search", "c1")], [call("kb.search", "c2")], ["done"]]
    box.tools["kb.search"] = "42"
    file = tmp_path / "a.json"
    file.write_text('[{"kind":"tool","action":"allow"},{"kind":"tool","action":"deny"}]')
    code, events = box.json("chat", "q", "--answers", str(file))
    assert [e["outcome"] for e in events if e["type"] == "tool_settled"] == ["ok", "denied"]
    assert code == 0


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (ModelFault("rate_limited", "slow down"), 5),
        (ModelFault("context_overflow", "too long"), 1),
        (KnownFault("model_missing", "no weights", reason="no_weights"), 5),
    ],
)
def test_a_failed_turn_exits_by_its_code_and_says_what_to_do(box, fault, code):
    box.replies = [[fault]]
    got, events = box.json("chat", "q")
    assert got == code
    ended = next(e for e in events if e["type"] == "turn_ended")
    assert (ended["status"], ended["error"]["code"]) == ("failed", fault.code)
    assert (events[-1]["type"], events[-1]["code"]) == ("error", fault.code)
    assert events[-1]["remedy"]
    box.replies = [[fault]]
    got, out, err = box("chat", "q")
    assert (got, out) == (code, "")
    assert err.startswith("desktop-host: ")


def test_steps_end_at_their_limit_with_exit_1(box):
    box.replies = [[call("kb.search", f"c{n}")] for n in range(3)]
    box.tools["kb.search"] = "42"
    code, events = box.json("chat", "q", "--allow", "*", "--max-steps", "2")
    assert code == 1
    assert events[-1]["code"] == "max_steps"


def test_prompts_follow_each_other_in_one_session_and_the_first_failure_counts(box):
    box.replies = [["one"], [ModelFault("stream_truncated", "cut")], ["three"]]
    code, events = box.json("chat", "a", "--prompt", "b", "--prompt", "c")
    ended = [(e["turn"], e["status"]) for e in events if e["type"] == "turn_ended"]
    assert ended == [(1, "done"), (2, "failed"), (3, "done")]
    assert code == 1
    assert len({e["session"] for e in events if e.get("session")}) == 1


def test_what_the_next_prompt_would_meet_too_ends_the_run(box):
    box.replies = [[ModelFault("auth", "bad key")], ["never"]]
    code, events = box.json("chat", "a", "--prompt", "b")
    assert code == 5
    assert [e["turn"] for e in events if e["type"] == "turn_ended"] == [1]


def test_prompts_come_from_standard_input_one_a_line(box):
    read, write = os.pipe()
    os.write(write, "first\n\nzweite für dich\n".encode())
    os.close(write)
    kept = os.dup(0)
    os.dup2(read, 0)
    try:
        box.replies = [["one"], ["two"]]
        code, events = box.json("chat", "-")
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(read)
    assert code == 0
    assert [e["text"] for e in events if e["type"] == "user_said"] == ["first", "zweite für dich"]


@pytest.mark.parametrize("words", [[], [""], ["  ", "--prompt", "x"], ["-", "--prompt", "-"]])
def test_a_chat_without_a_prompt_is_wrong_use(box, words):
    code, objects = box.json("chat", *words)
    assert (code, objects[-1]["code"]) == (2, "usage")


def test_a_session_goes_on_and_an_unknown_one_is_named(box):
    box.replies = [["one"]]
    _, events = box.json("chat", "a")
    session = events[0]["session"]
    box.replies = [["one"], ["two"]]
    code, events = box.json("chat", "b", "--session", session)
    assert code == 0
    assert {e["turn"] for e in events if e["type"] in ("user_said", "turn_ended")} == {2}
    code, objects = box.json("chat", "b", "--session", "nope")
    assert (code, objects[-1]["code"]) == (2, "not_found")


def test_interrupting_stops_the_turn_and_exits_130(box):
    async def slow(_arguments, _progress):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)
        return ToolOutcome(Outcome.OK, (Text("late"),))

    box.replies = [["wait", call("kb.slow")], ["never"]]
    box.tools["kb.slow"] = slow
    code, events = box.json("chat", "a", "--allow", "*", "--prompt", "b")
    ended = [e for e in events if e["type"] == "turn_ended"]
    assert (code, [e["status"] for e in ended]) == (130, ["interrupted"])
    assert box.rig.tools.cancelled == ["kb.slow"]
    session = events[0]["session"]

    box.replies = [["wait", call("kb.slow")], ["going on"]]
    code, events = box.json("sessions", "resume", session)
    assert code == 0
    assert next(e for e in events if e["type"] == "turn_ended")["text"] == "going on"
    code, objects = box.json("sessions", "resume", session)
    assert (code, objects[-1]["code"]) == (2, "usage")


def test_nobody_reading_any_more_ends_quietly(box, monkeypatch):
    box.replies = [["a "] * 200]
    read, write = os.pipe()
    os.close(read)
    stream = os.fdopen(write, "w")
    monkeypatch.setattr("sys.stdout", stream)
    assert run(["chat", "hi"], box._open) == 1
    monkeypatch.undo()
    os.dup2(os.open(os.devnull, os.O_WRONLY), write)
    stream.close()


def test_a_file_goes_with_the_first_prompt(box, tmp_path):
    (tmp_path / "notes.md").write_text("# hi")
    box.replies = [["one"], ["two"]]
    _, events = box.json("chat", "a", "--prompt", "b", "--attach", str(tmp_path / "notes.md"))
    said = [e["attachments"] for e in events if e["type"] == "user_said"]
    assert [[a["name"] for a in files] for files in said] == [["notes.md"], []]


def test_sessions_are_listed_found_shown_renamed_exported_imported_deleted(box, tmp_path):
    box.replies = [["the answer is blue"]]
    _, events = box.json("chat", "which colour?")
    session = events[0]["session"]
    code, rows = box.json("sessions", "list")
    assert code == 0
    assert rows == [{"session": session, "title": "which colour?", "updated": rows[0]["updated"], "messages": 2,
                     "state": "idle"}]  # fmt: skip
    code, shown = box.json("sessions", "show", session)
    journaled = [e for e in events if e["type"] in {s["type"] for s in shown}]
    assert shown == journaled
    code, out, _ = box("sessions", "show", session)
    assert "> which colour?" in out
    assert "the answer is blue" in out
    assert [r["session"] for r in box.json("sessions", "search", "blue")[1]] == [session]
    assert box.json("sessions", "rename", session, "Colours")[1][0]["title"] == "Colours"
    code, bundle, _ = box("sessions", "export", session)
    json.loads(bundle)
    file = tmp_path / "b.json"
    file.write_text(bundle, encoding="utf-8-sig")
    code, (row,) = box.json("sessions", "import", str(file))
    assert (code, row["title"], row["messages"]) == (0, "Colours", 2)
    assert row["session"] != session
    assert box.json("sessions", "export", session) == (0, [json.loads(bundle)]), "one object, one line"
    code, (text,) = box.json("sessions", "export", session, "--format", "md")
    assert "the answer is blue" in text["text"]
    assert box("sessions", "export", session, "--format", "html")[1].lstrip().startswith("<")
    assert box.json("sessions", "delete", session) == (0, [{"session": session, "deleted": True}])
    for words in (["show", session], ["delete", session], ["export", session], ["rename", session, "x"]):
        code, objects = box.json("sessions", *words)
        assert (code, objects[-1]["code"]) == (2, "not_found"), words
    file.write_text("{not json")
    code, objects = box.json("sessions", "import", str(file))
    assert (code, objects[-1]["code"]) == (2, "bad_bundle")


def test_people_read_their_language_and_programs_read_english(box):
    box.replies = [[call("kb.search")], ["no"]]
    box.tools["kb.search"] = "42"
    code, out, err = box("chat", "q", "--lang", "zh_CN")
    assert (code, out) == (3, "no\n")
    assert "被拒绝" in err
    _, out, _ = box("sessions", "show", "nope", "--lang", "zh_CN", "--json")
    assert json.loads(out)["remedy"] == "See desktop-host sessions list."


def test_secrets_and_settings_and_usage(box):
    assert box.json("secrets", "list") == (0, [])
    code, rows = box.json("settings", "get", "general.theme")
    assert (code, rows) == (0, [{"key": "general.theme", "value": "system"}])
    assert box.json("settings", "set", "general.theme", "dark") == (0, [{"key": "general.theme", "value": "dark"}])
    for words in (["set", "general.theme", "pink"], ["get", "nope.nope"], ["set", "tools.max_steps", "0"]):
        code, objects = box.json("settings", *words)
        assert (code, objects[-1]["code"]) == (2, "bad_settings")
    schema = box.json("settings", "schema")[1]
    assert {"key", "type", "default", "widget", "choices", "range"} <= schema[0].keys()
    assert box.json("usage")[0] == 0
    assert box.json("doctor") == (0, [])


def test_a_bug_is_named_as_one(box, caplog):
    async def broken(_arguments, _progress):
        raise AssertionError

    def explode(_spec):
        raise ZeroDivisionError("oops")

    code = run(["usage", "--json"], explode)
    assert code == 1
    assert "the command line failed" in caplog.text
