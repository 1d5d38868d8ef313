"""The verb `secrets`: names in, names out; a value comes by standard input only and never goes out."""

from __future__ import annotations

from desktop_host.cli.context import Run, Verb
from desktop_host.core.errors import UserFault, exit_code
from desktop_host.i18n import current, tr


async def _set(run: Run) -> int:
    name = run.ns.name
    value = await (run.stdin.secret(name) if run.stdin.is_terminal else run.stdin.whole())
    if not value.strip():
        raise UserFault("usage", f"no value for {name} came on standard input", reason="no_value", name=name)
    await run.host.secrets.put(name, value)
    run.out.item({"name": name, "set": True}, tr("cli.secrets.set", name=name))
    return 0


async def _list(run: Run) -> int:
    names = await run.host.secrets.names()
    for name in names:
        run.out.item({"name": name, "set": True}, name)
    if not names:
        run.out.note(tr("cli.secrets.none"))
    return 0


async def _delete(run: Run) -> int:
    name = run.ns.name
    if not await run.host.secrets.delete(name):
        raise UserFault("not_found", f"there is no secret {name!r}", reason="secret", name=name)
    run.out.item({"name": name, "set": False}, tr("cli.secrets.deleted", name=name))
    return 0


async def _status(run: Run) -> int:
    """Which store is in use, after a write, a read and a delete."""
    probe = await run.host.secrets.probe()
    ok = bool(probe.get("ok"))
    text = tr("cli.secrets.works" if ok else "cli.secrets.fails", store=probe.get("store") or "-",
              detail=probe.get("detail") or "")  # fmt: skip
    run.out.item(probe, text)
    remedy = probe.get("remedy")
    if remedy and not ok:
        run.out.note("  " + (tr(remedy) if current().has(remedy) else remedy))
    return 0 if ok else exit_code("vault_unavailable")


VERBS: dict[tuple[str, str | None], Verb] = {
    ("secrets", "set"): _set,
    ("secrets", "list"): _list,
    ("secrets", "delete"): _delete,
    ("secrets", "status"): _status,
}
