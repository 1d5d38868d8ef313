"""What a file says as text: Markdown, plain text, HTML, PDF, DOCX and source code."""

from __future__ import annotations

import io
import logging
import re
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from knowledge_text import decode

PDF_PAGES = 2_000
"""Pages that are read of a PDF at most."""
PDF_SECONDS = 30.0
"""How long one PDF may take; what was read until then counts."""
UNPACKED = 60_000_000
"""Bytes that the text of a DOCX may unpack to: a small archive can hold a very large one."""

_MARKDOWN = (".md", ".markdown")
_PLAIN = (".txt", ".text", ".rst", ".org", ".adoc", ".log", ".csv", ".tsv", ".tex")
_HTML = (".html", ".htm", ".xhtml")
_CODE = """
.py .pyi .js .mjs .ts .tsx .jsx .java .kt .c .h .cc .cpp .hpp .cs .go .rs .rb .php .swift .scala .lua .pl .sh
    .bash .ps1 .sql .r .toml .ini .cfg .yaml .yml .json .xml .css
"""
CODE = frozenset(_CODE.split())
"""Endings of source code and configuration."""


class Unreadable(Exception):
    """A file whose text cannot be had; the message says why, for the log."""


@dataclass(frozen=True)
class Extracted:
    """The text of a file and how it is to be cut."""

    text: str
    kind: str
    """`markdown`, `text` or `code`."""
    title: str | None = None


def extract(file: Path, data: bytes) -> Extracted:
    """The text of a file, by its ending.

    Raises:
        Unreadable: it is damaged, locked by a password, or of a kind that is not read.
    """
    ending = file.suffix.lower()
    reader = READERS.get(ending)
    if reader is None:
        raise Unreadable(f"files ending in {ending or 'nothing'} are not read")
    return reader(data)


def _plain(kind: str) -> Callable[[bytes], Extracted]:
    def read(data: bytes) -> Extracted:
        if b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise Unreadable("not text")
        return Extracted(decode(data), kind)

    return read


_BLOCK_TAGS = """
p div section article main ul ol table tr pre blockquote dl dt dd figure figcaption br hr header aside
    address details summary form fieldset caption thead tbody option
"""
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_SPACES = re.compile(r"\s+")
_SILENT = frozenset({"script", "style", "template", "noscript", "svg", "head", "nav", "footer"})


class _Page(HTMLParser):
    """HTML to Markdown-like lines: headings, paragraphs, list items, code as it stands."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self._silent: list[str] = []
        self._pre = 0
        self._in_title = False

    def updatepos(self, _i: int, j: int) -> int:
        """Lines and columns are asked for by nobody; counting them takes a tenth of the time."""
        return j

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        elif tag == "body":
            self._silent.clear()  # A head that was never closed.
        elif tag in _SILENT:
            self._silent.append(tag)
        elif tag in _HEADINGS:
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag == "pre":
            self._pre += 1
            self.parts.append("\n\n```\n")
        elif tag in _BLOCKS:
            self.parts.append("\n" if tag in ("br", "tr", "dd", "option") else "\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in self._silent:
            del self._silent[self._silent.index(tag) :]
        elif tag == "pre" and self._pre:
            self._pre -= 1
            self.parts.append("\n```\n\n")
        elif tag in _HEADINGS or tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._silent:
            self.parts.append(data if self._pre else _SPACES.sub(" ", data))


def _charset(data: bytes) -> str:
    found = re.search(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w-]+)", data[:4096], re.IGNORECASE)
    if found and not data.startswith(b"\xef\xbb\xbf"):
        try:
            return data.decode(found[1].decode("ascii"), "replace")
        except LookupError:
            pass  # A name nobody knows; the usual guesses follow.
    return decode(data)


def _html(data: bytes) -> Extracted:
    page = _Page()
    page.feed(_charset(data))
    page.close()
    text = "".join(page.parts)
    lines, code = [], False
    for line in text.splitlines():
        code ^= line == "```"
        lines.append(line.rstrip() if code else line.strip())
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return Extracted(body, "markdown", " ".join(page.title.split()) or None)


def _pdf(data: bytes) -> Extracted:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError:
        raise Unreadable("PDF needs the package pypdf") from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # It reports every blemish of a file.
    until = time.monotonic() + PDF_SECONDS
    parts: list[str] = []
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("locked by a password")
        title = reader.metadata.title if reader.metadata else None
        for number, page in enumerate(reader.pages[:PDF_PAGES], 1):
            text = page.extract_text().strip()
            if text:
                parts.append(f"# Page {number}\n\n{text}")
            if time.monotonic() > until:
                parts.append("[the rest took too long to read]")
                break
    except Unreadable:
        raise
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OSError) as error:
        if not parts:
            raise Unreadable(f"a PDF that cannot be read ({type(error).__name__})") from error
    if not parts:
        raise Unreadable("a PDF without text (scanned pages?)")
    return Extracted("\n\n".join(parts), "markdown", str(title).strip() or None if title else None)


_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DC = "{http://purl.org/dc/elements/1.1/}"


def _docx(data: bytes) -> Extracted:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            body = ElementTree.fromstring(_part(archive, "word/document.xml"))
            title = None
            if "docProps/core.xml" in archive.namelist():
                title = ElementTree.fromstring(_part(archive, "docProps/core.xml")).findtext(f"{_DC}title")
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, EOFError, NotImplementedError, OSError) as error:
        raise Unreadable(f"a DOCX that cannot be read ({type(error).__name__})") from error
    except RuntimeError as error:
        raise Unreadable("locked by a password") from error
    lines: list[str] = []
    for paragraph in body.iter(f"{_W}p"):
        text = "".join(_run(node) for node in paragraph.iter())
        style = paragraph.find(f"{_W}pPr/{_W}pStyle")
        name = (style.get(f"{_W}val") or "").lower() if style is not None else ""
        level = re.fullmatch(r"(?:heading|berschrift|titre|\u6807\u9898)?\s*([1-6])", name)
        if name == "title" and text.strip():
            text = f"# {text.strip()}"
        elif level and text.strip():
            text = f"{'#' * int(level[1])} {text.strip()}"
        elif paragraph.find(f"{_W}pPr/{_W}numPr") is not None and text.strip():
            text = f"- {text}"
        lines.append(text)
    return Extracted("\n\n".join(line for line in lines if line.strip()), "markdown", (title or "").strip() or None)


def _run(node: ElementTree.Element) -> str:
    if node.tag == f"{_W}t":
        return node.text or ""
    return {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n"}.get(node.tag, "")


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > UNPACKED:
        raise Unreadable(f"its text unpacks to more than {UNPACKED} bytes")
    with archive.open(name) as part:
        data = part.read(UNPACKED + 1)
    if len(data) > UNPACKED or b"<!DOCTYPE" in data[:4096]:
        raise Unreadable("its text is no plain document")
    return data


READERS: dict[str, Callable[[bytes], Extracted]] = {
    **dict.fromkeys(_MARKDOWN, _plain("markdown")),
    **dict.fromkeys(_PLAIN, _plain("text")),
    **dict.fromkeys(CODE, _plain("code")),
    **dict.fromkeys(_HTML, _html),
    ".pdf": _pdf,
    ".docx": _docx,
}
"""File endings that are read, and how."""
