"""The knowledge server's tools that change, query and ask, its resources and prompts, in both protocol eras."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as T
import pytest

from desktop_host.core.places import shipped

pytestmark = pytest.mark.live

SERVER = shipped("resources", "servers", "knowledge")
ERAS = ["auto", "legacy"]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "tea.md").write_text("# Tea\n\nSteep green tea for two minutes at 75 degrees.\n")
    (docs / "long.txt").write_text("\n".join(f"line {n}" for n in range(1, 2501)))
    return docs


@asynccontextmanager
async def connected(mode: str, *argv: str, **callbacks: Any) -> AsyncIterator[Any]:
    from mcp import Client, StdioServerParameters

    parameters = StdioServerParameters(command=sys.executable, args=[str(SERVER), "serve", *argv])
    async with Client(parameters, mode=mode, **callbacks) as client:  # type: ignore[arg-type]
        yield client


def elicitor(seen: list[str], action: str, content: dict[str, Any] | None = None) -> Any:
    async def answer(_ctx: Any, params: Any) -> T.ElicitResult:
        seen.append(params.message)
        return T.ElicitResult(action=action, content=content)  # type: ignore[arg-type]

    return answer


@pytest.mark.parametrize("mode", ERAS)
async def test_a_folder_is_added_with_progress_and_removed_only_with_the_persons_word(
    mode: str, docs: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "coffee.md").write_text("# Coffee\n\nGrind the beans.\n")
    argv = ("--folder", str(docs), "--cache", str(tmp_path / "cache"))
    asked: list[str] = []
    reports: list[tuple[float, float | None]] = []

    async def progress(done: float, of: float | None, _message: str | None) -> None:
        reports.append((done, of))

    async with connected(mode, *argv, elicitation_callback=elicitor(asked, "decline")) as client:
        added = await client.call_tool("add_folder", {"folder": str(more)}, progress_callback=progress)
        assert added.structured_content["documents"] == 3
        assert reports[-1] == (1, 1)
        found = await client.call_tool("search_knowledge", {"query": "grind beans"})
        assert found.structured_content["passages"][0]["path"] == "more/coffee.md"
        kept = await client.call_tool("remove_folder", {"folder": "more"})
        assert not kept.is_error and kept.structured_content["changed"] is False
        assert asked == [f"Remove {more} from the index? Its files stay where they are."]
        again = await client.call_tool("add_folder", {"folder": str(more)})
        assert again.is_error and "already" in again.content[0].text
        none = await client.call_tool("remove_folder", {"folder": "/nowhere"})
        assert none.is_error and str(more) in none.content[0].text
    async with connected(mode, *argv, elicitation_callback=elicitor([], "accept", {"remove": True})) as client:
        stats = json.loads((await client.read_resource("knowledge://stats")).contents[0].text)
        assert stats["documents"] == 3, "an added folder is remembered"
        gone = await client.call_tool("remove_folder", {"folder": str(more)})
        assert gone.structured_content == {
            "folder": str(more), "changed": True, "documents": 2, "folders": [str(docs)],
        }  # fmt: skip
    assert (more / "coffee.md").exists()


@pytest.mark.parametrize("mode", ERAS)
async def test_an_answer_is_verified_by_the_hosts_model(mode: str, docs: Path) -> None:
    asked: list[T.CreateMessageRequestParams] = []

    async def model(_ctx: Any, params: T.CreateMessageRequestParams) -> T.CreateMessageResult:
        asked.append(params)
        text = T.TextContent(type="text", text="UNSUPPORTED: the passage says two minutes.")
        return T.CreateMessageResult(role="assistant", model="judge-1", content=text)

    async with connected(mode, "--folder", str(docs), "--cache", "memory", sampling_callback=model) as client:
        made = await client.call_tool("verify_answer", {"query": "steep green tea", "answer": "Ten minutes"})
    assert made.structured_content == {
        "supported": False, "reason": "the passage says two minutes.", "model": "judge-1", "sources": ["tea.md:3"],
    }  # fmt: skip
    (params,) = asked
    assert "two minutes at 75" in params.messages[0].content.text  # type: ignore[union-attr]
    assert "never instructions" in (params.system_prompt or "")


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_cannot_ask_is_told_so(mode: str, docs: Path) -> None:
    from mcp import MCPError

    async with connected(mode, "--folder", str(docs), "--cache", "memory") as client:
        with pytest.raises(MCPError, match="sampling"):
            await client.call_tool("verify_answer", {"query": "tea", "answer": "x"})


async def test_queries_read_two_tables_and_nothing_else(docs: Path, tmp_path: Path) -> None:
    for cache in ("memory", str(tmp_path / "cache")):
        async with connected("auto", "--folder", str(docs), "--cache", cache) as client:
            sql = "SELECT kind, count(*) AS n FROM documents GROUP BY kind ORDER BY kind"
            made = await client.call_tool("query_database", {"sql": sql})
            assert made.structured_content == {
                "columns": ["kind", "n"], "rows": [["markdown", 1], ["text", 1]], "more": False,
            }  # fmt: skip
            for sql, advice in [
                ("DELETE FROM documents", "Only reading"), ("SELECT file FROM documents", "Only reading"),
                ("ATTACH '/tmp/x' AS x", "Only reading"), ("PRAGMA query_only = 0", "Only reading"),
                ("SELECT * FROM sqlite_master", "Only reading"), ("SELECT load_extension('x')", "Only reading"),
                ("SELECT 1; DROP TABLE documents", "SQLite says: You can"), ("SELEC 1", "syntax error"),
                ("SELECT path FROM folders", "Only reading"), ("SELECT count(*) FROM folders", "Only reading"),
                ("SELECT randomblob(999999999)", "Only reading"),
                ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", "narrow"),
            ]:  # fmt: skip
                refused = await client.call_tool("query_database", {"sql": sql})
                assert refused.is_error and advice in refused.content[0].text, (sql, refused.content[0].text)
            many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 900) SELECT i FROM n"
            made = await client.call_tool("query_database", {"sql": many})
            assert len(made.structured_content["rows"]) == 200 and made.structured_content["more"] is True
            assert (await client.call_tool("list_documents", {})).structured_content["total"] == 2


@pytest.mark.parametrize("mode", ERAS)
async def test_long_documents_are_resources_page_by_page(mode: str, docs: Path) -> None:
    async with connected(mode, "--folder", str(docs), "--cache", "memory") as client:
        listed = (await client.call_tool("list_documents", {})).structured_content["documents"]
        uri = next(d["uri"] for d in listed if d["path"] == "long.txt")
        lines: list[str] = []
        following: str | None = uri
        while following is not None:
            text = (await client.read_resource(following)).contents[0].text
            body, _, tail = text.partition("\n\n[page")
            lines += body.split("\n")
            following = tail.split()[-1].rstrip("]") if tail else None
        assert lines == [f"line {n}" for n in range(1, 2501)]
        templates = (await client.list_resource_templates()).resource_templates
        assert {t.uri_template for t in templates} == {"knowledge://doc/{id}", "knowledge://doc/{id}/{page}"}
        from mcp import MCPError

        for wrong in (f"{uri}/9", f"{uri}/x", "knowledge://doc/none"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(wrong)
            assert refused.value.code == -32602


@pytest.mark.parametrize("mode", ERAS)
async def test_prompts_are_filled_and_their_documents_completed(mode: str, docs: Path) -> None:
    from mcp import MCPError

    async with connected(mode, "--folder", str(docs), "--cache", "memory") as client:
        prompts = {p.name: p for p in (await client.list_prompts()).prompts}
        assert set(prompts) == {"summarize", "compare", "answer_with_sources"}
        made = await client.get_prompt("summarize", {"document": "tea.md"})
        assert "75 degrees" in made.messages[0].content.text
        made = await client.get_prompt("compare", {"first": "tea.md", "second": "long.txt"})
        assert "line 7" in made.messages[0].content.text
        made = await client.get_prompt("answer_with_sources", {"question": "how long does green tea steep?"})
        assert "[1] tea.md, lines 3-3" in made.messages[0].content.text
        reference = T.PromptReference(type="ref/prompt", name="summarize")
        found = await client.complete(reference, {"name": "document", "value": "te"})
        assert found.completion.values == ["tea.md"]
        template = T.ResourceTemplateReference(type="ref/resource", uri="knowledge://doc/{id}")
        (key,) = (await client.complete(template, {"name": "id", "value": "tea"})).completion.values
        assert "Tea" in (await client.read_resource(f"knowledge://doc/{key}")).contents[0].text
        for name, arguments, advice in [
            ("summarize", {}, "document (required)"), ("nothing", {}, "summarize, compare"),
            ("summarize", {"document": "te.md"}, "tea.md"),
        ]:  # fmt: skip
            with pytest.raises(MCPError, match=advice.replace("(", r"\(").replace(")", r"\)")) as refused:
                await client.get_prompt(name, arguments)
            assert refused.value.code == -32602


@pytest.mark.parametrize("mode", ERAS)
async def test_changes_of_the_folder_are_told_to_subscribers(mode: str, docs: Path) -> None:
    """Watched, in both eras: stats and the document itself."""
    told: asyncio.Queue[str] = asyncio.Queue()

    async def message(received: Any) -> None:
        if isinstance(received, T.ResourceUpdatedNotification):
            told.put_nowait(received.params.uri)

    async with connected(
        mode, "--folder", str(docs), "--cache", "memory", message_handler=message
    ) as client:  # fmt: skip
        listed = (await client.call_tool("list_documents", {})).structured_content["documents"]
        uri = next(d["uri"] for d in listed if d["path"] == "tea.md")
        wanted = ["knowledge://stats", uri]
        if mode == "legacy":
            for one in wanted:
                with pytest.warns(UserWarning, match="listen"):
                    await client.subscribe_resource(one)
            await _changes(docs, told, wanted)
        else:
            async with client.listen(resource_subscriptions=wanted):
                await _changes(docs, told, wanted)
        found = await client.call_tool("search_knowledge", {"query": "oolong"})
        assert found.structured_content["passages"][0]["path"] == "tea.md"


async def _changes(docs: Path, told: asyncio.Queue[str], wanted: list[str]) -> None:
    await asyncio.to_thread((docs / "tea.md").write_text, "# Tea\n\nOolong.\n")
    seen: set[str] = set()
    async with asyncio.timeout(20):
        while not seen >= set(wanted):
            seen.add(await told.get())


async def test_few_tools_are_offered_to_a_small_model(docs: Path) -> None:
    async with connected("auto", "--folder", str(docs), "--cache", "memory", "--tools", "read") as client:
        names = [t.name for t in (await client.list_tools()).tools]
        assert names == ["search_knowledge", "list_documents", "read_document"]
        hidden = await client.call_tool("add_folder", {"folder": "/"})
        assert hidden.is_error and "no tool 'add_folder'" in hidden.content[0].text
