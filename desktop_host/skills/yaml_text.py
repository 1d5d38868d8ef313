"""YAML as people write it in skills: every scalar stays text, and what is nearly YAML is mended and told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

MAX_CHARS = 64 * 1024
"""Longest frontmatter (characters): beyond it, aliases could be blown up."""
MAX_NODES = 20_000

Found = Callable[[str, int, str], None]
"""Takes a problem's code, the line within the block (from 1) and a detail."""

_KEY = re.compile(r"^([A-Za-z_][\w-]*):(?:[ \t]+(.*)|)$")
_KEYS = re.compile(r"^([A-Za-z_][\w-]*):(?=[ \t\n]|\Z)", re.M)
_SPECIAL = re.compile(r"[\[{&*!]")
"""Without one of these there is neither a flow nor an anchor nor a tag."""


@cache
def _loader() -> Any:
    """A safe loader to which `1.10`, `on` and dates are text; only null and merge keys keep a meaning."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class TextLoader(base):  # type: ignore[misc]  # The C or the Python class, known at run time only.
        def compose_node(self, parent: Any, index: Any) -> Any:
            self.nodes = getattr(self, "nodes", 0) + 1
            if self.nodes > MAX_NODES:
                raise yaml.YAMLError("too many nodes")
            return super().compose_node(parent, index)

    TextLoader.yaml_implicit_resolvers = {
        first: [(tag, rule) for tag, rule in rules if tag in ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")]
        for first, rules in base.yaml_implicit_resolvers.items()
    }
    return TextLoader


def load(block: str, found: Found) -> dict[str, Any]:
    """What a frontmatter block says; keys as written, scalars as text or None.

    Tries YAML, then YAML with values quoted and tabs made spaces, then `key: value` by line.
    """
    import yaml

    if len(block) > MAX_CHARS:
        found("frontmatter-too-long", 1, f"{len(block):,}")
        return _by_line(block)
    try:
        data = _parse(block)
    except (yaml.YAMLError, RecursionError) as error:
        line, cause = place(error)
        mended = mend(block)
        try:
            data = _parse(mended)
            found("tab-indent" if "\t" in _line(block, line) and ":" not in cause else "yaml-repaired", line, cause)
        except (yaml.YAMLError, RecursionError):
            found("yaml-line-fallback", line, cause)
            return _by_line(block)
        block = mended
    if data is None:
        return {}
    if not isinstance(data, dict):
        found("frontmatter-not-mapping", 1, type(data).__name__)
        return {}
    for key, line in _doubles(block):
        found("duplicate-key", line, key)
    return {str(k): v for k, v in data.items()}


_NULLS = frozenset(("", "~", "null", "Null", "NULL"))


@cache
def _composer() -> Any:
    """Text to nodes and no further: what a value is of a plain block needs no rules of YAML."""
    import yaml

    try:
        from yaml._yaml import CParser
    except ImportError:  # PyYAML without libyaml
        return None
    base: Any = CParser

    class Composer(base):  # type: ignore[misc]  # Typeshed does not know libyaml's parser.
        def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
            return "null" if kind is yaml.ScalarNode and implicit[0] and value in _NULLS else "text"

        def descend_resolver(self, parent: Any, index: Any) -> None: ...
        def ascend_resolver(self) -> None: ...

    return Composer


def _plainly(block: str) -> Any:
    """A block without flows, anchors, tags and merge keys: what the loader would say, in a third of the time."""
    composer = _composer()(block)
    try:
        node = composer.get_single_node()
    finally:
        composer.dispose()
    return None if node is None else _value(node, [0])


def _value(node: Any, count: list[int]) -> Any:
    value = node.value
    count[0] += 1
    if node.id == "scalar":
        return None if node.tag == "null" else value
    if count[0] > MAX_NODES:
        raise _refused("too many nodes")
    if node.id == "sequence":
        return [_value(v, count) for v in value]
    out = {}
    for key, held in value:
        if key.id != "scalar":
            raise _refused("found unhashable key")
        count[0] += 1
        out["None" if key.tag == "null" else key.value] = held.value if _is_text(held) else _value(held, count)
    return out


def _is_text(node: Any) -> bool:
    return bool(node.id == "scalar" and node.tag != "null")


def _refused(why: str) -> Exception:
    import yaml

    fault: Exception = yaml.YAMLError(why)
    return fault


def _parse(block: str) -> Any:
    import yaml

    if not _SPECIAL.search(block) and "<<" not in block and _composer() is not None:
        return _plainly(block)
    try:
        return _plain(yaml.load(block, Loader=_loader()), [0])
    except (ValueError, TypeError) as error:  # an unhashable key, a scalar its own tag refuses
        raise yaml.YAMLError(str(error)) from None


def _plain(value: Any, count: list[int]) -> Any:
    """Text, lists and dicts only; refuses what aliases have blown up."""
    import yaml

    count[0] += 1
    if count[0] > MAX_NODES:
        raise yaml.YAMLError("aliases expand to too many values")
    if isinstance(value, dict):
        return {str(k): _plain(v, count) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(v, count) for v in value]
    return value if value is None or isinstance(value, str) else str(value)


def place(error: BaseException) -> tuple[int, str]:
    """Line within the block (from 1) and cause of a YAML error."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    cause = getattr(error, "problem", None) or str(error).splitlines()[0] if str(error) else type(error).__name__
    return (mark.line + 1 if mark else 1), str(cause)


def _line(block: str, line: int) -> str:
    lines = block.split("\n")
    return lines[line - 1] if 0 < line <= len(lines) else ""


def mend(block: str) -> str:
    """The block with plain values quoted where they need it and tabs made spaces."""
    out: list[str] = []
    for line in block.split("\n"):
        line = re.sub(r"^[ \t]+", lambda m: m[0].replace("\t", "  "), line)
        match = _KEY.match(line)
        value = (match[2] or "").rstrip() if match else ""
        if match and value and _needs_quotes(value):
            value = value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", " ")
            out.append(f'{match[1]}: "{value}"')
        else:
            out.append(line)
    return "\n".join(out)


def _needs_quotes(value: str) -> bool:
    if value[0] in "|>" and re.fullmatch(r"[|>][+-]?\d?[+-]?\s*(#.*)?", value):
        return False
    if value[0] in "[{":
        return value[-1] not in "]}"
    if value[0] in "\"'":
        return False
    return not (value[0] in "&*" and re.fullmatch(r"[&*]\w+(\s.*)?", value))


def _by_line(block: str) -> dict[str, Any]:
    """The last resort: `key: value` lines, indented lines continue; name and description at least."""
    out: dict[str, Any] = {}
    key = None
    for line in block.split("\n")[:2000]:
        match = _KEY.match(line)
        if match:
            key = match[1]
            out[key] = re.sub(r"^[|>][+-]?\d?$", "", (match[2] or "").strip())
        elif key and re.match(r"[ \t]+\S", line):
            out[key] = f"{out[key]} {line.strip()}".strip()
    kept = {k: _unquoted(str(v)) for k, v in out.items() if not str(v).startswith(("[", "{", "- "))}
    return {k: v or None for k, v in kept.items()}


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _doubles(block: str) -> Iterator[tuple[str, int]]:
    keys = _KEYS.findall(block)
    if len(keys) == len(set(keys)):
        return
    seen: set[str] = set()
    for at, line in enumerate(block.split("\n"), 1):
        match = _KEY.match(line)
        if match:
            if match[1] in seen:
                yield match[1], at
            seen.add(match[1])


def strict_faults(block: str) -> Iterator[tuple[str, int, str]]:
    """What the reference checker's reader refuses although it is legal YAML: `(code, line, detail)`."""
    import yaml

    names = {
        "FlowSequenceStartToken": "flow-style", "FlowMappingStartToken": "flow-style", "AnchorToken": "anchor",
        "AliasToken": "anchor", "TagToken": "yaml-tag",
    }  # fmt: skip
    if not _SPECIAL.search(block):
        return
    seen: set[str] = set()
    try:
        for token in yaml.scan(block, Loader=_loader()):
            code = names.get(type(token).__name__)
            if code and code not in seen:
                seen.add(code)
                yield code, token.start_mark.line + 1, ""
    except yaml.YAMLError:
        return  # told as repaired already


def key_line(block: str, key: str) -> int:
    """Line within the block (from 1) of a top-level key; 1 where it is not found."""
    wanted = key.lower().replace("_", "-")
    for at, line in enumerate(block.split("\n"), 1):
        match = _KEY.match(line)
        if match and match[1].lower().replace("_", "-") == wanted:
            return at
    return 1
