"""What a person decided about skills, kept beside them in one small file of the profile."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from desktop_host.core.skill_admin import FileChange, SkillChange
from desktop_host.core.skills import SkillStatus
from desktop_host.skills.file_faults import file_fault
from desktop_host.skills.rollout import Rollout, Share

FILE = "skills-state.json"
KEPT_CHANGES = 50
"""Entries of a skill's history that stay."""
_STALE_LOCK_S = 10.0
_log = logging.getLogger(__name__)

State = dict[str, Any]


class SkillState:
    """Switched-off skills, grants, weights of skills that cannot be written to, and each skill's history.

    Blocking. Every change reads the file anew under a lock, so that two hosts of one profile do not undo each other.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._seen: tuple[int, int] = (0, 0)
        self._data: State = {}

    def refresh(self) -> bool:
        """Read the file if it is another than last time; whether it was."""
        try:
            info = self.path.stat()
        except OSError:
            mark = (0, 0)
        else:
            mark = (info.st_mtime_ns, info.st_size)
        if mark == self._seen:
            return False
        self._data = self._load()
        self._seen = mark
        return True

    def _load(self) -> State:
        try:
            data = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            aside = self.path.with_suffix(".broken.json")
            _log.warning("%s cannot be read; it is kept as %s", self.path, aside, exc_info=True)
            with contextlib.suppress(OSError):
                os.replace(self.path, aside)
            return {}
        return data if isinstance(data, dict) else {}

    def change(self, how: Callable[[State], None]) -> None:
        """Change the file.

        Raises:
            KnownFault: `disk_full` or `database_error`, it cannot be written.
        """
        try:
            with self._locked():
                data = self._load()
                how(data)
                handle, draft = tempfile.mkstemp(dir=self.path.parent, prefix=".skills-")
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(data, file, ensure_ascii=False, indent=1)
                os.replace(draft, self.path)
        except OSError as error:
            raise file_fault(error, self.path, f"{self.path} cannot be written") from error
        self.refresh()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_suffix(".lock")
        deadline = time.monotonic() + _STALE_LOCK_S
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
                break
            except FileExistsError:
                if time.monotonic() > deadline:
                    _log.warning("%s was left behind; it is taken over", lock)
                    break
                time.sleep(0.02)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)

    # ---- what stands in it
    @property
    def disabled(self) -> frozenset[str]:
        """Ids of skills that are switched off."""
        return frozenset(str(n) for n in self._list("disabled"))

    def granted(self, name: str) -> tuple[str, ...]:
        """The tool patterns, as the skill wrote them, that a person granted to a skill."""
        return tuple(str(p) for p in self._table("grants").get(name, ()))

    def rollouts(self) -> dict[str, Rollout]:
        """Weights of skills whose own folder cannot be written to."""
        out: dict[str, Rollout] = {}
        for name, shares in self._table("rollouts").items():
            with contextlib.suppress(KeyError, TypeError, ValueError):
                out[name] = {v: Share(SkillStatus(s["status"]), float(s["weight"])) for v, s in shares.items()}
        return out

    def approved(self) -> dict[str, Any]:
        """Approvals of skills served over MCP, by their identity."""
        return self._table("remote")

    def changes(self, name: str) -> tuple[SkillChange, ...]:
        """A skill's history, newest first."""
        rows = []
        for row in reversed(self._table("history").get(name, [])):
            with contextlib.suppress(KeyError, TypeError):
                files = tuple(FileChange(str(f[0]), str(f[1])) for f in row.get("files", ()))
                rows.append(SkillChange(float(row["t"]), str(row["version"]), str(row["digest"]), str(row["event"]),
                                        files, str(row.get("detail", ""))))  # fmt: skip
        return tuple(rows)

    def note(self, changes: Sequence[tuple[str, SkillChange]]) -> None:
        """Add to the histories of skills: `(id, change)`, all in one go."""
        if not changes:
            return

        def how(data: State) -> None:
            history = data.setdefault("history", {})
            for name, change in changes:
                rows = history.setdefault(name, [])
                rows.append({
                    "t": change.t, "version": change.version, "digest": change.digest, "event": change.event,
                    "files": [[f.path, f.change] for f in change.files[:200]], "detail": change.detail,
                })  # fmt: skip
                del rows[:-KEPT_CHANGES]

        self.change(how)

    def _list(self, key: str) -> list[Any]:
        value = self._data.get(key)
        return value if isinstance(value, list) else []

    def _table(self, key: str) -> dict[str, Any]:
        value = self._data.get(key)
        return value if isinstance(value, dict) else {}
