"""What the desktop asks the program to open: links to install and bundles go to the window."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from desktop_host.app.run import run, split_opened

LINK = "desktop-host://install?name=x&config=e30"


@pytest.mark.parametrize(
    ("argv", "words", "opened"),
    [
        ([LINK], [], [LINK]),
        (["--profile", "work", LINK], ["--profile", "work"], [LINK]),
        (["/tmp/Notes.MCPB"], [], ["/tmp/Notes.MCPB"]),
        (["servers", "add", LINK], ["servers", "add", LINK], []),
        (["bundles", "install", "/tmp/a.dxt"], ["bundles", "install", "/tmp/a.dxt"], []),
        ([], [], []),
        (["chat", "hello"], ["chat", "hello"], []),
    ],
)
def test_links_and_bundles_open_the_window_unless_a_verb_takes_them(
    argv: list[str], words: list[str], opened: list[str]
) -> None:
    assert split_opened(argv) == (words, opened)


def test_what_a_desktop_hands_over_is_not_lost_where_there_is_no_display(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    if not sys.platform.startswith("linux"):
        pytest.skip("elsewhere there always is a display")
    link = "desktop-host://install?name=x&command=y"
    assert run(["--home", str(tmp_path), "--lang", "en", link]) == 2
    assert f'servers import "{link}"' in capsys.readouterr().err
    assert not any(tmp_path.iterdir()), "nothing was made of it"
