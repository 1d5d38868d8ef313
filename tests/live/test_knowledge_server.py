from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from desktop_host.core.places import shipped

pytestmark = pytest.mark.live

SERVER = shipped("resources", "servers", "knowledge")
QUESTION = "What is the warranty of the Heron kettle?"


def command(*argv: str) -> list[str]:
    return [sys.executable, str(SERVER), *argv]


async def run(*argv: str, cache: Path) -> tuple[int, str, str]:
    env = {"HOME": str(cache), "XDG_CACHE_HOME": str(cache), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    process = await asyncio.create_subprocess_exec(
        *command(*argv), env=env, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.fixture(params=["auto", "legacy"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """The server over stdio; entered and left by a task of its own, as anyio wants it."""
    from mcp import Client, StdioServerParameters

    argv = command("serve", "--folder", str(SERVER / "sample"), "--cache", str(tmp_path))
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def own() -> None:
        parameters = StdioServerParameters(command=argv[0], args=argv[1:])
        async with Client(parameters, mode=request.param) as client:
            ready.set_result(client)
            await done.wait()

    owner = asyncio.create_task(own())
    await asyncio.wait({owner, ready}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    yield ready.result()
    done.set()
    await owner


async def test_the_sample_question_is_answered_as_text_and_as_data_in_both_eras(client: Any) -> None:
    result = await client.call_tool("search_knowledge", {"query": QUESTION, "top_k": 3})
    assert not result.is_error
    (block,) = result.content
    assert "7 years on the body" in block.text
    assert "products/heron-kettle.md, lines 12-13" in block.text
    data = result.structured_content
    assert data["documents"] == 6
    assert len(data["passages"]) == 3
    assert data["passages"][0]["heading"] == "Heron kettle > Warranty"
    scores = [p["score"] for p in data["passages"]]
    assert scores == sorted(scores, reverse=True)


async def test_tools_say_that_they_only_read_and_what_they_return(client: Any) -> None:
    tools = {t.name: t for t in (await client.list_tools()).tools}
    reading = {"search_knowledge", "list_documents", "read_document", "query_database", "verify_answer"}
    assert set(tools) == reading | {"add_folder", "remove_folder"}
    for tool in tools.values():
        assert tool.annotations.read_only_hint is (tool.name in reading)
        assert tool.annotations.destructive_hint is (tool.name == "remove_folder")
        assert tool.annotations.open_world_hint is False
        assert tool.output_schema["type"] == "object"
        assert tool.title
    top_k = tools["search_knowledge"].input_schema["properties"]["top_k"]
    assert (top_k["minimum"], top_k["maximum"], top_k["default"]) == (1, 20, 5)


async def test_wrong_arguments_are_answered_with_the_right_form(client: Any) -> None:
    for tool, arguments, advice in [
        ("search_knowledge", {}, "query (text, required)"),
        ("search_knowledge", {"query": "x", "top_k": 21}, "from 1 to 20"),
        ("search_knowledge", {"query": "x", "top_k": "many"}, "from 1 to 20"),
        ("search_knowledge", {"query": "?"}, "holds no word"),
        ("read_document", {"path": "../../../etc/passwd"}, "list_documents"),
        ("read_document", {"path": "products/heron.md"}, "products/heron-kettle.md"),
        ("read_document", {"path": "products/heron-kettle.md", "first_line": 900}, "18 lines"),
        ("list_documents", {"category": "none"}, "company, products, support"),
        ("delete_document", {}, "search_knowledge"),
    ]:
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        assert advice in result.content[0].text
        assert "Traceback" not in result.content[0].text


async def test_documents_are_listed_and_read_and_the_stats_are_a_resource(client: Any) -> None:
    listed = (await client.call_tool("list_documents", {})).structured_content
    assert listed["total"] == 6
    assert "support/中文说明.md" in [d["path"] for d in listed["documents"]]
    read = (
        await client.call_tool("read_document", {"path": "support/中文说明.md", "first_line": 3})
    ).structured_content
    assert read["text"].startswith("## 保修")
    assert read["next_line"] is None
    (content,) = (await client.read_resource("knowledge://stats")).contents
    stats = json.loads(content.text)
    assert (stats["documents"], stats["categories"]) == (6, {"company": 1, "products": 3, "support": 2})
    assert content.mime_type == "application/json"


async def test_an_inner_error_is_told_in_one_neutral_line_and_logged(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters

    folder, log = tmp_path / "docs", tmp_path / "log"
    folder.mkdir()
    (folder / "a.md").write_text("apples")
    argv = command("serve", "--folder", str(folder), "--cache", str(tmp_path / "cache"))
    parameters = StdioServerParameters(command=argv[0], args=argv[1:])
    from mcp.client.stdio import stdio_client

    with log.open("w+") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as client:
            await client.call_tool("list_documents", {})
            (database,) = (tmp_path / "cache").glob("*.db")
            import sqlite3

            with sqlite3.connect(database) as other:
                other.execute("DROP TABLE documents")
            other.close()
            result = await client.call_tool("search_knowledge", {"query": "apples"})
        assert result.is_error
        assert result.content[0].text == (
            "search_knowledge could not be carried out: an error inside the knowledge server (its log tells more)."
        )
        assert "no such table" in log.read_text()


async def test_a_long_document_is_read_in_parts_without_losing_a_line(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters

    lines = [f"line {n} " + "x" * (n % 300) for n in range(1, 451)]
    (tmp_path / "long.txt").write_text("\n".join(lines))
    argv = command("serve", "--folder", str(tmp_path), "--cache", "memory")
    got: list[str] = []
    first: int | None = 1
    async with Client(StdioServerParameters(command=argv[0], args=argv[1:])) as client:
        while first is not None:
            part = await client.call_tool("read_document", {"path": "long.txt", "first_line": first})
            assert len(part.content[0].text) < 21_000
            got += part.structured_content["text"].split("\n")
            first = part.structured_content["next_line"]
    assert got == lines


async def test_it_serves_http_to_this_computer(tmp_path: Path) -> None:
    from mcp import Client

    argv = command("serve", "--http", "127.0.0.1:0", "--folder", str(SERVER / "sample"), "--cache", "memory")
    process = await asyncio.create_subprocess_exec(*argv, stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        told = (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
        url = told.split()[-1]
        assert url.startswith("http://127.0.0.1:")
        for mode in ("auto", "legacy"):
            async with Client(url, mode=mode) as client:  # type: ignore[arg-type]
                result = await client.call_tool("search_knowledge", {"query": QUESTION})
                assert "7 years" in result.content[0].text
    finally:
        process.terminate()
        await process.wait()


async def test_the_command_line_indexes_searches_and_remembers(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Fruit\n\nQuinces are ripe in October.\n")
    code, out, _ = await run("search", QUESTION, cache=tmp_path)
    assert code == 0
    assert "products/heron-kettle.md:12" in out
    code, out, _ = await run("index", str(docs), "--json", cache=tmp_path)
    assert (code, json.loads(out)["documents"]) == (0, 1)
    code, out, _ = await run("search", "ripe quinces", "--json", cache=tmp_path)
    assert (code, json.loads(out)["path"]) == (0, "a.md")


async def test_it_runs_inside_another_interpreter_too(tmp_path: Path) -> None:
    """As in a frozen host, whose own executable is no Python interpreter."""
    code = f"import runpy, sys; sys.argv[1:] = ['search', 'warranty', '--cache', {str(tmp_path)!r}]; "
    code += f"runpy.run_path({str(SERVER)!r}, run_name='__main__')"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, env={"HOME": str(tmp_path), "LANG": "C.UTF-8"}
    )
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0
    assert b"Warranty" in out


@pytest.mark.parametrize(
    "argv",
    [
        ["serve", "--http", "0.0.0.0:80"], ["serve", "--http", "x"], ["serve", "--stdio", "--http", "127.0.0.1:1"],
        ["serve", "--folder", "/no/such/folder"], ["index", "/no/such/folder"], ["search", "?!"],
        ["search", "x", "--top-k", "21"], [],
    ],
)  # fmt: skip
async def test_wrong_use_is_told_on_stderr_with_exit_code_2(argv: list[str], tmp_path: Path) -> None:
    code, out, err = await run(*argv, cache=tmp_path)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err
