"""JSON as people write it: read with comments, BOM and trailing commas, each value with its place."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

DEEPEST = 200
"""Levels of nesting that are read; more is an attack or an accident."""

BLANK = re.compile(r"(?:[ \t\r\n\ufeff\u00a0\u200b]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
"""What may stand between two values: white space and comments."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}
_STRINGS = json.JSONDecoder(strict=False)  # Takes a line break within a string.
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*(?:"|$)(\s*:)?')
_TOKEN = re.compile(r"(?=[\w+/=.~-]*\d)(?=[\w+/=.~-]*[A-Za-z])[\w+/=.~-]{16,}")


PROBLEMS: Final[dict[str, str]] = {
    "json_second_value": "a second value follows the first",
    "json_ends_early": "the text ends too early",
    "json_comment_open": "a comment is not closed",
    "json_too_deep": "too deeply nested",
    "json_value_expected": "a value was expected",
    "json_number_too_large": "a number is too large",
    "json_string_open": "a string is not closed",
    "json_wrong_escape": "a string holds a wrong escape (write \\\\ for \\)",
    "json_key_expected": "a key in double quotes was expected",
    "json_colon_expected": "a colon was expected",
    "json_comma_expected": "a comma or the closing bracket was expected",
    "json_not_an_object": "an object was expected",
}
"""What can be wrong, by the code that the interface has a text for (`error.bad_config.<code>`)."""


class JsonProblem(Exception):
    """Why a text is no JSON (a code of `PROBLEMS`), and where."""

    def __init__(self, code: str, text: str, at: int) -> None:
        self.code = code
        self.message = PROBLEMS[code]
        self.place = place(text, at)
        super().__init__(self.message)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: line and column from 1, and its surroundings without what may be secret."""

    line: int
    column: int
    excerpt: str


def place(text: str, at: int) -> Place:
    """The place of `text[at]`."""
    start = text.rfind("\n", 0, at) + 1
    stop = text.find("\n", at)
    line = text[start : len(text) if stop < 0 else stop]
    return Place(text.count("\n", 0, at) + 1, at - start + 1, excerpt(line, at - start))


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


def read(text: str) -> Node:
    """Read one value.

    Raises:
        JsonProblem: with its place.
    """
    nodes = read_all(text)
    if len(nodes) > 1:
        raise JsonProblem("json_second_value", text, nodes[1].start)
    return nodes[0]


def read_all(text: str) -> list[Node]:
    """Read values that follow each other, with or without commas between them; at least one.

    Raises:
        JsonProblem: with its place.
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

    def fail(self, code: str, at: int) -> JsonProblem:
        return JsonProblem(code if at < len(self.text) else "json_ends_early", self.text, at)

    def skip(self, at: int) -> int:
        match = BLANK.match(self.text, at)
        at = match.end() if match else at
        if self.text.startswith("/*", at):
            raise JsonProblem("json_comment_open", self.text, at)
        return at

    def value(self, at: int, depth: int) -> Node:
        text = self.text
        if depth > DEEPEST:
            raise self.fail("json_too_deep", at)
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
            raise self.fail("json_value_expected", at)
        plain = json.loads(number[0])
        if plain in (math.inf, -math.inf):
            raise self.fail("json_number_too_large", at)
        return Node(plain, at, number.end())

    def string(self, at: int) -> tuple[str, int]:
        try:
            word, end = _STRINGS.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            if "Unterminated" in error.msg:
                raise JsonProblem("json_string_open", self.text, at) from None
            raise JsonProblem("json_wrong_escape", self.text, error.pos) from None
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
                raise self.fail("json_key_expected", here)
            key, end = self.string(here)
            colon = self.skip(end)
            if not self.text.startswith(":", colon):
                raise self.fail("json_colon_expected", colon)
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
        raise self.fail("json_comma_expected", here)
