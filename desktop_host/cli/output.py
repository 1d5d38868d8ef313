"""What the command line writes: JSON lines or people's text on standard output, remarks on standard error."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO

from desktop_host.core.errors import HostError
from desktop_host.core.values import thaw
from desktop_host.i18n import Translator, error_text

_BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


_ENCODER = json.JSONEncoder(ensure_ascii=False)
"""One for all lines: `json.dumps` would make one for each."""


def utf8() -> None:
    """Make the standard streams speak UTF-8 whatever the locale says, and never fail on a lone surrogate."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def silence() -> None:
    """After a broken pipe: let the interpreter's last flush go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(null, stream.fileno())


def visible(text: str) -> str:
    """`text` with its control characters and direction marks made visible, so that it cannot steer a terminal."""
    if text.isprintable():
        return text
    return "".join(
        f"\\u{ord(c):04x}" if (unicodedata.category(c) == "Cc" and c not in "\n\t") or c in _BIDI else c
        for c in text.replace("\r\n", "\n")
    )


def width(text: str) -> int:
    """Columns of a terminal that `text` takes."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def dump(value: Any) -> str:
    """One line of JSON, UTF-8; what UTF-8 cannot hold is escaped."""
    text = _ENCODER.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def error_object(error: HostError) -> dict[str, Any]:
    """An error as `--json` has it: English, never localised."""
    text, remedy = Translator("en").error(error.code, error.params, error.message)
    plain = error.message == error.code.replace("_", " ")
    return {
        "type": "error", "code": error.code, "message": text if plain else error.message, "remedy": remedy,
        "params": thaw(error.params),
    }  # fmt: skip


class Output:
    """Where a verb writes.

    Args:
        as_json: `--json`: standard output carries JSON only, and people's text goes to standard error.
    """

    def __init__(self, as_json: bool, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.json = as_json
        self.out = out or sys.stdout
        self.err = err or sys.stderr

    @property
    def live(self) -> bool:
        """Whether a person watches standard error, so that passing lines (progress) are worth writing."""
        return self.err.isatty()

    def shown(self, text: str, stream: TextIO) -> str:
        """`text` of a stranger, made harmless where a terminal would obey it."""
        return visible(text) if stream.isatty() else text

    def item(self, value: Any, text: str | None = None) -> None:
        """One object: a line of JSON, or its text for people (None: nothing)."""
        if self.json:
            self.write(dump(thaw(value)) + "\n")
        elif text is not None:
            self.write(self.shown(text, self.out) + "\n")

    def write(self, text: str) -> None:
        """Raw text on standard output, at once."""
        self.out.write(text)
        self.out.flush()

    def note(self, text: str) -> None:
        """A remark for people, on standard error."""
        self.err.write(self.shown(text, self.err) + "\n")
        self.err.flush()

    def passing(self, text: str) -> None:
        """A line that the next one replaces; only where a person watches."""
        if self.live:
            self.err.write("\r\x1b[K" + visible(text).replace("\n", " ")[:200])
            self.err.flush()

    def passed(self) -> None:
        """Clear the passing line."""
        if self.live:
            self.err.write("\r\x1b[K")
            self.err.flush()

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Rows of people's text in columns; nothing with `--json`."""
        if self.json or not rows:
            return
        columns = [max(width(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            cells = [cell + " " * (size - width(cell)) for cell, size in zip(row, columns, strict=True)]
            self.write(self.shown("  ".join(cells).rstrip(), self.out) + "\n")

    def error(self, error: HostError) -> None:
        """A failure: one object with `--json`, and for people what happened and what to do."""
        text, remedy = error_text(error)
        self.passed()
        if self.json:
            self.item(error_object(error))
        self.note("desktop-host: " + text.replace("\n", "\n  "))
        if remedy:
            self.note(f"  {remedy}")
