"""A conversation made fit for sending."""

from __future__ import annotations

from itertools import zip_longest

from hypothesis import given
from hypothesis import strategies as st

from desktop_host.core.messages import (
    Message,
    Native,
    Outcome,
    Role,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from desktop_host.providers.history import repaired


def test_a_sound_history_comes_back_as_the_same_objects():
    history = (user("q"), assistant("a", ToolCall("1", "t")), user(ToolResult("1", (Text("r"),))), assistant("b"))
    assert all(a is b for a, b in zip(repaired(history), history, strict=True))


def test_a_call_without_a_result_gets_one():
    """Hazard J101; public bug crush#529: Stop in mid-tool, then say hi."""
    history = (user("q"), assistant(ToolCall("1", "t"), ToolCall("2", "t")), user("hi"))
    fixed = repaired(history)
    results = [b for b in fixed[2].blocks if isinstance(b, ToolResult)]
    assert [(r.call_id, r.outcome) for r in results] == [("1", Outcome.CANCELLED), ("2", Outcome.CANCELLED)]
    assert fixed[2].blocks[-1] == Text("hi")


def test_a_crash_right_after_the_call_is_put_right_at_the_end_too():
    fixed = repaired((user("q"), assistant(ToolCall("1", "t"))))
    assert isinstance(fixed[2].blocks[0], ToolResult)


def test_results_stand_in_the_order_of_the_calls():
    """Hazard H88."""
    results = user(*(ToolResult(str(n), (Text(str(n)),)) for n in (3, 1, 2)))
    fixed = repaired((user("q"), assistant(*(ToolCall(str(n), "t") for n in (1, 2, 3))), results))
    assert [b.call_id for b in fixed[2].blocks if isinstance(b, ToolResult)] == ["1", "2", "3"]


def test_results_without_a_call_and_second_results_are_dropped():
    """Hazard J103: a window cut through a pair."""
    orphan = ToolResult("9", (Text("r"),))
    twice = ToolResult("1", (Text("again"),))
    one = ToolResult("1", (Text("first"),))
    fixed = repaired((user(orphan, "q"), assistant(ToolCall("1", "t")), user(one, twice)))
    assert fixed[0].blocks == (Text("q"),)
    assert fixed[2].blocks == (one,)
    assert repaired((user(orphan),)) == ()


def test_blank_text_goes_and_neighbours_are_joined():
    """Public bug livekit/agents#1789: empty text blocks on tool-only turns."""
    fixed = repaired((user("a"), user("b"), assistant(" ", ToolCall("1", "t")), assistant("", "x")))
    assert [m.role for m in fixed] == [Role.USER, Role.ASSISTANT, Role.USER, Role.ASSISTANT]
    assert fixed[0].blocks == (Text("a"), Text("b"))
    assert fixed[1].blocks == (ToolCall("1", "t"),)


def test_a_person_speaks_first():
    assert repaired((assistant("hello"),))[0].role is Role.USER


def test_a_turn_in_the_vendors_form_is_not_touched():
    native = Native("anthropic", "u", "m", ())
    said = Message(Role.ASSISTANT, (Text(" "),), native)
    assert repaired((user("q"), said))[1] is said


block = st.one_of(
    st.sampled_from(["", "text"]).map(Text),
    st.sampled_from("abc").map(lambda i: ToolCall(i, "t")),
    st.sampled_from("abc").map(lambda i: ToolResult(i, (Text("r"),))),
)


@given(
    st.lists(
        st.builds(
            lambda role, blocks: Message(
                role, tuple(b for b in blocks if not isinstance(b, ToolCall if role is Role.USER else ToolResult))
            ),
            st.sampled_from(Role), st.lists(block, max_size=4),
        ),
        max_size=8,
    )
)  # fmt: skip
def test_any_history_becomes_sound(history):
    fixed = repaired(history)
    assert all(message.blocks for message in fixed)
    assert [m.role for m in fixed] == [Role.USER if n % 2 == 0 else Role.ASSISTANT for n in range(len(fixed))]
    for message, following in zip_longest(fixed, fixed[1:]):
        wanted = list(dict.fromkeys(call.id for call in message.calls))
        given_back = [b.call_id for b in following.blocks if isinstance(b, ToolResult)] if following else []
        assert given_back == wanted
