"""The one reducer behind window, terminal and replay: events in, what a person sees out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from desktop_host.core import events as ev
from desktop_host.core.entries import (
    AskEntry,
    AssistantEntry,
    Entry,
    NoticeEntry,
    SubtaskEntry,
    ToolEntry,
    UserEntry,
)
from desktop_host.core.messages import Text, Thinking
from desktop_host.core.sessions import SessionState, TurnStatus, TurnStop
from desktop_host.core.values import FrozenDict

__all__ = [
    "AskEntry", "AssistantEntry", "Entry", "NoticeEntry", "SubtaskEntry", "ToolEntry", "Transcript", "UserEntry",
    "fold", "fold_all",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as it is shown. Entries keep their place; `index` finds them by key."""

    session: str = ""
    title: str = ""
    model: str = ""
    state: SessionState = SessionState.IDLE
    queued: int = 0
    entries: tuple[Entry, ...] = ()
    index: dict[str, int] = field(default_factory=dict)
    """Key to position. Replaced with `entries`, never changed in place."""
    open_reply: str | None = None
    """Key of the reply that is streaming."""
    last_status: TurnStatus | None = None
    last_stop: TurnStop | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    last_seq: int = 0
    partial: bool = False
    """What was said before is left out: it is not read yet."""

    def entry(self, key: str) -> Entry | None:
        """The entry of this key."""
        at = self.index.get(key)
        return None if at is None else self.entries[at]


class _Growing(list[Entry]):
    """Entries while many events are folded at once: changed in place, since nobody else sees them yet."""


def fold_all(t: Transcript, events: Iterable[ev.Stamped]) -> Transcript:
    """The same as `fold` one after another, in time that grows with the events and not with their square."""
    rows: Any = _Growing(t.entries)
    t = replace(t, entries=rows, index=dict(t.index))
    for stamped in events:
        t = fold(t, stamped)
    return replace(t, entries=tuple(t.entries))


def _put(t: Transcript, entry: Entry) -> Transcript:
    at = t.index.get(entry.key)
    rows: object = t.entries
    if isinstance(rows, _Growing):
        if at is None:
            t.index[entry.key] = len(rows)
            rows.append(entry)
        else:
            rows[at] = entry
        return t
    if at is None:
        return replace(t, entries=(*t.entries, entry), index={**t.index, entry.key: len(t.entries)})
    return replace(t, entries=(*t.entries[:at], entry, *t.entries[at + 1 :]))


def _drop(t: Transcript, key: str) -> Transcript:
    at = t.index.get(key)
    if at is None:
        return t
    rows: object = t.entries
    if isinstance(rows, _Growing):
        del rows[at]
        t.index.clear()
        t.index.update({e.key: i for i, e in enumerate(rows)})
        return t
    entries = (*t.entries[:at], *t.entries[at + 1 :])
    return replace(t, entries=entries, index={e.key: i for i, e in enumerate(entries)})


def _tool(t: Transcript, call_id: str, turn: int) -> ToolEntry:
    found = t.entry(f"tool:{call_id}")
    return found if isinstance(found, ToolEntry) else ToolEntry(f"tool:{call_id}", turn, call_id)


def _reply(t: Transcript, s: ev.Stamped) -> AssistantEntry:
    found = t.entry(t.open_reply) if t.open_reply else None
    return found if isinstance(found, AssistantEntry) else AssistantEntry(f"reply:{s.seq}", s.turn, streaming=True)


def fold(t: Transcript, s: ev.Stamped) -> Transcript:
    """The transcript after one more event. Events already folded (by `seq`) change nothing."""
    if s.seq <= t.last_seq:
        return t
    return replace(_fold(t, s), last_seq=s.seq)


def _fold(t: Transcript, s: ev.Stamped) -> Transcript:
    turn = s.turn
    match s.event:
        case ev.SessionOpened(model=model, title=title):
            return replace(t, session=s.session, model=model, title=title)
        case ev.SessionRenamed(title=title):
            return replace(t, title=title)
        case ev.UserSaid() as e:
            return _put(
                t, UserEntry(f"user:{turn}", turn, e.text, e.attachments, e.blocks, source=e.source, prelude=e.prelude)
            )
        case ev.SkillsChosen() as e:
            said = t.entry(f"user:{turn}")
            if not isinstance(said, UserEntry) or not (e.skills or e.suggested):
                return t
            return _put(t, replace(said, skills=e.skills, suggested=e.suggested))
        case ev.TurnStarted():
            return replace(t, open_reply=None, last_status=TurnStatus.OPEN, last_stop=None)
        case ev.TokenDelta(text=text):
            reply = _reply(t, s)
            return replace(_put(_settle_retry(t), replace(reply, text=reply.text + text)), open_reply=reply.key)
        case ev.ThinkingStreamed(text=text):
            reply = _reply(t, s)
            return replace(_put(_settle_retry(t), replace(reply, thinking=reply.thinking + text)), open_reply=reply.key)
        case ev.AssistantSaid() as e:
            return _assistant_said(t, s, e)
        case ev.ToolRequested() as e:
            return _put(t, replace(
                _tool(t, e.call_id, turn), server=e.server, tool=e.tool, title=e.title, arguments=e.arguments,
                verdict=e.verdict, page=e.page,
            ))  # fmt: skip
        case ev.ToolStarted(call_id=call_id):
            return _put(t, replace(_tool(t, call_id, turn), started=True, started_at=s.t))
        case ev.ToolProgress() as e:
            return _put(t, replace(
                _tool(t, e.call_id, turn), progress=e.progress, total=e.total, message=e.message, left_s=e.left_s,
            ))  # fmt: skip
        case ev.ToolSettled() as e:
            return _put(t, replace(
                _tool(t, e.call_id, turn), outcome=e.outcome, content=e.content, structured=e.structured,
                duration_ms=e.duration_ms, problem=e.problem, meta=e.meta,
            ))  # fmt: skip
        case ev.AskRaised(ask=ask):
            return _put(t, AskEntry(f"ask:{ask.ask_id}", turn, ask))
        case ev.AskSettled() as e:
            asked = t.entry(f"ask:{e.ask_id}")
            return _put(t, replace(asked, action=e.action, by=e.by)) if isinstance(asked, AskEntry) else t
        case ev.RouteChanged() as e:
            params = FrozenDict({"from": e.from_ref, "to": e.to_ref, "reason": e.reason})
            return _put(replace(t, model=e.to_ref), NoticeEntry(f"notice:{s.seq}", turn, "route_changed", params))
        case ev.RetryScheduled() as e:
            params = FrozenDict({"attempt": e.attempt, "code": e.code, "message": e.message})
            return _put(t, NoticeEntry(f"retry:{turn}", turn, "retry_scheduled", params, e.until))
        case ev.Notice(code=code, params=params):
            return _put(t, NoticeEntry(f"notice:{s.seq}", turn, code, params))
        case ev.ToolsChanged() as e:
            params = FrozenDict({
                "added": e.added, "removed": e.removed, "changed": e.changed, "applied": e.applied,
            })  # fmt: skip
            return _put(t, NoticeEntry("tools_changed", turn, "tools_changed", params))
        case ev.Compacted() as e:
            params = FrozenDict({
                "summary": e.summary, "before": e.before, "after": e.after, "reason": e.reason, "model": e.model,
                "seq": s.seq, "undone": False,
            })  # fmt: skip
            return _put(t, NoticeEntry(f"compacted:{s.seq}", turn, "compacted", params))
        case ev.CompactionUndone(compaction=seq):
            at = t.entry(f"compacted:{seq}")
            if not isinstance(at, NoticeEntry):
                return t
            return _put(t, replace(at, params=FrozenDict({**at.params, "undone": True})))
        case ev.UsageRecorded() as e:
            return _usage(t, turn, e)
        case ev.StateChanged(state=state, queued=queued):
            return replace(t, state=state, queued=queued)
        case ev.TurnEnded() as e:
            return _turn_ended(t, s, e)
        case ev.SkillPinned(pin=pin):
            params = FrozenDict({"skill": pin.name, "version": pin.version})
            return _put(t, NoticeEntry(f"notice:{s.seq}", turn, "skill_pinned", params))
        case ev.Branched() as e:
            params = FrozenDict({"source": e.source, "before_turn": e.before_turn})
            return _put(t, NoticeEntry(f"branched:{s.seq}", turn, "branched", params))
        case ev.FeedbackGiven() as e:
            told = next((x for x in reversed(t.entries) if x.turn == e.turn and isinstance(x, AssistantEntry)), None)
            return _put(t, replace(told, good=e.good)) if told else t
        case ev.SubtaskChanged() as e:
            return _subtask(t, s, e)
        case ev.PageSaid() as e:
            params = FrozenDict({"server": e.server, "tool": e.tool, "text": e.text, "structured": e.structured})
            return _put(t, NoticeEntry(f"page:{e.call_id}", turn, "page_said", params))
        case ev.ServerChanged() | ev.LibraryChanged():
            return t


def _subtask(t: Transcript, s: ev.Stamped, e: ev.SubtaskChanged) -> Transcript:
    """Put a part's new state beside the others of its call; what it used counts for the conversation."""
    tool = _tool(t, e.call_id, s.turn)
    known = {part.last.number: part for part in tool.subtasks}
    before = known.get(e.number)
    known[e.number] = SubtaskEntry(e, before.started_at if before else s.t, s.t)
    cost = None if t.cost_usd is None or e.cost_usd is None else t.cost_usd + e.cost_usd
    t = replace(
        t, input_tokens=t.input_tokens + e.input_tokens, output_tokens=t.output_tokens + e.output_tokens, cost_usd=cost,
    )  # fmt: skip
    return _put(t, replace(tool, subtasks=tuple(known[n] for n in sorted(known))))


def _usage(t: Transcript, turn: int, e: ev.UsageRecorded) -> Transcript:
    """Add a request's tokens and cost: to the conversation, and to the reply it gave."""
    read = e.input + e.cache_read + e.cache_write
    # Notices may stand between a reply and what it used.
    last = next((x for x in reversed(t.entries) if not isinstance(x, NoticeEntry)), None)
    if e.purpose == "chat" and isinstance(last, AssistantEntry) and last.turn == turn and not last.input_tokens:
        t = _put(t, replace(last, input_tokens=read, output_tokens=e.output, cost_usd=e.cost_usd))
    cost = None if t.cost_usd is None or e.cost_usd is None else t.cost_usd + e.cost_usd
    return replace(
        t, input_tokens=t.input_tokens + read, output_tokens=t.output_tokens + e.output, cost_usd=cost,
    )  # fmt: skip


def _settle_retry(t: Transcript) -> Transcript:
    """A retry that got through needs no countdown any more."""
    last = t.entries[-1] if t.entries else None
    return _drop(t, last.key) if isinstance(last, NoticeEntry) and last.code == "retry_scheduled" else t


def _assistant_said(t: Transcript, s: ev.Stamped, e: ev.AssistantSaid) -> Transcript:
    t = _settle_retry(t)
    reply = _reply(t, s)
    thinking = "\n\n".join(b.text for b in e.message.blocks if isinstance(b, Thinking)) or reply.thinking
    text = "".join(b.text for b in e.message.blocks if isinstance(b, Text))
    if not text and not thinking:
        return replace(_drop(t, reply.key), open_reply=None)
    done = replace(reply, text=text, thinking=thinking, model=e.model, streaming=False, partial=e.partial,
                   cached=e.cached)  # fmt: skip
    return replace(_put(t, done), open_reply=None)


def _turn_ended(t: Transcript, s: ev.Stamped, e: ev.TurnEnded) -> Transcript:
    t = _drop(t, f"retry:{s.turn}")
    if t.open_reply:
        reply = t.entry(t.open_reply)
        if isinstance(reply, AssistantEntry):
            t = _put(t, replace(reply, streaming=False, partial=True))
    t = replace(t, open_reply=None, last_status=e.status, last_stop=e.stop, state=SessionState.IDLE)
    if e.stop is not TurnStop.END:
        params = FrozenDict({"stop": e.stop.value, "error": e.error})
        t = _put(t, NoticeEntry(f"end:{s.turn}", s.turn, f"turn_{e.stop.value}", params))
    return t
