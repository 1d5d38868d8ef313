"""What a session is built from: the ports and rooms that all sessions of a host share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from desktop_host.core.admin import ModelAdmin, SettingsStore
from desktop_host.core.bundles import BundleAdmin
from desktop_host.core.install_links import InstallLinks
from desktop_host.core.ports import Clock, History, Ledger, SkillSource, ToolSource
from desktop_host.core.telemetry import UNTRACED, Tracing
from desktop_host.core.values import FrozenDict
from desktop_host.engine.bus import Bus
from desktop_host.engine.gate import Gate
from desktop_host.engine.inbox import Inbox
from desktop_host.engine.outside import Askers
from desktop_host.engine.spending import Spending
from desktop_host.engine.toolkit import Toolkit


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything a session needs and does not own."""

    history: History
    ledger: Ledger
    models: ModelAdmin
    tools: ToolSource
    settings: SettingsStore
    inbox: Inbox
    gate: Gate
    bus: Bus
    clock: Clock
    spending: Spending
    skills: SkillSource | None = None
    toolkit: Toolkit | None = None
    bundles: BundleAdmin | None = None
    askers: Askers = field(default_factory=Askers)
    record: FrozenDict = field(default_factory=FrozenDict)
    """Where conversations are kept: `{store: sqlite | postgresql, place, detail}`."""
    upload: Callable[[], Awaitable[FrozenDict]] | None = None
    """Copies the profile's own file into the shared database: `{copied, present, busy, failed}`; None: nothing is."""
    tracing: Tracing = UNTRACED
    links: InstallLinks | None = None
    """Who opens `desktop-host://` links on this desktop."""
