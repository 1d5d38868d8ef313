"""The supervisor with servers that people really use (npm and PyPI).

They are looked for in the folders of `DESKTOP_HOST_TEST_NODE_BIN` and `DESKTOP_HOST_TEST_PYTHON_BIN`, then in PATH.
Missing ones skip; in CI they fail.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desktop_host.core.exchange import ElicitReply, FormRequest, Progress, SamplingRequest, UrlRequest
from desktop_host.core.messages import EmbeddedResource, Image, Outcome, ResourceLink, Text
from desktop_host.core.servers import Http, Launch, ServerConfig, ServerState, Sse, Stdio, Timeouts
from desktop_host.core.values import FrozenDict, freeze
from tests.fakes.servers.stage import ALLOW, OpenReviewer, Stage, stage, text, until
from tests.live.http_kit import free_port, listening

pytestmark = pytest.mark.live
LIMITS = Timeouts(connect_s=60, call_s=30, call_max_s=90)


def program(name: str) -> str:
    """The path of a server's program; skips, or in CI fails, without it."""
    installed = [os.environ.get(f"DESKTOP_HOST_TEST_{kind}_BIN", "") for kind in ("NODE", "PYTHON")]
    places = [*installed, str(Path(sys.executable).parent), os.environ["PATH"]]
    found = shutil.which(name, path=os.pathsep.join(p for p in places if p))
    if found is None:
        told = f"{name} is not installed: DESKTOP_HOST_TEST_NODE_BIN or _PYTHON_BIN names its folder, or PATH has it"
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
    return found


@contextlib.asynccontextmanager
async def everything(transport: str) -> AsyncIterator[Launch]:
    command = program("mcp-server-everything")
    if transport == "stdio":
        yield Stdio(command)
        return
    port = free_port()
    async with listening(port, command, transport, PORT=str(port)) as base:
        yield Sse(f"{base}/sse") if transport == "sse" else Http(f"{base}/mcp")


async def ready(s: Stage, name: str) -> None:
    assert s.servers.status(name).state is ServerState.READY, s.servers.status(name)


@pytest.mark.parametrize("transport", ["stdio", "streamableHttp", "sse"])
async def test_server_everything_shows_all_it_has(tmp_path: Path, transport: str) -> None:
    reviewer = OpenReviewer(folders={"s1": (str(tmp_path),), None: (str(tmp_path),)})
    async with everything(transport) as launch:
        config = ServerConfig("every", launch, timeouts=LIMITS)
        async with stage(tmp_path, config, reviewer=reviewer, scale=1) as s:
            await ready(s, "every")
            await until(lambda: len(s.servers.tools("every")) >= 17)  # Some come after the handshake.
            assert text(await s.call("every", "echo", message="hi")) == "Echo: hi"
            assert "5" in text(await s.call("every", "get-sum", a=2, b=3))
            images = [b for b in (await s.call("every", "get-tiny-image")).content if isinstance(b, Image)]
            assert base64.b64decode(images[0].data).startswith(b"\x89PNG")
            noted = await s.call("every", "get-annotated-message", messageType="error", includeImage=True)
            first = noted.content[0]
            assert isinstance(first, Text)
            assert first.annotations is not None
            assert first.annotations["priority"] == 1
            structured = await s.call("every", "get-structured-content", location="Chicago")
            assert isinstance(structured.structured, dict)
            links = await s.call("every", "get-resource-links", count=2)
            assert sum(isinstance(b, ResourceLink) for b in links.content) == 2
            inside = await s.call("every", "get-resource-reference", resourceType="Text", resourceId=1)
            assert any(isinstance(b, EmbeddedResource) for b in inside.content)
            assert str(tmp_path) in text(await s.call("every", "get-roots-list"))
            assert "a summary" in text(await s.call("every", "trigger-sampling-request", prompt="x", maxTokens=10))
            assert isinstance(reviewer.asked[-1][1], SamplingRequest)
            reviewer.answer = ElicitReply("decline")
            await s.call("every", "trigger-elicitation-request")
            assert isinstance(reviewer.asked[-1][1], FormRequest)
            await s.call("every", "trigger-url-elicitation", url="https://example.com", message="go", errorPath=False)
            assert isinstance(reviewer.asked[-1][1], UrlRequest)
            told: list[Progress] = []
            spec = next(t for t in s.servers.session_tools("s1") if t.name == "trigger-long-running-operation")
            arguments = freeze({"duration": 1, "steps": 2})
            outcome = await s.servers.call("s1", "c", spec, arguments, ALLOW, told.append)
            assert (outcome.outcome, len(told)) == (Outcome.OK, 2)
            task = next(t for t in s.servers.session_tools("s1") if t.name == "simulate-research-query")
            assert (task.problem, task.enabled) == (None, True)
            found: list[Progress] = []
            outcome = await s.servers.call("s1", "c", task, freeze({"topic": "tea"}), ALLOW, found.append)
            assert outcome.outcome is Outcome.OK and "Research Report: tea" in text(outcome)
            assert "Gathering sources..." in {p.message for p in found}
            resources = await s.servers.resources("every")
            assert {r.template for r in resources} == {True, False}
            read = await s.servers.read_resource("every", next(r.uri for r in resources if not r.template))
            assert read.content
            prompts = {p.name: p for p in await s.servers.prompts("every")}
            assert len(prompts) == 4
            filled = await s.servers.get_prompt("every", "args-prompt", FrozenDict({"city": "Oslo"}))
            assert "Oslo" in filled[0].text


async def test_server_everything_tells_of_updates_and_logs(tmp_path: Path) -> None:
    config = ServerConfig("every", Stdio(program("mcp-server-everything")), timeouts=LIMITS)
    async with stage(tmp_path, config, scale=1) as s:
        uri = next(r.uri for r in await s.servers.resources("every") if not r.template)
        updates = s.servers.watch("every", uri)
        first = asyncio.ensure_future(anext(updates))
        await until(lambda: any("resources/subscribe" in str(f.message) for f in s.servers.trace("every")))
        await s.call("every", "toggle-subscriber-updates")
        await s.call("every", "toggle-simulated-logging")
        assert await asyncio.wait_for(first, 20) == uri
        await updates.aclose()  # type: ignore[attr-defined]
        await until(lambda: any(x.source == "message" for x in s.servers.logs("every")), 20)


async def test_the_filesystem_server_obeys_the_roots(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("hello")
    reviewer = OpenReviewer(folders={"s1": (str(tmp_path / "in"),), None: (str(tmp_path / "in"),)})
    config = ServerConfig("files", Stdio(program("mcp-server-filesystem"), (str(tmp_path),)), timeouts=LIMITS)
    async with stage(tmp_path, config, reviewer=reviewer) as s:
        await ready(s, "files")
        await until(lambda: any("roots" in str(f.message) for f in s.servers.trace("files") if f.direction == "out"))
        assert "hello" in text(await s.call("files", "read_text_file", path=str(tmp_path / "in" / "a.txt")))
        outside = await s.call("files", "list_directory", path=str(tmp_path))
        assert outside.outcome is Outcome.ERROR


async def test_the_memory_server_remembers(tmp_path: Path) -> None:
    launch = Stdio(program("mcp-server-memory"), env=freeze({"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}))
    async with stage(tmp_path, ServerConfig("memory", launch, timeouts=LIMITS)) as s:
        await ready(s, "memory")
        entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
        assert (await s.call("memory", "create_entities", entities=[entity])).outcome is Outcome.OK
        assert "writes programs" in text(await s.call("memory", "read_graph"))


async def test_servers_of_pypi_speak_the_modern_era(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(repository)], check=True)
    (repository / "a.txt").write_text("a")
    configs = (
        ServerConfig("time", Stdio(program("mcp-server-time"), ("--local-timezone=UTC",)), timeouts=LIMITS),
        ServerConfig("git", Stdio(program("mcp-server-git"), ("--repository", str(repository))), timeouts=LIMITS),
        ServerConfig("fetch", Stdio(program("mcp-server-fetch")), timeouts=LIMITS),
    )
    async with stage(tmp_path, *configs) as s:
        assert {x.name: x.era for x in s.servers.statuses()} == dict.fromkeys(("time", "git", "fetch"), "2026-07-28")
        now = json.loads(text(await s.call("time", "get_current_time", timezone="UTC")))
        assert now["timezone"] == "UTC"
        assert "a.txt" in text(await s.call("git", "git_status", repo_path=str(repository)))
        refused = await s.call("fetch", "fetch", url="http://127.0.0.1:9/")
        assert refused.outcome is Outcome.ERROR
