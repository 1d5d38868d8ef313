"""A session as one text: to read it (`md`), to show it (`html`). To move it, see `moving`."""

from __future__ import annotations

import html
import json
from typing import Any

from desktop_host.core.codec import block_to_mcp
from desktop_host.core.events import Stamped, UserSaid
from desktop_host.core.ports import History
from desktop_host.core.transcript import AssistantEntry, Entry, ToolEntry, Transcript, UserEntry, fold_all


def transcript_of(session: str, title: str, events: tuple[Stamped, ...]) -> Transcript:
    """The conversation behind a journal."""
    return fold_all(Transcript(session=session, title=title), events)


async def newest_of(history: History, session: str, count: int | None) -> tuple[tuple[Stamped, ...], bool]:
    """The events of the newest turns, and whether there are others before them; all where `count` is None."""
    after = 0 if count is None else await history.tail_seq(session, count)
    events = await history.read(session, after)
    if not after:
        return events, False
    begin = next((i for i, s in enumerate(events) if isinstance(s.event, UserSaid)), None)
    return (events[begin:], True) if begin is not None else (await history.read(session), False)


def to_markdown(transcript: Transcript) -> str:
    """The conversation as Markdown."""
    parts = [f"# {transcript.title or transcript.session}"]
    for entry in transcript.entries:
        heading, body, code = _words(entry)
        if heading:
            parts.append(f"## {heading}")
        if body:
            parts.append(body)
        for label, text in code:
            fence = "```" if "```" not in text else "`````"
            parts.append(f"{label}\n\n{fence}\n{text}\n{fence}")
    return "\n\n".join(parts) + "\n"


def to_html(transcript: Transcript) -> str:
    """The conversation as one HTML page without scripts and without anything loaded from elsewhere."""
    rows = []
    for entry in transcript.entries:
        heading, body, code = _words(entry)
        if not heading and not body:
            continue
        blocks = "".join(
            f"<p>{html.escape(label)}</p><pre><code>{html.escape(text)}</code></pre>" for label, text in code
        )
        rows.append(
            f"<section><h2>{html.escape(heading)}</h2><div class=text>{html.escape(body)}</div>{blocks}</section>"
        )
    title = html.escape(transcript.title or transcript.session)
    return (
        f"<!doctype html><html><head><meta charset=utf-8><title>{title}</title><style>"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:760px;margin:2rem auto;padding:0 1rem}"
        ".text,pre{white-space:pre-wrap;overflow-wrap:anywhere}pre{background:#8881;padding:.75rem;border-radius:6px}"
        f"h2{{font-size:1rem}}</style></head><body><h1>{title}</h1>{''.join(rows)}</body></html>\n"
    )


def _words(entry: Entry) -> tuple[str, str, list[tuple[str, str]]]:
    match entry:
        case UserEntry(text=text, attachments=files):
            return "User", "\n".join([text, *(f"[{f.name}]" for f in files)]).strip(), []
        case AssistantEntry(text=text, model=model):
            return f"Assistant ({model})" if model else "Assistant", text, []
        case ToolEntry():
            arguments = json.dumps(entry.arguments, ensure_ascii=False, indent=2)
            result = "\n".join(_plain(block_to_mcp(b)) for b in entry.content)
            outcome = entry.outcome.value if entry.outcome else "open"
            return f"Tool {entry.server}.{entry.tool}: {outcome}", "", [("Arguments", arguments), ("Result", result)]
        case _:
            return "", "", []


def _plain(block: dict[str, Any]) -> str:
    if block["type"] == "text":
        return str(block["text"])
    if block["type"] in ("image", "audio"):
        return f"[{block['type']} {block['mimeType']}, {len(block['data']) * 3 // 4:,} bytes]"
    return json.dumps(block, ensure_ascii=False)
