"""Pages of servers (MCP Apps) in the real window over a real host: clicked in, asked about, told to the model.

Run by `tests/live/test_app_sandbox.py` in a process of its own, as an ordinary user with the extra `[web]`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from desktop_host.core.messages import Outcome, Role
from desktop_host.core.transcript import NoticeEntry, ToolEntry, UserEntry
from desktop_host.ui import web_scheme
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.app_consent import Consent
from desktop_host.ui.widgets.ask_card import ApproveCard
from tests.fakes.servers.stage import HERE
from tests.ui.window_kit import Opened, Window, browser

ALONE = "DESKTOP_HOST_TEST_PAGES"
pytestmark = pytest.mark.skipif(not os.environ.get(ALONE), reason="run by tests/live/test_app_sandbox.py")
LEFT = Qt.MouseButton.LeftButton
BUTTONS = ("wind", "tell", "say", "link")

if os.environ.get(ALONE):
    web_scheme.share_contexts()
    web_scheme.register()


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[Window]:
    made = Window(qtbot, tmp_path)
    made.add(
        json.dumps({"mcpServers": {"clock": {"command": sys.executable, "args": [str(HERE / "pages.py")]}}}), "clock"
    )
    yield made
    made.close()


@pytest.fixture
def outside() -> Iterator[Opened]:
    with browser("https") as made:
        yield made


def page_of(window: Window) -> Any:
    """The live page, once it has its result."""
    from desktop_host.ui.widgets.app_frame import AppFrame

    window.until(lambda: [f for f in window.window.findChildren(AppFrame) if f.session.ready and f.height() > 200])
    return next(f for f in window.window.findChildren(AppFrame) if f.session.ready and f.height() > 200)


def click(window: Window, frame: Any, name: str) -> None:
    """A click of the mouse on a button of the page."""
    window.reveal(frame)
    window.qtbot.wait(300)  # the page paints in a process of its own
    inside: QWidget = frame.focusProxy()
    window.qtbot.mouseClick(inside, LEFT, pos=QPoint(60, 40 + 44 * BUTTONS.index(name) + 20))


def consent(window: Window) -> Consent:
    window.until(lambda: [c for c in window.window.findChildren(Consent) if c.isVisible() and c.isEnabled()])
    return next(c for c in window.window.findChildren(Consent) if c.isVisible() and c.isEnabled())


def asking(window: Window) -> ApproveCard:
    """The question about a call, once it is there."""

    def there() -> list[ApproveCard]:
        rows = window.workspace.chat.view.rows.values()
        return [r for r in rows if isinstance(r, ApproveCard) and not r.done and r.isVisible() and r.height() > 40]

    window.until(there)
    return there()[0]


def entries(window: Window) -> tuple[Any, ...]:
    return window.workspace.chat.chat.transcript.now.entries


def test_a_page_is_used_as_a_person_would(window: Window, outside: Opened, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([
        [{"call": {"tool": "clock.clock", "arguments": {"zone": "UTC"}}}], [{"text": "Here is the clock."}],
        [{"text": "It is right."}],
    ]))  # fmt: skip
    window.say("Show me the clock", script)
    window.approve_all()
    frame = page_of(window)
    window.picture("page")

    click(window, frame, "wind")
    card = asking(window)
    assert card.ask.tool == "wind" and card.ask.arguments == {"turns": 3}
    window.picture("page-asks")
    window.qtbot.mouseClick(card.buttons[0], LEFT)
    window.until(lambda: any(isinstance(e, ToolEntry) and e.tool == "wind" and e.outcome for e in entries(window)))
    (wound,) = [e for e in entries(window) if isinstance(e, ToolEntry) and e.tool == "wind"]
    assert (wound.page, wound.outcome) == ("clock.clock", Outcome.OK)
    window.picture("page-called")

    click(window, frame, "link")
    asked = consent(window)
    assert asked.text.toPlainText() == "https://example.com/clocks?from=page"
    window.picture("page-link")
    window.qtbot.mouseClick(asked.no, LEFT)
    window.until(lambda: not asked.isVisible())
    assert outside.urls == []

    click(window, frame, "tell")
    asked = consent(window)
    window.picture("page-speaks")
    window.qtbot.mouseClick(asked.yes, LEFT)
    window.until(lambda: any(isinstance(e, NoticeEntry) and e.code == "page_said" for e in entries(window)))

    click(window, frame, "say")
    asked = consent(window)
    assert asked.text.toPlainText() == "Is the clock right?"
    window.picture("page-message")
    window.qtbot.mouseClick(asked.yes, LEFT)
    window.until(lambda: "It is right." in window.said() and window.ended)
    assert [e.text for e in entries(window) if isinstance(e, UserEntry)] == ["Show me the clock", "Is the clock right?"]
    window.picture("page-told")

    async def told(host: Any) -> str:
        context = host._sessions.context(window.workspace.chat.chat.session)
        return "\n".join(m.text for m in context.conversation.messages() if m.role is Role.USER)

    words = window.bridge.call(told).result(30)
    assert "wound three times" in words and '"page":"clock.clock"' in words
    theme.apply("dark", 100)
    window.picture("page-dark")
    theme.apply("light", 100)

    ended: list[bool] = []
    frame.session.ended.connect(lambda: ended.append(True))
    window.workspace.show_chat(None)
    window.until(lambda: ended)
    window.say("Show me the clock", script)
    window.approve_all()
    again = page_of(window)
    assert again is not frame, "another chat has a page of its own"
