"""Cards and windows of questions, driven with clicks and keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from desktop_host import i18n
from desktop_host.core.asks import (
    Advice,
    Allow,
    Answer,
    ApproveTool,
    Ask,
    DailyCap,
    Dismiss,
    Edited,
    Filled,
    FillForm,
    OpenUrl,
    Refuse,
    ReviewReply,
    ReviewSampling,
    SamplingCost,
)
from desktop_host.core.exchange import RunningCall, SamplingRequest
from desktop_host.core.messages import Image, Text, assistant, user
from desktop_host.core.model_choice import Candidate, ModelChoice
from desktop_host.core.tools import ToolHints, ToolSpec
from desktop_host.core.values import freeze
from desktop_host.engine.host import Host, HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.ask_calls import AskingCalls
from desktop_host.ui.widgets.ask_card import ApproveCard, AskCard, FormCard, UrlCard, card_for
from desktop_host.ui.widgets.ask_window import AskDesk
from desktop_host.ui.widgets.code import CodeFrame
from desktop_host.ui.widgets.sampling_card import ReplyCard, SamplingCard
from tests.fakes.fake_host import FakeHost, opener


def shown(qtbot: QtBot, ask: Ask) -> tuple[AskCard, list[Answer]]:
    theme.apply("light")
    card = card_for(ask)
    qtbot.addWidget(card)
    card.resize(700, 500)
    card.show()
    qtbot.waitExposed(card)
    answers: list[Answer] = []
    card.answered.connect(lambda _id, answer: answers.append(answer))
    return card, answers


def words(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if not label.isHidden())


def approval(**changes: object) -> ApproveTool:
    base: dict[str, object] = {
        "ask_id": "a", "session": "s", "call_id": "c", "server": "files", "tool": "write",
        "arguments": freeze({f"line{n}": n for n in range(40)}), "description": "Writes a file",
        "hints": ToolHints(read_only=False, destructive=True),
    }  # fmt: skip
    return ApproveTool(**(base | changes))  # type: ignore[arg-type]


def test_forty_lines_of_arguments_are_all_there_and_can_be_scrolled_to(qtbot: QtBot) -> None:
    """Hazard K110."""
    card, _ = shown(qtbot, approval())
    assert isinstance(card, ApproveCard)
    assert all(f'"line{n}": {n}' in card.arguments.code for n in range(40))
    bar = card.arguments.text.verticalScrollBar()
    assert bar.maximum() > 0
    card.arguments.text.setFocus()
    qtbot.keyClick(card.arguments.text, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert bar.value() == bar.maximum()


def test_a_definition_that_changed_since_the_last_yes_is_shown_as_a_difference(qtbot: QtBot) -> None:
    """Hazard K118."""
    card, _ = shown(qtbot, approval(changed=True, previous_description="Reads a file"))
    said = words(card)
    assert "- Reads a file" in said
    assert "+ Writes a file" in said


def test_trust_and_hints_are_told(qtbot: QtBot) -> None:
    card, _ = shown(qtbot, approval())
    assert "Untrusted server" in words(card)
    assert "May delete or overwrite" in words(card)
    card, _ = shown(qtbot, approval(trusted=True))
    assert "Server you trust" in words(card)


@pytest.mark.parametrize(
    ("advice", "told"),
    [
        (Advice("ask", "eve is a stranger", "opus"), "Second opinion (opus): look closely. eve is a stranger"),
        (Advice("safe", "only reads", "opus"), "Second opinion (opus): nothing odd. only reads"),
        (Advice("none"), "No second opinion could be had; look at the call yourself"),
    ],
)
def test_a_second_opinion_is_told_and_answers_nothing(qtbot: QtBot, advice: Advice, told: str) -> None:
    card, answers = shown(qtbot, approval(advice=advice))
    assert told in words(card) and answers == []


FORM = freeze({
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "guests": {"type": "integer", "default": 2, "minimum": 1, "maximum": 9},
        "outside": {"type": "boolean", "default": True},
        "quiet": {"type": "boolean"},
        "menu": {"type": "string", "oneOf": [{"const": "v", "title": "Vegetarian"}, {"const": "f", "title": "Fish"}]},
        "extras": {"type": "array", "items": {"type": "string", "enum": ["cake", "music"]}},
    },
    "required": ["name", "menu"],
})  # fmt: skip


def test_a_form_gives_defaults_and_typed_values(qtbot: QtBot) -> None:
    """Hazard M128."""
    card, answers = shown(qtbot, FillForm("f", "s", "c", "booking", "Please", FORM))
    assert isinstance(card, FormCard)
    qtbot.mouseClick(card.accept, Qt.MouseButton.LeftButton)
    assert answers == []
    assert card.form.row("name").error.isVisible()
    assert card.form.row("menu").error.isVisible()
    name = card.form.row("name").widgets[0]
    assert isinstance(name, QLineEdit)
    qtbot.keyClicks(name, "A")
    assert "2 characters" in card.form.row("name").error.text()
    qtbot.keyClicks(name, "da")
    assert not card.form.row("name").error.isVisible()
    menu = card.form.row("menu").widgets[0]
    assert isinstance(menu, QComboBox)
    menu.setCurrentIndex(2)
    cake = card.form.row("extras").widgets[0]
    assert isinstance(cake, QCheckBox)
    qtbot.mouseClick(cake, Qt.MouseButton.LeftButton, pos=cake.rect().center() / 4)
    cake.setChecked(True)
    qtbot.mouseClick(card.accept, Qt.MouseButton.LeftButton)
    assert answers == [Filled(whole=True, values=freeze({
        "name": "Ada", "guests": 2, "outside": True, "quiet": False, "menu": "f", "extras": ["cake"],
    }))]  # fmt: skip


def test_a_form_can_be_declined_or_dismissed_without_being_valid(qtbot: QtBot) -> None:
    """Hazard M127."""
    card, answers = shown(qtbot, FillForm("f", "s", "c", "booking", "Please", FORM))
    assert isinstance(card, FormCard)
    qtbot.mouseClick(card.decline, Qt.MouseButton.LeftButton)
    assert answers == [Refuse()]
    card, answers = shown(qtbot, FillForm("f", "s", "c", "booking", "Please", FORM))
    assert isinstance(card, FormCard)
    qtbot.mouseClick(card.cancel, Qt.MouseButton.LeftButton)
    assert answers == [Dismiss()]


def test_an_address_is_shown_whole_with_its_host_in_bold_before_it_opens(qtbot: QtBot) -> None:
    url = "https://xn--80ak6aa92e.com/a?" + "q" * 300
    card, answers = shown(qtbot, OpenUrl("u", "s", "c", "bank", "Sign in", url))
    assert isinstance(card, UrlCard)
    rich = card.address.text()
    assert "<b style=" in rich
    plain = rich.replace("&#8203;", "")
    assert "xn--80ak6aa92e.com" in plain
    assert "q" * 300 in plain
    assert card.address.accessibleName() == url
    assert "аррӏе.com" in words(card)
    bad, _ = shown(qtbot, OpenUrl("u", "s", "c", "bank", "Sign in", "file:///etc/passwd"))
    assert isinstance(bad, UrlCard)
    assert not bad.open.isEnabled()
    assert answers == []


def test_a_sign_in_of_the_hosts_own_is_told_in_the_persons_language(qtbot: QtBot) -> None:
    url = "https://login.example/authorize?state=x"
    for language, title in (("en", "Sign in to bank"), ("zh_CN", "登录 bank")):
        i18n.install(language)
        card, _ = shown(
            qtbot, OpenUrl("u", "s", "c", "bank", "Sign in to bank at login.example", url, purpose="sign_in")
        )
        texts = [w.text() for w in card.findChildren(QLabel)]
        assert title in texts
        assert any("login.example" in t and "Desktop Host" in t for t in texts)
        assert language == "en" or "Sign in to bank at login.example" not in texts
    i18n.install("en")


def test_a_sampling_request_shows_all_that_will_be_sent_and_can_be_edited(qtbot: QtBot) -> None:
    """Hazard K119."""
    request = SamplingRequest(
        (user("first", Image("AAAA", "image/png")), assistant("reply"), user("last words")), 1234, "be brief",
        hints=("sonnet",), cost_priority=0.5,
    )  # fmt: skip
    card, answers = shown(qtbot, ReviewSampling("m", "s", "c", "helper", request, "anthropic/sonnet"))
    assert isinstance(card, SamplingCard)
    said = words(card) + card.model.box.currentText()
    for part in ("helper", "anthropic/sonnet", "1234", "be brief", "first", "reply", "sonnet", "0.5", "image/png"):
        assert part in said, part
    assert card.edit is not None
    card.edit.setFocus()
    qtbot.keyClick(card.edit, Qt.Key.Key_End)
    qtbot.keyClicks(card.edit, " 1")
    assert answers == []
    qtbot.mouseClick(card.send, Qt.MouseButton.LeftButton)
    assert answers == [Edited("last words 1")]


def test_a_sampling_request_tells_its_cost_and_what_the_server_spent(qtbot: QtBot) -> None:
    cost = SamplingCost(320, 0.0042, 1500, 50_000, 0.11, 2.0, asked_tokens=9000)
    card, _ = shown(qtbot, ReviewSampling("m", "s", "c", "helper", SamplingRequest((user("q"),), 4096), "m", cost))
    said = words(card)
    for part in (
        "320 tokens",
        "$0.0042 at most",
        "asked for 9,000",
        "its limit is 4,096",
        "1,500 of 50,000",
        "$0.1100",
    ):
        assert part in said, part
    unknown, _ = shown(
        qtbot, ReviewSampling("m", "s", "c", "h", SamplingRequest((user("q"),), 9), "m", SamplingCost(3, None))
    )
    assert "price of this model is unknown" in words(unknown)


CHOICE = ModelChoice(
    "openai/luna", "priorities", "",
    (
        Candidate("anthropic/opus", "Opus", 0.02, 2, 5, 0.4),
        Candidate("openai/luna", "Luna", 0.001, 5, 3, 0.8),
        Candidate("compat:http://box/v1#m", "m", None, None, None, 0.0),
    ),
)  # fmt: skip


def test_the_card_tells_why_this_model_and_another_can_be_chosen_with_its_price(qtbot: QtBot) -> None:
    request = SamplingRequest((user("q"),), 100, speed_priority=0.9)
    cost = SamplingCost(320, 0.001, daily_tokens=5000)
    ask = ReviewSampling("m", "s", "c", "helper", request, "openai/luna", cost, (), CHOICE)
    card, answers = shown(qtbot, ask)
    assert isinstance(card, SamplingCard)
    assert card.model.box.currentText() == "Luna · ≤ $0.0010 · speed 5/5, intelligence 3/5"
    assert "score 0.80 of 1" in card.model.why.text() and "Next: Opus (0.40)" in card.model.why.text()
    card.model.box.setFocus()
    qtbot.keyClick(card.model.box, Qt.Key.Key_Up)
    assert "You chose this one" in card.model.why.text() and "$0.0200 at most" in card.model.cost.text()
    qtbot.keyClick(card.model.box, Qt.Key.Key_End)
    assert "price of this model is unknown" in card.model.cost.text()
    card.setFocus()
    qtbot.keyClick(card, Qt.Key.Key_1)
    assert answers == [Allow(model="compat:http://box/v1#m")]


def test_the_card_names_the_running_call_and_folds_its_arguments(qtbot: QtBot) -> None:
    calls = (RunningCall("1", "summarise", freeze({"path": "/notes/a.md"})),)
    request = SamplingRequest((user("q"),), 100)
    card, _ = shown(qtbot, ReviewSampling("m", "s", "c", "helper", request, "m", None, calls))
    assert "helper.summarise" in words(card) and "during this call" in words(card)
    (fold,) = card.findChild(AskingCalls).folds
    code = card.findChild(AskingCalls).findChild(CodeFrame)
    assert not code.isVisible()
    fold.setFocus()
    qtbot.keyClick(fold, Qt.Key.Key_Space)
    assert code.isVisible() and "/notes/a.md" in code.code


@pytest.mark.parametrize("kind", ["sampling", "form", "url"])
def test_where_nothing_tells_which_call_asks_all_are_named(qtbot: QtBot, kind: str) -> None:
    calls = (RunningCall("1", "one", freeze({"a": 1})), RunningCall("2", "two"))
    who = ("m", "s", None, "helper")
    ask: Ask = {
        "sampling": ReviewSampling(*who, SamplingRequest((user("q"),), 100), "m", None, calls),
        "form": FillForm(*who, "Please", FORM, 1, calls),
        "url": OpenUrl(*who, "Please", "https://example.org", 1, calls),
    }[kind]
    said = words(shown(qtbot, ask)[0])
    assert "one of these calls" in said and "helper.one" in said and "helper.two" in said


def test_the_servers_own_tools_are_named_and_that_nobody_runs_them_here(qtbot: QtBot) -> None:
    tools = (ToolSpec("helper", "weather"), ToolSpec("helper", "time"))
    request = SamplingRequest(
        (user("q"),), 100, tools=tools, tool_choice="required", context="allServers", stop=("END",)
    )
    said = words(shown(qtbot, ReviewSampling("m", "s", "c", "helper", request, "m"))[0])
    for part in ("weather, time", "never runs them", "Must call a tool", "only what you see here", "'END'"):
        assert part in said, part


def test_a_page_that_was_opened_offers_to_go_on_instead_of_opening_it_again(qtbot: QtBot) -> None:
    card, answers = shown(qtbot, OpenUrl("u", "s", "c", "bank", "Pay", "https://bank.example/x", 2, (), True))
    assert isinstance(card, UrlCard)
    assert "The server waits" in words(card) and card.go_on.isVisible()
    qtbot.mouseClick(card.go_on, Qt.MouseButton.LeftButton)
    assert answers == [Allow()]
    first, _ = shown(qtbot, OpenUrl("u", "s", "c", "bank", "Pay", "https://bank.example/x"))
    assert isinstance(first, UrlCard) and not first.go_on.isVisible()


def test_a_reply_tells_what_was_left_out_and_why_it_ended(qtbot: QtBot) -> None:
    ask = ReviewReply("r", "s", "c", "helper", (Text("half"),), "m", (), ("temperature", "images"), "maxTokens")
    said = words(shown(qtbot, ask)[0])
    for part in ("takes no temperature", "takes no images", "Cut off at the token limit"):
        assert part in said, part


def test_always_cannot_be_said_without_a_sum_of_money(qtbot: QtBot) -> None:
    ask = ReviewSampling("m", "s", "c", "helper", SamplingRequest((user("q"),), 100), "m", SamplingCost())
    card, answers = shown(qtbot, ask)
    assert isinstance(card, SamplingCard)
    card.always.click()
    assert card.usd.value() == 1.0
    card.usd.setValue(0.0)
    card.setFocus()
    qtbot.keyClick(card, Qt.Key.Key_1)
    assert answers == [Allow(daily=DailyCap(50_000, 0.01))]


def test_a_server_that_asks_again_and_again_can_be_stopped(qtbot: QtBot) -> None:
    schema = freeze({"type": "object", "properties": {"a": {"type": "string"}}})
    first, _ = shown(qtbot, FillForm("f", "s", "c", "kb", "Name?", schema))
    assert not any(b.text() == "Stop asking" for b in first.findChildren(QPushButton))
    third, answers = shown(qtbot, FillForm("f", "s", "c", "kb", "Name?", schema, 3))
    assert "question 3 of the same call" in words(third)
    stop = next(b for b in third.findChildren(QPushButton) if b.text() == "Stop asking")
    qtbot.mouseClick(stop, Qt.MouseButton.LeftButton)
    assert answers == [Refuse(stop=True)]


def test_always_for_a_server_names_its_daily_caps(qtbot: QtBot) -> None:
    request = SamplingRequest((user("q"),), 100)
    card, answers = shown(qtbot, ReviewSampling("m", "s", "c", "helper", request, "m", SamplingCost(daily_tokens=7000)))
    assert isinstance(card, SamplingCard)
    assert card.tokens.isHidden() or not card.tokens.isVisible()
    card.always.click()
    assert card.tokens.isVisible()
    assert card.tokens.value() == 7000
    card.tokens.setValue(2000)
    card.usd.setValue(0.5)
    card.setFocus()
    qtbot.keyClick(card, Qt.Key.Key_1)
    assert answers == [Allow(daily=DailyCap(2000, 0.5))]


def test_an_unchanged_review_is_a_plain_yes(qtbot: QtBot) -> None:
    card, answers = shown(qtbot, ReviewReply("r", "s", "c", "helper", (Text("fine"),), "m"))
    assert isinstance(card, ReplyCard)
    qtbot.mouseClick(card.send, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(card.refuse, Qt.MouseButton.LeftButton)
    assert answers == [Allow()]


@pytest.fixture
def desk(qtbot: QtBot) -> Iterator[tuple[AskDesk, FakeHost, Bridge]]:
    theme.apply("light")
    host = FakeHost()
    bridge = Bridge(opener(host), HostSpec())
    over = QWidget()
    qtbot.addWidget(over)
    over.show()
    made = AskDesk(bridge, lambda session: session == "seen", over)
    with qtbot.waitSignal(bridge.ready, timeout=30_000):
        bridge.start()
    yield made, host, bridge
    with qtbot.waitSignal(bridge.closed, timeout=30_000):
        bridge.close()


def raise_ask(bridge: Bridge, host: FakeHost, session: str, ask: Ask) -> None:
    async def run(_h: Host) -> Answer:
        return await host.put_ask(session, ask)

    bridge.call(run)


def gone(window: QWidget) -> bool:
    """Whether a window is closed for the person, not only forgotten by its desk."""
    return not isValid(window) or not window.isVisible()


def test_what_is_asked_out_of_sight_gets_a_window_and_what_is_in_sight_does_not(
    qtbot: QtBot, desk: tuple[AskDesk, FakeHost, Bridge]
) -> None:
    made, host, bridge = desk
    for n, session in enumerate(("seen", "other", "")):
        raise_ask(bridge, host, session, OpenUrl(f"u{n}", session or None, None, "bank", "Sign in", "https://a.b"))
    raise_ask(bridge, host, "other", approval(ask_id="t", session="other"))
    qtbot.waitUntil(lambda: len(host.open_asks) == 4 and len(made.windows) == 2, timeout=30_000)
    assert set(made.windows) == {"u1", "u2"}
    window = made.windows["u2"]
    assert not window.isModal()
    assert isinstance(window.card, UrlCard)
    qtbot.mouseClick(window.card.decline, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "u2" not in made.windows, timeout=30_000)
    assert ("u2", Refuse()) in host.answers
    qtbot.waitUntil(lambda: gone(window), timeout=30_000)
    other = made.windows["u1"]
    qtbot.keyClick(other, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: ("u1", Dismiss()) in host.answers, timeout=30_000)
    qtbot.waitUntil(lambda: gone(other), timeout=30_000)


def test_a_window_closes_when_its_question_was_settled_elsewhere(
    qtbot: QtBot, desk: tuple[AskDesk, FakeHost, Bridge]
) -> None:
    made, host, bridge = desk
    raise_ask(bridge, host, "other", OpenUrl("u", "other", None, "bank", "Sign in", "https://a.b"))
    qtbot.waitUntil(lambda: "u" in made.windows, timeout=30_000)
    window = made.windows["u"]
    bridge.call(lambda h: h.answer("u", Allow())).result(5)
    qtbot.waitUntil(lambda: not made.windows and gone(window), timeout=30_000)
    assert host.answers == [("u", Allow())]


def test_a_window_is_answered_by_the_keys_of_its_card_and_shows_them_where_the_screen_allows(
    qtbot: QtBot, desk: tuple[AskDesk, FakeHost, Bridge]
) -> None:
    made, host, bridge = desk
    request = SamplingRequest((user("q"),), 100)
    raise_ask(bridge, host, "other", ReviewSampling("m", "other", "c", "helper", request, "m", SamplingCost()))
    qtbot.waitUntil(lambda: "m" in made.windows, timeout=5000)
    window = made.windows["m"]
    card = window.card
    assert isinstance(card, SamplingCard)
    qtbot.waitUntil(card.hasFocus, timeout=5000)
    room = window.screen().availableGeometry()
    assert window.width() <= room.width() and window.height() <= room.height()
    assert window.rect().contains(card.send.mapTo(window, card.send.rect().bottomRight()))
    qtbot.keyClick(card, Qt.Key.Key_1)
    qtbot.waitUntil(lambda: ("m", Allow()) in host.answers, timeout=5000)


def test_a_sampling_window_is_worked_by_the_keyboard_alone(
    qtbot: QtBot, desk: tuple[AskDesk, FakeHost, Bridge]
) -> None:
    """Tab reaches the model, the text and the limit; Escape in the text leaves it, Escape outside dismisses."""
    made, host, bridge = desk
    request = SamplingRequest((user("q"),), 100)
    ask = ReviewSampling("m", "other", "c", "helper", request, "openai/luna", SamplingCost(), (), CHOICE)
    raise_ask(bridge, host, "other", ask)
    qtbot.waitUntil(lambda: "m" in made.windows, timeout=5000)
    window = made.windows["m"]
    card = window.card
    assert isinstance(card, SamplingCard)
    qtbot.waitUntil(card.hasFocus, timeout=5000)
    reached = set()
    for _ in range(20):
        focus = window.focusWidget()
        assert focus is not None
        reached.add(focus)
        qtbot.keyClick(focus, Qt.Key.Key_Tab)
    assert {card.model.box, card.edit, card.always, card.send, card.refuse} <= reached
    assert card.edit is not None
    card.edit.setFocus()
    qtbot.keyClicks(card.edit, "2 more")
    qtbot.keyClick(card.edit, Qt.Key.Key_Escape)
    assert host.answers == [] and not card.edit.hasFocus()
    qtbot.keyClick(card, Qt.Key.Key_1)
    qtbot.waitUntil(lambda: ("m", Edited("2 moreq")) in host.answers, timeout=5000)


def test_a_call_of_a_page_says_that_it_is_no_call_of_the_model(qtbot: QtBot) -> None:
    for call_id, told in (("app-1a2b", True), ("call_1", False)):
        card, _ = shown(qtbot, ApproveTool("t", "s", call_id, "clock", "wind", freeze({"turns": 3})))
        texts = [w.text() for w in card.findChildren(QLabel)]
        assert ("Asked by its page, not by the model" in texts) is told
