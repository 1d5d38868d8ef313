"""Whatever breaks on the way to a yes, nothing runs; and two faces that answer one question count as one."""

from __future__ import annotations

import asyncio

import pytest

from desktop_host.core.asks import Allow, Refuse
from desktop_host.core.errors import KnownFault
from desktop_host.core.events import AskRaised, AskSettled, ToolRequested, ToolSettled, ToolStarted
from desktop_host.core.messages import Outcome
from desktop_host.core.permissions import Effect, Life, Scope
from desktop_host.core.sessions import TurnStatus
from desktop_host.core.transcript import ToolEntry
from desktop_host.engine.host import UserInput
from tests.fakes.list_model import call

REPLIES = [[call("t.run", "c1")], ["done"]]
BROKEN = KnownFault("database_error", "the disk is gone"), RuntimeError("a bug")


async def fails(*_a: object, **_k: object) -> object:
    raise BROKEN[0]


@pytest.mark.parametrize("error", BROKEN, ids=["fault", "bug"])
@pytest.mark.parametrize("part", ["grants", "settings", "trust", "group"])
async def test_a_check_that_breaks_denies_even_where_all_is_allowed(rig, part, error, monkeypatch):
    """Hazard K113."""
    r = rig(REPLIES, permission="allow")
    r.tools.add("t.run", "ran")
    session = await r.session()

    def breaks(*_a: object) -> object:
        raise error

    async def breaks_later(*_a: object) -> object:
        raise error

    gate = r.sessions._parts.gate  # The one object under test; its parts break one by one.
    match part:
        case "grants":
            monkeypatch.setattr(r.ledger, "grants", breaks_later)
        case "settings":
            monkeypatch.setattr(gate, "_settings", breaks)
        case "trust":
            monkeypatch.setattr(gate, "_trusted", breaks)
        case "group":
            monkeypatch.setattr(gate, "_default", breaks)
    result = await r.say(session)
    assert result.status is TurnStatus.DONE
    [asked] = r.of(ToolRequested)
    assert (asked.verdict, asked.reason) == (Effect.DENY, "gate_failed")
    assert r.tools.called == []
    assert r.of(ToolStarted) == []
    assert [e.outcome for e in r.of(ToolSettled)] == [Outcome.DENIED]


@pytest.mark.parametrize("part", ["known_tool", "remember_tool", "grant"])
async def test_an_answer_that_cannot_be_kept_runs_nothing(rig, part, monkeypatch):
    """Hazard K113."""
    r = rig(REPLIES, permission="ask")
    r.tools.add("t.run", "ran")
    session = await r.session()
    monkeypatch.setattr(r.ledger, part, fails)
    turn = await r.host.submit(session, UserInput("go"))
    if part != "known_tool":
        await r.until(lambda: r.of(AskRaised))
        ask = r.of(AskRaised)[0].ask
        await r.host.answer(ask.ask_id, Allow(Life.PROFILE, Scope.TOOL, ask.tool_digest))
    await turn.done
    assert r.tools.called == []
    assert [e.outcome for e in r.of(ToolSettled)] == [Outcome.ERROR]


async def test_a_yes_that_was_given_for_another_definition_is_a_no(rig):
    """Hazard K118."""
    r = rig(REPLIES, permission="ask")
    r.tools.add("t.run", "ran")
    session = await r.session()
    turn = await r.host.submit(session, UserInput("go"))
    await r.until(lambda: r.of(AskRaised))
    await r.host.answer(
        r.of(AskRaised)[0].ask.ask_id, Allow(tool_digest="of the tool as it was shown in another window")
    )
    await turn.done
    assert r.tools.called == []
    assert [e.outcome for e in r.of(ToolSettled)] == [Outcome.DENIED]


async def test_of_two_windows_that_answer_the_first_counts_and_both_see_it_settled(rig):
    r = rig(REPLIES, permission="ask")
    r.tools.add("t.run", "ran")
    session = await r.session()
    other = r.bus.subscribe(session)
    turn = await r.host.submit(session, UserInput("go"))
    await r.until(lambda: r.of(AskRaised))
    ask = r.of(AskRaised)[0].ask
    first, second = Refuse(), Allow(tool_digest=ask.tool_digest)
    answers = await asyncio.gather(r.host.answer(ask.ask_id, first), r.host.answer(ask.ask_id, second))
    assert answers == [True, False]
    await turn.done
    assert r.tools.called == []
    assert [e.action for e in r.of(AskSettled)] == ["refuse"]
    other.close()
    seen = [s.event async for batch in other for s in batch]
    assert [e.action for e in seen if isinstance(e, AskSettled)] == ["refuse"]
    assert await r.host.answer(ask.ask_id, Allow()) is False
    [card] = [e for e in (await r.host.transcript(session)).entries if isinstance(e, ToolEntry)]
    assert card.outcome is Outcome.DENIED
