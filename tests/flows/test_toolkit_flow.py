"""The toolkit in conversations: groups, fixed arguments, rules for results, search, functions, prompts, resources."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from desktop_host.core.asks import Allow, FillForm, Refuse
from desktop_host.core.errors import UserFault
from desktop_host.core.events import (
    AskRaised,
    AskSettled,
    ToolProgress,
    ToolRequested,
    ToolsChanged,
    ToolSettled,
    UserSaid,
)
from desktop_host.core.exchange import FormRequest, Origin, Progress, ToolOutcome
from desktop_host.core.messages import (
    EmbeddedResource,
    Image,
    Message,
    Outcome,
    Role,
    Text,
    ToolResult,
    assistant,
    user,
)
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.server_ports import Clash
from desktop_host.core.settings import put
from desktop_host.core.toolkit import PostRule, ToolRule
from desktop_host.core.tools import ToolGroup
from desktop_host.core.values import EMPTY, FrozenDict, freeze, thaw
from desktop_host.engine.host import UserInput
from tests.fakes.list_model import call

ALONE = freeze({"audience": ["user"]})
WIDE = {"type": "object", "properties": {"q": {"type": "string"}, "token": {"type": "string"}}, "required": ["token"]}


def told(r: Any, n: int = -1) -> list[str]:
    """The tools of a request."""
    return [t.full_name for t in r.model.requests[n].tools]


def result(r: Any, n: int = -1) -> str:
    """Text of the first result in a request's last message."""
    blocks = r.model.requests[n].messages[-1].blocks
    found = next(b for b in blocks if isinstance(b, ToolResult))
    return "\n".join(b.text for b in found.content if isinstance(b, Text))


async def test_a_fixed_argument_is_hidden_from_the_model_and_put_into_the_call(rig):
    r = rig([[call("web.fetch", "c1", q="x", token="mine")], ["done"]], permission="ask")
    r.tools.add("web.fetch", "page", schema=WIDE)
    await r.vault.put("web", "s3cret-value")
    rule = ToolRule("web.fetch", preset=freeze({"token": "${keyring:web}"}))
    await r.toolkit.put_rule(rule)
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("go"))
    await r.until(lambda: r.of(AskRaised))
    ask = r.of(AskRaised)[0].ask
    assert ask.locked == ("token",) and ask.arguments["token"] == "${keyring:web}"
    await r.host.answer(ask.ask_id, Allow())
    await ticket.done
    schema = next(t for t in r.model.requests[0].tools if t.full_name == "web.fetch").input_schema
    assert set(schema["properties"]) == {"q"} and "required" not in schema
    assert r.tools.called == [("web.fetch", {"q": "x", "token": "s3cret-value"})]
    assert r.learned == [("web", frozenset({"s3cret-value"}))]
    assert "s3cret-value" not in str(r.events)


async def test_a_secret_that_the_model_names_itself_is_never_filled_in(rig):
    r = rig([[call("web.fetch", "c1", q="${keyring:web}")], ["done"]])
    r.tools.add("web.fetch", "page", schema=WIDE)
    await r.vault.put("web", "s3cret-value")
    await r.toolkit.put_rule(ToolRule("web.fetch", preset=freeze({"token": "${keyring:web}"})))
    await r.say(await r.session())
    assert r.tools.called[0][1]["q"] == "${keyring:web}"


async def test_a_result_is_cut_selected_and_rid_of_images_by_the_persons_rule(rig):
    r = rig([[call("a.many", "c1"), call("a.long", "c2"), call("a.bad", "c3")], ["done"]])

    async def many(_a, _p):
        items = {"items": [{"n": 1, "big": "x" * 900}, {"n": 2, "big": "y"}]}
        blocks = (Text(json.dumps(items)), Image("QUJD", "image/png"))
        return ToolOutcome(Outcome.OK, blocks, freeze(items))

    async def bad(_a, _p):
        return ToolOutcome(Outcome.ERROR, (Text("broken " * 50),))

    r.tools.add("a.many", many)
    r.tools.add("a.long", "z" * 5000)
    r.tools.add("a.bad", bad)
    await r.toolkit.put_rule(ToolRule("a.many", post=PostRule(select="items[].n", drop_images=True)))
    await r.toolkit.put_rule(ToolRule("a.long", post=PostRule(max_chars=300)))
    await r.toolkit.put_rule(ToolRule("a.bad", post=PostRule(max_chars=5, select="x")))
    await r.say(await r.session())
    settled = {e.call_id: e for e in r.of(ToolSettled)}
    assert settled["c1"].content[0].text == "[1,2]" and settled["c1"].structured == (1, 2)
    assert not [b for b in settled["c1"].content if isinstance(b, Image)]
    assert len(settled["c2"].content[0].text) < 500
    assert settled["c3"].content[0].text.startswith("broken broken")


async def test_a_rule_that_does_not_fit_loses_nothing_and_a_bad_one_is_refused(rig):
    r = rig([[call("a.text", "c1")], ["done"]])
    r.tools.add("a.text", "plain words")
    await r.toolkit.put_rule(ToolRule("a.text", post=PostRule(select="items")))
    await r.say(await r.session())
    assert "plain words" in result(r) and "was not used" in result(r)
    with pytest.raises(UserFault) as caught:
        await r.toolkit.put_rule(ToolRule("a.text", post=PostRule(select="items[")))
    assert (caught.value.code, caught.value.params["reason"]) == ("bad_settings", "bad_jmespath")


async def test_a_group_is_switched_by_the_person_for_one_chat_and_kept_with_it(rig):
    r = rig([["one"], ["two"]])
    r.tools.add("files.read", "x")
    r.tools.add("web.get", "x")
    await r.toolkit.put_group(ToolGroup("files", ("files.*",), enabled=False))
    session = await r.session()
    await r.say(session)
    assert told(r) == ["web.get"]
    await r.host.switch_group(session, "files", True)
    await r.say(session)
    assert told(r) == ["files.read", "web.get"]
    assert r.toolkit.active(session) == {"files": True} and r.toolkit.active() == {"files": False}
    assert await r.history.state(session, "tool_groups") == {"files": True}


async def test_the_model_switches_groups_by_one_meta_tool_where_the_person_lets_it(rig):
    r = rig([
        [call("host.reset_tools", "c1", files=True)],
        [call("host.call_tool", "c2", name="files.read", arguments={"q": "now"})],
        ["done"],
        [call("files.read", "c3")], ["again"],
    ])  # fmt: skip
    r.tools.add("files.read", "contents")
    r.tools.add("web.get", "x")
    await r.toolkit.put_group(ToolGroup("files", ("files.*",), enabled=False, notes="Paths are absolute."))
    await r.toolkit.let_model_switch(True)
    session = await r.session()
    await r.say(session)
    assert told(r, 0) == ["host.call_tool", "host.reset_tools", "web.get"]
    assert "Paths are absolute." in result(r, 1)
    assert told(r, 1) == told(r, 0), "the list never changes within a turn"
    assert r.tools.called[0] == ("files.read", {"q": "now"})
    await r.say(session, "more")
    assert told(r) == ["files.read", "host.call_tool", "host.reset_tools", "web.get"]
    assert r.of(ToolsChanged)[-1].applied


async def test_a_tool_of_a_group_that_is_off_answers_how_to_switch_it_on(rig):
    """Hazard H86."""
    r = rig([[call("files.read", "c1")], ["done"]])
    r.tools.add("files.read", "contents")
    await r.toolkit.put_group(ToolGroup("files", ("files.*",), enabled=False))
    await r.say(await r.session())
    assert r.tools.called == [] and "switched off" in result(r)
    assert r.of(ToolSettled)[0].outcome is Outcome.ERROR


async def test_a_group_says_what_the_gate_does_where_no_rule_speaks(rig):
    """Hazard K112."""
    r = rig([[call("files.read", "c1"), call("files.drop", "c2")], ["done"]], permission="deny")
    r.tools.add("files.read", "contents")
    r.tools.add("files.drop", "gone")
    await r.toolkit.put_group(ToolGroup("files", ("files.*",), default=Effect.ALLOW))
    await r.say(await r.session(rules=(Rule(Effect.DENY, "files.drop"),)))
    assert [name for name, _ in r.tools.called] == ["files.read"]


async def test_many_definitions_give_way_to_a_search_and_the_gate_judges_the_tool_that_is_called(rig):
    """Hazard F70, J109."""
    r = rig([
        [call("host.search_tools", "c1", query="delete a git branch")],
        [call("host.call_tool", "c2", name="git.delete_branch", arguments={"name": "old"})],
        [call("host.call_tool", "c3", name="git.no_such", arguments={})],
        ["done"],
    ])  # fmt: skip
    for n in range(120):
        r.tools.add(f"crm.thing_{n}", "x", description="Do something with customers and their orders. " * 3)
    r.tools.add("git.delete_branch", "deleted", description="Remove a branch of a repository")
    session = await r.session(rules=(Rule(Effect.DENY, "git.delete_branch"),))
    await r.say(session)
    assert told(r, 0) == ["host.call_tool", "host.search_tools"]
    assert "crm (120), git (1)" in r.model.requests[0].tools[1].description
    assert json.loads(result(r, 1))[0]["name"] == "git.delete_branch"
    asked = next(e for e in r.of(ToolRequested) if e.call_id == "c2")
    assert (asked.server, asked.tool, asked.verdict) == ("git", "delete_branch", Effect.DENY)
    assert r.tools.called == []
    assert "no tool named 'git.no_such'" in result(r, 3)


async def test_a_new_tool_behind_the_search_needs_no_new_list(rig):
    r = rig([["one"], [call("host.search_tools", "c1", query="weather")], ["two"]])
    for n in range(120):
        r.tools.add(f"crm.thing_{n}", "x", description="Do something with customers and their orders. " * 3)
    session = await r.session()
    await r.say(session)
    r.tools.add("sky.weather", "sun", description="Tell the weather")
    await r.say(session)
    assert not r.of(ToolsChanged) and "sky.weather" in result(r)


async def test_a_model_that_makes_up_a_tool_is_told_of_those_it_may_have_meant(rig):
    r = rig([[call("fs.reed_file", "c1"), call("xx.zz", "c2"), call("other.read_file", "c3")], ["done"]])
    r.tools.add("fs.read_file", lambda _a, _p: "x")
    r.tools.add("fs.write_file", lambda _a, _p: "x")
    await r.say(await r.session())
    settled = {e.call_id: e for e in r.of(ToolSettled)}
    texts = {k: e.content[0].text for k, e in settled.items()}
    assert "Did you mean: fs__read_file" in texts["c1"] and "nothing was run" in texts["c1"]
    assert "fs__read_file" in texts["c2"] and "You have:" in texts["c2"]
    assert "Did you mean: fs__read_file" in texts["c3"]
    assert {e.outcome for e in settled.values()} == {Outcome.ERROR}
    assert {e.reason for e in r.of(ToolRequested)} == {"unknown_tool"}


async def test_near_names_are_found_behind_the_search_too(rig):
    r = rig([[call("git.comit", "c1")], ["done"]])
    for n in range(60):
        r.tools.add(f"big.tool_{n}", lambda _a, _p: "x", description="does something rather long " * 20)
    r.tools.add("git.commit", lambda _a, _p: "x")
    await r.say(await r.session())
    assert "host.search_tools" in told(r)
    assert "git__commit" in r.of(ToolSettled)[0].content[0].text


async def test_the_search_can_be_switched_off(rig):
    r = rig([["one"]])
    r.settings.settings = put(r.settings.settings, "tools.search_share", 0)
    for n in range(120):
        r.tools.add(f"crm.thing_{n}", "x", description="Do something with customers and their orders. " * 3)
    await r.say(await r.session())
    assert len(told(r)) == 120


async def test_a_plain_function_is_a_tool_of_the_host_with_schema_and_progress(rig):
    r = rig([[call("host.add_up", "c1", numbers=[1, 2])], ["done"]], permission="ask")

    async def add_up(numbers: list[int], unit: str = "EUR", progress: Any = None) -> dict[str, Any]:
        """Add numbers.

        Args:
            numbers: what to add.
            unit: printed behind the sum.
        """
        progress(Progress(1, 1))
        return {"sum": sum(numbers), "unit": unit}

    spec = r.toolkit.register(add_up)
    assert thaw(spec.input_schema) == {
        "type": "object",
        "properties": {
            "numbers": {"type": "array", "items": {"type": "integer"}, "description": "what to add."},
            "unit": {"type": "string", "description": "printed behind the sum.", "default": "EUR"},
        },
        "required": ["numbers"],
    }
    ticket = await r.host.submit(await r.session(), UserInput("go"))
    await r.until(lambda: r.of(AskRaised))
    await r.host.answer(r.of(AskRaised)[0].ask.ask_id, Allow())
    await ticket.done
    assert r.of(ToolSettled)[0].structured == {"sum": 3, "unit": "EUR"}
    with pytest.raises(UserFault):
        r.toolkit.register(add_up)
    assert r.toolkit.register(add_up, clash=Clash.SKIP) is None
    assert r.toolkit.register(add_up, clash=Clash.RENAME).name == "add_up_2"


async def test_a_tool_is_a_plain_async_function_without_model_or_session(rig):
    r = rig([])
    r.tools.add("web.fetch", "a long page", schema=WIDE)
    await r.toolkit.put_rule(ToolRule("web.fetch", preset=freeze({"token": "t"}), post=PostRule(max_chars=4)))
    fetch = r.toolkit.callable("web", "fetch")
    outcome = await fetch(q="x")
    assert fetch.__name__ == "fetch" and r.tools.called == [("web.fetch", {"q": "x", "token": "t"})]
    assert outcome.outcome is Outcome.OK and "left out" in outcome.content[0].text


@dataclass
class Servers:
    """What use_prompt and attachments need of the servers."""

    prompts: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    resources: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    async def get_prompt(self, name: str, prompt: str, arguments: FrozenDict) -> tuple[Message, ...]:
        return self.prompts[prompt]

    async def read_resource(self, name: str, uri: str) -> ToolOutcome:
        if uri not in self.resources:
            raise UserFault("not_found", f"no {uri}")
        return ToolOutcome(Outcome.OK, self.resources[uri])


async def test_a_prompt_comes_into_the_chat_as_its_own_messages(rig):
    servers = Servers({"review": (user("You review."), assistant("I do."), user("Look at this: x=1"))})
    r = rig([["fine"], ["second"]], servers=servers)
    session = await r.session()
    done = await (await r.host.use_prompt(session, "git", "review", EMPTY, "Be brief.")).done
    assert done.text == "fine"
    sent = [(m.role, m.text) for m in r.model.requests[0].messages]
    assert sent == [
        (Role.USER, "You review."),
        (Role.ASSISTANT, "I do."),
        (Role.USER, "Look at this: x=1\n\nBe brief."),
    ]
    assert r.of(UserSaid)[0].source == "prompt:git.review"
    transcript = await r.host.transcript(session)
    assert transcript.entries[0].source == "prompt:git.review"


async def test_all_that_a_prompt_says_last_for_the_person_is_their_message(rig):
    """A text and a resource come as two messages of the user's: none of them is hidden from the person."""
    note = EmbeddedResource("note://1", "text/plain", "the note")
    servers = Servers({"read": (assistant("Hm?"), user("Read this:"), user(note))})
    r = rig([["fine"]], servers=servers)
    session = await r.session()
    await (await r.host.use_prompt(session, "git", "read")).done
    entry = (await r.host.transcript(session)).entries[0]
    assert (entry.text, entry.blocks, entry.prelude) == ("Read this:", (note,), (assistant("Hm?"),))
    last = r.model.requests[0].messages[-1]
    assert (last.role, last.text, note in last.blocks) == (Role.USER, "Read this:", True)


async def test_a_prompt_survives_a_restart(rig):
    servers = Servers({"review": (user("You review."), assistant("I do."), user("Now."))})
    r = rig([["fine"], ["again"]], servers=servers)
    session = await r.session()
    await (await r.host.use_prompt(session, "git", "review")).done
    await r.host.close()
    other = rig([["fine"], ["again"]], world=r.world)
    await other.say(session, "more")
    assert [m.text for m in other.model.requests[0].messages[:3]] == ["You review.", "I do.", "Now."]


async def test_resources_are_attached_as_they_are_when_the_message_is_sent(rig):
    servers = Servers(resources={
        "kb://a": (EmbeddedResource("kb://a", "text/plain", text="hello"),),
        "kb://pic": (EmbeddedResource("kb://pic", "image/png", blob="iVBORw0K"),),
        "kb://own": (EmbeddedResource("kb://own", "text/plain", text="private", annotations=ALONE),),
    })  # fmt: skip
    r = rig([["ok"]], servers=servers)
    session = await r.session()
    wanted = (("kb", "kb://a"), ("kb", "kb://pic"), ("kb", "kb://own"))
    await (await r.host.submit(session, UserInput("look", resources=wanted))).done
    blocks = r.model.requests[0].messages[0].blocks
    assert [type(b).__name__ for b in blocks] == ["Text", "EmbeddedResource", "Image"]
    assert [a.name for a in r.of(UserSaid)[0].attachments] == ["kb://a", "kb://pic", "kb://own"]
    with pytest.raises(UserFault):
        await r.host.submit(session, UserInput("look", resources=(("kb", "kb://gone"),)))


async def test_what_a_server_means_for_the_person_alone_never_reaches_the_model(rig):
    r = rig([[call("a.notes", "c1"), call("a.secret", "c2")], ["done"]])

    async def notes(_a, _p):
        return ToolOutcome(Outcome.OK, (
            Text("for you", ALONE), Text("for both", freeze({"audience": ["user", "assistant"]})),
            Text("plain"),
        ))  # fmt: skip

    async def secret(_a, _p):
        return ToolOutcome(Outcome.OK, (Text("for you", freeze({"audience": ["user"]})),))

    r.tools.add("a.notes", notes)
    r.tools.add("a.secret", secret)
    await r.say(await r.session())
    results = [b for b in r.model.requests[1].messages[-1].blocks if isinstance(b, ToolResult)]
    assert [b.text for b in results[0].content] == ["for both", "plain"]
    assert "for the person alone" in results[1].content[0].text
    assert len(r.of(ToolSettled)[0].content) == 3


async def test_of_a_long_result_the_important_part_is_kept(rig):
    r = rig([[call("a.long", "c1")], ["done"]])
    r.settings.settings = put(r.settings.settings, "tools.result_chars", 1000)

    async def long(_a, _p):
        return ToolOutcome(Outcome.OK, (
            Text("x" * 5000, freeze({"priority": 0.1})), Text("the point", freeze({"priority": 1.0})),
        ))  # fmt: skip

    r.tools.add("a.long", long)
    await r.say(await r.session())
    assert result(r).startswith("the point")


async def test_questions_of_a_call_are_counted_and_stopped(rig):
    r = rig([])
    session = await r.session()
    origin = Origin("s", session, "c1")
    form = FormRequest("name?", freeze({"type": "object", "properties": {}}))

    async def ask() -> str:
        return (await r.reviewer.elicit(origin, form)).action

    first = asyncio.create_task(ask())
    await r.until(lambda: len(r.of(AskRaised)) == 1)
    await r.host.answer(r.of(AskRaised)[0].ask.ask_id, Refuse())
    assert await first == "decline"
    second = asyncio.create_task(ask())
    await r.until(lambda: len(r.of(AskRaised)) == 2)
    asked = r.of(AskRaised)[1].ask
    assert isinstance(asked, FillForm) and asked.round == 2
    await r.host.answer(asked.ask_id, Refuse(stop=True))
    assert await second == "stop" and await ask() == "stop"
    assert len(r.of(AskRaised)) == 2 == len(r.of(AskSettled))
    other = asyncio.create_task(r.reviewer.elicit(Origin("s", session, "c2"), form))
    await r.until(lambda: len(r.of(AskRaised)) == 3)
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    assert r.of(AskSettled)[-1].action == "dismissed", "a server that cancels closes its dialog"


async def test_progress_tells_how_long_it_may_still_take(rig):
    r = rig([[call("a.slow", "c1")], ["done"]])

    async def slow(_a, progress):
        for done in (0, 25, 50):
            progress(Progress(done, 100))
            await r.until(lambda done=done: any(e.progress == done for e in r.of(ToolProgress)))
            await r.clock.advance(5)
        return ToolOutcome(Outcome.OK, (Text("ok"),))

    r.tools.add("a.slow", slow)
    await r.say(await r.session())
    left = [e.left_s for e in r.of(ToolProgress)]
    assert left == [None, 15.0, 10.0]
