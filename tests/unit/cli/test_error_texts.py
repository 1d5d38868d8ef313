"""Every code has plain words and a remedy, in both languages, with or without what adapters tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from desktop_host.core.errors import EXIT_CODES
from desktop_host.i18n import Translator

CODES = sorted(code for codes in EXIT_CODES.values() for code in codes)
PACKAGE = Path(__file__).parents[3] / "desktop_host"


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("code", CODES)
def test_each_code_has_a_text_and_a_remedy_that_need_nothing(language, code):
    words = Translator(language)
    assert words.has(f"error.{code}")
    assert words.has(f"remedy.{code}")
    for part in words.error(code, {}, "the message"):
        assert part
        assert not re.search(r"[{}\[\]]|[:：,，]$|\(\)|（）|  ", part), part


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_what_adapters_tell_is_named(language):
    words = Translator(language)
    text, _ = words.error("auth", {"provider": "Anthropic", "host": "api.example", "model": None}, "wrong key")
    assert all(part in text for part in ("Anthropic", "api.example", "wrong key"))
    text, _ = words.error("max_steps", {"steps": 3})
    assert "3" in text
    text, _ = words.error("bad_config", {"file": "a.json", "line": 3, "column": 7}, "a comma is missing")
    assert all(part in text for part in ("a.json", "3", "7"))


def test_a_reason_has_words_of_its_own():
    words = Translator("en")
    assert words.error("model_missing", {"reason": "no_weights", "model": "tiny"})[0] == (
        "The weights of the local model tiny are not here yet."
    )
    assert words.error("not_found", {"kind": "session", "name": "abc"})[0] == "There is no conversation abc."
    assert words.error("not_found", {"kind": "strange", "name": "abc"}, "gone")[0] == "This was not found: abc: gone"
    missing = {"reason": "missing_variable", "variable": "TOKEN", "where": "env A"}
    assert words.error("bad_config", missing) == (
        "The variable TOKEN is not set (used in env A).",
        "Set it in the environment, or write ${TOKEN:-default}.",
    )


def test_an_unknown_code_keeps_its_message():
    assert Translator("en").error("no_such_code", {}, "words") == ("words", "")


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_each_cause_that_a_server_report_names_has_a_remedy(language):
    source = (PACKAGE / "servers" / "failure.py").read_text()
    causes = set(re.findall(r'"\)?, "([a-z_]+)"\)', source)) | set(re.findall(r': "(install_[a-z]+)"', source))
    causes |= set(re.findall(r'return "([a-z_]+)"', source)) | set(re.findall(r'"([a-z_]+)" if ', source))
    causes |= {"command_not_found", "configuration", "vault", "read_log", "unreachable", "auth", "tls", "proxy"}
    words = Translator(language)
    known = {cause for cause in causes if words.has(f"remedy.server.{cause}")}
    assert len(known) > 20
    assert {"install_node", "missing_module", "timeout", "prints_to_stdout", "wrong_url"} <= known
