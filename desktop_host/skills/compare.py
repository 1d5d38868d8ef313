"""What differs between two versions of a skill."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path

from desktop_host.core.skill_admin import FileChange
from desktop_host.skills.library import changes_between
from desktop_host.skills.scan import Entry

MAX_TEXT = 512 * 1024
"""Bytes of a file up to which its text is compared."""


def compare(old: Entry, new: Entry) -> tuple[FileChange, ...]:
    """The files that differ, with a unified diff of those that are text. Blocking."""
    out = []
    for change in changes_between(old.manifest, new.manifest):
        before = _lines(old.folder / change.path) if change.change != "added" else []
        after = _lines(new.folder / change.path) if change.change != "removed" else []
        if before is None or after is None:
            out.append(change)
            continue
        names = (f"{old.skill.version}/{change.path}", f"{new.skill.version}/{change.path}")
        rows = difflib.unified_diff(before, after, *names, lineterm="")
        out.append(replace(change, diff="\n".join(rows)))
    return tuple(out)


def _lines(path: Path) -> list[str] | None:
    """The lines of a text file; None where it is no text or too large."""
    try:
        if path.stat().st_size > MAX_TEXT:
            return None
        return path.read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
