"""What would have a vendor refuse a whole conversation: ids that come twice, and too many pictures."""

from __future__ import annotations

from desktop_host.core.events import AssistantSaid, Notice, ToolRequested, ToolSettled
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import EmbeddedResource, Image, Message, Outcome, Role, Text, ToolCall, ToolResult
from desktop_host.core.transcript import ToolEntry
from desktop_host.engine import pictures
from desktop_host.engine.repair import with_own_ids
from tests.fakes.list_model import call
from tests.fakes.memory_history import World


def shown(messages: tuple[Message, ...]) -> list[str]:
    """The pictures that a request holds, oldest first."""
    out: list[str] = []
    for message in messages:
        for block in message.blocks:
            for inner in block.content if isinstance(block, ToolResult) else (block,):
                if isinstance(inner, Image):
                    out.append(inner.data)
                elif isinstance(inner, EmbeddedResource) and inner.blob:
                    out.append(inner.blob)
    return out


async def test_a_server_that_begins_its_ids_anew_every_turn_has_each_call_kept_apart(rig):
    """Hazard J104."""
    again = [call("t.one", "call_0"), call("t.two", "call_0")]
    r = rig([again, ["done"], again, ["done"]])
    r.tools.add("t.one", "1")
    r.tools.add("t.two", "2")
    session = await r.session()
    await r.say(session)
    await r.say(session)
    ids = [e.call_id for e in r.of(ToolRequested)]
    assert len(set(ids)) == 4
    assert sorted(e.call_id for e in r.of(ToolSettled)) == sorted(ids)
    assert [c.id for e in r.of(AssistantSaid) for c in e.message.calls] == ids
    last = r.model.requests[-1].messages
    assert [c.id for m in last for c in m.calls] == ids
    results = {b.call_id: b.content for m in last for b in m.blocks if isinstance(b, ToolResult)}
    assert [results[i] for i in ids] == [(Text("1"),), (Text("2"),)] * 2
    cards = [e for e in (await r.host.transcript(session)).entries if isinstance(e, ToolEntry)]
    assert [c.call_id for c in cards] == ids


async def test_pictures_go_oldest_first_and_several_at_once_and_the_person_is_told_once(rig):
    world = World()
    turns = 45
    replies = [step for n in range(turns) for step in ([call("t.shot", f"c{n}")], ["seen"])]
    r = rig(replies, world=world)
    taken = iter(range(turns))

    async def shot(_arguments, _progress):
        return ToolOutcome(Outcome.OK, (Text("shot"), Image(f"picture{next(taken)}", "image/png")))

    r.tools.add("t.shot", shot)
    session = await r.session()
    for _ in range(turns):
        await r.say(session)
    sent = [shown(q.messages) for q in r.model.requests]
    everything = [f"picture{n}" for n in range(turns)]
    for held in sent:
        assert len(held) <= pictures.MOST
        newest = everything[: int(held[-1].removeprefix("picture")) + 1] if held else []
        assert held == newest[len(newest) - len(held) :]
    firsts = [s[0] for s in sent if s]
    assert len(set(firsts)) <= 4, "the beginning changed at nearly every step"
    assert sum(e.code == "pictures_left_out" for e in r.of(Notice)) == 1
    entries = [e for e in (await r.host.transcript(session)).entries if isinstance(e, ToolEntry)]
    assert all(any(isinstance(b, Image) for b in e.content) for e in entries), "the person sees all of them"
    await r.close()

    again = rig([*replies, ["and now"]], world=world)
    again.tools.add("t.shot", shot)
    await again.say(session, "go on")
    assert shown(again.model.requests[-1].messages) == sent[-1], "another start, another history"
    assert not [e for e in again.of(Notice) if e.code == "pictures_left_out"]


def picture(name: str, size: int = 4) -> Image:
    return Image(name.ljust(size, "x"), "image/png")


def test_what_was_just_given_stays_as_long_as_it_alone_is_not_too_much():
    old = [Message(Role.USER, (picture(f"a{n}"),)) for n in range(12)]
    new = Message(Role.USER, (Text("look"), *(picture(f"b{n}") for n in range(15))))
    found = pictures.thinned([*old, new])
    assert sorted(found) == list(range(12))
    many = Message(Role.USER, tuple(picture(f"c{n:02}") for n in range(30)))
    [(at, fewer)] = pictures.thinned([many]).items()
    assert at == 0
    assert [b.data[:3] for b in fewer.blocks if isinstance(b, Image)] == [f"c{n:02}" for n in range(10, 30)]
    assert fewer.blocks[0] == Text(pictures.LEFT_OUT)


def test_their_size_counts_too_and_what_is_never_sent_does_not():
    big = [Message(Role.USER, (picture(f"a{n}", 6_000_000),)) for n in range(4)]
    assert sorted(pictures.thinned(big)) == []
    assert sorted(pictures.thinned([*big, big[0], big[1]])) == [0, 1, 2, 3]
    huge = [Message(Role.USER, (picture(f"a{n}", 7_000_000),)) for n in range(4)]
    assert pictures.thinned(huge) == {}
    inside = Message(
        Role.USER, (ToolResult("c", (EmbeddedResource("x://1", "application/pdf", None, "p" * 6_000_000),)),)
    )
    found = pictures.thinned([inside, *big, big[0]])
    assert found[0].blocks == (ToolResult("c", (Text(pictures.LEFT_OUT),)),)


def test_a_call_keeps_the_id_that_it_was_given_where_that_is_its_own():
    message = Message(Role.ASSISTANT, (ToolCall("a", "t"), ToolCall("b", "t")))
    assert with_own_ids(message, {"c"})[0] is message
