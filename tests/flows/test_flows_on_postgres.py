"""Flows of the engine once more, with the record in the real PostgreSQL."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.manual_clock import ManualClock
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.rig import Rig
from tests.flows import test_branch_flow as branch
from tests.flows import test_budgets_flow as budgets
from tests.flows import test_compaction_flow as compaction
from tests.flows import test_turn_flow as turn

FLOWS = (
    turn.test_a_turn_with_a_tool_is_told_in_order,
    turn.test_the_person_is_asked_and_allows_for_the_chat,
    turn.test_a_grant_lapses_when_the_tool_changes_its_definition,
    turn.test_stop_keeps_the_text_and_the_next_turn_works,
    turn.test_stop_during_a_call_cancels_it_and_pairs_every_call,
    turn.test_a_failed_request_is_told_and_can_be_resumed,
    turn.test_requests_of_one_session_run_one_after_another,
    turn.test_an_idle_session_is_let_go_and_opens_again,
    turn.test_another_process_cannot_write_the_session,
    turn.test_the_start_of_a_conversation_survives_a_restart_byte_for_byte,
    turn.test_a_two_megabyte_result_is_whole_for_the_person_and_cut_for_the_model,
    turn.test_a_bundle_makes_the_same_conversation_elsewhere,
    compaction.test_a_conversation_is_summarised_before_the_window_overflows,
    compaction.test_a_long_tool_turn_is_summarised_between_its_rounds_and_goes_on,
    compaction.test_a_summary_can_be_undone_and_is_then_not_made_by_itself,
    compaction.test_a_session_opened_again_is_told_to_the_model_in_the_same_words,
    compaction.test_the_rest_of_a_cut_result_can_be_read,
    branch.test_a_branch_holds_the_turns_before_and_goes_its_own_way,
    branch.test_what_a_branch_takes_over_is_not_counted_again,
    branch.test_a_regenerated_answer_asks_the_same_afresh,
    branch.test_a_judgement_is_kept_with_its_turn_and_can_be_taken_back,
    budgets.test_the_tools_of_a_turn_count_and_it_goes_on_once_the_budget_is_raised,
)


@pytest.fixture
async def rig(postgres: PostgresServer, tmp_path: Path) -> AsyncIterator[Callable[..., Rig]]:
    """Engines on one shared database, each with a folder of its own, as on several computers."""
    from desktop_host.storage import open_storage

    params, clock = postgres.emptied(), ManualClock()
    made: list[Rig] = []
    async with AsyncExitStack() as stack:
        storages = [
            await stack.enter_async_context(open_storage(tmp_path / str(n), shared=params, now=clock.now))
            for n in range(2)
        ]
        turns = itertools.count()

        def make(replies: list[list[Any]], **more: Any) -> Rig:
            more.pop("world", None)
            made.append(Rig(replies, storage=storages[next(turns)], clock=more.pop("clock", clock), **more))
            return made[-1]

        yield make
        for one in made:
            await one.close()


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__.removeprefix("test_"))
async def test_it_goes_the_same_with_a_shared_database(flow: Any, rig: Callable[..., Rig]) -> None:
    await flow(rig)


async def test_a_host_that_was_taken_for_dead_writes_nothing_more_and_then_knows_what_was_said_elsewhere(
    rig: Callable[..., Rig], postgres: PostgresServer
) -> None:
    """Hazard J101: it slept for minutes, and another computer went on with the chat."""
    here, there = rig([["one"], ["never"], ["three"]]), rig([["x"], ["two"]])
    session = await here.session()
    assert (await here.say(session, "first")).text == "one"
    postgres.admin("DELETE FROM desktop_host.leases", postgres.emptied_name)
    assert (await there.say(session, "second, elsewhere")).text == "two"
    await there.sessions.release(session)
    lost = await here.say(session, "third")
    assert lost.error is not None
    assert (lost.error["code"], lost.error["params"]["reason"]) == ("session_busy", "taken_over")
    result = await here.say(session, "third again")
    assert result.text == "three"
    told = [b.text for m in here.model.requests[-1].messages for b in m.blocks if hasattr(b, "text")]
    assert told == ["first", "one", "second, elsewhere", "two", "third again"]
    turns = [s.turn for s in await here.history.read(session) if s.event.type == "turn_started"]
    assert turns == [1, 2, 3]
