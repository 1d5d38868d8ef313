"""The wire log, the server log and the masking of secrets."""

from __future__ import annotations

import json
from pathlib import Path

from desktop_host.servers import records
from desktop_host.servers.records import MASK, Redactor, ServerLog, WireLog
from tests.fakes.manual_clock import ManualClock
from tests.fakes.servers.stage import WallClock


def test_secrets_are_masked_longest_first_and_short_words_left() -> None:
    redact = Redactor({"token", "token-and-more", "abc"})
    assert redact("token-and-more token abc") == f"{MASK} {MASK} abc"
    redact.learn({"later"})
    assert redact("sooner or later") == f"sooner or {MASK}"


def test_a_secret_is_masked_within_an_address_and_within_json_text_too() -> None:
    redact = Redactor(['p@ss word"x'])
    for text in ("https://h/?key=p%40ss%20word%22x", json.dumps({"k": 'p@ss word"x'}), 'plain p@ss word"x'):
        assert MASK in redact(text) and "ss" not in redact(text).replace("https", ""), text


def test_a_secret_across_the_cut_is_not_shown_in_half() -> None:
    secret = "s" * 40
    wire = WireLog(ManualClock(), Redactor({secret}))
    wire.record("in", {"result": {"text": "x" * (records.TEXT_LIMIT - 10) + secret + "y" * 10_000, secret: 1}})
    assert "ssss" not in json.dumps(wire.frames()[0].message)


def test_what_a_server_says_is_veiled_where_it_holds_a_secret_that_is_no_ordinary_word() -> None:
    redact = Redactor({"sk-0123456789", "password", "12345678", "a-b"})
    said = {
        "content": [{"type": "text", "text": "password 12345678 a-b"}, {"type": "image", "data": "sk-0123456789AA=="}],
        "nextCursor": "sk-0123456789",
        "n": [1, None, True, {"deep": "fine"}],
    }
    said["content"][1]["mimeType"] = "image/png"  # type: ignore[index]
    assert redact.veiled(said) is said
    told = {**said, "sk-0123456789": [{"data": "x sk-0123456789 y"}]}
    assert redact.veiled(told) == {**said, MASK: [{"data": f"x {MASK} y"}]}
    assert redact.veiled(told)["content"] is said["content"]
    assert Redactor().veiled(told) is told


def test_the_wire_log_keeps_the_newest_and_shortens_each() -> None:
    wire = WireLog(ManualClock(), Redactor())
    for n in range(records.FRAMES + 10):
        wire.record("out", {"id": n, "params": {"list": list(range(5_000)), "text": "z" * 100_000}})
    frames = wire.frames()
    assert len(frames) == records.FRAMES
    assert frames[-1].message["id"] == records.FRAMES + 9
    assert len(json.dumps(frames[-1].message)) < 20_000


async def test_the_log_file_turns_over_and_holds_all_lines(tmp_path: Path, monkeypatch: object) -> None:
    log = ServerLog(tmp_path / "logs" / "a.log", WallClock(), Redactor({"hidden-key"}))
    log.path.parent.mkdir()
    log.path.write_text("x" * (records.FILE_LIMIT + 1))
    log.add("stderr", "one hidden-key")
    log.add("message", "two", "warning")
    await log.close()
    lines = log.path.read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == [f"stderr one {MASK}", "message [warning] two"]
    assert log.path.with_suffix(".log.1").exists()
    assert [line.text for line in log.lines()] == [f"one {MASK}", "two"]


async def test_a_log_that_cannot_be_written_says_so_once_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file is in the way")
    log = ServerLog(tmp_path / "logs" / "a.log", WallClock(), Redactor())
    log.add("stderr", "one")
    await log.close()
    log.add("stderr", "two")
    await log.close()
    assert [line.source for line in log.lines()] == ["stderr", "host", "stderr"]
