"""The toolkit from Python on a real host and real servers: no window, no command line."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from desktop_host.app.compose import open_host
from desktop_host.core.errors import UserFault
from desktop_host.core.events import ToolRequested, ToolSettled
from desktop_host.core.messages import Outcome
from desktop_host.core.permissions import Effect
from desktop_host.core.servers import ServerConfig, ServerScope, Stdio
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.toolkit import PostRule, ToolRule
from desktop_host.core.tools import ToolGroup
from desktop_host.core.values import freeze
from desktop_host.engine.host import Host, HostSpec, UserInput
from tests.fakes.servers.stage import HERE

ECHO = [{"call": {"tool": "small.echo", "arguments": {"text": "x"}}}]
SMALL = Stdio(sys.executable, (str(HERE / "small.py"),))


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "/dev/null")
    async with open_host(HostSpec(home=tmp_path)) as made:
        yield made


async def turn(host: Host, tmp_path: Path, *replies: list[dict[str, Any]]) -> list[Any]:
    """One turn of a scripted model; the events it made."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(replies))
    session = await host.new_session(SessionOptions(model=f"script:{script}"))
    await (await host.submit(session, UserInput("go"))).done
    return [s.event for s in await host.history.read(session)]


async def test_a_tool_is_a_function_with_its_fixed_arguments_and_its_rule(host: Host) -> None:
    await host.servers.add(ServerConfig("small", SMALL))
    echo = host.toolkit.callable("small", "echo")
    assert (await echo(text="hello")).content[0].text == "hello"
    await host.toolkit.put_rule(
        ToolRule("small.echo", preset=freeze({"text": '{"a": {"b": [1, 2]}}'}), post=PostRule("a.b[1]"))
    )
    assert (await echo(text="what the model says is not heard")).content[0].text == "2"
    (spec,) = [host.toolkit.dressed(t) for t in host.servers.tools("small") if t.name == "echo"]
    assert "text" not in spec.input_schema["properties"] and "required" not in spec.input_schema
    await host.toolkit.put_rule(ToolRule("small.picture", post=PostRule(drop_images=True)))
    picture = await host.toolkit.callable("small", "picture")()
    assert not any(type(b).__name__ == "Image" for b in picture.content)
    with pytest.raises(UserFault):
        await host.toolkit.put_rule(ToolRule("small.echo", post=PostRule("a..b")))


async def test_tools_of_a_server_stand_under_a_group_with_its_own_permission(host: Host, tmp_path: Path) -> None:
    await host.servers.add(ServerConfig("small", SMALL))
    await host.toolkit.put_group(ToolGroup("talk", ("small.*",), enabled=True, default=Effect.ALLOW))
    events = await turn(
        host, tmp_path, [{"call": {"tool": "small.echo", "arguments": {"text": "x"}}}], [{"text": "ok"}]
    )
    (asked,) = [e for e in events if isinstance(e, ToolRequested)]
    assert asked.verdict is Effect.ALLOW
    await host.toolkit.put_group(ToolGroup("talk", ("small.*",), enabled=False))
    events = await turn(
        host, tmp_path, [{"call": {"tool": "small.echo", "arguments": {"text": "x"}}}], [{"text": "ok"}]
    )
    (settled,) = [e for e in events if isinstance(e, ToolSettled)]
    assert settled.outcome is Outcome.ERROR and "switched off" in settled.content[0].text
    assert {t.group for t in map(host.toolkit.dressed, host.servers.tools("small"))} == {"talk"}
    await host.toolkit.remove_group("talk")
    assert host.toolkit.active() == {}


async def test_only_listed_tools_are_there_and_removing_a_server_takes_its_tools_along(host: Host) -> None:
    config = await host.servers.add(
        ServerConfig("small", SMALL, enabled_tools=("echo", "fail"), disabled_tools=("fail",))
    )
    await host.servers.start("small")
    assert [t.name for t in host.servers.tools("small") if t.enabled] == ["echo"]
    gone = await host.toolkit.callable("small", "picture")()
    assert gone.outcome is Outcome.ERROR and "switched off" in gone.content[0].text
    await host.servers.remove(config.name)
    with pytest.raises(UserFault) as caught:
        await host.toolkit.callable("small", "echo")(text="x")
    assert caught.value.code == "not_found"


async def test_a_stateful_server_is_shared_and_one_for_each_session_is_not(host: Host, tmp_path: Path) -> None:
    await host.servers.add(ServerConfig("shared", SMALL))
    await host.servers.add(ServerConfig("own", SMALL, scope=ServerScope.SESSION))
    await host.toolkit.put_group(ToolGroup("all", ("*",), default=Effect.ALLOW))
    call = [{"call": {"tool": f"{name}.echo", "arguments": {"text": "x"}}} for name in ("shared", "own")]
    for _ in range(2):
        events = await turn(host, tmp_path, call, [{"text": "ok"}])
        assert [e.outcome for e in events if isinstance(e, ToolSettled)] == [Outcome.OK] * 2
    pool = host.servers._pool  # type: ignore[attr-defined]
    assert (len(pool.of_server("shared")), len([k for k in pool.of_server("own") if k.session])) == (1, 2)


async def test_groups_rules_and_switches_are_there_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "/dev/null")
    async with open_host(HostSpec(home=tmp_path)) as host:
        await host.toolkit.put_group(ToolGroup("talk", ("small.*",), enabled=False, description="Talk."))
        await host.toolkit.put_rule(ToolRule("small.echo", post=PostRule(max_chars=9)))
        session = await host.new_session()
        await host.toolkit.switch(session, "talk", True)
    async with open_host(HostSpec(home=tmp_path)) as host:
        assert host.toolkit.config.group("talk").description == "Talk."
        rule = host.toolkit.config.rule("small.echo")
        assert rule is not None and rule.post.max_chars == 9
        await host.toolkit.prepare(session, (), ())
        assert (host.toolkit.active(session), host.toolkit.active()) == ({"talk": True}, {"talk": False})
