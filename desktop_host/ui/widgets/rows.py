"""One row of a conversation: which widget shows an entry, and how it takes a newer state of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from desktop_host.core.asks import ApproveTool
from desktop_host.core.transcript import AskEntry, AssistantEntry, Entry, NoticeEntry, ToolEntry, UserEntry
from desktop_host.ui.widgets.ask_card import AskCard, SettledAsk, card_for
from desktop_host.ui.widgets.message import AssistantMessage
from desktop_host.ui.widgets.notice import NoticeLine
from desktop_host.ui.widgets.tool_card import ToolCard
from desktop_host.ui.widgets.user_message import UserMessage

if TYPE_CHECKING:
    from desktop_host.ui.widgets.transcript import TranscriptView

Row: TypeAlias = UserMessage | AssistantMessage | ToolCard | NoticeLine | AskCard | SettledAsk


def make(entry: Entry) -> Row:
    """A widget for an entry."""
    match entry:
        case UserEntry():
            return UserMessage(entry)
        case AssistantEntry():
            return AssistantMessage(entry)
        case ToolEntry():
            return ToolCard(entry)
        case NoticeEntry():
            return NoticeLine(entry)
        case AskEntry():
            if entry.action is None:
                return card_for(entry.ask)
            settled = SettledAsk(entry)
            # The card of the call itself says what became of it.
            if isinstance(entry.ask, ApproveTool):
                settled.hide()
            return settled


def wire(row: Row, view: TranscriptView) -> None:
    """Let what the person does in a row be heard from the view."""
    match row:
        case AskCard():
            row.answered.connect(view.answered)
        case NoticeLine():
            row.acted.connect(view.acted)
        case UserMessage() | AssistantMessage():
            row.acted.connect(view.message_acted)
        case ToolCard():
            row.link_wanted.connect(view.link_wanted)
            view.card_made.emit(row)
            row.subtasks.acted.connect(view.acted)


def show(row: Row, entry: Entry) -> bool:
    """Show a newer state of an entry in its widget; False where it needs another one."""
    match row, entry:
        case (UserMessage(), UserEntry()):
            row.show_entry(entry)
        case (AssistantMessage(), AssistantEntry()):
            row.show_entry(entry)
        case (ToolCard(), ToolEntry()):
            row.show_entry(entry)
        case (NoticeLine(), NoticeEntry()):
            row.show_entry(entry)
        case _:
            return False
    return True
