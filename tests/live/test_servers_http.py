"""The supervisor over HTTP: failures stay with their call, secrets with their origin."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.messages import Outcome
from desktop_host.core.servers import Http, Protocol, ServerConfig, ServerScope, ServerState, Sse, Timeouts
from desktop_host.core.values import FrozenDict
from desktop_host.servers.records import MASK
from tests.fakes.memory_vault import MemoryVault
from tests.fakes.servers.stage import stage, text, until
from tests.fakes.servers.web import Web

pytestmark = pytest.mark.live
LIMITS = Timeouts(connect_s=10, call_s=10, call_max_s=30)


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as made:
        yield made


def at(web: Web, **changes: Any) -> ServerConfig:
    return ServerConfig(
        "web",
        Http(web.url, FrozenDict(changes.pop("headers", {}))),
        timeouts=changes.pop("timeouts", LIMITS),
        **changes,
    )


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Missing session ID"}}'),
        (400, "Bad Request: no valid session"),
        (406, "{}"),
        (500, "oops"),
        (404, "not here"),
    ],
)
async def test_whatever_answers_the_probe_the_handshake_follows(
    tmp_path: Path, web: Web, status: int, body: str
) -> None:
    """Hazard E56."""
    web.probe_status, web.probe_body = status, body
    async with stage(tmp_path, at(web)) as s:
        assert s.servers.status("web").era == "2025-11-25"
        assert text(await s.call("web", "echo", m="hi")) == "hi"


async def test_a_call_whose_connection_breaks_fails_alone(tmp_path: Path, web: Web) -> None:
    """Hazard D41."""
    async with stage(tmp_path, at(web)) as s:
        slow = asyncio.create_task(s.call("web", "slow", s=0.6, call_id="c2"))
        await until(lambda: web.calls("slow"))
        for tool in ("hang_up", "cut_json"):
            outcome = await s.call("web", tool)
            assert outcome.outcome is Outcome.ERROR
            assert "Error" in text(outcome)
        assert text(await slow) == "slow"
        assert text(await s.call("web", "echo", m="still")) == "still"
        assert len(web.sessions) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}'),
        (404, ""),
        (400, '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID"}}'),
        (400, "no such session"),
    ],
)
async def test_a_server_that_forgot_the_session_is_met_anew_and_the_call_sent_once_more(
    tmp_path: Path, web: Web, status: int, body: str
) -> None:
    web.lost_status, web.lost_body = status, body
    async with stage(tmp_path, at(web)) as s:
        web.forget_sessions()
        outcomes = await asyncio.gather(*(s.call("web", "echo", m=str(n), call_id=f"c{n}") for n in range(4)))
        assert [text(o) for o in outcomes] == ["0", "1", "2", "3"]
        assert len(web.sessions) == 1
        assert s.servers.status("web").restarts == 0


async def test_a_server_out_of_reach_is_told_and_comes_back(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        with Web() as first:
            port = first.port
            s = await stack.enter_async_context(stage(tmp_path, at(first), scale=0.5))
        outcome = await s.call("web", "echo")
        assert outcome.raw["host_error"] == "server_lost"
        await until(lambda: "waiting" in s.states("web"))
        error = s.servers.status("web").error
        assert error is not None
        assert (error.code, error.remedy) == ("server_lost", "remedy.server.unreachable")
        assert "could not be reached" in error.message
        with Web(port) as again:
            assert text(await s.call("web", "echo", m="back")) == "back"
            assert again.sessions


async def test_an_address_where_nobody_listens_is_reported(tmp_path: Path) -> None:
    with Web() as web:
        pass
    async with stage(tmp_path, at(web), scale=0.02) as s:
        await s.until_state("web", ServerState.FAILED)
        error = s.servers.status("web").error
        assert error is not None
        assert (error.code, error.remedy) == ("network", "remedy.server.unreachable")


async def test_a_server_that_wants_credentials_needs_auth_and_is_not_stormed(tmp_path: Path, web: Web) -> None:
    """Hazard D47."""
    web.status = 401
    async with stage(tmp_path, at(web)) as s:
        status = s.servers.status("web")
        assert status.state is ServerState.NEEDS_AUTH
        assert status.error is not None
        assert (status.error.code, status.error.remedy) == ("auth", "remedy.server.sign_in.sign_in_needed")
        count = len(web.requests)
        await asyncio.sleep(0.3)
        assert len(web.requests) == count <= 4


async def test_headers_with_secrets_reach_their_origin_and_no_other(tmp_path: Path, web: Web) -> None:
    """Hazards A7, O136."""
    vault = MemoryVault({"web": "tok-12345678"})
    config = at(web, headers={"Authorization": "Bearer ${keyring:web}"})
    with Web() as other:
        async with stage(tmp_path, config, vault=vault) as s:
            said = text(await s.call("web", "headers"))
            got = {k.lower(): v for _, headers, _ in web.requests for k, v in headers.items()}
            assert got["authorization"] == "Bearer tok-12345678"
            assert "tok-12345678" not in said and MASK in said, "what it says of it is masked"
            assert "tok-12345678" not in str(s.servers.trace("web")) + str(s.servers.logs("web"))
            web.redirect = other.url
            outcome = await s.call("web", "echo")
            assert outcome.outcome is Outcome.ERROR
            assert other.requests == []
            assert "tok-12345678" not in f"{s.servers.trace('web')}{s.servers.logs('web')}{s.servers.statuses()}"


async def test_this_machine_is_never_reached_through_a_proxy(
    tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with stage(tmp_path, at(web)) as s:
        assert s.servers.status("web").state is ServerState.READY


async def test_an_event_of_two_megabytes_passes(tmp_path: Path, web: Web) -> None:
    async with stage(tmp_path, at(web)) as s:
        assert len(text(await s.call("web", "event", m="0123456789", times=200_000))) == 2_000_000


@pytest.mark.parametrize("tool", ["echo", "event"])
async def test_half_a_surrogate_pair_is_replaced_in_a_body_and_in_a_stream(tmp_path: Path, web: Web, tool: str) -> None:
    async with stage(tmp_path, at(web)) as s:
        assert text(await s.call("web", tool, m="x", half=True)) == "x\ufffd"


async def test_a_connection_for_each_call_where_the_scope_says_so(tmp_path: Path, web: Web) -> None:
    async with stage(tmp_path, at(web, scope=ServerScope.CALL)) as s:
        assert s.servers.status("web").state is ServerState.READY
        outcomes = await asyncio.gather(*(s.call("web", "echo", m=str(n), call_id=f"c{n}") for n in range(3)))
        assert [text(o) for o in outcomes] == ["0", "1", "2"]
        assert len({h["mcp-session-id"] for h in web.calls("echo")}) == 3
        assert text(await s.servers.call_tool("web", "echo", FrozenDict({"m": "hand"}))) == "hand"
        assert await s.servers.resources("web") == ()
        with pytest.raises(UserFault):
            await anext(s.servers.watch("web", "x"))


async def test_a_server_that_does_not_take_leave_does_not_hold_up_the_end(tmp_path: Path, web: Web) -> None:
    """Hazard D43."""
    async with stage(tmp_path, at(web)) as s:
        assert s.servers.status("web").state is ServerState.READY
        web.deaf = True
        began = time.monotonic()
        await s.servers.stop("web")
        assert time.monotonic() - began < 5


async def test_a_pinned_revision_that_the_server_does_not_speak_is_named(tmp_path: Path, web: Web) -> None:
    async with stage(tmp_path, at(web, protocol=Protocol.MODERN)) as s:
        status = s.servers.status("web")
        assert status.state is ServerState.FAILED
        assert status.error is not None
        assert "does not speak 2026-07-28" in status.error.message


async def test_a_wrong_path_is_named(tmp_path: Path, web: Web) -> None:
    web.status = 404
    async with stage(tmp_path, at(web), scale=0.02) as s:
        await s.until_state("web", ServerState.FAILED)
        error = s.servers.status("web").error
        assert error is not None
        assert error.remedy == "remedy.server.wrong_url"


async def test_an_http_address_is_no_sse_server_and_says_so(tmp_path: Path, web: Web) -> None:
    config = ServerConfig("web", Sse(web.url), timeouts=LIMITS)
    async with stage(tmp_path, config, scale=0.02) as s:
        await s.until_state("web", ServerState.FAILED)
        error = s.servers.status("web").error
        assert error is not None
        assert "405" in error.message


async def test_a_call_that_is_silent_too_long_is_given_up_and_the_session_stays(tmp_path: Path, web: Web) -> None:
    async with stage(tmp_path, at(web, timeouts=Timeouts(10, 0.4, 30))) as s:
        assert (await s.call("web", "slow", s=1.5)).outcome is Outcome.TIMED_OUT
        assert text(await s.call("web", "echo", m="ok")) == "ok"


async def test_a_server_whose_stream_of_notifications_stays_away_is_met_anew(tmp_path: Path, web: Web) -> None:
    """Hazards D50, E58."""
    web.stream = threading.Event()
    async with stage(tmp_path, at(web), scale=0.06) as s:
        await until(lambda: any("GET" in r for r in web.requests))
        web.stream.set()
        await until(lambda: len(web.sessions) == 2, 15)
        await s.until_state("web", ServerState.READY)
        assert text(await s.call("web", "echo", m="on")) == "on"
        assert s.servers.status("web").restarts == 0


@pytest.fixture(autouse=True)
def _quiet_sdk(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "mcp")
