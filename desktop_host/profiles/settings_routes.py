"""Routes, prices and traits in `settings.toml`: `[[routes]]` with a `chain` of tables, `[[prices]]`, `[[traits]]`."""

from __future__ import annotations

from typing import Any

from desktop_host.core.model_choice import BEST
from desktop_host.core.routes import NAME, RESERVED, Link, Route
from desktop_host.core.settings_costs import Price, Trait

ROUTE_FORM = "name and chain, a list of models or of tables with model, max_context, images, tools, max_cost_usd"
TRAIT_FORM = "model, speed and intelligence (whole numbers from 1 to 5)"
PRICE_FORM = "model, input and output (US dollars per million tokens), cache_read, cache_write"


def route(table: dict[str, Any]) -> Route | None:
    """The route of a table; None where it cannot be read."""
    name, chain = table.get("name"), table.get("chain")
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in RESERVED or not isinstance(chain, list):
        return None
    links = [_link({"model": item} if isinstance(item, str) else item) for item in chain]
    if not links or any(link is None for link in links):
        return None
    return Route(str(name), tuple(link for link in links if link is not None))


def _link(item: Any) -> Link | None:
    if not isinstance(item, dict):
        return None
    model, context, cost = item.get("model"), item.get("max_context"), item.get("max_cost_usd")
    images, tools = item.get("images", True), item.get("tools", True)
    if not isinstance(model, str) or not model.strip() or not (type(images) is type(tools) is bool):
        return None
    if not (context is None or (type(context) is int and context > 0)) or not (cost is None or _amount(cost)):
        return None
    return Link(model.strip(), context, images, tools, None if cost is None else float(cost))


def price(table: dict[str, Any]) -> Price | None:
    """The price of a table; None where it cannot be read."""
    model = table.get("model")
    needed, rest = [table.get(k) for k in ("input", "output")], [table.get(k) for k in ("cache_read", "cache_write")]
    if not isinstance(model, str) or not model or not all(_amount(v) for v in needed):
        return None
    if not all(v is None or _amount(v) for v in rest):
        return None
    read, write = (None if v is None else float(v) for v in rest)
    return Price(str(model), float(needed[0] or 0), float(needed[1] or 0), read, write)


def trait(table: dict[str, Any]) -> Trait | None:
    """What is said of a model; None where it cannot be read."""
    model, steps = table.get("model"), (table.get("speed"), table.get("intelligence"))
    if not isinstance(model, str) or not model or not all(type(s) is int and 1 <= s <= BEST for s in steps):
        return None
    return Trait(str(model), int(steps[0] or 1), int(steps[1] or 1))


def route_fields(item: Route) -> dict[str, Any]:
    """A route as a table; plain names where a link has no conditions."""
    return {"name": item.name, "chain": [link_fields(link) for link in item.chain]}


def link_fields(link: Link) -> Any:
    """A link as an inline table, or as its name alone."""
    given = {"max_context": link.max_context, "max_cost_usd": link.max_cost_usd}
    given |= {"images": None if link.images else False, "tools": None if link.tools else False}
    more = {key: value for key, value in given.items() if value is not None}
    return {"model": link.model} | more if more else link.model


def price_fields(item: Price) -> dict[str, Any]:
    """A price as a table."""
    return {
        "model": item.model, "input": item.input, "output": item.output,
        "cache_read": item.cache_read, "cache_write": item.cache_write,
    }  # fmt: skip


def array(values: list[Any]) -> Any:
    """A list of names and inline tables."""
    import tomlkit

    made = tomlkit.array()
    for value in values:
        if isinstance(value, dict):
            inline = tomlkit.inline_table()
            inline.update(value)
            made.append(inline)
        else:
            made.append(value)
    return made.multiline(len(values) > 2)


def _amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")
