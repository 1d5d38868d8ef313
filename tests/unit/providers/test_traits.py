"""How fast and how capable models are: the shipped table, and what a person says instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.models import ModelEntry
from desktop_host.core.settings_costs import Trait
from desktop_host.providers.known import ANTHROPIC, OPENAI
from desktop_host.providers.traits import read_traits

TABLE = read_traits()


def entry(ref: str) -> ModelEntry:
    return ModelEntry(ref, ref, "x", True)


@pytest.mark.parametrize(
    "ref",
    [
        *(f"anthropic/{name}" for name, _t, _w in ANTHROPIC),
        *(f"openai/{name}" for name, _t, _w in OPENAI),
        "local", "local/qwen2.5-coder-1.5b",
    ],
)  # fmt: skip
def test_every_model_that_the_host_names_itself_is_in_the_table(ref: str) -> None:
    made = TABLE.dressed(entry(ref))
    assert made.speed in range(1, 6) and made.intelligence in range(1, 6)


def test_a_model_that_nobody_speaks_of_stays_unknown_and_a_person_may_speak_of_it() -> None:
    ref = "compat:http://127.0.0.1:9/v1#Mystery-7B"
    assert (TABLE.dressed(entry(ref)).speed, TABLE.dressed(entry(ref)).intelligence) == (None, None)
    own = (Trait("mystery-*", 4, 2), Trait("*", 1, 1))
    made = TABLE.dressed(entry(ref), own)
    assert (made.speed, made.intelligence) == (4, 2)
    opus = TABLE.dressed(entry("anthropic/claude-opus-5"), (Trait("anthropic/claude-opus-5", 1, 1),))
    assert (opus.speed, opus.intelligence) == (1, 1), "what the person says wins"


@pytest.mark.parametrize("text", ["trait = 5", "[[trait]]\nmodel = 'x'\n[[kin]]\nwords = []", "[[trait", ""])
def test_a_broken_table_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "models.toml").write_text(text)
    with pytest.raises(UserFault) as caught:
        read_traits(tmp_path / "models.toml")
    assert caught.value.params["file"] == str(tmp_path / "models.toml")
