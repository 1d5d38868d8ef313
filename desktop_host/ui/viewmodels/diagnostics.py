"""The doctor in the window: what each check found, what still runs, and the report to send."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_host.core.diagnosis import Finding, ReportPart
from desktop_host.core.errors import HostError
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge

TAKE_MS = 50


class Diagnostics(QObject):
    """Checks of the profile. `found` holds the newest finding of each; None while none was made yet."""

    listed = Signal()
    """There are other checks than before."""
    changed = Signal(str)
    """A check begins to run or has a finding."""
    finished = Signal()
    """A run of all checks came to its end or was stopped."""
    failed = Signal(object)

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self.found: dict[str, Finding | None] = {}
        self.running: set[str] = set()
        self.all_running = False
        self._run: Future[Any] | None = None
        self._lock = threading.Lock()
        self._told: list[Finding] = []
        self._timer = QTimer(self)
        self._timer.setInterval(TAKE_MS)
        self._timer.timeout.connect(self._take)

    @property
    def ill(self) -> tuple[Finding, ...]:
        """What is not well, in the order of the checks."""
        return tuple(f for f in self.found.values() if f is not None and not f.ok)

    @property
    def done(self) -> int:
        """How many checks of a run of all are done."""
        return len(self.found) - len(self.running)

    def run_all(self) -> None:
        """Run every check, unless that is under way."""
        if self.all_running:
            return
        self.all_running = True

        async def names(host: Host) -> tuple[str, ...]:
            return host.diagnostics.checks()

        self._run = self._bridge.then(names, self._begin, self._stopped, self)

    def run(self, name: str) -> None:
        """Run one check again."""
        if name not in self.running:
            self.running.add(name)
            self.changed.emit(name)
            self._bridge.then(
                lambda host: host.diagnostics.run((name,)), partial(self._one, name), partial(self._not_run, name), self
            )

    def stop(self) -> None:
        """Stop a run of all checks; what was found stays."""
        if self._run is not None:
            self._run.cancel()
        self._take()
        self._end()

    def mend(self, name: str, failed: Callable[[HostError], None]) -> None:
        """Let the app do what it can about a check."""
        self.running.add(name)
        self.changed.emit(name)

        def not_mended(error: HostError) -> None:
            self.running.discard(name)
            self.changed.emit(name)
            failed(error)

        self._bridge.then(lambda host: host.diagnostics.mend(name), self._show, not_mended, self)

    def report(self, done: Callable[[tuple[ReportPart, ...]], None], failed: Callable[[HostError], None]) -> None:
        """Put together what a report would hold; nothing is written."""
        findings = tuple(f for f in self.found.values() if f is not None)
        self._bridge.then(lambda host: host.diagnostics.report(findings), done, failed, self)

    def save(
        self, path: Path, parts: tuple[ReportPart, ...], done: Callable[[Path], None],
        failed: Callable[[HostError], None],
    ) -> None:  # fmt: skip
        """Write a report."""
        self._bridge.then(lambda host: host.diagnostics.save(path, parts), done, failed, self)

    # ---- inside

    def _begin(self, names: tuple[str, ...]) -> None:
        if not self.all_running:
            return  # stopped meanwhile
        self.found = {name: self.found.get(name) for name in names}
        self.running = set(names)
        self.listed.emit()
        # Findings come on the host's loop: they are left here, and a timer of the window takes them.
        self._run = self._bridge.then(
            lambda host: host.diagnostics.run(None, self._keep), self._all, self._stopped, self
        )
        self._timer.start()

    def _keep(self, finding: Finding) -> None:
        with self._lock:
            self._told.append(finding)

    def _take(self) -> None:
        with self._lock:
            told, self._told = self._told, []
        for finding in told:
            if self.all_running:
                self._show(finding)

    def _show(self, finding: Finding) -> None:
        self.running.discard(finding.check)
        self.found[finding.check] = finding
        self.changed.emit(finding.check)

    def _one(self, name: str, findings: tuple[Finding, ...]) -> None:
        self.running.discard(name)
        if findings:
            self._show(findings[0])
        else:  # its server is gone
            self.found.pop(name, None)
            self.listed.emit()

    def _not_run(self, name: str, error: HostError) -> None:
        self.running.discard(name)
        self.changed.emit(name)
        self.failed.emit(error)

    def _all(self, _findings: tuple[Finding, ...]) -> None:
        self._take()
        self._end()

    def _stopped(self, error: HostError) -> None:
        self._end()
        self.failed.emit(error)

    def _end(self) -> None:
        self._timer.stop()
        self._run, self.all_running = None, False
        left, self.running = self.running, set()
        for name in left:
            self.changed.emit(name)
        self.finished.emit()
