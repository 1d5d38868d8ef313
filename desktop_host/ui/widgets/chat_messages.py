"""What a person does with single messages of a chat: the menu, edit and resend, quotes, a copied range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from desktop_host.core.transcript import AssistantEntry, Entry, UserEntry
from desktop_host.engine.host import InputFile
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, icon, theme
from desktop_host.ui.viewmodels.retelling import excerpt, quoted
from desktop_host.ui.widgets.message import AssistantMessage
from desktop_host.ui.widgets.pieces import Card, button, icon_button, icon_label, label, row
from desktop_host.ui.widgets.user_message import UserMessage

if TYPE_CHECKING:
    from desktop_host.ui.widgets.chat import ChatPage


class Strip(Card):
    """One line above the composer that says in which mode it is, with a way out."""

    def __init__(self) -> None:
        super().__init__("card-info", margin=theme.px(Space.S), space=0)
        self._mark = icon_label("edit", "info")
        self._words = label("")
        self._close = icon_button("close", tr("action.cancel"))
        self.action = button("")
        line = row(self._mark, space=theme.px(Space.S))
        line.addWidget(self._words, 1)
        line.addWidget(self.action)
        line.addWidget(self._close)
        self.column.addLayout(line)
        self.cancelled = self._close.clicked
        self.hide()

    def say(self, words: str, action: str = "") -> None:
        """Show the mode."""
        self._words.setText(words)
        self.action.setText(action)
        self.action.setVisible(bool(action))
        self.setAccessibleName(words)
        self.show()

    @property
    def words(self) -> str:
        """What it says."""
        return self._words.text()


class MessageActs(QObject):
    """The acts on messages of a chat page."""

    def __init__(self, page: ChatPage) -> None:
        super().__init__(page)
        self._page = page
        self._chat = page.chat
        self._editing: int | None = None
        self._before = ""
        """What was typed before a message was edited."""
        self._marked: str | None = None
        self.strip = Strip()
        self.strip.cancelled.connect(lambda _c=False: self.cancel())
        self.strip.action.clicked.connect(lambda _c=False: self.copy_range(None))
        page.view.message_acted.connect(self.act)
        page.chat.opened.connect(self._forget)

    # ---- for the page

    @property
    def active(self) -> bool:
        """Whether a message is being edited or a range marked: Escape ends that first."""
        return self._editing is not None or self._marked is not None

    def send(self, text: str, files: tuple[InputFile, ...]) -> bool:
        """Send an edited message; False where none is being edited."""
        if self._editing is None:
            return False
        turn, self._editing = self._editing, None
        self.strip.hide()
        self._chat.set_draft(self._before)
        self._chat.retelling.resend(turn, text, files)
        return True

    def cancel(self) -> None:
        """Leave editing or marking."""
        if self._editing is not None:
            self._page.composer.put(self._before, self._page.composer.files)
        self._forget()
        self._page.focus_composer()

    def act(self, verb: str, key: str) -> None:
        """Do what a message's button says."""
        entry = self._chat.transcript.now.entry(key)
        if not isinstance(entry, UserEntry | AssistantEntry):
            return
        telling = self._chat.retelling
        match verb:
            case "regenerate":
                telling.regenerate(entry.turn)
            case "good" | "bad" | "unjudged":
                telling.judge(entry.turn, {"good": True, "bad": False}.get(verb))
            case "edit" if isinstance(entry, UserEntry):
                self._edit(entry)
            case "more":
                self._menu(entry)
            case "above":
                self._page.wanted.emit(entry.source.removeprefix("subtask:") if isinstance(entry, UserEntry) else "")
            case "quote":
                self._quote(entry.text)
            case "copy":
                QGuiApplication.clipboard().setText(entry.text)
            case "branch":
                # From the person's message: before it; from a reply: after it.
                telling.branch(entry.turn if isinstance(entry, UserEntry) else entry.turn + 1)
            case "copy_from":
                self._marked = key
                self.strip.say(tr("composer.range.marked", text=_short(entry.text)), tr("composer.range.all"))
            case "copy_to":
                self.copy_range(key)

    def copy_range(self, last: str | None) -> None:
        """Copy from the marked message to another one (None: to the end), whichever stands first."""
        now = self._chat.transcript.now
        ends = [now.index.get(self._marked or ""), now.index.get(last) if last else len(now.entries) - 1]
        self._marked = None
        self.strip.hide()
        places = [place for place in ends if place is not None]
        if len(places) < 2:
            return
        chosen: tuple[Entry, ...] = now.entries[min(places) : max(places) + 1]
        QGuiApplication.clipboard().setText(excerpt(chosen, tr("composer.range.you"), tr("composer.range.tool")))
        self._page.told.emit(tr("composer.range.copied"))

    def notice(self, verb: str) -> None:
        """Do what the button of a notice says."""
        page, chat = self._page, self._chat
        match verb:
            case "resume":
                chat.resume()
            case "continue":
                chat.send(tr("chat.do.continue.text"))
            case "apply_tools":
                chat.apply_tools()
            case "cancel":
                chat.stop()
            case "settings":
                page.needs_model.emit()
            case "undo_summary":
                chat.retelling.undo_summary()
            case "raise_budget":
                page.needs_budget.emit()
            case _ if verb.startswith("trust:"):
                page.skills.model.trust(verb.removeprefix("trust:"))
            case _ if verb.startswith("open:"):
                page.wanted.emit(verb.removeprefix("open:"))

    # ---- inside

    def _menu(self, entry: UserEntry | AssistantEntry) -> None:
        row = self._page.view.rows[entry.key]
        if not isinstance(row, UserMessage | AssistantMessage):
            raise TypeError(f"the row of {entry.key} is no message but a {type(row).__name__}")
        menu = QMenu(row)
        verbs = [("copy", "copy"), ("quote", "quote"), ("branch", "branch")]
        if isinstance(entry, UserEntry):
            verbs.insert(2, ("edit", "edit"))
        else:
            verbs.insert(2, ("restart", "regenerate"))
            verbs += [("thumb-up", "good"), ("thumb-down", "bad")]
        verbs.append(("copy", "copy_to" if self._marked else "copy_from"))
        for mark, verb in verbs:
            words = (
                f"composer.{verb}.yours" if verb == "branch" and isinstance(entry, UserEntry) else f"composer.{verb}"
            )
            action = menu.addAction(icon(mark, "muted", 16), tr(words))
            action.setObjectName(verb)
            action.triggered.connect(lambda _c=False, v=verb: self.act(v, entry.key))
        self.menu = menu
        at = row.foot.more if isinstance(row, AssistantMessage) else row.more
        menu.popup(_below(at))

    def _edit(self, entry: UserEntry) -> None:
        self._marked = None
        if self._editing is None:
            self._before = self._page.composer.text
        self._editing = entry.turn
        self.strip.say(tr("composer.editing"))
        self._page.put_text(entry.text)

    def _quote(self, text: str) -> None:
        before = self._page.composer.text
        joint = "\n\n" if before.strip() else ""
        self._page.put_text(f"{before.rstrip()}{joint}{quoted(text)}")

    def _forget(self) -> None:
        self._editing = self._marked = None
        self.strip.hide()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 48 else f"{line[:47].rstrip()}…"


def _below(which: QWidget) -> QPoint:
    return which.mapToGlobal(which.rect().bottomLeft())
