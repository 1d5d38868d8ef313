"""The call during which a server asks: which tool, with which arguments; or that it is one of several."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget

from desktop_host.core.exchange import RunningCall
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.viewmodels.asks import pretty
from desktop_host.ui.widgets.code import CodeFrame
from desktop_host.ui.widgets.pieces import Elided, button, column, label, row

ARGUMENT_LINES = 10
"""Lines of arguments seen at once; longer ones scroll and are never cut."""


class AskingCalls(QWidget):
    """One line for each call, its arguments folded below."""

    def __init__(self, server: str, calls: tuple[RunningCall, ...]) -> None:
        super().__init__()
        inner = column(self, space=theme.px(Space.XS))
        self.folds: tuple[QPushButton, ...] = ()
        if len(calls) == 1:
            inner.addWidget(label(tr(f"ask.during.{calls[0].kind}"), "caption"))
        elif calls:
            inner.addWidget(label(tr("ask.during.several"), "warning"))
        else:
            inner.addWidget(label(tr("ask.during.none"), "muted"))
        for call in calls:
            self.folds += self._call(inner, server, call)

    def _call(self, inner: QVBoxLayout, server: str, call: RunningCall) -> tuple[QPushButton, ...]:
        name = f"{server}.{call.name}" if call.kind == "tool" else call.name
        well = QFrame()
        set_role(well, "well")
        lines = column(well, space=theme.px(Space.XS), margin=theme.px(Space.S))
        title = Elided(name, "strong", snug=True)
        title.setAccessibleName(name)
        head = row(title, None, space=theme.px(Space.S))
        lines.addLayout(head)
        inner.addWidget(well)
        if not call.arguments:
            head.addWidget(label(tr("chat.ask.no_arguments"), "caption", wrap=False))
            return ()
        shown = CodeFrame("json", title=tr("chat.tool.arguments"), max_lines=ARGUMENT_LINES)
        shown.add_lines(pretty(call.arguments))
        shown.close_block()
        shown.hide()
        fold = button(tr("chat.tool.arguments"), role="quiet")
        set_icon(fold, "chevron-right", "muted", 14)
        fold.setCheckable(True)
        fold.setAccessibleName(tr("ask.during.arguments", name=name))

        def turn(on: bool) -> None:
            shown.setVisible(on)
            set_icon(fold, "chevron-down" if on else "chevron-right", "muted", 14)

        fold.toggled.connect(turn)
        head.addWidget(fold)
        lines.addWidget(shown)
        return (fold,)
