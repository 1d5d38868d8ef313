"""Resources and prompts of a server on its page: forms with proposals, watching, attaching, opening; signing in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from desktop_host.core.auth import SignInState
from desktop_host.core.messages import EmbeddedResource, Image, Text, assistant, user
from desktop_host.core.servers import Http, SamplingPolicy, ServerConfig, ServerState, Stdio
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.ui.viewmodels.annotations import annotation_words
from desktop_host.ui.viewmodels.server_parts import files_of, prompt_parts
from desktop_host.ui.widgets.pieces import CodeBox
from desktop_host.ui.widgets.server_form import ServerSettings
from desktop_host.ui.widgets.server_prompts import PromptRow, PromptsTab
from desktop_host.ui.widgets.server_resources import ResourceRow, ResourcesTab
from tests.ui.shell_kit import Shell, server_shells

LEFT = Qt.MouseButton.LeftButton
FILES = ServerConfig("files", Stdio("npx", ("-y", "server-filesystem", "/tmp")))
WEB = ServerConfig("web", Http("https://example.com/mcp"))
Make = Callable[..., Shell]


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path) -> Iterator[Make]:
    with server_shells(qtbot, tmp_path) as build:
        yield build


def resources(shell: Shell) -> tuple[ResourceRow, ResourceRow]:
    shell.workspace.show_servers("files", "resources")
    page = shell.workspace.servers_page.detail
    assert page is not None
    tab = page.show_tab("resources")
    assert isinstance(tab, ResourcesTab)
    shell.until(lambda: len(tab.rows) == 2)
    plain, template = tab.rows
    assert isinstance(plain, ResourceRow)
    assert isinstance(template, ResourceRow)
    return plain, template


def shown(row: ResourceRow | PromptRow) -> str:
    return "\n".join(box.toPlainText() for box in row.findChildren(CodeBox))


def test_a_resource_has_its_title_and_tells_for_whom_it_is_and_how_much_it_matters(make: Make) -> None:
    row, _ = resources(make(FILES))
    said = [one.text() for one in row.findChildren(QLabel)]
    assert "Notes" in said, "its title, not its name"
    assert {"text/markdown", "812 B", "For you and the model", "Priority 0.8"} <= set(said)
    assert any(text.startswith("Last changed 2026-03-01 ") for text in said)


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        ({"audience": ["user"]}, ("For you",)),
        ({"audience": ["assistant"], "priority": 1}, ("For the model", "Priority 1")),
        ({"audience": [], "priority": 0}, ("Priority 0",)),
        ({"audience": "user", "priority": True, "lastModified": "yesterday"}, ()),
        ({"audience": ["user", 7, "robot"], "priority": "high", "lastModified": 3}, ()),
    ],
)
def test_annotations_that_are_not_as_mcp_has_them_are_left_out(notes: dict[str, Any], words: tuple[str, ...]) -> None:
    """Hazard G76: what a server says of its content is never trusted to be well-formed."""
    assert annotation_words(freeze(notes)) == words


def test_a_template_is_filled_in_with_what_the_server_proposes(make: Make) -> None:
    shell = make(FILES)
    _, row = resources(shell)
    shell.qtbot.mouseClick(row.read, LEFT)
    assert shown(row) == "", "a variable lacks"
    field = row.arguments.fields["path"]
    field.setFocus()
    shell.qtbot.keyClicks(field, "ti")
    shell.until(lambda: row.arguments.proposals("path") == ("tides", "timber"))
    assert shell.host.servers.completions[-1] == ("file:///{path}", "path", "ti", FrozenDict())
    field.setText("etc/hosts of mine")
    shell.qtbot.mouseClick(row.read, LEFT)
    shell.until(lambda: "contents of file:///etc%2Fhosts%20of%20mine" in shown(row))


def test_a_watched_resource_is_marked_and_read_again_when_it_changes(make: Make) -> None:
    shell = make(FILES)
    row, _ = resources(shell)
    shell.qtbot.mouseClick(row.watch, LEFT)
    shell.until(lambda: shell.host.servers.watched == {row.spec.uri})
    shell.until(lambda: shown(row))
    assert row.mark.isHidden()
    shell.host.servers.touch("files", row.spec.uri)
    shell.until(lambda: not row.mark.isHidden())
    assert row.mark.text().startswith("Changed ")
    shell.until(row.watch.isEnabled)
    shell.qtbot.mouseClick(row.watch, LEFT)
    shell.until(lambda: not shell.host.servers.watched)


def test_a_resource_goes_into_the_message_of_the_chat(make: Make) -> None:
    shell = make(FILES)
    row, _ = resources(shell)
    shell.workspace.chat.composer.put("Look at this")
    shell.qtbot.mouseClick(row.attach, LEFT)
    shell.until(lambda: shell.workspace.page == "chats")
    composer = shell.workspace.chat.composer
    assert composer.text == "Look at this"
    assert [(f.name, f.data) for f in composer.files] == [("Notes", f"contents of {row.spec.uri}".encode())]


def test_a_resource_is_saved_and_handed_to_the_platform(make: Make) -> None:
    class Opener(QObject):
        opened: list[str]

        @Slot(QUrl)
        def open(self, url: QUrl) -> None:
            self.opened.append(url.toLocalFile())

    opener = Opener()
    opener.opened = []
    QDesktopServices.setUrlHandler("file", opener, "open")
    try:
        shell = make(FILES)
        row, _ = resources(shell)
        shell.qtbot.mouseClick(row.open, LEFT)
        shell.until(lambda: opener.opened)
        assert Path(opener.opened[0]).read_text("utf-8") == f"contents of {row.spec.uri}"
    finally:
        QDesktopServices.unsetUrlHandler("file")


def test_a_prompt_asks_for_what_it_needs_and_goes_into_the_chat(make: Make) -> None:
    shell = make(FILES)
    shell.workspace.show_servers("files")
    page = shell.workspace.servers_page.detail
    assert page is not None
    tab = page.show_tab("prompts")
    assert isinstance(tab, PromptsTab)
    shell.until(lambda: tab.rows)
    row = tab.rows[0]
    assert isinstance(row, PromptRow)
    shell.qtbot.mouseClick(row.use, LEFT)
    assert shell.workspace.page == "servers"
    row.fields["topic"].setText("tides")
    shell.qtbot.mouseClick(row.show_it, LEFT)
    shell.until(lambda: "Please summarise tides" in shown(row))
    shell.until(row.use.isEnabled)
    shell.qtbot.mouseClick(row.use, LEFT)
    shell.until(lambda: shell.workspace.page == "chats")
    assert shell.workspace.chat.composer.text == "Please summarise tides"


def test_a_prompt_of_several_roles_names_who_speaks() -> None:
    picture = Image("aGk=", "image/png")
    text, files = prompt_parts((user("Ask"), assistant("Answer"), user(Text("More"), picture)))
    assert text == "User: Ask\n\nAssistant: Answer\n\nUser: More"
    assert [(f.mime_type, f.data) for f in files] == [("image/png", b"hi")]


def test_contents_become_files_under_the_name_of_their_address() -> None:
    files = files_of(
        [EmbeddedResource("demo://a/b.txt", "text/plain", text="x"), EmbeddedResource("demo://c", blob="aGk=")], "t"
    )
    assert [(f.name, f.mime_type, f.data) for f in files] == [
        ("b.txt", "text/plain", b"x"), ("c", "application/octet-stream", b"hi"),
    ]  # fmt: skip


def test_a_person_signs_in_cancels_and_signs_out(make: Make) -> None:
    shell = make(WEB)
    servers = shell.workspace.servers

    def sign_in() -> SignInState:
        status = servers.status("web")
        assert status is not None
        return status.sign_in

    shell.bridge.call(lambda host: host.servers.logout("web")).result(5)
    shell.until(lambda: sign_in() is SignInState.NEEDED)
    shell.workspace.show_servers()
    card = shell.workspace.servers_page.cards["web"]
    shell.until(card.sign_in.isVisible)
    shell.qtbot.mouseClick(card.sign_in, LEFT)
    shell.until(lambda: sign_in() is SignInState.SIGNING_IN)
    shell.workspace.show_servers("web")
    page = shell.workspace.servers_page.detail
    assert page is not None
    assert page.sign.text() == "Cancel signing in"
    shell.qtbot.mouseClick(page.sign, LEFT)
    shell.until(lambda: page.sign.text() == "Sign in" and page.sign.isEnabled())
    shell.qtbot.mouseClick(page.sign, LEFT)
    shell.until(lambda: sign_in() is SignInState.SIGNING_IN)

    async def back(_host: object) -> None:
        shell.host.servers.signing.set()

    shell.bridge.call(back).result(5)
    shell.until(lambda: page.sign.text() == "Sign out" and page.sign.isEnabled())
    assert servers.status("web").state is ServerState.READY  # type: ignore[union-attr]
    shell.qtbot.mouseClick(page.sign, LEFT)
    shell.until(lambda: any("could not be told" in t for t in shell.window.toasts.texts()))


def test_what_a_server_may_ask_of_the_model_and_its_log_level_are_settings(make: Make) -> None:
    shell = make(FILES)
    shell.workspace.show_servers("files", "settings")
    page = shell.workspace.servers_page.detail
    assert page is not None
    tab = page.show_tab("settings")
    assert isinstance(tab, ServerSettings)
    form = tab.form
    assert form is not None
    form.sampling.mode.setCurrentIndex(form.sampling.mode.findData("allow"))
    form.sampling.daily_tokens.setValue(9000)
    form.sampling.daily_usd.setValue(1.25)
    form.level.setCurrentIndex(form.level.findData("debug"))
    shell.qtbot.mouseClick(tab.save, LEFT)
    shell.until(lambda: shell.host.servers.levels == [("files", "debug")])
    kept = shell.host.servers.rows["files"][0]
    assert kept.sampling == SamplingPolicy("allow", 4096, 9000, 1.25, 10)
    assert kept.log_level == "debug"
