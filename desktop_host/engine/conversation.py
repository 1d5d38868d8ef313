"""The messages of a session, folded from its events, as a model is to see them."""

from __future__ import annotations

from desktop_host.core.events import AssistantSaid, SkillsChosen, Stamped, ToolSettled, TurnEnded, TurnStarted, UserSaid
from desktop_host.core.messages import (
    ContentBlock,
    EmbeddedResource,
    Message,
    Outcome,
    Role,
    Text,
    ToolResult,
    by_priority,
    for_model,
)
from desktop_host.core.values import canonical
from desktop_host.engine.repair import CONTINUE, repair

_TOLD = {
    Outcome.DENIED: "The person did not allow this call. Do not try it again unless they ask for it.",
    Outcome.CANCELLED: "Cancelled before it finished; it may have had effects.",
    Outcome.TIMED_OUT: "Timed out; it may still have had effects.",
    Outcome.UNKNOWN: "The host stopped while this ran: it may or may not have had its effect.",
}


class Conversation:
    """Messages in order; `apply` events as they come, `messages` before each request."""

    def __init__(self, result_chars: int) -> None:
        self._result_chars = result_chars
        self._messages: list[Message] = []
        self._results: dict[str, ToolResult] = {}
        self._waiting: tuple[str, ...] = ()
        self.requests = 0
        """Model requests made so far; a script's place is counted by it."""
        self.turns = 0
        self.open_turn: int | None = None
        self.unsettled: set[str] = set()
        """Ids of calls without a result."""

    def apply(self, stamped: Stamped) -> None:
        """Take one journaled event."""
        match stamped.event:
            case UserSaid() as said:
                self.turns = max(self.turns, stamped.turn)
                self._flush()
                self._messages.append(Message(Role.USER, (*_blocks(said.text), *said.blocks)))
            case SkillsChosen(text=text) if text:
                last = self._messages[-1]
                self._messages[-1] = Message(last.role, (*last.blocks, Text(text)))
            case TurnStarted(resumed=resumed):
                self.turns = max(self.turns, stamped.turn)
                self.open_turn = stamped.turn
                self._flush()
                if resumed and self._messages and self._messages[-1].role is Role.ASSISTANT:
                    self._messages.append(Message(Role.USER, (Text(CONTINUE),)))
            case AssistantSaid() as said:
                self.requests += 1
                self._flush()
                if said.message.blocks or said.message.native:
                    self._messages.append(said.message)
                self._waiting = () if said.partial else tuple(c.id for c in said.message.calls)
                self.unsettled = set(self._waiting)
            case ToolSettled() as settled:
                self.unsettled.discard(settled.call_id)
                self._results[settled.call_id] = ToolResult(
                    settled.call_id, self._content(settled), settled.outcome, settled.structured
                )
                if not self.unsettled:
                    self._flush()
            case TurnEnded():
                self.open_turn = None
            case _:
                pass

    def messages(self) -> tuple[Message, ...]:
        """The conversation as a model may have it: repaired, results in call order."""
        return repair(self._messages)

    def _flush(self) -> None:
        """Put the results that are in into one message, in the order of the calls."""
        if self._waiting:
            results = tuple(self._results[i] for i in self._waiting if i in self._results)
            if results:
                self._messages.append(Message(Role.USER, results))
        self._waiting = ()
        self._results.clear()

    def _content(self, settled: ToolSettled) -> tuple[ContentBlock, ...]:
        told = _TOLD.get(settled.outcome)
        content = told_to_model(settled.content, self._result_chars)
        if not content and settled.structured is not None:
            content = (Text(canonical(settled.structured)),)
        if told:
            content = (Text(told), *content) if content else (Text(told),)
        left = self._result_chars
        out: list[ContentBlock] = []
        for block in content:
            match block:
                case Text(text=text):
                    out.append(Text(cut(text, max(left, 200))))
                    left -= len(text)
                case EmbeddedResource(text=str(text)):
                    out.append(EmbeddedResource(block.uri, block.mime_type, cut(text, max(left, 200))))
                    left -= len(text)
                case _:
                    out.append(block)
        return tuple(out)


def told_to_model(content: tuple[ContentBlock, ...], limit: int) -> tuple[ContentBlock, ...]:
    """What the model gets of a result: nothing meant for the person alone; the important first where it is long."""
    kept = for_model(content)
    if content and not kept:
        return (Text("(The result is meant for the person alone; they see it.)"),)
    return by_priority(kept, limit)


def _blocks(text: str) -> tuple[ContentBlock, ...]:
    return (Text(text),) if text else ()


def cut(text: str, limit: int) -> str:
    """Head and tail of a text longer than `limit` characters, with a note of what is missing between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    missing = len(text) - head - tail
    return f"{text[:head]}\n[… {missing:,} characters left out; the person sees the whole …]\n{text[-tail:]}"
