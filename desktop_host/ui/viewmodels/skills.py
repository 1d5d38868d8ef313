"""The skills library as a window sees it: its rows, kept fresh by events, and the acts a person can do."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from desktop_host.core import events as ev
from desktop_host.core.errors import HostError
from desktop_host.core.skill_admin import InstallPreview, SkillPlace, SkillRow
from desktop_host.core.skills import SkillStatus
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.viewmodels.served_skills import ServedSkills

T = TypeVar("T")

OURS_S = 1.5
"""A change of a skill that the person acted on so recently (seconds) is the person's own; it needs no notice."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What one dropped path holds, or why it cannot be read."""

    path: Path
    found: tuple[InstallPreview, ...] = ()
    error: HostError | None = None

    @property
    def replaces(self) -> bool:
        """Whether something that is installed would be replaced."""
        return any(one.replaces for one in self.found)


@dataclass(frozen=True, slots=True)
class Installed:
    """How an installation went."""

    rows: tuple[SkillRow, ...] = ()
    failed: tuple[tuple[Path, HostError], ...] = ()


class Skills(QObject):
    """All skills that were found; follows the stream of events."""

    failed = Signal(object)
    """`HostError` of something asked for here."""
    loaded = Signal()
    """`rows` are those of now."""
    changed = Signal(object)
    """`tuple[str, ...]`: ids whose files or state are others; `rows` follow by `loaded`."""
    saved = Signal(object)
    """`tuple[str, ...]`: ids whose files somebody saved on disk."""
    told = Signal(str, object)
    """`(what was done, undo)`: words for a notice and what takes it back, or None."""
    removed = Signal(str)

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self.rows: tuple[SkillRow, ...] = ()
        self.error: HostError | None = None
        """Why the rows could not be read."""
        self.reading = True
        self._ours: dict[str, float] = {}
        self._under_way = self._again = False
        self.served = ServedSkills(bridge, self)
        """Those of servers."""
        self.served.failed.connect(self.failed)
        bridge.batch.connect(self._on_batch)
        bridge.lagged.connect(self.refresh)

    # ---- what a view asks

    def row(self, name: str) -> SkillRow | None:
        """The skill of this id that is in use."""
        mine = [r for r in self.rows if r.name == name]
        return next((r for r in mine if not r.shadowed_by), mine[0] if mine else None)

    @property
    def troubled(self) -> tuple[SkillRow, ...]:
        """The rows that need a look."""
        return tuple(r for r in self.rows if r.problems or r.needs or not r.loaded or r.shadowed_by)

    def matching(self, text: str) -> tuple[SkillRow, ...]:
        """The rows whose name, description or source holds every word of `text`."""
        words = text.casefold().split()

        def holds(row: SkillRow) -> bool:
            hay = f"{row.name} {row.label} {row.description} {row.source} {row.version}".casefold()
            return all(word in hay for word in words)

        return tuple(r for r in self.rows if holds(r))

    def ask(
        self,
        make: Callable[[Host], Awaitable[T]],
        done: Callable[[T], None],
        failed: Callable[[HostError], None] | None = None,
        owner: QObject | None = None,
    ) -> None:
        """Read something of the library for a widget; nothing is delivered once `owner` is gone."""
        self._bridge.then(make, done, failed or self.failed.emit, owner or self)

    # ---- what a person does

    def refresh(self) -> None:
        """Read all rows again; one reading at a time, and one more where something changed meanwhile."""
        if self._under_way:
            self._again = True
            return
        self._under_way = True
        self._bridge.then(lambda host: host.skills.skills(), self._show, self._not_read, self)

    def rescan(self) -> None:
        """Look at all folders now."""
        self._bridge.then(lambda host: host.skills.rescan(), lambda _n: self.refresh(), self.failed.emit, self)

    def enable(self, name: str, on: bool) -> None:
        """Switch a skill on or off."""
        self._act(name, lambda host: host.skills.enable(name, on))

    def grant(self, name: str, on: bool) -> None:
        """Allow the tools a skill asks for without asking while it is active, or not any more."""
        self._act(name, lambda host: host.skills.grant_tools(name, on))

    def share_out(
        self,
        name: str,
        weights: Mapping[str, float],
        statuses: Mapping[str, SkillStatus],
        words: str,
    ) -> None:
        """Give new sessions to versions by weight; `words` say so, with a way back."""
        row = self.row(name)
        before = {v.version: v for v in row.versions} if row else {}

        def undo() -> None:
            old_weights = {v: r.weight for v, r in before.items()}
            self._act(name, lambda h: h.skills.set_rollout(name, old_weights, {v: r.status for v, r in before.items()}))

        self._act(
            name,
            lambda host: host.skills.set_rollout(name, dict(weights), dict(statuses)),
            lambda: self.told.emit(words, undo if before else None),
        )

    def remove(self, name: str, version: str | None = None) -> None:
        """Delete a skill of the profile, or one version of it."""

        def gone() -> None:
            if version is None:
                self.removed.emit(name)

        self._act(name, lambda host: host.skills.remove(name, version), gone)

    def export(self, name: str, target: Path, done: Callable[[Path], None]) -> None:
        """Write a skill as an archive."""
        self._bridge.then(lambda host: host.skills.export(name, target), done, self.failed.emit, self)

    def newest(self, session: str, name: str, done: Callable[[], None]) -> None:
        """Let a chat use what a new chat would get, from its next message on."""
        self._bridge.then(lambda host: host.pin_skill(session, name, None), lambda _p: done(), self.failed.emit, self)

    def preview(self, paths: tuple[Path, ...], done: Callable[[tuple[Offer, ...]], None], owner: QObject) -> None:
        """Look into folders and archives; a path that cannot be read says why."""

        async def look(host: Host) -> tuple[Offer, ...]:
            offers = []
            for path in paths:
                try:
                    offers.append(Offer(path, await host.skills.preview(path)))
                except HostError as error:
                    offers.append(Offer(path, (), error))
            return tuple(offers)

        self._bridge.then(look, done, self.failed.emit, owner)

    def install(self, offers: tuple[Offer, ...], done: Callable[[Installed], None], owner: QObject) -> None:
        """Copy what was previewed into the profile; each path succeeds or fails by itself."""

        async def put(host: Host) -> Installed:
            rows: list[SkillRow] = []
            failed: list[tuple[Path, HostError]] = []
            for offer in offers:
                try:
                    rows += await host.skills.install(offer.path, replace=offer.replaces)
                except HostError as error:
                    failed.append((offer.path, error))
            return Installed(tuple(rows), tuple(failed))

        def settled(outcome: Installed) -> None:
            self._mark(*(r.name for r in outcome.rows))
            self.refresh()
            done(outcome)

        for offer in offers:
            self._mark(*(one.name for one in offer.found))
        self._bridge.then(put, settled, self.failed.emit, owner)

    # ---- folders

    def places(self, done: Callable[[tuple[SkillPlace, ...], tuple[SkillPlace, ...]], None], owner: QObject) -> None:
        """The folders that are looked at, and those of other hosts that could be."""

        async def read(host: Host) -> tuple[tuple[SkillPlace, ...], tuple[SkillPlace, ...]]:
            return await host.skills.places(), await host.skills.foreign_places()

        self._bridge.then(read, lambda found: done(*found), self.failed.emit, owner)

    def use_place(self, folder: Path, on: bool, done: Callable[[], None], *, project: bool = False) -> None:
        """Look for skills in a folder (or a project), or not any more."""

        async def act(host: Host) -> None:
            if project:
                await host.skills.trust_project(folder, on)
            elif on:
                await host.skills.add_place(folder)
            else:
                await host.skills.remove_place(folder)

        def settled(_: object) -> None:
            self.refresh()
            done()

        self._mark(*(r.name for r in self.rows))
        self._bridge.then(act, settled, self.failed.emit, self)

    # ---- inside

    def _act(
        self, name: str, make: Callable[[Host], Awaitable[object]], then: Callable[[], object] | None = None
    ) -> None:
        def settled(_: object) -> None:
            self._mark(name)
            self.refresh()
            if then is not None:
                then()

        def failed(error: HostError) -> None:
            self.refresh()
            self.failed.emit(error)

        self._mark(name)
        self._bridge.then(make, settled, failed, self)

    def _mark(self, *names: str) -> None:
        now = time.monotonic()
        self._ours.update(dict.fromkeys(names, now))

    def _show(self, rows: tuple[SkillRow, ...]) -> None:
        self.rows, self.error, self.reading = rows, None, False
        self._read()

    def _not_read(self, error: HostError) -> None:
        self.error, self.reading = error, False
        self._read()

    def _read(self) -> None:
        again, self._under_way, self._again = self._again, False, False
        self.loaded.emit()
        if again:
            self.refresh()

    def _on_batch(self, batch: tuple[ev.Stamped, ...]) -> None:
        names = dict.fromkeys(n for s in batch if isinstance(s.event, ev.LibraryChanged) for n in s.event.skills)
        if not names and not any(isinstance(s.event, ev.LibraryChanged) for s in batch):
            return
        self.refresh()
        self.changed.emit(tuple(names))
        now = time.monotonic()
        others = tuple(n for n in names if now - self._ours.get(n, -OURS_S) >= OURS_S)
        if others:
            self.saved.emit(others)
