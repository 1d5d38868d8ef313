"""A server asks the host's model: review what it sends, then what comes back."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QCheckBox, QPlainTextEdit, QWidget

from desktop_host.core.asks import (
    DAILY_USD,
    Allow,
    DailyCap,
    Edited,
    Refuse,
    ReviewReply,
    ReviewSampling,
    SamplingCost,
)
from desktop_host.core.exchange import SamplingRequest
from desktop_host.core.messages import Role, Text
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.widgets.ask_calls import AskingCalls
from desktop_host.ui.widgets.ask_card import AskCard
from desktop_host.ui.widgets.checks import check_line
from desktop_host.ui.widgets.content_views import view_of
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import MoneyBox, NumberBox
from desktop_host.ui.widgets.inspector_chat import money
from desktop_host.ui.widgets.pieces import button, label, pill
from desktop_host.ui.widgets.sampling_model import ModelPick

EDIT_LINES = 10


class SamplingCard(AskCard):
    """The request. Its last message can be edited; all others are shown as they are."""

    def __init__(self, ask: ReviewSampling) -> None:
        super().__init__(ask, "model", tr("chat.ask.sampling.title", server=ask.server))
        request = ask.request
        self.column.addWidget(AskingCalls(ask.server, ask.calls))
        self.column.addWidget(label(tr("sampling.pays"), "muted"))
        self.model = ModelPick(ask)
        self.column.addWidget(self.model)
        self.column.addLayout(_wishes(request))
        if ask.cost is not None:
            self._tell_spent(ask.cost)
        if request.context != "none":
            self.column.addWidget(label(tr(f"sampling.context.{request.context}"), "muted"))
        if request.tools:
            names = ", ".join(t.name for t in request.tools)
            self.column.addWidget(label(tr("sampling.tools", names=names), "muted", selectable=True))
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
        self.always = QCheckBox()
        self.tokens = NumberBox(1, 10_000_000, step=1000, suffix=tr("sampling.tokens_day"))
        self.tokens.setValue(ask.cost.daily_tokens if ask.cost and ask.cost.daily_tokens else 50_000)
        self.usd = MoneyBox((ask.cost.daily_usd if ask.cost else 0) or DAILY_USD, least=0.01)
        for box, name in ((self.tokens, tr("sampling.cap_tokens")), (self.usd, tr("sampling.cap_usd"))):
            box.setAccessibleName(name)
            box.setToolTip(name)
        self._caps = QWidget()
        self._caps.setLayout(Flow(self.tokens, label(tr("sampling.and"), "muted", wrap=False), self.usd))
        self._note = label(tr("sampling.always.note"), "caption")
        self.always.toggled.connect(self._show_caps)
        self.send = button(tr("chat.ask.sampling.send"), self._send, role="primary")
        self.refuse = button(tr("chat.ask.sampling.refuse"), lambda: self.reply(Refuse()), role="danger")
        self.column.addLayout(check_line(self.always, tr("sampling.always", server=ask.server)))
        self.column.addWidget(self._caps)
        self.column.addWidget(self._note)
        self._show_caps(False)
        self._offer((self.send, "1", "A"), (self.refuse, "2", "D"))

    def _show_caps(self, on: bool) -> None:
        self._caps.setHidden(not on)
        self._note.setHidden(not on)

    def _tell_spent(self, cost: SamplingCost) -> None:
        limit = tr("sampling.limit", usd=money(cost.daily_usd)) if cost.daily_usd else tr("sampling.no_limit")
        spent = tr(
            "sampling.spent", tokens=f"{cost.spent_tokens:,}", of=f"{cost.daily_tokens:,}",
            usd=money(cost.spent_usd), limit=limit,
        )  # fmt: skip
        self.column.addWidget(label(spent, "muted", selectable=True))

    def _send(self) -> None:
        changed = self.edit is not None and self.edit.changed
        daily = DailyCap(self.tokens.value(), self.usd.value()) if self.always.isChecked() else None
        if self.edit is not None and changed:
            self.reply(Edited(self.edit.toPlainText(), daily, self.model.changed))
        else:
            self.reply(Allow(daily=daily, model=self.model.changed))


class ReplyCard(AskCard):
    """The model's reply, before the server gets it."""

    def __init__(self, ask: ReviewReply) -> None:
        super().__init__(ask, "model", tr("chat.ask.reply.title", server=ask.server))
        facts = Flow(space=theme.px(Space.XS))
        facts.addWidget(pill(tr("chat.ask.sampling.model", model=ask.model)))
        if ask.stop in ("maxTokens", "stopSequence", "toolUse", "refusal"):
            facts.addWidget(pill(tr(f"sampling.stop.{ask.stop}"), "" if ask.stop == "stopSequence" else "warning"))
        self.column.addWidget(AskingCalls(ask.server, ask.calls))
        self.column.addLayout(facts)
        for what in ask.left_out:
            self.column.addWidget(label(tr(f"sampling.left_out.{what}"), "muted"))
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


def _wishes(request: SamplingRequest) -> Flow:
    """What the server would like, as small words."""
    facts = Flow(space=theme.px(Space.XS))
    facts.addWidget(pill(trn("chat.ask.sampling.cap", request.max_tokens)))
    if request.hints:
        facts.addWidget(pill(tr("chat.ask.sampling.hints", hints=", ".join(request.hints))))
    for key, value in (
        ("cost", request.cost_priority),
        ("speed", request.speed_priority),
        ("intelligence", request.intelligence_priority),
        ("temperature", request.temperature),
    ):
        if value is not None:
            facts.addWidget(pill(tr(f"chat.ask.sampling.{key}", value=f"{value:g}")))
    if request.stop:
        facts.addWidget(pill(tr("chat.ask.sampling.stop", stops=" ".join(repr(s) for s in request.stop))))
    if request.tools and request.tool_choice != "auto":
        facts.addWidget(pill(tr(f"sampling.choice.{request.tool_choice}")))
    return facts


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
        line = self.fontMetrics().lineSpacing()
        # Lines with other scripts are higher than the font says, so the text itself is measured.
        text = self.blockBoundingGeometry(self.document().lastBlock()).bottom() + 2 * self.document().documentMargin()
        around = max(theme.px(16), self.height() - self.viewport().height())
        self.setFixedHeight(int(max(2 * line, min(EDIT_LINES * line, text))) + around + 2)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """All keys are text here; the card's number keys do not apply."""
        if event.key() == Qt.Key.Key_Escape:
            self.clearFocus()
            return
        super().keyPressEvent(event)
