"""Which model answers a server, why, and the others that could: to be changed before anything is sent."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QSizePolicy, QWidget

from desktop_host.core.asks import ReviewSampling
from desktop_host.core.model_choice import Candidate, ModelChoice
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.widgets.inspector_chat import money
from desktop_host.ui.widgets.pieces import column, label


class ModelPick(QWidget):
    """The chosen model in a list of all that could answer, each with its price and what is known of it."""

    def __init__(self, ask: ReviewSampling) -> None:
        super().__init__()
        self._ask = ask
        choice = ask.choice or ModelChoice(ask.model, "chat", "", (Candidate(ask.model, ask.model),))
        self._choice = choice
        self.box = QComboBox()
        self.box.setAccessibleName(tr("sampling.model"))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(12)
        self.box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        for one in choice.candidates:
            self.box.addItem(_row(one), one.ref)
            self.box.setItemData(self.box.count() - 1, one.ref, Qt.ItemDataRole.ToolTipRole)
        self.box.setCurrentIndex(max(0, self.box.findData(ask.model)))
        self.why = label("", "muted", selectable=True)
        self.cost = label("", selectable=True)
        title = label(tr("sampling.model"), "caption")
        title.setBuddy(self.box)
        inner = column(self, space=theme.px(Space.XS))
        for part in (title, self.box, self.why, self.cost):
            inner.addWidget(part)
        self.box.currentIndexChanged.connect(lambda _at: self._show())
        self.box.setEnabled(len(choice.candidates) > 1)
        self._show()

    @property
    def changed(self) -> str | None:
        """The model the person chose instead; None where it is still the one that was proposed."""
        picked = self.box.currentData()
        return None if picked in (None, self._ask.model) else str(picked)

    def _show(self) -> None:
        picked = self._candidate(str(self.box.currentData()))
        if self.changed is not None:
            self.why.setText(tr("sampling.why.person"))
        else:
            self.why.setText(self._why())
        facts = self._ask.cost
        self.cost.setVisible(facts is not None)
        if facts is None:
            return
        usd = facts.estimate_usd if self.changed is None else picked.cost_usd
        tokens = f"{facts.input_tokens:,}"
        if usd is None:
            words = tr("sampling.cost.unknown", tokens=tokens)
        else:
            words = tr("sampling.cost", tokens=tokens, usd=money(usd))
        most = self._ask.request.max_tokens
        if facts.asked_tokens > most:
            words += " " + tr("sampling.capped", asked=f"{facts.asked_tokens:,}", most=f"{most:,}")
        self.cost.setText(words)

    def _why(self) -> str:
        choice = self._choice
        best = self._candidate(choice.ref)
        words = tr(f"sampling.why.{choice.reason}", hint=choice.hint, score=f"{best.score or 0:.2f}")
        ranked = sorted((c for c in choice.candidates if c.ref != choice.ref), key=lambda c: -(c.score or 0.0))
        if choice.reason == "priorities" and ranked:
            second = ranked[0]
            words += " " + tr("sampling.why.next", model=second.title or second.ref, score=f"{second.score or 0:.2f}")
        return words

    def _candidate(self, ref: str) -> Candidate:
        return next((c for c in self._choice.candidates if c.ref == ref), Candidate(ref))


def _row(one: Candidate) -> str:
    """A model with what speaks for it."""
    parts = [one.title or one.ref]
    parts.append(tr("sampling.price_unknown") if one.cost_usd is None else f"≤ {money(one.cost_usd)}")
    if one.speed is not None and one.intelligence is not None:
        parts.append(tr("sampling.steps", speed=one.speed, intelligence=one.intelligence))
    return " · ".join(parts)
