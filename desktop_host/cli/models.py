"""The verbs `models` and `usage`: what can answer, and what it took."""

from __future__ import annotations

from typing import Any

from desktop_host.cli.context import Run, Verb
from desktop_host.core.budgets import hit_rate
from desktop_host.core.models import ModelEntry, ModelProgress
from desktop_host.core.values import FrozenDict
from desktop_host.i18n import Translator, current, tr


def model_object(entry: ModelEntry) -> dict[str, Any]:
    """One line of `models list --json`."""
    language = Translator("en")
    return {
        "ref": entry.ref, "title": entry.title, "source": entry.source, "ready": entry.ready, "reason": entry.reason,
        "context_window": entry.context_window, "size_bytes": entry.size_bytes,
        "note": language.text(entry.note) if entry.note and language.has(entry.note) else entry.note,
    }  # fmt: skip


async def _list(run: Run) -> int:
    entries = await run.host.models.entries(refresh=True)
    rows = []
    for entry in entries:
        run.out.item(model_object(entry))
        key = f"cli.model.{entry.reason}"
        why = "" if entry.ready else tr(key) if current().has(key) else entry.reason or "?"
        rows.append([entry.ref, tr("cli.model.ready") if entry.ready else why, entry.title])
    run.out.table(rows)
    return 0


async def _get(run: Run) -> int:
    """Fetch the weights of an embedded model; to ask for it here is the consent."""
    name = _local(run.ns.name)
    shown = ""

    def progress(step: ModelProgress) -> None:
        nonlocal shown
        share = 100 * step.done_bytes // step.total_bytes if step.total_bytes else 0
        text = tr("cli.model.progress", name=step.name, phase=tr(f"cli.model.phase.{step.phase}"), percent=share,
                  done=step.done_bytes >> 20, total=step.total_bytes >> 20)  # fmt: skip
        if run.out.live:
            run.out.passing(text)
        elif (mark := f"{step.phase} {share // 25}") != shown:
            shown = mark
            run.out.note(text)

    entry = next((e for e in await run.host.models.entries() if e.ref in (name, f"local/{name}")), None)
    if entry is not None and entry.licence:
        run.out.note(tr("local.ask.licence", licence=entry.licence))
    await run.host.models.fetch(name, progress)
    run.out.passed()
    run.out.item({"name": name, "ready": True}, tr("cli.model.fetched", name=name))
    return 0


async def _remove(run: Run) -> int:
    name = _local(run.ns.name)
    await run.host.models.remove(name)
    run.out.item({"name": name, "removed": True}, tr("cli.model.removed", name=name))
    return 0


def _local(name: str) -> str:
    """A model's own name, whether or not it was written as a REF."""
    return name.removeprefix("local/")


async def _usage(run: Run) -> int:
    rows: list[list[str]] = []
    by = run.ns.by
    for row in await (run.host.standings() if by == "budget" else run.host.ledger.usage(by)):
        if "cache_read" in row:
            row = FrozenDict({**row, "cache_hit": hit_rate(row)})
        run.out.item(row)
        rows.append([_cell(value, "-" if by == "budget" else "?") for value in row.values()])
        if len(rows) == 1:
            rows.insert(0, [tr(f"cli.usage.{key}") if current().has(f"cli.usage.{key}") else key for key in row])
    run.out.table(rows)
    if not rows:
        run.out.note(tr("cli.usage.none"))
    return 0


def _cell(value: Any, nothing: str) -> str:
    if value is None:
        return nothing
    return f"{value:.4f}" if isinstance(value, float) else str(value)


VERBS: dict[tuple[str, str | None], Verb] = {
    ("models", "list"): _list,
    ("models", "get"): _get,
    ("models", "remove"): _remove,
    ("usage", None): _usage,
}
