"""What is asked before a skill is exported or uninstalled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QStandardPaths, Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from desktop_host.i18n import tr, trn
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.confirm import confirm


def ask_remove(parent: QWidget, skills: Skills, name: str) -> None:
    """Ask, then uninstall a skill."""
    skill = skills.row(name)
    count = len(skill.versions) if skill else 1
    confirm(
        parent, tr("skills.remove.title", name=name), trn("skills.remove.text", count), tr("skills.remove"),
        lambda: skills.remove(name),
    )  # fmt: skip


def ask_export(parent: QWidget, skills: Skills, name: str, done: Callable[[Path], None]) -> QFileDialog:
    """Ask where to, then write a skill as an archive."""
    folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation)
    dialog = QFileDialog(parent, tr("skills.export"), folder, f"{tr('skills.archive')} (*.zip *.skill)")
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix("zip")
    dialog.selectFile(f"{name}.zip")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: skills.export(name, Path(path), done))
    dialog.open()
    return dialog
