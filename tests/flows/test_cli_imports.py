"""Servers from bundles, links and other hosts, by the real program."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from tests.flows.test_cli_contract import SMALL, Program


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


def bundle(path: Path, version: str = "1.0.0", secret: bool = True) -> Path:
    manifest = {
        "dxt_version": "0.2", "name": "small-notes", "version": version, "description": "d", "author": {"name": "Ada"},
        "server": {"type": "python", "entry_point": "server/small.py", "mcp_config": {
            "command": sys.executable, "args": ["${__dirname}/server/small.py"], "env": {"TOKEN": "${user_config.key}"},
        }},
        "user_config": {"key": {"type": "string", "title": "Key", "sensitive": True, "required": True}},
    }  # fmt: skip
    if not secret:
        del manifest["user_config"], manifest["server"]["mcp_config"]["env"]
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("manifest.json", json.dumps(manifest))
        out.write(SMALL[-1], "server/small.py")
    return path


def test_a_bundle_is_installed_runs_with_its_secret_is_updated_and_removed(program):
    """Hazard N131, O136."""
    path = bundle(program.folder / "notes.dxt")
    code, objects = program.json("servers", "import", str(path))
    assert (code, objects[-1]["code"], objects[-1]["params"]["field"]) == (2, "bad_bundle", "key")
    code, rows = program.json("servers", "import", str(path), "--set", "key=-", stdin=b"hunter2-hunter2\n")
    assert (code, rows[0]["name"]) == (0, "small-notes")
    code, (result,) = program.json("tools", "call", "small-notes", "secret")
    assert (code, result["content"][0]["text"]) == (0, "15 characters")
    code, rows = program.json("servers", "import", str(bundle(program.folder / "newer.mcpb", "1.1.0")))
    assert (code, [r["name"] for r in program.json("servers", "list")[1]]) == (0, ["small-notes"])
    assert program.json("tools", "call", "small-notes", "secret")[1][0]["content"][0]["text"] == "15 characters"
    for file in program.home.rglob("*"):
        assert not file.is_file() or b"hunter2-hunter2" not in file.read_bytes(), file
    assert program.json("servers", "remove", "small-notes")[0] == 0
    assert not list(program.home.rglob("small.py")) and program.json("secrets", "list")[1] == []


def test_a_bundle_server_and_tool_settings_go_along_with_a_copied_and_an_imported_profile(
    program: Program,
) -> None:
    path = bundle(program.folder / "notes.mcpb", secret=False)
    assert program.json("servers", "import", str(path))[0] == 0
    (toolkit := next(program.folder.rglob("servers.json")).parent / "toolkit.json").write_text(
        '{"groups": [{"name": "mine", "tools": ["small-notes.echo"], "permission": "allow"}]}'
    )
    packed = program.folder / "mine.zip"
    assert program.json("profiles", "clone", "default", "copy")[0] == 0
    assert program.json("profiles", "export", "default", "--output", str(packed))[0] == 0
    assert program.json("profiles", "import", str(packed), "--name", "again")[0] == 0
    shutil.rmtree(toolkit.parent / "bundles")  # The first profile's files are not what the others use.
    assert program.json("servers", "test", "small-notes")[0] == 5
    for profile in ("copy", "again"):
        code, (row,) = program.json("servers", "test", "small-notes", "--profile", profile)
        assert (code, row["ok"]) == (0, True), row
        kept = (toolkit.parent.parent / profile / "toolkit.json").read_text()
        assert ("mine" in kept, "allow" in kept) == (True, profile == "copy")
    code, (row,) = program.json("servers", "list", "--profile", "again")
    assert row["enabled"] is False, "what came from outside waits for the person"
    (exported,) = program.json("servers", "export", "--profile", "copy")[1]
    assert "DESKTOP_HOST_PROFILE" not in str(exported), "another host could not use it"


def test_pasted_words_are_imported_as_a_file_would_be(program: Program) -> None:
    """Hazards A5, A13."""
    code, (row,) = program.json("servers", "import", "npx -y @modelcontextprotocol/server-memory")
    assert (code, row["name"], row["transport"], row["state"]) == (0, "memory", "stdio", "stopped")
    code, (row,) = program.json("servers", "import", "http://127.0.0.1:9/mcp")
    assert (code, row["transport"]) == (0, "http")
    code, (row,) = program.json("servers", "import", '{"mcpServers": {"b": {"command": "x"}}}')
    assert (code, row["name"]) == (0, "b")
    code, (error,) = program.json("servers", "import", "no such file.json")
    assert (code, error["code"]) == (2, "not_found")
    code, (error,) = program.json("servers", "import", "a && b")
    assert (code, error["code"], error["params"]["reason"]) == (2, "bad_config", "shell_syntax")


def test_a_link_is_added_without_a_start_and_a_bad_one_is_refused(program):
    """Hazard K115, K116."""
    code, rows = program.json(
        "servers", "import", "desktop-host://install?name=web&url=http%3A%2F%2F127.0.0.1%3A9%2Fmcp"
    )
    assert (code, rows[0]["name"], rows[0]["state"]) == (0, "web", "stopped")
    code, (error,) = program.json("servers", "import", "desktop-host://install?name=x&command=y&hidden=1")
    assert (code, error["code"], error["params"]["reason"]) == (2, "bad_config", "bad_link")


def test_servers_of_another_host_are_found_and_taken_over_by_the_strategy_that_was_asked_for(program):
    folder = program.folder / ".cursor"
    folder.mkdir()
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"small": {"command": SMALL[0], "args": SMALL[1:]}}}))
    code, (found,) = program.json("servers", "found")
    assert (code, found["app"], found["problem"]) == (0, "cursor", None)
    assert found["servers"][0]["name"] == "small"

    def names() -> list[str]:
        return [row["name"] for row in program.json("servers", "list")[1]]

    assert program.json("servers", "import", "--from", "cursor")[0] == 0 and names() == ["small"]
    assert program.json("servers", "import", "--from", "cursor", "--clash", "skip") == (0, [])
    assert program.json("servers", "import", "--from", "cursor", "--clash", "replace")[0] == 0 and names() == ["small"]
    code, (error,) = program.json("servers", "import", "--from", "cursor", "--clash", "refuse")
    assert (code, error["params"]["reason"]) == (2, "name_taken")
    assert program.json("servers", "import", "--from", "cursor")[0] == 0 and names() == ["small"], "it is there already"
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"small": {"command": SMALL[0], "args": ["other.py"]}}}))
    assert program.json("servers", "import", "--from", "cursor")[0] == 0 and names() == ["small", "small-2"]
    assert program.json("servers", "import", "--from", "cursor")[0] == 0 and names() == ["small", "small-2"]
    assert program.json("servers", "import", "--from", "zed")[0] == 2


def test_a_log_level_is_kept_by_name(program):
    program.json("servers", "add", "small", "--", *SMALL)
    assert program.json("servers", "level", "small", "debug") == (0, [{"name": "small", "level": "debug"}])
    entry = program.json("servers", "export")[1][0]["mcpServers"]["small"]
    assert entry["desktopHost"]["logLevel"] == "debug"
    assert program.json("servers", "level", "small", "loud")[0] == 2


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (b"junk {", "loose_brace"), (b"junk }", "loose_brace"), (b"run --x '{\"a\": 1'", "loose_brace"),
        (b"\xff\xfe{", "not_utf8"), (b"npx \xff", "not_utf8"), (b"\xff\xfe{\x00", "json_ends_early"),
    ],
)  # fmt: skip
def test_what_is_no_server_is_refused_from_standard_input_and_from_a_file(
    program: Program, given: bytes, reason: str
) -> None:
    code, (error,) = program.json("servers", "import", "-", stdin=given)
    assert (code, error["code"], error["params"]["reason"]) == (2, "bad_config", reason)
    (file := program.folder / "given.json").write_bytes(given)
    code, (error,) = program.json("servers", "import", str(file))
    assert (code, error["code"], error["params"]["reason"]) == (2, "bad_config", reason)
    assert program.json("servers", "list") == (0, [])


def test_utf_16_and_balanced_brackets_in_arguments_are_taken(program: Program) -> None:
    wide = '{"mcpServers": {"breit": {"command": "grüße"}}}'.encode("utf-16")
    assert program.json("servers", "import", "-", stdin=wide)[1][0]["name"] == "breit"
    code, rows = program.json("servers", "import", "-", stdin=b'tool --x \'{"a": {"b": 1}}\' --home ${HOME}\n')
    assert (code, rows[0]["name"]) == (0, "tool")


def test_the_same_import_twice_adds_nothing_and_says_so(program: Program) -> None:
    entry = {"command": SMALL[0], "args": SMALL[1:], "env": {"API_KEY": "hunter2-hunter2"}}
    text = json.dumps({"mcpServers": {"small": entry}}).encode()
    assert program.json("servers", "import", "-", stdin=text)[1][0]["name"] == "small"
    code, out, err = program("servers", "import", "-", "--json", stdin=text)
    assert (code, [json.loads(line)["name"] for line in out.splitlines()]) == (0, ["small"])
    assert "small is there already" in err and "hunter2" not in out + err
    program.json("servers", "disable", "small")
    assert [r["name"] for r in program.json("servers", "import", "-", stdin=text)[1]] == ["small"]
    changed = text.replace(b"hunter2-hunter2", b"hunter3-hunter3")
    assert [r["name"] for r in program.json("servers", "import", "-", stdin=changed)[1]] == ["small-2"]
    assert [r["name"] for r in program.json("servers", "import", "-", stdin=changed)[1]] == ["small-2"]
    (exported,) = program.json("servers", "export")[1]
    rows = program.json("servers", "import", "-", stdin=json.dumps(exported).encode())[1]
    assert [r["name"] for r in rows] == ["small", "small-2"], "an export is what is there"
    assert len(program.json("servers", "list")[1]) == 2


@pytest.mark.parametrize(("lang", "start"), [("en", "mcpServers (line 1"), ("zh_CN", "mcpServers（第 1 行")])
def test_the_place_of_a_wrong_value_is_named_without_a_server(program: Program, lang: str, start: str) -> None:
    code, _, said = program("servers", "import", "-", "--lang", lang, stdin=b'{"mcpServers":[1]}')
    assert code == 2 and start in said and ", mcpServers" not in said and "，mcpServers" not in said, said


def test_a_secret_in_an_address_or_an_argument_goes_to_the_vault(program: Program) -> None:
    """Hazard O136."""
    key = "hunter2hunter2secret"
    assert program.json("servers", "add", "web", f"http://127.0.0.1:9/mcp?api_key={key}&page=2")[0] == 0
    assert program.json("servers", "add", "tool", "--", "tool", "--api-key", f"sk-{key}", "--name", "plain x")[0] == 0
    entries = program.json("servers", "export")[1][0]["mcpServers"]
    assert entries["web"]["url"] == "http://127.0.0.1:9/mcp?api_key=${keyring:web/api_key}&page=2"
    assert entries["tool"]["args"][0] == "--api-key" and entries["tool"]["args"][2:] == ["--name", "plain x"]
    assert "${keyring:tool/" in entries["tool"]["args"][1]
    for file in program.home.rglob("*"):
        assert not file.is_file() or key.encode() not in file.read_bytes(), file
