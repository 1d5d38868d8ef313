"""The verb `sessions`: what was said, found again, taken along, gone on with."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

from desktop_host.cli.chat import resume
from desktop_host.cli.context import Run, Verb, host_error, read_text
from desktop_host.cli.output import Output
from desktop_host.cli.render import TextView, clipped, heading
from desktop_host.core import events as ev
from desktop_host.core.codec import event_to_json
from desktop_host.core.errors import UserFault
from desktop_host.core.sessions import SessionRow
from desktop_host.i18n import error_text, tr, trn


def row_object(row: SessionRow) -> dict[str, Any]:
    """One line of `sessions list --json`."""
    return {
        "session": row.session, "title": row.title, "updated": row.updated, "messages": row.messages,
        "state": row.state.value,
    }  # fmt: skip


def _cells(row: SessionRow) -> list[str]:
    state = row.state.value
    if row.last_turn is not None and row.last_turn.value in ("interrupted", "failed", "open") and state == "idle":
        state = row.last_turn.value
    when = datetime.fromtimestamp(row.updated).astimezone()
    cells = [row.session, when.strftime("%Y-%m-%d %H:%M"), tr(f"cli.state.{state}"), clipped(row.title, 60)]
    return [*cells, clipped(row.snippet, 80)] if row.snippet else [*cells, ""]


async def _list(run: Run) -> int:
    rows: list[SessionRow] = []
    while page := await run.host.history.rows(limit=500, offset=len(rows)):
        rows += page
        if len(page) < 500:
            break
    return _show_rows(run, rows)


async def _search(run: Run) -> int:
    return _show_rows(run, list(await run.host.history.search(run.ns.text)))


def _show_rows(run: Run, rows: list[SessionRow]) -> int:
    for row in rows:
        run.out.item(row_object(row) | ({"snippet": row.snippet} if row.snippet is not None else {}))
    run.out.table([_cells(row) for row in rows])
    if not rows:
        run.out.note(tr("cli.sessions.none"))
    return 0


async def _show(run: Run) -> int:
    """The journal: with `--json` the events as `chat --json` gave them."""
    session = run.ns.session
    row = await run.host.history.row(session)
    await run.host.transcript(session)
    if not run.out.json:
        run.out.write(heading(row.title or session, run.out) + "\n")
    # A transcript is one text: calls and results stand between the words they belong to, on one stream.
    page = run.out if run.out.json else Output(False, run.out.out, run.out.out)
    view = TextView(page)
    for stamped in await run.host.history.read(session):
        if run.out.json:
            run.out.item(event_to_json(stamped))
        elif isinstance(stamped.event, ev.UserSaid):
            view.rest()
            files = "".join(f" [{run.out.shown(a.name, run.out.out)}]" for a in stamped.event.attachments)
            run.out.write("\n> " + run.out.shown(stamped.event.text, run.out.out) + files + "\n\n")
        else:
            view.show(stamped)
            if isinstance(stamped.event, ev.TurnEnded) and stamped.event.error is not None:
                page.note("✗ " + error_text(host_error(stamped.event.error))[0])
    view.rest()
    return 0


async def _export(run: Run) -> int:
    form = run.ns.format
    text = await run.host.export(run.ns.session, form)
    if run.out.json:
        run.out.item(json.loads(text) if form == "json" else {"session": run.ns.session, "format": form, "text": text})
    else:
        run.out.write(run.out.shown(text if text.endswith("\n") else text + "\n", run.out.out))
    return 0


async def _import(run: Run) -> int:
    name = run.ns.file
    text = await run.stdin.whole() if name == "-" else await asyncio.to_thread(read_text, name, "bad_bundle")
    session = await run.host.import_bundle(text.removeprefix("\ufeff"))
    row = await run.host.history.row(session)
    run.out.item(row_object(row), "  ".join(_cells(row)).rstrip())
    return 0


async def _rename(run: Run) -> int:
    session, title = run.ns.session, run.ns.text
    await run.host.history.row(session)
    await run.host.rename(session, title)
    run.out.item(row_object(await run.host.history.row(session)), tr("cli.sessions.renamed", title=title))
    return 0


async def _delete(run: Run) -> int:
    session = run.ns.session
    row = await run.host.history.row(session)
    await run.host.delete(session)
    told = trn("cli.sessions.deleted", row.messages, title=row.title)
    run.out.item({"session": session, "deleted": True}, told)
    return 0


async def _compact(run: Run) -> int:
    """Summarise a session for its model, or take the newest summary back."""
    session, undo = run.ns.session, run.ns.undo
    await run.host.history.row(session)
    done = await (run.host.undo_compaction(session) if undo else run.host.compact(session))
    key = ("undone" if undo else "done") if done else "nothing"
    run.out.item({"session": session, "done": done, "undo": undo}, tr(f"cli.compact.{key}"))
    return 0


async def _upload(run: Run) -> int:
    """Copy the chats of the profile's own file into the shared database."""
    if run.host.upload is None:
        raise UserFault("usage", "storage.url names no shared database", reason="nothing_shared")
    done = await run.host.upload()
    place = run.host.record["place"]
    run.out.item({**done, "place": place}, tr("cli.sessions.uploaded", place=place, **done))
    return 1 if done["failed"] else 0


VERBS: dict[tuple[str, str | None], Verb] = {
    ("sessions", "list"): _list,
    ("sessions", "show"): _show,
    ("sessions", "search"): _search,
    ("sessions", "export"): _export,
    ("sessions", "import"): _import,
    ("sessions", "resume"): resume,
    ("sessions", "compact"): _compact,
    ("sessions", "upload"): _upload,
    ("sessions", "rename"): _rename,
    ("sessions", "delete"): _delete,
}
