"""Telemetry of whole turns on the real host: a real collector on loopback, real servers of both eras."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from desktop_host.app.compose import open_host
from desktop_host.core.diagnosis import Finding
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.sessions import SessionOptions, TurnStatus
from desktop_host.diagnostics import telemetry, telemetry_sending
from desktop_host.engine.host import HeadlessPolicy, Host, HostSpec, UserInput
from tests.fakes.collector import Collector, Seen

SERVERS = Path(__file__).parent.parent / "fakes" / "servers"
INTERNAL, CLIENT = 1, 3
PRIVATE = "the whale is 52 years old"
SECRET = "hush-0123456789-hush"


def home(tmp_path: Path, *replies: list[dict[str, Any]], **settings: Any) -> tuple[HostSpec, str]:
    """A profile with a legacy and a modern server, and a scripted model."""
    folder = tmp_path / "profiles" / "default"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["[telemetry]", *(f"{key} = {json.dumps(value)}" for key, value in settings.items())]
    (folder / "settings.toml").write_text("\n".join([*lines, "[tools]", 'permission = "allow"', ""]))
    servers = {
        "small": {"command": sys.executable, "args": [str(SERVERS / "small.py")]},
        "modern": {"command": sys.executable, "args": [str(SERVERS / "modern.py")]},
    }
    (folder / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    script = tmp_path / "script.json"
    script.write_text(json.dumps(replies))
    return HostSpec(tmp_path, headless=HeadlessPolicy()), f"script:{script}"


async def say(host: Host, model: str, text: str = PRIVATE, *servers: str) -> tuple[str, Any]:
    rules = (Rule(Effect.ALLOW, "*"),)
    session = await host.new_session(SessionOptions(model=model, servers=servers, rules=rules))
    return session, await (await host.submit(session, UserInput(text))).done


async def set_up(host: Host) -> None:
    """Wait until what was switched on is ready."""
    async with asyncio.timeout(20):
        while (making := host._parts.tracing._making) is not None:  # type: ignore[attr-defined]
            await asyncio.wait({making})


async def ill(host: Host) -> Finding:
    """Wait until the check is not well."""
    async with asyncio.timeout(20):
        while True:
            found = (await host.diagnostics.run(("telemetry",)))[0]
            if not found.ok:
                return found
            await asyncio.sleep(0.05)


def one(spans: list[Seen], name: str) -> Seen:
    found = [span for span in spans if span.name == name]
    assert len(found) == 1, [span.name for span in spans]
    return found[0]


async def test_a_turn_its_model_requests_and_its_tool_calls_are_one_trace_to_the_servers(tmp_path: Path) -> None:
    with Collector() as collector:
        calls = [
            {"call": {"tool": "small.echo", "arguments": {"text": SECRET}}},
            {"call": {"tool": "small.fail", "arguments": {}}},
            {"call": {"tool": "modern.echo", "arguments": {"m": "x"}}},
            {"usage": {"input": 120, "output": 7, "cost_usd": 0.25}},
        ]
        spec, model = home(tmp_path, calls, [{"text": "done"}], on=True, endpoint=collector.url)
        async with open_host(spec) as host:
            session, result = await say(host, model, PRIVATE, "small", "modern")
            frames = {name: host.servers.trace(name) for name in ("small", "modern")}
        assert result.status is TurnStatus.DONE
        spans = collector.spans
        turn = one(spans, "invoke_agent Desktop Host")
        assert (turn.kind, turn.parent, turn.attributes["desktop_host.turn.status"]) == (INTERNAL, "", "done")
        assert turn.attributes["gen_ai.conversation.id"] == session
        chats = [span for span in spans if span.name == "chat script"]
        assert [c.parent for c in chats] == [turn.id] * 2 and {c.trace for c in spans} == {turn.trace}
        first = chats[0].attributes
        assert first["gen_ai.usage.input_tokens"] == 120 and first["gen_ai.usage.output_tokens"] == 7
        assert first["desktop_host.cost_usd"] == 0.25 and first["gen_ai.response.finish_reasons"] == ["tool_calls"]
        tools = [span for span in spans if span.name.startswith("tools/call ")]
        assert sorted((t.attributes["desktop_host.server"], t.attributes["gen_ai.tool.name"]) for t in tools) == [
            ("modern", "echo"), ("small", "echo"), ("small", "fail"),
        ]  # fmt: skip
        assert all(t.kind == CLIENT and t.parent == turn.id for t in tools)
        assert all(t.attributes["mcp.method.name"] == "tools/call" for t in tools)
        eras = {t.attributes["desktop_host.server"]: t.attributes["mcp.protocol.version"] for t in tools}
        assert eras["modern"] == "2026-07-28" and eras["small"] < "2026"
        failed = one(spans, "tools/call fail")
        assert failed.failed and failed.attributes["error.type"] == "tool_error"
        for name, wire in frames.items():
            sent = [f.message for f in wire if f.message.get("method") == "tools/call"]
            told = {m["params"]["_meta"]["traceparent"] for m in sent}
            ids = {t.id for t in tools if t.attributes["desktop_host.server"] == name}
            assert {t.split("-")[1] for t in told} == {turn.trace} and {t.split("-")[2] for t in told} == ids
        assert all(s.resource["service.name"] == "desktop-host" for s in spans)
        whole = b"".join(collector.raw)
        for private in (PRIVATE, SECRET, str(tmp_path), socket.gethostname()):
            assert private.encode() not in whole, private


async def test_what_was_said_goes_along_only_if_that_is_switched_on_and_without_secrets(tmp_path: Path) -> None:
    """Hazard O137."""
    with Collector() as collector:
        replies = [{"call": {"tool": "small.echo", "arguments": {"text": SECRET}}}], [{"text": "fine"}]
        spec, model = home(tmp_path, *replies, on=True, endpoint=collector.url, content=True)
        (tmp_path / "pass").write_text("word")
        async with open_host(spec, passphrase=_passphrase) as host:
            await host.secrets.put("crm", SECRET)
            await say(host, model, f"{PRIVATE} {SECRET}", "small")
        turn = next(s for s in collector.spans if s.name == "chat script")
        assert PRIVATE in turn.attributes["gen_ai.input.messages"]
        call = one(collector.spans, "tools/call echo").attributes
        assert "[secret]" in call["gen_ai.tool.call.arguments"] and "[secret]" in call["gen_ai.tool.call.result"]
        assert SECRET.encode() not in b"".join(collector.raw)


async def _passphrase() -> str:
    return "correct horse battery"


async def test_it_is_off_until_switched_on_and_then_needs_no_restart(tmp_path: Path, monkeypatch) -> None:
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.removesuffix("/v1/traces"))
        spec, model = home(tmp_path, *[[{"text": "hi"}]] * 3)
        async with open_host(spec) as host:
            await say(host, model)
            found = (await host.diagnostics.run(("telemetry",)))[0]
            assert (found.ok, found.say) == (True, "doctor.say.telemetry_off")
            await host.settings.set("telemetry.on", True)
            await say(host, model)  # sets it up beside the turn
            await set_up(host)
            await say(host, model)
        turns = [s for s in collector.spans if s.name.startswith("invoke")]
        # The turn that saw the switch may be told of in part; the first, before it, is not.
        assert len(turns) == 1 and len({s.trace for s in collector.spans}) <= 2


@pytest.mark.parametrize("kind", ["dead", "silent", "refusing"])
async def test_a_collector_that_does_not_answer_costs_no_turn_and_no_quit(tmp_path: Path, kind: str) -> None:
    with socket.socket() as silent, Collector(503) as refusing:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        if kind == "silent":
            silent.listen(8)
        url = refusing.url if kind == "refusing" else f"http://127.0.0.1:{port}/v1/traces"
        spec, model = home(tmp_path, *[[{"text": "hi"}]] * 2, on=True, endpoint=url)
        async with open_host(spec) as host:
            for _ in range(2):
                began = time.monotonic()
                _, result = await say(host, model)
                assert result.status is TurnStatus.DONE and time.monotonic() - began < telemetry_sending.SEND_S
            if kind == "dead":
                assert (await ill(host)).place == url
            closing = time.monotonic()
        assert time.monotonic() - closing < telemetry.CLOSE_S + 4


async def test_headers_of_the_environment_go_to_their_own_address_only(tmp_path: Path, monkeypatch) -> None:
    """Hazard O139."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"x-api-key={SECRET}")
    with Collector() as own, Collector() as theirs:
        spec, model = home(tmp_path / "a", [{"text": "hi"}], on=True, endpoint=own.url)
        async with open_host(spec, passphrase=_passphrase) as host:
            await host.secrets.put("telemetry", "x-team=blue")
            await say(host, model)
        async with open_host(spec, passphrase=_passphrase) as host:
            await say(host, model)
        assert all(SECRET not in str(h) for h in own.headers) and own.headers[-1]["x-team"] == "blue"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", theirs.url)
        spec, model = home(tmp_path / "b", [{"text": "hi"}], on=True)
        async with open_host(spec) as host:
            await say(host, model)
        assert theirs.headers[0]["x-api-key"] == SECRET
