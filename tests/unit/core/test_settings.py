from __future__ import annotations

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.settings import Settings, get, put, schema
from desktop_host.i18n import Translator


def test_every_key_has_its_default_and_can_be_set_to_it():
    settings = Settings()
    for one in schema():
        assert get(settings, one.key) == one.default
        assert put(settings, one.key, one.default) == settings


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [("tools.max_steps", "7", 7), ("general.onboarded", "yes", True), ("general.theme", "dark", "dark")],
)
def test_words_become_values(key, text, value):
    assert get(put(Settings(), key, text), key) == value


@pytest.mark.parametrize(
    ("key", "value"),
    [("tools.max_steps", "0"), ("tools.max_steps", "many"), ("general.theme", "pink"), ("general.onboarded", "x")],
)
def test_a_bad_value_is_refused_with_what_would_be_right(key, value):
    with pytest.raises(UserFault) as caught:
        put(Settings(), key, value)
    assert caught.value.code == "bad_settings" and caught.value.params["wanted"]


def test_an_unknown_key_is_named():
    with pytest.raises(UserFault) as caught:
        get(Settings(), "tools.nonsense")
    assert caught.value.params["key"] == "tools.nonsense"


@pytest.mark.parametrize(
    ("key", "value", "english", "chinese"),
    [
        ("tools.parallel", "-1", "a whole number from 1 to 64", "1 到 64 的整数"),
        ("general.onboarded", "x", "true or false", "true 或 false"),
        ("general.theme", "pink", "one of system, light, dark, high_contrast", "以下之一：system, light"),
    ],
)
def test_what_would_be_right_is_said_in_each_language(key, value, english, chinese):
    with pytest.raises(UserFault) as caught:
        put(Settings(), key, value)
    for language, wanted in (("en", english), ("zh_CN", chinese)):
        text, remedy = Translator(language).error("bad_settings", caught.value.params, caught.value.message)
        assert key in text and value in text and wanted in remedy
