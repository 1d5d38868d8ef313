"""The strict rules of the open Agent Skills format, and what beyond them is worth a warning."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from desktop_host.core.skills import SkillProblem
from desktop_host.skills import yaml_text
from desktop_host.skills.frontmatter import Parts
from desktop_host.skills.problems import problem

FIELDS = frozenset({"name", "description", "license", "allowed-tools", "metadata", "compatibility"})
"""All that the open format knows at the top level."""
NAME_MAX, DESCRIPTION_MAX, COMPATIBILITY_MAX = 64, 1024, 500
"""Characters."""
BODY_LINES = 500
"""What the format's guide asks for; beyond it a skill should move text to `references/`."""

_COMMENT = re.compile(r"^([\w-]+):[ \t]+([^\"'|>\[{#\s][^\n]*?)[ \t]+#")
_COMMAND = re.compile(r"(?:^|\s)!`[^`\n]+`")


def check(parts: Parts, folder: str, file: str) -> Iterator[SkillProblem]:
    """The problems of a SKILL.md that could be read, with the lines of the file."""
    if file != "SKILL.md":
        yield problem("lowercase-file", 0, file)
    if not parts.found:
        return

    def at(key: str) -> int:
        return parts.block_line + yaml_text.key_line(parts.block, key) - 1

    for code, line, detail in yaml_text.strict_faults(parts.block):
        yield problem(code, parts.block_line + line - 1, detail)
    for key in parts.meta:
        if key not in FIELDS:
            yield problem("unexpected-field", at(key), key)
    yield from _name(parts, folder, at)
    yield from _text_field(parts, "description", DESCRIPTION_MAX, at)
    if "compatibility" in parts.meta:
        yield from _text_field(parts, "compatibility", COMPATIBILITY_MAX, at)
    for number, row in enumerate(parts.block.split("\n") if "#" in parts.block else (), parts.block_line):
        match = _COMMENT.match(row)
        if match:
            yield problem("yaml-comment", number, f"{match[1]}: {match[2]}")
    if not parts.body:
        yield problem("empty-body", parts.body_line)
    elif (lines := parts.body.count("\n") + 1) > BODY_LINES:
        yield problem("long-body", parts.body_line, str(lines))
    command = _COMMAND.search(parts.body) if "!`" in parts.body else None
    if command:
        yield problem("inline-command", parts.body_line + parts.body.count("\n", 0, command.start() + 1), command[0])


def _name(parts: Parts, folder: str, at: Callable[[str], int]) -> Iterator[SkillProblem]:
    value: Any = parts.meta.get("name")
    if value is None or value == "" or (isinstance(value, str) and not value.strip()):
        yield problem("name-missing", at("name"), folder)
        return
    if not isinstance(value, str):
        yield problem("name-not-text", at("name"), folder)
        return
    name = unicodedata.normalize("NFKC", value.strip())
    if len(name) > NAME_MAX:
        yield problem("name-too-long", at("name"), str(len(name)))
    sound = name == name.lower() and all(c.isalnum() or c == "-" for c in name)
    if not sound or name.startswith("-") or name.endswith("-") or "--" in name:
        yield problem("name-charset", at("name"), name)
    if unicodedata.normalize("NFKC", folder) != name:
        yield problem("name-mismatch", at("name"), f"{name} ({folder})")


def _text_field(parts: Parts, key: str, limit: int, at: Callable[[str], int]) -> Iterator[SkillProblem]:
    value = parts.meta.get(key)
    empty = value is None or (isinstance(value, str) and not value.strip())
    if key == "description" and (empty or value == [] or value == {}):
        yield problem("description-missing", at(key))
    elif value is not None and not isinstance(value, str):
        yield problem(f"{key}-not-text", at(key))
    elif isinstance(value, str) and len(value) > limit:
        yield problem(f"{key}-too-long", at(key), str(len(value)))
