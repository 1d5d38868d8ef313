"""Shares of versions: whole percents that sum to 100 whatever is slid."""

from __future__ import annotations

import random

from desktop_host.core.skill_admin import SkillVersionRow
from desktop_host.core.skills import SkillStatus
from desktop_host.ui.viewmodels.shares import fitted, moved, promoted, rolled_back


def row(
    version: str, weight: float, status: SkillStatus = SkillStatus.STABLE, *, loaded: bool = True
) -> SkillVersionRow:
    return SkillVersionRow(version, status, weight, version, "/x", loaded=loaded)


def test_thirds_become_whole_percents_that_sum_to_a_hundred() -> None:
    assert fitted({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}) == {"a": 34, "b": 33, "c": 33}
    assert fitted({"a": 0, "b": 0}) == {"a": 0, "b": 100}
    assert fitted({}) == {}


def test_the_others_give_and_take_in_proportion() -> None:
    assert moved({"a": 60, "b": 30, "c": 10}, "c", 55) == {"a": 30, "b": 15, "c": 55}
    assert moved({"a": 0, "b": 0, "c": 100}, "c", 70) == {"a": 0, "b": 30, "c": 70}
    assert moved({"a": 100}, "a", 20) == {"a": 100}


def test_any_sequence_of_slides_keeps_the_sum() -> None:
    dice = random.Random(7)
    shares = fitted({v: dice.random() for v in "abcde"})
    for _ in range(2000):
        shares = moved(shares, dice.choice("abcde"), dice.randrange(-20, 130))
        assert sum(shares.values()) == 100
        assert all(0 <= s <= 100 for s in shares.values())


def test_promoting_makes_a_version_stable_and_gives_it_all() -> None:
    rows = (row("1", 0.9), row("2", 0.1, SkillStatus.BETA))
    assert promoted(rows, "2") == ({"1": 0.0, "2": 1.0}, {"2": SkillStatus.STABLE})


def test_rolling_back_prefers_stable_versions_then_the_nearest_older_one() -> None:
    rows = (row("1", 0.0), row("2", 0.0), row("3", 1.0))
    assert rolled_back(rows, "3") == {"1": 0.0, "2": 1.0, "3": 0.0}
    rows = (row("1", 0.6), row("2", 0.3), row("3", 0.1, SkillStatus.BETA))
    assert rolled_back(rows, "3") == {"1": 0.67, "2": 0.33, "3": 0.0}
    rows = (row("1", 0.0, SkillStatus.DEPRECATED, loaded=False), row("2", 1.0))
    assert rolled_back(rows, "2") == {"1": 0.0, "2": 1.0}
