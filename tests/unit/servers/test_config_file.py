# ruff: noqa: ASYNC240  (the loop of a test serves nobody else)
from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.servers import Http, ServerConfig, Sse, Stdio
from desktop_host.core.values import FrozenDict
from desktop_host.servers.config_file import BACKUPS, ConfigFile

A = ServerConfig("a", Stdio("echo", ("hi",)))
B = ServerConfig("b", Http("https://x.example/mcp"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "servers.json"


async def test_no_file_means_no_servers_and_is_not_created_by_reading(path: Path) -> None:
    assert await ConfigFile(path).load() == ()
    assert list(path.parent.iterdir()) == []


async def test_what_is_saved_is_loaded_again_by_another_host(path: Path) -> None:
    await ConfigFile(path).save([A, B])
    assert await ConfigFile(path).load() == (A, B)
    assert json.loads(path.read_text())["mcpServers"]["a"] == {"command": "echo", "args": ["hi"]}


async def test_a_byte_order_mark_is_read_and_the_file_not_touched(path: Path) -> None:
    """Hazard A1."""
    raw = b'\xef\xbb\xbf{"mcpServers":{"a":{"command":"echo"}}}'
    path.write_bytes(raw)
    file = ConfigFile(path)
    assert [c.launch for c in await file.load()] == [Stdio("echo")]
    assert path.read_bytes() == raw
    await file.save([ServerConfig("a", Stdio("echo")), B])
    assert path.read_bytes().startswith(b"\xef\xbb\xbf{")
    assert {c.name for c in await ConfigFile(path).load()} == {"a", "b"}


async def test_a_utf_16_file_of_a_windows_editor_is_read(path: Path) -> None:
    """Hazard A1."""
    path.write_bytes('{"mcpServers":{"a":{"command":"é"}}}'.encode("utf-16"))
    assert [c.launch for c in await ConfigFile(path).load()] == [Stdio("é")]


async def test_an_entry_with_a_url_is_read_and_nothing_is_rewritten(path: Path) -> None:
    """Hazard A2."""
    path.write_text('{"mcpServers":{"r":{"url":"https://x/mcp"},"s":{"url":"https://x/sse"}}}')
    before = path.read_bytes(), path.stat().st_mtime_ns
    file = ConfigFile(path)
    configs = await file.load()
    assert [c.launch for c in configs] == [Http("https://x/mcp"), Sse("https://x/sse")]
    await file.save(configs)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


async def test_comments_and_trailing_commas_are_read_and_stay_when_we_write(path: Path) -> None:
    """Hazard A4."""
    path.write_text(
        '// mine\n{\n  "mcpServers": {\n    "a": {"command": "echo", "args": ["hi"],}, // about a\n'
        '    /* about b */\n    "b": {"url": "https://x.example/mcp"},\n  },\n}\n'
    )
    file = ConfigFile(path)
    a, b = await file.load()
    await file.save([a, replace(b, trusted=True), ServerConfig("c", Stdio("new"))])
    text = path.read_text()
    for kept in ("// mine", '"a": {"command": "echo", "args": ["hi"],}, // about a', "/* about b */"):
        assert kept in text
    assert [c.name for c in await ConfigFile(path).load()] == ["a", "b", "c"]
    assert (await ConfigFile(path).load())[1].trusted


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"mcpServers": {"a": {"command": "ec', 1, 34),
        ('{\n  "mcpServers": {\n    "a": {"command": "x"}\n    "b": 1\n}}', 4, 5),
        ("[]", 1, 1),
        ('{"mcpServers": []}', 1, 16),
        ('{"mcpServers": {}} {"mcpServers": {}}', 1, 20),
    ],
    ids=["A8-truncated", "A4-comma", "list", "servers-list", "A5-second-value"],
)
async def test_a_file_that_cannot_be_read_is_named_with_its_place_and_never_written(
    path: Path, text: str, line: int, column: int
) -> None:
    """Hazards A4, A5, A8."""
    path.write_text(text)
    file = ConfigFile(path)
    with pytest.raises(UserFault) as failed:
        await file.load()
    assert failed.value.code == "bad_config"
    assert failed.value.params["file"] == str(path)
    assert (failed.value.params["line"], failed.value.params["column"]) == (line, column)
    with pytest.raises(UserFault):
        await file.save([A])
    assert path.read_text() == text
    assert [p.name for p in path.parent.iterdir() if not p.name.startswith(".")] == ["servers.json"]


async def test_a_file_that_is_not_utf_8_is_named_with_its_place_and_never_written(path: Path) -> None:
    """Hazard A1."""
    path.write_bytes(b'{\n "x": "\xe9"}')
    with pytest.raises(UserFault) as failed:
        await ConfigFile(path).save([A])
    assert (failed.value.params["line"], failed.value.params["column"]) == (2, 8)
    assert path.read_bytes() == b'{\n "x": "\xe9"}'


async def test_an_error_does_not_show_a_secret_that_stands_beside_it(path: Path) -> None:
    """Hazard O137."""
    path.write_text(
        '{"mcpServers":{"a":{"command":"x","env":{"API_KEY":"sk-live-1234567890abcdef" "B":"hunter2pass"}}}}'
    )
    with pytest.raises(UserFault) as failed:
        await ConfigFile(path).load()
    shown = repr((failed.value.message, failed.value.params))
    assert "sk-live" not in shown
    assert "hunter2pass" not in shown
    assert "API_KEY" in shown


async def test_one_bad_entry_costs_no_other_and_stays_in_the_file(path: Path) -> None:
    """Hazard A8."""
    path.write_text('{"mcpServers":{\n"bad":{"args":[]},\n"a":{"command":"echo","args":["hi"]}}}')
    file = ConfigFile(path)
    assert await file.load() == (A,)
    (problem,) = file.problems
    assert problem.params["server"] == "bad"
    assert problem.params["line"] == 2
    await file.save([replace(A, enabled=False)])
    assert json.loads(path.read_text())["mcpServers"]["bad"] == {"args": []}
    await file.save([])
    assert json.loads(path.read_text())["mcpServers"] == {"bad": {"args": []}}


async def test_unknown_keys_are_kept_at_every_level(path: Path) -> None:
    raw = {
        "preferences": {"x": [1, None]},
        "mcpServers": {"a": {"command": "echo", "timeout": 5, "enabledTools": [], "note": None,
                             "desktopHost": {"trusted": True, "later": {"k": 1}}}},
    }  # fmt: skip
    path.write_text(json.dumps(raw))
    file = ConfigFile(path)
    (config,) = await file.load()
    assert config.extra["enabledTools"] == ()
    await file.save([replace(config, enabled=False)])
    raw["mcpServers"]["a"]["desktopHost"]["enabled"] = False  # type: ignore[index]
    assert json.loads(path.read_text()) == raw


async def test_an_empty_an_unset_and_a_null_list_of_tools_all_leave_every_tool_on(path: Path) -> None:
    """Hazard A10: an empty list never means that none is allowed."""
    forms = [{}, {"disabledTools": []}, {"disabledTools": None}, {"enabledTools": []}, {"enabledTools": None}]
    path.write_text(
        json.dumps({"mcpServers": {f"s{n}": {"command": "x", "desktopHost": f} for n, f in enumerate(forms)}})
    )
    before = path.read_bytes()
    file = ConfigFile(path)
    configs = await file.load()
    assert [(c.disabled_tools, c.enabled_tools) for c in configs] == [((), None)] * len(forms)
    await file.save(configs)
    assert path.read_bytes() == before


async def test_edits_made_elsewhere_since_loading_are_merged_by_server_and_key(path: Path) -> None:
    file = ConfigFile(path)
    await file.save([A, B, ServerConfig("gone", Stdio("x")), ServerConfig("ours", Stdio("y"))])
    data = json.loads(path.read_text())
    servers = data["mcpServers"]
    servers["a"]["env"] = {"K": "v"}
    servers["new"] = {"command": "z"}
    del servers["gone"]
    servers["ours"]["args"] = ["theirs"]
    path.write_text(json.dumps(data))
    now = await file.save([
        replace(A, enabled=False), B, ServerConfig("gone", Stdio("x")), ServerConfig("ours", Stdio("y"), trusted=True),
    ])  # fmt: skip
    by_name = {c.name: c for c in now}
    assert by_name["a"] == replace(A, enabled=False, launch=Stdio("echo", ("hi",), FrozenDict({"K": "v"})))
    assert by_name["new"].launch == Stdio("z")
    assert "gone" not in by_name
    assert by_name["ours"].launch == Stdio("y", ("theirs",))
    assert by_name["ours"].trusted
    assert now == await ConfigFile(path).load()


async def test_two_hosts_that_save_in_turn_lose_nothing_of_each_other(path: Path) -> None:
    one, two = ConfigFile(path), ConfigFile(path)
    await one.load()
    await two.load()
    await one.save([A])
    assert await two.save([B]) == (A, B)
    assert await one.save([A]) == (A, B)


async def test_a_file_that_vanished_is_written_anew_with_all_servers(path: Path) -> None:
    """Hazard A1."""
    file = ConfigFile(path)
    await file.save([A, B])
    path.unlink()
    assert await file.save([replace(A, enabled=False), B]) == (replace(A, enabled=False), B)


async def test_a_name_of_another_host_gets_an_alias_and_keeps_its_key_in_the_file(path: Path) -> None:
    path.write_text('{"mcpServers":{"My Server":{"command":"x"},"my-server":{"command":"y"}}}')
    file = ConfigFile(path)
    spaced, plain = await file.load()
    assert (spaced.name, spaced.title) == ("my-server-2", "My Server")
    await file.save([replace(spaced, enabled=False), plain])
    assert json.loads(path.read_text())["mcpServers"] == {
        "My Server": {"command": "x", "desktopHost": {"enabled": False}},
        "my-server": {"command": "y"},
    }
    await file.save([plain])
    assert list(json.loads(path.read_text())["mcpServers"]) == ["my-server"]


async def test_the_disabled_key_of_other_hosts_is_heeded_and_kept_in_step(path: Path) -> None:
    path.write_text('{"mcpServers":{"a":{"command":"x","disabled":true}}}')
    file = ConfigFile(path)
    (config,) = await file.load()
    assert not config.enabled
    assert await file.save([replace(config, enabled=True)]) == (replace(config, enabled=True),)
    assert json.loads(path.read_text())["mcpServers"]["a"] == {"command": "x", "disabled": False}
    assert await file.save([config]) == (config,)


async def test_a_repeated_key_is_told(path: Path) -> None:
    path.write_text('{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}')
    file = ConfigFile(path)
    (config,) = await file.load()
    assert config.launch == Stdio("y")
    assert [p.params["reason"] for p in file.problems] == ["duplicate_key"]


async def test_the_file_and_its_backups_are_for_the_owner_only(path: Path) -> None:
    file = ConfigFile(path)
    path.write_text('{"mcpServers":{}}')
    path.chmod(0o644)
    await file.save([A])
    for made in (path, path.with_name("servers.json.1")):
        assert stat.S_IMODE(made.stat().st_mode) == 0o600


async def test_backups_rotate_and_no_draft_is_left(path: Path) -> None:
    file = ConfigFile(path)
    for n in range(BACKUPS + 3):
        await file.save([ServerConfig("a", Stdio(f"c{n}"))])
    names = sorted(p.name for p in path.parent.iterdir() if not p.name.startswith("."))
    assert names == ["servers.json", *(f"servers.json.{n}" for n in range(1, BACKUPS + 1))]
    kept = [json.loads(path.with_name(f"servers.json.{n}").read_text())["mcpServers"]["a"]["command"] for n in (1, 5)]
    assert kept == ["c6", "c2"]
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == [".servers.json.lock"]


async def test_a_linked_file_is_written_where_it_lies(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles" / "mine.json", tmp_path / "servers.json"
    real.parent.mkdir()
    real.write_text("{}")
    link.symlink_to(real)
    await ConfigFile(link).save([A])
    assert link.is_symlink()
    assert "echo" in real.read_text()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user whom modes bind")
async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserFault) as failed:
        await ConfigFile(tmp_path / "servers.json").save([A])
    tmp_path.chmod(0o700)
    assert failed.value.params["reason"] == "not_writable"
