from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from desktop_host.core.routes import EXAMPLE, Link, Route, toml
from desktop_host.core.settings_costs import Price, Trait
from desktop_host.profiles.settings_file import SettingsFile

OWN = """
schema = 1

[[routes]]
# my own words
name = "summary"
chain = ["local", { model = "anthropic/x", max_context = 1000, images = false, max_cost_usd = 0.5 }]

[[prices]]
model = "qwen*"
input = 1
output = 2.5

[[traits]]
# it is slow here
model = "qwen*"
speed = 1
intelligence = 2
"""


async def test_routes_and_prices_are_read_and_written_back_with_their_comments(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(OWN)
    file = await SettingsFile.open(path)
    (route,) = file.current().routes
    assert route == Route("summary", (Link("local"), Link("anthropic/x", 1000, False, True, 0.5)))
    assert file.current().prices == (Price("qwen*", 1.0, 2.5),)
    assert file.current().traits == (Trait("qwen*", 1, 2),)
    more = replace(
        file.current(), routes=(route, *EXAMPLE[:2]), prices=(Price("m", 0.0, 1.0, 0.1, 2.0),),
        traits=(Trait("qwen*", 2, 2), Trait("m", 5, 5)),
    )  # fmt: skip
    await file.save(more)
    assert "# my own words" in path.read_text() and "# it is slow here" in path.read_text()
    again = await SettingsFile.open(path)
    assert again.current() == more and again.problems() == ()


async def test_the_example_reads_back_as_it_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    odd = Route("odd", (Link('compat:http://x/v1#m"q', 10, False, False, 0.5),))
    path.write_text(toml((*EXAMPLE, odd)))
    file = await SettingsFile.open(path)
    assert file.current().routes == (*EXAMPLE, odd) and file.problems() == ()


@pytest.mark.parametrize(
    "text",
    [
        'name = "local"\nchain = ["x"]', 'name = "ok"\nchain = []', 'name = "ok"', 'name = "Bad Name"\nchain = ["x"]',
        'name = "ok"\nchain = [1]', 'name = "ok"\nchain = [{ model = "x", max_context = -1 }]',
    ],
)  # fmt: skip
async def test_a_route_that_cannot_be_read_is_named_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f"[[routes]]\n{text}\n")
    file = await SettingsFile.open(path)
    assert file.current().routes == () and file.problems()[0]["key"] == "routes[0]"
    await file.save(replace(file.current(), routes=EXAMPLE[:1]))
    assert text in path.read_text()


async def test_an_amount_of_money_is_set_by_its_key(tmp_path: Path) -> None:
    file = await SettingsFile.open(tmp_path / "settings.toml")
    assert (await file.set("budgets.day_usd", "1.5")).budgets.day_usd == 1.5
    assert (await file.set("quotas.tier", "free")).quotas.calls == 50


@pytest.mark.parametrize(
    "text", ['model = "m"', 'model = "m"\nspeed = 6\nintelligence = 1', "model = 5", "speed = true"]
)
async def test_a_trait_that_cannot_be_read_is_named_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f"[[traits]]\n{text}\n")
    file = await SettingsFile.open(path)
    assert file.current().traits == () and file.problems()[0]["key"] == "traits[0]"
    await file.save(replace(file.current(), traits=(Trait("other", 1, 1),)))
    assert text in path.read_text()
