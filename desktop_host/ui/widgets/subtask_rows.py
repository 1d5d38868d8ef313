"""The parts of a call that were handed to sub-tasks: one line each, with its state and a way into it."""

from __future__ import annotations

import time

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QWidget

from desktop_host.core.entries import SubtaskEntry
from desktop_host.i18n import current, tr
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.widgets.pieces import Elided, column, icon_button, icon_label, row

LOOKS = {
    "waiting": ("clock", "muted"),
    "running": ("tool", "accent"),
    "done": ("check", "success"),
    "failed": ("error", "danger"),
    "skipped": ("close", "muted"),
    "cancelled": ("stop", "muted"),
    "unknown": ("warning", "warning"),
}
"""State to icon and colour."""


def duration(seconds: float) -> str:
    """A time span for reading."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)}:{int(seconds % 60):02d} min"


class SubtaskRow(QFrame):
    """One part."""

    opened = Signal(str)
    """Id of its session."""

    def __init__(self, part: SubtaskEntry) -> None:
        super().__init__()
        self.part = part
        set_role(self, "well")
        line = row(owner=self, space=theme.px(Space.S))
        line.setContentsMargins(theme.px(Space.M), theme.px(Space.XS), theme.px(Space.XS), theme.px(Space.XS))
        self._mark = icon_label("clock")
        line.addWidget(self._mark)
        words = column(space=0)
        self._name = Elided("", "")
        self._line = Elided("", "caption")
        words.addWidget(self._name)
        words.addWidget(self._line)
        line.addLayout(words, 1)
        self.open_button = icon_button(
            "chevron-right", tr("chat.part.open"), lambda: self.opened.emit(self.part.last.child)
        )
        line.addWidget(self.open_button)
        self.show_part(part)

    @property
    def state_text(self) -> str:
        """How it stands, by whom and with what."""
        return self._line.toolTip() or self._line.text()

    @property
    def under_way(self) -> bool:
        """Whether it still runs."""
        return self.part.last.state == "running"

    def show_part(self, part: SubtaskEntry) -> None:
        """Show how it now stands."""
        self.part = part
        last = part.last
        icon, role = LOOKS[last.state]
        set_icon(self._mark, icon, role)
        self._name.put(f"{last.number}. {last.name}")
        self.open_button.setVisible(bool(last.child))
        named = tr("chat.part.open_named", name=last.name)
        self.open_button.setAccessibleName(named)
        self.open_button.setToolTip(named)
        self.tick()

    def tick(self) -> None:
        """Show the time that has passed."""
        last = self.part.last
        word = tr(f"chat.part.{last.state}")
        end = time.time() if self.under_way else self.part.changed_at
        if last.state in ("running", "done", "failed"):
            word = f"{word} · {duration(max(0.0, end - self.part.started_at))}"
        self._line.put("  ·  ".join(filter(None, (word, _says(self.part)))))
        words = f"{last.number}. {last.name}: {word}"
        if self.accessibleName() != words:
            self.setAccessibleName(words)


class SubtaskRows(QWidget):
    """All parts of a call, in its order."""

    acted = Signal(str)
    """`open:<session>`: the person wants to see a part."""

    def __init__(self) -> None:
        super().__init__()
        self.hide()
        self.rows: dict[int, SubtaskRow] = {}
        self._column = column(self, space=theme.px(Space.XS))
        self._column.setContentsMargins(theme.px(Space.M), theme.px(Space.XS), theme.px(Space.M), theme.px(Space.M))

    def show_parts(self, parts: tuple[SubtaskEntry, ...]) -> None:
        """Show how they now stand."""
        self.setVisible(bool(parts))
        for at, part in enumerate(parts):
            known = self.rows.get(part.last.number)
            if known is None:
                known = self.rows[part.last.number] = SubtaskRow(part)
                known.opened.connect(lambda session: self.acted.emit(f"open:{session}"))
                self._column.insertWidget(at, known)
            elif known.part is not part:
                known.show_part(part)

    def tick(self) -> None:
        """Show the time that has passed."""
        for known in self.rows.values():
            if known.under_way:
                known.tick()


def summary(parts: tuple[SubtaskEntry, ...]) -> str:
    """How many of them are over."""
    over = sum(p.last.state not in ("waiting", "running") for p in parts)
    return tr("chat.part.over", n=over, of=len(parts))


def _says(part: SubtaskEntry) -> str:
    last = part.last
    by = last.skill.replace("@", " ")
    if last.instead_of:
        by = tr("chat.part.instead", skill=by, failed=last.instead_of.replace("@", " "))
    why = ""
    if last.error and last.state != "done":
        code = str(last.error["code"])
        key = f"chat.part.why.{code}"
        why, _ = current().error(code, dict(last.error.get("params") or {}), str(last.error["message"]))
        why = tr(key) if current().has(key) else why
    text = " ".join(last.text[:300].split()) if last.state == "done" else ""
    return "  ·  ".join(filter(None, (by, why, text)))
