"""The knowledge server as a client of others: merged answers, dead and slow children, loops, questions passed on."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as T
import pytest

from desktop_host.core.places import shipped

pytestmark = pytest.mark.live

KNOWLEDGE = shipped("resources", "servers", "knowledge")
ERAS = ["auto", "legacy"]

CHAT = """
import json, sys, time
from typing import Annotated
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve, Sample
from mcp.types import CreateMessageResult, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

server = MCPServer("chat", log_level="ERROR")
how = sys.argv[1]

class Channel(BaseModel):
    channel: str

def which(query: str) -> Elicit[Channel]:
    return Elicit("Which channel?", Channel)

def judge(query: str) -> Sample:
    text = TextContent(type="text", text=f"Is {query} rude?")
    return Sample([SamplingMessage(role="user", content=text)], max_tokens=10, system_prompt="Be brief.")

async def plain(query: str, ctx: Context) -> list[str]:
    meta = dict(ctx.request_context.meta or {})
    open(sys.argv[2], "a").write(json.dumps(meta.get("desktop-host/deadline-ms")) + "\\n")
    return [f"message about {query}"]

async def slow(query: str) -> str:
    import anyio
    await anyio.sleep(60)
    return "too late"

async def asking(query: str, where: Annotated[Channel, Resolve(which)],
                 said: Annotated[CreateMessageResult, Resolve(judge)]) -> str:
    return f"in {where.channel}: {said.content.text}"

fn = {"plain": plain, "slow": slow, "asking": asking}[how]
server.add_tool(fn, name="search_messages", annotations=ToolAnnotations(read_only_hint=True))
server.run("stdio")
"""


class Place:
    """A folder with documents and chain files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "chat.py").write_text(CHAT)
        self.seen = folder / "deadlines"

    def docs(self, name: str) -> list[str]:
        docs = self.folder / f"docs-{name}"
        docs.mkdir(exist_ok=True)
        (docs / f"{name}.md").write_text(f"# {name}\n\nThe kettle of {name} leaks.\n")
        return [str(KNOWLEDGE), "serve", "--cache", "memory", "--folder", str(docs), "--name", name]

    def chat(self, how: str) -> dict[str, Any]:
        return {"command": sys.executable, "args": [str(self.folder / "chat.py"), how, str(self.seen)]}

    def chain(self, name: str, **children: dict[str, Any]) -> dict[str, Any]:
        """A knowledge server over `children`, as a configuration entry."""
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps({"mcpServers": children}))
        return {"command": sys.executable, "args": [*self.docs(name), "--chain", str(file)]}

    @staticmethod
    @asynccontextmanager
    async def connected(entry: dict[str, Any], mode: str = "auto", **callbacks: Any) -> AsyncIterator[Any]:
        from mcp import Client, StdioServerParameters

        parameters = StdioServerParameters(command=entry["command"], args=entry["args"])
        async with Client(parameters, mode=mode, **callbacks) as client:  # type: ignore[arg-type]
            yield client


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("mode", ERAS)
async def test_three_sources_and_a_dead_one_give_one_answer_that_names_them(mode: str, place: Place) -> None:
    dead = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no licence')"]}
    code = place.chain("code", chat=place.chat("plain"), old=dead)
    top = place.chain("top", code=code, chat=place.chat("plain"), gone={"command": "/no/such/program"})
    async with place.connected(top, mode) as client:
        assert "search_everywhere" in {t.name for t in (await client.list_tools()).tools}
        made = await client.call_tool("search_everywhere", {"query": "kettle leaks", "top_k": 3})
    assert not made.is_error
    data = made.structured_content
    states = {r["source"]: (r["state"], r["count"]) for r in data["sources"]}
    assert states == {
        "documents": ("ok", 1), "code": ("ok", 2), "code > documents": ("ok", 1), "code > chat": ("ok", 1),
        "code > old": ("failed", 0), "chat": ("ok", 1), "gone": ("failed", 0),
    }  # fmt: skip
    assert data["complete"] is False
    assert {r["source"] for r in data["results"]} == {"documents", "code > documents", "code > chat", "chat"}
    text = made.content[0].text
    assert "By source: documents 1, code 2" in text and "gone failed (its command was not found)" in text
    assert "no licence" not in text
    left = sorted(json.loads(line) for line in place.seen.read_text().splitlines())
    assert len(left) == 2 and 0 < left[0] < left[1] < 20_000, "deadlines shrink down the chain"


async def test_a_loop_ends_where_it_began(place: Place) -> None:
    """a asks b, b asks a."""
    a = place.chain("a", b={"command": "later"})
    b = place.chain("b", a=a)
    place.chain("a", b=b)
    async with place.connected(a) as client:
        made = await client.call_tool("search_everywhere", {"query": "kettle"})
    states = {r["source"]: r["state"] for r in made.structured_content["sources"]}
    assert states == {"documents": "ok", "b": "ok", "b > documents": "ok", "b > a": "loop"}
    assert made.structured_content["complete"] is True
    assert len(made.structured_content["results"]) == 2


async def test_a_slow_child_is_reported_and_keeps_nobody_waiting(place: Place) -> None:
    top = place.chain("top", slow=place.chat("slow"), chat=place.chat("plain"))
    async with place.connected(top) as client:
        started = time.monotonic()
        meta: Any = {"desktop-host/deadline-ms": 8000}
        made = await client.call_tool("search_everywhere", {"query": "kettle"}, meta=meta)
        assert time.monotonic() - started < 10
    states = {r["source"]: r["state"] for r in made.structured_content["sources"]}
    assert states == {"documents": "ok", "slow": "timed_out", "chat": "ok"}
    assert "slow timed out" in made.content[0].text


@pytest.mark.parametrize("mode", ERAS)
async def test_questions_of_a_child_come_under_its_name(mode: str, place: Place) -> None:
    asked: list[str] = []

    async def elicit(_ctx: Any, params: Any) -> T.ElicitResult:
        asked.append(params.message)
        return T.ElicitResult(action="accept", content={"channel": "#tea"})

    async def sample(_ctx: Any, params: T.CreateMessageRequestParams) -> T.CreateMessageResult:
        asked.append(params.system_prompt or "")
        return T.CreateMessageResult(role="assistant", model="m", content=T.TextContent(type="text", text="no"))

    inner = place.chain("inner", chat=place.chat("asking"))
    top = place.chain("top", inner=inner)
    async with place.connected(top, mode, elicitation_callback=elicit, sampling_callback=sample) as client:
        made = await client.call_tool("search_everywhere", {"query": "kettle"})
    found = {r["source"]: r["text"] for r in made.structured_content["results"]}
    assert found["inner > chat"] == "in #tea: no", made.structured_content
    elicited, sampled = sorted(asked, key=len)
    assert elicited == "[inner, through top] [chat, through inner] Which channel?"
    assert "'inner'" in sampled and "'chat'" in sampled and sampled.endswith("Be brief.")


async def test_a_client_that_cannot_be_asked_is_not_asked(place: Place) -> None:
    top = place.chain("top", chat=place.chat("asking"))
    async with place.connected(top) as client:
        made = await client.call_tool("search_everywhere", {"query": "kettle"})
    states = {r["source"]: r["state"] for r in made.structured_content["sources"]}
    assert states == {"documents": "ok", "chat": "failed"}


@pytest.mark.parametrize(
    ("text", "told"),
    [("{", "cannot be read"), ("[]", "mcpServers"), ('{"mcpServers": {"a": {}}}', "neither a command nor a url")],
)
async def test_a_wrong_chain_file_is_told(text: str, told: str, place: Place) -> None:
    import asyncio

    file = place.folder / "wrong.json"
    file.write_text(text)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *place.docs("x"), "--chain", str(file), stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE, env={"PATH": os.environ["PATH"], "HOME": str(place.folder)},
    )  # fmt: skip
    _, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2 and told in err.decode()
