"""A deterministic model from a script: for tests and the command line, never offered in the window.

The script is a JSON list of replies, or `{"replies": […], "sampling": […]}`. The n-th chat request of a
conversation gets the n-th reply. A reply is a list of steps: `text`, `thinking`, `call`, `expect`, `error`,
`delay_ms`, `usage` (the command line's contract says what each does).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop_host.core.errors import EXIT_CODES, ModelFault, UserFault
from desktop_host.core.messages import ContentBlock, Message, Role, StopReason, Text, Thinking, ToolCall, ToolResult
from desktop_host.core.models import (
    Completed,
    ModelEvent,
    ModelRequest,
    Purpose,
    Quote,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from desktop_host.core.tools import split_name, wire_name
from desktop_host.core.values import freeze

FIXED = "Scripted"
"""What every purpose but chat (and sampling, where it has a list) is answered with."""
RETRYABLE = frozenset({"rate_limited", "overloaded", "network", "connect_timeout", "stream_truncated"})
"""Error codes that are worth another try."""
_LAST = "${last_result}"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a reply, already checked."""

    kind: str
    value: Any
    where: str
    """Place in the file, for messages."""


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script."""

    replies: tuple[tuple[Step, ...], ...]
    sampling: tuple[tuple[Step, ...], ...] | None


class ScriptedModel:
    """`ChatModel` over a script file, which is read at the first request."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._script: Script | None = None
        self._sampled: dict[str, int] = {}

    async def load(self) -> Script:
        """Read and check the script, once.

        Raises:
            UserFault: `not_found`, or `bad_config` with file, line and column.
        """
        if self._script is None:
            self._script = await asyncio.to_thread(read_script, self._path)
        return self._script

    async def quote(self, request: ModelRequest) -> Quote | None:
        """What the reply whose turn it is says it costs; None where it says that this is unknown."""
        script = await self.load()
        if request.purpose is not Purpose.CHAT or request.step_index >= len(script.replies):
            return Quote(0.0)
        costs = [step.value.cost_usd for step in script.replies[request.step_index] if step.kind == "usage"]
        return None if None in costs else Quote(sum(costs))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Play the reply whose turn it is.

        Raises:
            UserFault: `not_found` or `bad_config`: the script.
            ModelFault: `script_exhausted`, `script_expectation`, or what an `error` step says.
        """
        script = await self.load()
        steps, place = self._choose(script, request)
        if steps is None:
            yield TextDelta(FIXED)
            message = Message(Role.ASSISTANT, (Text(FIXED),))
            yield Completed(message, Usage(cost_usd=0.0), StopReason.END, self._name)
            return
        last = _last_result(request)
        blocks: list[ContentBlock] = []
        usage = Usage(cost_usd=0.0)
        visible = False
        for step in steps:
            match step.kind:
                case "text" | "thinking":
                    text = step.value.replace(_LAST, last)
                    delta = TextDelta if step.kind == "text" else ThinkingDelta
                    for word in re.findall(r"\s*\S+\s*|\s+", text):
                        visible = True
                        yield delta(word)
                        await asyncio.sleep(0)
                    _join(blocks, Text(text) if step.kind == "text" else Thinking(text))
                case "call":
                    call = self._call(request, step, last, f"{place}/{len(blocks)}")
                    yield ToolCallDelta(call.id, call.wire_name, json.dumps(call.arguments, ensure_ascii=False))
                    blocks.append(call)
                case "expect":
                    self._expect(step, last, visible)
                case "error":
                    code = step.value
                    raise ModelFault(
                        code, f"{step.where}: the script says {code}", retryable=code in RETRYABLE, visible=visible
                    )
                case "delay_ms":
                    await asyncio.sleep(step.value / 1000)
                case "usage":
                    usage += step.value
        stop = StopReason.TOOLS if any(isinstance(b, ToolCall) for b in blocks) else StopReason.END
        yield Completed(Message(Role.ASSISTANT, tuple(blocks)), usage, stop, self._name)

    @property
    def _name(self) -> str:
        return f"script:{self._path.name}"

    def _choose(self, script: Script, request: ModelRequest) -> tuple[tuple[Step, ...] | None, str]:
        """The steps to play (None: the fixed text), and a name for this request that no other one has."""
        if request.purpose is Purpose.CHAT:
            number, replies, which = request.step_index, script.replies, "replies"
        elif request.purpose is Purpose.SAMPLING and script.sampling is not None:
            number = max(self._sampled.get(request.conversation, 0), request.step_index)
            self._sampled[request.conversation] = number + 1
            replies, which = script.sampling, "sampling"
        else:
            return None, ""
        if number >= len(replies):
            raise ModelFault(
                "script_exhausted", f"{self._path}: request {number + 1} came, {which} has {len(replies)}",
                file=str(self._path), request=number + 1, replies=len(replies),
            )  # fmt: skip
        return replies[number], f"{request.conversation}/{which}/{number}"

    def _call(self, request: ModelRequest, step: Step, last: str, place: str) -> ToolCall:
        full = step.value["tool"]
        wire = next((t.wire_name for t in request.tools if t.full_name == full), None) or wire_name(*split_name(full))
        mark = hashlib.sha256(place.encode()).hexdigest()[:16]
        return ToolCall(f"call_{mark}", wire, freeze(_filled(step.value["arguments"], last)))

    def _expect(self, step: Step, last: str, visible: bool) -> None:
        wanted = step.value["last_result_contains"]
        if wanted not in last:
            raise ModelFault(
                "script_expectation", f"{step.where}: the last result does not contain {wanted!r}: {last[:200]!r}",
                visible=visible, place=step.where, wanted=wanted, got=last[:200],
            )  # fmt: skip


def read_script(path: Path) -> Script:
    """Read and check a script file.

    Raises:
        UserFault: `not_found`, or `bad_config` with file, line and column.
    """
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise UserFault("not_found", f"there is no script {path}", kind="file", name=str(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserFault("bad_config", f"{path}: {why}", file=str(path), reason=why) from error
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise _bad(path, error.lineno, error.colno, error.msg) from error
    places = _places(text)

    def place() -> tuple[int, int]:
        at = next(places, len(text))
        return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)

    if isinstance(data, list):
        return Script(_replies(path, data, place), None)
    if not isinstance(data, dict) or not set(data) <= {"replies", "sampling"}:
        raise _bad(path, 1, 1, 'a script is a list of replies or {"replies": […], "sampling": […]}')
    read = {key: _replies(path, value, place) for key, value in data.items()}  # in the order of the file
    return Script(read.get("replies", ()), read.get("sampling"))


def _places(text: str) -> Iterator[int]:
    """Offsets of the objects that are steps: those inside two lists, in the order of the file."""
    stack = ""
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == "{" and stack.removeprefix("{") == "[[":
            yield token.start()
        if mark in "[{":
            stack += mark
        elif mark in "]}":
            stack = stack[:-1]


def _replies(path: Path, data: Any, place: Callable[[], tuple[int, int]]) -> tuple[tuple[Step, ...], ...]:
    if not isinstance(data, list):
        raise _bad(path, 1, 1, "replies must be a list")
    out: list[tuple[Step, ...]] = []
    for number, reply in enumerate(data, 1):
        if not isinstance(reply, list) or not all(isinstance(step, dict) for step in reply):
            line, column = place()
            raise _bad(path, line, column, f"reply {number} is not a list of steps")
        out.append(tuple(_step(path, step, *place()) for step in reply))
    return tuple(out)


def _step(path: Path, step: dict[str, Any], line: int, column: int) -> Step:
    where = f"{path}:{line}:{column}"
    if len(step) != 1:
        raise _bad(path, line, column, f"a step has one key, not {sorted(step)}")
    kind, value = next(iter(step.items()))
    match kind, value:
        case (("text" | "thinking"), str()):
            return Step(kind, value, where)
        case "call", {"tool": str(tool)} if set(value) <= {"tool", "arguments"} and "." in tool:
            arguments = value.get("arguments", {})
            if isinstance(arguments, dict):
                return Step(kind, {"tool": tool, "arguments": arguments}, where)
        case "expect", {"last_result_contains": str()} if len(value) == 1:
            return Step(kind, value, where)
        case "error", {"code": str(code)} if any(code in codes for codes in EXIT_CODES.values()):
            return Step(kind, code, where)
        case "delay_ms", int() | float() if not isinstance(value, bool) and value >= 0:
            return Step(kind, value, where)
        case "usage", dict() if (usage := _usage(value)) is not None:
            return Step(kind, usage, where)
        case _:
            pass
    raise _bad(path, line, column, f"{json.dumps({kind: value}, ensure_ascii=False)[:120]} is not a step")


def _usage(value: dict[str, Any]) -> Usage | None:
    counts = [value.get(k, 0) for k in ("input", "output")]
    cost = value.get("cost_usd", 0.0)
    if not set(value) <= {"input", "output", "cost_usd"} or not all(type(n) is int and n >= 0 for n in counts):
        return None
    if cost is not None and (isinstance(cost, bool) or not isinstance(cost, (int, float))):
        return None
    return Usage(input=counts[0], output=counts[1], cost_usd=None if cost is None else float(cost))


def _bad(path: Path, line: int, column: int, reason: str) -> UserFault:
    return UserFault(
        "bad_config", f"{path}:{line}:{column}: {reason}", file=str(path), line=line, column=column, reason=reason
    )


def _last_result(request: ModelRequest) -> str:
    for message in reversed(request.messages):
        for block in reversed(message.blocks):
            if isinstance(block, ToolResult):
                return "\n".join(b.text for b in block.content if isinstance(b, Text))
    return ""


def _filled(value: Any, last: str) -> Any:
    if isinstance(value, str):
        return value.replace(_LAST, last)
    if isinstance(value, dict):
        return {k: _filled(v, last) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(v, last) for v in value]
    return value


def _join(blocks: list[ContentBlock], block: Text | Thinking) -> None:
    """Append text; neighbours of one kind are one block."""
    last = blocks[-1] if blocks else None
    if isinstance(last, Text) and isinstance(block, Text):
        blocks[-1] = Text(last.text + block.text)
    elif isinstance(last, Thinking) and isinstance(block, Thinking):
        blocks[-1] = Thinking(last.text + block.text)
    else:
        blocks.append(block)
