"""Markdown as it streams: cut into blocks that, once finished, are never looked at again.

`Splitter` turns pieces of text into steps: replace the open tail, commit it, open, fill and close a code
block. Only the tail is ever rendered anew, so a token costs the same in the first line and in the last.
Nothing here knows Qt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from desktop_host.ui.formula_text import FORMULA_LINK, is_tall, plain_formula

LONG_LIST = 2000
"""A list longer than this (characters) is committed item by item, though its numbering may then start anew."""

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^`]*$")
_MAYBE_FENCE = re.compile(r"^[ \t]*(?:`{1,2}|~{1,2}|`{3,}[^`]*|~{3,}[^`]*|\$|\$\$.*|\\|\\\[.*)$")
_ITEM = re.compile(r"^[ \t]{0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_MAYBE_ITEM = re.compile(r"^[ \t]{0,3}(?:[-*+]|\d{1,9}[.)]?)$")
_MATH_LINE = re.compile(r"^[ \t]*(?:\$\$(?P<a>.+?)\$\$|\\\[(?P<b>.+?)\\\])[ \t]*$")
_MATH_OPEN = re.compile(r"^[ \t]*(\$\$|\\\[)(.*)$")
_CODE_SPAN = re.compile(r"(`+)(?:(?!\1).)+?\1", re.S)
_IMAGE = re.compile(r"!\[([^\]\n]*)\]\(\s*<?([^)\s>]+)>?[^)\n]*\)")
_BREAK = re.compile(r" *<br\s*/?> *", re.I)
_INLINE_MATH = re.compile(
    r"\\\((?P<a>[^\n]+?)\\\)|(?<![\\$\w])\$(?=\S)(?P<b>[^$\n]{1,300}?)(?<=\S)\$(?![\d$\w])",
)
_LONE_NUMBER = re.compile(r"^([ \t]{0,3}\d{1,9})([.)])[ \t]*(?=\n[ \t]*\n|\n?\Z)", re.M)
"""An answer such as `42.`, which Markdown takes for an item without words: it would be seen as nothing."""
_MARKS = re.compile(r"[\\`*_\[\]<>#~|]")
_MATH_SIGNS = re.compile(r"[\\^_{}=]")


@dataclass(frozen=True, slots=True)
class Tail:
    """The open prose now reads so."""

    text: str


@dataclass(frozen=True, slots=True)
class Commit:
    """The open prose is finished and reads so."""

    text: str


@dataclass(frozen=True, slots=True)
class OpenCode:
    """A code block begins."""

    language: str


@dataclass(frozen=True, slots=True)
class CodeLines:
    """Whole lines of the open code block, without the last newline."""

    text: str


@dataclass(frozen=True, slots=True)
class CloseCode:
    """The open code block is finished."""


Step: TypeAlias = Tail | Commit | OpenCode | CodeLines | CloseCode


@dataclass(slots=True)
class Splitter:
    """Cuts a stream of Markdown into steps. `feed` pieces, then `finish` once."""

    _open: list[str] = field(default_factory=list)
    """Finished lines of the open block."""
    _size: int = 0
    _rest: str = ""
    """The line that is still coming."""
    _fence: str | None = None
    """What closes the open code block."""
    _indent: int = 0
    _shown: str = ""
    _steps: list[Step] = field(default_factory=list)

    def feed(self, text: str) -> list[Step]:
        """The steps that this piece leads to; at most one `Tail`, the last."""
        *lines, self._rest = (self._rest + text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
        for line in lines:
            self._line(line)
        if self._fence is None:
            self._partial()
        return self._taken()

    def finish(self) -> list[Step]:
        """The steps at the end of the text: everything open is committed and closed."""
        if self._rest:
            rest, self._rest = self._rest, ""
            self._line(rest)
        if self._fence is not None:
            self._steps.append(CloseCode())
            self._fence = None
        self._commit()
        return self._taken()

    def _taken(self) -> list[Step]:
        steps, self._steps = self._steps, []
        return steps

    def _line(self, line: str) -> None:
        if self._fence is not None:
            self._code_line(line)
            return
        fence = _FENCE.match(line)
        if fence and (len(fence[1].expandtabs(4)) <= 3 or self._is_list()):
            self._commit()
            self._fence, self._indent = fence[2], len(fence[1])
            self._steps.append(OpenCode(fence[3].lower()))
            return
        whole = _MATH_LINE.match(line)
        if whole:
            self._commit()
            formula = (whole["a"] or whole["b"]).strip()
            self._steps += [OpenCode("latex"), CodeLines(formula), CloseCode()]
            return
        math = _MATH_OPEN.match(line)
        if math:
            self._commit()
            self._fence, self._indent = ("$$" if math[1] == "$$" else "\\]"), 0
            self._steps.append(OpenCode("latex"))
            if math[2].strip():
                self._steps.append(CodeLines(math[2].strip()))
            return
        if line.strip() and self._ends_here(line):
            self._commit()
        if line.strip() or self._open:
            self._open.append(line)
            self._size += len(line) + 1

    def _code_line(self, line: str) -> None:
        fence = self._fence or ""
        bare = line.strip()
        if fence in ("$$", "\\]"):
            if bare.endswith(fence):
                if bare[: -len(fence)].strip():
                    self._steps.append(CodeLines(bare[: -len(fence)].strip()))
                bare = ""
                self._close()
                return
        elif bare.startswith(fence) and not bare.strip(fence[0]):
            self._close()
            return
        lead = len(line) - len(line.lstrip(" \t"))
        text = line[min(self._indent, lead) :]
        last = self._steps[-1] if self._steps else None
        if isinstance(last, CodeLines):
            self._steps[-1] = CodeLines(f"{last.text}\n{text}")
        else:
            self._steps.append(CodeLines(text))

    def _close(self) -> None:
        self._fence = None
        self._steps.append(CloseCode())

    def _partial(self) -> None:
        rest = self._rest
        if rest.strip() and self._open and not self._open[-1].strip():
            undecided = self._is_list() and (_MAYBE_ITEM.match(rest) is not None)
            if not undecided and self._ends_here(rest):
                self._commit()
        shown = "\n".join(self._open)
        if not _MAYBE_FENCE.match(rest):
            shown = f"{shown}\n{rest}" if self._open else rest
        if shown != self._shown and shown.strip():
            self._shown = shown
            self._steps.append(Tail(shown))

    def _ends_here(self, following: str) -> bool:
        """Whether the open block is finished, given the line that follows."""
        if not self._open or self._open[-1].strip():
            return False
        if not self._is_list():
            return True
        continues = following[:1] in " \t" or _ITEM.match(following) is not None
        return not continues or (self._size > LONG_LIST and _ITEM.match(following) is not None)

    def _is_list(self) -> bool:
        return bool(self._open) and _ITEM.match(self._open[0]) is not None

    def _commit(self) -> None:
        text = "\n".join(self._open).rstrip()
        if text:
            self._steps.append(Commit(text))
        self._open, self._size, self._shown = [], 0, ""


def presentable(text: str, *, unfinished: bool = False) -> str:
    """Markdown that can be handed to the renderer: nothing in it makes the renderer fetch anything.

    Images become links (only `data:` images stay), `<br>` a line separator, inline formulas
    letters, or their source as a link that says how to draw it (`FORMULA_LINK`).
    `unfinished` closes emphasis and code that are still open, so that no stray marks flicker.
    """
    text = _LONE_NUMBER.sub(r"\1\\\2", text)
    parts: list[str] = []
    at = 0
    for span in _CODE_SPAN.finditer(text):
        parts += [_plain_part(text[at : span.start()]), span[0]]
        at = span.end()
    last = _plain_part(text[at:])
    if unfinished:
        if last.count("`") % 2:
            last += "`"
        elif last.count("**") % 2 and not last.endswith("*"):
            last += "**"
    return "".join((*parts, last))


def _plain_part(text: str) -> str:
    text = _IMAGE.sub(lambda m: m[0] if m[2].startswith("data:image/") else f"[{m[1] or m[2]}]({m[2]})", text)
    text = _BREAK.sub("\u2028", text)
    return _INLINE_MATH.sub(_formula, text)


def _formula(match: re.Match[str]) -> str:
    body: str = match["a"] or match["b"]
    if match["b"] and not _MATH_SIGNS.search(body) and len(body) > 2:
        return match[0]  # "$5 and $6" are prices
    source = body.strip()
    letters = plain_formula(source)
    shown = f"`{source}`" if letters is None else f"*{_MARKS.sub(_escape, letters)}*"
    if "`" in source or (letters is not None and not is_tall(source)):
        return shown
    return f"[{shown}]({FORMULA_LINK}{source.encode().hex()})"


def _escape(match: re.Match[str]) -> str:
    return f"\\{match[0]}"
