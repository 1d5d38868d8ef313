"""What a person does with messages: ask again, judge, branch, edit, quote, copy a range, order what waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from desktop_host.core import events as ev
from desktop_host.core.budgets import Purse, refused
from desktop_host.core.messages import assistant
from desktop_host.core.sessions import TurnStatus, TurnStop
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.engine.host import HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.viewmodels.retelling import excerpt, quoted
from desktop_host.ui.widgets.chat import ChatPage
from desktop_host.ui.widgets.message import AssistantMessage
from desktop_host.ui.widgets.notice import NoticeLine
from desktop_host.ui.widgets.user_message import UserMessage
from tests.fakes.fake_host import FakeHost, opener
from tests.ui.chat_kit import Make, chat_pages, on_host


@pytest.fixture
def make(qtbot: QtBot) -> Iterator[Make]:
    with chat_pages(qtbot) as build:
        yield build


def said(host: FakeHost, turns: int, **usage: object) -> str:
    for n in range(1, turns + 1):
        host.publish("old", ev.UserSaid(f"question {n}"), n)
        host.publish("old", ev.TurnStarted(), n)
        host.publish("old", ev.AssistantSaid(assistant(f"answer {n}"), "m"), n)
        host.publish("old", ev.UsageRecorded("m", "chat", 1200, 34, **usage), n)  # type: ignore[arg-type]
        host.publish("old", ev.TurnEnded(TurnStatus.DONE, TurnStop.END), n)
    return "old"


@pytest.fixture
def old(qtbot: QtBot, make: Make) -> tuple[FakeHost, ChatPage]:
    """A chat of three turns, open."""
    host = FakeHost()
    page = make(host)
    on_host(page, lambda: said(host, 3, cost_usd=0.0123))
    page.open_session("old")
    qtbot.waitUntil(lambda: len(page.view.rows) == 6 and not page.chat.busy, timeout=30_000)
    return host, page


def rows(page: ChatPage, kind: type) -> list:
    return [r for r in page.view.rows.values() if isinstance(r, kind)]


def texts(page: ChatPage) -> list[str]:
    return [e.text for e in page.chat.transcript.now.entries if hasattr(e, "text")]


def choose(page: ChatPage, row: UserMessage | AssistantMessage, verb: str) -> None:
    """Open the menu of a message with the keyboard and take an entry of it."""
    more = row.more if isinstance(row, UserMessage) else row.foot.more
    more.setFocus()
    more.click()
    action = next(a for a in page.messages.menu.actions() if a.objectName() == verb)
    assert action.text()
    action.trigger()
    page.messages.menu.close()


def click(qtbot: QtBot, which: QAbstractButton | None) -> None:
    assert which is not None
    qtbot.mouseClick(which, Qt.MouseButton.LeftButton)


def test_a_reply_says_its_model_tokens_and_price_and_an_unknown_price_is_never_zero(
    qtbot: QtBot, old: tuple[FakeHost, ChatPage], make: Make
) -> None:
    _, page = old
    assert rows(page, AssistantMessage)[0].foot.caption.text() == "m · 1,200 in, 34 out · $0.0123"
    other = FakeHost()
    blind = make(other)
    on_host(blind, lambda: said(other, 1))
    blind.open_session("old")
    qtbot.waitUntil(lambda: bool(rows(blind, AssistantMessage)), timeout=30_000)
    assert rows(blind, AssistantMessage)[0].foot.caption.text().endswith("price unknown")


def test_only_the_newest_reply_has_its_foot_unfolded_until_the_mouse_comes(old: tuple[FakeHost, ChatPage]) -> None:
    _, page = old
    first, *_, last = rows(page, AssistantMessage)
    assert last.foot.up is not None
    assert first.foot.up is None
    first.foot.unfold()
    assert first.foot.up is not None


def test_a_thumb_is_kept_with_its_turn_and_a_second_press_takes_it_back(
    qtbot: QtBot, old: tuple[FakeHost, ChatPage]
) -> None:
    host, page = old
    last = rows(page, AssistantMessage)[-1]
    click(qtbot, last.foot.up)
    qtbot.waitUntil(lambda: page.chat.transcript.now.entries[-1].good is True, timeout=30_000)  # type: ignore[union-attr]
    assert last.foot.up.isChecked()
    click(qtbot, last.foot.down)
    qtbot.waitUntil(lambda: last.foot.down.isChecked() and not last.foot.up.isChecked(), timeout=30_000)
    click(qtbot, last.foot.down)
    qtbot.waitUntil(lambda: page.chat.transcript.now.entries[-1].good is None, timeout=30_000)  # type: ignore[union-attr]
    given = [s.event for s in host.journal["old"] if isinstance(s.event, ev.FeedbackGiven)]
    assert [(e.turn, e.good) for e in given] == [(3, True), (3, False), (3, None)]


def test_asking_again_opens_a_branch_with_another_answer_and_leads_back(
    qtbot: QtBot, old: tuple[FakeHost, ChatPage]
) -> None:
    _, page = old
    click(qtbot, rows(page, AssistantMessage)[-1].foot.regenerate)
    qtbot.waitUntil(lambda: texts(page)[-1:] == ["You said: question 3"], timeout=30_000)
    assert page.chat.session != "old"
    assert texts(page)[:4] == ["question 1", "answer 1", "question 2", "answer 2"]
    notice = rows(page, NoticeLine)[0]
    assert notice.words[0].startswith("This chat is a branch")
    click(qtbot, notice.action)
    qtbot.waitUntil(lambda: page.chat.session == "old", timeout=30_000)


def test_a_branch_before_a_message_and_one_after_an_answer(qtbot: QtBot, old: tuple[FakeHost, ChatPage]) -> None:
    _, page = old
    choose(page, rows(page, UserMessage)[1], "branch")
    qtbot.waitUntil(lambda: page.chat.session != "old" and not page.chat.busy, timeout=30_000)
    assert texts(page) == ["question 1", "answer 1"]
    page.open_session("old")
    qtbot.waitUntil(lambda: len(rows(page, AssistantMessage)) == 3, timeout=30_000)
    choose(page, rows(page, AssistantMessage)[1], "branch")
    qtbot.waitUntil(lambda: texts(page) == ["question 1", "answer 1", "question 2", "answer 2"], timeout=30_000)


def test_an_edited_message_is_sent_in_a_branch_and_escape_gives_back_what_was_typed(
    qtbot: QtBot, old: tuple[FakeHost, ChatPage]
) -> None:
    _, page = old
    page.composer.put("half a thought")
    choose(page, rows(page, UserMessage)[1], "edit")
    assert page.messages.strip.isVisible()
    assert page.composer.text == "question 2"
    qtbot.keyClick(page.composer.edit, Qt.Key.Key_Escape)
    assert not page.messages.strip.isVisible()
    assert page.composer.text == "half a thought"
    choose(page, rows(page, UserMessage)[1], "edit")
    page.composer.put("better question 2")
    qtbot.keyClick(page.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: texts(page)[-1:] == ["You said: better question 2"], timeout=30_000)
    assert texts(page)[:2] == ["question 1", "answer 1"]
    assert page.chat.session != "old"
    page.open_session("old")
    qtbot.waitUntil(lambda: page.composer.text == "half a thought", timeout=30_000)


def test_a_message_is_quoted_into_what_is_typed(qtbot: QtBot, old: tuple[FakeHost, ChatPage]) -> None:
    _, page = old
    page.composer.put("I mean:")
    choose(page, rows(page, AssistantMessage)[0], "quote")
    assert page.composer.text == "I mean:\n\n> answer 1\n\n"
    assert page.composer.edit.hasFocus()


def test_a_range_of_messages_is_copied_as_markdown(qtbot: QtBot, old: tuple[FakeHost, ChatPage]) -> None:
    _, page = old
    words: list[str] = []
    page.told.connect(words.append)
    choose(page, rows(page, AssistantMessage)[1], "copy_from")
    assert "answer 2" in page.messages.strip.words
    choose(page, rows(page, UserMessage)[0], "copy_to")
    copied = QGuiApplication.clipboard().text()
    assert copied == "**You**\n\nquestion 1\n\n**m**\n\nanswer 1\n\n**You**\n\nquestion 2\n\n**m**\n\nanswer 2"
    assert words == ["The messages are on the clipboard."]
    assert not page.messages.strip.isVisible()
    choose(page, rows(page, UserMessage)[2], "copy_from")
    click(qtbot, page.messages.strip.action)
    assert QGuiApplication.clipboard().text() == "**You**\n\nquestion 3\n\n**m**\n\nanswer 3"
    choose(page, rows(page, UserMessage)[2], "copy_from")
    qtbot.keyClick(page.composer.edit, Qt.Key.Key_Escape)
    assert not page.messages.active


def test_quotes_and_excerpts_of_long_and_odd_texts() -> None:
    assert quoted("a\n\nb") == "> a\n>\n> b\n\n"
    assert len(quoted("x" * 9000)) < 4100
    assert excerpt((), "You", "Tool") == ""


async def waits(host: FakeHost, session: str, text: str) -> None:
    host.publish(session, ev.TokenDelta("Part of "))
    await asyncio.Event().wait()


def test_what_waits_is_listed_moved_and_taken_back_by_button_and_key(qtbot: QtBot, make: Make) -> None:
    host = FakeHost(waits)
    page = make(host)

    def say(text: str) -> None:
        page.composer.put(text)
        qtbot.keyClick(page.composer.edit, Qt.Key.Key_Return)

    def waiting() -> list[str]:
        return [r.message.text for r in page.queue.rows]

    say("first")
    qtbot.waitUntil(lambda: page.chat.transcript.running, timeout=30_000)
    for n, text in enumerate(("a", "b", "c"), 1):
        say(text)
        qtbot.waitUntil(lambda n=n: len(page.queue.rows) == n, timeout=30_000)
    assert page.queue.rows[0].accessibleName() == "1 of 3: a"
    click(qtbot, page.queue.rows[2].up)
    qtbot.waitUntil(lambda: waiting() == ["a", "c", "b"], timeout=30_000)
    page.queue.rows[0].setFocus()
    qtbot.keyClick(page.queue.rows[0], Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    qtbot.waitUntil(lambda: waiting() == ["c", "a", "b"], timeout=30_000)
    qtbot.waitUntil(lambda: page.queue.rows[1].hasFocus(), timeout=30_000)
    qtbot.keyClick(page.queue.rows[1], Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: waiting() == ["c", "b"], timeout=30_000)
    click(qtbot, page.queue.rows[1].away)
    qtbot.waitUntil(lambda: waiting() == ["c"], timeout=30_000)
    page.chat.stop()
    qtbot.waitUntil(lambda: waiting() == [], timeout=30_000)
    page.chat.stop()
    qtbot.waitUntil(lambda: not page.chat.transcript.running, timeout=30_000)
    assert [s.text for _, s in host.said] == ["first", "a", "b", "c"]


def test_a_summary_can_be_undone_and_a_limit_leads_to_where_it_is_raised(
    qtbot: QtBot, old: tuple[FakeHost, ChatPage]
) -> None:
    host, page = old
    asked: list[bool] = []
    page.needs_budget.connect(lambda: asked.append(True))
    on_host(page, lambda: host.publish("old", ev.Compacted("short", "short", before=9000, after=500), 3))
    near = FrozenDict({"scope": "day", "percent": 81, "spent": 4.05, "limit": 5.0})
    on_host(page, lambda: host.publish("old", ev.Notice("budget_near", near), 3))
    qtbot.waitUntil(lambda: len(rows(page, NoticeLine)) == 2, timeout=30_000)
    summary, budget = rows(page, NoticeLine)
    click(qtbot, summary.action)
    qtbot.waitUntil(lambda: "undone" in str(summary.entry.params) and summary.entry.params["undone"], timeout=30_000)
    assert budget.words[0] == "81 % of today's budget is used: $4.05 of $5.00."
    click(qtbot, budget.action)
    assert asked == [True]


def test_a_turn_that_a_limit_stopped_says_which_and_can_be_resumed_once_it_is_raised(
    qtbot: QtBot, old: tuple[FakeHost, ChatPage]
) -> None:
    host, page = old
    error = refused(Purse("session", "old", usd=1.2), 1.05, 0.0, 0.21)
    price = {"code": "price_unknown", "message": "no price", "params": {"model": "m"}}
    for turn, told in ((4, {"code": error.code, "message": error.message, "params": error.params}), (5, price)):
        on_host(page, lambda turn=turn: host.publish("old", ev.TurnStarted(), turn))  # type: ignore[misc]
        end = ev.TurnEnded(TurnStatus.FAILED, TurnStop.BUDGET, "", freeze(told))
        on_host(page, lambda end=end, turn=turn: host.publish("old", end, turn))  # type: ignore[misc]
    qtbot.waitUntil(lambda: len(rows(page, NoticeLine)) == 2, timeout=30_000)
    budget, unknown = rows(page, NoticeLine)
    assert budget.words == (
        "This chat's budget of $1.2 does not cover the next request: $0.15 is left, and it may cost $0.21 or more.", "",
    )  # fmt: skip
    assert unknown.words[0].startswith("The price of the model m is unknown") and unknown.words[1]

    def buttons(line: NoticeLine) -> list[str]:
        return [b.text() for b in line.findChildren(QAbstractButton) if b.isVisible()]

    qtbot.waitUntil(lambda: buttons(unknown) == ["Raise the limit", "Resume"], timeout=30_000)
    assert buttons(budget) == ["Raise the limit"], "only the newest end can go on"


def test_a_kept_answer_is_marked_and_can_be_asked_again(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    page = make(host)

    def kept() -> None:
        host.publish("old", ev.UserSaid("q"), 1)
        host.publish("old", ev.TurnStarted(), 1)
        host.publish("old", ev.AssistantSaid(assistant("a"), "m", cached=True), 1)
        host.publish("old", ev.TurnEnded(TurnStatus.DONE, TurnStop.END), 1)

    on_host(page, kept)
    page.open_session("old")
    qtbot.waitUntil(lambda: bool(rows(page, AssistantMessage)), timeout=30_000)
    foot = rows(page, AssistantMessage)[0].foot
    assert "kept" in foot.caption.text().lower() or "earlier" in foot.caption.text().lower()
    click(qtbot, foot.again)
    qtbot.waitUntil(lambda: texts(page)[-1:] == ["You said: q"], timeout=30_000)


def test_a_notice_between_a_reply_and_its_use_takes_no_figure_away(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    page = make(host)

    def slow() -> None:
        host.publish("old", ev.UserSaid("q"), 1)
        host.publish("old", ev.AssistantSaid(assistant("a"), "m"), 1)
        host.publish("old", ev.Notice("slow_model"), 1)
        host.publish("old", ev.UsageRecorded("m", "chat", 10, 5, cost_usd=0.0), 1)
        host.publish("old", ev.TurnEnded(TurnStatus.DONE, TurnStop.END), 1)

    on_host(page, slow)
    page.open_session("old")
    qtbot.waitUntil(lambda: bool(rows(page, AssistantMessage)), timeout=30_000)
    assert rows(page, AssistantMessage)[0].foot.caption.text() == "m · 10 in, 5 out · free"


def test_in_a_narrow_window_the_buttons_below_the_text_give_up_words_and_rest(qtbot: QtBot) -> None:
    theme.apply("light", 200)
    host = FakeHost()
    bridge = Bridge(opener(host), HostSpec())
    page = ChatPage(bridge)
    qtbot.addWidget(page)
    page.resize(1400, 700)
    page.show()
    composer = page.composer
    parts = (composer.model_button, composer.servers_button, composer.send_button)
    qtbot.waitUntil(lambda: all(part.text() for part in parts), timeout=30_000)
    page.resize(600, 700)
    qtbot.waitUntil(lambda: not composer.servers_button.text(), timeout=30_000)
    assert composer.send_button.accessibleName() == "Send" and composer.servers_button.accessibleName()
    for part in parts:
        assert part.width() >= part.sizeHint().width(), "nothing is clipped"
    before = composer.row.arranged
    qtbot.wait(200)  # a layout that never rests would go on here
    assert composer.row.arranged - before < 5
    theme.apply("light", 100)
