"""Parts of the usage page: a span of time, a limit, and figures as people read them."""

from __future__ import annotations

import datetime

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from desktop_host.i18n import current, tr, trn
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.usage import Limit, Line
from desktop_host.ui.widgets.charts import Gauge
from desktop_host.ui.widgets.pieces import Card, column, label, row


class Figure(Card):
    """One span of time: what it cost, and what that was for."""

    def __init__(self, name: str, sums: Line) -> None:
        super().__init__(space=Space.XS)
        cost = tr("usage.unknown") if sums.cost_usd is None and sums.requests else money(sums.cost_usd or 0.0)
        cost = f"≥ {cost}" if sums.unpriced and sums.cost_usd is not None else cost
        tokens = tr("usage.figure.tokens", read=short(sums.tokens_in), written=short(sums.tokens_out))
        hit = "" if sums.hit is None else tr("usage.figure.hit", percent=f"{sums.hit:.0%}")
        lines = [trn("usage.figure.requests", sums.requests), tokens, *([hit] if hit else [])]
        self.add(label(name, "caption", wrap=False), label(cost, "title", wrap=False))
        for words in lines:
            self.add(label(words, "caption"))
        self.column.addStretch(1)
        self.setAccessibleName(f"{name}: {cost}. " + ", ".join(lines))


class LimitRow(QWidget):
    """One budget or quota: used, limit, and a bar."""

    def __init__(self, limit: Limit) -> None:
        super().__init__()
        name = tr(f"usage.limit.{limit.scope}.{limit.unit}")
        spent = money(limit.spent) if limit.unit == "usd" else f"{int(limit.spent):,}"
        if limit.limit is None:
            words = tr("usage.limit.none", spent=spent)
        else:
            most = money(limit.limit) if limit.unit == "usd" else f"{int(limit.limit):,}"
            words = tr("usage.limit.of", spent=spent, limit=most, percent=f"{limit.share or 0:.0%}")
        lines = column(self, space=Space.XS)
        head = row(label(name), space=Space.S)
        head.addWidget(label(words, "caption", wrap=False), 0, Qt.AlignmentFlag.AlignRight)
        lines.addLayout(head)
        self.gauge: Gauge | None = None
        if limit.limit is not None:
            self.gauge = Gauge(f"{name}: {words}", limit.share)
            lines.addWidget(self.gauge)
        self.setAccessibleName(f"{name}: {words}")


def money(usd: float) -> str:
    """Dollars with as many decimals as they need."""
    if usd == 0:
        return "$0"
    if usd < 0.01:
        return f"${usd:.4f}"
    return f"${usd:.2f}" if usd < 1000 else f"${usd:,.0f}"


def short(value: float) -> str:
    """A large number in few signs."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}".rstrip("0").rstrip(".") + sign
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def day_label(key: str) -> str:
    """A day as the chart names it."""
    day = datetime.date.fromisoformat(key)
    return f"{day.month}/{day.day}" if current().language == "zh_CN" else f"{day.day} {_MONTHS[day.month - 1]}"
