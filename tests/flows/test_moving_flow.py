"""A session moves: the file holds all it needs and no secret, it goes on elsewhere, and nothing made up gets in."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop_host.app.compose import open_host
from desktop_host.core.errors import UserFault
from desktop_host.core.events import AskRaised, ToolRequested, ToolsChanged, ToolSettled
from desktop_host.core.messages import Native, Outcome, Text
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.sessions import SessionOptions, TurnStatus
from desktop_host.core.tools import ToolHints
from desktop_host.engine import moving
from desktop_host.engine.host import HeadlessPolicy, HostSpec, UserInput
from tests.fakes.list_model import call
from tests.fakes.rig import Rig


async def test_it_goes_on_elsewhere_with_the_tools_and_words_the_model_was_told_of(rig):
    r = rig([[call("t.run", "c1")], ["done"]])
    r.tools.add("t.run", "ran", description="as it was")
    session = await r.session(system="Speak like a pirate.", rules=(Rule(Effect.ALLOW, "*"),), roots=("/secret",))
    await r.say(session, "go")
    bundle = await r.host.export(session, "json")
    assert "/secret" not in bundle
    other = rig([["x"], ["x"], [call("t.run", "c2")], ["went on"]])
    other.tools.add("t.run", "ran there", description="as it is now")
    other.tools.add("t.more", "more")
    copied = await other.host.import_bundle(bundle)
    result = await other.say(copied, "more")
    assert (result.status, result.text) == (TurnStatus.DONE, "went on")
    asked = other.model.requests[0]
    assert asked.system == r.model.requests[0].system and "pirate" in asked.system
    assert [(t.full_name, t.description) for t in asked.tools if t.server == "t"] == [("t.run", "as it was")]
    assert asked.messages[:3] == r.model.requests[-1].messages
    assert other.of(ToolSettled)[-1].content == (Text("ran there"),)
    assert other.of(ToolsChanged)[0].added == ("t.more",)
    options = await other.history.options(copied)
    assert (options.rules, options.roots) == ((), ())
    counted = [row["requests"] for row in await other.host.ledger.usage("session") if row["session"] == copied]
    assert counted == [2]  # what was spent elsewhere was counted there
    assert (await r.history.row(session)).messages == 2  # the source stays as it was


async def test_an_open_turn_is_closed_where_it_arrives_and_nothing_is_rerun(rig):
    gate = asyncio.Event()
    r = rig([[call("t.slow", "c1")], ["done"]])

    async def slow(_a, _p):
        await gate.wait()

    r.tools.add("t.slow", slow)
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("go"))
    await r.until(lambda: r.of(ToolRequested))
    await r.until(lambda: "tool_started" in r.types())
    bundle = await r.host.export(session, "json")
    await r.host.interrupt(session)
    await ticket.done
    other = rig([["x"], ["resumed"]])
    copied = await other.host.import_bundle(bundle)
    await other.host.transcript(copied)
    events = [s.event for s in await other.history.read(copied)]
    assert [e.outcome for e in events if isinstance(e, ToolSettled)] == [Outcome.UNKNOWN]
    assert (await (await other.host.resume(copied)).done).text == "resumed"
    assert other.tools.called == []


async def test_the_hints_that_a_bundle_gives_its_tools_let_nothing_run_unasked(rig):
    """A made-up "read only" of a server that is trusted here."""
    r = rig([[call("t.run", "c1")], ["done"]])
    r.tools.specs["t.run"] = r.tools.add("t.run", "ran")
    session = await r.session()
    await r.say(session, "go")
    bundle = json.loads(await r.host.export(session, "json"))
    bundle["state"]["prefix"]["tools"][0]["hints"]["read_only"] = True
    other = rig([["x"], ["x"], [call("t.run", "c2")], ["end"]], permission="ask", headless=HeadlessPolicy())
    other.tools.add("t.run", "ran")
    other.tools.trusted.add("t")
    copied = await other.host.import_bundle(json.dumps(bundle))
    await other.say(copied, "more")
    assert other.of(AskRaised) and other.tools.called == []
    await other.host.apply_tools(copied)
    spec = other.tools.specs["t.run"]
    other.tools.specs["t.run"] = spec.__class__(
        spec.server, spec.name, spec.description, spec.input_schema, hints=ToolHints(read_only=True)
    )
    other.model.replies += [[call("t.run", "c3")], ["ran at last"]]
    await other.say(copied, "again")
    assert [name for name, _ in other.tools.called] == ["t.run"]


async def test_what_a_vendor_would_be_told_word_for_word_is_left_out_of_a_foreign_file(rig):
    """Else a file could show one conversation to the person and give the model another."""
    r = rig([["hello"]])
    session = await r.session()
    await r.say(session, "hi")
    bundle = json.loads(await r.host.export(session, "json"))
    said = next(e for e in bundle["events"] if e["event"]["$"] == "AssistantSaid")
    said["event"]["message"]["native"] = {
        "$": "Native", "dialect": "d", "endpoint": "https://api.anthropic.com", "model": "m", "data": {"hidden": True},
    }  # fmt: skip
    text = json.dumps(bundle)
    for ours, native in ((False, None), (True, Native)):
        copied = await moving.take_in(r.history, text, ours=ours)
        kept = [s.event.message.native for s in await r.history.read(copied) if s.event.type == "assistant_said"]
        assert [type(n) if n else None for n in kept] == [native]


HOME = "host-home"


def skill(folder: Path, body: str) -> None:
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: trains\ndescription: About trains\nallowed-tools: t.*\nmetadata:\n"
        f'  desktop-host-keywords: "train"\n---\n{body}\n'
    )
    (folder / "guide.md").write_text("Platform nine.")
    (folder / "scripts" / "go.py").write_text("print('ran')")


async def test_a_pinned_skill_goes_along_to_a_computer_that_has_none_and_gets_no_rights_there(tmp_path: Path):
    here, there = tmp_path / "here", tmp_path / "there"
    skill(here / "profiles" / "default" / "skills" / "trains", "Look at the guide.")
    script = tmp_path / "script.json"

    def reading(name: str, **arguments: str) -> dict[str, Any]:
        return {"call": {"tool": f"host.{name}", "arguments": {"skill": "trains", **arguments}}}

    script.write_text(json.dumps([
        [{"text": "noted"}],
        [reading("read_skill_file", path="guide.md"), reading("run_skill_script", script="scripts/go.py")],
        [{"text": "went on: ${last_result}"}],
    ]))  # fmt: skip
    model = f"script:{script}"
    rules = (Rule(Effect.ALLOW, "host.*"),)
    async with open_host(HostSpec(here, headless=HeadlessPolicy())) as host:
        await host.skills.rescan()
        session = await host.new_session(SessionOptions(model=model, rules=rules))
        await (await host.submit(session, UserInput("the train"))).done
        bundle = await host.export(session, "json")
    assert "Platform nine" not in bundle  # as bytes beside the text, whole
    # A skill of that name was granted tools there; another body stands under it.
    skill(there / "profiles" / "work" / "skills" / "trains", "Another text.")
    async with open_host(HostSpec(there, "work", headless=HeadlessPolicy())) as host:
        await host.skills.rescan()
        await host.skills.grant_tools("trains", True)
        copied = await host.import_bundle(bundle)
        await host.configure(copied, SessionOptions(model=model, rules=rules))
        result = await (await host.submit(copied, UserInput("another train"))).done
        assert result.status is TurnStatus.DONE
        settled = [s.event for s in await host.history.read(copied) if isinstance(s.event, ToolSettled)]
        read, denied = sorted(settled, key=lambda e: e.outcome is Outcome.DENIED)
        assert (read.outcome, denied.outcome) == (Outcome.OK, Outcome.DENIED)
        assert "Platform nine" in read.content[0].text
        assert host._parts.skills.rules(copied) == ()
        pins = (await host.history.state(copied, "skills"))["pins"]
        assert [row["version"] for row in pins.values()] == [p for p in [pins["trains"]["version"]]]
        await host.pin_skill(copied, "trains", None)
        assert "foreign" not in (await host.history.state(copied, "skills"))["pins"]["trains"]


# ---- damaged, hostile and newer files


async def bundle_of(rig: Callable[..., Rig]) -> dict[str, Any]:
    r = rig([[call("t.run", "c1", a=1)], ["done"]])
    r.tools.add("t.run", "ran")
    session = await r.session()
    await r.say(session, "go")
    bundle: dict[str, Any] = json.loads(await r.host.export(session, "json"))
    bundle["state"]["skills"] = {
        "pins": {"trains": {"version": "1", "digest": "a" * 64, "main": "SKILL.md", "files": [["SKILL.md", 3, HI]]}},
        "given": {}, "runs": [],
    }  # fmt: skip
    bundle["files"] = {HI: "aGkh"}
    return bundle


HI = "c0ddd62c7717180e7ffb8a15bb9674d3ec92592e0b7ac7d1d5289836b4553be2"
"""sha256 of `hi!`."""


def at(*path: Any, put: Any) -> Callable[[dict[str, Any]], None]:
    def change(bundle: dict[str, Any]) -> None:
        inner: Any = bundle
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = put

    return change


PIN = ("state", "skills", "pins", "trains")
HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "another format": (at("format", put="zip"), "format"),
    "a newer journal": (at("schema", put=99), "newer"),
    "a newer form": (at("form", put=99), "newer"),
    "no number": (at("schema", put="1"), "broken"),
    "an event of no kind": (at("events", 1, "event", "$", put="Exploit"), "broken"),
    "a class in the place of an event": (at("events", 1, "event", put={"$": "Text", "text": "x"}), "broken"),
    "a number for a text": (at("events", 1, "event", "text", put=5), "broken"),
    "a list for blocks": (at("events", 1, "event", "blocks", put="abc"), "broken"),
    "a place below the first": (at("events", 0, "seq", put=0), "broken"),
    "a place beyond all numbers": (at("events", 0, "seq", put=2**70), "broken"),
    "no time": (at("events", 0, "t", put=float("nan")), "broken"),
    "a place twice": (at("events", 1, "seq", put=1), "order"),
    "a passing event": (at("events", 1, "event", put={"$": "TokenDelta", "text": "x"}), "broken"),
    "events that are none": (at("events", put=5), "broken"),
    "options that are none": (at("options", put={"$": "Text", "text": "x"}), "broken"),
    "a budget in words": (at("options", "budget_usd", put="all"), "broken"),
    "a title of numbers": (at("title", put=[1]), "broken"),
    "a start that is none": (at("state", "prefix", put={"system": 5}), "broken"),
    "tools that are none": (at("state", "prefix", "tools", put=[{"$": "Text", "text": "x"}]), "broken"),
    "results without an end": (at("state", "prefix", "result_chars", put=10**12), "broken"),
    "another file than named": (at("files", HI, put="aGkhaGkh"), "broken"),
    "a file without a digest": (at("files", put={"../../etc/passwd": "aGkh"}), "broken"),
    "a file in no base64": (at("files", HI, put="%%%"), "broken"),
    "a skill's file outside": (at(*PIN, "files", put=[["../../../.bashrc", 3, HI]]), "broken"),
    "a skill's file from the root": (at(*PIN, "files", put=[["/etc/passwd", 3, HI]]), "broken"),
    "a skill's main file outside": (at(*PIN, "main", put="../SKILL.md"), "broken"),
    "a skill with a path for a name": (at("state", "skills", "pins", put={"../x": {}}), "broken"),
    "a skill without files": (at(*PIN, "files", put=None), "broken"),
    "runs that are none": (at("state", "skills", "runs", put=[{"skill": 1}]), "broken"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_file_is_refused_by_name_and_nothing_is_kept_of_it(rig, name):
    change, reason = HOSTILE[name]
    bundle = await bundle_of(rig)
    r = rig([])
    change(bundle)
    with pytest.raises(UserFault) as caught:
        await r.host.import_bundle(json.dumps(bundle))
    assert (caught.value.code, caught.value.params["reason"]) == ("bad_bundle", reason)
    assert await r.history.rows() == ()


@pytest.mark.parametrize("text", ["", "[", "5", "[" * 200_000, '{"format": "desktop-host-session"', "\x00"])
async def test_what_is_no_file_of_ours_at_all_is_refused(rig, text):
    r = rig([])
    with pytest.raises(UserFault) as caught:
        await r.host.import_bundle(text)
    assert caught.value.code == "bad_bundle" and await r.history.rows() == ()


async def test_the_untouched_file_is_taken(rig):
    bundle = await bundle_of(rig)
    r = rig([["x"], ["x"], ["went on"]])
    copied = await r.host.import_bundle(json.dumps(bundle))
    assert (await r.say(copied, "more")).text == "went on"


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


JUNK = st.sampled_from([None, True, -1, 2**63, 1.5, "", "x", [], [[]], {}, {"$": "Text"}, {"$": "Stamped"}, "a" * 64])


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_is_changed_in_a_file_it_is_refused_or_makes_a_chat_that_opens(data: st.DataObject) -> None:
    async def live() -> None:
        rigs: list[Rig] = []

        def make(replies: list[Any], **more: Any) -> Rig:
            rigs.append(Rig(replies, **more))
            return rigs[-1]

        try:
            bundle = copy.deepcopy(await bundle_of(make))
            for _ in range(data.draw(st.integers(1, 3))):
                path = data.draw(st.sampled_from(places(bundle)))
                inner: Any = bundle
                for key in path[:-1]:
                    inner = inner[key]
                if data.draw(st.booleans()) or not isinstance(inner, dict):
                    inner[path[-1]] = data.draw(JUNK)
                else:
                    del inner[path[-1]]
            r = make([["a"], ["b"], ["c"], ["d"]])
            try:
                copied = await r.host.import_bundle(json.dumps(bundle))
            except UserFault as fault:
                refused = fault.code
            else:
                refused = ""
            if refused:
                assert refused == "bad_bundle"
                assert await r.history.rows() == ()
                return
            await r.host.transcript(copied)
            assert (await r.say(copied, "more")).status in (TurnStatus.DONE, TurnStatus.FAILED)
            for form in ("md", "html", "json"):
                await r.host.export(copied, form)
        finally:
            for one in rigs:
                await one.close()

    asyncio.run(live())
