from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from desktop_host.core.messages import Message, Outcome, Role, Text, Thinking, ToolCall, ToolResult, assistant, user
from desktop_host.engine.conversation import cut
from desktop_host.engine.repair import repair

ids = st.sampled_from(["a", "b", "c"])
user_blocks = st.one_of(st.builds(Text, st.sampled_from(["", " ", "hi"])), st.builds(ToolResult, ids, st.just(())))
model_blocks = st.one_of(
    st.builds(Text, st.sampled_from(["", "answer"])),
    st.builds(ToolCall, ids, st.just("t")),
    st.builds(Thinking, st.just("h")),
)  # fmt: skip
messages = st.lists(
    st.one_of(
        st.builds(Message, st.just(Role.USER), st.lists(user_blocks, max_size=4).map(tuple)),
        st.builds(Message, st.just(Role.ASSISTANT), st.lists(model_blocks, max_size=4).map(tuple)),
    ),
    max_size=8,
)


@given(messages)
def test_any_history_becomes_one_that_every_vendor_takes(history):
    """Hazards J101, J103, J104: whatever was cut, cancelled or lost."""
    fixed = repair(history)
    if not fixed:
        return
    assert fixed[0].role is Role.USER
    waiting: list[str] = []
    ids = [c.id for m in fixed for c in m.calls]
    assert len(set(ids)) == len(ids)
    for before, message in zip((None, *fixed), fixed, strict=False):
        assert before is None or before.role is not message.role
        assert message.blocks
        assert not [b for b in message.blocks if isinstance(b, Text) and not b.text.strip()]
        results = [b.call_id for b in message.blocks if isinstance(b, ToolResult)]
        assert results == waiting
        assert all(isinstance(b, ToolResult) for b in message.blocks[: len(results)])
        waiting = [c.id for c in message.calls]
        assert len(set(waiting)) == len(waiting)
    assert not waiting


@given(messages)
def test_repairing_twice_changes_nothing_more(history):
    once = repair(history)
    again = repair(once)
    assert again == once
    assert all(a is b for a, b in zip(once, again, strict=True))


def test_a_sound_history_is_passed_on_as_it_is():
    history = (
        user("go"),
        assistant("let me", ToolCall("a", "t")),
        user(ToolResult("a", (Text("r"),))),
        assistant("done"),
    )
    assert all(a is b for a, b in zip(repair(history), history, strict=True))


def test_an_id_that_comes_again_in_a_later_turn_is_told_apart_with_its_result():
    turn = (user("go"), assistant(ToolCall("a", "t")), user(ToolResult("a", (Text("r"),))), assistant("done"))
    fixed = repair((*turn, *turn))
    assert [c.id for m in fixed for c in m.calls] == ["a", "a_2"]
    assert [b for m in fixed for b in m.blocks if isinstance(b, ToolResult)] == [
        ToolResult("a", (Text("r"),)), ToolResult("a_2", (Text("r"),))
    ]  # fmt: skip
    assert all(a is b for a, b in zip(fixed[:4], turn, strict=True))


def test_a_lost_result_is_replaced_by_one_that_says_so():
    fixed = repair([user("go"), assistant(ToolCall("a", "t"), ToolCall("b", "t")), user(ToolResult("b", ()))])
    assert [(b.call_id, b.outcome) for b in fixed[-1].blocks] == [("a", Outcome.CANCELLED), ("b", Outcome.OK)]


def test_a_long_text_keeps_its_head_and_its_tail():
    text = "head " + "x" * 5000 + " tail"
    short = cut(text, 300)
    assert short.startswith("head") and short.endswith("tail") and len(short) < 400
    assert cut("short", 300) == "short"
