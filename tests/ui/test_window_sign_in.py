"""Signing in to a remote server in the real window: every state by clicks, a real authorization server behind it."""

from __future__ import annotations

import os
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from desktop_host import i18n
from desktop_host.core.auth import SignInState
from desktop_host.core.servers import ServerState
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.ask_card import FormCard, UrlCard
from desktop_host.ui.widgets.ask_window import AskWindow
from desktop_host.ui.widgets.server_detail import ServerDetail
from tests.fakes.servers.signed import Signed
from tests.ui.window_kit import Opened, Window, browser, call, script

pytestmark = [pytest.mark.live, pytest.mark.slow]
NAME = "remote"


@pytest.fixture
def signed() -> Iterator[Signed]:
    with Signed() as made:
        yield made


@pytest.fixture
def opened() -> Iterator[Opened]:
    with browser("https", "http") as caught:
        yield caught


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    """A window whose vault is an encrypted file; `DESKTOP_HOST_SHOT_*` choose how its pictures look."""
    (tmp_path / "passphrase").write_text("open sesame\n")
    monkeypatch.setenv("DESKTOP_HOST_PASSPHRASE_FILE", str(tmp_path / "passphrase"))
    yield from shown(qtbot, tmp_path / "home")


def shown(qtbot: QtBot, home: Path) -> Iterator[Window]:
    made = Window(qtbot, home)
    if language := os.environ.get("DESKTOP_HOST_SHOT_LANG"):
        made.workspace.settings.set("general.language", language)
        made.until(lambda: i18n.current().language == language)
    theme.apply(
        os.environ.get("DESKTOP_HOST_SHOT_THEME", "light"), int(os.environ.get("DESKTOP_HOST_SHOT_SCALE", "100"))
    )
    made.window.resize(int(os.environ.get("DESKTOP_HOST_SHOT_WIDTH", "1280")), 900)
    yield made
    made.close()
    i18n.install("en")


def windows() -> list[AskWindow]:
    """The questions that stand in windows of their own."""
    return [w for w in QApplication.topLevelWidgets() if isinstance(w, AskWindow) and w.isVisible()]


def asked(window: Window) -> UrlCard:
    """The open question for a sign-in, in its own window."""
    found: list[UrlCard] = []

    def there() -> bool:
        found[:] = [w.card for w in windows() if isinstance(w.card, UrlCard) and w.card.height() > 40]
        return bool(found)

    window.until(there)
    return found[0]


def picture(window: Window, name: str) -> None:
    window.picture(name)
    if folder := os.environ.get("DESKTOP_HOST_SHOTS"):
        for one in windows():
            assert one.grab().save(str(Path(folder) / f"{name}-question.png"))


def words(detail: ServerDetail) -> str:
    return "\n".join(one.text() for one in detail.findChildren(QLabel) if one.isVisible())


def add(window: Window, url: str) -> ServerDetail:
    """Paste an address, press Add, and open the page of what came of it."""
    window.workspace.add_server()
    panel = window.workspace.servers_page.adding.panel
    panel.paste.setPlainText(url)
    window.until(lambda: panel.cards and panel.go.isEnabled())
    window.qtbot.mouseClick(panel.go, Qt.MouseButton.LeftButton)
    window.until(lambda: [s.name for s in window.workspace.servers.statuses()] == [NAME])
    return page(window)


def page(window: Window) -> ServerDetail:
    window.workspace.show_servers(NAME)
    detail = window.workspace.servers_page.detail
    assert isinstance(detail, ServerDetail)
    return detail


def settled(window: Window) -> Callable[[], bool]:
    def holds() -> bool:
        status = window.status(NAME)
        at_rest = status.state is not ServerState.STARTING and status.sign_in is not SignInState.SIGNING_IN
        return at_rest and not window.workspace.servers.busy and not windows()

    return holds


def visit(window: Window, card: UrlCard, opened: Opened) -> None:
    """Press Open, and do in the browser what is to be done there."""
    before = len(opened.urls)
    window.click(card.open)
    window.until(lambda: len(opened.urls) > before)
    with urllib.request.urlopen(opened.urls[-1], timeout=20) as answer:
        assert "Desktop Host" in answer.read().decode()


def test_a_person_signs_in_needs_more_rights_and_signs_out_by_clicks(
    window: Window, signed: Signed, opened: Opened, tmp_path: Path
) -> None:
    detail = add(window, signed.url)
    card = asked(window)
    picture(window, "consent")
    assert any("read" in one.text() for one in card.findChildren(QLabel)), "the rights that are asked for"
    assert opened.urls == [], "nothing is opened before the person says so"
    window.click(card.open)
    window.until(lambda: len(opened.urls) == 1 and not windows())
    assert window.status(NAME).sign_in is SignInState.SIGNING_IN
    picture(window, "waiting")
    window.workspace.show_servers()
    card_of = window.workspace.servers_page.cards[NAME]
    window.until(card_of.cancel.isVisible)
    picture(window, "waiting-list")
    window.click(card_of.cancel)
    window.until(settled(window))
    assert window.status(NAME).sign_in is SignInState.NEEDED
    window.until(lambda: card_of.sign_in.isVisible() and not card_of.cancel.isVisible())
    picture(window, "cancelled-list")

    detail = page(window)
    window.click(detail.sign)
    window.click(asked(window).decline)
    window.until(settled(window))
    picture(window, "declined")
    signed.denies = True
    window.click(detail.sign)
    visit(window, asked(window), opened)
    window.until(settled(window))
    window.until(lambda: "not you" in words(detail))
    picture(window, "denied")

    signed.denies = False
    window.click(detail.sign)
    visit(window, asked(window), opened)
    window.until(lambda: window.status(NAME).state is ServerState.READY and settled(window)())
    picture(window, "signed-in")
    window.workspace.show_servers()
    window.until(window.workspace.servers_page.cards[NAME].signed_in.isVisible)
    picture(window, "signed-in-list")

    window.say("admin please", script(tmp_path / "s.json", [call(f"{NAME}.admin")], [{"text": "done"}]))
    more = window.asked(UrlCard)
    said = "\n".join(one.text() for one in more.findChildren(QLabel))
    assert "read, admin" in said and f"{NAME}.admin" in said
    picture(window, "more-access")
    visit(window, more, opened)
    window.approve_all()
    picture(window, "more-access-done")

    detail = page(window)
    window.click(detail.sign)
    window.until(lambda: window.status(NAME).sign_in is SignInState.NONE and settled(window)())
    assert len(signed.revoked) == 2
    picture(window, "signed-out")


def test_a_question_outlives_another_language_and_comes_up_in_it(
    window: Window, signed: Signed, opened: Opened
) -> None:
    """The window is made anew then, whatever page is open; a question that waits must not be lost with the old one."""
    add(window, signed.url)
    old = asked(window)
    window.workspace.settings.set("general.language", "zh_CN")
    window.until(lambda: [w.windowTitle() for w in windows()] == [f"登录 {NAME}"])
    window.until(lambda: not isValid(old))
    window.click(asked(window).decline)
    window.until(settled(window))
    window.click(page(window).sign)
    visit(window, asked(window), opened)
    window.until(lambda: window.status(NAME).state is ServerState.READY)


def test_a_port_that_is_taken_and_a_hostile_server_are_told_on_the_page(
    window: Window, signed: Signed, opened: Opened
) -> None:
    detail = add(window, signed.url)
    window.click(asked(window).decline)
    window.until(settled(window))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        window.bridge.call(lambda host: host.settings.set("oauth.redirect_port", port)).result(20)
        window.click(detail.sign)
        window.until(lambda: str(port) in words(detail))
        window.until(settled(window))
        picture(window, "port-taken")
    signed.metadata = {"authorization_endpoint": "https://169.254.169.254/authorize"}
    window.click(detail.sign)
    window.until(lambda: "169.254.169.254" in words(detail))
    picture(window, "inner-address")
    signed.metadata = {"code_challenge_methods_supported": None}
    window.until(settled(window))
    window.click(detail.sign)
    window.until(lambda: "PKCE" in words(detail))
    picture(window, "no-pkce")
    assert opened.urls == []


def test_a_sign_in_that_hangs_can_be_stopped(window: Window, signed: Signed, opened: Opened) -> None:
    signed.hangs = signed.well_known
    detail = add(window, signed.url)
    window.until(lambda: window.status(NAME).state is ServerState.STARTING and signed.paths(signed.well_known))
    picture(window, "hangs")
    window.click(detail.run)
    window.until(lambda: window.status(NAME).state is ServerState.STOPPED)
    signed.gate.set()


def test_the_passphrase_is_asked_for_as_the_hosts_own_question(
    qtbot: QtBot, tmp_path: Path, signed: Signed, opened: Opened
) -> None:
    """No server can have the host's name; nothing warns of what is asked for."""
    for window in shown(qtbot, tmp_path / "home"):
        add(window, signed.url)
        window.until(lambda: any(isinstance(w.card, FormCard) for w in windows()))
        [question] = [w.card for w in windows()]
        said = "\n".join(one.text() for one in question.findChildren(QLabel))
        picture(window, "passphrase")
        assert i18n.tr("chat.ask.host.title") in said
        assert i18n.tr("chat.ask.form.warning") not in said and i18n.tr("ask.during.none") not in said
        assert isinstance(question, FormCard)
        window.click(question.decline)
        window.until(settled(window))
        assert window.status(NAME).state is ServerState.FAILED
        picture(window, "passphrase-declined")
