"""Run: `pytest`. The client talks to the server in memory, in both protocol eras."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import server
from mcp import Client, MCPError

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    """The loop that the tests run on."""
    return "asyncio"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_note_is_added_found_and_read(mode):
    """Both eras, one code."""
    async with Client(server.server, mode=mode) as client:
        await client.call_tool("add_note", {"name": "tea", "text": "Two minutes at 75 degrees."})
        found = await client.call_tool("search_notes", {"query": "75 degrees"})
        assert found.structured_content == {"query": "75 degrees", "notes": ["tea"]}
        assert (await client.read_resource("notes://note/tea")).contents[0].text == "Two minutes at 75 degrees."


async def test_wrong_names_are_answered_with_the_right_form():
    """The model can mend what it is told of."""
    async with Client(server.server) as client:
        refused = await client.call_tool("add_note", {"name": "a b", "text": "x"})
        assert refused.is_error
        assert "shopping_list" in refused.content[0].text
        with pytest.raises(MCPError):
            await client.read_resource("notes://note/none")
