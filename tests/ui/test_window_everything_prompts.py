"""Every prompt of server-everything as a slash command, and every resource read, in the real window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt

from desktop_host.core.messages import EmbeddedResource
from desktop_host.core.transcript import UserEntry
from desktop_host.ui.widgets.composer_arguments import ArgumentForm
from tests.ui.window_kit import Window, npm, script

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture
def window(real_window: Window, tmp_path: Path) -> Window:
    """A window with server-everything, and a model that answers whatever it is told."""
    real_window.add(npm("mcp-server-everything"), "everything")
    lines = script(tmp_path / "script.json", *[[{"text": f"Answer {n}."}] for n in range(8)])
    real_window.workspace.show_chat(None)
    real_window.workspace.chat.chat.choices.pick_model(f"script:{lines}")
    return real_window


def slash(window: Window, word: str, title: str) -> None:
    """Type `/word` and take the offer of this title with Enter."""
    page = window.workspace.chat
    window.click(page.composer.edit)
    window.type(f"/{word}")
    window.until(lambda: [offer.title for offer in page.offers.list.shown] == [title])
    window.key(Qt.Key.Key_Return)


def form(window: Window, *fields: str) -> ArgumentForm:
    """The form that asks for the arguments, its first field ready for the keys."""
    desk = window.workspace.chat.offers
    window.until(lambda: desk.form is not None and desk.form.isVisible())
    assert desk.form is not None
    assert tuple(desk.form.fields) == fields
    made = desk.form
    if fields:
        window.until(made.fields[fields[0]].hasFocus)
    return made


def choose(window: Window, open_form: ArgumentForm, field: str, proposed: list[str], typed: str) -> None:
    """Type the beginning of an argument, wait for the server's proposals, take the first with the keyboard."""
    line = open_form.fields[field]
    window.until(line.hasFocus)
    window.type(typed)
    popup = line.proposals.popup()
    model = line.proposals.completionModel()
    window.until(lambda: popup.isVisible() and [model.index(r, 0).data() for r in range(model.rowCount())] == proposed)
    window.picture(f"completing-{field}")
    window.key(Qt.Key.Key_Down)
    window.key(Qt.Key.Key_Return)
    window.until(lambda: line.text() == proposed[0] and not popup.isVisible())


def last_said(window: Window) -> UserEntry:
    """The person's newest message."""
    entries = window.workspace.chat.chat.transcript.now.entries
    return [e for e in entries if isinstance(e, UserEntry)][-1]


def answered(window: Window, n: int) -> None:
    """Wait until the model has answered n messages."""
    window.until(lambda: f"Answer {n - 1}." in window.said() and window.ended)


def test_every_prompt_is_a_slash_command_with_a_form_that_the_server_completes(window: Window) -> None:
    async def listed(servers: Any) -> set[str]:
        return {prompt.name for prompt in await servers.prompts("everything")}

    assert window.of_host(listed) == {"simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"}

    slash(window, "simple", "Simple Prompt")
    made = form(window)
    window.until(made.send.hasFocus)
    window.key(Qt.Key.Key_Space)
    answered(window, 1)
    assert last_said(window).text == "This is a simple prompt without arguments."
    assert last_said(window).source == "prompt:everything.simple-prompt"

    slash(window, "args", "Arguments Prompt")
    made = form(window, "city", "state")
    window.key(Qt.Key.Key_Return)
    window.key(Qt.Key.Key_Return)  # past the optional one: sends, but the city lacks
    window.until(lambda: made.problem == "city is needed.")
    assert made.fields["city"].hasFocus()
    window.type("Oslo")
    window.key(Qt.Key.Key_Return)
    window.key(Qt.Key.Key_Return)
    answered(window, 2)
    assert last_said(window).text == "What's weather in Oslo?"

    slash(window, "team", "Team Management")
    made = form(window, "department", "name")
    choose(window, made, "department", ["Engineering"], "E")
    window.key(Qt.Key.Key_Tab)
    choose(window, made, "name", ["Charlie"], "C")
    window.key(Qt.Key.Key_Return)
    answered(window, 3)
    assert last_said(window).text == "Please promote Charlie to the head of the Engineering team."

    slash(window, "resource", "Resource Prompt")
    made = form(window, "resourceType", "resourceId")
    choose(window, made, "resourceType", ["Text"], "T")
    window.key(Qt.Key.Key_Tab)
    window.type("nothing")
    window.key(Qt.Key.Key_Return)
    window.until(lambda: "Invalid resourceId" in made.problem)  # the server's own words, in place
    window.until(made.send.isEnabled)
    made.fields["resourceId"].setFocus()
    window.key(Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    window.type("7")
    window.key(Qt.Key.Key_Return)
    answered(window, 4)
    said = last_said(window)
    assert "Text resource with id: 7" in said.text
    (resource,) = [b for b in said.blocks if isinstance(b, EmbeddedResource)]
    assert resource.text is not None and "Resource 7: This is a plaintext resource" in resource.text
    window.picture("everything-prompts")


def test_a_prompt_can_be_put_into_the_message_and_changed_before_it_is_sent(window: Window) -> None:
    slash(window, "args", "Arguments Prompt")
    made = form(window, "city", "state")
    window.type("Bergen")
    window.click(made.use)
    edit = window.workspace.chat.composer.edit
    window.until(lambda: edit.toPlainText() == "What's weather in Bergen?" and edit.hasFocus())
    window.type(" And tomorrow?")
    window.key(Qt.Key.Key_Return)
    answered(window, 1)
    assert last_said(window).text == "What's weather in Bergen? And tomorrow?"
