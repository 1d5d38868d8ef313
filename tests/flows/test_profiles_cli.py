"""Profiles from the command line: copied, written to a file, taken back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desktop_host.app.run import run


def told(capsys: pytest.CaptureFixture[str], home: Path, *words: str) -> tuple[int, list[dict[str, object]]]:
    code = run(["--home", str(home), "--json", "profiles", *words])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_profile_is_copied_exported_and_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"
    assert told(capsys, home, "create", "work")[0] == 0
    assert told(capsys, home, "clone", "work", "play") == (0, [{"name": "play"}])
    target = tmp_path / "w.zip"
    assert told(capsys, home, "export", "work", "--output", str(target)) == (
        0, [{"name": "work", "file": str(target)}])  # fmt: skip
    assert told(capsys, home, "import", str(target), "--name", "back") == (0, [{"name": "back"}])
    assert [line["name"] for line in told(capsys, home, "list")[1]] == ["back", "play", "work"]


def test_what_cannot_be_copied_or_taken_in_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"
    told(capsys, home, "create", "work")
    (tmp_path / "bad.zip").write_text("no zip")
    for words, code in (
        (("clone", "work", "work"), "usage"), (("clone", "nobody", "x"), "not_found"),
        (("export", "nobody"), "not_found"), (("import", str(tmp_path / "bad.zip")), "bad_archive"),
        (("import", str(tmp_path / "none.zip")), "not_found"),
    ):  # fmt: skip
        status, lines = told(capsys, home, *words)
        assert (status, lines[0]["code"]) == (2, code)
