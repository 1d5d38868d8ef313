from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_host.core.errors import UserFault
from desktop_host.core.servers import (
    Http,
    Protocol,
    SamplingPolicy,
    ServerConfig,
    ServerScope,
    Sse,
    Stdio,
    Timeouts,
)
from desktop_host.core.values import FrozenDict, freeze, thaw
from desktop_host.servers.config_file import from_json, to_json
from desktop_host.servers.importing import export, parse


def imported(entry: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    (server,) = parse(json.dumps({"mcpServers": {"a": entry}}))
    return to_json(server.config), dict(server.secrets), server.warnings


@pytest.mark.parametrize(
    ("name", "value", "kept", "secret"),
    [
        ("OPENAI_API_KEY", "sk-proj-abcdef1234567890", "${keyring:a/OPENAI_API_KEY}", "sk-proj-abcdef1234567890"),
        ("DB_PASSWORD", "hunter2", "${keyring:a/DB_PASSWORD}", "hunter2"),
        ("GITHUB_TOKEN", "x y", "${keyring:a/GITHUB_TOKEN}", "x y"),
        ("INNOCENT", "ghp_abcdefghij0123456789", "${keyring:a/INNOCENT}", "ghp_abcdefghij0123456789"),
        ("AUTH", "Bearer abc.def", "Bearer ${keyring:a/AUTH}", "abc.def"),
        ("DSN", "postgres://me:pw@db/x", "postgres://me:${keyring:a/DSN}@db/x", "pw"),
    ],
)
def test_a_plain_secret_in_the_environment_is_moved_to_the_vault(name: str, value: str, kept: str, secret: str) -> None:
    """Hazard O136."""
    entry, secrets, warnings = imported({"command": "x", "env": {name: value}})
    assert entry["env"] == {name: kept}
    assert list(secrets.values()) == [secret]
    assert next(iter(secrets)) == f"a/{name}"
    assert warnings == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "3000"), ("MAX_TOKENS", "4096"), ("TOKEN_LIMIT", "10"), ("SSH_KEY_PATH", "/home/x/.ssh/id"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/x/y.json"), ("API_KEY", "${API_KEY}"), ("API_KEY", ""),
        ("TOKENIZER", "gpt2"), ("KEYBOARD", "de"), ("USE_AUTH", "true"), ("URL", "https://x/y?z=1"),
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(name: str, value: str) -> None:
    entry, secrets, _ = imported({"command": "x", "env": {name: value}})
    assert entry["env"] == {name: value}
    assert secrets == {}


@pytest.mark.parametrize("value", ["<YOUR_API_KEY>", "YOUR_KEY_HERE", "your-api-key", "xxxx", "..."])
def test_a_form_that_waits_for_its_value_asks_for_it(value: str) -> None:
    entry, secrets, warnings = imported({"command": "x", "env": {"API_KEY": value}})
    assert entry["env"] == {"API_KEY": "${keyring:a/API_KEY}"}
    assert secrets == {}
    assert warnings == ("needs_secret",)


def test_secrets_in_headers_addresses_and_arguments_are_moved_too() -> None:
    """Hazard O136."""
    entry, secrets, _ = imported({
        "url": "https://u:pw1@x/mcp?api_key=k1&page=2",
        "headers": {"Authorization": "Bearer t1", "X-Api-Key": "k2", "Accept": "text/plain"},
    })  # fmt: skip
    assert entry["url"] == "https://u:${keyring:a/url}@x/mcp?api_key=${keyring:a/api_key}&page=2"
    assert entry["headers"] == {
        "Authorization": "Bearer ${keyring:a/Authorization}", "X-Api-Key": "${keyring:a/X-Api-Key}",
        "Accept": "text/plain",
    }  # fmt: skip
    assert sorted(secrets.values()) == ["k1", "k2", "pw1", "t1"]
    entry, secrets, _ = imported({
        "command": "npx",
        "args": ["-y", "mcp-remote", "https://x/mcp", "--header", "Authorization: Bearer t2", "--api-key", "k3",
                 "--token=t4", "--no-auth", "plain", "-e", "DB_PASSWORD=p5", "--access-token", "--verbose"],
    })  # fmt: skip
    assert entry["args"] == [
        "-y", "mcp-remote", "https://x/mcp", "--header", "Authorization: Bearer ${keyring:a/Authorization}",
        "--api-key", "${keyring:a/api-key}", "--token=${keyring:a/token}", "--no-auth", "plain", "-e",
        "DB_PASSWORD=${keyring:a/DB_PASSWORD}", "--access-token", "--verbose",
    ]  # fmt: skip
    assert sorted(secrets.values()) == ["k3", "p5", "t2", "t4"]


def test_two_different_secrets_never_share_a_name() -> None:
    _, secrets, _ = imported({"command": "x", "env": {"TOKEN": "one1"}, "args": ["--TOKEN", "two2", "--TOKEN", "one1"]})
    assert secrets == {"a/TOKEN": "one1", "a/TOKEN-2": "two2"}


def test_an_export_gives_references_and_can_be_imported_again() -> None:
    """Hazard O136."""
    config = ServerConfig(
        "a", Stdio("x", ("--token", "plain-one"), FrozenDict({"K": "${keyring:a/K}", "API_KEY": "p2"}))
    )
    given = export([config])
    text = json.dumps(given)
    assert "plain-one" not in text
    assert "p2" not in text
    (back,) = parse(text)
    assert back.config.launch == Stdio(
        "x", ("--token", "${keyring:a/token}"), FrozenDict({"K": "${keyring:a/K}", "API_KEY": "${keyring:a/API_KEY}"})
    )
    assert back.secrets == {}


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
_NAMES = st.from_regex(r"[a-z0-9-]{1,32}", fullmatch=True).filter(lambda n: n != "host")
_MAP = st.dictionaries(_TEXT, _TEXT, max_size=3).map(FrozenDict)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    max_leaves=4,
)
_URL = st.builds("https://x.example/{}".format, st.from_regex(r"[a-z/]{0,8}", fullmatch=True))
_LAUNCH = (
    st.builds(
        Stdio, command=_TEXT.filter(str.strip), args=st.lists(_TEXT, max_size=4).map(tuple), env=_MAP,
        cwd=st.none() | _TEXT.filter(bool), encoding=st.sampled_from(["utf-8", "latin-1"]),
        encoding_errors=st.sampled_from(["replace", "ignore", "strict"]),
    )
    | st.builds(Http, _URL, _MAP)
    | st.builds(Sse, _URL, _MAP)
)  # fmt: skip
_KNOWN = {"type", "command", "args", "env", "cwd", "url", "headers", "disabled", "desktopHost"}
_CONFIGS = st.builds(
    ServerConfig, name=_NAMES, launch=_LAUNCH, title=st.none() | _TEXT, enabled=st.booleans(),
    protocol=st.sampled_from(Protocol), scope=st.sampled_from([ServerScope.PROFILE, ServerScope.SESSION]),
    trusted=st.booleans(), disabled_tools=st.lists(_TEXT, max_size=3).map(tuple),
    sampling=st.builds(SamplingPolicy, st.sampled_from(["off", "ask", "allow"]), st.integers(0, 9), st.integers(0, 9)),
    timeouts=st.builds(Timeouts, st.floats(0.01, 100), st.floats(0.01, 100), st.integers(1, 100)),
    extra=st.dictionaries(_TEXT.filter(lambda k: k not in _KNOWN), _JSON, max_size=2).map(freeze),
)  # fmt: skip


@given(_CONFIGS)
def test_every_config_comes_back_from_its_json(config: ServerConfig) -> None:
    data = json.loads(json.dumps(to_json(config)))
    assert from_json(config.name, data) == config
    assert from_json(config.name, freeze(data)) == config
    assert thaw(freeze(data)) == data


@given(st.text(max_size=60) | st.text("{}[]\":,/*\\ \n'acmdnors$=-", max_size=60))
def test_any_text_is_either_read_or_refused_with_a_place(text: str) -> None:
    try:
        servers = parse(text)
    except UserFault as error:
        refused = error.params["line"], error.params["column"]
    else:
        refused = None
        assert servers
        assert len({s.config.name for s in servers}) == len(servers)
    assert refused is None or min(refused) >= 1
