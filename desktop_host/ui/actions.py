"""Commands as data: one table feeds menus, keys and the command palette.

A command's text is the locale key `command.<id>`. `when` names a condition that the window sets or clears;
a command whose condition does not hold is disabled everywhere at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from desktop_host.i18n import tr


@dataclass(frozen=True, slots=True)
class Command:
    """One thing a person can do from anywhere."""

    id: str
    shortcut: str = ""
    """Portable text of the key, e.g. `Ctrl+N`; several are separated by a space."""
    icon: str = ""
    when: str = "always"
    """`always`, `ready` (the host is open), `session` (a conversation is shown) or `profiles` (they can be made)."""

    @property
    def text(self) -> str:
        """Locale key of its name."""
        return f"command.{self.id}"


COMMANDS: tuple[Command, ...] = (
    Command("chat.new", "Ctrl+N", "plus", "ready"),
    Command("chat.search", "Ctrl+Shift+F", "search", "ready"),
    Command("chat.rename", "Ctrl+Shift+R", "edit", "session"),
    Command("chat.pin", "Ctrl+Shift+P", "pin", "session"),
    Command("chat.window", "Ctrl+Shift+W", "external", "session"),
    Command("chat.move", "", "profile", "session"),
    Command("chat.compact", "", "document", "session"),
    Command("chat.export_md", "Ctrl+Shift+E", "document", "session"),
    Command("chat.export_html", "", "document", "session"),
    Command("chat.export_json", "", "document", "session"),
    Command("chat.import", "", "download", "ready"),
    Command("chat.delete", "Ctrl+Shift+D", "trash", "session"),
    Command("go.chats", "Ctrl+1", "chat", "ready"),
    Command("go.servers", "Ctrl+2", "servers", "ready"),
    Command("servers.add", "Ctrl+Shift+A", "plus", "ready"),
    Command("go.skills", "Ctrl+3", "skills", "ready"),
    Command("skills.install", "Ctrl+Shift+S", "plus", "ready"),
    Command("go.usage", "Ctrl+4", "usage", "ready"),
    Command("go.profiles", "Ctrl+Shift+O", "profile", "profiles"),
    Command("go.settings", "Ctrl+, Ctrl+5", "settings", "ready"),
    Command("go.models", "Ctrl+Shift+M", "model", "ready"),
    Command("go.permissions", "", "shield", "ready"),
    Command("go.diagnostics", "Ctrl+Shift+G", "info", "ready"),
    Command("go.first_run", "", "info", "ready"),
    Command("view.palette", "Ctrl+K", "search"),
    Command("view.sidebar", "Ctrl+B", "sidebar"),
    Command("view.inspector", "Ctrl+Shift+I", "trace", "ready"),
    Command("view.light", "", "eye", "ready"),
    Command("view.dark", "", "eye", "ready"),
    Command("view.high_contrast", "", "eye", "ready"),
    Command("view.system", "", "eye", "ready"),
    Command("view.larger", "Ctrl++ Ctrl+=", "plus", "ready"),
    Command("view.smaller", "Ctrl+-", "eye", "ready"),
    Command("view.normal", "Ctrl+0", "eye", "ready"),
    Command("view.english", "", "chat", "ready"),
    Command("view.chinese", "", "chat", "ready"),
    Command("app.quit", "Ctrl+Q", "close"),
)


class Actions(QObject):
    """The commands as QActions of a window. `bind` gives each what it does."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._facts: set[str] = {"always"}
        self._actions: dict[str, QAction] = {}
        for command in COMMANDS:
            action = QAction(self)
            action.setObjectName(command.id)
            action.setShortcuts([QKeySequence(key) for key in command.shortcut.split()])
            action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
            window.addAction(action)
            self._actions[command.id] = action
        self.retranslate()
        self._refresh()

    def bind(self, command_id: str, act: Callable[[], object]) -> None:
        """Say what a command does."""
        self._actions[command_id].triggered.connect(lambda _checked=False: act())

    def action(self, command_id: str) -> QAction:
        """The QAction of a command."""
        return self._actions[command_id]

    def run(self, command_id: str) -> None:
        """Do it, if its condition holds."""
        self._actions[command_id].trigger()

    def say(self, fact: str, holds: bool) -> None:
        """Set or clear a condition (`ready`, `session`)."""
        if holds != (fact in self._facts):
            self._facts ^= {fact}
            self._refresh()

    def usable(self) -> tuple[Command, ...]:
        """The commands whose condition holds, in the table's order."""
        return tuple(c for c in COMMANDS if c.when in self._facts)

    def retranslate(self) -> None:
        """Take the texts of the current language."""
        for command in COMMANDS:
            self._actions[command.id].setText(tr(command.text))

    def hint(self, command_id: str) -> str:
        """Name and key of a command, for a tool tip."""
        action = self._actions[command_id]
        key = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        return f"{action.text()} ({key})" if key else action.text()

    def _refresh(self) -> None:
        for command in COMMANDS:
            self._actions[command.id].setEnabled(command.when in self._facts)
