"""How errors are worded: the place once, and another program's words apart from ours."""

from __future__ import annotations

import pytest

from desktop_host.i18n import Translator


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_place_that_the_text_names_is_not_said_again_by_the_message(language):
    params = {"file": "/tmp/s.json", "line": 3, "column": 7}
    what, _ = Translator(language).error("bad_config", params, "/tmp/s.json:3:7: reply 1 is not a list of steps")
    assert what.count("/tmp/s.json") == 1 and what.count("3") == 1
    assert "reply 1 is not a list of steps" in what


def test_a_place_that_only_the_message_names_is_kept():
    what, _ = Translator("en").error("bad_history", {"file": "a.db"}, "a.db: torn page")
    assert "a.db: torn page" in what


def test_what_another_program_says_stands_quoted_in_a_line_of_its_own_in_chinese():
    what, remedy = Translator("zh_CN").error("rate_limited", {"provider": "Anthropic"}, "429 Too Many Requests")
    ours, _, theirs = what.partition("\n")
    assert theirs == "“429 Too Many Requests”"
    assert ours.endswith("。") and "429" not in ours and remedy


def test_chinese_words_of_another_program_stay_in_the_sentence():
    what, _ = Translator("zh_CN").error("rate_limited", {"provider": "智谱"}, "请求过多")
    assert what.endswith("：请求过多") and "\n" not in what


def test_english_errors_stay_one_line():
    what, _ = Translator("en").error("rate_limited", {"provider": "Anthropic"}, "429 Too Many Requests")
    assert what == "Anthropic takes no more requests for now: 429 Too Many Requests"


def test_braces_in_a_foreign_message_are_shown_as_they_are():
    what, _ = Translator("zh_CN").error("network", {}, 'body {"a": {x}}')
    assert what.endswith('“body {"a": {x}}”')
