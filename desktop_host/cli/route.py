"""The verb `route`: which model a task is given, and why."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from desktop_host.cli.context import Run, Verb
from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.routes import (
    DOWNGRADE,
    EXAMPLE,
    NAME,
    RESERVED,
    SORTED,
    TASKS,
    UNASKED,
    Considered,
    Link,
    Needs,
    Route,
    find,
    toml,
)
from desktop_host.core.values import freeze
from desktop_host.i18n import current, tr


def _object(route: Route) -> dict[str, Any]:
    chain = [
        {
            "model": link.model, "max_context": link.max_context, "images": link.images, "tools": link.tools,
            "max_cost_usd": link.max_cost_usd,
        }
        for link in route.chain
    ]  # fmt: skip
    return {"name": route.name, "task": route.name in TASKS, "chain": chain}


async def _list(run: Run) -> int:
    routes = run.host.settings.current().routes
    for route in routes:
        run.out.item(freeze(_object(route)))
    run.out.table([[route.name, " > ".join(link.model for link in route.chain)] for route in routes])
    if not routes:
        run.out.note(tr("cli.route.none"))
    return 0


async def _explain(run: Run) -> int:
    ns, settings = run.ns, run.host.settings.current()
    route = find(settings.routes, ns.task)
    if route is None and ns.task not in TASKS:
        known = ", ".join(dict.fromkeys([*TASKS, *(r.name for r in settings.routes)]))
        raise UserFault("usage", f"{ns.task!r} is no task and no route; there are {known}", value=ns.task)
    if route is None and ns.task in UNASKED:
        run.out.item(freeze({
            "task": ns.task, "route": None, "model": None, "usable": False, "chosen": False, "reasons": ["task_off"],
            "context_window": None, "cost_usd": None,
        }), tr("cli.route.off", task=ns.task))  # fmt: skip
        return 0
    if ns.task in SORTED and find(settings.routes, "classification") is None:
        run.out.note(tr("cli.route.unsorted", task=ns.task))
    if route is None:
        chat = find(settings.routes, "chat")
        model = chat.name if chat else settings.model.default
        run.out.item(freeze({
            "task": ns.task, "route": None, "model": model, "usable": True, "chosen": True, "reasons": ["default"],
            "context_window": await run.host.models.window(model), "cost_usd": None,
        }), tr("cli.route.direct", task=ns.task, model=model))  # fmt: skip
        return 0
    needs = Needs(max(0, ns.context), ns.images, ns.with_tools)
    rows = []
    for one in await run.host.models.explain(route.name, needs):
        run.out.item(freeze({
            "task": ns.task, "route": route.name, "model": one.model, "usable": one.usable, "chosen": one.chosen,
            "reasons": list(one.reasons), "context_window": one.facts.window, "cost_usd": one.facts.cost_usd,
        }))  # fmt: skip
        rows.append([one.model, _place(one), "; ".join(_reason(code) for code in one.reasons)])
    run.out.table(rows)
    return 0


def _place(one: Considered) -> str:
    return tr("cli.route.chosen" if one.chosen else "cli.route.next" if one.usable else "cli.route.not_asked")


def _reason(code: str) -> str:
    name, _, value = code.partition(":")
    key = f"route.reason.{name}"
    return tr(key, value=value) if current().has(key) else code


async def _set(run: Run) -> int:
    ns = run.ns
    if not NAME.fullmatch(ns.name) or ns.name in RESERVED:
        raise UserFault("usage", f"{ns.name!r} cannot name a route: lower-case letters, digits, - and _", value=ns.name)
    for model in ns.models:
        with contextlib.suppress(KnownFault):  # Without a key or weights yet: that may still come.
            await run.host.models.open(model)
    settings = run.host.settings.current()
    old = find(settings.routes, ns.name)
    kept = {link.model: link for link in old.chain} if old else {}
    route = Route(ns.name, tuple(kept.get(model) or Link(model) for model in ns.models))
    routes = tuple(route if r.name == ns.name else r for r in settings.routes) if old else (*settings.routes, route)
    await run.host.settings.save(replace(settings, routes=routes))
    run.out.item(freeze(_object(route)), tr("cli.route.set", name=ns.name))
    return 0


async def _remove(run: Run) -> int:
    settings = run.host.settings.current()
    if find(settings.routes, run.ns.name) is None:
        raise UserFault("not_found", f"there is no route {run.ns.name}", kind="route", name=run.ns.name)
    await run.host.settings.save(replace(settings, routes=tuple(r for r in settings.routes if r.name != run.ns.name)))
    run.out.item({"name": run.ns.name, "removed": True}, tr("cli.route.removed", name=run.ns.name))
    return 0


async def _example(run: Run) -> int:
    """Print a table to start from, and what takes over at a limit. What a person has already stays as it is."""
    if not run.ns.write:
        if run.out.json:
            for route in EXAMPLE:
                run.out.item(freeze(_object(route)))
        else:
            run.out.write(f'{toml(EXAMPLE)}\n[budgets]\ndowngrade = "{DOWNGRADE}"\n')
        return 0
    settings = run.host.settings.current()
    new = tuple(r for r in EXAMPLE if find(settings.routes, r.name) is None)
    budgets = replace(settings.budgets, downgrade=settings.budgets.downgrade or DOWNGRADE)
    await run.host.settings.save(replace(settings, routes=(*settings.routes, *new), budgets=budgets))
    count = len(settings.routes) + len(new)
    run.out.item({"routes": count}, tr("cli.route.written", count=count))
    return 0


VERBS: dict[tuple[str, str | None], Verb] = {
    ("route", "list"): _list,
    ("route", "explain"): _explain,
    ("route", "set"): _set,
    ("route", "remove"): _remove,
    ("route", "example"): _example,
}
