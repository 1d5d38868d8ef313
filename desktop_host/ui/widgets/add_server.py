"""Adding a server: paste, drop or pick anything, see exactly what would run, then decide. Nothing starts before."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QComboBox, QFileDialog, QLineEdit, QPlainTextEdit, QScrollArea, QWidget

from desktop_host.core.bundles import BundlePreview
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.server_ports import Clash, InstallLink
from desktop_host.core.servers import ImportedServer
from desktop_host.core.text import decoded
from desktop_host.core.values import EMPTY, FrozenDict
from desktop_host.engine.host import Host
from desktop_host.i18n import tr, trn
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import Field
from desktop_host.ui.widgets.page import Page, told
from desktop_host.ui.widgets.pieces import (
    button,
    clear,
    column,
    icon_button,
    label,
    row,
)
from desktop_host.ui.widgets.server_bundle import BundleCard
from desktop_host.ui.widgets.server_found import FoundCard
from desktop_host.ui.widgets.server_sources import FoundList

PARSE_MS = 250
SETTLED_MS = 60
"""By then the cards that were made have their places."""
AT_ONCE = 8
"""More characters than these at once were pasted."""
LINK = "desktop-host://"
BUNDLES = frozenset({".mcpb", ".dxt"})
TEXT_LIMIT = 5_000_000
"""Bytes of a text file that is read for servers."""


class AddPanel(QWidget):
    """The paste box with its preview and the button that adds."""

    added = Signal(object)
    """`tuple[str, ...]`: names of what was added."""

    def __init__(self, servers: Servers) -> None:
        super().__init__()
        self._servers = servers
        self.cards: list[FoundCard] = []
        self._asked = ""
        self._at_once = False
        self.paste = QPlainTextEdit()
        set_role(self.paste, "code")
        self.paste.setAccessibleName(tr("add.paste"))
        self.paste.setPlaceholderText(tr("add.examples"))
        self.paste.setTabChangesFocus(True)
        self.paste.setFixedHeight(theme.px(132))
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PARSE_MS)
        self._timer.timeout.connect(self._parse)
        self.paste.textChanged.connect(self._timer.start)
        self.paste.document().contentsChange.connect(self._grown)
        self.problem = label("", "danger", selectable=True)
        self.problem.hide()
        self._found = column()
        self.clash = QComboBox()
        self.clash.setAccessibleName(tr("add.clash"))
        for one in (Clash.RENAME, Clash.SKIP, Clash.REPLACE):
            self.clash.addItem(tr(f"add.clash.{one.value}"), one)
        self._clash = Field(tr("add.clash"), self.clash)
        self._clash.hide()
        self.go = button(tr("add.add"), self._add, role="primary", icon="plus")
        self.go.setEnabled(False)
        self.buttons = Flow(self.go)
        inner = column(self, space=Space.M)
        inner.addWidget(self.paste)
        inner.addWidget(self.problem)
        inner.addLayout(self._found)
        inner.addWidget(self._clash)
        inner.addLayout(self.buttons)

    def begin(self, text: str = "") -> None:
        """Start with a text, maybe none."""
        if text:
            self.paste.setPlainText(text)
            self._parse()
        self.paste.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_found(self, found: tuple[ImportedServer, ...]) -> None:
        """Show servers that were found elsewhere."""
        self._asked = ""
        self._show(found, "")
        if self.cards:
            self.cards[0].take.setFocus() if len(found) > 1 else self.cards[0].name.control.setFocus()

    def tell(self, error: HostError) -> None:
        """Say what is wrong with what was dropped or linked."""
        self._show((), " ".join(told(error)))

    def _parse(self) -> None:
        self._timer.stop()
        text = self.paste.toPlainText().strip()
        self._asked = text
        if not text:
            self._show((), "")
            return
        self._servers.parse(
            text,
            while_alive(self, lambda found: self._show(found, "") if self._asked == text else None),
            while_alive(self, lambda e: self._show((), " ".join(told(e))) if self._asked == text else None),
        )

    def _show(self, found: tuple[ImportedServer, ...], problem: str) -> None:
        clear(self._found)
        self.problem.setText(problem)
        self.problem.setVisible(bool(problem))
        self.cards = [FoundCard(one) for one in found]
        if found and self._at_once:
            QTimer.singleShot(SETTLED_MS, self, self._reveal)
        for card in self.cards:
            card.take.toggled.connect(lambda _on: self._count())
            card.take.setVisible(len(found) > 1)
            self._found.addWidget(card)
            name = card.name.control
            if isinstance(name, QLineEdit):
                name.textChanged.connect(lambda _text: self._count())
        self._count()
        cards = self.cards

        def told_apart(there: FrozenDict) -> None:
            if cards is self.cards:
                for card in cards:
                    if old := there.get(card.found.config.name):
                        card.there(str(old))

        if found:
            self._servers.twins(found, while_alive(self, told_apart))

    def _reveal(self) -> None:
        """What was pasted is read next, and then what adds it: bring both into sight, as far as they fit."""
        area: QWidget | None = self.parentWidget()
        while area is not None and not isinstance(area, QScrollArea):
            area = area.parentWidget()
        if area is not None:
            area.ensureWidgetVisible(self.go, 0, theme.px(Space.XL))
            if self.cards:
                area.ensureWidgetVisible(self.cards[0], 0, 0)

    def _grown(self, _at: int, _gone: int, came: int) -> None:
        """Typed letter by letter, the text stays where it is; pasted, its preview comes into sight."""
        self._at_once = came > AT_ONCE

    def _count(self) -> None:
        chosen = [c for c in self.cards if c.take.isChecked()]
        self.go.setEnabled(bool(chosen))
        taken = {s.name for s in self._servers.statuses()}
        self._clash.setVisible(any(c.wanted in taken for c in chosen))
        self.go.setText(trn("add.add_n", len(chosen)) if len(self.cards) > 1 else tr("add.add"))

    def _add(self) -> None:
        values = [c.value() for c in self.cards if c.take.isChecked()]
        good = [v for v in values if v is not None]
        if len(good) < len(values) or not good:
            return
        self.go.setEnabled(False)
        clash = self.clash.currentData() if self._clash.isVisible() else Clash.REFUSE
        self._servers.add(tuple(good), while_alive(self, self._added), while_alive(self, self._failed), Clash(clash))

    def _added(self, names: tuple[str, ...]) -> None:
        self.paste.setPlainText("")  # it may hold secrets, which are in the vault now
        self._show((), "")
        self.added.emit(names)

    def _failed(self, error: HostError) -> None:
        self.go.setEnabled(True)
        self.problem.setText(" ".join(told(error)))
        self.problem.show()


class AddServer(Page):
    """The page around the panel: what is pasted, dropped, linked, or found in other programs."""

    back = Signal()
    added = Signal(object)

    def __init__(self, bridge: Bridge, servers: Servers) -> None:
        super().__init__()
        self._bridge = bridge
        self.panel = AddPanel(servers)
        self.panel.added.connect(self.added)
        self.panel.buttons.addWidget(button(tr("action.cancel"), self.back.emit))
        self.bundle: BundleCard | None = None
        self._bundle = column()
        self.found = FoundList(bridge)
        self.found.chosen.connect(self._chosen)
        self.pick = button(tr("add.file"), self._pick, icon="folder")
        self.link = label("", "muted", selectable=True)
        self.link.hide()
        head = row(icon_button("chevron-left", tr("servers.back"), self.back.emit), label(tr("add.title"), "title"))
        self.add(head, label(tr("add.lead"), "muted"), Flow(self.pick), self.link, self._bundle, self.panel, self.found)

    def begin(self, text: str = "") -> None:
        """Start with a text (a link to install is one), maybe none."""
        self.found.read()
        if text.startswith(LINK):
            self._linked(text)
        else:
            self.panel.begin(text)

    def take(self, path: Path) -> None:
        """A file was dropped or picked: a bundle, or a text with servers."""
        self._put_bundle(None)
        if path.suffix.lower() in BUNDLES:
            self._bridge.then(lambda host: _looked(host, path), self._put_bundle, self.panel.tell, self)
            return
        try:
            if path.stat().st_size > TEXT_LIMIT:
                raise OSError(tr("add.file.large"))
            self.panel.begin(decoded(path.read_bytes()).removeprefix("\ufeff"))
        except UnicodeDecodeError as cause:
            self.panel.tell(
                UserFault(
                    "bad_config", f"{path} is not UTF-8 text", reason="not_utf8", file=str(path), byte=cause.start
                )
            )
        except OSError as cause:
            reason = cause.strerror or str(cause)
            self.panel.tell(UserFault("not_found", f"{path}: {reason}", kind="file", name=str(path)))

    # ---- inside

    def _linked(self, url: str) -> None:
        def shown(link: InstallLink) -> None:
            self.link.setText(tr("add.link", link=link.source))
            self.link.show()
            self.panel.show_found(link.servers)

        async def read(host: Host) -> InstallLink:
            return host.servers.link(url)

        self._bridge.then(read, shown, self.panel.tell, self)

    def _chosen(self, servers: tuple[ImportedServer, ...]) -> None:
        self._put_bundle(None)
        self.panel.show_found(servers)
        self.ensureWidgetVisible(self.panel)

    def _put_bundle(self, looked: tuple[BundlePreview, FrozenDict] | None) -> None:
        clear(self._bundle)
        self.bundle = None
        self.panel.setVisible(looked is None)
        if looked is not None:
            self.bundle = BundleCard(self._bridge, *looked)
            self.bundle.installed.connect(lambda alias: self.added.emit((alias,)))
            self._bundle.addWidget(self.bundle)

    def _pick(self) -> None:
        dialog = QFileDialog(self, tr("add.file"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([tr("add.file.kinds") + " (*.mcpb *.dxt *.json)", tr("add.file.all") + " (*)"])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(lambda names: self.take(Path(names[0])) if names else None)
        dialog.open()


async def _looked(host: Host, path: Path) -> tuple[BundlePreview, FrozenDict]:
    """A bundle, and what the person gave the one that is installed under its name."""
    preview = await host.bundles.preview(path)
    old = next((b for b in await host.bundles.installed() if b.alias == preview.installed), None)
    return preview, old.values if old else EMPTY
