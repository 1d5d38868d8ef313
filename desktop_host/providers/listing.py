"""What addresses offer: their lists of models as entries a person can pick."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from desktop_host.core.models import ModelEntry
from desktop_host.providers.clients import is_loopback, vendor_of
from desktop_host.providers.known import ASSUMED_WINDOW, is_chat
from desktop_host.providers.pricing import window_of

ASSUMED_NOTE = "note.model_window_assumed"
"""Shown beside a context window that nobody told us."""
DISCOVERED = (("Ollama", 11434), ("LM Studio", 1234), ("llama-server", 8080))
"""Servers that are looked for on this machine."""
LIST_S = 8.0
DISCOVER_S = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """One model of a list."""

    model: str
    title: str
    window: int | None = None


def rows(answer: Any, base_url: str) -> list[Row]:
    """The models of an answer of `GET /models`, in any of its shapes; an unknown shape gives none."""
    listed = answer.get("data") if isinstance(answer, dict) else answer
    if not listed and isinstance(answer, dict):
        listed = answer.get("models")
    out: dict[str, Row] = {}
    for item in listed if isinstance(listed, list) else []:
        if not isinstance(item, dict):
            continue
        name = item.get("id") or item.get("name") or item.get("model")
        if not isinstance(name, str) or not name.strip() or item.get("lifecycle") == "retired":
            continue
        if vendor_of(base_url) == "openai" and not is_chat(name):
            continue
        title = item.get("display_name") or item.get("title") or name
        out.setdefault(name, Row(name, str(title), _window(item)))
    return list(out.values())


def _window(item: dict[str, Any]) -> int | None:
    given = item.get("meta")
    meta: dict[str, Any] = given if isinstance(given, dict) else {}
    for value in (
        item.get("max_input_tokens"), item.get("context_length"), item.get("context_window"),
        item.get("max_model_len"), item.get("max_context_length"), meta.get("n_ctx_train"),
    ):  # fmt: skip
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


async def with_windows(found: Sequence[Row], base_url: str) -> list[Row]:
    """Rows with the windows that the price table knows, for those that came without."""
    if is_loopback(base_url) or all(row.window for row in found):
        return list(found)

    def look() -> list[Row]:
        return [row if row.window else Row(row.model, row.title, window_of(row.model, base_url)) for row in found]

    return await asyncio.to_thread(look)


def entries(
    found: Sequence[Row], prefix: str, source: str, *, ready: bool, reason: str | None = None
) -> list[ModelEntry]:
    """Rows as entries; a window that nobody told is assumed, and says so."""
    return [
        ModelEntry(
            ref=f"{prefix}{row.model}", title=row.title, source=source, ready=ready, reason=reason,
            context_window=row.window or ASSUMED_WINDOW, note=None if row.window else ASSUMED_NOTE,
        )
        for row in found
    ]  # fmt: skip


def same_place(one: str, other: str) -> bool:
    """Whether two addresses are the same server of this machine."""
    a, b = urlsplit(one), urlsplit(other)
    return is_loopback(one) and is_loopback(other) and a.port == b.port
