"""The one modal question: before something is destroyed."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from desktop_host.i18n import tr
from desktop_host.ui.theme import set_role


def confirm(parent: QWidget, title: str, text: str, action: str, act: Callable[[], object]) -> QMessageBox:
    """Ask, and do it on yes. Returns at once; Escape and Enter both mean no."""
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setIcon(QMessageBox.Icon.NoIcon)
    box.setWindowTitle(title)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(title)
    box.setInformativeText(text)
    yes = box.addButton(action, QMessageBox.ButtonRole.DestructiveRole)
    set_role(yes, "danger")
    no = box.addButton(tr("action.cancel"), QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(no)
    box.setEscapeButton(no)
    box.buttonClicked.connect(lambda clicked: act() if clicked is yes else None)
    box.open()
    return box
