"""What the desktop asks the program to open: links to install and bundles go to the window."""

from __future__ import annotations

import pytest

from desktop_host.app.run import split_opened

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
