"""The words of the command line."""

from __future__ import annotations

import pytest

from desktop_host import i18n
from desktop_host.cli.arguments import parse
from desktop_host.cli.verbs import VERBS
from desktop_host.core.errors import UserFault


@pytest.fixture(autouse=True)
def _english():
    i18n.install("en")


def test_no_words_open_the_window():
    ns = parse([])
    assert (ns.verb, ns.action, ns.home, ns.profile, ns.json) == (None, None, None, "default", False)
    assert parse(["--home", "/t", "--lang", "zh_CN"]).home == "/t"


@pytest.mark.parametrize(
    "argv",
    [
        ["--home", "/t", "--json", "--profile=work", "sessions", "list"],
        ["sessions", "--home", "/t", "--json", "list", "--profile", "work"],
        ["sessions", "list", "--json", "--profile=work", "--home=/t"],
    ],
)
def test_common_options_stand_before_or_after_the_verb(argv):
    ns = parse(argv)
    assert (ns.verb, ns.action, ns.home, ns.json, ns.profile) == ("sessions", "list", "/t", True, "work")


@pytest.mark.parametrize(
    "argv",
    [
        ["chat", "hello", "--model", "script:a.json", "--allow", "fs.*"],
        ["chat", "--model", "script:a.json", "hello", "--allow", "fs.*"],
        ["chat", "--allow=fs.*", "--model=script:a.json", "hello"],
    ],
)
def test_the_prompt_stands_anywhere_among_the_options(argv):
    ns = parse(argv)
    assert (ns.prompt_word, ns.model, ns.allow) == ("hello", "script:a.json", ["fs.*"])


def test_values_may_begin_with_a_dash():
    assert parse(["chat", "--prompt", "-5 degrees, is that cold?"]).prompt == ["-5 degrees, is that cold?"]
    assert parse(["chat", "-"]).prompt_word == "-"
    assert parse(["chat", "--", "--json"]).prompt_word == "--json"
    assert parse(["tools", "call", "s", "t", "--args", "-"]).args == "-"


def test_every_option_of_chat_is_read():
    words = (
        "chat --session s --model m --mcp-config a --mcp-config b --with-profile-servers --no-servers --skills d "
        "--skill n --system t --allow x --deny y --allow-sampling z --answers f --root r --attach g --effort high "
        "--max-steps 3 --budget 0.5 --token-budget 1000 --timeout 2.5 --prompt one --prompt two"
    )
    ns = parse(words.split(" "))
    assert ns.mcp_config == ["a", "b"]
    assert (ns.max_steps, ns.budget, ns.token_budget, ns.timeout, ns.effort) == (3, 0.5, 1000, 2.5, "high")
    assert ns.prompt == ["one", "two"]


def test_a_command_after_two_dashes_is_taken_as_it_is():
    ns = parse(["servers", "add", "fs", "--env", "A=1", "--json", "--", "npx", "-y", "pkg", "--json", "", "--", "x"])
    assert ns.command == ["npx", "-y", "pkg", "--json", "", "--", "x"]
    assert ns.json is True
    assert ns.pairs == [("env", "A", "1")]


def test_variables_and_headers_keep_the_order_they_were_written_in():
    ns = parse(["servers", "add", "n", "--header", "B=-", "http://h/mcp", "--env", "A=-", "--header", "C=x=y"])
    assert ns.pairs == [("header", "B", "-"), ("env", "A", "-"), ("header", "C", "x=y")]
    assert (ns.url, ns.command) == ("http://h/mcp", None)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["sesions", "list"], "sessions"),
        (["sessions", "lst"], "sessions list"),
        (["sessions"], "list, show, search"),
        (["--bogus"], "--bogus"),
        (["chat", "hi", "--bogus"], "--bogus"),
        (["chat", "a", "b"], "b"),
        (["chat", "hi", "--max-steps", "0"], "0"),
        (["chat", "hi", "--budget", "nan"], "nan"),
        (["chat", "hi", "--effort", "huge"], "huge"),
        (["servers", "add", "x", "--env", "NOVALUE", "--", "c"], "KEY=VALUE"),
        (["servers", "lodge", "x"], "servers lodge"),
        (["--lang", "fr", "usage"], "fr"),
        (["sessions", "show"], "ID"),
    ],
)
def test_wrong_words_are_a_usage_fault_that_names_them(argv, said):
    with pytest.raises(UserFault) as caught:
        parse(argv)
    assert caught.value.code == "usage"
    assert said in caught.value.message


def test_help_and_version_end_well(capsys):
    for argv in (["--help"], ["servers", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as caught:
            parse(argv)
        assert caught.value.code == 0
    out = capsys.readouterr().out
    assert "servers add" in out
    assert "desktop-host" in out


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_verb_has_help_in_every_language(language, capsys):
    for words in VERBS:
        with pytest.raises(SystemExit):
            parse(["--lang", language, *words, "--help"])
    out = capsys.readouterr().out
    assert "cli." not in out


def test_the_help_of_a_group_lists_its_verbs(capsys):
    with pytest.raises(SystemExit):
        parse(["servers", "--help"])
    told = capsys.readouterr().out
    assert "servers login" in told
    assert "servers logout" in told


COMPLAINTS = [
    (["secrets", "set"], "missing_words", "NAME"),
    (["chat", "a", "b", "c"], "unknown_words", "b c"),
    (["chat", "--budget"], "no_option_value", "--budget"),
    (["usage", "--by", "moon"], "bad_choice", "purpose"),
    (["chat", "--max-steps", "0", "hi"], "bad_number", "--max-steps"),
    (["servers", "add", "x", "--env", "A", "--", "ls"], "bad_pair", "KEY=VALUE"),
]


@pytest.mark.parametrize(("argv", "reason", "named"), COMPLAINTS, ids=[reason for _, reason, _ in COMPLAINTS])
def test_what_is_wrong_with_the_words_is_said_in_both_languages(argv, reason, named):
    with pytest.raises(UserFault) as caught:
        parse(argv)
    assert caught.value.params["reason"] == reason
    english, chinese = (i18n.Translator(language).error("usage", caught.value.params)[0] for language in i18n.LANGUAGES)
    assert named in english and named in chinese
    assert any("一" <= sign <= "鿿" for sign in chinese)


def test_a_negative_number_is_a_word_not_an_option():
    ns = parse(["settings", "set", "tools.parallel", "-1"])
    assert (ns.key, ns.value) == ("tools.parallel", "-1")
