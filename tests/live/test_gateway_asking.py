"""What servers ask and tell during a call, through the gateway to its client and back, in both eras on both sides."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import mcp_types as T
import pytest

from tests.fakes.servers.stage import HERE, until
from tests.live.gateway_program import ERAS, bearing, over_http, over_stdio, program

pytestmark = pytest.mark.live

SERVERS = ["shelf", "oldshelf"]
"""One server in the modern era and one in the handshake's; `feat` and `small` speak 2025-06-18."""


def made(tmp_path: Path, *names: str) -> Path:
    """A home with some of the servers (none named: all)."""

    def entry(script: str, *argv: str, **own: Any) -> dict[str, Any]:
        return {"command": sys.executable, "args": [str(HERE / script), *argv], "desktopHost": own}

    every = {
        "shelf": entry("dual.py"), "oldshelf": entry("dual.py", protocol="legacy"),
        "feat": entry("features.py"), "small": entry("small.py", str(tmp_path)),
        "mute": entry("dual.py", protocol="legacy", sampling={"mode": "off"}),
    }  # fmt: skip
    servers = {name: every[name] for name in names or every}
    profile = tmp_path / "home" / "profiles" / "default"
    profile.mkdir(parents=True)
    (profile / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    (tmp_path / "passphrase").write_text("correct horse\n")
    return tmp_path / "home"


class Person:
    """Answers at the gateway's client, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.lines: list[tuple[str, str | None, Any]] = []
        self.yes = True

    async def sample(self, _context: Any, params: T.CreateMessageRequestParams) -> T.CreateMessageResult:
        self.asked.append(params)
        said = T.TextContent(type="text", text="three minutes")
        return T.CreateMessageResult(role="assistant", content=said, model="clients-own", stop_reason="endTurn")

    async def elicit(self, _context: Any, params: Any) -> T.ElicitResult:
        self.asked.append(params)
        return T.ElicitResult(action="accept", content={"sure": True}) if self.yes else T.ElicitResult(action="decline")

    async def log(self, params: T.LoggingMessageNotificationParams) -> None:
        self.lines.append((params.level, params.logger, params.data))

    def callbacks(self) -> dict[str, Any]:
        return {"sampling_callback": self.sample, "elicitation_callback": self.elicit, "logging_callback": self.log}


@pytest.mark.parametrize("mode", ERAS)
async def test_all_that_servers_ask_and_tell_during_a_call_passes_through(mode: str, tmp_path: Path) -> None:
    home, person = made(tmp_path), Person()
    more = {} if mode == "legacy" else {"log_level": "error"}
    async with over_stdio(home, mode, "--allow", "*", **person.callbacks(), **more) as client:
        await _questions(client, person)
        await _completions(client)
        await _large(client)
        await _reports(client, person, tmp_path, mode)
    _code, listed = await program(home, "sessions", "list", "--json")
    kept_as = json.loads(listed.splitlines()[0])["session"]
    code, told = await program(home, "sessions", "show", kept_as, "--json")
    assert code == 0 and told.count('"passed_on"') >= 8


async def _questions(client: Any, person: Person) -> None:
    for server in SERVERS:
        person.asked.clear()
        shortened = await client.call_tool(f"{server}__shorten", {"name": "tea"})
        assert shortened.content[0].text == "clients-own: three minutes", shortened
        (asked,) = person.asked
        assert f"Asked by the server '{server}' during its tool 'shorten'" in asked.system_prompt
        assert asked.messages[0].content.text == "In short: Steep for three minutes." and asked.max_tokens == 60
        person.yes = False
        kept = await client.call_tool(f"{server}__drop", {"name": "tea"})
        assert "dropped" not in kept.content[0].text.removeprefix("nothing dropped")
        person.yes = True
        dropped = await client.call_tool(f"{server}__drop", {"name": "tea"})
        assert dropped.content[0].text == "dropped tea"
        assert [a.message for a in person.asked[1:]] == [f"[{server}.drop] Throw tea away?"] * 2
    person.asked.clear()
    both = await client.call_tool("feat__ask_twice", {})
    assert [a.message for a in person.asked] == ["[feat.ask_twice] one?", "[feat.ask_twice] two?"]
    assert json.loads(both.content[0].text) == {"action": "accept", "content": {"sure": True}}
    person.asked.clear()
    refused = await client.call_tool("mute__shorten", {"name": "tea"})
    assert refused.is_error and person.asked == []  # The host's own policy comes first.


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_cannot_answer_leaves_it_to_the_hosts_policy(mode: str, tmp_path: Path) -> None:
    home = made(tmp_path, *SERVERS)
    async with over_stdio(home, mode, "--allow", "*") as client:
        for server in SERVERS:
            shortened = await client.call_tool(f"{server}__shorten", {"name": "tea"})
            assert shortened.is_error, shortened
            dropped = await client.call_tool(f"{server}__drop", {"name": "tea"})
            assert dropped.content[0].text != "dropped tea"
            assert "Steep" in (await client.read_resource(f"gateway://{server}/shelf://note/tea")).contents[0].text


async def test_a_forged_or_used_state_opens_no_call(tmp_path: Path) -> None:
    from mcp import MCPError

    home, person = made(tmp_path, *SERVERS), Person()
    async with over_stdio(home, "auto", "--allow", "*", **person.callbacks()) as client:
        first = await client.session.call_tool("shelf__drop", {"name": "tea"}, allow_input_required=True)
        assert isinstance(first, T.InputRequiredResult)
        (key,) = first.input_requests
        answers = {key: T.ElicitResult(action="accept", content={"sure": True})}

        def again(tool: str, state: str, given: Any) -> Any:
            return client.session.call_tool(
                tool, {"name": "tea"}, input_responses=given, request_state=state, allow_input_required=True
            )

        for tool, state in (("shelf__drop", "forged"), ("oldshelf__drop", first.request_state)):
            with pytest.raises(MCPError, match="belongs to no call"):
                await again(tool, state, answers)
        same = await again("shelf__drop", first.request_state, {})  # Nothing answered: asked again.
        assert isinstance(same, T.InputRequiredResult) and set(same.input_requests) == {key}
        done = await again("shelf__drop", same.request_state, answers)
        assert done.content[0].text == "dropped tea"
        with pytest.raises(MCPError, match="belongs to no call"):
            await again("shelf__drop", same.request_state, answers)


async def _large(client: Any) -> None:
    """What the host's own window would keep in a file comes whole."""
    import base64

    (read,) = (await client.read_resource("gateway://feat/feat://big")).contents
    assert len(base64.b64decode(read.blob)) == 5_000_004


async def _completions(client: Any) -> None:
    from mcp import MCPError

    assert client.server_capabilities.completions is not None
    for server in SERVERS:
        prompt = T.PromptReference(type="ref/prompt", name=f"{server}__explain")
        found = await client.complete(prompt, {"name": "name", "value": "r"})
        assert found.completion.values == ["rye"]
        template = T.ResourceTemplateReference(type="ref/resource", uri=f"gateway://{server}/shelf://note/{{name}}")
        assert (await client.complete(template, {"name": "name", "value": "ry"})).completion.values == ["rye"]
    city = T.ResourceTemplateReference(type="ref/resource", uri="gateway://feat/feat://{city}/{?day}")
    given = await client.complete(city, {"name": "city", "value": "ber"}, {"land": "de-"})
    assert (given.completion.values, given.completion.total) == (["de-berlin", "de-bern"], 3)
    for ref in (T.PromptReference(type="ref/prompt", name="shelf__none"),
                T.ResourceTemplateReference(type="ref/resource", uri="gateway://nobody/x://{a}")):  # fmt: skip
        with pytest.raises(MCPError):
            await client.complete(ref, {"name": "name", "value": ""})


async def _reports(client: Any, person: Person, folder: Path, mode: str) -> None:
    """Progress, log lines from the level that was asked for, and cancelling on the wire."""
    told: list[Any] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    for server in SERVERS:
        told.clear()
        await client.call_tool(f"{server}__sort", {}, progress_callback=progress)
        assert told == [(n, 3, f"board {n}") for n in (1, 2, 3)]
    await client.call_tool("feat__log", {})
    line = ("error", "feat: feat", "a line of error")
    assert person.lines == ([("info", "feat: feat", "a line of info"), line] if mode == "legacy" else [line])
    if mode == "legacy":
        person.lines.clear()
        with pytest.warns(UserWarning, match="logging"):
            await client.set_logging_level("error")
        await client.call_tool("feat__log", {})
        assert person.lines == [line]
    call = asyncio.create_task(client.call_tool("small__slow", {}))
    await until((folder / "started").exists)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await until((folder / "cancelled").exists)


async def test_over_http_each_client_is_asked_its_own_questions(tmp_path: Path) -> None:
    """Two clients of one key, of both eras, at once: nobody answers for the other."""
    home = made(tmp_path, *SERVERS)
    assert (await program(home, "secrets", "set", "gateway", given="main-token-1"))[0] == 0
    async with over_http(home, "--allow", "*") as url:
        people = [Person(), Person()]

        async def use(mode: str, server: str, person: Person) -> None:
            async with bearing(url, "main-token-1", mode, **person.callbacks()) as client:
                for _ in range(5):
                    said = await client.call_tool(f"{server}__shorten", {"name": "rye"})
                    assert said.content[0].text == "clients-own: three minutes", said
                    await client.call_tool(f"{server}__drop", {"name": "none"})

        await asyncio.gather(use("auto", "shelf", people[0]), use("legacy", "oldshelf", people[1]))
        for server, person in zip(SERVERS, people, strict=True):
            assert len(person.asked) == 10
            assert all(f"server '{server}'" in a.system_prompt for a in person.asked[::2])
            assert {a.message for a in person.asked[1::2]} == {f"[{server}.drop] Throw none away?"}
