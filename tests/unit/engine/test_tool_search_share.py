"""When a search stands in for the definitions of tools."""

from __future__ import annotations

import pytest

from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import freeze
from desktop_host.engine.tool_search import needed

RECORD = freeze({
    "type": "object",
    "properties": {
        "record_id": {"type": "string", "description": "identifier of the record"},
        "limit": {"type": "integer", "description": "how many rows at most", "default": 10},
        "verbose": {"type": "boolean", "description": "also return the hidden fields"},
    },
    "required": ["record_id"],
})  # fmt: skip


def tools(count: int) -> list[ToolSpec]:
    said = "Tool of server s: reads one record from the store and returns it with its fields."
    return [ToolSpec("s", f"s_tool_{n:02d}", said, RECORD) for n in range(count)]


@pytest.mark.parametrize(
    ("count", "window", "share", "searched"),
    [(50, None, 5, False), (100, None, 5, True), (50, 32_000, 5, True), (10, 8_000, 5, False), (1000, None, 0, False)],
)
def test_fifty_usual_tools_are_told_in_the_usual_window_and_more_go_behind_a_search(count, window, share, searched):
    assert needed(tools(count), window, share) is searched
