"""Branches, another answer, thumbs and usage in the window, on the real host with a journal on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from desktop_host.core.events import Branched, FeedbackGiven, UserSaid
from desktop_host.core.transcript import AssistantEntry
from desktop_host.engine.host import Host
from desktop_host.ui.widgets.message import AssistantMessage
from desktop_host.ui.widgets.notice import NoticeLine
from desktop_host.ui.widgets.user_message import UserMessage
from tests.ui.test_chat_real_host import LONG, Stage, stage

__all__ = ["stage"]


def texts(stage: Stage) -> list[str]:
    return [e.text for e in stage.page.chat.transcript.now.entries if hasattr(e, "text")]


async def kinds(host: Host, session: str) -> list[Any]:
    return [s.event for s in await host.history.read(session)]


@pytest.fixture
def told(stage: Callable[..., Stage]) -> Stage:
    """A chat of two turns on a real host."""
    made = stage(
        [{"text": "Answer one."}, {"usage": {"input": 900, "output": 12, "cost_usd": 0.25}}],
        [{"text": "Answer two."}, {"usage": {"input": 1000, "output": 14, "cost_usd": 0.5}}],
    )
    made.open()
    made.page.wanted.connect(made.page.open_session)
    for n, text in enumerate(("first", "second"), 1):
        made.say(text)
        made.qtbot.waitUntil(lambda n=n: len(made.all(AssistantMessage)) == n, timeout=LONG)
        made.until_idle()
    return made


def test_another_answer_lives_in_a_branch_and_the_chat_stays_as_it_was(told: Stage) -> None:
    source = told.page.chat.session
    last = told.all(AssistantMessage)[-1]
    told.qtbot.waitUntil(lambda: last.foot.regenerate is not None and last.foot.regenerate.isVisible(), timeout=LONG)
    assert "$0.5000" in last.foot.caption.text()
    told.click(last.foot.regenerate)
    told.qtbot.waitUntil(lambda: told.page.chat.session != source, timeout=LONG)
    told.qtbot.waitUntil(lambda: texts(told) == ["first", "Answer one.", "second", "Answer two."], timeout=LONG)
    told.until_idle()
    made = told.page.chat.session
    assert made is not None
    events = told.bridge.call(lambda h: kinds(h, made)).result(10)
    assert [e.source for e in events if isinstance(e, Branched)] == [source]
    assert [(e.text, e.fresh) for e in events if isinstance(e, UserSaid)] == [("first", False), ("second", True)]
    rows = told.bridge.call(lambda h: h.history.rows()).result(10)
    assert sorted(r.title for r in rows) == ["first", "first (2)"]
    told.click(told.all(NoticeLine)[0].action)
    told.qtbot.waitUntil(lambda: told.page.chat.session == source, timeout=LONG)
    usage = told.bridge.call(lambda h: h.ledger.usage("session")).result(10)
    spent = {r["session"]: (r["requests"], r["cost_usd"]) for r in usage}
    assert spent == {source: (2, 0.75), made: (1, 0.5)}


def test_an_edited_first_message_begins_a_chat_anew(told: Stage) -> None:
    source = told.page.chat.session
    row = told.all(UserMessage)[0]
    told.page.messages.act("edit", next(k for k, r in told.page.view.rows.items() if r is row))
    told.page.composer.put("first, but better")
    told.qtbot.keyClick(told.page.composer.edit, Qt.Key.Key_Return)
    told.qtbot.waitUntil(lambda: texts(told) == ["first, but better", "Answer one."], timeout=LONG)
    assert told.page.chat.session != source
    told.until_idle()


def test_a_thumb_outlives_the_window(told: Stage) -> None:
    session = told.page.chat.session
    assert session is not None
    last = told.all(AssistantMessage)[-1]
    told.qtbot.waitUntil(lambda: last.foot.up is not None and last.foot.up.isVisible(), timeout=LONG)
    told.click(last.foot.up)
    told.qtbot.waitUntil(lambda: last.foot.up.isChecked(), timeout=LONG)
    told.close()
    told.open()
    told.page.open_session(session)
    told.qtbot.waitUntil(lambda: len(told.all(AssistantMessage)) == 2 and not told.page.chat.busy, timeout=LONG)
    replies = [e for e in told.page.chat.transcript.now.entries if isinstance(e, AssistantEntry)]
    assert [e.good for e in replies] == [None, True]
    events = told.bridge.call(lambda h: kinds(h, session)).result(10)
    assert [(e.turn, e.good) for e in events if isinstance(e, FeedbackGiven)] == [(2, True)]


def test_a_range_is_copied_from_the_real_conversation(told: Stage) -> None:
    keys = list(told.page.view.rows)
    told.page.messages.act("copy_from", keys[0])
    told.page.messages.act("copy_to", keys[-1])
    copied = QGuiApplication.clipboard().text()
    assert "first" in copied
    assert copied.endswith("Answer two.")


def test_a_real_prompt_is_sent_and_a_real_resource_goes_along_under_its_address(stage: Callable[..., Stage]) -> None:
    made = stage([{"text": "Hello Ada."}], [{"text": "It says: the note."}])
    page = made.open()
    made.qtbot.waitUntil(lambda: any(s.state == "ready" for s in page.chat.choices.servers), timeout=LONG)
    page.focus_composer()
    made.qtbot.keyClicks(page.composer.edit, "/gr")
    made.qtbot.waitUntil(lambda: [o.name for o in page.offers.list.shown] == ["greet"], timeout=LONG)
    made.qtbot.keyClick(page.composer.edit, Qt.Key.Key_Return)
    form = page.offers.form
    assert form is not None
    form.fields["who"].setText("Ada")
    made.click(form.send)
    made.qtbot.waitUntil(lambda: texts(made) == ["Greet Ada", "Hello Ada."], timeout=LONG)
    made.until_idle()
    assert page.offers.form is None
    made.qtbot.keyClicks(page.composer.edit, "Read @on")
    made.qtbot.waitUntil(lambda: [o.name for o in page.offers.list.shown][:1] == ["one"], timeout=LONG)
    made.qtbot.keyClick(page.composer.edit, Qt.Key.Key_Return)
    made.qtbot.keyClick(page.composer.edit, Qt.Key.Key_Return)
    made.qtbot.waitUntil(lambda: texts(made)[-1:] == ["It says: the note."], timeout=LONG)
    session = page.chat.session
    assert session is not None
    events = made.bridge.call(lambda h: kinds(h, session)).result(10)
    said = [e for e in events if isinstance(e, UserSaid)]
    assert said[0].source == "prompt:small.greet"
    assert [a.name for a in said[1].attachments] == ["note://one"]
    assert "the note" in str(said[1].blocks)
