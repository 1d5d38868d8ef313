"""A server asks the host's model: review what it sends, then what comes back."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QPlainTextEdit, QWidget

from desktop_host.core.asks import Allow, DailyCap, Edited, Refuse, ReviewReply, ReviewSampling, SamplingCost
from desktop_host.core.messages import Role, Text
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.widgets.ask_card import AskCard
from desktop_host.ui.widgets.content_views import view_of
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import MoneyBox, NumberBox
from desktop_host.ui.widgets.inspector_chat import money
from desktop_host.ui.widgets.pieces import button, label, pill

EDIT_LINES = 10


class SamplingCard(AskCard):
    """The request. Its last message can be edited; all others are shown as they are."""

    def __init__(self, ask: ReviewSampling) -> None:
        super().__init__(ask, "model", tr("chat.ask.sampling.title", server=ask.server))
        request = ask.request
        self.column.addWidget(label(
            tr("chat.ask.sampling.during") if ask.call_id else tr("chat.ask.sampling.alone"), "muted",
        ))  # fmt: skip
        facts = Flow(space=theme.px(Space.XS))
        facts.addWidget(pill(tr("chat.ask.sampling.model", model=ask.model)))
        facts.addWidget(pill(trn("chat.ask.sampling.cap", request.max_tokens)))
        if request.hints:
            facts.addWidget(pill(tr("chat.ask.sampling.hints", hints=", ".join(request.hints))))
        for key, value in (
            ("cost", request.cost_priority),
            ("speed", request.speed_priority),
            ("intelligence", request.intelligence_priority),
        ):
            if value is not None:
                facts.addWidget(pill(tr(f"chat.ask.sampling.{key}", value=f"{value:g}")))
        if request.tools:
            facts.addWidget(pill(trn("chat.ask.sampling.tools", len(request.tools))))
        self.column.addLayout(facts)
        if ask.cost is not None:
            self._tell_cost(ask.cost, request.max_tokens)
        if request.system:
            self.column.addWidget(label(tr("chat.ask.sampling.system"), "caption"))
            self.column.addWidget(view_of(Text(request.system)))
        self.edit: Editable | None = None
        for at, message in enumerate(request.messages):
            who = "chat.ask.sampling.user" if message.role is Role.USER else "chat.ask.sampling.assistant"
            self.column.addWidget(label(tr(who), "caption"))
            blocks = message.blocks
            if at == len(request.messages) - 1 and any(isinstance(b, Text) for b in blocks):
                self.edit = Editable(message.text, tr("chat.ask.sampling.edit"))
                self.column.addWidget(self.edit)
                blocks = tuple(b for b in blocks if not isinstance(b, Text))
            for block in blocks:
                self.column.addWidget(view_of(block))
        self.always = QCheckBox(tr("sampling.always", server=ask.server))
        self.tokens = NumberBox(1, 10_000_000, step=1000, suffix=tr("sampling.tokens_day"))
        self.tokens.setValue(ask.cost.daily_tokens if ask.cost and ask.cost.daily_tokens else 50_000)
        self.usd = MoneyBox(ask.cost.daily_usd if ask.cost else 0)
        for box, name in ((self.tokens, tr("sampling.cap_tokens")), (self.usd, tr("sampling.cap_usd"))):
            box.setAccessibleName(name)
            box.setToolTip(name)
        self._caps = QWidget()
        self._caps.setLayout(Flow(self.tokens, label(tr("sampling.and"), "muted", wrap=False), self.usd))
        self._note = label(tr("sampling.always.note"), "caption")
        self.always.toggled.connect(self._show_caps)
        self.send = button(tr("chat.ask.sampling.send"), self._send, role="primary")
        self.refuse = button(tr("chat.ask.sampling.refuse"), lambda: self.reply(Refuse()), role="danger")
        self.column.addWidget(self.always)
        self.column.addWidget(self._caps)
        self.column.addWidget(self._note)
        self._show_caps(False)
        self._offer((self.send, "1", "A"), (self.refuse, "2", "D"))

    def _show_caps(self, on: bool) -> None:
        self._caps.setHidden(not on)
        self._note.setHidden(not on)

    def _tell_cost(self, cost: SamplingCost, most: int) -> None:
        if cost.estimate_usd is None:
            words = tr("sampling.cost.unknown", tokens=f"{cost.input_tokens:,}")
        else:
            words = tr("sampling.cost", tokens=f"{cost.input_tokens:,}", usd=money(cost.estimate_usd))
        if cost.asked_tokens > most:
            words += " " + tr("sampling.capped", asked=f"{cost.asked_tokens:,}", most=f"{most:,}")
        self.column.addWidget(label(words, selectable=True))
        limit = money(cost.daily_usd) if cost.daily_usd else tr("sampling.no_limit")
        spent = tr(
            "sampling.spent", tokens=f"{cost.spent_tokens:,}", of=f"{cost.daily_tokens:,}",
            usd=money(cost.spent_usd), limit=limit,
        )  # fmt: skip
        self.column.addWidget(label(spent, "muted", selectable=True))

    def _send(self) -> None:
        changed = self.edit is not None and self.edit.changed
        daily = DailyCap(self.tokens.value(), self.usd.value()) if self.always.isChecked() else None
        if self.edit is not None and changed:
            self.reply(Edited(self.edit.toPlainText(), daily))
        else:
            self.reply(Allow(daily=daily))


class ReplyCard(AskCard):
    """The model's reply, before the server gets it."""

    def __init__(self, ask: ReviewReply) -> None:
        super().__init__(ask, "model", tr("chat.ask.reply.title", server=ask.server))
        facts = Flow(space=theme.px(Space.XS))
        facts.addWidget(pill(tr("chat.ask.sampling.model", model=ask.model)))
        self.column.addLayout(facts)
        self.edit: Editable | None = None
        texts = [b for b in ask.blocks if isinstance(b, Text)]
        for block in ask.blocks:
            if isinstance(block, Text) and len(texts) == 1 and len(ask.blocks) == 1:
                self.edit = Editable(block.text, tr("chat.ask.reply.edit"))
                self.column.addWidget(self.edit)
            else:
                self.column.addWidget(view_of(block))
        self.send = button(tr("chat.ask.reply.send"), self._send, role="primary")
        self.refuse = button(tr("chat.ask.reply.refuse"), lambda: self.reply(Refuse()), role="danger")
        self._offer((self.send, "1", "A"), (self.refuse, "2", "D"))

    def _send(self) -> None:
        changed = self.edit is not None and self.edit.changed
        self.reply(Edited(self.edit.toPlainText()) if self.edit is not None and changed else Allow())


class Editable(QPlainTextEdit):
    """Text that may be changed before it leaves; grows to ten lines, then scrolls."""

    def __init__(self, text: str, name: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._before = text
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        set_role(self, "edit")
        self.textChanged.connect(self._fit)
        self.document().documentLayout().documentSizeChanged.connect(lambda _s: self._fit())
        self._fit()

    @property
    def changed(self) -> bool:
        """Whether it reads otherwise than it came."""
        return self.toPlainText() != self._before

    def _fit(self) -> None:
        lines = max(2, min(EDIT_LINES, round(self.document().size().height())))
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + theme.px(24))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """All keys are text here; the card's number keys do not apply."""
        if event.key() == Qt.Key.Key_Escape:
            self.clearFocus()
            return
        super().keyPressEvent(event)
