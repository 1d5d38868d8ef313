"""Usage and limits in the window: the page, and the ways to it from chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from desktop_host.ui.viewmodels.usage import Usage
from desktop_host.ui.widgets.usage_page import UsagePage

if TYPE_CHECKING:
    from desktop_host.ui.widgets.chat import ChatPage
    from desktop_host.ui.widgets.workspace import Workspace

PAGE = "usage"


class UsageRoom(QObject):
    """See the module. The page is made when it is first shown."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._w = workspace
        self.model = Usage(workspace.bridge, self)
        self._page: UsagePage | None = None
        workspace.window.rebuilt.connect(self._forget)

    @property
    def page(self) -> UsagePage:
        """The page."""
        if self._page is None:
            self._page = UsagePage(self.model, self._w.window.toasts.say)
            self._page.limits_wanted.connect(self.show_limits)
            self._page.session_wanted.connect(self._w.show_chat)
        return self._page

    def show(self) -> None:
        """What was used."""
        self._w.go(PAGE, self.page)

    def show_limits(self) -> None:
        """Budgets, quotas and routes."""
        self._w.show_settings("costs")

    def attach(self, chat: ChatPage) -> None:
        """Let a chat page lead to limits and to its branches."""
        chat.needs_budget.connect(self.show_limits)
        chat.wanted.connect(self._w.show_chat)
        chat.told.connect(lambda words: self._w.window.toasts.say(words, "check"))

    def _forget(self) -> None:
        """The window was built anew in another language; its old pages are gone."""
        self._page = None
