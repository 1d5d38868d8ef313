"""`/` and `@`: what is offered, chosen with keys, asked for, completed, sent or attached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from desktop_host.core.errors import PeerFault
from desktop_host.core.messages import EmbeddedResource, Image, Message, Role, Text, user
from desktop_host.core.server_ports import Completion
from desktop_host.core.servers import PromptArgument, PromptSpec, ResourceSpec
from desktop_host.core.skill_admin import SkillRow
from desktop_host.core.values import EMPTY, FrozenDict
from desktop_host.engine.host import HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.viewmodels.composer import TRIGGER, Offer, ResourceFile, from_prompt, ranked
from desktop_host.ui.widgets.chat import ChatPage
from tests.fakes.fake_host import FakeHost, FakeServers, opener

CITIES = ("Lisbon", "London", "Lyon")


class PromptServers(FakeServers):
    """A server `travel` with prompts, resources and completion; `broken` fails each list."""

    def __init__(self) -> None:
        super().__init__()
        self.put("travel")
        self.put("broken")
        self.asked: list[tuple[str, str, str, dict[str, Any]]] = []
        self.given: list[tuple[str, dict[str, Any]]] = []

    def _fail(self, alias: str) -> None:
        if alias == "broken":
            raise PeerFault("server_failed", "no lists today", server=alias)

    async def prompts(self, name: str) -> tuple[PromptSpec, ...]:
        self._fail(name)
        city = PromptArgument("city", "City", "Where you go", required=True)
        return (
            PromptSpec(name, "plan", "Plan a trip", "A day by day plan", (city, PromptArgument("days"))),
            PromptSpec(name, "pack", "Packing list"),
        )

    async def get_prompt(self, name: str, prompt: str, arguments: FrozenDict) -> tuple[Message, ...]:
        self.given.append((prompt, dict(arguments)))
        if prompt == "pack":
            raise PeerFault("protocol_error", "the prompt broke", server=name)
        return (user(f"Plan {arguments['city']}"),)

    async def resources(self, name: str) -> tuple[ResourceSpec, ...]:
        self._fail(name)
        return (
            ResourceSpec(name, "travel://guide", "guide", "City guide"),
            ResourceSpec(name, "travel://city/{city}", "city", "One city", template=True),
        )

    async def complete(self, name: str, ref: str, argument: str, value: str, context: FrozenDict = EMPTY) -> Completion:
        self.asked.append((ref, argument, value, dict(context)))
        found = [c for c in CITIES if c.lower().startswith(value.lower())] if argument == "city" else []
        return Completion(tuple(found))


class Library:
    async def skills(self) -> tuple[SkillRow, ...]:
        return (
            SkillRow("minutes", "Minutes", "Writes minutes of a meeting", "profile", "/x", "1.0"),
            SkillRow("broken", "Broken", "Cannot be read", "profile", "/y", "1.0", loaded=False),
        )

    async def match(self, text: str, session: str | None = None) -> tuple[Any, ...]:
        return ()


class OfferHost(FakeHost):
    def __init__(self) -> None:
        super().__init__()
        self.servers: Any = PromptServers()

    @property
    def skills(self) -> Any:
        return Library()


@pytest.fixture
def page(qtbot: QtBot) -> Iterator[tuple[OfferHost, ChatPage]]:
    theme.apply("light", 100)
    host = OfferHost()
    bridge = Bridge(opener(host), HostSpec())
    page = ChatPage(bridge)
    qtbot.addWidget(page)
    page.resize(900, 700)
    page.show()
    page.activateWindow()
    qtbot.waitUntil(page.isActiveWindow, timeout=30_000)
    with qtbot.waitSignal(bridge.ready, timeout=30_000):
        bridge.start()
    page.open_session(None)
    qtbot.waitUntil(lambda: page.chat.choices.models_known and bool(page.chat.choices.servers), timeout=30_000)
    page.chat.choices.pick_model("script:demo")
    page.focus_composer()
    yield host, page
    with qtbot.waitSignal(bridge.closed, timeout=30_000):
        bridge.close()


def names(page: ChatPage) -> list[str]:
    return [o.name for o in page.offers.list.shown]


def type_in(qtbot: QtBot, page: ChatPage, text: str, until: Callable[[], bool]) -> None:
    qtbot.keyClicks(page.composer.edit, text)
    qtbot.waitUntil(until, timeout=30_000)


def press(qtbot: QtBot, which: QAbstractButton) -> None:
    qtbot.mouseClick(which, Qt.MouseButton.LeftButton)


def test_a_slash_lists_prompts_and_skills_and_a_broken_server_takes_nothing_away(
    qtbot: QtBot, page: tuple[OfferHost, ChatPage]
) -> None:
    _, p = page
    type_in(qtbot, p, "/", lambda: names(p) == ["plan", "pack", "minutes"])
    assert p.composer.edit.hasFocus()
    assert "1 of 3: Plan a trip" in p.composer.edit.accessibleDescription()
    type_in(qtbot, p, "mi", lambda: names(p) == ["minutes"])
    qtbot.keyClick(p.composer.edit, Qt.Key.Key_Return)
    assert p.composer.text == "/minutes "
    assert not p.offers.list.isVisible()
    assert "Enter" in p.composer.edit.accessibleDescription()


def test_escape_closes_the_list_and_a_slash_that_fits_nothing_is_just_text(
    qtbot: QtBot, page: tuple[OfferHost, ChatPage]
) -> None:
    host, p = page
    type_in(qtbot, p, "/p", lambda: names(p) == ["plan", "pack"])
    qtbot.keyClick(p.composer.edit, Qt.Key.Key_Down)
    assert "2 of 2: Packing list" in p.composer.edit.accessibleDescription()
    qtbot.keyClick(p.composer.edit, Qt.Key.Key_Escape)
    assert not p.offers.list.isVisible()
    p.composer.put("")
    qtbot.keyClicks(p.composer.edit, "/usr/local")
    assert not p.offers.list.isVisible()
    qtbot.keyClick(p.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: [s.text for _, s in host.said] == ["/usr/local"], timeout=30_000)


def test_a_prompt_asks_for_its_arguments_completes_them_and_is_sent(
    qtbot: QtBot, page: tuple[OfferHost, ChatPage]
) -> None:
    host, p = page
    type_in(qtbot, p, "/pl", lambda: names(p) == ["plan"])
    qtbot.keyClick(p.composer.edit, Qt.Key.Key_Tab)
    form = p.offers.form
    assert form is not None
    assert p.composer.text == ""
    city = form.fields["city"]
    assert city.hasFocus()
    press(qtbot, form.send)
    assert form.problem == "City is needed."
    qtbot.keyClicks(city, "Lo")
    qtbot.waitUntil(lambda: ("plan", "city", "Lo", {}) in host.servers.asked, timeout=30_000)
    qtbot.waitUntil(lambda: city.proposals.model().rowCount() == 1, timeout=30_000)
    city.setText("London")
    city.proposals.popup().hide()
    form.fields["days"].setText("3")
    press(qtbot, form.send)
    qtbot.waitUntil(lambda: [s.text for _, s in host.said] == ["Plan London"], timeout=30_000)
    assert host.servers.given == [("plan", {"city": "London", "days": "3"})]
    qtbot.waitUntil(lambda: p.offers.form is None and p.chat.session is not None, timeout=30_000)


def test_a_prompt_can_be_put_into_the_message_to_be_changed_first(
    qtbot: QtBot, page: tuple[OfferHost, ChatPage]
) -> None:
    host, p = page
    type_in(qtbot, p, "/pl", lambda: names(p) == ["plan"])
    qtbot.keyClick(p.composer.edit, Qt.Key.Key_Return)
    form = p.offers.form
    assert form is not None
    form.fields["city"].setText("Lyon")
    press(qtbot, form.use)
    qtbot.waitUntil(lambda: p.composer.text == "Plan Lyon", timeout=30_000)
    assert p.offers.form is None
    assert host.said == []


def test_a_prompt_that_breaks_says_so_in_its_form_and_can_be_tried_again(
    qtbot: QtBot, page: tuple[OfferHost, ChatPage]
) -> None:
    _, p = page
    type_in(qtbot, p, "/pa", lambda: names(p) == ["pack"])
    qtbot.keyClick(p.composer.edit, Qt.Key.Key_Return)
    form = p.offers.form
    assert form is not None
    assert form.send.hasFocus()
    press(qtbot, form.send)
    qtbot.waitUntil(lambda: bool(form.problem), timeout=30_000)
    assert form.send.isEnabled()
    qtbot.keyClick(form, Qt.Key.Key_Escape)
    assert p.offers.form is None
    assert p.composer.edit.hasFocus()


def test_an_at_sign_attaches_a_resource_by_its_address(qtbot: QtBot, page: tuple[OfferHost, ChatPage]) -> None:
    host, p = page
    type_in(qtbot, p, "What does @gu", lambda: names(p) == ["guide"])
    qtbot.keyClick(p.composer.edit, Qt.Key.Key_Return)
    assert p.composer.text == "What does "
    qtbot.keyClicks(p.composer.edit, "say?")
    assert [f.name for f in p.composer.files] == ["City guide"]
    qtbot.keyClick(p.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(host.said), timeout=30_000)
    said = host.said[0][1]
    assert (said.text, said.files, said.resources) == ("What does say?", (), (("travel", "travel://guide"),))


def test_a_template_is_filled_before_it_is_attached(qtbot: QtBot, page: tuple[OfferHost, ChatPage]) -> None:
    host, p = page
    type_in(qtbot, p, "@one", lambda: names(p) == ["city"])
    qtbot.keyClick(p.composer.edit, Qt.Key.Key_Return)
    form = p.offers.form
    assert form is not None
    assert not form.use.isVisible()
    qtbot.waitUntil(lambda: ("travel://city/{city}", "city", "", {}) in host.servers.asked, timeout=30_000)
    form.fields["city"].setText("São Paulo")
    press(qtbot, form.send)
    qtbot.waitUntil(lambda: bool(p.composer.files), timeout=30_000)
    file = p.composer.files[0]
    assert isinstance(file, ResourceFile)
    assert file.uri == "travel://city/S%C3%A3o%20Paulo"


def test_the_button_offers_both_to_the_mouse(qtbot: QtBot, page: tuple[OfferHost, ChatPage]) -> None:
    _, p = page
    p.composer.put("text")
    press(qtbot, p.composer.insert_button)
    slash, at = p.offers.menu.actions()
    assert [slash.text(), at.text()] == ["Prompts and skills  (/)", "Resources  (@)"]
    p.offers.menu.close()
    p.activateWindow()
    qtbot.waitUntil(p.isActiveWindow, timeout=30_000)
    at.trigger()
    qtbot.waitUntil(lambda: names(p) == ["guide", "city"], timeout=30_000)
    assert p.composer.text == "text @"
    qtbot.keyClick(p.composer.edit, Qt.Key.Key_Escape)
    p.composer.put("")
    slash.trigger()
    qtbot.waitUntil(lambda: len(names(p)) == 3, timeout=30_000)


@pytest.mark.parametrize(
    ("text", "found"),
    [("/", "/"), ("/pla", "/pla"), ("see /pla", ""), ("@", "@"), ("a @gui", "@gui"), ("me@host", ""), ("@a b", "")],
)
def test_a_sign_counts_only_where_a_word_begins(text: str, found: str) -> None:
    match = TRIGGER.search(text)
    assert (match[0] if match else "") == found


def test_names_that_begin_as_typed_come_first() -> None:
    offers = tuple(Offer("prompt", name, title, "") for name, title in (("xb", "Old b"), ("b", "B"), ("ab", "A")))
    assert [o.name for o in ranked(offers, "b")] == ["b", "xb", "ab"]
    assert len(ranked(offers * 100, "")) == 60


def test_a_prompt_of_several_roles_names_who_speaks_and_its_files_come_along() -> None:
    filled = from_prompt((
        user("hi"), Message(Role.ASSISTANT, (Text("hello"),)),
        Message(Role.USER, (Image("aGk=", "image/png"), EmbeddedResource("a://b/c.txt", "text/plain", text="x"))),
    ))  # fmt: skip
    assert filled.text == "User: hi\n\nAssistant: hello"
    assert [(f.name, f.data) for f in filled.files] == [("attachment.png", b"hi"), ("c.txt", b"x")]


def test_a_server_that_comes_after_the_sign_was_typed_is_offered_at_once(
    qtbot: QtBot, page: tuple[OfferHost, ChatPage]
) -> None:
    host, chat = page
    qtbot.keyClicks(chat.composer.edit, "@")
    qtbot.waitUntil(lambda: [o.server for o in chat.offers.list.shown] == ["travel", "travel"], timeout=30_000)
    host.servers.put("maps")
    chat.chat.choices.refresh_servers()
    qtbot.waitUntil(lambda: {o.server for o in chat.offers.list.shown} == {"travel", "maps"}, timeout=30_000)
