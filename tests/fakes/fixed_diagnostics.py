"""Diagnostics whose findings a test sets; a check can be made to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from desktop_host.core.diagnosis import Finding, ReportPart
from desktop_host.core.errors import HostError, UserFault


@dataclass
class FixedDiagnostics:
    """Implements `core.diagnosis.Diagnostics`."""

    findings: dict[str, Finding] = field(default_factory=dict)
    waits: set[str] = field(default_factory=set)
    """Checks that never come to an end."""
    runs: list[tuple[str, ...]] = field(default_factory=list)
    cancelled: int = 0
    cures: dict[str, Finding] = field(default_factory=dict)
    """What `mend` finds."""
    mended: list[str] = field(default_factory=list)
    parts: tuple[ReportPart, ...] = (ReportPart("about.json", "{}"),)
    fault: HostError | None = None
    """Raised by `save`."""
    saved: dict[Path, tuple[ReportPart, ...]] = field(default_factory=dict)

    def checks(self) -> tuple[str, ...]:
        return tuple(self.findings)

    async def run(
        self, names: tuple[str, ...] | None = None, told: Callable[[Finding], None] | None = None
    ) -> tuple[Finding, ...]:
        wanted = tuple(self.findings) if names is None else names
        self.runs.append(wanted)
        out: list[Finding] = []
        try:
            for name in wanted:
                if name in self.waits:
                    await asyncio.Event().wait()
                out.append(self.findings[name])
                if told is not None:
                    told(self.findings[name])
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return tuple(out)

    async def mend(self, check: str) -> Finding:
        if check not in self.cures:
            raise UserFault("usage", f"nothing can be done about {check}", value=check)
        self.mended.append(check)
        self.findings[check] = self.cures[check]
        return self.cures[check]

    async def report(self, findings: tuple[Finding, ...]) -> tuple[ReportPart, ...]:
        return (*self.parts, ReportPart("checks.json", "\n".join(found.check for found in findings)))

    async def save(self, target: Path, parts: tuple[ReportPart, ...]) -> Path:
        if self.fault is not None:
            raise self.fault
        self.saved[target] = parts
        return target
