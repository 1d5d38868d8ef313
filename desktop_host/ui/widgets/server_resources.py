"""The resources of a server: templates filled in, read, watched, put into the chat, opened by the platform."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QPushButton, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import ContentBlock, EmbeddedResource, ResourceLink, Text
from desktop_host.core.server_ports import SavedResource
from desktop_host.core.servers import PromptArgument, ResourceSpec
from desktop_host.core.uri_template import expand, variables
from desktop_host.engine.host import Host
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.annotations import annotation_words
from desktop_host.ui.viewmodels.servers import UPDATED, Servers
from desktop_host.ui.widgets.content_views import view_of
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Empty, told
from desktop_host.ui.widgets.pieces import (
    Card,
    CodeBox,
    Elided,
    button,
    clear,
    column,
    icon_label,
    label,
    pill,
    row,
    set_pill,
)
from desktop_host.ui.widgets.server_arguments import Arguments
from desktop_host.ui.widgets.server_art import art
from desktop_host.ui.widgets.server_contents import plain
from desktop_host.ui.widgets.server_lists import ListTab
from desktop_host.ui.widgets.server_words import size
from desktop_host.ui.widgets.switch import Switch

WATCHED = "watched"
"""Told in the lists of `ServerChanged` where other resources are watched now."""


class ResourceRow(Card):
    """A resource, or a template whose variables the person fills in."""

    def __init__(self, bridge: Bridge, servers: Servers, spec: ResourceSpec, watched: tuple[str, ...] = ()) -> None:
        super().__init__(margin=Space.M)
        self._watched: frozenset[str] = frozenset()
        self._pressed: QPushButton | None = None
        self._bridge, self._servers, self.spec = bridge, servers, spec
        title = spec.title or spec.name
        self.setAccessibleName(title)
        self.read = button(tr("resource.read"), self._read, icon="eye")
        self.read.setAccessibleName(tr("resource.read_of", name=title))
        self.attach = button(tr("resource.attach"), self._attach, role="quiet", icon="attach")
        self.attach.setAccessibleName(tr("resource.attach_of", name=title))
        self.open = button(tr("resource.open"), self._open, role="quiet", icon="external")
        self.open.setAccessibleName(tr("resource.open_of", name=title))
        self.watch = Switch(
            tr("resource.watch_of", name=title),
        )
        self.watch.clicked.connect(self._watch)
        self.mark = pill("")
        self.mark.hide()
        holes = tuple(PromptArgument(name, required=True) for name in variables(spec.uri)) if spec.template else ()
        self.arguments = Arguments(bridge, spec.server, spec.uri, holes)
        picture = icon_label("document")
        art().put(picture, spec.server, "resource", spec.uri, "document")
        head = row(picture, label(title, "strong"), self.mark)
        head.setStretch(1, 1)
        self.add(head)
        if spec.description:
            self.add(label(spec.description, "muted", selectable=True))
        self.add(Elided(spec.uri, "code"), self.arguments)
        if pills := self._pills():
            self.add(Flow(*pills, space=Space.XS))
        watching = QWidget()
        row(self.watch, label(tr("resource.watch"), wrap=False), owner=watching, space=Space.XS)
        self.add(Flow(self.read, self.attach, self.open, watching))
        self._result = column(space=Space.S)
        self.add(self._result)
        self._shown = ""
        """The address whose contents are shown."""
        self.arguments.changed.connect(self._show_watch)
        self.watching(watched)

    @property
    def uri(self) -> str | None:
        """The address as it stands; None where a variable lacks, which then says so."""
        values = self.arguments.values()
        return None if values is None else expand(self.spec.uri, {k: str(v) for k, v in values.items()})

    def watching(self, watched: Iterable[str]) -> None:
        """Which addresses of the server are watched now."""
        self._watched = frozenset(watched)
        self._show_watch()

    def updated(self, uri: str) -> None:
        """The server says that a resource changed: mark it, and read it again if it is in view."""
        if uri in (self._shown, self._filled):
            self._show_mark()
        if uri == self._shown:
            self._fetch(uri)

    # ---- inside

    @property
    def _filled(self) -> str:
        """The address as far as it is filled in."""
        return expand(self.spec.uri, {k: str(v) for k, v in self.arguments.filled.items()})

    def _show_watch(self) -> None:
        self.watch.put(self._filled in self._watched)
        self._show_mark()

    def _show_mark(self) -> None:
        moment = self._servers.touched.get((self.spec.server, self._filled))
        if moment is not None:
            set_pill(self.mark, tr("resource.changed", time=time.strftime("%H:%M:%S", time.localtime(moment))), "info")
        self.mark.setVisible(moment is not None)

    def _pills(self) -> list[QWidget]:
        spec = self.spec
        pills: list[QWidget] = [pill(spec.mime_type)] if spec.mime_type else []
        if spec.size is not None:
            pills.append(pill(size(spec.size)))
        if spec.template:
            pills.append(pill(tr("resource.template"), "info"))
        pills += [pill(words) for words in annotation_words(spec.annotations)]
        return pills

    def _read(self) -> None:
        if (uri := self.uri) is not None:
            self._fetch(uri)

    def _fetch(self, uri: str) -> None:
        self._disable(self.read)
        self._bridge.then(
            lambda host: host.servers.read_resource(self.spec.server, uri), lambda got: self._done(uri, got),
            self._fail, self,
        )  # fmt: skip

    def _attach(self) -> None:
        if (uri := self.uri) is None:
            return
        self._disable(self.attach)

        def done(outcome: ToolOutcome) -> None:
            self._enable()
            self._servers.offer_resource(outcome.content, self.spec.title or self.spec.name)

        self._bridge.then(lambda host: host.servers.read_resource(self.spec.server, uri), done, self._fail, self)

    def _open(self) -> None:
        if (uri := self.uri) is None:
            return

        def done(saved: SavedResource) -> None:
            self._enable()
            self._say(tr("resource.saved", path=str(saved.path), size=size(saved.size)), "muted")
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(saved.path)))

        self._disable(self.open)
        self._bridge.then(lambda host: host.servers.save_resource(self.spec.server, uri), done, self._fail, self)

    def _watch(self, on: bool) -> None:
        uri = self.uri
        if uri is None:
            self.watch.put(False)
            return

        def failed(error: HostError) -> None:
            self.watch.put(not on)
            self._fail(error)

        self._bridge.then(
            lambda host: host.servers.subscribe(self.spec.server, uri, on), lambda _: None, failed, self
        )  # fmt: skip
        if on and uri != self._shown:
            self._fetch(uri)

    def _done(self, uri: str, outcome: ToolOutcome) -> None:
        self._enable()
        self._shown = uri
        clear(self._result)
        text: list[ContentBlock] = []
        for block in outcome.content:
            if isinstance(block, ResourceLink) and block.uri.startswith("file:"):
                self._large(block)
            elif isinstance(block, Text) or (isinstance(block, EmbeddedResource) and block.text is not None):
                text.append(block)
            else:
                self._result.addWidget(view_of(block))
        if text:
            self._result.addWidget(CodeBox(plain(text), tr("resource.contents"), lines=18))

    def _large(self, block: ResourceLink) -> None:
        where = QUrl(block.uri)
        line = label(tr("resource.large", path=where.toLocalFile()), "muted", selectable=True)
        self._result.addWidget(line)
        self._result.addLayout(Flow(button(tr("resource.open"), lambda: QDesktopServices.openUrl(where))))

    def _disable(self, one: QPushButton) -> None:
        self._pressed = one if one.hasFocus() else None
        one.setEnabled(False)  # Qt passes the focus on, which is given back.

    def _enable(self) -> None:
        for one in (self.read, self.attach, self.open):
            one.setEnabled(True)
        if self._pressed is not None and self.isAncestorOf(self.window().focusWidget()):
            self._pressed.setFocus()
        self._pressed = None

    def _say(self, text: str, role: str) -> None:
        clear(self._result)
        self._shown = ""
        self._result.addWidget(label(text, role, selectable=True))

    def _fail(self, error: HostError) -> None:
        self._enable()
        self._say(" ".join(told(error)), "danger")


class ResourcesTab(ListTab):
    """Resources and templates."""

    kind = "resources"

    def refresh(self) -> None:
        async def read(host: Host) -> tuple[tuple[ResourceSpec, ...], tuple[str, ...]]:
            return await host.servers.resources(self._name), host.servers.subscribed(self._name)

        self._bridge.then(read, self._show, self._fail, self)

    def _show(self, got: tuple[tuple[ResourceSpec, ...], tuple[str, ...]]) -> None:
        listed, watched = got
        known = {s.uri for s in listed if not s.template}
        # What is watched by a template's address, or no longer listed, has a row of its own.
        specs = (*listed, *(ResourceSpec(self._name, uri, uri) for uri in watched if uri not in known))
        self.put([(f"{s.name} {s.title} {s.uri} {s.description}", partial(self._row, s, watched), s) for s in specs])
        for part in self.rows:
            if isinstance(part, ResourceRow):
                part.watching(watched)
        if not specs:
            self._list.addWidget(Empty("document", tr("resource.none"), ""))

    def _row(self, spec: ResourceSpec, watched: tuple[str, ...]) -> ResourceRow:
        return ResourceRow(self._bridge, self._servers, spec, watched)

    def _lists_changed(self, name: str, lists: tuple[str, ...]) -> None:
        super()._lists_changed(name, (self.kind,) if WATCHED in lists else lists)
        if name == self._name:
            for uri in (one.removeprefix(UPDATED) for one in lists if one.startswith(UPDATED)):
                for part in self.rows:
                    if isinstance(part, ResourceRow):
                        part.updated(uri)
