"""Routes, quotas and costs through the real program."""

from __future__ import annotations

import asyncio

import pytest

from desktop_host.core.errors import EXIT_CODES
from desktop_host.i18n import LANGUAGES, Translator
from tests.fakes.model_server import ModelServer
from tests.fakes.remote import ref_of
from tests.fakes.wires import Say, reply
from tests.live.program import run, script


def of(events, kind):
    return [e for e in events if e.get("type") == kind]


def test_a_route_falls_back_remembers_the_failure_and_explains_itself(tmp_path):
    home = tmp_path / "home"
    bad = script(tmp_path / "bad.json", *[[{"error": {"code": "overloaded"}}]] * 4)
    good = script(tmp_path / "good.json", [{"text": "from the second"}], [{"text": "again"}])
    (made,) = run(home, "route", "set", "careful", bad, good)
    assert [link["model"] for link in made["chain"]] == [bad, good]
    events = run(home, "chat", "--model", "careful", "--no-servers", "--prompt", "one", "--prompt", "two")
    assert [e["text"] for e in of(events, "turn_ended")] == ["from the second", "again"]
    (changed,) = of(events, "route_changed")
    assert (changed["from"], changed["to"], changed["reason"]) == (bad, good, "overloaded")
    first, second = run(home, "route", "explain", "--task", "careful")
    assert (first["model"], first["chosen"], first["reasons"]) == (bad, True, ["first"])
    assert (second["chosen"], second["reasons"]) == (False, ["next"])
    assert run(home, "route", "remove", "careful")[0]["removed"]
    (error,) = run(home, "route", "explain", "--task", "careful", code=2)
    assert error["code"] == "usage"


@pytest.mark.parametrize("language", LANGUAGES)
def test_why_another_model_answers_is_said_in_words(language):
    codes = [*EXIT_CODES[5], "context_overflow", "stream_truncated", "unsupported_param", "unknown_model"]
    later = {"server_lost", "vault_unavailable", "vault_locked", "disk_full", "storage_unavailable"}
    for reason in (*(c for c in codes if c not in later), "budget", "task", "first", "failed_lately", "too_long"):
        assert Translator(language).switched(reason) != reason, reason
    assert Translator(language).switched("odd_thing") == "odd_thing"


def test_a_route_takes_only_models_that_can_be_named(tmp_path):
    home = tmp_path / "home"
    (error,) = run(home, "route", "set", "careful", "local", "nope:", code=2)
    assert error["code"] == "usage" and "nope:" in error["message"]
    (kept,) = run(home, "route", "set", "careful", "local", "anthropic/claude-sonnet-5-5")
    assert len(kept["chain"]) == 2, "a model without a key yet may stand in a route"


def test_a_task_without_a_route_is_answered_by_the_chats_model(tmp_path):
    (off,) = run(tmp_path / "home", "route", "explain", "--task", "tool_choice")
    assert (off["model"], off["chosen"], off["reasons"]) == (None, False, ["task_off"])
    (row,) = run(tmp_path / "home", "route", "explain", "--task", "summary")
    assert (row["route"], row["model"], row["reasons"]) == (None, "local", ["default"])


def test_the_example_is_written_once_and_leaves_own_routes_alone(tmp_path):
    home = tmp_path / "home"
    run(home, "route", "set", "code", "local")
    assert run(home, "route", "example", "--write")[0]["routes"] == 10
    assert run(home, "route", "example", "--write")[0]["routes"] == 10
    rows = run(home, "route", "list")
    assert next(r for r in rows if r["name"] == "code")["chain"][0]["model"] == "local" and len(rows) == 10
    assert run(home, "settings", "get", "budgets.downgrade")[0]["value"].endswith("openai/gpt-5.4-mini, local")
    run(home, "settings", "set", "budgets.downgrade", "local")
    run(home, "route", "example", "--write")
    assert run(home, "settings", "get", "budgets.downgrade")[0]["value"] == "local"


def test_a_spent_quota_and_an_unknown_price_end_with_exit_4(tmp_path):
    home = tmp_path / "home"
    model = script(tmp_path / "m.json", *[[{"text": "x"}]] * 4)
    run(home, "settings", "set", "quotas.free", "2")
    run(home, "settings", "set", "quotas.tier", "free")
    events = run(home, "chat", "--model", model, "--no-servers", *["--prompt", "q"] * 3, code=4)
    assert events[-1]["code"] == "quota_spent" and len(of(events, "assistant_said")) == 2
    standing = {row["scope"]: row for row in run(home, "usage", "--by", "budget")}
    assert (standing["day"]["calls"], standing["day"]["limit_calls"]) == (2, 2)
    run(home, "settings", "set", "quotas.tier", "none")
    unknown = script(tmp_path / "u.json", [{"text": "x"}, {"usage": {"input": 5, "output": 5, "cost_usd": None}}])
    events = run(home, "chat", "--model", unknown, "--no-servers", "--budget", "1", "q", code=4)
    assert events[-1]["code"] == "price_unknown"
    run(home, "chat", "--model", unknown, "--no-servers", "--budget", "1", "--token-budget", "5000", "q")


def test_a_model_that_nothing_names_is_refused_before_there_is_a_chat(tmp_path):
    home = tmp_path / "home"
    model = script(tmp_path / "m.json", [{"text": "one"}], [{"text": "two"}])
    run(home, "route", "set", "cheap", model)
    for ref, named in (("gpt5", "gpt5"), ("compat:http://x/v1", "compat:http://x/v1"), ("compat:nowhere#m", "nowhere")):
        (refused,) = run(home, "chat", "--model", ref, "hi", code=2)
        assert (refused["type"], refused["code"]) == ("error", "usage") and f"'{named}'" in refused["message"]
    assert "a route's name (cheap)" in run(home, "chat", "--model", "chaep", "hi", code=2)[0]["message"]
    assert run(home, "sessions", "list") == []
    session = run(home, "chat", "--model", "cheap", "--no-servers", "hi")[0]["session"]
    run(home, "chat", "--session", session, "--model", "chaep", "hi", code=2)
    again = run(home, "chat", "--session", session, "--no-servers", "hi")
    assert of(again, "turn_ended")[0]["text"] == "two"


def test_a_budget_of_a_chat_holds_across_runs_and_can_be_raised(tmp_path):
    home = tmp_path / "home"
    model = script(tmp_path / "m.json", *[[{"text": "x"}, {"usage": {"input": 9, "output": 9, "cost_usd": 0.04}}]] * 4)
    events = run(home, "chat", "--model", model, "--no-servers", "--budget", "0.1", "a")
    session = events[0]["session"]
    events = run(home, "chat", "--session", session, *["--prompt", "b"] * 2, code=4)
    assert events[-1]["code"] == "budget_spent" and events[-1]["params"]["scope"] == "session"
    resumed = run(home, "sessions", "resume", session, "--budget", "0.2")
    assert of(resumed, "turn_ended")[0]["status"] == "done"
    (row,) = run(home, "usage", "--by", "session")
    assert row["requests"] == 3 and abs(row["cost_usd"] - 0.12) < 1e-9 and row["cache_hit"] == 0
    (row,) = run(home, "usage", "--by", "purpose")
    assert row["purpose"] == "chat"


def test_a_chat_is_summarised_and_the_summary_taken_back(tmp_path):
    home = tmp_path / "home"
    model = script(tmp_path / "m.json", [{"text": "one"}], [{"text": "two"}])
    events = run(home, "chat", "--model", model, "--no-servers", *["--prompt", "q"] * 2)
    session = events[0]["session"]
    assert run(home, "sessions", "compact", session)[0]["done"] is True
    assert run(home, "sessions", "compact", session)[0]["done"] is False
    assert run(home, "sessions", "compact", session, "--undo")[0]["done"] is True
    assert run(home, "sessions", "compact", session, "--undo")[0]["done"] is False


async def test_the_command_line_asks_the_model_each_time_unless_a_kept_answer_may_serve(tmp_path):
    async with ModelServer() as server:
        server.script(*(reply("compat", Say(text)) for text in ("first", "second")))
        # Without skills: the version that a tenth of new chats get (travel-planner has one) is another start.
        words = ("chat", "q", "--model", ref_of("compat", server), "--no-servers", "--no-skills")
        told = [await asyncio.to_thread(run, tmp_path / "home", *words, *more) for more in ((), (), ("--cached",))]
        assert len(server.posts) == 2
    texts = [of(events, "turn_ended")[0]["text"] for events in told]
    assert texts == ["first", "second", "second"], "the newest serves"
    assert [len(of(events, "usage_recorded")) for events in told] == [1, 1, 0]
    assert of(told[2], "assistant_said")[0]["cached"] is True
