"""The limits that a chat counts for, and how far they are used: hidden where there is none."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from desktop_host.core.values import FrozenDict
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.usage import Limit, limits_of
from desktop_host.ui.widgets.pieces import Card, clear, column, label
from desktop_host.ui.widgets.usage_parts import LimitRow


class Budgets(Card):
    """See the module."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(margin=Space.M)
        self._bridge = bridge
        self._lines = column(space=Space.S)
        self.limits: tuple[Limit, ...] = ()
        self._reading: Future[Any] | None = None
        self.add(label(tr("usage.limits"), "caption"), self._lines)
        self.hide()

    def read(self, session: str | None) -> None:
        """Read how the limits of a chat (None: of the profile) stand."""
        if self._reading is not None:
            self._reading.cancel()  # only the newest answer counts
        self._reading = self._bridge.then(lambda host: host.standings(session), self._show, None, self)

    def _show(self, standings: tuple[FrozenDict, ...]) -> None:
        self._reading = None
        limits = tuple(limit for limit in limits_of(standings) if limit.limit is not None)
        if limits != self.limits:
            self.limits = limits
            clear(self._lines)
            for limit in limits:
                self._lines.addWidget(LimitRow(limit))
        self.setVisible(bool(limits))
