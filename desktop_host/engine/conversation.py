"""The messages of a session, folded from its events, as a model is to see them."""

from __future__ import annotations

from collections.abc import Iterable

from desktop_host.core.events import (
    AssistantSaid,
    Compacted,
    CompactionUndone,
    Notice,
    PageSaid,
    SkillsChosen,
    Stamped,
    ToolRequested,
    ToolSettled,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
    UserSaid,
)
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
from desktop_host.core.tokens import most, of_message, of_text
from desktop_host.core.tools import ToolSpec, wire_name
from desktop_host.core.values import canonical
from desktop_host.engine.page_notes import PageNotes
from desktop_host.engine.pictures import any_in, thinned
from desktop_host.engine.repair import CONTINUE, repair, with_own_ids

_TOLD = {
    Outcome.DENIED: "The person did not allow this call. Do not try it again unless they ask for it.",
    Outcome.CANCELLED: "Cancelled before it finished; it may have had effects.",
    Outcome.TIMED_OUT: "Timed out; it may still have had effects.",
    Outcome.UNKNOWN: "The host stopped while this ran: it may or may not have had its effect.",
}


READ_RESULT = wire_name("host", "read_result")
"""Wire name of the tool that reads the rest of a long result."""
LEFT_OUT = "pictures_left_out"
"""Code of the notice that pictures are no longer sent."""
_USE_SKILL = wire_name("host", "use_skill")
_GO_ON = "(Your work on this so far stands in the summary above. Go on with it.)"


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
        self.skilled = False
        """Whether any skill was ever chosen here."""
        self.unsettled: set[str] = set()
        """Ids of calls without a result."""
        self.readable = False
        """Whether the model has the tool `host.read_result`."""
        self.long: dict[str, int] = {}
        """Calls whose result the model got cut, with the place (`seq`) of the whole."""
        self.held = False
        """A summary was undone: none is made by itself until a model refuses the conversation."""
        self.pages = PageNotes()
        """What pages of servers did since the person's last message."""
        self.left_out = self.told_left_out = False
        """Whether pictures were left out, since there were too many; and whether the person knows."""
        self._names: dict[str, str] = {}
        self._ids: set[str] = set()
        """Ids of all calls so far."""
        self._request = -1
        """Index of the person's last message."""
        self._since = 0
        """How many messages the last summary left, the person's own aside: that is not summarised yet."""
        self._skills: list[str] = []
        self._estimate = 0
        self._counted: int | None = None
        """Tokens of the last request and its reply, as the vendor counted them."""
        self._uncounted = 0
        """Estimate of what came after that."""

    def apply(self, stamped: Stamped) -> None:
        """Take one journaled event."""
        match stamped.event:
            case UserSaid() as said:
                self.turns = max(self.turns, stamped.turn)
                self._flush()
                if (notes := self.pages.take()) is not None:
                    self._append(notes)
                for before in said.prelude:
                    self._append(before)
                self._append(Message(Role.USER, (*_blocks(said.text), *said.blocks)))
                self._request = len(self._messages) - 1
            case SkillsChosen(text=text) if text:
                self.skilled = True
                last = self._messages[-1]
                self._messages[-1] = Message(last.role, (*last.blocks, Text(text)))
                self._grow(of_text(text))
                self._keep_skill(text)
            case TurnStarted(resumed=resumed):
                self.turns = max(self.turns, stamped.turn)
                self.open_turn = stamped.turn
                self._flush()
                if resumed and self._messages and self._messages[-1].role is Role.ASSISTANT:
                    self._append(Message(Role.USER, (Text(CONTINUE),)))
            case AssistantSaid() as said:
                self.requests += 1
                self._flush()
                if said.message.blocks or said.message.native:
                    self._append(said.message)
                self._waiting = () if said.partial else tuple(c.id for c in said.message.calls)
                self._names = {c.id: c.wire_name for c in said.message.calls}
                self._ids.update(self._names)
                self.unsettled = set(self._waiting)
            case ToolRequested(page=page) as asked if page:
                self.pages.requested(asked)
            case PageSaid() as told:
                self.pages.said(told)
            case ToolSettled() as settled if settled.call_id in self.pages.open:
                self.pages.settled(settled)
            case ToolSettled() as settled:
                self.unsettled.discard(settled.call_id)
                self._results[settled.call_id] = ToolResult(
                    settled.call_id, self._content(settled, stamped.seq), settled.outcome, settled.structured
                )
                if self._names.get(settled.call_id) == _USE_SKILL and settled.outcome is Outcome.OK:
                    self._keep_skill("\n\n".join(b.text for b in settled.content if isinstance(b, Text)))
                if not self.unsettled:
                    self._flush()
            case TurnEnded():
                self.open_turn = None
            case UsageRecorded(purpose="chat") as used:
                total = used.input + used.cache_read + used.cache_write + used.output
                if total:
                    self._counted, self._uncounted = total, 0
            case Compacted() as summary:
                self._compact(summary)
            case Notice(code=code) if code == LEFT_OUT:
                self.told_left_out = True
            case CompactionUndone():
                self.held = True
            case _:
                pass

    def own_ids(self, message: Message) -> Message:
        """A reply whose calls have ids that no other call of this conversation has; mostly the same object."""
        return with_own_ids(message, self._ids)[0]

    def messages(self) -> tuple[Message, ...]:
        """The conversation as a model may have it: repaired, results in call order."""
        return repair(self._messages)

    def tokens(self, system: str, tools: Iterable[ToolSpec]) -> int:
        """Estimate of the next request's input: the vendor's last count, and what came since."""
        if self._counted is None:
            return of_text(system) + sum(t.tokens for t in tools) + self._estimate
        return self._counted + self._uncounted * 13 // 10

    def most(self, system: str, tools: Iterable[ToolSpec]) -> int:
        """What the next request's input can have at most: for budgets that must hold."""
        return most(self.tokens(system, tools)) if self._counted is None else self._counted + most(self._uncounted)

    def estimate(self) -> int:
        """Estimated tokens of the messages alone."""
        return self._estimate

    @property
    def request(self) -> str:
        """What the person wrote last."""
        return self._messages[self._request].text if self._request >= 0 else ""

    @property
    def skill_texts(self) -> tuple[str, ...]:
        """The texts of the skills that were activated; they outlive every summary."""
        return tuple(self._skills)

    def kept_tokens(self, keep_request: bool) -> int:
        """Estimated tokens of what a summary leaves as it is."""
        return of_message(self._messages[self._request]) if keep_request and self._request >= 0 else 0

    def summable(self, keep_request: bool) -> tuple[Message, ...]:
        """The messages that a summary would replace; empty where there is too little."""
        if len(self._messages) - self._since < 2:
            return ()
        if keep_request and self._request == len(self._messages) - 1:
            return tuple(self._messages[:-1])
        return tuple(self._messages)

    def _compact(self, event: Compacted) -> None:
        self._flush()
        at = self._request if event.keep_request else -1
        kept = [self._messages[at]] if at >= 0 else []
        if event.keep_request and at < len(self._messages) - 1:
            kept.append(Message(Role.USER, (Text(_GO_ON),)))
        self._messages.clear()
        self._estimate, self._counted, self.held = 0, None, False
        for message in (Message(Role.USER, (Text(event.text),)), *kept):
            self._append(message)
        self._request = 1 if at >= 0 else -1
        self._since = len(self._messages) - len(kept[:1])

    def _append(self, message: Message) -> None:
        self._messages.append(message)
        self._grow(of_message(message))
        for at, fewer in (thinned(self._messages) if any_in(message) else {}).items():
            self._grow(of_message(fewer) - of_message(self._messages[at]))
            self._messages[at] = fewer
            self.left_out = True

    def _grow(self, tokens: int) -> None:
        self._estimate += tokens
        self._uncounted += tokens

    def _keep_skill(self, text: str) -> None:
        if text and text not in self._skills:
            self._skills.append(text)

    def _flush(self) -> None:
        """Put the results that are in into one message, in the order of the calls."""
        if self._waiting:
            results = tuple(self._results[i] for i in self._waiting if i in self._results)
            if results:
                self._append(Message(Role.USER, results))
        self._waiting = ()
        self._results.clear()

    def _content(self, settled: ToolSettled, seq: int) -> tuple[ContentBlock, ...]:
        told = _TOLD.get(settled.outcome)
        content = told_to_model(settled.content, self._result_chars)
        if not content and settled.structured is not None:
            content = (Text(canonical(settled.structured)),)
        if told:
            content = (Text(told), *content) if content else (Text(told),)
        left = self._result_chars
        hint = f"; {READ_RESULT} with call_id {settled.call_id} reads them" if self.readable else ""
        out: list[ContentBlock] = []
        for block in content:
            text = block.text if isinstance(block, (Text, EmbeddedResource)) else None
            if text is None:
                out.append(block)
                continue
            short = cut(text, max(left, 200), hint)
            left -= len(text)
            if short is not text:
                self.long[settled.call_id] = seq
            out.append(Text(short) if isinstance(block, Text) else _resource(block, short))
        return tuple(out)


def _resource(block: ContentBlock, text: str) -> EmbeddedResource:
    assert isinstance(block, EmbeddedResource)
    return EmbeddedResource(block.uri, block.mime_type, text)


def told_to_model(content: tuple[ContentBlock, ...], limit: int) -> tuple[ContentBlock, ...]:
    """What the model gets of a result: nothing meant for the person alone; the important first where it is long."""
    kept = for_model(content)
    if content and not kept:
        return (Text("(The result is meant for the person alone; they see it.)"),)
    return by_priority(kept, limit)


def _blocks(text: str) -> tuple[ContentBlock, ...]:
    return (Text(text),) if text else ()


def cut(text: str, limit: int, hint: str = "") -> str:
    """Head and tail of a text longer than `limit` characters, with a note of what is missing between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    missing = len(text) - head - tail
    note = f"[… {missing:,} characters left out, from {head} on{hint}; the person sees the whole …]"
    return f"{text[:head]}\n{note}\n{text[-tail:]}"
