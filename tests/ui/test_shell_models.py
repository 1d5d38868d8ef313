"""Models and keys: a key goes to the vault and nowhere else; weights are fetched after a question."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLineEdit, QMessageBox
from pytestqt.qtbot import QtBot

from desktop_host.core.errors import KnownFault
from desktop_host.core.settings import Endpoint
from desktop_host.ui.widgets.key_row import KeyRow
from desktop_host.ui.widgets.providers_page import ProvidersTab
from tests.fakes.shell_host import ShellHost
from tests.ui.shell_kit import Shell

LEFT = Qt.MouseButton.LeftButton
KEY = "sk-ant-this-must-not-be-seen"
Make = Callable[[], tuple[Shell, ProvidersTab]]


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path) -> Iterator[Make]:
    made: list[Shell] = []

    def build() -> tuple[Shell, ProvidersTab]:
        shell = Shell(qtbot, tmp_path, ShellHost())
        made.append(shell)
        shell.workspace.show_models()
        return shell, shell.workspace.settings_page.models

    yield build
    for shell in made:
        shell.close()


def secret(shell: Shell, name: str) -> str | None:
    return shell.bridge.call(lambda host: host.secrets.get(name)).result(5)


def type_key(shell: Shell, row: KeyRow, text: str = KEY) -> None:
    shell.qtbot.keyClicks(row.field, text)
    shell.qtbot.mouseClick(row.save, LEFT)


def test_a_key_goes_to_the_vault_and_is_tested_and_is_in_no_widget(make: Make) -> None:
    shell, tab = make()
    row = tab.keys["anthropic"]
    type_key(shell, row)
    shell.until(lambda: secret(shell, "anthropic") == KEY)
    shell.until(lambda: "The key works." in shell.texts())
    assert shell.host.models.checked == ["anthropic/claude-sonnet-4-5"]
    assert row.state.text() == "Key is set"
    row.field.undo()
    assert row.field.text() == ""
    assert KEY not in shell.texts()
    assert KEY not in QGuiApplication.clipboard().text()
    holders = [
        o for o in gc.get_objects() if isinstance(o, dict) and KEY in (v for v in o.values() if isinstance(v, str))
    ]
    vault = shell.host.secrets._secrets
    assert [h for h in holders if h is not vault and "KEY" not in h] == []


def test_a_key_field_hides_what_is_typed(make: Make) -> None:
    _shell, tab = make()
    field = tab.keys["openai"].field
    assert field.echoMode() is QLineEdit.EchoMode.Password
    assert field.inputMethodHints() & Qt.InputMethodHint.ImhSensitiveData


def test_a_key_that_does_not_work_is_told_with_what_to_do(make: Make) -> None:
    shell, tab = make()
    shell.host.models.fail_check = KnownFault("auth", "401", provider="Anthropic", reason="bad_key")
    type_key(shell, tab.keys["anthropic"])
    shell.until(lambda: tab.keys["anthropic"].said.property("role") == "danger")
    assert tab.keys["anthropic"].said.text()
    assert secret(shell, "anthropic") == KEY


def test_a_key_is_forgotten_on_demand(make: Make) -> None:
    shell, tab = make()
    type_key(shell, tab.keys["anthropic"])
    shell.until(tab.keys["anthropic"].remove.isVisible)
    shell.qtbot.mouseClick(tab.keys["anthropic"].remove, LEFT)
    shell.until(lambda: secret(shell, "anthropic") is None)
    shell.until(lambda: tab.keys["anthropic"].state.text() == "No key")


def test_a_vault_that_does_not_open_is_shown_with_the_remedy(make: Make) -> None:
    shell, tab = make()
    shell.until(lambda: tab.vault.state.text() == "Works")
    shell.host.secrets.fault = "vault_locked"
    shell.qtbot.mouseClick(tab.vault.again, LEFT)
    shell.until(lambda: tab.vault.state.text() == "Does not work")
    assert tab.vault.remedy.isVisible()
    assert tab.vault.remedy.text()
    type_key(shell, tab.keys["openai"])
    shell.until(lambda: tab.keys["openai"].said.property("role") == "danger")
    assert KEY not in shell.texts()


def test_an_address_is_added_with_its_key_tested_changed_and_removed(make: Make) -> None:
    shell, tab = make()
    ends = tab.endpoints
    shell.qtbot.mouseClick(ends.add_one, LEFT)
    form = ends.form
    assert form is not None
    form.url.setText("localhost:11434")
    shell.qtbot.mouseClick(form.save, LEFT)
    assert shell.host.settings.now.endpoints == ()
    form.url.setText("http://localhost:11434/v1/")
    form.key.setText("endpoint-key")
    form.models.setPlainText("llama3.2\n\nqwen3\nllama3.2")
    shell.qtbot.mouseClick(form.save, LEFT)
    wanted = Endpoint("localhost:11434", "compat", "http://localhost:11434/v1", ("llama3.2", "qwen3"))
    shell.until(lambda: shell.host.settings.now.endpoints == (wanted,))
    assert secret(shell, "http://localhost:11434/v1") == "endpoint-key"
    assert "endpoint-key" not in shell.texts()
    shell.until(lambda: len(ends.rows) == 1)
    shell.until(lambda: any(e.source == "localhost:11434" for e in shell.workspace.models.entries))
    shell.qtbot.mouseClick(ends.rows[0].test, LEFT)
    shell.until(lambda: shell.host.models.checked == ["compat:http://localhost:11434/v1#llama3.2"])
    ends.open_form(wanted)
    assert ends.form is not None
    ends.form.name.setText("Ollama")
    shell.qtbot.mouseClick(ends.form.save, LEFT)
    shell.until(lambda: [e.name for e in shell.host.settings.now.endpoints] == ["Ollama"])
    shell.until(lambda: [r.endpoint.name for r in ends.rows] == ["Ollama"])
    shell.press("Remove Ollama")
    box = shell.window.findChild(QMessageBox)
    assert box is not None
    shell.qtbot.mouseClick(next(b for b in box.buttons() if b.text() == "Remove"), LEFT)
    shell.until(lambda: shell.host.settings.now.endpoints == ())
    shell.until(lambda: secret(shell, "http://localhost:11434/v1") is None)


def test_weights_are_fetched_after_a_question_with_progress(make: Make) -> None:
    shell, tab = make()
    row = tab.local.rows[0]
    shell.qtbot.mouseClick(row.fetch, LEFT)
    assert shell.workspace.models.fetching is None
    box = shell.window.findChild(QMessageBox)
    assert box is not None
    assert "468.6 MB" in box.informativeText()
    shell.qtbot.mouseClick(next(b for b in box.buttons() if b.text() == "Download"), LEFT)
    shell.until(lambda: row.bar.isVisible() and row.bar.value() == 750)
    shell.bridge.call(_open_gate(shell.host)).result(5)
    shell.until(lambda: tab.local.rows[0].state.text() == "Ready")
    assert "qwen2.5-coder-0.5b" in shell.host.models.weights


def _open_gate(host: ShellHost) -> Callable[[object], object]:
    async def act(_host: object) -> None:
        host.models.gate.set()

    return act


def test_a_fetch_can_be_cancelled(make: Make) -> None:
    shell, tab = make()
    row = tab.local.rows[0]
    shell.workspace.models.fetch("qwen2.5-coder-0.5b")
    shell.until(row.cancel.isVisible)
    assert not tab.local.rows[1].fetch.isEnabled()
    shell.qtbot.mouseClick(row.cancel, LEFT)
    shell.until(lambda: shell.workspace.models.fetching is None)
    shell.until(lambda: tab.local.rows[0].fetch.isVisible())
    assert shell.host.models.weights == set()


def test_the_default_model_is_chosen_here(make: Make) -> None:
    shell, tab = make()
    type_key(shell, tab.keys["anthropic"])
    box = tab.default.box
    shell.until(lambda: box.findData("anthropic/claude-sonnet-4-5") >= 0)
    at = box.findData("anthropic/claude-sonnet-4-5")
    box.setCurrentIndex(at)
    box.activated.emit(at)
    shell.until(lambda: shell.host.settings.now.model.default == "anthropic/claude-sonnet-4-5")


def test_a_standing_permission_is_taken_back(make: Make) -> None:
    shell, _tab = make()
    shell.workspace.show_settings("permissions")
    shell.press("Take back files.read_*")
    shell.until(lambda: shell.host.rules == [])
    shell.until(lambda: "Nothing is allowed for good" in shell.texts())
