"""The form of `settings.toml`: a parsed document to settings, and the lists of tables back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from desktop_host.core import settings as core
from desktop_host.core.errors import UserFault
from desktop_host.core.routes import Route
from desktop_host.core.settings import Endpoint, PermissionRule, Settings
from desktop_host.core.settings_costs import Price, Trait
from desktop_host.core.values import FrozenDict
from desktop_host.profiles import settings_routes as own

WIRES = ("compat", "responses", "anthropic", "anthropic-compat")
EFFECTS = ("allow", "ask", "deny")
TABLES = ("endpoints", "rules", "routes", "prices", "traits")
"""The lists of tables, each a field of `Settings`."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a document says."""

    settings: Settings
    problems: tuple[FrozenDict, ...]


def read(document: dict[str, Any]) -> Reading:
    """The settings in a document; never fails, since each bad value has a default or denies."""
    problems: list[FrozenDict] = []
    settings = Settings()

    def bad(key: str, code: str, value: Any = None, wanted: str = "") -> None:
        shown = "" if value is None else str(value)[:200]
        problems.append(FrozenDict({"key": key, "code": code, "value": shown, "wanted": wanted}))

    known = {"schema", *TABLES, *core.SECTIONS}
    for key in document:
        if key not in known:
            bad(str(key), "unknown_key")
    names = {s.key for s in core.schema()}
    for section in core.SECTIONS:
        table = document.get(section, {})
        if not isinstance(table, dict):
            bad(section, "bad_value", table, "a table")
            continue
        for name, value in table.items():
            key = f"{section}.{name}"
            if key not in names:
                bad(key, "unknown_key")
                continue
            try:
                settings = core.put(settings, key, value)
            except UserFault as error:
                # What is no plain wrong value (`value` is missing) may be a secret: it is named, not shown.
                bad(key, "bad_value", value if "value" in error.params else None, str(error.params.get("wanted", "")))
    endpoints, rules = [], []
    for index, table in _tables(document, "endpoints", bad):
        endpoint = _endpoint(table)
        if endpoint is None:
            bad(f"endpoints[{index}]", "bad_value", None, f"name, base_url and wire ({', '.join(WIRES)})")
        else:
            endpoints.append(endpoint)
    for index, table in _tables(document, "rules", bad):
        rule, sound = _rule(table)
        rules.append(rule)
        if not sound:
            bad(f"rules[{index}]", "bad_value", None, f"pattern and effect ({', '.join(EFFECTS)})")
    routes = _sound(document, "routes", own.route, own.ROUTE_FORM, bad)
    prices = _sound(document, "prices", own.price, own.PRICE_FORM, bad)
    traits = _sound(document, "traits", own.trait, own.TRAIT_FORM, bad)
    settings = replace(
        settings, endpoints=tuple(endpoints), rules=tuple(rules), routes=tuple(routes), prices=tuple(prices),
        traits=tuple(traits),
    )  # fmt: skip
    return Reading(settings, tuple(problems))


def _sound(
    document: dict[str, Any], name: str, made: Callable[[dict[str, Any]], Any], form: str, bad: Callable[..., None]
) -> list[Any]:
    """The readable ones of a list of tables."""
    out = []
    for index, table in _tables(document, name, bad):
        item = made(table)
        if item is None:
            bad(f"{name}[{index}]", "bad_value", None, form)
        else:
            out.append(item)
    return out


def _tables(document: dict[str, Any], name: str, bad: Callable[..., None]) -> list[tuple[int, dict[str, Any]]]:
    items = document.get(name, [])
    if not isinstance(items, list):
        bad(name, "bad_value", None, "a list of tables")
        return [(0, {})] if name == "rules" else []
    return [(i, item if isinstance(item, dict) else {}) for i, item in enumerate(items)]


def _endpoint(table: dict[str, Any]) -> Endpoint | None:
    name, wire, url = table.get("name"), table.get("wire"), table.get("base_url")
    models = table.get("models", [])
    texts = isinstance(models, list) and all(isinstance(m, str) for m in models)
    if not (isinstance(name, str) and isinstance(url, str) and name and url and wire in WIRES and texts):
        return None
    return Endpoint(str(name), str(wire), str(url), tuple(str(m) for m in models))


def _rule(table: dict[str, Any]) -> tuple[PermissionRule, bool]:
    """A rule, and whether it was readable; one that is not denies what it may have meant."""
    effect, pattern = table.get("effect"), table.get("pattern")
    arguments, digest = table.get("arguments", ""), table.get("tool_digest", "")
    sound = effect in EFFECTS and all(isinstance(v, str) for v in (pattern, arguments, digest)) and bool(pattern)
    if sound:
        return PermissionRule(str(effect), str(pattern), str(arguments), str(digest)), True
    return PermissionRule("deny", pattern if isinstance(pattern, str) and pattern else "*"), False


def put_tables(styled: Any, name: str, items: tuple[Any, ...]) -> None:
    """Write a list of tables; those that stay keep their comments and unknown keys, unreadable ones stay."""
    import tomlkit

    old = [t for t in styled.get(name, ()) if isinstance(t, dict)]
    kept = {_identity(t): t for t in old}
    result = tomlkit.aot()
    for item in items:
        table = kept.pop(_identity(_fields(item)), None)
        if table is None:
            table = tomlkit.table()
        for key, value in _fields(item).items():
            if isinstance(value, list):
                table[key] = own.array(value)
            elif value is None:
                table.pop(key, None)
            elif value or key in table or isinstance(value, float):
                table[key] = list(value) if isinstance(value, tuple) else value
        result.append(table)
    for table in old:
        readers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "endpoints": _endpoint, "routes": own.route, "prices": own.price, "traits": own.trait,
        }  # fmt: skip
        plain: Any = table
        if name in readers and readers[name](plain.unwrap()) is None:
            result.append(table)
    if name in styled:
        del styled[name]
    if len(result):
        styled[name] = result


def _fields(item: Endpoint | PermissionRule | Route | Price | Trait) -> dict[str, Any]:
    """The fields of a table, in the order of the file."""
    if isinstance(item, Route):
        return own.route_fields(item)
    if isinstance(item, Price):
        return own.price_fields(item)
    if isinstance(item, Trait):
        return {"model": item.model, "speed": item.speed, "intelligence": item.intelligence}
    if isinstance(item, Endpoint):
        return {"name": item.name, "wire": item.wire, "base_url": item.base_url, "models": item.models}
    return {
        "effect": item.effect, "pattern": item.pattern, "arguments": item.arguments, "tool_digest": item.tool_digest,
    }  # fmt: skip


def _identity(table: dict[str, Any]) -> tuple[str, ...]:
    keys = (
        ("name",)
        if "name" in table
        else ("model",)
        if "model" in table
        else ("effect", "pattern", "arguments", "tool_digest")
    )
    return tuple(str(table.get(key, "")) for key in keys)
