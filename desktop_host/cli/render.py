"""Events to what a person reads in a terminal: the answer as it streams, tools and remarks beside it."""

from __future__ import annotations

from desktop_host.cli.output import Output, visible
from desktop_host.core import events as ev
from desktop_host.core.codec import event_to_json
from desktop_host.core.messages import (
    Audio,
    ContentBlock,
    EmbeddedResource,
    Image,
    Outcome,
    ResourceLink,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from desktop_host.core.permissions import Effect
from desktop_host.core.values import FrozenDict, canonical
from desktop_host.i18n import current, tr

SHOWN = 300
"""Characters of arguments and results that a line shows; `--json` and `sessions show` have all."""


class JsonView:
    """One line of JSON an event."""

    def __init__(self, out: Output) -> None:
        self._out = out

    def show(self, stamped: ev.Stamped) -> None:
        """Write one event."""
        self._out.item(event_to_json(stamped))

    def rest(self) -> None:
        """Nothing is ever left open."""


class TextView:
    """The answer on standard output, all else on standard error.

    Args:
        out: where to write.
        interactive: a person sits at the terminal and answers asks there, so asks are not told here.
    """

    def __init__(self, out: Output, interactive: bool = False) -> None:
        self._out = out
        self._interactive = interactive
        self._streamed = ""
        self._mid_line = False
        self._said = False
        self._names: dict[str, str] = {}
        self._open: set[str] = set()
        self._answered: set[str] = set()
        """Calls that the host answered itself."""
        self._side_by_side = False
        self._troubled: dict[str, str] = {}
        """What was last told of servers that do not work."""

    def show(self, stamped: ev.Stamped) -> None:
        """Write one event."""
        match stamped.event:
            case ev.TokenDelta(text=text):
                self._stream(text)
            case ev.AssistantSaid() as said:
                if said.text and not self._streamed:
                    self._stream(said.text)
                self._streamed = ""
                self.rest()
                if said.cached:
                    self._note(tr("notice.cached"))
            case ev.Compacted() as e:
                self._note(tr("notice.compacted", before=e.before, after=e.after))
            case ev.ToolRequested() as e:
                self._names[e.call_id] = f"{e.server}.{e.tool}" if e.server else e.tool or e.wire_name
                self._side_by_side = bool(self._open)
                self._open.add(e.call_id)
                self._note(f"→ {self._names[e.call_id]} {clipped(canonical(e.arguments))}")
                if e.verdict is Effect.DENY:
                    why = f"cli.call.{e.reason}"
                    ours = current().has(why)
                    if ours:  # The host answered the model itself; no tool said anything.
                        self._answered.add(e.call_id)
                    self._note("  " + tr(why if ours else "cli.call.denied_by_rule"))
            case ev.SubtaskChanged() as e if e.state != "waiting":
                wrong = clipped(str(e.error["message"])) if e.error and e.state != "done" else ""
                part = tr("cli.part", number=e.number, name=e.name, state=tr(f"chat.part.{e.state}"))
                self._note("  " + " · ".join(filter(None, (part, e.skill.replace("@", " "), wrong))))
            case ev.ToolProgress() as e:
                self._out.passing(f"  {self._names.get(e.call_id, '')} {progress_text(e.progress, e.total, e.message)}")
            case ev.ToolSettled() as e:
                self._open.discard(e.call_id)
                name = self._names.get(e.call_id, "") if self._side_by_side else ""
                if e.call_id in self._answered:
                    self._answered.discard(e.call_id)
                    return self._note("  ✗ " + clipped("\n".join(block_text(b) for b in e.content)))
                self._note("  " + settled_text(e.outcome, e.content, e.duration_ms, name))
            case ev.AskRaised(ask=ask) if not self._interactive and ask.kind != "tool":
                self._note("? " + tr(f"cli.asked.{ask.kind}", server=ask.server))
            case ev.AskSettled(action=action, by=by) if not self._interactive:
                self._note("  " + tr("cli.ask.settled", action=tr(f"cli.action.{action}"), by=tr(f"cli.by.{by}")))
            case ev.RetryScheduled() as e:
                text, _ = current().error(e.code, {}, e.message)
                self._note(tr("cli.retry", seconds=f"{e.delay_s:.0f}", attempt=e.attempt, why=text.replace("\n", "")))
            case ev.RouteChanged() as e:
                refs = {"from": e.from_ref, "to": e.to_ref}
                self._note(tr("cli.route_changed", reason=current().switched(e.reason), **refs))
            case ev.Notice(code=code, params=params):
                own = f"notice.{code}.{params.get('scope', '')}"
                key = own if current().has(own) else f"notice.{code}"
                key = key if current().has(key) else f"chat.notice.{code}"
                told = current().has(key)
                if code == "compaction_failed":
                    params = FrozenDict({**params, "code": current().switched(str(params.get("code", "")))})
                self._note(tr(key, **params) if told else tr("cli.notice", code=code, params=canonical(params)))
            case ev.SkillsChosen(skills=skills) if skills:
                self._note(tr("cli.skills", skills=", ".join(f"{s.name} {s.version}".strip() for s in skills)))
            case ev.ServerChanged() as e:
                self._server(e)
            case ev.ToolsChanged() as e if not e.applied:
                self._note(tr("cli.tools_changed", n=len(e.added) + len(e.removed) + len(e.changed)))
            case ev.TurnEnded():
                self.rest()
                self._said = False
            case _:
                pass

    def _server(self, event: ev.ServerChanged) -> None:
        """A server that does not work, in words and once: not at every try."""
        if event.state == "ready":
            self._troubled.pop(event.server, None)
        elif event.state in ("failed", "waiting", "needs_auth") and event.status and event.status.error:
            why, mend = current().failure(event.status.error)
            if self._troubled.get(event.server) != why:
                self._troubled[event.server] = why
                self._note(tr("cli.server_changed", server=event.server, reason=why.replace("\n", ""), remedy=mend))

    def rest(self) -> None:
        """End a line that is still open."""
        if self._mid_line:
            self._out.write("\n")
            self._mid_line = False
        self._out.passed()

    def _stream(self, text: str) -> None:
        if not text:
            return
        if not self._streamed:
            self._out.passed()
            if self._said:
                self._out.write("\n")
        self._out.write(self._out.shown(text, self._out.out))
        self._streamed += text
        self._said = True
        self._mid_line = not text.endswith("\n")

    def _note(self, text: str) -> None:
        self.rest()
        self._out.note(text)


def clipped(text: str, size: int = SHOWN) -> str:
    """One line of at most `size` characters."""
    line = " ".join(text.split())
    return line if len(line) <= size else line[: size - 1] + "…"


def progress_text(progress: float, total: float | None, message: str | None) -> str:
    """How far something is."""
    share = f"{progress:g}/{total:g}" if total else f"{progress:g}"
    return f"{share} {message}" if message else share


def settled_text(outcome: Outcome, content: tuple[ContentBlock, ...], duration_ms: float, name: str = "") -> str:
    """How a call ended, in one line; `name` where it is not clear which one."""
    took = f"{duration_ms / 1000:.1f} s" if duration_ms >= 1000 else f"{duration_ms:.0f} ms"
    mark = "✓" if outcome is Outcome.OK else "✗"
    told = clipped(" ".join(block_text(block) for block in content))
    return f"{mark} {name + ': ' if name else ''}{tr(f'cli.outcome.{outcome.value}')} ({took}) {told}".rstrip()


def block_text(block: ContentBlock) -> str:
    """A block as text: text as it is, anything else as what it is."""
    match block:
        case Text(text=text) | Thinking(text=text):
            return text
        case Image(data=data, mime_type=mime):
            return tr("cli.block.image", mime=mime, size=len(data) * 3 // 4)
        case Audio(data=data, mime_type=mime):
            return tr("cli.block.audio", mime=mime, size=len(data) * 3 // 4)
        case ResourceLink(uri=uri, name=name):
            return tr("cli.block.link", uri=uri, name=name)
        case EmbeddedResource(text=str(text)):
            return text
        case EmbeddedResource(uri=uri, mime_type=mime, blob=blob):
            return tr("cli.block.resource", uri=uri, mime=mime or "?", size=len(blob or "") * 3 // 4)
        case ToolCall(wire_name=name, arguments=arguments):
            return f"{name} {canonical(arguments)}"
        case ToolResult(content=content):
            return "\n".join(block_text(b) for b in content)


def heading(text: str, out: Output) -> str:
    """A line that stands out where a terminal can show it."""
    return f"\x1b[1m{visible(text)}\x1b[0m" if out.out.isatty() else text
