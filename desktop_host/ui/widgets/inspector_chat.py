"""What a chat may use and what it has cost: tokens, money, context, servers with their tools and resources, skills."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHeaderView, QProgressBar, QTreeWidget, QTreeWidgetItem

from desktop_host.core.servers import ResourceSpec
from desktop_host.core.tools import ToolSpec
from desktop_host.core.transcript import AssistantEntry, Transcript, UserEntry
from desktop_host.engine.host import Host
from desktop_host.i18n import tr, trn
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, icon, theme
from desktop_host.ui.viewmodels.chat import Chat
from desktop_host.ui.viewmodels.choices import ServerChoice
from desktop_host.ui.widgets.chat_folders import ChatFolders
from desktop_host.ui.widgets.chat_groups import ChatGroups
from desktop_host.ui.widgets.inspector_budgets import Budgets
from desktop_host.ui.widgets.page import Page
from desktop_host.ui.widgets.pieces import Card, label
from desktop_host.ui.widgets.server_overview import Facts

_SERVER = int(Qt.ItemDataRole.UserRole)
_PART = _SERVER + 1
"""`tools` or `resources` of a row that is filled when it is opened."""
MOST = 500
VISIBLE_ROWS = 24


def money(usd: float | None) -> str:
    """An amount in US dollars; small ones keep their figures."""
    if usd is None:
        return tr("inspector.cost.unknown")
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def context_used(transcript: Transcript) -> int:
    """Input tokens of the newest request: how full the model's context is."""
    replies = (e for e in reversed(transcript.entries) if isinstance(e, AssistantEntry) and e.input_tokens)
    newest = next(replies, None)
    return newest.input_tokens + newest.output_tokens if newest else 0


class ChatFacts(Page):
    """The panel's first tab."""

    server_wanted = Signal(str, str)

    def __init__(self, bridge: Bridge, chat: Chat) -> None:
        super().__init__(inside=True)
        self._bridge, self._chat = bridge, chat
        self._on = False
        self._shown: tuple[ServerChoice, ...] = ()
        self._spent: tuple[object, ...] = ()
        self.meter = Facts()
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("inspector.context"))
        self.context = label("", "caption")
        card = Card(margin=Space.M)
        card.add(self.meter, self.context, self.bar)
        self.budgets = Budgets(bridge)
        self.skills = label("", selectable=True)
        self._skills = Card(margin=Space.M)
        self._skills.add(label(tr("inspector.skills"), "caption"), self.skills)
        self.tree = QTreeWidget()
        self.tree.setAccessibleName(tr("inspector.servers"))
        self.tree.setColumnCount(2)
        self.tree.setHeaderHidden(True)
        self.tree.setUniformRowHeights(True)
        self.tree.header().setStretchLastSection(False)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.tree.itemExpanded.connect(self._expand)
        self.tree.itemExpanded.connect(lambda _i: self._fit_tree())
        self.tree.itemCollapsed.connect(lambda _i: self._fit_tree())
        self.tree.itemActivated.connect(self._activated)
        self.servers = label("", "caption")
        self.folders = ChatFolders(chat.choices)
        self.groups = ChatGroups(bridge, chat, chat.failed.emit)
        self.add(card, self.budgets, self._skills, self.folders, self.groups, self.servers, self.tree)
        chat.transcript.status.connect(self._refresh)
        chat.transcript.status.connect(self._refresh_groups)
        chat.opened.connect(self._refresh_groups)
        chat.transcript.changed.connect(lambda _e: self._refresh())
        chat.opened.connect(self._refresh)
        chat.choices.servers_changed.connect(self._refresh)
        chat.choices.models_changed.connect(self._refresh)
        self._skills.hide()

    def follow(self, on: bool) -> None:
        """Keep up with the chat, or rest."""
        self._on = on
        if on:
            self._refresh()
            self._refresh_groups()

    # ---- inside

    def _refresh_groups(self) -> None:
        if self._on:  # The model may have switched some.
            self.groups.refresh()

    def _refresh(self) -> None:
        if not self._on:
            return
        now, choices = self._chat.transcript.now, self._chat.choices
        entry = choices.model_entry
        self.meter.put((
            (tr("inspector.model"), entry.title if entry else choices.model),
            (tr("inspector.tokens_in"), f"{now.input_tokens:,}"),
            (tr("inspector.tokens_out"), f"{now.output_tokens:,}"),
            (tr("inspector.cost"), money(now.cost_usd)),
        ))  # fmt: skip
        spent = (self._chat.session, now.cost_usd, now.state)
        if spent != self._spent:
            self._spent = spent
            self.budgets.read(self._chat.session or None)
        self._show_context(context_used(now), entry.context_window if entry else None)
        pins = {f"{p.name} {p.version}" for e in now.entries if isinstance(e, UserEntry) for p in e.skills}
        self.skills.setText("\n".join(sorted(pins)))
        self._skills.setVisible(bool(pins))
        self._show_servers(tuple(s for s in choices.servers if s.on))

    def _show_context(self, used: int, window: int | None) -> None:
        known = bool(window)
        self.bar.setVisible(known)
        if window:
            self.bar.setRange(0, window)
            self.bar.setValue(min(used, window))
            percent = round(100 * used / window)
            self.context.setText(tr("inspector.context_of", used=f"{used:,}", of=f"{window:,}", percent=percent))
        else:
            self.context.setText(tr("inspector.context_used", used=f"{used:,}"))

    def _show_servers(self, servers: tuple[ServerChoice, ...]) -> None:
        tokens = sum(s.tokens for s in servers)
        self.tree.setVisible(bool(servers))
        self.servers.setText(tr("inspector.servers_sum", n=len(servers), tokens=f"{tokens:,}"))
        if servers == self._shown:
            return
        open_ = {i.data(0, _SERVER) for i in self._tops() if i.isExpanded()}
        self._shown = servers
        self.tree.clear()
        for one in servers:
            item = QTreeWidgetItem([one.title, trn("tool.tokens", one.tokens)])
            item.setIcon(0, icon("servers", "success" if one.state == "ready" else "muted", 16))
            item.setToolTip(0, f"{one.alias}: {tr(f'server.state.{one.state}')}")
            item.setData(0, Qt.ItemDataRole.AccessibleTextRole, f"{one.title}, {tr(f'server.state.{one.state}')}")
            item.setData(0, _SERVER, one.alias)
            for part in ("tools", "resources"):
                below = QTreeWidgetItem(item, [tr(f"server.tab.{part}"), str(one.tools) if part == "tools" else ""])
                below.setData(0, _SERVER, one.alias)
                below.setData(0, _PART, part)
                below.setChildIndicatorPolicy(QTreeWidgetItem.ChildIndicatorPolicy.ShowIndicator)
            self.tree.addTopLevelItem(item)
            item.setExpanded(one.alias in open_)
        self._fit_tree()

    def _fit_tree(self) -> None:
        """As high as what is open, within reason; the page scrolls, the tree only when it is long."""
        rows, item = 0, self.tree.topLevelItem(0)
        while item is not None and rows < VISIBLE_ROWS:
            rows += 1
            item = self.tree.itemBelow(item)
        side = theme.px(16)
        self.tree.setIconSize(QSize(side, side))
        self.tree.setIndentation(theme.px(18))
        self.tree.setFixedHeight(max(2, rows) * max(self.tree.sizeHintForRow(0), side) + theme.px(Space.M))

    def _tops(self) -> list[QTreeWidgetItem]:
        found = (self.tree.topLevelItem(i) for i in range(self.tree.topLevelItemCount()))
        return [item for item in found if item is not None]

    def _expand(self, item: QTreeWidgetItem) -> None:
        part, alias = item.data(0, _PART), item.data(0, _SERVER)
        if not part or item.childCount():
            return
        shown = self._shown
        row = next((i for i, top in enumerate(self._tops()) if top.data(0, _SERVER) == alias), -1)

        def put(lines: list[tuple[str, str, str]]) -> None:
            if self._shown is not shown:
                return
            parent = self._tops()[row].child(0 if part == "tools" else 1)
            assert parent is not None
            for text, more, tip in lines[:MOST] or [(tr("inspector.none"), "", "")]:
                child = QTreeWidgetItem(parent, [text, more])
                child.setToolTip(0, tip)
                child.setData(0, _SERVER, alias)
            self._fit_tree()

        if part == "tools":
            self._bridge.then(
                lambda host: _tools(host, alias),
                lambda got: put([(t.display_name, trn("tool.tokens", t.tokens), t.description) for t in got]),
                None, self,
            )  # fmt: skip
        else:
            self._bridge.then(
                lambda host: _resources(host, alias),
                lambda got: put([(r.title or r.name, r.mime_type or "", r.uri) for r in got]), None, self,
            )  # fmt: skip

    def _activated(self, item: QTreeWidgetItem, _column: int) -> None:
        parent = item.parent()
        part = item.data(0, _PART) or (parent.data(0, _PART) if parent is not None else None)
        self.server_wanted.emit(item.data(0, _SERVER), part or "overview")


async def _tools(host: Host, alias: str) -> tuple[ToolSpec, ...]:
    return tuple(t for t in host.servers.tools(alias) if t.enabled)


async def _resources(host: Host, alias: str) -> tuple[ResourceSpec, ...]:
    return await host.servers.resources(alias)
