"""Bytes of a SKILL.md to its frontmatter and body, without losing a file to a BOM, a CR or a `---` in the text.

`python-frontmatter` does the work; the handler below stands in where its own loses or mangles files: of 12,232
public skills it refuses 31 and returns 503 silently without their metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from desktop_host.skills import yaml_text

MAX_BYTES = 2 * 2**20
"""Largest SKILL.md that is read; the largest public one has 444 KB."""

Told = Callable[[str, int, str], None]
"""Takes a problem's code, the line of the file (from 1) and a detail."""

_LEAD = re.compile(r"\A(?:[ \t]*\n|[ \t]*<!--.*?-->[ \t]*\n?)*", re.S)
_OPEN = re.compile(r"---[ \t]*(?:\n|\Z)")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.M)


@dataclass(frozen=True, slots=True)
class Parts:
    """A SKILL.md taken apart."""

    meta: dict[str, Any]
    block: str
    """The frontmatter's text; empty where there is none."""
    block_line: int
    """Line of the file (from 1) on which the block begins."""
    body: str
    body_line: int
    found: bool
    """Whether there is a frontmatter."""


def decode(raw: bytes, told: Told) -> str:
    """The text of a file whatever wrote it, with line feeds only."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        told("utf16", 1, "")
        text = raw.decode("utf-16", "replace").removeprefix("\ufeff")
    else:
        if raw[:3] == b"\xef\xbb\xbf":
            told("bom", 1, "")
            raw = raw[3:]
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            told("not-utf8", raw.count(b"\n", 0, error.start) + 1, str(error.start))
            text = raw.decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


@cache
def _handler() -> Any:
    from frontmatter.default_handlers import BaseHandler

    class SkillHandler(BaseHandler):
        """Delimiters are whole lines only; the block may follow blank lines and comments and end in `...`."""

        def __init__(self, told: Told) -> None:
            self.told = told
            self.block, self.block_line, self.body_line = "", 1, 1

        def detect(self, text: str) -> bool:
            return True

        def split(self, text: str) -> tuple[str, str]:
            lead = _LEAD.match(text)
            start = lead.end() if lead else 0
            opened = _OPEN.match(text, start)
            if opened is None:
                raise ValueError("no frontmatter")
            closed = _CLOSE.search(text, opened.end())
            if closed is None:
                self.told("unclosed", text.count("\n", 0, start) + 1, "")
                raise ValueError("unclosed frontmatter")
            if text[:start].strip():
                self.told("comment-first", 1, "")
            elif start:
                self.told("blank-first", 1, "")
            self.block = text[opened.end() : closed.start()].removesuffix("\n")
            self.block_line = text.count("\n", 0, opened.end()) + 1
            line = text.count("\n", 0, closed.end()) + 2
            body = text[closed.end() :]
            self.body_line = line + len(body) - len(body.lstrip("\n")) - 1 if body.strip() else line - 1
            if closed[0].startswith("..."):
                self.told("dots-close", line - 1, "")
            return self.block, body

        def load(self, fm: str, **_kwargs: object) -> dict[str, Any]:
            first = self.block_line
            return yaml_text.load(fm, lambda code, line, detail: self.told(code, first + line - 1, detail))

    return SkillHandler


def take_apart(raw: bytes, told: Told) -> Parts:
    """Read a SKILL.md; what is odd is told, nothing is raised."""
    import frontmatter

    text = decode(raw[:MAX_BYTES], told)
    if len(raw) > MAX_BYTES:
        told("file-too-large", 1, f"{len(raw):,}")
    opening = len(text) - len(text.lstrip())
    skipped = text.count("\n", 0, opening)
    codes: list[str] = []

    def shifted(code: str, line: int, detail: str) -> None:
        codes.append(code)
        told(code, line + skipped, detail)

    if skipped and text[opening : opening + 3] == "---":
        told("blank-first", 1, "")
    handler = _handler()(shifted)
    meta, body = frontmatter.parse(text, handler=handler)
    found = handler.block_line > 1
    if not found and "unclosed" not in codes:
        told("no-frontmatter", 1, "")
    return Parts(
        dict(meta), handler.block, handler.block_line + skipped, body.strip(), handler.body_line + skipped, found
    )
