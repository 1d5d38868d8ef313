"""Lines of the host's own in a conversation: retries, errors, changed tools, how a turn ended."""

from __future__ import annotations

import time
from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFrame, QWidget

from desktop_host.core.skills import SkillNeed
from desktop_host.core.transcript import NoticeEntry
from desktop_host.core.values import canonical
from desktop_host.i18n import current, tr, trn
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import button, clear, column, icon_label, label, row
from desktop_host.ui.widgets.skill_words import need_text

_LOOKS = {
    "retry_scheduled": ("clock", "warning"),
    "turn_error": ("error", "danger"),
    "turn_interrupted": ("stop", "muted"),
    "turn_length": ("warning", "warning"),
    "turn_refusal": ("shield", "warning"),
    "turn_max_steps": ("warning", "warning"),
    "turn_budget": ("usage", "warning"),
    "tools_changed": ("tool", "info"),
    "route_changed": ("model", "muted"),
    "skill_pinned": ("skills", "muted"),
    "skill_needs": ("warning", "warning"),
    "skill_route": ("model", "muted"),
    "skill_project": ("folder", "warning"),
    "compacted": ("document", "muted"),
    "budget_near": ("usage", "warning"),
    "quota_near": ("usage", "warning"),
    "turn_tokens_near": ("usage", "warning"),
    "budget_late": ("usage", "warning"),
    "branched": ("branch", "muted"),
    "page_said": ("eye", "muted"),
}
_CARDS = {
    "turn_error": "card-danger", "tools_changed": "card-info", "retry_scheduled": "card-warning",
    "budget_near": "card-warning", "quota_near": "card-warning", "turn_budget": "card-warning",
}  # fmt: skip
_RAISES = ("budget_near", "quota_near", "turn_tokens_near", "budget_late", "turn_budget")
_BUDGETS = ("budget_spent", "quota_spent", "price_unknown")
_VERBS = {"turn_interrupted": "resume", "turn_error": "resume", "turn_length": "continue", "turn_max_steps": "resume"}


class NoticeLine(QFrame):
    """One notice."""

    acted = Signal(str)
    """What its button wants: resume, continue, apply_tools, cancel, settings, undo_summary, raise_budget, open:ID,
    trust:FOLDER."""

    def __init__(self, entry: NoticeEntry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.entry = entry
        self._last = False
        self._column = column(self, space=theme.px(Space.XS))
        self._tick = QTimer(self)
        self._tick.setInterval(250)
        self._tick.timeout.connect(self._count)
        self.show_entry(entry)

    def show_entry(self, entry: NoticeEntry) -> None:
        """Show the notice as it now is."""
        self.entry = entry
        self._fill()

    def set_last(self, last: bool) -> None:
        """Only the newest end of a turn offers to go on."""
        if last != self._last:
            self._last = last
            self._fill()

    @property
    def words(self) -> tuple[str, str]:
        """What happened, and what to do (may be empty)."""
        entry = self.entry
        params: dict[str, Any] = {k: v for k, v in entry.params.items() if k != "from"}
        match entry.code:
            case "retry_scheduled":
                left = max(0, round((entry.until or 0) - time.time()))
                why = current().error(str(params.get("code", "")), {}, str(params.get("message", "")))[0]
                return trn("chat.notice.retry", left, attempt=params.get("attempt", 1)), why
            case "turn_error" | "turn_budget" if params.get("error") or entry.code == "turn_error":
                return _fault_words(entry)
            case "tools_changed":
                return _tools_words(params)
            case "compacted" if params.get("undone"):
                return tr("chat.notice.compacted.undone"), ""
            case "compacted":
                numbers = {k: f"{params.get(k) or 0:,}" for k in ("before", "after")}
                return tr("chat.notice.compacted", **numbers), str(params.get("summary") or "")
            case "budget_near":
                spent, limit = (f"${float(params.get(k) or 0):,.2f}" for k in ("spent", "limit"))
                key = f"composer.budget_near.{params.get('scope', 'day')}"
                return tr(key, percent=params.get("percent", ""), spent=spent, limit=limit), ""
            case "page_said":
                return tr("chat.notice.page_said", server=params.get("server", "")), _page_words(params)
            case "route_changed":
                why = current().switched(str(params.get("reason", "")))
                old = entry.params.get("from", "")
                return tr("chat.notice.route_changed", old=old, new=params.get("to", ""), why=why), ""
            case "skill_needs":
                need = SkillNeed(*(str(params.get(k, "")) for k in ("skill", "kind", "name")))
                return tr("skills.chat.lacks", skill=need.skill), need_text(need)
        if entry.code == "compaction_failed":
            params["code"] = current().switched(str(params.get("code", "")))
        for key in (f"chat.notice.{entry.code}", f"notice.{entry.code}"):
            if current().has(key):
                return tr(key, **params), ""
        detail = ", ".join(f"{k}: {v}" for k, v in params.items() if isinstance(v, str | int | float))
        return tr("chat.notice.other", code=entry.code.replace("_", " "), detail=detail), ""

    def _fill(self) -> None:
        entry = self.entry
        clear(self._column)
        icon, role = _LOOKS.get(entry.code, ("info", "muted"))
        card = _CARDS.get(entry.code)
        set_role(self, card or "line-notice")
        margin = theme.px(Space.M) if card else 0
        self._column.setContentsMargins(margin, margin * 2 // 3, margin, margin * 2 // 3)
        what, more = self.words
        self._mark = icon_label(icon, role, 16)
        what, _, quoted = what.partition("\n")
        self._what = label(what, "strong" if card else "muted", selectable=bool(card))
        line = row(self._mark, space=theme.px(Space.S))
        line.addWidget(self._what, 1)
        self._column.addLayout(line)
        for text, role in ((quoted, "muted"), (more, "")):
            if text:
                inset = row(space=0)
                inset.addSpacing(theme.px(24))
                inset.addWidget(label(text, role, selectable=True), 1)
                self._column.addLayout(inset)
        self.setAccessibleName(" ".join(filter(None, (what, quoted, more))))
        verb = self._verb()
        if verb:
            self.action = button(tr(f"chat.do.{verb.partition(':')[0]}"), lambda: self.acted.emit(verb))
            inset = row(space=0)
            inset.addSpacing(theme.px(24))
            buttons = [self.action]
            if self.entry.code == "turn_budget" and self._last:
                buttons.append(button(tr("chat.do.resume"), lambda: self.acted.emit("resume")))
            inset.addLayout(Flow(*buttons))
            self._column.addLayout(inset)
        waiting = entry.code == "retry_scheduled"
        if waiting != self._tick.isActive():
            self._tick.start() if waiting else self._tick.stop()

    def _verb(self) -> str:
        code = self.entry.code
        if code == "retry_scheduled":
            return "cancel"
        if code == "compacted":
            return "" if self.entry.params.get("undone") else "undo_summary"
        if code == "skill_project":
            return f"trust:{self.entry.params.get('folder', '')}"
        if code == "branched":
            return f"open:{self.entry.params.get('source', '')}"
        if code in _RAISES or (code == "turn_error" and _error_code(self.entry) in _BUDGETS):
            return "raise_budget"
        if code == "tools_changed":
            return "" if self.entry.params.get("applied") else "apply_tools"
        if code == "turn_error" and _error_code(self.entry) in ("auth", "billing", "model_missing", "unknown_model"):
            return "settings"
        return _VERBS.get(code, "") if self._last else ""

    def _count(self) -> None:
        self._what.setText(self.words[0].partition("\n")[0])

    def restyle(self) -> None:
        """Icons anew after a change of theme."""
        icon, role = _LOOKS.get(self.entry.code, ("info", "muted"))
        set_icon(self._mark, icon, role, 16)


def _page_words(params: dict[str, Any]) -> str:
    """All that a page has for the model: its text, and its data as JSON."""
    data = params.get("structured")
    told = [str(params.get("text") or ""), "" if data is None else canonical(data)]
    return "\n".join(part for part in told if part)


def _fault_words(entry: NoticeEntry) -> tuple[str, str]:
    """What ended a turn. Where a button raises the limit, nobody is told of options and keys."""
    error = entry.params.get("error") or {}
    code = str(error.get("code", "bug"))
    what, remedy = current().error(code, dict(error.get("params") or {}), str(error.get("message", "")))
    return what, "" if code in ("budget_spent", "quota_spent") else remedy


def _error_code(entry: NoticeEntry) -> str:
    error = entry.params.get("error")
    return str(error.get("code", "")) if isinstance(error, dict) else ""


def _tools_words(params: dict[str, Any]) -> tuple[str, str]:
    if params.get("applied"):
        return tr("chat.notice.tools_applied"), ""
    parts = []
    for kind in ("added", "removed", "changed"):
        names = params.get(kind) or ()
        if names:
            shown = ", ".join(names[:6]) + ("…" if len(names) > 6 else "")
            parts.append(trn(f"chat.notice.tools.{kind}", len(names), names=shown))
    return tr("chat.notice.tools_changed"), "\n".join(parts)
