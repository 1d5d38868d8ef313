from __future__ import annotations

import itertools

import pytest

from desktop_host.core.sessions import TRANSITIONS, SessionState, Signal, step


@pytest.mark.parametrize(("state", "signal"), list(itertools.product(SessionState, Signal)))
def test_all_eighteen_pairs_move_as_the_table_says_or_are_bugs(state, signal):
    if (state, signal) in TRANSITIONS:
        assert step(state, signal) is TRANSITIONS[state, signal]
    else:
        with pytest.raises(RuntimeError, match="no transition"):
            step(state, signal)


def test_every_way_out_leads_to_idle():
    ends = {Signal.FINISH, Signal.FAIL, Signal.INTERRUPT}
    assert {to for (_, signal), to in TRANSITIONS.items() if signal in ends} == {SessionState.IDLE}
