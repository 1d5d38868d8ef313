"""What a person makes of the servers' tools: groups, fixed arguments, rules for results. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Protocol

from desktop_host.core.errors import UserFault
from desktop_host.core.permissions import Effect
from desktop_host.core.tools import ToolGroup, ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict, freeze, thaw


@dataclass(frozen=True, slots=True)
class PostRule:
    """What becomes of a tool's result before the model gets it. The person still sees the raw result."""

    select: str = ""
    """JMESPath over the structured result (else over the JSON that the text is); empty: everything."""
    drop_images: bool = False
    max_chars: int = 0
    """Longest text, head and tail kept; 0: no limit beside the profile's."""


@dataclass(frozen=True, slots=True)
class ToolRule:
    """What holds for one tool."""

    tool: str
    """`alias.tool`."""
    preset: FrozenDict = EMPTY
    """Arguments that are fixed: the model neither sees nor sets them. Text may hold `${keyring:NAME}`."""
    post: PostRule = PostRule()
    description: str = ""
    """What the model is told instead of the tool's own description; empty: its own."""


@dataclass(frozen=True, slots=True)
class ToolkitConfig:
    """The toolkit of a profile."""

    groups: tuple[ToolGroup, ...] = ()
    rules: tuple[ToolRule, ...] = ()
    model_switches: bool = False
    """Whether the model may switch groups, by `host.reset_tools`."""

    def rule(self, full_name: str) -> ToolRule | None:
        """The rule of a tool."""
        return next((r for r in self.rules if r.tool == full_name), None)

    def group(self, name: str) -> ToolGroup:
        """A group by name.

        Raises:
            UserFault: `not_found`.
        """
        found = next((g for g in self.groups if g.name == name), None)
        if found is None:
            raise UserFault("not_found", f"there is no tool group {name!r}", kind="tool_group", name=name)
        return found


class ToolkitStore(Protocol):
    """Where the toolkit of a profile is kept."""

    def current(self) -> ToolkitConfig: ...
    async def save(self, config: ToolkitConfig) -> None:
        """Keep it.

        Raises:
            KnownFault: `disk_full`, `database_error`.
        """
        ...


def group_of(full_name: str, groups: Iterable[ToolGroup]) -> ToolGroup | None:
    """The first group that a tool belongs to; a tool of none is always there."""
    return next((g for g in groups if any(fnmatchcase(full_name, p) for p in g.patterns)), None)


def shaped(spec: ToolSpec, rule: ToolRule | None) -> ToolSpec:
    """The definition as the model is told: without the fixed arguments, with the person's description."""
    if rule is None or not (rule.preset or rule.description):
        return spec
    schema = thaw(spec.input_schema)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name in rule.preset:
            properties.pop(name, None)
    if isinstance(schema.get("required"), list):
        schema["required"] = [n for n in schema["required"] if n not in rule.preset]
        if not schema["required"]:
            del schema["required"]
    return replace(spec, input_schema=freeze(schema), description=rule.description or spec.description)


def completed(arguments: FrozenDict, rule: ToolRule | None) -> FrozenDict:
    """The model's arguments with the fixed ones, which win."""
    return FrozenDict({**arguments, **rule.preset}) if rule and rule.preset else arguments


def to_json(config: ToolkitConfig) -> dict[str, Any]:
    """The form of the file; what is as by default is left out."""
    out: dict[str, Any] = {}
    if config.groups:
        out["groups"] = [
            {
                "name": g.name, "tools": list(g.patterns), "enabled": g.enabled,
                **({"permission": g.default.value} if g.default else {}),
                **({"description": g.description} if g.description else {}),
                **({"notes": g.notes} if g.notes else {}),
            }
            for g in config.groups
        ]  # fmt: skip
    if config.rules:
        out["tools"] = {
            r.tool: {
                **({"preset": thaw(r.preset)} if r.preset else {}),
                **({"select": r.post.select} if r.post.select else {}),
                **({"dropImages": True} if r.post.drop_images else {}),
                **({"maxChars": r.post.max_chars} if r.post.max_chars else {}),
                **({"description": r.description} if r.description else {}),
            }
            for r in config.rules
        }
    if config.model_switches:
        out["modelSwitches"] = True
    return out


def from_json(raw: Any) -> ToolkitConfig:
    """The toolkit behind the file's form.

    Raises:
        UserFault: `bad_settings` with `key`.
    """
    body = _mapping(raw, "toolkit")
    groups = []
    for n, item in enumerate(body.get("groups") or ()):
        one = _mapping(item, f"groups[{n}]")
        groups.append(ToolGroup(
            name=_text(one.get("name"), f"groups[{n}].name"),
            patterns=_texts(one.get("tools"), f"groups[{n}].tools"),
            enabled=one.get("enabled") is not False,
            default=_effect(one.get("permission"), f"groups[{n}].permission"),
            description=str(one.get("description") or ""),
            notes=str(one.get("notes") or ""),
        ))  # fmt: skip
    rules = []
    for tool, item in _mapping(body.get("tools") or {}, "tools").items():
        one = _mapping(item, f"tools.{tool}")
        limit = one.get("maxChars") or 0
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise _wrong(f"tools.{tool}.maxChars", "a whole number", "whole")
        rules.append(ToolRule(
            tool=tool, preset=freeze(_mapping(one.get("preset") or {}, f"tools.{tool}.preset")),
            post=PostRule(str(one.get("select") or ""), one.get("dropImages") is True, limit),
            description=str(one.get("description") or ""),
        ))  # fmt: skip
    return ToolkitConfig(tuple(groups), tuple(rules), body.get("modelSwitches") is True)


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(key, "an object", "object")
    return value


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(key, "a text", "text")
    return value.strip()


def _texts(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
        raise _wrong(key, "a list of texts", "texts")
    return tuple(value)


def _effect(value: Any, key: str) -> Effect | None:
    if value is None:
        return None
    try:
        return Effect(value)
    except ValueError:
        raise _wrong(key, "allow, ask or deny", "effect") from None


def _wrong(key: str, wanted: str, code: str) -> UserFault:
    told = f"{key}: {wanted} was expected"
    return UserFault("bad_settings", told, key=key, wanted=f"wanted.{code}", reason="toolkit")
