"""What the command line writes."""

from __future__ import annotations

import io
import json

import pytest

from desktop_host import i18n
from desktop_host.cli.output import Output, dump, error_object, visible, width
from desktop_host.core.errors import HostError, KnownFault, UserFault
from desktop_host.core.values import freeze


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _english():
    i18n.install("en")
    yield
    i18n.install("en")


def test_json_goes_alone_to_standard_output_and_people_to_standard_error():
    out, err = io.StringIO(), io.StringIO()
    written = Output(True, out, err)
    written.item(freeze({"a": [1, "é"]}), "for people")
    written.table([["x", "y"]])
    written.note("remark")
    assert out.getvalue() == '{"a": [1, "é"]}\n'
    assert err.getvalue() == "remark\n"


def test_an_error_is_one_english_object_whatever_the_language():
    i18n.install("zh_CN")
    out, err = io.StringIO(), io.StringIO()
    fault = KnownFault("server_failed", "fs: exit code 1", server="fs", remedy="remedy.server.missing_file")
    Output(True, out, err).error(fault)
    (line,) = out.getvalue().splitlines()
    assert json.loads(line) == {
        "type": "error",
        "code": "server_failed",
        "message": "fs: exit code 1",
        "remedy": "A file that the command names does not exist; check the paths, and use absolute ones.",
        "params": {"server": "fs", "remedy": "remedy.server.missing_file"},
    }
    assert "服务器 fs" in err.getvalue()


def test_an_error_without_words_of_its_own_gets_those_of_its_code():
    assert error_object(HostError("max_steps"))["message"].startswith("The turn reached its limit")


def test_people_are_told_what_happened_and_what_to_do():
    err = io.StringIO()
    Output(False, io.StringIO(), err).error(UserFault("usage", "no", reason="unknown_verb", verb="sesions",
                                                      nearest="sessions"))  # fmt: skip
    first, second = err.getvalue().splitlines()
    assert first == "desktop-host: There is no verb “sesions”. Did you mean “sessions”?"
    assert second.strip().startswith("See desktop-host sesions --help") or "help" in second


def test_what_steers_a_terminal_is_made_visible_there_and_kept_elsewhere():
    nasty = "a\x1b[2J\u202eb\r\nc\x07"
    assert visible(nasty) == "a\\u001b[2J\\u202eb\nc\\u0007"
    terminal, pipe = Terminal(), io.StringIO()
    Output(False, terminal, terminal).item({}, nasty)
    Output(False, pipe, pipe).item({}, nasty)
    assert "\x1b" not in terminal.getvalue()
    assert pipe.getvalue() == nasty + "\n"
    assert visible("日本語\t🎉") == "日本語\t🎉"


def test_columns_of_wide_characters_stand_under_each_other():
    assert width("服务器") == 6
    out = io.StringIO()
    Output(False, out, io.StringIO()).table([["服务器", "a"], ["x", "b"]])
    assert out.getvalue() == "服务器  a\nx       b\n"


def test_a_lone_surrogate_is_escaped_and_not_a_crash():
    assert json.loads(dump({"x": "\udcff"})) == {"x": "\udcff"}
    dump({"x": "\udcff"}).encode()
