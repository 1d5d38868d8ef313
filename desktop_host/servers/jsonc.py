"""JSON as people write it: read with comments, BOM and trailing commas; edited without losing a comment."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from desktop_host.core.values import canonical

DEEPEST = 200
"""Levels of nesting that are read; more is an attack or an accident."""

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff\u00a0\u200b]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}
_STRINGS = json.JSONDecoder(strict=False)  # Takes a line break within a string.
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*(?:"|$)(\s*:)?')
_TOKEN = re.compile(r"(?=[\w+/=.~-]*\d)(?=[\w+/=.~-]*[A-Za-z])[\w+/=.~-]{16,}")


class JsonProblem(Exception):
    """Why a text is no JSON, and where (line and column from 1).

    `excerpt` shows the place with the contents of strings left out, since they may be secrets.
    """

    def __init__(self, message: str, text: str, at: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = text.count("\n", 0, at) + 1
        start = text.rfind("\n", 0, at) + 1
        self.column = at - start + 1
        stop = text.find("\n", at)
        self.excerpt = excerpt(text[start : len(text) if stop < 0 else stop], at - start)


def excerpt(line: str, at: int) -> str:
    """The surroundings of a place in a line, without what may be secret: keys stay, long values do not."""

    def masked(match: re.Match[str]) -> str:
        word = match[0]
        return word if match[1] or len(word) <= 6 else '"' + "\0" * (len(word) - 2) + word[-1].replace("\\", "\0")

    line = _TOKEN.sub(lambda m: "\0" * len(m[0]), _QUOTED.sub(masked, line))
    before, after = (re.sub("\0+", "…", part) for part in (line[:at], line[at:]))
    return f"{before[-30:]}⟶{after[:30]}".strip()


@dataclass(slots=True)
class Node:
    """A value and where it stands: `text[start:end]`."""

    value: Any
    start: int
    end: int
    members: list[Member] = field(default_factory=list)
    """Of an object, in the file's order; a repeated key stands here as often as it was written."""

    def member(self, key: str) -> Node | None:
        """The last member of this name."""
        return next((m.node for m in reversed(self.members) if m.key == key), None)

    @property
    def repeated(self) -> list[str]:
        """Keys that stand in this object more than once (the last wins)."""
        keys = [m.key for m in self.members]
        return sorted({k for k in keys if keys.count(k) > 1})


@dataclass(slots=True)
class Member:
    """One `"key": value` of an object; `start` is where the key begins."""

    key: str
    start: int
    node: Node


def decode(data: bytes) -> str:
    """The text of a file: UTF-8 with or without BOM (kept), or UTF-16 with BOM.

    Raises:
        UnicodeDecodeError: it is neither.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    return data.decode("utf-8")


def read(text: str) -> Node:
    """Read one value.

    Raises:
        JsonProblem: with line, column and excerpt.
    """
    nodes = read_all(text)
    if len(nodes) > 1:
        raise JsonProblem("a second value follows the first", text, nodes[1].start)
    return nodes[0]


def read_all(text: str) -> list[Node]:
    """Read values that follow each other, with or without commas between them; at least one.

    Raises:
        JsonProblem: with line, column and excerpt.
    """
    reader = _Reader(text)
    nodes: list[Node] = []
    at = reader.skip(0)
    while at < len(text) or not nodes:
        node = reader.value(at, 0)
        nodes.append(node)
        at = reader.skip(node.end)
        if text.startswith(",", at):
            at = reader.skip(at + 1)
    return nodes


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def fail(self, message: str, at: int) -> JsonProblem:
        return JsonProblem(message if at < len(self.text) else "the text ends too early", self.text, at)

    def skip(self, at: int) -> int:
        match = _BLANK.match(self.text, at)
        at = match.end() if match else at
        if self.text.startswith("/*", at):
            raise JsonProblem("a comment is not closed", self.text, at)
        return at

    def value(self, at: int, depth: int) -> Node:
        text = self.text
        if depth > DEEPEST:
            raise self.fail("too deeply nested", at)
        head = text[at : at + 1]
        if head == "{":
            return self.object(at, depth)
        if head == "[":
            return self.array(at, depth)
        if head == '"':
            word, end = self.string(at)
            return Node(word, at, end)
        for name, plain in _WORDS.items():
            if text.startswith(name, at) and not text[at + len(name) : at + len(name) + 1].isalnum():
                return Node(plain, at, at + len(name))
        number = _NUMBER.match(text, at)
        if number is None or len(number[0]) > 400:
            raise self.fail("a value was expected", at)
        plain = json.loads(number[0])
        if plain in (math.inf, -math.inf):
            raise self.fail("a number is too large", at)
        return Node(plain, at, number.end())

    def string(self, at: int) -> tuple[str, int]:
        try:
            word, end = _STRINGS.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            if "Unterminated" in error.msg:
                raise JsonProblem("a string is not closed", self.text, at) from None
            raise JsonProblem("a string holds a wrong escape (write \\\\ for \\)", self.text, error.pos) from None
        # Half of a surrogate pair could never be written back.
        return word.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), end

    def array(self, at: int, depth: int) -> Node:
        items: list[Any] = []
        here = self.skip(at + 1)
        while not self.text.startswith("]", here):
            node = self.value(here, depth + 1)
            items.append(node.value)
            here = self.separator(node.end, "]")
        return Node(items, at, here + 1)

    def object(self, at: int, depth: int) -> Node:
        members: list[Member] = []
        here = self.skip(at + 1)
        while not self.text.startswith("}", here):
            if not self.text.startswith('"', here):
                raise self.fail("a key in double quotes was expected", here)
            key, end = self.string(here)
            colon = self.skip(end)
            if not self.text.startswith(":", colon):
                raise self.fail("a colon was expected", colon)
            node = self.value(self.skip(colon + 1), depth + 1)
            members.append(Member(key, here, node))
            here = self.separator(node.end, "}")
        return Node({m.key: m.node.value for m in members}, at, here + 1, members)

    def separator(self, at: int, closer: str) -> int:
        here = self.skip(at)
        if self.text.startswith(",", here):
            return self.skip(here + 1)
        if self.text.startswith(closer, here):
            return here
        raise self.fail(f"a comma or {closer} was expected", here)


def write(value: Any) -> str:
    """A value as JSON for a person: two spaces, characters as they are."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def edit(text: str, node: Node, wanted: Mapping[str, Any]) -> str:
    """Return `text` with the object at `node` holding exactly `wanted`.

    Members that keep their value are not touched, nor is anything outside of them: comments, order, spacing
    and line ends stay. New members go to the end.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent(text, node.start)
    lead = _indent(text, node.members[-1].start) if node.members else outer + "  "
    if len(lead) <= len(outer):
        lead = outer + "  "
    last = {m.key: m for m in node.members}
    cuts: list[tuple[int, int, str]] = []
    kept: list[Member] = []
    for member in node.members:
        if member is not last[member.key] or member.key not in wanted:
            cuts.append((*_whole_lines(text, member.start, _comma(text, member.node.end) or member.node.end), ""))
            continue
        kept.append(member)
        if canonical(wanted[member.key]) != canonical(member.node.value):
            cuts.append((member.node.start, member.node.end, _laid_out(wanted[member.key], lead, newline)))
    new = [
        f"{newline}{lead}{json.dumps(key, ensure_ascii=False)}: {_laid_out(value, lead, newline)}"
        for key, value in wanted.items()
        if key not in last
    ]
    trailing = bool(node.members) and _comma(text, node.members[-1].node.end) is not None
    comma = _comma(text, kept[-1].node.end) if kept else None
    if new and kept and comma is None:
        cuts.append((kept[-1].node.end, kept[-1].node.end, ","))
    elif not new and comma is not None and not trailing:
        cuts.append((comma - 1, comma, ""))
    if new:
        brace = node.end - 1
        place = len(text[:brace].rstrip())
        tail = ("," if trailing else "") + ("" if "\n" in text[place:brace] else newline + outer)
        cuts.append((place, place, ",".join(new) + tail))
    order = sorted(range(len(cuts)), key=lambda n: (*cuts[n][:2], n), reverse=True)
    for start, end, replacement in (cuts[n] for n in order):
        text = text[:start] + replacement + text[end:]
    return text


def _indent(text: str, at: int) -> str:
    """The white space that the line of this place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())].strip("\ufeff")


def _laid_out(value: Any, lead: str, newline: str) -> str:
    return write(value).replace("\n", newline + lead)


def _comma(text: str, at: int) -> int | None:
    """Past the comma that follows a value, if one does."""
    after = _BLANK.match(text, at)
    return after.end() + 1 if after and text.startswith(",", after.end()) else None


def _whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a cut to whole lines where nothing else stands on them."""
    first = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    if stop >= 0 and not text[first:start].strip() and not text[end:stop].strip():
        return first, stop + 1
    return start, end
