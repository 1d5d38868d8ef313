"""Versions, weights and the stable draw."""

from __future__ import annotations

import hashlib

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.skills import SkillStatus
from desktop_host.skills.rollout import Share, default_for, draw, main_version, ordered, read, route, settle, write

CANARY = """
[versions."1.0.0"]
status = "deprecated"

[versions."1.1.0"]
status = "stable"
weight = 0.9   # most

[versions."2.0.0-beta"]
status = "beta"
weight = 0.1
"""
NAMES = ["2.0.0-beta", "1.1.0", "1.0.0"]


def test_ten_thousand_sessions_land_within_a_point():
    rollout, problems = read(CANARY, NAMES)
    assert not problems
    sessions = [hashlib.md5(str(n).encode()).hexdigest() for n in range(10_000)]
    got = [route(s, "travel-planner", rollout) for s in sessions]
    assert abs(got.count("2.0.0-beta") / 10_000 - 0.1) < 0.01
    assert abs(got.count("1.1.0") / 10_000 - 0.9) < 0.01
    assert got.count("1.0.0") == 0
    assert got == [route(s, "travel-planner", rollout) for s in sessions]


def test_the_draw_is_what_was_agreed():
    raw = hashlib.sha256(b"abc/travel-planner").digest()[:8]
    assert draw("abc", "travel-planner") == int.from_bytes(raw) / 2**64


def test_growing_a_canary_moves_no_session_away_from_it():
    small, _ = read(CANARY, NAMES)
    large = settle(small, {"2.0.0-beta": 0.5}, {})
    sessions = [str(n) for n in range(2000)]
    had = {s for s in sessions if route(s, "x", small) == "2.0.0-beta"}
    assert had <= {s for s in sessions if route(s, "x", large) == "2.0.0-beta"}


def test_versions_sort_as_people_mean_it():
    assert ordered(["1.10", "1.9", "2.0.0", "2.0.0-beta", "v0.1", "2.0.0-alpha.2", "2.0.0-alpha.10"]) == [
        "v0.1", "1.9", "1.10", "2.0.0-alpha.2", "2.0.0-alpha.10", "2.0.0-beta", "2.0.0",
    ]  # fmt: skip


def test_without_a_file_the_newest_finished_version_gets_everybody():
    assert {v: s.weight for v, s in default_for(NAMES).items()} == {"1.0.0": 0, "1.1.0": 1, "2.0.0-beta": 0}


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("[versions", {"rollout-unreadable"}),
        ('[versions."9.9"]\nweight = 1.0', {"rollout-unknown-version"}),
        ('[versions."1.1.0"]\nstatus = "gold"\nweight = 1.0', {"rollout-status"}),
        ('[versions."1.1.0"]\nweight = 3', {"rollout-weights"}),
        ('[versions."1.1.0"]\nweight = 0.5\n[versions."1.0.0"]\nweight = 0.2', {"rollout-weights"}),
    ],
)
def test_a_broken_rollout_is_told_and_still_shares_out_everything(text, codes):
    rollout, problems = read(text, NAMES)
    assert {p.code for p in problems} == codes and all(p.file == "rollout.toml" and p.line for p in problems)
    assert sum(s.weight for s in rollout.values()) == pytest.approx(1)


def test_what_named_weights_leave_goes_to_the_stable_versions():
    rollout, _ = read(CANARY, NAMES)
    assert settle(rollout, {"2.0.0-beta": 0.25}, {})["1.1.0"].weight == pytest.approx(0.75)
    promoted = settle(rollout, {"2.0.0-beta": 1}, {"2.0.0-beta": SkillStatus.STABLE})
    assert main_version(promoted) == "2.0.0-beta" and promoted["1.1.0"].weight == 0


def test_weights_that_do_not_fit_are_refused():
    rollout, _ = read(CANARY, NAMES)
    for weights, code in (({"1.1.0": 0.3}, "usage"), ({"3": 1.0}, "not_found"), ({"1.1.0": 2.0}, "usage")):
        with pytest.raises(UserFault) as caught:
            settle(rollout, weights, {})
        assert caught.value.code == code


def test_writing_keeps_comments_and_drops_versions_that_are_gone():
    rollout, _ = read(CANARY, NAMES)
    text = write("# mine\n" + CANARY, {**rollout, "1.1.0": Share(SkillStatus.STABLE, 0.6)})
    assert "# mine" in text and "weight = 0.6" in text
    text = write(text, {"1.1.0": Share(SkillStatus.STABLE, 1.0)})
    assert "2.0.0-beta" not in text and "1.0.0" not in text
