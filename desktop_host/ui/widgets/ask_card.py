"""Questions to the person, in the conversation: approve a call, fill a form, open a URL, review sampling."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QKeyEvent
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from desktop_host.core.apps import CALLS
from desktop_host.core.asks import (
    Allow,
    Answer,
    ApproveTool,
    Ask,
    Dismiss,
    Filled,
    FillForm,
    OpenUrl,
    Refuse,
    ReviewReply,
    ReviewSampling,
)
from desktop_host.core.host_tools import ALIAS
from desktop_host.core.transcript import AskEntry
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.asks import choices, diff, hint_keys, pretty, url_facts
from desktop_host.ui.widgets.ask_advice import AdviceLine
from desktop_host.ui.widgets.ask_calls import AskingCalls
from desktop_host.ui.widgets.code import CodeFrame
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import Card, button, column, icon_label, label, pill, row
from desktop_host.ui.widgets.schema_form import SchemaForm

ARGUMENT_LINES = 14
"""Lines of arguments seen at once; longer ones scroll and are never cut."""


class AskCard(Card):
    """A question. `answered` is emitted once; then the card waits for the host to settle it."""

    answered = Signal(str, object)
    """`(ask_id, Answer)`."""

    def __init__(self, ask: Ask, icon: str, title: str, role: str = "card-ask") -> None:
        super().__init__(role, margin=theme.px(Space.L), space=theme.px(Space.S))
        self.ask = ask
        self.done = False
        self.keys: dict[int, QPushButton] = {}
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setObjectName("askCard")
        self.setAccessibleName(title)
        head = row(icon_label(icon, "accent", 20), space=theme.px(Space.S))
        self.title = label(title, "strong")
        head.addWidget(self.title, 1)
        if ask.part:
            head.addWidget(pill(tr("chat.part.of", name=ask.part), "info"))
        self.column.addLayout(head)

    def reply(self, answer: Answer) -> None:
        """Answer, once."""
        if not self.done:
            self.done = True
            self.setEnabled(False)
            self.answered.emit(self.ask.ask_id, answer)

    def reopen(self) -> None:
        """The answer did not arrive: let the person try again."""
        self.done = False
        self.setEnabled(True)

    def press(self, number: int) -> None:
        """Press the button of a number key (1 is the first)."""
        buttons = [b for b in self.keys.values() if b.isEnabled()]
        unique = list(dict.fromkeys(buttons))
        if 0 < number <= len(unique):
            unique[number - 1].click()

    def restyle(self) -> None:
        """Colours anew after a change of theme."""
        for frame in self.findChildren(CodeFrame):
            frame.restyle()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The keys named on the buttons, while the card itself has the focus."""
        plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        found = self.keys.get(event.key()) if plain else None
        if found is not None:
            found.click()
        else:
            super().keyPressEvent(event)

    def _again(self, count: int) -> tuple[QPushButton, ...]:
        """A server that asks again during the same call: how often, and a way to stop it."""
        if count < 2:
            return ()
        self.column.addWidget(label(tr("ask.round", n=count), "warning"))
        return (button(tr("ask.stop"), lambda: self.reply(Refuse(stop=True)), role="danger"),)

    def _offer(self, *buttons: tuple[QPushButton, str, str]) -> None:
        """Buttons with their number and letter keys."""
        flow = Flow(space=theme.px(Space.S))
        for made, number, letter in buttons:
            keys = " / ".join(filter(None, (number, letter)))
            made.setToolTip(tr("chat.ask.key", keys=keys))
            made.setAccessibleDescription(made.toolTip())
            for key in (number, letter):
                if key:
                    self.keys[ord(key)] = made
            flow.addWidget(made)
        self.column.addLayout(flow)


def card_for(ask: Ask) -> AskCard:
    """The card of a question."""
    match ask:
        case ApproveTool():
            return ApproveCard(ask)
        case FillForm():
            return FormCard(ask)
        case OpenUrl():
            return UrlCard(ask)
        case ReviewSampling() | ReviewReply():
            from desktop_host.ui.widgets.sampling_card import ReplyCard, SamplingCard

            return SamplingCard(ask) if isinstance(ask, ReviewSampling) else ReplyCard(ask)


class ApproveCard(AskCard):
    """May this call run? With all arguments, what the tool says of itself, and what changed since the last yes."""

    def __init__(self, ask: ApproveTool) -> None:
        name = ask.title or ask.tool
        super().__init__(ask, "shield", tr("chat.ask.tool.title", tool=name, server=ask.server))
        facts = Flow(space=theme.px(Space.XS))
        facts.addWidget(pill(f"{ask.server}.{ask.tool}"))
        facts.addWidget(
            pill(tr("chat.ask.trusted"), "success") if ask.trusted else pill(tr("chat.ask.untrusted"), "warning")
        )
        if ask.call_id.startswith(CALLS):
            facts.addWidget(pill(tr("chat.ask.by_page")))
        for key, tone in hint_keys(ask.hints):
            facts.addWidget(pill(tr(key), tone if ask.trusted else ""))
        self.column.addLayout(facts)
        if ask.changed:
            self._show_change(ask)
        elif ask.description:
            self.column.addWidget(label(ask.description, "muted", selectable=True))
        if ask.advice is not None:
            self.column.addWidget(AdviceLine(ask.advice))
        if not ask.arguments:
            self.column.addWidget(label(tr("chat.ask.no_arguments"), "muted"))
        arguments = CodeFrame("json", title=tr("chat.tool.arguments"), max_lines=ARGUMENT_LINES, wrap=True)
        arguments.add_lines(pretty(ask.arguments))
        arguments.close_block()
        self.arguments = arguments
        self.column.addWidget(arguments)
        arguments.setVisible(bool(ask.arguments))
        offered = []
        for number, choice in enumerate(choices(ask), 1):
            role = "primary" if number == 1 else "danger" if choice.letter == "D" else ""
            text = f"{tr(choice.key)}  {number}"
            made = button(text, partial(self.reply, choice.answer), role=role)
            made.setAccessibleName(tr(choice.key))
            offered.append((made, str(number), choice.letter))
        self.buttons = tuple(made for made, _n, _l in offered)
        self._offer(*offered)
        self.column.addWidget(label(tr("chat.ask.keys"), "caption"))

    def _show_change(self, ask: ApproveTool) -> None:
        self.column.addWidget(label(tr("chat.ask.changed"), "warning"))
        frame = QFrame()
        frame.setProperty("role", "well")
        lines = column(frame, space=0, margin=theme.px(Space.S))
        if ask.previous_description is None or ask.previous_description == ask.description:
            lines.addWidget(label(tr("chat.ask.changed.schema"), "muted"))
            lines.addWidget(label(ask.description, selectable=True))
        else:
            for mark, text in diff(ask.previous_description, ask.description):
                tone = {"-": "danger", "+": "success"}.get(mark, "muted")
                lines.addWidget(label(f"{mark} {text}" if mark.strip() else f"  {text}", tone, selectable=True))
        self.column.addWidget(frame)


class FormCard(AskCard):
    """A server's form."""

    def __init__(self, ask: FillForm) -> None:
        ours = ask.server == ALIAS  # No server can have this name.
        super().__init__(
            ask,
            "key" if ours else "edit",
            tr("chat.ask.host.title" if ours else "chat.ask.form.title", server=ask.server),
        )
        if not ours:
            self.column.addWidget(AskingCalls(ask.server, ask.calls))
        self.column.addWidget(label(ask.message, selectable=True))
        self.form = SchemaForm(ask.schema)
        self.column.addWidget(self.form)
        if not ours:
            self.column.addWidget(label(tr("chat.ask.form.warning"), "caption"))
        self.accept = button(tr("chat.ask.form.send"), self._send, role="primary")
        self.decline = button(tr("chat.ask.decline"), lambda: self.reply(Refuse()))
        self.cancel = button(tr("chat.ask.cancel"), lambda: self.reply(Dismiss()), role="quiet")
        self.column.addLayout(Flow(self.accept, self.decline, self.cancel, *self._again(ask.round)))

    def _send(self) -> None:
        values = self.form.values()
        if values is not None:
            self.reply(Filled(values, whole=True))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter in a one-line field sends."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.modifiers():
            self._send()
        else:
            super().keyPressEvent(event)


class UrlCard(AskCard):
    """A server wants a page opened: the whole address, its host in bold, and what is odd about it."""

    def __init__(self, ask: OpenUrl) -> None:
        facts = url_facts(ask.url)
        signing = ask.purpose in ("sign_in", "more_access")
        title = f"chat.ask.{ask.purpose}.title" if signing else "chat.ask.url.title"
        super().__init__(ask, "key" if signing else "external", tr(title, server=ask.server))
        if ask.calls:  # A sign-in belongs to the server, not to a call.
            self.column.addWidget(AskingCalls(ask.server, ask.calls))
        why = tr(f"chat.ask.{ask.purpose}.why", server=ask.server, host=facts.readable_host) if signing else ask.message
        self.column.addWidget(label(why, selectable=True))
        if signing and facts.scopes:
            self.column.addWidget(label(tr("chat.ask.scopes", scopes=", ".join(facts.scopes)), selectable=True))
        address = label("", "", selectable=True)
        address.setTextFormat(Qt.TextFormat.RichText)
        strong = theme.colors.text
        address.setText(
            f"<span style='color:{theme.colors.muted}'>{_html(facts.before_host)}</span>"
            f"<b style='color:{strong}'>{_html(facts.host)}</b>"
            f"<span style='color:{theme.colors.muted}'>{_html(facts.after_host)}</span>"
        )
        address.setAccessibleName(ask.url)
        well = QFrame()
        well.setProperty("role", "well")
        inner = column(well, margin=theme.px(Space.M))
        inner.addWidget(address)
        self.address = address
        self.column.addWidget(well)
        for key in facts.warnings:
            line = row(icon_label("warning", "warning", 16))
            line.addWidget(label(tr(key, host=facts.host, readable=facts.readable_host), "warning"), 1)
            self.column.addLayout(line)
        again = "chat.ask.url.again" if ask.opened else "chat.ask.url.open"
        role = "" if ask.opened else "primary"
        self.open = button(tr(again, host=facts.host or "?"), self._open, role=role)
        self.open.setEnabled(facts.can_open)
        self.go_on = button(tr("chat.ask.url.go_on"), lambda: self.reply(Allow()), role="primary")
        self.go_on.setVisible(ask.opened)
        if ask.opened:
            self.column.addWidget(label(tr("chat.ask.url.waits"), "strong"))
        self.decline = button(tr("chat.ask.decline"), lambda: self.reply(Refuse()))
        self.cancel = button(tr("chat.ask.cancel"), lambda: self.reply(Dismiss()), role="quiet")
        self.column.addLayout(Flow(self.go_on, self.open, self.decline, self.cancel, *self._again(ask.round)))

    def _open(self) -> None:
        assert isinstance(self.ask, OpenUrl)
        if not self.done:
            QDesktopServices.openUrl(QUrl(self.ask.url))
            self.reply(Allow())


class SettledAsk(QWidget):
    """A question that was answered, as one quiet line."""

    def __init__(self, entry: AskEntry) -> None:
        super().__init__()
        layout = row(owner=self, space=theme.px(Space.S))
        ok = entry.action in ("allow", "filled", "edited")
        layout.addWidget(icon_label("check" if ok else "close", "muted", 14))
        kind = tr(f"chat.settled.{entry.ask.kind}", server=entry.ask.server)
        words = tr(f"chat.settled.action.{entry.action or 'dismissed'}")
        layout.addWidget(label(f"{kind}: {words}", "caption"), 1)

    def restyle(self) -> None:
        """Nothing here is painted by hand."""


def _html(text: str) -> str:
    """Text as HTML that may break anywhere (a long query has no spaces)."""
    special = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;"}
    return "&#8203;".join("".join(special.get(c, c) for c in text[at : at + 8]) for at in range(0, len(text), 8))
