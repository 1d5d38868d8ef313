"""Before a skill is installed: what it holds, what it asks for and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.skill_admin import InstallPreview
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.skills import Installed, Offer, Skills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Empty, ErrorCard, Page
from desktop_host.ui.widgets.pieces import (
    Card,
    CodeBox,
    Elided,
    button,
    clear,
    column,
    icon_button,
    label,
    pill,
    row,
)
from desktop_host.ui.widgets.server_words import size
from desktop_host.ui.widgets.skill_files import FileView
from desktop_host.ui.widgets.skill_health import Note, ProblemLine
from desktop_host.ui.widgets.skill_words import version_text


class PreviewCard(Card):
    """One skill as it would be installed."""

    def __init__(self, skills: Skills, path: Path, found: InstallPreview) -> None:
        super().__init__()
        self._found = found
        self.setAccessibleName(f"{found.name} {found.version}".strip())
        pills = [pill(version_text(found.version)), pill(trn("skills.files", len(found.files)))]
        pills.append(pill(size(found.size)))
        pills.append(pill(trn("skills.scripts", len(found.scripts)), "warning" if found.scripts else ""))
        self.add(label(found.name, "heading", selectable=True), Flow(*pills, space=Space.XS))
        if found.description:
            self.add(label(found.description, selectable=True))
        if found.replaces:
            self.add(Note(tr("skills.install.replaces", digest=found.replaces[:12]), "info", "info"))
        if found.scripts:
            self.add(Note(tr("skills.install.scripts")), CodeBox("\n".join(found.scripts), tr("skills.scripts_name")))
        if found.allowed_tools:
            self.add(label(tr("skills.install.tools"), "muted"))
            self.add(CodeBox("\n".join(found.allowed_tools), tr("skills.tools_name")))
        for problem in found.problems:
            self.add(ProblemLine(problem))

        def read(file: str, done: Callable[[bytes], None], failed: Callable[[HostError], None]) -> None:
            skills.ask(lambda host: host.skills.preview_file(path, found.name, file), done, failed, self)

        self.files = FileView(read)
        self.files.hide()
        self.fold = button(tr("skills.install.files"), self._unfold, role="link")
        self.add(Flow(self.fold), self.files)

    def _unfold(self) -> None:
        shown = self.files.isHidden()
        if shown:
            self.files.show_files(self._found.files)
        self.files.setVisible(shown)
        self.fold.setText(tr("skills.install.fewer" if shown else "skills.install.files"))


class OfferBlock(QWidget):
    """What one dropped path holds, with a mark that takes it."""

    def __init__(self, skills: Skills, offer: Offer, *, alone: bool) -> None:
        super().__init__()
        self.offer = offer
        inner = column(self, space=Space.S)
        self.take = QCheckBox(offer.path.name)
        self.take.setChecked(offer.error is None and bool(offer.found))
        self.take.setEnabled(offer.error is None and bool(offer.found))
        self.take.setToolTip(str(offer.path))
        if alone:
            self.take.hide()
        inner.addWidget(self.take)
        path = Elided(str(offer.path), "code")
        inner.addWidget(path)
        if offer.error is not None:
            inner.addWidget(ErrorCard(offer.error))
        for found in offer.found:
            inner.addWidget(PreviewCard(skills, offer.path, found))
        if offer.error is None and not offer.found:
            inner.addWidget(Note(tr("skills.install.nothing")))


class InstallPage(Page):
    """Previews of what was dropped or chosen; nothing is copied before the person says so."""

    back = Signal()
    installed = Signal(object)
    """`Installed`, at least partly."""

    def __init__(self, skills: Skills) -> None:
        super().__init__()
        self._skills = skills
        self.blocks: list[OfferBlock] = []
        head = row(
            icon_button("chevron-left", tr("skills.back"), self.back.emit), label(tr("skills.install.title"), "title")
        )
        self._found = column(space=Space.L)
        self._failed = column(space=Space.S)
        self.go = button(tr("skills.install"), self._install, role="primary", icon="download")
        self.no = button(tr("action.cancel"), self.back.emit)
        self.add(head, label(tr("skills.install.lead"), "muted"), self._failed, self._found, Flow(self.go, self.no))

    def begin(self, paths: tuple[Path, ...]) -> None:
        """Look into these; what was shown before is gone."""
        clear(self._failed)
        clear(self._found)
        self.blocks = []
        self.go.setEnabled(False)
        self._found.addWidget(Empty("clock", tr("skills.install.reading"), ", ".join(p.name for p in paths)))
        self._skills.preview(paths, while_alive(self, self._show), self)

    def _show(self, offers: tuple[Offer, ...]) -> None:
        clear(self._found)
        self.blocks = [OfferBlock(self._skills, offer, alone=len(offers) == 1) for offer in offers]
        for block in self.blocks:
            block.take.toggled.connect(lambda _on: self._count())
            self._found.addWidget(block)
        self._count()
        if self.go.isEnabled():
            self.go.setFocus()

    def _chosen(self) -> tuple[Offer, ...]:
        return tuple(b.offer for b in self.blocks if b.take.isChecked())

    def _count(self) -> None:
        chosen = self._chosen()
        skills = sum(len(o.found) for o in chosen)
        self.go.setEnabled(bool(skills))
        replaces = len(chosen) == 1 and skills == 1 and chosen[0].replaces
        words = tr("skills.replace") if replaces else trn("skills.install_n", skills)
        self.go.setText(words if skills else tr("skills.install"))

    def _install(self) -> None:
        self.go.setEnabled(False)
        self._skills.install(self._chosen(), while_alive(self, self._settled), self)

    def _settled(self, outcome: Installed) -> None:
        clear(self._failed)
        for path, error in outcome.failed:
            self._failed.addWidget(label(str(path), "code", selectable=True))
            self._failed.addWidget(ErrorCard(error))
        if outcome.rows:
            self.installed.emit(outcome)
        if outcome.failed:
            self._count()
            self.verticalScrollBar().setValue(0)
