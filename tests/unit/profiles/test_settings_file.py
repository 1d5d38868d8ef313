from __future__ import annotations

import contextlib
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from desktop_host.core import settings as core
from desktop_host.core.errors import UserFault
from desktop_host.core.settings import Endpoint, PermissionRule, Settings
from desktop_host.profiles.settings_file import SettingsFile

OWN = """# my settings
schema = 1

[general]
language = "zh_CN"   # Chinese, please
shiny = true

[model]
# the big one
default = "anthropic/claude"

[[endpoints]]
name = "box"
wire = "compat"
base_url = "http://127.0.0.1:1234/v1"
note = "under the desk"

[future]
thing = [1, 2]
"""


def put(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")


async def opened(path: Path, text: str | None = None) -> SettingsFile:
    if text is not None:
        put(path, text)
    return await SettingsFile.open(path)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.endswith(".lock")}


async def test_without_a_file_all_is_default_and_no_file_is_made(tmp_path: Path) -> None:
    file = await opened(tmp_path / "settings.toml")
    assert file.current() == Settings()
    assert file.problems() == ()
    assert snapshot(tmp_path) == {}


async def test_setting_one_key_keeps_comments_and_unknown_keys(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    file = await opened(path, OWN)
    assert file.current().general.language == "zh_CN"
    assert file.current().endpoints == (Endpoint("box", "compat", "http://127.0.0.1:1234/v1"),)
    assert (await file.set("general.theme", "dark")).general.theme == "dark"
    assert await file.set("model.max_tokens", "4096") == file.current()
    text = path.read_text("utf-8")
    for line in OWN.splitlines():
        assert line in text
    assert 'theme = "dark"' in text
    again = await SettingsFile.open(path)
    assert again.current() == file.current()
    assert {p["key"] for p in again.problems()} == {"general.shiny", "future"}
    assert (tmp_path / "settings.toml.bak").exists()


async def test_a_first_set_writes_the_schema_and_only_what_was_set(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.toml"
    file = await opened(path)
    await file.set("tools.max_steps", 7)
    assert path.read_text().split() == ["schema", "=", "1", "[tools]", "max_steps", "=", "7"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('[general]\nlanguage = "zh', 2, 15),
        ("[general]\nlanguage = zh\n", 2, 12),
        ("// a comment of another language\n", 1, 1),
        ('{"general": {}}', 1, 1),
        ("[general\n", 1, 9),
        ("a = 1\na = 2\n", 2, 6),
    ],
)
async def test_a_broken_file_is_placed_and_never_overwritten(tmp_path: Path, text: str, line: int, column: int) -> None:
    """Hazards A4, A8."""
    path = tmp_path / "settings.toml"
    path.write_text(text)
    before = snapshot(tmp_path)
    with pytest.raises(UserFault) as caught:
        await SettingsFile.open(path)
    params = caught.value.params
    assert (caught.value.code, params["file"], params["line"], params["column"]) == (
        "bad_settings", str(path), line, column,
    )  # fmt: skip
    assert snapshot(tmp_path) == before


async def test_a_file_that_breaks_while_it_is_open_is_not_overwritten(tmp_path: Path) -> None:
    """Hazard A4."""
    path = tmp_path / "settings.toml"
    file = await opened(path, OWN)
    path.write_text("[general\n")
    for attempt in (file.set("general.theme", "dark"), file.save(replace(file.current(), endpoints=()))):
        with pytest.raises(UserFault) as caught:
            await attempt
        assert caught.value.code == "bad_settings"
    assert path.read_text() == "[general\n"
    assert file.current().general.theme == "system"


async def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    """Hazard A1."""
    path = tmp_path / "settings.toml"
    path.write_bytes(b"\xef\xbb\xbf" + OWN.replace("\n", "\r\n").encode())
    before = path.read_bytes()
    file = await SettingsFile.open(path)
    assert file.current().general.language == "zh_CN"
    assert path.read_bytes() == before
    await file.set("general.theme", "dark")
    assert (await SettingsFile.open(path)).current().general == file.current().general
    assert b"# the big one\r\n" in path.read_bytes()


async def test_a_file_in_another_encoding_is_placed(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(b"[model]\nsystem = '\xe9t\xe9'\n")
    with pytest.raises(UserFault) as caught:
        await SettingsFile.open(path)
    assert (caught.value.params["reason"], caught.value.params["line"], caught.value.params["column"]) == (
        "encoding", 2, 11,
    )  # fmt: skip


async def test_a_bad_value_costs_its_own_key_only(tmp_path: Path) -> None:
    text = """
general = {language = "klingon", theme = "dark"}
tools = {max_steps = "many", parallel = 3}
sessions = "short"
endpoints = [{name = "x"}, {name = "y", wire = "compat", base_url = "http://127.0.0.1"}]
"""
    file = await opened(tmp_path / "settings.toml", text)
    now = file.current()
    assert (now.general.language, now.general.theme) == ("system", "dark")
    assert (now.tools.max_steps, now.tools.parallel) == (50, 3)
    assert now.sessions == core.Sessions()
    assert [e.name for e in now.endpoints] == ["y"]
    assert {p["key"]: p["code"] for p in file.problems()} == {
        "general.language": "bad_value", "tools.max_steps": "bad_value", "sessions": "bad_value",
        "endpoints[0]": "bad_value",
    }  # fmt: skip
    await file.set("general.language", "en")
    await file.set("sessions.idle_minutes", 5)
    assert {p["key"] for p in file.problems()} == {"tools.max_steps", "endpoints[0]"}


async def test_setting_the_default_mends_a_bad_value(tmp_path: Path) -> None:
    file = await opened(tmp_path / "settings.toml", '[general]\nlanguage = "klingon"\n')
    await file.set("general.language", "system")
    assert file.problems() == ()


async def test_a_rule_that_cannot_be_read_denies(tmp_path: Path) -> None:
    """Hazard K113, `permissions`: a broken rule denies."""
    text = '[[rules]]\neffect = "denny"\npattern = "files.*"\n[[rules]]\neffect = "allow"\n[[rules]]\n'
    file = await opened(tmp_path / "settings.toml", text + 'effect = "allow"\npattern = "time.*"\n')
    assert file.current().rules == (
        PermissionRule("deny", "files.*"), PermissionRule("deny", "*"), PermissionRule("allow", "time.*"),
    )  # fmt: skip
    assert [p["key"] for p in file.problems()] == ["rules[0]", "rules[1]"]


async def test_an_empty_list_is_not_a_missing_one(tmp_path: Path) -> None:
    """Hazard A10."""
    file = await opened(tmp_path / "settings.toml", "endpoints = []\nrules = []\n")
    assert (file.current().endpoints, file.current().rules, file.problems()) == ((), (), ())


async def test_unknown_keys_and_bad_values_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    file = await opened(path, OWN)
    before = snapshot(tmp_path)
    for key, value in (("general.nothing", 1), ("nothing", 1), ("tools.max_steps", 0), ("general.theme", "pink")):
        with pytest.raises(UserFault) as caught:
            await file.set(key, value)
        assert caught.value.code == "bad_settings"
    assert snapshot(tmp_path) == before


async def test_saving_writes_only_what_changed(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    file = await opened(path, OWN)
    other = await SettingsFile.open(path)
    await other.set("general.font_scale", 150)
    box = file.current().endpoints[0]
    new = Endpoint("cloud", "responses", "https://example.com/v1", ("a", "b"))
    changed = replace(file.current(), endpoints=(replace(box, models=("m",)), new))
    changed = core.put(changed, "tools.parallel", 2)
    await file.save(changed)
    now = (await SettingsFile.open(path)).current()
    assert (now.general.font_scale, now.tools.parallel) == (150, 2)
    assert now.endpoints == changed.endpoints
    assert 'note = "under the desk"' in path.read_text()
    await file.save(replace(now, endpoints=()))
    assert "under the desk" not in path.read_text()
    assert "[future]" in path.read_text()
    assert (await SettingsFile.open(path)).current().endpoints == ()


async def test_an_endpoint_that_cannot_be_read_survives_a_save(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    file = await opened(path, '[[endpoints]]\nname = "of a newer host"\nwire = "telepathy"\nbase_url = "x"\n')
    await file.save(replace(file.current(), endpoints=(Endpoint("y", "compat", "http://127.0.0.1"),)))
    assert "telepathy" in path.read_text()


async def test_an_older_file_is_upgraded_step_by_step_with_a_copy_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('# mine\n[general]\nlang = "en"\n')

    def first(document: dict[str, Any]) -> None:
        document["general"]["langue"] = document["general"].pop("lang")

    def second(document: dict[str, Any]) -> None:
        document["general"]["language"] = document["general"].pop("langue")

    file = await SettingsFile.open(path, upgrades=(first, second))
    assert file.current().general.language == "en"
    assert "# mine" in path.read_text()
    assert "schema = 3" in path.read_text()
    assert (tmp_path / "settings.toml.schema-1.bak").read_text() == '# mine\n[general]\nlang = "en"\n'
    assert (await SettingsFile.open(path, upgrades=(first, second))).current() == file.current()


async def test_a_file_of_a_newer_host_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("schema = 99\n")
    with pytest.raises(UserFault) as caught:
        await SettingsFile.open(path)
    assert caught.value.params["reason"] == "newer_schema"
    assert path.read_text() == "schema = 99\n"


async def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text(OWN)
    link = tmp_path / "settings.toml"
    link.symlink_to(real)
    file = await SettingsFile.open(link)
    await file.set("general.theme", "dark")
    assert link.is_symlink()
    assert 'theme = "dark"' in real.read_text()


CHECKED = {
    "storage.url": "postgresql://u:${keyring:pg/team}@h:5432/d?sslmode=require",
    "servers.env": "TENANT=acme\nfiles: KEY=${keyring:key}",
    "servers.headers": "# ours\nhttps://mcp.example.com X-Tenant: acme",
}


def values() -> st.SearchStrategy[tuple[str, Any]]:
    def of(spec: core.Setting) -> st.SearchStrategy[tuple[str, Any]]:
        if spec.type is bool:
            inner: st.SearchStrategy[Any] = st.booleans()
        elif spec.type is int:
            low, high = spec.range or (0, 1)
            inner = st.integers(int(low), int(high))
        elif spec.type is float:
            inner = st.floats(*(spec.range or (0, 1)))
        elif spec.check:
            inner = st.sampled_from(["", CHECKED[spec.key]])
        else:
            inner = st.sampled_from(spec.choices) if spec.choices else st.text(st.characters(exclude_categories=["Cs"]))
        return st.tuples(st.just(spec.key), inner)

    return st.one_of([of(spec) for spec in core.schema()])


@effort(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(values(), max_size=6), start=st.sampled_from(["", OWN, 'general.theme = "dark"\n', "[tools]"]))
async def test_whatever_is_set_is_read_back(tmp_path: Path, changes: list[tuple[str, Any]], start: str) -> None:
    path = tmp_path / "settings.toml"
    file = await opened(path, start)
    wanted = file.current()
    for key, value in changes:
        await file.set(key, value)
        wanted = core.put(wanted, key, value)
    assert file.current() == wanted
    assert (await SettingsFile.open(path)).current() == wanted


@effort(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=200) | st.binary(max_size=200))
async def test_no_file_whatever_is_changed_by_opening_it(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "settings.toml"
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    path.write_bytes(data)
    with contextlib.suppress(UserFault):
        await SettingsFile.open(path)
    assert path.read_bytes() == data


def test_reading_settings_imports_no_writer() -> None:
    code = (
        "import asyncio, sys, pathlib\n"
        "from desktop_host.profiles.settings_file import SettingsFile\n"
        "from desktop_host.profiles.vault import open_vault\n"
        "from desktop_host.profiles.store import Profiles\n"
        "async def main():\n"
        "    await SettingsFile.open(pathlib.Path('nowhere.toml'))\n"
        "    v = await open_vault('u', pathlib.Path('.'))\n"
        "    await v.names(); await v.get('x')\n"
        "asyncio.run(main())\n"
        "print([m for m in 'tomlkit keyring cryptography mcp anthropic openai'.split() if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
