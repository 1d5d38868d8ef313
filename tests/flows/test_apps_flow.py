"""Pages of servers (MCP Apps): what the model sees of them, what they may read, and the gate before what they call."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_host.app.compose import open_host
from desktop_host.core import apps
from desktop_host.core.asks import Allow, Refuse
from desktop_host.core.errors import PeerFault, UserFault
from desktop_host.core.events import AskRaised, PageSaid, ToolRequested, ToolSettled, ToolStarted
from desktop_host.core.messages import Outcome, Role, Text
from desktop_host.core.permissions import Effect, Life, Rule, Scope
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.toolkit import ToolRule
from desktop_host.core.tools import ToolGroup, ToolSpec
from desktop_host.core.transcript import NoticeEntry, ToolEntry, Transcript, fold_all
from desktop_host.core.values import EMPTY, freeze
from desktop_host.engine.host import Host, HostSpec
from desktop_host.engine.tickets import UserInput
from tests.fakes.servers.stage import HERE


def tool(**meta: object) -> ToolSpec:
    return ToolSpec("s", "t", meta=freeze(meta))


def test_a_tool_without_a_word_is_for_both_and_one_with_a_word_for_whom_it_names() -> None:
    assert apps.for_model(tool()) and apps.for_app(tool())
    assert not apps.for_model(tool(ui={"visibility": ["app"]})) and apps.for_app(tool(ui={"visibility": ["app"]}))
    assert apps.for_model(tool(ui={"visibility": ["model"]})) and not apps.for_app(tool(ui={"visibility": ["model"]}))


def test_only_an_address_of_the_servers_own_is_a_page() -> None:
    assert apps.page_of(tool(ui={"resourceUri": "ui://a/b"})) == "ui://a/b"
    assert apps.page_of(tool(**{"ui/resourceUri": "ui://old"})) == "ui://old"
    for wrong in ("https://x.example/", "javascript:alert(1)", 5, None, "ui://" + "x" * 3000):
        assert apps.page_of(tool(ui={"resourceUri": wrong})) is None
    assert apps.page_of(ToolSpec("s", "t")) is None


def test_a_page_may_load_what_it_asked_for_in_the_right_form_and_nothing_else() -> None:
    shut, none = apps.policy(None)
    assert none == ()
    for rule in (
        "default-src 'none'",
        "connect-src 'none'",
        "frame-src 'none'",
        "form-action 'none'",
        "base-uri 'none'",
    ):
        assert rule in shut.split("; ")
    asked = {"csp": {
        "connectDomains": ["https://api.example.com", "wss://*.live.example.com:8443", "http://plain.example.com",
                           "https://x.example; script-src *", "*", "'unsafe-eval'", "https://x/path", 7],
        "resourceDomains": ["https://cdn.example.com"], "frameDomains": "https://no.list",
    }}  # fmt: skip
    rules, origins = apps.policy(freeze({"ui": asked}))
    assert "connect-src https://api.example.com wss://*.live.example.com:8443" in rules.split("; ")
    assert "'unsafe-eval'" not in rules and "*;" not in rules and "plain.example" not in rules and "path" not in rules
    assert "script-src 'self' 'unsafe-inline' blob: https://cdn.example.com" in rules.split("; ")
    assert origins == ("https://cdn.example.com", "https://api.example.com", "wss://*.live.example.com:8443")


async def _answered(host: Host, answer: Allow | Refuse, asked: list[AskRaised]) -> None:
    reader = host.subscribe(lossless=True)
    try:
        async for batch in reader:
            for event in (s.event for s in batch):
                if isinstance(event, AskRaised):
                    asked.append(event)
                    await host.answer(event.ask.ask_id, answer)
    finally:
        reader.close()


@pytest.mark.parametrize(
    ("answer", "outcome", "asks"),
    [
        (Refuse(), Outcome.DENIED, 2),
        (Allow(), Outcome.OK, 2),
        (Allow(Life.SESSION, Scope.TOOL), Outcome.OK, 1),
    ],
)
async def test_a_page_is_read_and_its_calls_pass_the_gate(
    tmp_path: Path, answer: Allow | Refuse, outcome: Outcome, asks: int
) -> None:
    folder = tmp_path / "profiles/default"
    folder.mkdir(parents=True)
    entry = {"command": sys.executable, "args": [str(HERE / "pages.py")]}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"clock": entry}}))
    async with open_host(HostSpec(tmp_path)) as host:
        await host.servers.start("clock")
        session = await host.new_session()
        asked: list[AskRaised] = []
        person = asyncio.create_task(_answered(host, answer, asked))
        try:
            seen = {t.name for t in host.servers.session_tools(session)}  # type: ignore[attr-defined]
            assert seen == {"clock", "secret", "odd", "plain"}, "what is for pages alone the model does not see"
            assert [await host.apps.offered("clock", t) for t in ("clock", "wind", "plain")] == [True, False, False]
            page = await host.apps.page("clock", "clock")
            assert page is not None and "<h1>Clock</h1>" in page.html
            assert page.origins == ("https://api.example.com",)
            assert await host.apps.page("clock", "wind") is None
            with pytest.raises(PeerFault):
                await host.apps.page("clock", "odd")
            for _ in range(2):
                got = await host.apps.call(session, "clock", "wind", EMPTY)
                assert got.outcome is outcome
            words = [b.text for b in got.content if isinstance(b, Text)]
            assert words == (["wind ran"] if outcome is Outcome.OK else ["The person did not allow this call."])
            assert len(asked) == asks and asked[0].ask.server == "clock"
            for name in ("secret", "no-such"):
                with pytest.raises(UserFault):
                    await host.apps.call(session, "clock", name, EMPTY)
            assert len(asked) == asks, "what pages may not call nobody is asked about"
        finally:
            person.cancel()
            await asyncio.wait({person})


@pytest.mark.parametrize("shown", [False, True])
async def test_servers_are_told_of_pages_only_where_they_can_be_shown(
    tmp_path: Path, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop_host.ui.web_scheme.available", lambda: shown)
    folder = tmp_path / "profiles/default"
    folder.mkdir(parents=True)
    entry = {"command": sys.executable, "args": [str(HERE / "pages.py")]}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"clock": entry}}))
    async with open_host(HostSpec(tmp_path)) as host:
        await host.servers.start("clock")
        hello = next(f.message for f in host.servers.trace("clock") if f.message.get("method") == "initialize")
        extensions = hello["params"]["capabilities"]["extensions"]
        assert (apps.EXTENSION in extensions) is shown
        if shown:
            assert extensions[apps.EXTENSION] == {"mimeTypes": (apps.MIME,)}
        got = await host.servers.call_tool("clock", "clock", EMPTY)
        assert [b.text for b in got.content if isinstance(b, Text)] == ["clock ran"], "the text is there in any case"


def _placed(tmp_path: Path, replies: list[list[dict[str, object]]]) -> None:
    folder = tmp_path / "profiles/default"
    folder.mkdir(parents=True, exist_ok=True)
    entry = {"command": sys.executable, "args": [str(HERE / "pages.py")]}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"clock": entry}}))
    (tmp_path / "script.json").write_text(json.dumps(replies))


async def _said(host: Host, session: str, text: str) -> None:
    await (await host.submit(session, UserInput(text))).done


async def _told(host: Host, session: str) -> str:
    actor = host._sessions.find(session)
    assert actor is not None
    return "\n".join(m.text for m in actor.context.conversation.messages() if m.role is Role.USER)


async def test_what_a_page_did_stands_in_the_chat_and_the_model_hears_of_it_with_the_next_message(
    tmp_path: Path,
) -> None:
    _placed(tmp_path, [[{"text": "hello"}], [{"text": "I see"}], [{"text": "still"}]])
    allow = (Rule(Effect.ALLOW, "clock.*"),)
    async with open_host(HostSpec(tmp_path)) as host:
        await host.servers.start("clock")
        session = await host.new_session(SessionOptions(model=f"script:{tmp_path / 'script.json'}", rules=allow))
        await _said(host, session, "hi")
        both = await host.apps.call(session, "clock", "clock", freeze({"zone": "UTC"}), "clock")
        alone = await host.apps.call(session, "clock", "wind", freeze({"turns": 3}), "clock")
        assert (both.outcome, alone.outcome) == (Outcome.OK, Outcome.OK)
        said = PageSaid("c1", "clock", "clock", "noon", freeze({"hour": 12}))
        with pytest.raises(UserFault):
            await host.apps.told(session, said)
        host.apps.let_speak(session, "clock")
        await host.apps.told(session, replace(said, text="morning"))
        await host.apps.told(session, said)
        with pytest.raises(UserFault):
            await host.apps.told(session, replace(said, text="x" * 30_000))
        assert "noon" not in await _told(host, session), "not before the person says something"
        await _said(host, session, "what time is it?")
        told = await _told(host, session)
        assert '"called":"clock.clock"' in told and '"zone":"UTC"' in told and "clock ran" in told
        assert "wind" not in told, "what is for pages alone the model does not hear of"
        assert '"says":"noon"' in told and "morning" not in told, "the newest counts"
        assert told.index("noon") < told.index("what time is it?")
        await _said(host, session, "and now?")
        assert (await _told(host, session)).count("noon") == 1, "it is told once"
        rows = fold_all(Transcript(), await host.history.read(session)).entries
        cards = [r for r in rows if isinstance(r, ToolEntry)]
        assert [(c.tool, c.page, c.outcome) for c in cards] == [
            ("clock", "clock.clock", Outcome.OK), ("wind", "clock.clock", Outcome.OK),
        ]  # fmt: skip
        (notice,) = [r for r in rows if isinstance(r, NoticeEntry) and r.code == "page_said"]
        assert notice.params["text"] == "noon"
    async with open_host(HostSpec(tmp_path)) as host:
        await host._sessions.actor(session)
        assert await _told(host, session) == f"{told}\nand now?", "the same after a restart"


async def test_a_page_cannot_change_what_the_person_has_fixed_nor_use_a_group_that_is_off(tmp_path: Path) -> None:
    _placed(tmp_path, [[{"text": "hello"}]])
    async with open_host(HostSpec(tmp_path)) as host:
        await host.servers.start("clock")
        session = await host.new_session(SessionOptions(rules=(Rule(Effect.ALLOW, "clock.*"),)))
        await host.toolkit.put_group(ToolGroup("off", patterns=("clock.plain",), enabled=False))
        await host.toolkit.put_rule(ToolRule("clock.wind", preset=freeze({"turns": 1})))
        await host.apps.call(session, "clock", "wind", freeze({"turns": 9, "how": "slow"}), "clock")
        off = await host.apps.call(session, "clock", "plain", EMPTY, "clock")
        assert off.outcome is Outcome.ERROR and "switched off" in str(off.content)
        calls = [f.message["params"] for f in host.servers.trace("clock") if f.message.get("method") == "tools/call"]
        assert [(c["name"], c["arguments"]) for c in calls] == [("wind", freeze({"turns": 1, "how": "slow"}))]


async def test_a_call_of_a_page_that_a_dead_host_left_open_is_closed_and_a_stopped_one_is_settled(
    tmp_path: Path,
) -> None:
    _placed(tmp_path, [[{"text": "hello"}]])
    async with open_host(HostSpec(tmp_path)) as host:
        await host.servers.start("clock")
        session = await host.new_session()
        actor = await host._sessions.actor(session)
        asked = ToolRequested("app-dead", "clock", "wind", "clock__wind", EMPTY, Effect.ALLOW, page="clock.clock")
        await actor.context.emit(asked, ToolStarted("app-dead"))
        reader = host.subscribe(lossless=True)
        waiting = asyncio.create_task(host.apps.call(session, "clock", "wind", EMPTY, "clock"))
        async for batch in reader:
            if any(isinstance(s.event, AskRaised) for s in batch):
                break
        reader.close()
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled() and actor.context.page_calls == 0
        assert list(actor.context.conversation.pages.open) == ["app-dead"]
    async with open_host(HostSpec(tmp_path)) as host:
        await host._sessions.actor(session)
        ends = [s.event for s in await host.history.read(session) if isinstance(s.event, ToolSettled)]
        assert [e.outcome for e in ends] == [Outcome.CANCELLED, Outcome.UNKNOWN]


async def test_a_rule_that_denies_holds_for_what_is_run_by_hand_or_sent_again(tmp_path: Path) -> None:
    _placed(tmp_path, [[{"text": "hello"}]])
    (tmp_path / "profiles/default/settings.toml").write_text(
        '[[rules]]\npattern = "clock.wind"\neffect = "deny"\n[tools]\npermission = "deny"\n'
    )
    async with open_host(HostSpec(tmp_path)) as host:
        await host.servers.start("clock")
        denied = await host.call_by_hand("clock", "wind", EMPTY)
        assert denied.outcome is Outcome.DENIED and "rule" in str(denied.content)
        with pytest.raises(UserFault) as caught:
            await host.resend("clock", "tools/call", freeze({"name": "wind", "arguments": {}}))
        assert caught.value.params == {"reason": "denied_by_rule", "name": "clock.wind"}
        assert (await host.call_by_hand("clock", "clock", EMPTY)).outcome is Outcome.OK, "a default is for models"
        again = await host.resend("clock", "tools/call", freeze({"name": "clock", "arguments": {}}))
        assert again["content"][0]["text"] == "clock ran"
        assert (await host.resend("clock", "tools/list", EMPTY))["tools"]
        calls = [f.message["params"]["name"] for f in host.servers.trace("clock")
                 if f.message.get("method") == "tools/call"]  # fmt: skip
        assert calls == ["clock", "clock"]
