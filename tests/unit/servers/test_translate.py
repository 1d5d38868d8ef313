"""JSON of the protocol to the host's values, and what the tap makes of odd results."""

from __future__ import annotations

from typing import Any

import pytest

from desktop_host.core.messages import EmbeddedResource, Image, Outcome, Role, Text, ToolCall
from desktop_host.core.values import FrozenDict
from desktop_host.servers import translate
from desktop_host.servers.tap import WHOLE, repaired


def test_an_empty_text_beside_a_blob_does_not_hide_it() -> None:
    """Hazard I97."""
    assert translate.contents({"uri": "a", "text": "", "blob": "AA"}) == EmbeddedResource("a", None, None, "AA")
    assert translate.contents({"uri": "a", "text": ""}) == EmbeddedResource("a", None, "", None)


@pytest.mark.parametrize("raw", [None, 7, "x", {"type": "image"}, {"type": None}, {}, {"type": "text", "text": 5}])
def test_no_block_however_odd_raises_or_is_dropped(raw: Any) -> None:
    assert isinstance(translate.block(raw), Text)


def test_structured_content_alone_is_also_shown_as_text() -> None:
    outcome = translate.tool_outcome({"structuredContent": {"a": [1]}}, 1.0)
    assert outcome.content == (Text('{"a": [1]}'),)
    assert outcome.structured == {"a": (1,)}
    assert outcome.outcome is Outcome.OK


def test_hints_that_are_no_booleans_are_no_hints() -> None:
    spec = translate.tool_spec(
        "s", {"name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "yes"}}
    )
    assert spec.hints.read_only is None


def test_a_title_is_taken_before_the_title_of_the_annotations() -> None:
    raw = {"name": "t", "inputSchema": {"type": "object"}, "annotations": {"title": "B", "readOnlyHint": True}}
    assert translate.tool_spec("s", raw).title == "B"
    assert translate.tool_spec("s", {**raw, "title": "A"}).title == "A"
    assert translate.tool_spec("s", raw).hints.read_only is True


def test_messages_keep_their_roles_and_calls() -> None:
    made = translate.message(
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "n", "input": {"a": 1}}]}
    )
    assert made.role is Role.ASSISTANT
    assert made.blocks == (ToolCall("1", "n", FrozenDict({"a": 1})),)
    assert translate.wire_block(made.blocks[0]) == {"type": "tool_use", "id": "1", "name": "n", "input": {"a": 1}}
    assert translate.message({"content": {"type": "image", "data": "A", "mimeType": "image/gif"}}).blocks == (
        Image("A", "image/gif"),
    )


def test_the_sdk_gets_a_result_that_it_cannot_reject_and_the_host_the_whole() -> None:
    odd = {"content": [{"type": "hologram"}], "structuredContent": [1], "isError": None, "_meta": "no"}
    seen = repaired("tools/call", odd)
    assert seen["content"] == []
    assert (seen["isError"], seen["resultType"]) == (False, "complete")
    assert "structuredContent" not in seen
    assert seen["_meta"][WHOLE] is odd


def test_a_request_for_input_reaches_the_sdk_untouched() -> None:
    asked = {"resultType": "input_required", "inputRequests": {"u": {}}, "requestState": "x"}
    assert repaired("tools/call", asked) == {**asked, "_meta": {}}


def test_only_tools_with_a_name_reach_the_sdk_and_always_with_an_object_schema() -> None:
    listed = {
        "tools": [{"name": "a"}, {"x": 1}, "b", {"name": "c", "inputSchema": {"type": "string"}}],
        "nextCursor": "",
    }
    seen = repaired("tools/list", listed)
    assert seen["tools"] == [
        {"name": "a", "inputSchema": {"type": "object"}},
        {"name": "c", "inputSchema": {"type": "object"}},
    ]
    assert "nextCursor" not in seen
    assert (seen["ttlMs"], seen["cacheScope"]) == (0, "private")


def test_lists_that_are_no_lists_are_empty() -> None:
    for method in ("tools/list", "prompts/list", "resources/list"):
        field = method.split("/")[0]
        assert repaired(method, {field: None})[field] == []
