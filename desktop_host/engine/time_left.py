"""How long a call may still take, from the progress it reports."""

from __future__ import annotations

from dataclasses import dataclass

SOONEST_S = 1.0
"""Reports of the first second tell nothing about speed."""


@dataclass(slots=True)
class TimeLeft:
    """One call's reports; the speed is the mean since the first, so that a stutter does not make the figure jump."""

    first: tuple[float, float] | None = None
    """Time and progress of the first report."""

    def estimate(self, now: float, progress: float, total: float | None) -> float | None:
        """Seconds left, or None where the server gives no total, goes backwards, or has only begun."""
        if self.first is None or progress < self.first[1]:
            self.first = (now, progress)
            return None
        began, start = self.first
        took, done = now - began, progress - start
        if total is None or total <= progress or took < SOONEST_S or done <= 0:
            return 0.0 if total is not None and total > 0 and progress >= total else None
        return took * (total - progress) / done
