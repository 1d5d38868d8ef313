"""Pages of servers (MCP Apps): what the model sees of them, what they may read, and the gate before what they call."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from desktop_host.app.compose import open_host
from desktop_host.core import apps
from desktop_host.core.asks import Allow, Refuse
from desktop_host.core.errors import PeerFault, UserFault
from desktop_host.core.events import AskRaised
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.permissions import Life, Scope
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, freeze
from desktop_host.engine.host import Host, HostSpec
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
