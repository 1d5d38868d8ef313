"""The skills library: cards, one skill's page, the preview before an installation, and the folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QMenu, QStackedWidget, QWidget

from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, icon, set_role
from desktop_host.ui.viewmodels.skills import Installed, Skills
from desktop_host.ui.widgets.pieces import column, icon_label, label
from desktop_host.ui.widgets.skill_acts import ask_export, ask_remove
from desktop_host.ui.widgets.skill_detail import SkillDetailPage
from desktop_host.ui.widgets.skill_install import InstallPage
from desktop_host.ui.widgets.skill_list import SkillList
from desktop_host.ui.widgets.skill_places import PlacesPage

Say = Callable[..., None]
"""`(text, icon, action)` of a notice."""
ENDINGS = (".zip", ".skill")


class SkillsPage(QStackedWidget):
    """List, detail, preview and folders, one at a time. Folders and archives may be dropped anywhere on it."""

    chat_wanted = Signal(str)
    """Id of a chat to show."""

    def __init__(self, skills: Skills, say: Say) -> None:
        super().__init__()
        self._skills, self._say = skills, say
        self.setAcceptDrops(True)
        self.list = SkillList(skills)
        self.list.opened.connect(self.show_skill)
        self.list.wanted.connect(self._do)
        self.list.install.connect(self.choose)
        self.list.places.connect(self.show_places)
        self.addWidget(self.list)
        self.other: QWidget | None = None
        """The detail, preview or folders page, while one is shown."""
        self._veil = QFrame(self)
        set_role(self._veil, "drop")
        veil = column(self._veil, space=Space.S)
        veil.addStretch(1)
        veil.addWidget(icon_label("download", "accent", 36), 0, Qt.AlignmentFlag.AlignHCenter)
        veil.addWidget(label(tr("skills.drop"), "heading", wrap=False), 0, Qt.AlignmentFlag.AlignHCenter)
        veil.addStretch(1)
        self._veil.hide()
        skills.removed.connect(self._removed)

    @property
    def detail(self) -> SkillDetailPage | None:
        """The skill's page that is shown."""
        return self.other if isinstance(self.other, SkillDetailPage) else None

    def show_list(self) -> None:
        """All skills."""
        self._put(None)

    def show_skill(self, name: str, tab: str = "") -> None:
        """One skill's page."""
        shown = self.detail
        if shown is None or shown.name != name:
            shown = SkillDetailPage(self._skills, name)
            shown.back.connect(self.show_list)
            shown.wanted.connect(self._do)
            shown.chat_wanted.connect(self.chat_wanted)
            self._put(shown)
        if tab:
            shown.show_tab(tab)

    def show_places(self) -> None:
        """The folders."""
        made = PlacesPage(self._skills)
        made.back.connect(self.show_list)
        self._put(made)

    def show_install(self, paths: tuple[Path, ...]) -> InstallPage:
        """A preview of what these hold."""
        made = InstallPage(self._skills)
        made.back.connect(self.show_list)
        made.installed.connect(self._installed)
        self._put(made)
        made.begin(paths)
        return made

    def choose(self) -> None:
        """Ask for a folder or archives to install."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(icon("folder"), tr("skills.choose.folder"), lambda: self._dialog(True))
        menu.addAction(icon("document"), tr("skills.choose.files"), lambda: self._dialog(False))
        anchor = self.list.install_button
        below = anchor.mapToGlobal(anchor.rect().bottomLeft())
        menu.popup(below if anchor.isVisible() else self.mapToGlobal(self.rect().center()))

    # ---- dropping

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped(event.mimeData()):
            event.acceptProposedAction()
            self._veil.setGeometry(self.rect().adjusted(Space.S, Space.S, -Space.S, -Space.S))
            self._veil.show()
            self._veil.raise_()

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        self._veil.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        self._veil.hide()
        paths = dropped(event.mimeData())
        if paths:
            event.acceptProposedAction()
            self.show_install(paths)

    # ---- inside

    def _dialog(self, folder: bool) -> None:
        dialog = QFileDialog(self, tr("command.skills.install"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if folder:
            dialog.setFileMode(QFileDialog.FileMode.Directory)
        else:
            dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
            dialog.setNameFilter(f"{tr('skills.archive')} (*.zip *.skill)")
        dialog.filesSelected.connect(lambda names: self.show_install(tuple(Path(n) for n in names)))
        dialog.open()

    def _put(self, widget: QWidget | None) -> None:
        old, self.other = self.other, widget
        if widget is not None:
            self.addWidget(widget)
        self.setCurrentWidget(widget or self.list)
        if old is not None and old is not widget:
            self.removeWidget(old)
            old.deleteLater()

    def _do(self, act: str, name: str) -> None:
        if act == "remove":
            ask_remove(self, self._skills, name)
        else:
            ask_export(self, self._skills, name, lambda path: self._say(tr("skills.exported", path=path), "check"))

    def _removed(self, name: str) -> None:
        self._say(tr("skills.removed", name=name), "check")
        if self.detail is not None and self.detail.name == name:
            self.show_list()

    def _installed(self, outcome: Installed) -> None:
        names = tuple(dict.fromkeys(r.name for r in outcome.rows))
        self._say(trn("skills.installed", len(names), names=", ".join(names[:4])), "check")
        if not outcome.failed:
            self.show_skill(names[0]) if len(names) == 1 else self.show_list()


def dropped(source: QMimeData) -> tuple[Path, ...]:
    """The folders and archives in what was dropped; a SKILL.md stands for its folder."""
    paths = []
    for url in source.urls() if source.hasUrls() else []:
        path = Path(url.toLocalFile()) if url.isLocalFile() else None
        if path is None:
            continue
        if path.name.lower() == "skill.md":
            paths.append(path.parent)
        elif path.is_dir() or path.suffix.lower() in ENDINGS:
            paths.append(path)
    return tuple(dict.fromkeys(paths))
