"""One server that uses every feature, in all four combinations of era and transport: the host shows the same."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import ElicitReply, FormRequest, Progress, SamplingRequest
from desktop_host.core.messages import EmbeddedResource
from desktop_host.core.servers import Http, Protocol, ServerConfig, Stdio, Timeouts
from desktop_host.core.values import FrozenDict, freeze
from tests.fakes.servers.stage import ALLOW, HERE, OpenReviewer, Stage, stage, text, until

pytestmark = pytest.mark.live
LIMITS = Timeouts(connect_s=30, call_s=20, call_max_s=60)
PROGRAM = str(HERE / "dual.py")


@contextlib.asynccontextmanager
async def shelf(transport: str, protocol: Protocol) -> AsyncIterator[ServerConfig]:
    if transport == "stdio":
        yield ServerConfig("shelf", Stdio(sys.executable, (PROGRAM,)), protocol=protocol, timeouts=LIMITS)
        return
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable, PROGRAM, "--http", str(port), stdout=quiet, stderr=quiet
    )
    try:
        async with asyncio.timeout(30):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        writer.close()
        yield ServerConfig("shelf", Http(f"http://127.0.0.1:{port}/mcp"), protocol=protocol, timeouts=LIMITS)
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize(("protocol", "era"), [(Protocol.AUTO, "2026-07-28"), (Protocol.LEGACY, "2025-11-25")])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_every_feature_works_in_each_era_over_each_transport(
    tmp_path: Path, transport: str, protocol: Protocol, era: str
) -> None:
    reviewer = OpenReviewer(ElicitReply("accept", FrozenDict({"sure": True})))
    async with shelf(transport, protocol) as config, stage(tmp_path, config, reviewer=reviewer) as s:
        status = s.servers.status("shelf")
        assert (status.era, status.tools, status.instructions) == (era, 5, "Look before you answer.")
        assert (status.server["title"], status.server["version"]) == ("Shelf of notes", "3.1")
        await tools(s)
        await asking(s)
        await reading(s)
        await watching(s)


async def tools(s: Stage) -> None:
    specs = {t.name: t for t in s.servers.tools("shelf")}
    assert specs["find"].title == "Find notes"
    assert (specs["find"].hints.read_only, specs["drop"].hints.destructive) == (True, True)
    assert (await s.call("shelf", "find", word="three")).structured == freeze({"names": ["tea"]})
    told: list[Progress] = []
    outcome = await s.servers.call("s1", "c1", specs["sort"], FrozenDict(), ALLOW, told.append)
    assert text(outcome) == "sorted"
    assert [(p.progress, p.total, p.message) for p in told] == [(n, 3, f"board {n}") for n in (1, 2, 3)]


async def asking(s: Stage) -> None:
    assert text(await s.call("shelf", "shorten", name="tea", call_id="c2")) == "fake-model: a summary"
    assert text(await s.call("shelf", "drop", name="rye", call_id="c3")) == "dropped rye"
    (first, sampled), (second, form) = s.reviewer.asked
    assert isinstance(sampled, SamplingRequest) and isinstance(form, FormRequest)
    assert (first.call_id, second.call_id, second.session) == ("c2", "c3", "s1")
    assert form.message == "Throw rye away?"


async def reading(s: Stage) -> None:
    found = {(r.uri, r.template) for r in await s.servers.resources("shelf")}
    assert found == {("shelf://all", False), ("shelf://note/{name}", True)}
    [block] = (await s.servers.read_resource("shelf", "shelf://note/tea")).content
    assert isinstance(block, EmbeddedResource) and block.text == "Steep for three minutes."
    with pytest.raises(UserFault, match="no note"):
        await s.servers.read_resource("shelf", "shelf://note/none")
    [prompt] = await s.servers.prompts("shelf")
    assert [(a.name, a.required) for a in prompt.arguments] == [("name", True), ("to", False)]
    [message] = await s.servers.get_prompt("shelf", "explain", freeze({"name": "tea", "to": "Ann"}))
    assert message.text == "Explain to Ann: Steep for three minutes."
    for ref in ("explain", "shelf://note/{name}"):
        assert (await s.servers.complete("shelf", ref, "name", "t")).values == ("tea",)


async def watching(s: Stage) -> None:
    updates = s.servers.watch("shelf", "shelf://all")
    first = asyncio.ensure_future(anext(updates))

    def held() -> bool:
        frames = [str(f.message) for f in s.servers.trace("shelf")]
        asked = any("resources/subscribe" in f or "resourceSubscriptions" in f for f in frames)
        return asked and (s.servers.status("shelf").era == "2025-11-25" or any("acknowledged" in f for f in frames))

    await until(held)
    if s.servers.status("shelf").era == "2025-11-25":
        await s.call("shelf", "sort")  # The answer to the subscription has come by then.
    assert text(await s.call("shelf", "keep", name="nut", text="Toast it.")) == "kept nut"
    assert await asyncio.wait_for(first, 5) == "shelf://all"
    await updates.aclose()  # type: ignore[attr-defined]
