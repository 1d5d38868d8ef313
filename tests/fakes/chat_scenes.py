"""Conversations in every state that the chat has a look for: put on record before a host is opened."""

from __future__ import annotations

import base64
import struct
import time
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from desktop_host.core import events as ev
from desktop_host.core.asks import ApproveTool, Ask, FillForm, OpenUrl, ReviewReply, ReviewSampling, SamplingCost
from desktop_host.core.exchange import RunningCall, SamplingRequest
from desktop_host.core.messages import (
    ContentBlock,
    EmbeddedResource,
    Image,
    Outcome,
    ResourceLink,
    Text,
    assistant,
    user,
)
from desktop_host.core.permissions import Effect
from desktop_host.core.sessions import SessionState, TurnStatus, TurnStop
from desktop_host.core.tools import ToolHints
from desktop_host.core.values import FrozenDict, freeze
from tests.fakes.fake_host import FakeHost

WRITING = """\
## 东京三日 · Three days in Tokyo 🗼

Plain text, *emphasis*, **weight**, `code`, and a [link](https://example.com/a). 日本語と中文混排没有问题, 👩‍👩‍👧‍👦 too.

- [x] Passport, yen, charger
- [ ] Book the 7:12 to Kyōto

| Day | Where | Walk | What it costs | Note |
|:--|:--|--:|--:|:--|
| 1 | 浅草 Asakusa | 6.2 km | ¥ 4,300 | go before nine |
| 2 | 渋谷 Shibuya, then Daikanyama and Nakameguro along the canal | 11.8 km | ¥ 12,900 | long, but level |
| 3 | 鎌倉 Kamakura | 8.0 km | ¥ 6,750 | the train takes an hour |

The mean is $\\bar{x} = \\frac{1}{n}\\sum_{i=1}^{n} x_i$, and of the whole

$$\\int_0^\\infty e^{-x^2}\\,dx = \\frac{\\sqrt{\\pi}}{2}$$

```python
def fares(days: list[Day], *, child: bool = False) -> Decimal:
    \"\"\"What the trains cost, rounded to the yen.\"\"\"
    total = sum((d.fare for d in days), Decimal(0))  # 合計
    return (total / 2 if child else total).quantize(Decimal("1"))
```

```mermaid
graph LR; A[Asakusa] --> B[Shibuya] --> C[Kamakura]
```

> Quoted: a station stamp is free, and worth the wait.
"""
FORM = freeze({
    "type": "object",
    "required": ["name", "cabin"],
    "properties": {
        "name": {"type": "string", "title": "Name", "description": "As in the passport", "minLength": 2},
        "email": {"type": "string", "format": "email", "title": "E-mail"},
        "seats": {"type": "integer", "title": "Seats", "minimum": 1, "maximum": 9, "default": 2},
        "cabin": {"type": "string", "title": "Cabin", "oneOf": [{"const": "e", "title": "Economy"}]},
        "meals": {
            "type": "array", "title": "Meals", "maxItems": 2, "default": ["v"],
            "items": {"anyOf": [{"const": "v", "title": "Vegetarian"}, {"const": "h", "title": "Halal"}]},
        },
        "terms": {"type": "boolean", "title": "I agree to the terms"},
    },
})  # fmt: skip
ALL_FIELDS = freeze({
    "type": "object",
    "required": ["name", "seats", "cabin"],
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 2, "maxLength": 40},
        "email": {"type": "string", "format": "email", "title": "E-mail", "default": "ada@example.com"},
        "home": {"type": "string", "format": "uri", "title": "Home page"},
        "day": {"type": "string", "format": "date", "title": "Day"},
        "at": {"type": "string", "format": "date-time", "title": "Departure"},
        "code": {"type": "string", "pattern": "^[A-Z]{3}$", "title": "Code of the airport"},
        "seats": {"type": "integer", "title": "Seats", "minimum": 1, "maximum": 9, "default": 2},
        "weight": {"type": "number", "title": "Luggage in kg", "minimum": 0, "maximum": 46},
        "terms": {"type": "boolean", "title": "I agree to the terms and to being told of changes by e-mail"},
        "cabin": {"type": "string", "title": "Cabin", "oneOf": [{"const": "e", "title": "Economy 经济舱"}]},
        "side": {"type": "string", "title": "Side", "enum": ["window", "aisle"], "enumNames": ["Window", "Aisle"]},
        "stops": {"type": "array", "title": "Stops", "items": {"type": "string", "enum": ["Xi'an", "Doha"]}},
        "meals": {
            "type": "array", "title": "Meals", "maxItems": 2, "default": ["v"],
            "items": {"anyOf": [{"const": "v", "title": "Vegetarian"}, {"const": "h", "title": "Halal"}]},
        },
    },
})  # fmt: skip
"""Every kind of field that a form may have."""
LONG_PATH = "/home/ada/Documents/2026/Projects/kamakura/notes and sketches/第三次旅行の計画 (final, really).md"


def picture(width: int = 480, height: int = 200) -> str:
    """A PNG of a dusk, as base64."""
    wide = range(width)
    lines = (
        b"\0" + b"".join(bytes((40 + 180 * y // height, 60 + 80 * y // height, 140 - 60 * x // width)) for x in wide)
        for y in range(height)
    )
    rows = b"".join(lines)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return base64.b64encode(
        b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    ).decode()


def _asked(host: FakeHost, session: str, text: str, *more: ev.Event) -> None:
    host.publish(session, ev.UserSaid(text))
    host.publish(session, ev.TurnStarted())
    host.publish(session, ev.StateChanged(SessionState.RUNNING))
    for event in more:
        host.publish(session, event)


def _ended(host: FakeHost, session: str, status: TurnStatus, stop: TurnStop, error: FrozenDict | None = None) -> None:
    host.publish(session, ev.TurnEnded(status, stop, error=error))
    host.publish(session, ev.StateChanged(SessionState.IDLE))


def _call(name: str, server: str, tool: str, title: str, **arguments: object) -> ev.ToolRequested:
    return ev.ToolRequested(
        name, server, tool, f"{server}__{tool}", freeze(arguments), Effect.ALLOW, "rule", title
    )  # fmt: skip


def _done(
    name: str, *content: ContentBlock, outcome: Outcome = Outcome.OK, structured: object = None
) -> ev.ToolSettled:
    return ev.ToolSettled(name, outcome, content, freeze(structured), 1240)


def streaming(host: FakeHost, session: str) -> None:
    """Half an answer."""
    _asked(host, session, "Plan three days in Tokyo", ev.TokenDelta(WRITING[: WRITING.index("| 3 |")]))


def writing(host: FakeHost, session: str) -> None:
    """All that Markdown has."""
    _asked(host, session, "Plan three days in Tokyo 🗼 三天的行程", ev.AssistantSaid(assistant(WRITING), "script:demo"))
    _ended(host, session, TurnStatus.DONE, TurnStop.END)


def tools(host: FakeHost, session: str) -> None:
    """Calls in every state, and each kind of content."""
    link = ResourceLink("files://notes/kamakura.md", "kamakura.md", mime_type="text/markdown", size=18_400)
    weather = {"days": [{"day": "Mon", "high": 21, "rain": "10 %"}, {"day": "Tue", "high": 18, "rain": "80 %"}]}
    _asked(
        host, session, "What is the weather, and what did I note?",
        _call("a", "weather", "forecast", "Forecast", city="Tokyo", days=2),
        _call("b", "files", "search_files", "Search files", path="/home/ada/Documents", pattern="kamakura"),
        _call("c", "files", "read_file", "Read file", path=LONG_PATH),
        _call("d", "weather", "radar", "Radar picture", region="kanto"),
        _call("e", "trains", "book", "Book a seat", train="7:12", seats=2),
        ev.ToolStarted("a"), ev.ToolStarted("b"), ev.ToolStarted("c"), ev.ToolStarted("d"), ev.ToolStarted("e"),
        _done("a", Text("see the table"), structured=weather),
        _done("b", Text("One note.", freeze({"audience": ["user"], "priority": 0.7})), link),
        _done("c", Text(f"ENOENT: no such file or directory, open '{LONG_PATH}'"), outcome=Outcome.ERROR),
        _done("d", Image(picture(), "image/png")),
        ev.ToolProgress("e", 3, 8, "Holding seats in car 4", 42.0),
    )  # fmt: skip


def parts(host: FakeHost, session: str) -> None:
    """A task in parts, in every state."""
    late = freeze({"code": "rate_limited", "message": "429", "params": {"provider": "Anthropic"}})
    missing = freeze({"code": "not_run", "message": "part 3 gave no result", "params": {}})

    def part(number: int, name: str, state: str, **more: Any) -> ev.SubtaskChanged:
        return ev.SubtaskChanged("p", number, name, state, **more)

    _asked(
        host, session, "Three days in Chengdu for two, and a written dossier",
        _call("p", "host", "run_subtasks", "Work on parts side by side"), ev.ToolStarted("p"),
        part(1, "Ways to get there 交通", "done", child="c1", skill="travel-planner@1.1.0", text="MU5401 at 08:05."),
        part(2, "A quiet place to stay", "running", child="c2", skill="travel-planner@1.1.0"),
        part(3, "Sights, with opening hours and what to book before", "failed", child="c3", skill="maps", error=late),
        part(4, "Food 吃什么", "done", child="c4", skill="document-writer@1.1.0", instead_of="maps", text="火锅."),
        part(5, "The dossier", "skipped", error=missing), part(6, "Budget", "waiting"),
        ev.ToolProgress("p", 4, 6, "Food"),
    )  # fmt: skip


def waiting(ask: Ask, before: Iterable[ev.Event]) -> Callable[[FakeHost, str], None]:
    """A scene with an open question."""

    def scene(host: FakeHost, session: str) -> None:
        _asked(host, session, "Tidy up my notes of the trip", *before, ev.AskRaised(ask))

    return scene


def notices(host: FakeHost, session: str) -> None:
    """What stands between messages: a summary, another model, a kept answer, a limit that comes near, a retry."""
    _asked(host, session, "Sum up the trip", ev.AssistantSaid(assistant("Three days, mostly level walks."), "m"))
    host.publish(session, ev.UsageRecorded("m", "chat", 12_400, 310, cost_usd=0.0124))
    _ended(host, session, TurnStatus.DONE, TurnStop.END)
    host.publish(session, ev.Compacted("They plan three days in Tokyo; the trains are booked.", "s", False, 9000, 500))
    near = freeze({"scope": "day", "percent": 81, "spent": 4.05, "limit": 5.0})
    for event in (
        ev.UserSaid("And again?"), ev.TurnStarted(), ev.StateChanged(SessionState.RUNNING),
        ev.RouteChanged("anthropic/claude-sonnet-5-5", "local", "rate_limited"),
        ev.AssistantSaid(assistant("Three days, mostly level walks."), "m", cached=True),
        ev.Notice("budget_near", near), ev.ToolsChanged(("files.stat",), ("files.tree",), ()),
    ):  # fmt: skip
        host.publish(session, event, 2)
    host.publish(session, ev.TurnEnded(TurnStatus.DONE, TurnStop.END), 2)
    for event in (
        ev.UserSaid("And the way back?"), ev.TurnStarted(), ev.StateChanged(SessionState.RUNNING),
        ev.RetryScheduled(2, 42.0, "overloaded", "529 overloaded_error: Overloaded", time.time() + 42),
    ):  # fmt: skip
        host.publish(session, event, 3)


def failed(
    code: str, message: str, stop: TurnStop = TurnStop.ERROR, **params: object
) -> Callable[[FakeHost, str], None]:
    """A turn that an error ended."""

    def scene(host: FakeHost, session: str) -> None:
        _asked(host, session, "And the way back?", ev.TokenDelta("The way back is "))
        error = freeze({"code": code, "message": message, "params": params})
        _ended(host, session, TurnStatus.FAILED, stop, error)

    return scene


def pictured(host: FakeHost, session: str) -> None:
    """Pictures of the person's and of a tool's."""
    image = Image(picture(), "image/png")
    host.publish(session, ev.UserSaid("What is on this?", (ev.Attachment("dusk.png", "image/png", 20_480),), (image,)))
    host.publish(session, ev.TurnStarted())
    host.publish(session, ev.AssistantSaid(assistant("A dusk over the sea, I would say."), "script:demo"))
    note = EmbeddedResource("shelf://note/kamakura", "text/plain", "The train takes an hour.")
    said = ev.UserSaid("Explain this note:", (), (note,), prelude=(user("Be brief."),), source="prompt:shelf.explain")
    host.publish(session, said, 2)
    host.publish(session, ev.TurnStarted(), 2)
    host.publish(session, ev.AssistantSaid(assistant("It takes an hour by train."), "script:demo"), 2)
    host.publish(session, ev.TurnEnded(TurnStatus.DONE, TurnStop.END), 2)


SAMPLING = SamplingRequest(
    (user("Sum up these three notes in one line, please:\n- early train\n- long walk\n- quiet temple"),), 400,
    "You write one line, no more.", hints=("claude-haiku",), cost_priority=0.8, speed_priority=0.5,
)  # fmt: skip
COST = SamplingCost(420, 0.0021, 12_400, 50_000, 0.06, 1.0, 4000)
MOVE = _call("m", "files", "move_file", "Move file", source=LONG_PATH, destination="/home/ada/Documents/archive/")
ODD_PAGE = "https://user@xn--exmple-cua.example.org/sign?" + "s=4f" * 40
RUN = RunningCall("m", "move_file", MOVE.arguments)
RUNS = (MOVE, ev.ToolStarted("m"))

SCENES: dict[str, Callable[[FakeHost, str], None]] = {
    "streaming": streaming,
    "markdown": writing,
    "tools": tools,
    "parts": parts,
    "images": pictured,
    "approval": waiting(
        ApproveTool(
            "q", "approval", "m", "files", "move_file",
            freeze({"source": LONG_PATH, "destination": "/home/ada/Documents/archive/", "overwrite": True}),
            "Move file", "Move a file or folder; what is there may be overwritten.",
            ToolHints(read_only=False, destructive=True), False, "d2", True, "Move a file or folder.",
        ),
        (MOVE,),
    ),
    "sampling": waiting(
        ReviewSampling("q", "sampling", "m", "files", SAMPLING, "anthropic/claude-haiku-4-5", COST, (RUN,)), RUNS
    ),
    "reply": waiting(
        ReviewReply("q", "reply", "m", "files", (Text("Early train, long walk, quiet temple."),), "script:demo"), RUNS
    ),
    "form": waiting(FillForm("q", "form", "m", "files", "Who travels? 请填写旅客信息。", FORM, 2), RUNS),
    "fields": waiting(FillForm("q", "fields", "m", "files", "Who travels, when and how?", ALL_FIELDS), ()),
    "notices": notices,
    "budget": failed("budget_spent", "the day's budget of $5.00 is spent", budget="today", spent=5.0, limit=5.0),
    "url": waiting(
        OpenUrl("q", "url", "m", "files", "Sign in to go on.", ODD_PAGE), RUNS
    ),
    "offline": failed("network", "connect failed", host="api.example.com"),
    "error": failed("rate_limited", "429 Too Many Requests", provider="Anthropic", retry_after=20),
}  # fmt: skip
"""Name to what publishes the scene in a session of that name."""


def stage_scenes(host: FakeHost, keep: Callable[[str, str], None]) -> None:
    """Put all scenes on record; `keep(session, title)` makes the conversation."""
    for name, publish in SCENES.items():
        keep(name, name.capitalize())
        publish(host, name)
