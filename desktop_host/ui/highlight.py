"""Code to coloured runs of text, with Pygments, imported when the first code block needs it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

STYLES = {False: "friendly", True: "github-dark"}
"""Pygments style for a light and for a dark background."""

NAMES = {
    "js": "JavaScript", "javascript": "JavaScript", "ts": "TypeScript", "typescript": "TypeScript", "py": "Python",
    "python": "Python", "sh": "Shell", "bash": "Bash", "shell": "Shell", "json": "JSON", "yaml": "YAML", "yml": "YAML",
    "html": "HTML", "css": "CSS", "sql": "SQL", "cpp": "C++", "c++": "C++", "csharp": "C#", "cs": "C#",
    "md": "Markdown",
    "toml": "TOML", "xml": "XML", "latex": "LaTeX", "tex": "LaTeX", "php": "PHP", "mermaid": "Mermaid", "tsx": "TSX",
    "jsx": "JSX", "powershell": "PowerShell", "ini": "INI", "graphql": "GraphQL",
}  # fmt: skip


def language_title(language: str) -> str:
    """A language as people write it."""
    return NAMES.get(language, language[:1].upper() + language[1:])


@cache
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language or "text", stripnl=False, ensurenl=False)
    except ClassNotFound:
        return get_lexer_by_name("text", stripnl=False, ensurenl=False)


@cache
def _style(dark: bool) -> Any:
    from pygments.styles import get_style_by_name

    return get_style_by_name(STYLES[dark])


@cache
def _look(token: Any, dark: bool) -> tuple[str, bool, bool]:
    style = _style(dark).style_for_token(token)
    return (f"#{style['color']}" if style["color"] else "", bool(style["bold"]), bool(style["italic"]))


def runs(code: str, language: str, dark: bool) -> Iterator[tuple[str, str, bool, bool]]:
    """Pieces of `code` with their look: `(text, #rrggbb or "", bold, italic)`."""
    for token, text in _lexer(language).get_tokens(code):
        yield (text, *_look(token, dark))


def warm() -> None:
    """Load what the first code block needs; call when the window is shown and nothing else happens."""
    for _ in runs("x = 1", "python", False):
        pass
