"""The skills in the window: their page, the notices about them, and the way from chats to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from desktop_host.i18n import tr
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.skills_page import SkillsPage

if TYPE_CHECKING:
    from desktop_host.ui.widgets.workspace import Workspace

PAGE = "skills"
NAMED = 4
"""So many skills are named in one notice."""


class SkillsRoom(QObject):
    """See the module. The page is made when it is first shown."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._w = workspace
        self.model = Skills(workspace.bridge, self)
        self._page: SkillsPage | None = None
        self.model.failed.connect(workspace.window.toasts.fail)
        self.model.saved.connect(self._saved)
        self.model.told.connect(self._told)
        workspace.bridge.ready.connect(lambda _host: self.model.refresh())
        workspace.window.rebuilt.connect(self._forget)

    @property
    def page(self) -> SkillsPage:
        """The library."""
        if self._page is None:
            self._page = SkillsPage(self.model, self._w.window.toasts.say)
            self._page.chat_wanted.connect(self._w.show_chat)
        return self._page

    def show(self, name: str = "", tab: str = "") -> None:
        """The library, or one skill's page."""
        self._w.go(PAGE, self.page)
        self.page.show_list() if not name else self.page.show_skill(name, tab)

    def install(self, paths: tuple[Path, ...] = ()) -> None:
        """Preview these, or ask which folder or archive to preview."""
        self.show()
        self.page.show_install(paths) if paths else self.page.choose()

    # ---- inside

    def _forget(self) -> None:
        """The window was built anew in another language; its old pages are gone."""
        self._page = None

    def _saved(self, names: tuple[str, ...]) -> None:
        shown = ", ".join(names[:NAMED]) + ("…" if len(names) > NAMED else "")
        one = names[0] if len(names) == 1 else ""
        action = None if self._w.page == PAGE else (tr("skills.toast.show"), lambda: self.show(one))
        self._w.window.toasts.say(tr("skills.toast.saved", names=shown), "info", action)

    def _told(self, words: str, undo: object) -> None:
        action = (tr("skills.undo"), undo) if callable(undo) else None
        self._w.window.toasts.say(words, "check", action)
