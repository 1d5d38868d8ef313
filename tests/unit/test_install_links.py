"""Install links are handed to this host where the person wants it, and to whom they were before where not."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from desktop_host.app.install_links import DesktopLinks, quoted
from desktop_host.app.run import split_opened
from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.install_links import LinkState


def done(work: Coroutine[Any, Any, LinkState]) -> LinkState:
    return asyncio.run(work)


def desk(home: Path, *options: str, platform: str = "linux") -> DesktopLinks:
    return DesktopLinks(options, {"HOME": str(home)}, platform)


def test_links_are_registered_for_this_user_and_taken_back(tmp_path: Path) -> None:
    links = desk(tmp_path, "--home", "/tmp/a b")
    assert not done(links.state()).on
    state = done(links.put(True))
    assert state.on and state.possible
    entry = Path(state.place).read_text()
    assert Path(state.place) == tmp_path / ".local/share/applications/desktop-host.desktop"
    assert "MimeType=x-scheme-handler/desktop-host;application/x-mcp-bundle;" in entry
    (run,) = [line.removeprefix("Exec=") for line in entry.splitlines() if line.startswith("Exec=")]
    assert shlex.split(run)[-3:] == ["--home", "/tmp/a b", "%u"]
    assert (tmp_path / ".local/share/icons/hicolor/scalable/apps/desktop-host.svg").read_bytes().startswith(b"<svg")
    assert "*.mcpb" in (tmp_path / ".local/share/mime/packages/desktop-host.xml").read_text()
    assert not done(desk(tmp_path).state()).on, "another profile's registration is not ours"
    assert not done(links.put(False)).on
    assert not [p for p in tmp_path.rglob("desktop-host*") if p.is_file()]
    assert "desktop-host" not in (tmp_path / ".config/mimeapps.list").read_text()


def test_what_others_registered_stays(tmp_path: Path) -> None:
    listed = tmp_path / ".config/mimeapps.list"
    listed.parent.mkdir()
    before = (
        "# mine\n[Added Associations]\ntext/plain=vim.desktop;\n\n[Default Applications]\ntext/html=firefox.desktop\n"
        "x-scheme-handler/desktop-host=other.desktop\n"
    )
    listed.write_text(before)
    links = desk(tmp_path)
    assert done(links.put(True)).on
    during = listed.read_text()
    assert "x-scheme-handler/desktop-host=desktop-host.desktop;other.desktop" in during
    assert during.count("[Default Applications]") == 1 and "text/html=firefox.desktop" in during and "# mine" in during
    done(links.put(True))
    assert listed.read_text() == during
    done(links.put(False))
    assert listed.read_text() == before


@pytest.mark.skipif(sys.platform != "linux", reason="the desktop's own checker")
def test_the_entry_is_a_valid_one(tmp_path: Path) -> None:
    checker = shutil.which("desktop-file-validate")
    if checker is None:
        pytest.skip("desktop-file-validate is not installed")
    state = done(desk(tmp_path, "--home", '/tmp/we$ird `x` "q" 100%').put(True))
    checked = subprocess.run([checker, state.place], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_no_word_of_a_path_is_run_as_more_than_a_path() -> None:
    assert quoted(("/opt/x", "%u", "a b", "$HOME", "`id`", 'q"')) == (
        '/opt/x %%u "a b" "\\\\$HOME" "\\\\`id\\\\`" "q\\\\""'
    )


def test_where_there_is_no_way_it_says_so(tmp_path: Path) -> None:
    links = desk(tmp_path, platform="darwin")
    assert not done(links.state()).possible
    with pytest.raises(UserFault) as caught:
        done(links.put(True))
    assert caught.value.params["reason"] == "no_links"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / ".local").write_text("a file")
    with pytest.raises(KnownFault) as caught:
        done(desk(tmp_path).put(True))
    assert caught.value.code == "permission" and ".local" in caught.value.params["file"]


def test_the_words_of_the_entry_reach_the_window_and_no_verb() -> None:
    link = "desktop-host://install?name=x&command=y"
    assert split_opened(["--home", "/h", link]) == (["--home", "/h"], [link])
    assert split_opened(["servers", "import", link]) == (["servers", "import", link], [])
