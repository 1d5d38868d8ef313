"""The list of skills: search, filters, a sentence to try, cards."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QButtonGroup, QPushButton

from desktop_host.core.skill_admin import SkillRow
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Empty, ErrorCard, Page
from desktop_host.ui.widgets.pieces import button, clear, column, label
from desktop_host.ui.widgets.search_field import SearchField
from desktop_host.ui.widgets.skill_card import SkillCard
from desktop_host.ui.widgets.skill_served import ServedList
from desktop_host.ui.widgets.skill_triggers import TriggerTester

FILTERS = ("all", "troubled", "off")
MOST = 30
"""Cards that are made at once; the rest on wish."""
FIRST, STEP = 8, 4
"""Cards that are made at once (a card takes about 10 ms), and then between two looks at events."""
SEARCH_MS = 120


class SkillList(Page):
    """Search, filters, cards."""

    opened = Signal(str, str)
    wanted = Signal(str, str)
    install = Signal()
    places = Signal()

    def __init__(self, skills: Skills) -> None:
        super().__init__()
        self._skills = skills
        self.cards: dict[str, SkillCard] = {}
        """Path to card, in the order shown."""
        self._most = MOST
        self._shown: tuple[object, ...] = ()
        self.install_button = button(tr("command.skills.install"), self.install.emit, role="primary", icon="plus")
        self.places_button = button(tr("skills.places"), self.places.emit, role="quiet", icon="folder")
        self.test_button = button(tr("skills.test.button"), self._toggle_test, role="quiet", icon="play")
        self.test_button.setCheckable(True)
        self.search = SearchField(tr("skills.search"))
        self._waiting: list[SkillRow] = []
        """Rows whose cards are still to be made."""
        self._next = QTimer(self)
        self._next.setSingleShot(True)
        self._next.setInterval(0)
        self._next.timeout.connect(lambda: self._add_cards(STEP))
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SEARCH_MS)
        self._timer.timeout.connect(self.fill)
        self.search.textChanged.connect(lambda _t: self._timer.start())
        self.filters: dict[str, QPushButton] = {}
        group = QButtonGroup(self)
        for name in FILTERS:
            made = button(tr(f"skills.filter.{name}"), role="filter")
            made.setCheckable(True)
            made.setChecked(name == "all")
            made.clicked.connect(self.fill)
            group.addButton(made)
            self.filters[name] = made
        self.tester: TriggerTester | None = None
        self._test_room = column()
        self._list = column(space=Space.M)
        self.served = ServedList(skills.served)
        self.more = button("", self._show_more, role="quiet", icon="chevron-down")
        heading = label(tr("nav.skills"), "title", wrap=False)
        self.add(
            heading, label(tr("skills.lead"), "muted"),
            Flow(self.install_button, self.places_button, self.test_button), self.search,
            Flow(*self.filters.values(), space=Space.XS), self._test_room, self._list, Flow(self.more),
            self.served,
        )  # fmt: skip
        self.more.hide()
        skills.loaded.connect(self.fill)
        self.fill()

    def fill(self) -> None:
        """Show what fits the search and the filter now."""
        self._timer.stop()
        skills = self._skills
        off = [r for r in skills.rows if not r.enabled]
        counts = {"all": len(skills.rows), "troubled": len(skills.troubled), "off": len(off)}
        for name, made in self.filters.items():
            made.setText(f"{tr(f'skills.filter.{name}')}  {counts[name]}")
            made.setHidden(not (counts[name] or made.isChecked()) or not skills.rows)
        some = bool(skills.rows) or skills.reading or skills.error is not None
        for part in (self.search, self.install_button, self.places_button, self.test_button):
            part.setHidden(not some)
        rows = self._rows()
        state = (rows, skills.reading, skills.error, self._most, self.search.text())
        if state == self._shown:
            return
        before, self._shown = self._shown, state
        if before and self._same_cards(rows):
            self._replace(rows)
        else:
            self._rebuild(rows)

    def _rows(self) -> tuple[SkillRow, ...]:
        rows = self._skills.matching(self.search.text())
        if self.filters["troubled"].isChecked():
            paths = {r.path for r in self._skills.troubled}
            rows = tuple(r for r in rows if r.path in paths)
        elif self.filters["off"].isChecked():
            rows = tuple(r for r in rows if not r.enabled)
        return rows

    def _same_cards(self, rows: tuple[SkillRow, ...]) -> bool:
        return bool(rows) and [r.path for r in rows[: self._most]] == list(self.cards)

    def _replace(self, rows: tuple[SkillRow, ...]) -> None:
        """Only cards whose skill changed are made anew; place and focus stay."""
        for skill in rows[: self._most]:
            old = self.cards[skill.path]
            if old.skill == skill:
                continue
            at = self._list.indexOf(old)
            focused = self.focusWidget()
            within = focused is not None and old.isAncestorOf(focused)
            made = self._card(skill)
            self._list.insertWidget(at, made)
            self._list.removeWidget(old)
            self.cards[skill.path] = made
            if within:
                (made.switch if focused is old.switch else made.title).setFocus()
            old.hide()
            old.deleteLater()

    def _rebuild(self, rows: tuple[SkillRow, ...]) -> None:
        clear(self._list)
        self.cards = {}
        skills = self._skills
        if skills.error is not None:
            self._list.addWidget(ErrorCard(skills.error, skills.refresh))
        elif skills.reading:
            self._list.addWidget(Empty("clock", tr("skills.reading"), ""))
        elif not skills.rows:
            step = (tr("command.skills.install"), self.install.emit)
            second = (tr("skills.places"), self.places.emit)
            self._list.addWidget(Empty("skills", tr("skills.empty"), tr("skills.empty.text"), step, second))
        elif not rows:
            again = (tr("skills.no_match.clear"), self._clear)
            self._list.addWidget(Empty("search", tr("skills.no_match"), "", again))
        self._waiting = list(rows[: self._most])
        self._add_cards(FIRST)
        left = len(rows) - self._most
        self.more.setText(trn("skills.show_more", left))
        self.more.setVisible(left > 0)

    def _add_cards(self, count: int) -> None:
        """Make the next cards; the rest follow while the window goes on."""
        now, self._waiting = self._waiting[:count], self._waiting[count:]
        for skill in now:
            self.cards[skill.path] = self._card(skill)
            self._list.addWidget(self.cards[skill.path])
        if self._waiting:
            self._next.start()

    def _card(self, skill: SkillRow) -> SkillCard:
        made = SkillCard(self._skills, skill)
        made.opened.connect(self.opened)
        made.wanted.connect(self.wanted)
        return made

    def _clear(self) -> None:
        self.search.clear()
        self.filters["all"].setChecked(True)
        self.fill()

    def _show_more(self) -> None:
        self._most += 2 * MOST
        self.fill()

    def _toggle_test(self) -> None:
        if self.tester is None:
            self.tester = TriggerTester(self._skills)
            self._test_room.addWidget(self.tester)
        self.tester.setVisible(self.test_button.isChecked())
        if self.test_button.isChecked():
            self.tester.field.setFocus(Qt.FocusReason.OtherFocusReason)
