"""What is typed for a chat that does not exist yet outlives the window."""

from __future__ import annotations

from desktop_host.ui.widgets.chat import ChatPage
from desktop_host.ui.widgets.window import MainWindow

KEY = "new_draft"


def remember(page: ChatPage, window: MainWindow) -> None:
    """Give a page what was typed when the window was last open, and keep what is typed now."""
    chat = page.chat
    chat.put_new_draft(window.state.text(KEY))
    chat.new_draft.connect(lambda text: window.state.keep(KEY, text))
    window.closing.connect(chat.keep_draft)
    window.closing.connect(window.state.save)
