"""The author's kit in the window: a new project's tool run by hand, the source saved, the new tool there at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit

from tests.ui.window_kit import Window

pytestmark = pytest.mark.live


def test_a_server_that_is_being_written_starts_anew_when_it_is_saved(real_window: Window, tmp_path: Path) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "DBUS_SESSION_BUS_ADDRESS": "/dev/null",
    }
    words = ["--home", str(tmp_path / "other"), "servers", "new", "my-notes", "--in", str(tmp_path), "--json"]
    made = subprocess.run(
        [sys.executable, "-m", "desktop_host", *words], env=env, capture_output=True, text=True, check=True
    )
    project = Path(json.loads(made.stdout)["folder"])
    entry = {"command": sys.executable, "args": [str(project / "dev.py")]}
    real_window.add(json.dumps({"mcpServers": {"my-notes": entry}}), "my-notes")
    tools = real_window.tab("my-notes", "tools")
    real_window.until(lambda: [r.spec.name for r in tools.rows] == ["add_note", "search_notes"])

    row = next(r for r in tools.rows if r.spec.name == "search_notes")
    real_window.click(row.fold)
    real_window.until(lambda: any(f.isVisible() for f in row.findChildren(QLineEdit)))
    real_window.click(next(f for f in row.findChildren(QLineEdit) if f.isVisible()))
    real_window.type("notes")
    real_window.press("Run", row)
    real_window.until(lambda: any("note" in box.toPlainText().lower() for box in row.findChildren(QPlainTextEdit)))
    real_window.workspace.window.commands.run("view.inspector")

    source = project / "server.py"
    source.write_text(source.read_text().replace('title="Search notes"', 'name="find_notes", title="Search notes"'))
    real_window.until(lambda: "find_notes" in [r.spec.name for r in tools.rows])
    real_window.picture("author")

    good = source.read_text()
    source.write_text("this is no Python(\n")  # Broken for a moment, as while typing.
    real_window.until(lambda: [r.spec.name for r in tools.rows] == ["why_it_does_not_start"])
    source.write_text(good)
    real_window.until(lambda: "find_notes" in [r.spec.name for r in tools.rows])
