from __future__ import annotations

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.servers import Stdio
from desktop_host.i18n import Translator
from desktop_host.servers.entries import from_json
from desktop_host.servers.importing import WARNINGS, parse
from desktop_host.servers.jsonc import PROBLEMS
from desktop_host.servers.placeholders import expand_launch

REASONS = (
    *PROBLEMS, "object_expected", "text_expected", "list_expected", "flag_expected", "number_expected", "bad_choice",
    "bad_encoding", "bad_url", "scope_needs_http", "no_command_or_url", "ambiguous", "no_servers", "duplicate_key",
    "not_readable", "not_writable", "not_utf8", "unknown_placeholder", "missing_variable", "missing_secret",
    "line_break", "nul_character", "bad_name", "bad_quotes", "shell_syntax", "no_command", "empty",
)  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_reason_and_warning_has_a_text_in_every_language(language: str) -> None:
    texts = Translator(language)
    missing = [f"error.bad_config.{r}" for r in REASONS if not texts.has(f"error.bad_config.{r}")]
    missing += [f"server.warning.{w}" for w in WARNINGS if not texts.has(f"server.warning.{w}")]
    assert missing == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": {"command": "x" "y"}}', "line 1, column 23: a comma or the closing bracket was expected"),
        ('{"a": {"command": "x", "env": 3}}', "Server a, env (line 1, column 2): an object { } was expected."),
        ('{"a": {"command": "x", "type": "ws"}}', "Server a, type (line 1, column 2): use one of stdio, http, sse."),
    ],
)
def test_a_pasted_mistake_is_told_in_plain_words(text: str, told: str) -> None:
    with pytest.raises(UserFault) as failed:
        parse(text)
    error = failed.value
    assert Translator("en").error(error.code, error.params, error.message)[0].startswith(told)
    chinese = Translator("zh_CN").error(error.code, error.params, error.message)[0]
    assert "第 1 行" in chinese
    assert error.message not in chinese


async def test_a_placeholder_that_cannot_be_filled_is_told_as_it_was_written() -> None:
    with pytest.raises(UserFault) as failed:
        await expand_launch(Stdio("x", ("${input:id}",)), None, {})  # type: ignore[arg-type]
    error = failed.value
    told, remedy = Translator("en").error(error.code, error.params, error.message)
    assert told == "${input:id} in args[0] is no placeholder that can be filled."
    assert "${keyring:NAME}" in remedy


def test_an_entry_s_mistake_names_server_and_key() -> None:
    with pytest.raises(UserFault) as failed:
        from_json("a", {"command": "x", "desktopHost": {"scope": "call"}})
    assert failed.value.params["reason"] == "scope_needs_http"
    assert failed.value.message == "server 'a', desktopHost.scope: a connection per call is for HTTP servers only"
