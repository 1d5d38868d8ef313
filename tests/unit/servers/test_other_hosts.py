"""Files of other hosts are found in every place, read leniently, never written."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from desktop_host.core.server_ports import Clash
from desktop_host.core.servers import Http, Stdio
from desktop_host.servers.clashes import settled
from desktop_host.servers.importing import parse
from desktop_host.servers.other_hosts import found

DATA = Path(__file__).parents[2] / "data"
ENTRY = {"command": "npx", "args": ["-y", "server"], "env": {"API_KEY": "abcdefgh12345678"}}


def write(path: Path, text: str | dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("platform", "data"),
    [("linux", ".config"), ("darwin", "Library/Application Support"), ("win32", "AppData/Roaming")],
)
def test_every_host_is_found_where_it_keeps_its_servers(tmp_path, platform, data):
    zed = "Zed" if platform == "win32" else "zed"
    write(tmp_path / data / "Claude/claude_desktop_config.json", {"mcpServers": {"a": ENTRY}})
    write(tmp_path / ".claude.json", {"mcpServers": {"b": ENTRY}, "projects": {"/x": {"mcpServers": {"p": ENTRY}}}})
    write(tmp_path / ".cursor/mcp.json", {"mcpServers": {"c": {"url": "https://x/mcp"}}})
    write(tmp_path / data / "Code/User/mcp.json", {"servers": {"d": ENTRY}})
    write(tmp_path / data / "Code/User/settings.json", '{// mine\n"mcp": {"servers": {"e": {"command": "e"}}},}')
    write(tmp_path / ".codeium/windsurf/mcp_config.json", {"mcpServers": {"f": {"serverUrl": "https://y/sse"}}})
    write(tmp_path / data / zed / "settings.json", {"context_servers": {"g": ENTRY, "ext": {"settings": {}}}})
    write(tmp_path / ".lmstudio/mcp.json", {"mcpServers": {"h": ENTRY}})
    configs = found(tmp_path, platform)
    names = sorted((c.app, s.config.name) for c in configs for s in c.servers)
    assert names == [
        ("claude-code", "b"), ("claude-code", "p"), ("claude-desktop", "a"), ("cursor", "c"), ("lm-studio", "h"),
        ("vscode", "d"), ("vscode", "e"), ("windsurf", "f"), ("zed", "g"),
    ]  # fmt: skip
    first = next(c for c in configs if c.app == "claude-desktop").servers[0]
    assert first.config.launch.env["API_KEY"] == "${keyring:a/API_KEY}", "secrets move to the vault"
    assert first.secrets == {"a/API_KEY": "abcdefgh12345678"}


def test_a_file_is_read_despite_bom_comments_and_one_broken_entry_and_never_written(tmp_path):
    """Hazard A1, A2, A4."""
    text = (
        '\ufeff{"mcpServers": {"a": {"command": "x"}, /* no */ "bad": {"command": 5}, "r": {"url": "https://x/mcp"},},}'
    )
    path = write(tmp_path / ".cursor/mcp.json", text)
    before = path.read_bytes()
    (config,) = found(tmp_path, "linux")
    assert [s.config.name for s in config.servers] == ["a", "r"] and config.problem is None
    assert isinstance(config.servers[1].config.launch, Http)
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_read_says_so_and_hides_no_other(tmp_path):
    """Hazard A8."""
    write(tmp_path / ".cursor/mcp.json", '{"mcpServers": {"a": {"comm')
    write(tmp_path / ".lmstudio/mcp.json", {"mcpServers": {"h": ENTRY}})
    (tmp_path / ".claude.json").write_bytes(b'{"a": "\xff"}')
    configs = {c.app: c for c in found(tmp_path, "linux")}
    assert configs["cursor"].problem == "json_string_open" and configs["claude-code"].problem == "not_utf8"
    assert configs["lm-studio"].servers


def test_vscode_inputs_ask_for_their_secret_by_name(tmp_path):
    """Hazard A7."""
    entry = {"command": "x", "env": {"TOKEN": "${input:tok}", "V": "${env:HOME}"}}
    inputs = [{"id": "tok", "type": "promptString", "password": True}]
    write(tmp_path / ".config/Code/User/mcp.json", {"servers": {"d": entry}, "inputs": inputs})
    (config,) = found(tmp_path, "linux")
    (server,) = config.servers
    assert isinstance(server.config.launch, Stdio)
    assert server.config.launch.env == {"TOKEN": "${keyring:d/tok}", "V": "${env:HOME}"}
    assert "needs_secret" in server.warnings


def test_cherry_studio_is_read_from_its_database_or_explained(tmp_path):
    folder = tmp_path / ".config/CherryStudio"
    (folder / "Local Storage/leveldb").mkdir(parents=True)
    (config,) = found(tmp_path, "linux")
    assert (config.app, config.problem) == ("cherry-studio", "cherry_store")
    with closing(sqlite3.connect(folder / "cherrystudio.sqlite")) as database:
        database.execute("create table mcp_server (name, type, command, args, env, base_url, is_active)")
        rows = [
            ("My Files", "stdio", "npx", '["-y", "x"]', '{"A": "1"}', None, 1),
            ("web", "streamableHttp", None, None, None, "https://x/mcp", 0),
        ]
        database.executemany("insert into mcp_server values (?, ?, ?, ?, ?, ?, ?)", rows)
        database.commit()
    (config,) = found(tmp_path, "linux")
    assert [(s.config.name, s.config.enabled) for s in config.servers] == [("my-files", True), ("web", False)]


@pytest.mark.parametrize("kept", ["log", "table"])
def test_cherry_studio_of_version_1_is_read_from_its_browsers_store(tmp_path, kept):
    """Real files of LevelDB: the newest write stands in the log, or compressed in a table."""
    shutil.copytree(DATA / "cherry" / kept, tmp_path / ".config/CherryStudio/Local Storage/leveldb")
    (config,) = found(tmp_path, "linux")
    assert config.problem is None
    assert [(s.config.title or s.config.name, s.config.transport, s.config.enabled) for s in config.servers] == [
        ("我的文件", "stdio", True), ("web", "http", False), ("events", "sse", True),
    ]  # fmt: skip
    launch = config.servers[0].config.launch
    assert launch.args == ("-y", "@modelcontextprotocol/server-filesystem", "/tmp") and launch.env == {"LEVEL": "1"}


@pytest.mark.parametrize("kept", ["log", "table"])
def test_a_damaged_store_of_another_program_is_explained_and_never_an_exception(tmp_path, kept):
    store = tmp_path / ".config/CherryStudio/Local Storage/leveldb"
    shutil.copytree(DATA / "cherry" / kept, store)
    chance = random.Random(7)
    whole = {path: path.read_bytes() for path in store.iterdir()}
    for _ in range(150):
        for path, data in whole.items():
            broken = bytearray(data[: chance.randrange(len(data) + 1)] if chance.random() < 0.3 else data)
            for _ in range(chance.randrange(20) if broken else 0):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            path.write_bytes(broken)
        assert all(config.problem in (None, "cherry_store") for config in found(tmp_path, "linux"))


def test_names_that_are_taken_are_renamed_skipped_replaced_or_refused():
    given = parse('{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "abcdefgh12345678"}}}}')
    taken = frozenset({"a"})
    ((renamed, replaces),) = settled(given, taken, Clash.RENAME)
    assert (renamed.config.name, replaces) == ("a-2", False)
    assert renamed.config.launch.env["API_KEY"] == "${keyring:a-2/API_KEY}", "no secret of the old one is overwritten"
    assert set(renamed.secrets) == {"a-2/API_KEY"} and "renamed" in renamed.warnings
    assert settled(given, taken, Clash.SKIP) == []
    assert settled(given, taken, Clash.REPLACE) == [(given[0], True)]
    with pytest.raises(Exception, match="already") as caught:
        settled(given, taken, Clash.REFUSE)
    assert caught.value.params["reason"] == "name_taken"
