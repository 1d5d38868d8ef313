from __future__ import annotations

import base64
import json
import logging
import stat
import string
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.diagnostics import Logs, Redactor, start_logging

KEY = "Zq8kT-veryverysecret_0123456789"


@pytest.mark.parametrize(
    "text",
    [
        "key sk-ant-api03-abcdefghijkl in it",
        "Authorization: Bearer abcdef.ghijkl-mnop",
        "{'authorization': 'Basic dXNlcjpwYXNz'}",
        '{"x-api-key": "hidden-value"}',
        'headers={"Authorization": "Token hidden-value"}',
        "api_key=hidden-value&x=1",
        "OPENAI_API_KEY=hidden-value",
        "password: hidden-value",
        "client_secret = 'hidden-value'",
        'refresh_token="hidden-value"',
        "http://user:hidden-value@proxy:8080/",
        "postgresql://u:hidden-value@db/x",
        "ghp_0123456789hidden-value",
        "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJoaWRkZW4ifQ.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nhidden-value\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nhidden-value",
        "Cookie: hidden-value",
        "DB_PASSWORD='hidden-value'",
    ],
)
def test_what_looks_like_a_secret_is_left_out(text: str) -> None:
    """Hazard O137."""
    clean = Redactor()(text)
    for part in ("hidden-value", "abcdefghij", "abcdef.ghijkl", "dXNlcjpwYXNz", "c2lnbmF0dXJl", "sk-ant"):
        assert part not in clean
    assert "[secret]" in clean


@pytest.mark.parametrize(
    "text",
    [
        "120 input tokens, max_tokens=4096", "GET http://127.0.0.1:8080/mcp 200", "the task-force is at sk-ip",
        "server files started (pid 12)", "C:\\Users\\x", "keyring: locked", "basic auth", "你好，世界",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor()(text) == text


def test_a_known_secret_is_left_out_in_every_form() -> None:
    """Hazard O137: no prefix of it either."""
    redactor = Redactor()
    redactor.add(KEY)
    for form in (
        KEY, quote(KEY + "/+", safe=""), base64.b64encode(KEY.encode()).decode(), json.dumps({"a": KEY}),
        KEY[:8] + "…", KEY[:10] + "...", f"key {KEY[:12]} and {KEY[-8:]}", f"{KEY[:8]}{KEY[-8:]}", f"x={KEY};",
    ):  # fmt: skip
        clean = redactor(f"before {form} after")
        assert KEY[:8] not in clean
        assert KEY[-8:] not in clean
        assert base64.b64encode(KEY.encode()).decode()[:20] not in clean
        assert clean.startswith("before ")
        assert clean.endswith(" after")
    assert KEY not in repr(redactor)


def test_the_tokens_inside_a_login_are_known_too() -> None:
    redactor = Redactor()
    redactor.add(json.dumps({"tokens": {"access": "A1b2C3d4E5f6G7h8", "list": ["H8g7F6e5D4c3B2a1"]}, "type": "x"}))
    assert redactor("A1b2C3d4E5f6G7h8 H8g7F6e5D4c3B2a1 x") == "[secret] [secret] x"


def test_a_secret_of_several_lines_is_known_by_each_line() -> None:
    redactor = Redactor()
    redactor.add("first-line-of-it\nsecond-line-of-it\n")
    assert redactor("a second-line-of-it b") == "a [secret] b"


@effort(max_examples=150, deadline=None)
@given(
    secrets=st.lists(
        st.text(string.printable, min_size=4, max_size=40).filter(lambda s: len(s.strip()) >= 4), min_size=1, max_size=4
    ),
    around=st.text(max_size=30),
)
def test_no_known_secret_survives_wherever_it_stands(secrets: list[str], around: str) -> None:
    redactor = Redactor()
    for secret in secrets:
        redactor.add(secret)
    clean = redactor("\x00".join((around, *secrets, around)))
    for secret in secrets:
        assert secret.strip() not in clean.replace("[secret]", "\x01") or secret.strip() in "\x01"


def test_a_megabyte_is_cleaned_in_a_moment() -> None:
    redactor = Redactor()
    redactor.add(KEY)
    for line in (
        "A" * 1_000_000,
        "a.b-" * 250_000,
        "api_key " * 120_000,
        "://" * 300_000,
        "eyJ" * 300_000,
        '"' * 500_000,
    ):
        began = time.monotonic()
        redactor(line)
        assert time.monotonic() - began < 10, line[:10]


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    opened = start_logging(tmp_path, "DEBUG")
    yield opened
    opened.close()


def test_the_log_holds_no_secret_of_a_message_an_argument_or_a_traceback(logs: Logs) -> None:
    """Hazard O137."""
    logs.redactor.add(KEY)
    log = logging.getLogger("desktop_host.test")
    log.info("key is %s", KEY)
    log.debug({"authorization": "Bearer abcdefghijk"})
    try:
        raise ValueError(f"bad key {KEY[:8]}…")
    except ValueError:
        log.exception("failed with %r", {"api_key": "other-value"})
    logging.getLogger("other").warning("from elsewhere: sk-0123456789abc")
    logging.getLogger("other").info("not kept")
    logs.close()
    text = logs.path.read_text("utf-8")
    assert text.count("[secret]") >= 5
    for part in (KEY[:8], "abcdefghijk", "other-value", "sk-0123"):
        assert part not in text
    assert "Traceback" in text
    assert "not kept" not in text
    assert stat.S_IMODE(logs.path.stat().st_mode) == 0o600


def test_a_closed_log_takes_nothing_more_and_closing_twice_is_once(tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers)
    opened = start_logging(tmp_path)
    opened.close()
    opened.close()
    logging.getLogger("desktop_host.test").warning("too late")
    assert logging.getLogger().handlers == before
    assert "too late" not in opened.path.read_text()


def test_the_log_rotates_and_its_lines_are_bounded(logs: Logs) -> None:
    log = logging.getLogger("desktop_host.test")
    for n in range(40):
        log.info("%d %s", n, "x" * 100_000)
    log.info("emoji 🙂 and \ud800")
    logs.close()
    files = sorted(logs.folder.iterdir())
    assert len(files) >= 2
    assert sum(f.stat().st_size for f in files) < 5_000_000
    assert "🙂" in logs.path.read_text("utf-8")


def test_a_log_that_cannot_be_written_ends_alone_and_leaks_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    opened = start_logging(tmp_path)
    opened._file.stream.close()
    opened._file.stream = open("/dev/full", "w")  # noqa: SIM115 - the handler closes it
    for _ in range(3):
        logging.getLogger("desktop_host.test").error("key %s", KEY)
    opened.close()
    err = capfd.readouterr().err
    assert err.count("cannot be written") == 1
    assert KEY not in err


def test_a_folder_that_cannot_hold_a_log_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    with pytest.raises(KnownFault) as caught:
        start_logging(tmp_path)
    assert caught.value.params["path"] == str(tmp_path / "logs")
    with pytest.raises(UserFault):
        start_logging(tmp_path, "LOUD")
