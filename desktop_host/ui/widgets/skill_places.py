"""The folders in which skills are looked for, in the order of their precedence, and those that could be."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog

from desktop_host.core.skill_admin import SkillPlace
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Page
from desktop_host.ui.widgets.pieces import Card, Elided, button, clear, column, icon_button, label, pill, row
from desktop_host.ui.widgets.skill_words import source_text


class PlaceCard(Card):
    """One folder."""

    def __init__(self, skills: Skills, place: SkillPlace, page: PlacesPage, *, used: bool, rank: int = 0) -> None:
        super().__init__(margin=Space.M, space=Space.S)
        path = Path(place.path)
        parts = [pill(source_text(place.kind), "" if used else "info")]
        if not place.exists:
            parts.append(pill(tr("skills.place.missing"), ""))
        if not place.writable and used:
            parts.append(pill(tr("skills.place.read_only")))
        if not place.trusted:
            parts.append(pill(tr("skills.place.untrusted"), "warning"))
        buttons = []
        if used and place.exists:
            reveal = button(tr("skills.place.reveal"), lambda: _reveal(path), role="quiet", icon="external")
            buttons.append(reveal)
        if not used:
            buttons.append(button(tr("skills.place.use"), lambda: page.use(path, True), icon="plus"))
        elif place.kind in ("extra", "foreign"):
            buttons.append(button(tr("skills.place.leave"), lambda: page.use(path, False), role="quiet"))
        elif place.kind == "project":
            project = path.parent.parent
            act = (lambda: page.use(project, False, True)) if place.trusted else (lambda: page.use(project, True, True))
            buttons.append(button(tr("skills.place.distrust" if place.trusted else "skills.place.trust"), act))
        for one in buttons:
            one.setAccessibleName(f"{one.text()}: {place.path}")
        head = row(space=Space.S)
        if rank:
            head.addWidget(label(f"{rank}.", "muted", wrap=False))
        head.addWidget(Elided(place.path, "code", Qt.TextElideMode.ElideMiddle), 1)
        self.add(head, Flow(*parts, *buttons, space=Space.XS))
        self.setAccessibleName(f"{source_text(place.kind)}: {place.path}")


class PlacesPage(Page):
    """See the module."""

    back = Signal()

    def __init__(self, skills: Skills) -> None:
        super().__init__()
        self._skills = skills
        head = row(icon_button("chevron-left", tr("skills.back"), self.back.emit), label(tr("skills.places"), "title"))
        self.add_folder = button(tr("skills.place.add"), lambda: self._choose(False), role="primary", icon="folder")
        self.add_project = button(tr("skills.place.add_project"), lambda: self._choose(True), icon="shield")
        self._used = column(space=Space.S)
        self._others = column(space=Space.S)
        self.add(
            head, label(tr("skills.places.lead"), "muted"), Flow(self.add_folder, self.add_project), self._used,
            self._others,
        )  # fmt: skip
        skills.loaded.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Read the folders again."""
        self._skills.places(while_alive(self, self._show), self)

    def use(self, folder: Path, on: bool, project: bool = False) -> None:
        """Look into a folder, or not any more."""
        self._skills.use_place(folder, on, while_alive(self, self.refresh), project=project)

    def _show(self, used: tuple[SkillPlace, ...], others: tuple[SkillPlace, ...]) -> None:
        clear(self._used)
        clear(self._others)
        for rank, place in enumerate(used, 1):
            self._used.addWidget(PlaceCard(self._skills, place, self, used=True, rank=rank))
        if others:
            self._others.addWidget(label(tr("skills.places.foreign"), "heading"))
            self._others.addWidget(label(tr("skills.places.foreign.lead"), "muted"))
        for place in others:
            self._others.addWidget(PlaceCard(self._skills, place, self, used=False))

    def _choose(self, project: bool) -> None:
        dialog = QFileDialog(self, tr("skills.place.add_project" if project else "skills.place.add"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self.use(Path(path), True, project))
        dialog.open()


def _reveal(path: Path) -> None:
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
