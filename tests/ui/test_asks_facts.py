"""What a person is told before an answer: keys, hints, changed definitions, odd addresses."""

from __future__ import annotations

from desktop_host.core.asks import Allow, ApproveTool, Refuse
from desktop_host.core.permissions import Life, Scope
from desktop_host.core.tools import ToolHints
from desktop_host.core.values import EMPTY
from desktop_host.ui.viewmodels.asks import choices, diff, hint_keys, url_facts


def test_the_five_answers_hold_for_the_definition_that_was_shown() -> None:
    ask = ApproveTool("a", "s", "c", "files", "read", EMPTY, tool_digest="d")
    answers = [c.answer for c in choices(ask)]
    assert answers == [
        Allow(Life.ONCE, Scope.CALL, "d"),
        Allow(Life.SESSION, Scope.TOOL, "d"),
        Allow(Life.PROFILE, Scope.TOOL, "d"),
        Allow(Life.PROFILE, Scope.SERVER, "d"),
        Refuse(),
    ]
    assert "".join(c.letter for c in choices(ask)) == "ASTVD"


def test_only_what_a_tool_says_of_itself_is_shown() -> None:
    assert hint_keys(ToolHints()) == ()
    assert [k for k, _t in hint_keys(ToolHints(read_only=True, destructive=True))] == ["chat.hint.read_only"]
    assert [k for k, _t in hint_keys(ToolHints(read_only=False, destructive=True))] == [
        "chat.hint.writes",
        "chat.hint.destructive",
    ]


def test_a_diff_shows_the_old_line_before_the_new() -> None:
    assert diff("a\nb\nc", "a\nB\nc") == ((" ", "a"), ("-", "b"), ("+", "B"), (" ", "c"))


def test_a_plain_address_has_its_host_set_apart() -> None:
    facts = url_facts("https://login.example.org:8443/a?b=c")
    assert (facts.before_host, facts.host, facts.after_host) == ("https://", "login.example.org", ":8443/a?b=c")
    assert facts.warnings == ()
    assert facts.can_open


def test_a_punycode_host_is_shown_in_its_own_script_and_warned_of() -> None:
    facts = url_facts("https://xn--80ak6aa92e.com/")
    assert facts.readable_host == "аррӏе.com"
    assert facts.warnings == ("chat.url.punycode",)


def test_a_user_name_cannot_pass_as_the_host() -> None:
    facts = url_facts("https://example.org@evil.test/x")
    assert facts.host == "evil.test"
    assert facts.before_host == "https://example.org@"
    assert "chat.url.userinfo" in facts.warnings


def test_only_web_addresses_can_be_opened() -> None:
    for url in ("file:///etc/passwd", "javascript:alert(1)", "vscode://x", "https://", "http://[::1", "nonsense"):
        assert not url_facts(url).can_open, url
    assert url_facts("http://127.0.0.1:8765/cb").warnings == ()
    assert url_facts("http://example.org/").warnings == ("chat.url.not_encrypted",)


def test_the_pieces_of_an_address_make_the_whole_again() -> None:
    for url in ("HTTPS://Example.ORG/Path", "https://a@b:1/x", "https://xn--80ak6aa92e.com", "http://[::1]:80/x"):
        facts = url_facts(url)
        assert facts.before_host + facts.host + facts.after_host == url
