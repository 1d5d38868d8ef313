"""Which model answers a server: hints in order, then priorities, then the chat's own."""

from __future__ import annotations

import pytest

from desktop_host.core.model_choice import Candidate, Wishes, choose

OWN = Candidate("anthropic/claude-sonnet-5-5", "Sonnet", 0.02, 3, 4)
CHEAP = Candidate("openai/gpt-6-luna", "Luna", 0.002, 5, 3)
STRONG = Candidate("anthropic/claude-fable-5-2", "Fable", 0.10, 1, 5)
UNKNOWN = Candidate("compat:http://box/v1#mystery", "mystery")
ALL = (OWN, CHEAP, STRONG, UNKNOWN)
KIN = (("haiku", "luna"), ("sonnet", "terra"))


@pytest.mark.parametrize(
    ("wishes", "ref", "reason", "hint"),
    [
        (Wishes(), OWN.ref, "chat", ""),
        (Wishes(("FABLE", "luna")), STRONG.ref, "hint", "FABLE"),
        (Wishes(("gemini", "luna")), CHEAP.ref, "hint", "luna"),
        (Wishes(("claude-3-haiku",)), CHEAP.ref, "kin", "claude-3-haiku"),
        (Wishes(("claude-3-5-sonnet", "luna")), OWN.ref, "kin", "claude-3-5-sonnet"),
        (Wishes(("", "  ")), OWN.ref, "chat", ""),
        (Wishes(cost=1.0), CHEAP.ref, "priorities", ""),
        (Wishes(speed=0.7), CHEAP.ref, "priorities", ""),
        (Wishes(intelligence=1.0), STRONG.ref, "priorities", ""),
        (Wishes(("luna",), intelligence=1.0), CHEAP.ref, "hint", "luna"),
        (Wishes(("gemini",), intelligence=0.4), STRONG.ref, "priorities", ""),
        (Wishes(cost=0.0, speed=0.0, intelligence=0.0), OWN.ref, "chat", ""),
        (Wishes(cost=-3.0, intelligence=9.0), STRONG.ref, "priorities", ""),
    ],
)
def test_hints_come_first_in_their_order_then_priorities_then_the_chats_model(wishes, ref, reason, hint):
    choice = choose(OWN.ref, ALL, wishes, kin=KIN)
    assert (choice.ref, choice.reason, choice.hint) == (ref, reason, hint)


def test_what_nobody_knows_of_a_model_counts_as_nothing():
    choice = choose(OWN.ref, ALL, Wishes(cost=1.0, speed=1.0, intelligence=1.0))
    scores = {c.ref: c.score for c in choice.candidates}
    assert scores[UNKNOWN.ref] == 0.0
    assert scores[CHEAP.ref] == pytest.approx((0.98 + 1.0 + 0.5) / 3, abs=1e-4)
    assert scores[OWN.ref] == pytest.approx((0.8 + 0.5 + 0.75) / 3, abs=1e-4)


def test_a_tie_goes_to_the_chats_own_model_then_to_the_first_of_the_list():
    twin = Candidate("openai/twin", "", 0.02, 3, 4)
    assert choose(OWN.ref, (twin, OWN), Wishes(speed=1.0)).ref == OWN.ref
    second = Candidate("openai/other", "", 0.02, 5, 4)
    first = Candidate("openai/first", "", 0.02, 5, 4)
    assert choose(OWN.ref, (OWN, first, second), Wishes(speed=1.0)).ref == first.ref


def test_where_all_cost_nothing_none_is_cheaper():
    free = (Candidate("local", "", 0.0, 2, 1), Candidate("compat:x#y", "", 0.0))
    assert choose("compat:x#y", free, Wishes(cost=1.0)).ref == "compat:x#y"


@pytest.mark.parametrize("reason", ["route", "script"])
def test_priorities_move_neither_a_persons_route_nor_a_script_but_hints_do(reason):
    assert choose(OWN.ref, ALL, Wishes(cost=1.0), reason=reason).reason == reason
    assert choose(OWN.ref, ALL, Wishes(("luna",), cost=1.0), reason=reason).ref == CHEAP.ref


def test_no_choice_loses_a_candidate_and_each_keeps_its_facts():
    choice = choose(OWN.ref, ALL, Wishes(speed=0.5))
    assert [(c.ref, c.cost_usd, c.speed, c.intelligence) for c in choice.candidates] == [
        (c.ref, c.cost_usd, c.speed, c.intelligence) for c in ALL
    ]
