"""Changing an object within a JSON text without losing a comment, an order or a line end around it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from desktop_host.core.values import canonical
from desktop_host.servers.jsonc import BLANK, Member, Node


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
    after = BLANK.match(text, at)
    return after.end() + 1 if after and text.startswith(",", after.end()) else None


def _whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a cut to whole lines where nothing else stands on them."""
    first = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    if stop >= 0 and not text[first:start].strip() and not text[end:stop].strip():
        return first, stop + 1
    return start, end
