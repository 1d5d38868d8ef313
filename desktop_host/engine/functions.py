"""Plain Python functions as tools of the alias `host`."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import inspect
import json
import re
import types
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.host_tools import ALIAS
from desktop_host.core.messages import (
    Audio,
    ContentBlock,
    EmbeddedResource,
    Image,
    Outcome,
    ResourceLink,
    Text,
)
from desktop_host.core.server_ports import Clash
from desktop_host.core.tools import ToolHints, ToolSpec
from desktop_host.core.values import FrozenDict, freeze, thaw

_BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource)


@dataclass(frozen=True, slots=True)
class Function:
    """A registered function."""

    spec: ToolSpec
    run: Callable[..., Any]
    wants_progress: bool


class Functions:
    """The `HostTools` that are plain functions, async or not (those run in a thread)."""

    def __init__(self) -> None:
        self._by_name: dict[str, Function] = {}

    def register(
        self,
        run: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        schema: dict[str, Any] | None = None,
        hints: ToolHints = ToolHints(),
        clash: Clash = Clash.REFUSE,
    ) -> ToolSpec | None:
        """Offer a function as `host.<name>`.

        Args:
            run: called with the arguments by name; a parameter `progress` gets a callable for `Progress`.
                May return text, JSON values, content blocks, a `ToolOutcome` or None.
            name: the function's own name by default.
            description: its docstring's first part by default.
            schema: JSON Schema of the arguments; made of signature and docstring by default.
            hints: what the tool says of itself; they are trusted.
            clash: what happens where the name is taken.

        Returns:
            The tool; None where it was skipped.

        Raises:
            UserFault: `usage`, the name is taken (REFUSE).
        """
        wanted: str = name or str(getattr(run, "__name__", "function"))
        if wanted in self._by_name:
            if clash is Clash.SKIP:
                return None
            if clash is Clash.REFUSE:
                raise UserFault("usage", f"a tool {wanted!r} is registered already", reason="name_taken", name=wanted)
            if clash is Clash.RENAME:
                wanted = next(f"{wanted}_{n}" for n in range(2, 10_000) if f"{wanted}_{n}" not in self._by_name)
        about, described = _doc(run)
        made = schema or schema_of(run, described)
        spec = ToolSpec(ALIAS, wanted, about if description is None else description, freeze(made), hints=hints)
        self._by_name[wanted] = Function(spec, run, "progress" in inspect.signature(run).parameters)
        return spec

    def unregister(self, name: str) -> None:
        """Take a function back.

        Raises:
            UserFault: `not_found`.
        """
        if self._by_name.pop(name, None) is None:
            raise UserFault("not_found", f"no function is registered as {name!r}", kind="tool", name=name)

    def specs(self, session: str) -> tuple[ToolSpec, ...]:
        return tuple(f.spec for _, f in sorted(self._by_name.items()))

    async def call(
        self,
        session: str,
        call_id: str,
        spec: ToolSpec,
        arguments: FrozenDict,
        progress: Callable[[Progress], None],
    ) -> ToolOutcome:
        found = self._by_name.get(spec.name)
        if found is None:
            return ToolOutcome(Outcome.ERROR, (Text(f"The tool {spec.full_name!r} is no longer there."),))
        given = thaw(arguments)
        if found.wants_progress:
            given["progress"] = progress
        try:
            inspect.signature(found.run).bind(**given)
        except TypeError as error:
            return ToolOutcome(Outcome.ERROR, (Text(f"The arguments do not fit: {error}"),))
        try:
            if inspect.iscoroutinefunction(found.run):
                made = await found.run(**given)
            else:
                made = await asyncio.to_thread(found.run, **given)
            return outcome_of(await made if isinstance(made, Awaitable) else made)
        except HostError as error:
            return ToolOutcome(Outcome.ERROR, (Text(error.message),))

    async def release(self, session: str) -> None:
        """Functions keep nothing for a session."""


def outcome_of(value: Any) -> ToolOutcome:
    """What a function gave, as the outcome of a call."""
    match value:
        case ToolOutcome():
            return value
        case None:
            return ToolOutcome(Outcome.OK, (Text("Done."),))
        case str():
            return ToolOutcome(Outcome.OK, (Text(value),))
        case list() | tuple() if value and all(isinstance(v, _BLOCKS) for v in value):
            blocks: tuple[ContentBlock, ...] = tuple(value)
            return ToolOutcome(Outcome.OK, blocks)
        case _ if isinstance(value, _BLOCKS):
            return ToolOutcome(Outcome.OK, (value,))
    plain = dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
    text = json.dumps(plain, ensure_ascii=False, default=str)
    return ToolOutcome(Outcome.OK, (Text(text),), freeze(json.loads(text)))


def schema_of(run: Callable[..., Any], described: dict[str, str]) -> dict[str, Any]:
    """The JSON Schema of a function's parameters."""
    hints = typing.get_type_hints(run)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(run).parameters.items():
        if name == "progress" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        one = _type(hints.get(name, str))
        if name in described:
            one["description"] = described[name]
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is None or isinstance(parameter.default, (str, int, float, bool)):
            one["default"] = parameter.default
        properties[name] = one
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}


def _type(hint: Any) -> dict[str, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        texts = [a for a in args[1:] if isinstance(a, str)]
        return {**_type(args[0]), **({"description": texts[0]} if texts else {})}
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin in (typing.Union, types.UnionType):
        some = [_type(a) for a in args if a is not type(None)]
        return some[0] if len(some) == 1 else {"anyOf": some}
    if origin in (list, tuple, set, frozenset):
        return {"type": "array", **({"items": _type(args[0])} if args else {})}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [m.value for m in hint]}
    return {"type": _PLAIN[origin or hint]} if (origin or hint) in _PLAIN else {}


def _doc(run: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description and what the docstring (Google style) says of each argument."""
    text = inspect.getdoc(run) or ""
    about = re.split(r"\n(?=Args:|Returns:|Raises:|Yields:)", text, maxsplit=1)[0].strip()
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", text, re.MULTILINE)
    described: dict[str, str] = {}
    for match in re.finditer(r"^ {4}(\w+)(?: \([^)]*\))?: ((?:.*(?:\n {6,}.*)*))", section[1] if section else "", re.M):
        described[match[1]] = " ".join(match[2].split())
    return about, described
