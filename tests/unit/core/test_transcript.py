from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from desktop_host.core import events as ev
from desktop_host.core.messages import Outcome, Text, assistant
from desktop_host.core.permissions import Effect
from desktop_host.core.sessions import TurnStatus, TurnStop
from desktop_host.core.transcript import AssistantEntry, NoticeEntry, ToolEntry, Transcript, fold
from desktop_host.core.values import freeze


def line(*happened, start=1):
    return [ev.Stamped(i, float(i), "s", 1, e) for i, e in enumerate(happened, start)]


def folded(stamped):
    transcript = Transcript()
    for s in stamped:
        transcript = fold(transcript, s)
    return transcript


TURN = [
    ev.SessionOpened("m", ""),
    ev.UserSaid("hi"),
    ev.TurnStarted(),
    ev.ThinkingStreamed("hm"),
    ev.TokenDelta("a"),
    ev.TokenDelta("b"),
    ev.AssistantSaid(assistant("ab"), "m"),
    ev.ToolRequested("c", "srv", "tool", "srv__tool", freeze({}), Effect.ALLOW),
    ev.ToolStarted("c"),
    ev.ToolProgress("c", 1, 2),
    ev.ToolSettled("c", Outcome.OK, (Text("r"),)),
    ev.TokenDelta("done"),
    ev.AssistantSaid(assistant("done"), "m"),
    ev.TurnEnded(TurnStatus.DONE, TurnStop.END, "done"),
]


def test_a_turn_becomes_entries_in_order():
    entries = folded(line(*TURN)).entries
    assert [type(e).__name__ for e in entries] == ["UserEntry", "AssistantEntry", "ToolEntry", "AssistantEntry"]


def test_the_journal_alone_gives_the_same_as_the_live_stream():
    live = folded(line(*TURN))
    replayed = folded([s for s in line(*TURN) if s.event.journaled])

    def what(t):
        return [(type(e), getattr(e, "text", None), getattr(e, "outcome", None)) for e in t.entries]

    assert what(live) == what(replayed)


@given(st.sets(st.integers(0, len(TURN) - 1)))
def test_dropping_what_may_be_dropped_loses_nothing_that_was_kept(dropped):
    from desktop_host.core.delivery import Delivery

    stream = [s for i, s in enumerate(line(*TURN)) if not (i in dropped and s.event.delivery is Delivery.DROP)]
    tool = next(e for e in folded(stream).entries if isinstance(e, ToolEntry))
    assert tool.outcome is Outcome.OK and tool.content == (Text("r"),)


def test_an_event_seen_twice_changes_nothing():
    stream = line(*TURN)
    assert folded([*stream, *stream]) == folded(stream)


def test_a_cut_turn_leaves_its_text_marked_as_partial_and_says_why():
    stream = line(*TURN[:5], ev.TurnEnded(TurnStatus.INTERRUPTED, TurnStop.INTERRUPTED))
    transcript = folded(stream)
    reply = next(e for e in transcript.entries if isinstance(e, AssistantEntry))
    assert reply.partial and not reply.streaming and reply.text == "a"
    assert isinstance(transcript.entries[-1], NoticeEntry) and transcript.entries[-1].code == "turn_interrupted"


def test_a_retry_disappears_once_the_answer_comes():
    stream = line(*TURN[:3], ev.RetryScheduled(1, 2.0, "overloaded", "x", 9.0), ev.TokenDelta("a"))
    assert not [e for e in folded(stream).entries if isinstance(e, NoticeEntry)]


def test_keys_are_unique_and_the_index_finds_them():
    transcript = folded(line(*TURN))
    keys = [e.key for e in transcript.entries]
    assert len(set(keys)) == len(keys)
    assert all(transcript.entry(k) is e for k, e in zip(keys, transcript.entries, strict=True))
    assert all(a < b for a, b in itertools.pairwise(transcript.index.values()))


def test_an_unknown_price_is_never_zero():
    used = ev.UsageRecorded("m", "chat", 1, 1)
    assert folded(line(TURN[0], used)).cost_usd is None
