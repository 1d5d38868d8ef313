"""Text for searching: decoding, terms (Chinese, Japanese and Korean too) and passages with their headings."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

PASSAGE_CHARS = 700
"""Aim for the length of a passage: a handful of them fit into a small model's context."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(f"([{_CJK}]+)|((?:(?![{_CJK}])[^\\W_])+)")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t#]*$")
_DEFINITION = re.compile(
    r"[ \t]{0,8}(?:(?:pub|public|private|protected|static|async|export|default|abstract|final)\s+)*"
    r"(?:class|def|function|func|fn|interface|struct|enum|trait|impl|module|type)\s+([\w$]+(?:(?:\.|::)[\w$]+)*)"
)
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])")
_EMPTY = """
a an and are as at be by can do does for from has have how i in is it its me my of on or please tell that the this to
was we what when where which who why will with you your 的 了 是 吗 呢 在 和 有
"""
_STOP = frozenset(_EMPTY.split())
"""Words that say nothing about what is looked for."""


@dataclass(frozen=True)
class Passage:
    """A piece of a document; lines count from 1."""

    heading: str
    text: str
    first_line: int
    last_line: int


@dataclass(frozen=True)
class Document:
    """What a file says."""

    title: str
    category: str | None
    passages: tuple[Passage, ...]
    lines: int


def decode(data: bytes) -> str:
    """The text of a file in UTF-8, UTF-16 with a mark, or GB 18030; what fits nowhere is replaced, not refused."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    for name in ("utf-8-sig", "gb18030"):
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "replace")


def terms(text: str) -> Iterator[str]:
    """The terms under which a text is found: words, and for scripts without spaces characters and pairs."""
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        if run := match[1]:
            yield from run
            yield from (run[n : n + 2] for n in range(len(run) - 1))
        else:
            yield match[2]


def query_terms(text: str) -> list[str]:
    """The terms to look for, at most 64; words that say nothing are left out unless there are no others."""
    found: list[str] = []
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        run = match[1]
        if run and len(run) > 1:
            found += (run[n : n + 2] for n in range(len(run) - 1))
        else:
            found.append(run or match[2])
    telling = [t for t in found if t not in _STOP]
    return list(dict.fromkeys(telling or found))[:64]


def read_document(text: str, name: str, *, markdown: bool, code: bool = False) -> Document:
    """Cut a text into passages that stay below one heading each.

    Markdown may begin with front matter, of which `title` and `category` are used. `name` is the title of a
    text that names none. In code the line that opens a definition is the heading of what follows.
    """
    lines = text.splitlines()
    front, start = _front_matter(lines) if markdown else ({}, 0)
    title = front.get("title")
    path: list[tuple[int, str]] = []
    passages: list[Passage] = []
    block: list[str] = []
    size = 0
    first = start + 1
    fence = ""

    def close() -> None:
        body = "\n".join(block).rstrip()
        if body:
            heading = " > ".join(words for _level, words in path) or title or name
            passages.extend(_sized(heading, body, first, first + body.count("\n")))
        block.clear()

    for number, line in enumerate(lines[start:], start + 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        heading = _HEADING.match(line) if markdown and not fence else None
        if heading is not None:
            close()
            level = len(heading[1])
            path = [part for part in path if part[0] < level] + [(level, heading[2])]
            title = title or heading[2]
        defined = _DEFINITION.match(line) if code else None
        if defined is not None:
            close()
            path, size, first = [(1, f"{name} > {defined[1]}")], 0, number
        full = size >= PASSAGE_CHARS and not line.strip() and not fence
        if full:
            close()
        if heading is not None or full or (not block and not line.strip()):
            first, size = number + 1, 0
            continue
        block.append(line)
        size += len(line)
    close()
    return Document(title or name, front.get("category"), tuple(passages), len(lines))


def _sized(heading: str, body: str, first: int, last: int) -> Iterator[Passage]:
    """One passage, or several where a paragraph alone is far too long (then cut after sentences)."""
    if len(body) <= 2 * PASSAGE_CHARS:
        yield Passage(heading, body, first, last)
        return
    part = ""
    for sentence in _SENTENCE.split(body):
        for at in range(0, max(1, len(sentence)), PASSAGE_CHARS):
            piece = sentence[at : at + PASSAGE_CHARS]
            if part and len(part) + len(piece) > PASSAGE_CHARS:
                yield Passage(heading, part, first, last)
                part = ""
            part = f"{part} {piece}".strip()
    if part:
        yield Passage(heading, part, first, last)


def _front_matter(lines: list[str]) -> tuple[dict[str, str], int]:
    if not lines or lines[0].strip() != "---":
        return {}, 0
    for number, line in enumerate(lines[1:50], 1):
        if line.strip() in ("---", "..."):
            pairs = (entry.split(":", 1) for entry in lines[1:number] if ":" in entry)
            return {
                key.strip().lower(): value.strip().strip("'\"") for key, value in pairs if value.strip()
            }, number + 1
    return {}, 0
