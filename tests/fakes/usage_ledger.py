"""What a profile has used, in memory."""

from __future__ import annotations

import datetime
from typing import Any

from desktop_host.core.errors import KnownFault
from desktop_host.core.values import FrozenDict

TODAY = datetime.date.today()


def row(**more: Any) -> FrozenDict:
    base = {"requests": 2, "input": 100, "output": 50, "cache_read": 300, "cache_write": 0, "reasoning": 0,
            "cost_usd": 0.5, "unpriced": 0}  # fmt: skip
    return FrozenDict(base | more)


class Ledger:
    def __init__(self) -> None:
        self.fault: KnownFault | None = None
        yesterday = (TODAY - datetime.timedelta(days=1)).isoformat()
        self.rows: dict[str, tuple[FrozenDict, ...]] = {
            "day": (row(day=yesterday), row(day=TODAY.isoformat(), cost_usd=0.25)),
            "model": (row(model="m"), row(model="blind", cost_usd=None, unpriced=2)),
            "session": (row(session="c1"), row(session="gone", unpriced=1)),
            "purpose": (row(purpose="chat"), row(purpose="summary")),
            "skill": (row(skill="minutes@1.0"),),
            "server": (FrozenDict({
                "server": "files", "calls": 9, "failed": 1, "denied": 0, "duration_ms": 4.0, "sampling_requests": 0,
                "sampling_tokens": 0, "sampling_cost_usd": None,
            }),),
        }  # fmt: skip

    async def usage(self, by: str) -> tuple[FrozenDict, ...]:
        if self.fault:
            raise self.fault
        return self.rows[by]
