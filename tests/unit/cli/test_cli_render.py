"""What a person reads in a terminal while tools run."""

from __future__ import annotations

import io

from desktop_host import i18n
from desktop_host.cli.output import Output
from desktop_host.cli.render import TextView
from desktop_host.core.events import Event, Stamped, ToolRequested, ToolSettled
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.permissions import Effect
from desktop_host.core.values import freeze


def told(*events: Event) -> list[str]:
    i18n.install("en")
    page = io.StringIO()
    view = TextView(Output(False, page, page))
    for seq, event in enumerate(events):
        view.show(Stamped(seq, 0.0, "s", 1, event))
    return page.getvalue().splitlines()


def asked(call: str, tool: str) -> ToolRequested:
    return ToolRequested(call, "notes", tool, f"notes__{tool}", freeze({}), Effect.ALLOW)


def ended(call: str, text: str) -> ToolSettled:
    return ToolSettled(call, Outcome.OK, (Text(text),), None, 5)


def test_the_ends_of_calls_side_by_side_carry_the_names_of_their_tools():
    lines = told(asked("1", "read"), asked("2", "list"), ended("2", "two"), ended("1", "one"))
    assert [line.strip() for line in lines[2:]] == ["✓ notes.list: done (5 ms) two", "✓ notes.read: done (5 ms) one"]


def test_the_end_of_a_single_call_stands_below_its_request_without_a_name():
    lines = told(asked("1", "read"), ended("1", "one"), asked("2", "list"), ended("2", "two"))
    assert [line.strip() for line in lines] == [
        "→ notes.read {}", "✓ done (5 ms) one", "→ notes.list {}", "✓ done (5 ms) two"
    ]  # fmt: skip
