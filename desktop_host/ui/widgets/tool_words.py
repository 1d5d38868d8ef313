"""Parts of a tool card: times, short arguments, JSON in a frame."""

from __future__ import annotations

from desktop_host.ui.viewmodels.asks import pretty
from desktop_host.ui.widgets.code import CodeFrame

RAW_STRING = 2000
"""Longer strings (characters) are cut in the raw view, with their length; Copy takes them whole."""


def json_frame(title: str, value: object, whole: str | None = None, max_lines: int = 18) -> CodeFrame:
    """A value as JSON in a frame; `whole` is what Copy takes where that is more."""
    frame = CodeFrame("json", title=title, max_lines=max_lines)
    frame.add_lines(pretty(value))
    frame.close_block()
    frame.source = whole
    return frame


def short(value: object) -> str:
    """A value in one line of at most 80 characters."""
    text = value if isinstance(value, str) else pretty(value)
    text = " ".join(text[:200].split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def cut(value: object) -> object:
    """A value whose long strings are cut, with their length."""
    if isinstance(value, str) and len(value) > RAW_STRING:
        return f"{value[:RAW_STRING]}… ({len(value)})"
    if isinstance(value, dict):
        return {k: cut(v) for k, v in value.items()}
    if isinstance(value, list):
        return [cut(v) for v in value]
    return value
