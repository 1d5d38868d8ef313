from __future__ import annotations

import pytest

from desktop_host.cli.serve import address, callers
from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import EmbeddedResource, Image, Message, Outcome, ResourceLink, Role, Text, Thinking
from desktop_host.core.tools import ToolHints, ToolSpec
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.servers import gateway_wire as wire
from desktop_host.servers.gateway_http import guarded, is_loopback
from desktop_host.servers.gateway_names import address as gateway_address
from desktop_host.servers.gateway_names import parted


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)), (":0", ("127.0.0.1", 0)), ("localhost:1", ("localhost", 1)),
        ("[::1]:8010", ("::1", 8010)), ("0.0.0.0:9", ("0.0.0.0", 9)),
    ],
)  # fmt: skip
def test_an_address_is_host_and_port(text: str, found: tuple[str, int]) -> None:
    assert address(text) == found


@pytest.mark.parametrize("text", ["", "x", "127.0.0.1", "127.0.0.1:x", "1:2:3", "127.0.0.1:70000", "127.0.0.1:-1"])
def test_what_is_no_address_is_told(text: str) -> None:
    with pytest.raises(UserFault) as told:
        address(text)
    assert told.value.params["reason"] == "bad_address"


def test_each_key_sees_its_tools_and_all_may_run_what_is_allowed() -> None:
    main, tea = callers([("key", "tea", "notes.*"), ("key", "tea", "x.y")], ["*.search"])
    assert (main.name, main.tools, main.allow) == ("main", ("*",), ("*.search",))
    assert (tea.name, tea.tools, tea.allow) == ("tea", ("notes.*", "x.y"), ("*.search",))
    with pytest.raises(UserFault):
        callers([("key", "main", "*")], [])


@pytest.mark.parametrize("uri", ["knowledge://stats", "file:///a b/c", "x://y/{id}{?q,r*}", "urn:a/b", "a"])
def test_addresses_of_resources_can_be_taken_apart_again(uri: str) -> None:
    assert parted(gateway_address("my-notes", uri)) == ("my-notes", uri)


@pytest.mark.parametrize("uri", ["", "gateway://", "gateway://a", "gateway://a/", "gateway:///b", "http://a/b"])
def test_other_addresses_are_not_found(uri: str) -> None:
    with pytest.raises(UserFault) as told:
        parted(uri)
    assert told.value.code == "not_found"


def test_only_the_address_served_is_let_in() -> None:
    guard = guarded("127.0.0.1", 8010)
    assert "127.0.0.1:8010" in guard.allowed_hosts and "localhost:8010" in guard.allowed_hosts
    assert all(name.endswith(":8010") for name in guard.allowed_hosts)
    assert "192.0.2.7:8010" in guarded("192.0.2.7", 8010).allowed_hosts
    assert is_loopback("127.5.0.1") and is_loopback("::1") and is_loopback("localhost")
    assert not is_loopback("0.0.0.0") and not is_loopback("example.org")


SPEC = ToolSpec(
    "notes",
    "find.all",
    "Find.",
    freeze({"type": "object"}),
    freeze({"type": "object"}),
    "Find",
    ToolHints(read_only=True),
)


def test_a_tool_keeps_its_schemas_and_hints_below_a_name_of_its_own() -> None:
    made = wire.tool(SPEC)
    assert made.name == SPEC.wire_name != "notes.find.all"
    assert made.title == "Find (notes)"
    assert made.annotations is not None and made.annotations.read_only_hint is True
    assert made.output_schema == {"type": "object"}


def test_results_keep_every_kind_of_content_and_their_data() -> None:
    blocks = (
        Text("t", freeze({"priority": 0.5})), Image("aGk=", "image/png"), Thinking("hidden"),
        EmbeddedResource("a://b", "text/plain", "inside", None, None), ResourceLink("c://d", "d"),
    )  # fmt: skip
    made = wire.result(ToolOutcome(Outcome.OK, blocks, FrozenDict({"n": 1})), SPEC)
    assert [b.type for b in made.content] == ["text", "image", "resource", "resource_link"]
    assert made.content[0].annotations.priority == 0.5  # type: ignore[union-attr]
    assert made.content[2].resource.uri == "gateway://notes/a://b"  # type: ignore[union-attr]
    assert made.content[3].uri == "gateway://notes/c://d"  # type: ignore[union-attr]
    assert made.structured_content == {"n": 1} and not made.is_error


@pytest.mark.parametrize(
    "outcome", [Outcome.DENIED, Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.UNKNOWN, Outcome.ERROR]
)
def test_what_did_not_end_well_is_an_error_with_words(outcome: Outcome) -> None:
    made = wire.result(ToolOutcome(outcome), SPEC)
    assert made.is_error and made.content[0].text  # type: ignore[union-attr]


def test_each_block_of_a_prompt_becomes_a_message() -> None:
    made = wire.prompt_messages(
        [Message(Role.USER, (Text("a"), Text("b"))), Message(Role.ASSISTANT, (Text("c"),))], "n"
    )
    assert [(m.role, m.content.text) for m in made] == [  # type: ignore[union-attr]
        ("user", "a"), ("user", "b"), ("assistant", "c"),
    ]  # fmt: skip
