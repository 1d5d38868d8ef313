"""One skill's page: header with its acts, and a tab each for what can be known of it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QTabWidget, QVBoxLayout, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.skill_admin import SkillDetail, SkillRow
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Centred, ErrorCard
from desktop_host.ui.widgets.pieces import Elided, button, clear, column, icon_button, label, pill, row, set_pill
from desktop_host.ui.widgets.skill_files import FilesTab
from desktop_host.ui.widgets.skill_history import ChatsTab, HistoryTab
from desktop_host.ui.widgets.skill_overview import OverviewTab
from desktop_host.ui.widgets.skill_triggers import TriggersTab
from desktop_host.ui.widgets.skill_versions import VersionsTab
from desktop_host.ui.widgets.skill_words import TONES, source_text, state_text, version_text
from desktop_host.ui.widgets.switch import Switch

TABS = ("overview", "files", "triggers", "versions", "chats", "history")


class SkillDetailPage(Centred):
    """See the module. A tab is made when it is first shown."""

    back = Signal()
    wanted = Signal(str, str)
    """`(act, id)`: `export` or `remove`."""
    chat_wanted = Signal(str)

    def __init__(self, skills: Skills, name: str) -> None:
        super().__init__()
        self.name = name
        self._skills = skills
        self.detail: SkillDetail | None = None
        self.title = Elided(name, "title", snug=True)
        self.state, self.source = pill(""), pill("")
        self.switch = Switch(tr("skills.enabled_of", name=name))
        self.switch.clicked.connect(lambda on: skills.enable(name, on))
        self.on = label(tr("skills.enabled"), wrap=False)
        self.version = QComboBox()
        self.version.setAccessibleName(tr("skills.version.shown"))
        self.version.currentIndexChanged.connect(lambda _i: self.refresh())
        self.export = button(tr("skills.export"), lambda: self.wanted.emit("export", name), icon="download")
        self.gone = button(tr("skills.remove"), lambda: self.wanted.emit("remove", name), role="quiet", icon="trash")
        head = row(icon_button("chevron-left", tr("skills.back"), self.back.emit), self.title, self.state, self.source,
                   None)  # fmt: skip
        onoff = QWidget()
        row(self.switch, self.on, space=Space.XS, owner=onoff)
        self._acts = Flow(onoff, self.version, self.export, self.gone)
        self._trouble = column()
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.setUsesScrollButtons(True)
        for tab in TABS:
            holder = QWidget()
            QVBoxLayout(holder).setContentsMargins(0, 0, 0, 0)
            self.tabs.addTab(holder, tr(f"skills.tab.{tab}"))
        self.tabs.currentChanged.connect(self._content)
        self.column.addLayout(head)
        self.column.addLayout(self._acts)
        self.column.addLayout(self._trouble)
        self.column.addWidget(self.tabs, 1)
        skills.loaded.connect(self._rows_changed)
        skills.changed.connect(self._files_changed)
        self._made: dict[str, QWidget] = {}
        self._row: SkillRow | None = None
        self._content(0)
        self._rows_changed()

    def show_tab(self, tab: str) -> QWidget:
        """Show a tab of `TABS`; returns what stands in it."""
        self.tabs.setCurrentIndex(TABS.index(tab))
        return self._content(TABS.index(tab))

    def refresh(self) -> None:
        """Read the skill again."""
        version = self.version.currentData()
        self._skills.ask(
            lambda host: host.skills.skill(self.name, None if version is None else version or "-"),
            while_alive(self, self._show), while_alive(self, self._fail), self,
        )  # fmt: skip

    # ---- inside

    def _files_changed(self, names: tuple[str, ...]) -> None:
        if self.name in names:
            self.refresh()

    def _rows_changed(self) -> None:
        found = self._skills.row(self.name)
        if found is None:
            return
        self.title.put(found.label or found.name)
        set_pill(self.state, state_text(found), TONES[found.state])
        set_pill(self.source, source_text(found.source))
        self.switch.put(found.enabled)
        self.switch.setEnabled(found.loaded)
        self.gone.setEnabled(found.removable)
        self.gone.setToolTip("" if found.removable else tr("skills.not_removable"))
        names = [v.version for v in found.versions]
        if names != [self.version.itemData(i) for i in range(self.version.count())]:
            blocked = self.version.blockSignals(True)
            chosen = self.version.currentData() or found.version
            self.version.clear()
            for version in names:
                self.version.addItem(version_text(version), version)
            self.version.setCurrentIndex(max(0, self.version.findData(chosen)))
            self.version.blockSignals(blocked)
        self.version.setVisible(len(names) > 1)
        if found == self._row:
            return
        self._row = found
        self.refresh()
        for tab in ("chats", "history"):
            made = self._made.get(tab)
            if isinstance(made, ChatsTab | HistoryTab):
                made.refresh()

    def _show(self, detail: SkillDetail) -> None:
        clear(self._trouble)
        self.detail = detail
        for made in self._made.values():
            self._fill(made)

    def _fill(self, made: QWidget) -> None:
        if self.detail is None:
            return
        match made:
            case OverviewTab() | FilesTab() | TriggersTab():
                made.show_detail(self.detail)
            case VersionsTab():
                made.show_row(self.detail.row)

    def _fail(self, error: HostError) -> None:
        clear(self._trouble)
        self._trouble.addWidget(ErrorCard(error, self.refresh))

    def _content(self, at: int) -> QWidget:
        tab = TABS[at]
        if tab not in self._made:
            holder = self.tabs.widget(at)
            layout = holder.layout() if holder is not None else None
            assert layout is not None
            made = self._made[tab] = self._make(tab)
            layout.addWidget(made)
            self._fill(made)
        return self._made[tab]

    def _make(self, tab: str) -> QWidget:
        skills, name = self._skills, self.name
        makers: dict[str, Callable[[], QWidget]] = {
            "overview": lambda: OverviewTab(skills),
            "files": lambda: FilesTab(skills, name),
            "triggers": lambda: TriggersTab(skills, name),
            "versions": lambda: VersionsTab(skills, name),
            "chats": self._chats,
            "history": lambda: HistoryTab(skills, name),
        }
        return makers[tab]()

    def _chats(self) -> ChatsTab:
        made = ChatsTab(self._skills, self.name)
        made.opened.connect(self.chat_wanted)
        return made
