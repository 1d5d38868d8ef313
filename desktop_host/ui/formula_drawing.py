"""A formula's LaTeX as SVG, by a library that is imported with the first one. Nothing here knows Qt.

What a model or a server writes is hostile: the library takes twice as long for each level of braces, so a source is
weighed before it is drawn, and what would be drawn larger than a page is not drawn.
"""

from __future__ import annotations

import logging
import re
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

log = logging.getLogger(__name__)

MOST = 800
"""Longer sources (characters) are shown as they are."""
WEIGHT = 600
"""Heavier sources are shown as they are: half a second of processor time (measured: 0.35 s at a weight of 510)."""
WIDEST, HIGHEST = 4000.0, 1500.0
"""Larger drawings (pixels at 100 %) are not shown."""
SIZE, INLINE_SIZE = 20, 16
"""Height of a letter in a block and within a line, pixels at 100 %."""
_NESTING = re.compile(r"\\\\|\\[{}]|\\left\b|\\right\b|\\begin\b|\\end\b|[{}]")
_DEEPER = {"{": 1, "\\begin": 1, "\\left": 2}
_HIGHER = {"}": 1, "\\end": 1, "\\right": 2}
_BOX = re.compile(r'viewBox="([-\d.e+]+) ([-\d.e+]+) ([-\d.e+]+) ([-\d.e+]+)"')


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawn formula; sizes in pixels at 100 %."""

    svg: bytes
    width: float
    ascent: float
    """Above the line that the text stands on."""
    descent: float


def weight(source: str) -> int:
    """How long the library would take: each group counts twice what the one around it does."""
    depth = total = 0
    for mark in _NESTING.findall(source):
        if mark in _DEEPER:
            depth += _DEEPER[mark]
            total += 1 << min(depth, 40)
        elif mark in _HIGHER:
            depth = max(0, depth - _HIGHER[mark])
    return total


def draw(source: str, color: str, *, inline: bool = False) -> Drawing | None:
    """A formula as SVG; None where it cannot be drawn. Takes milliseconds to half a second of processor time."""
    if not source.strip() or len(source) > MOST or weight(source) > WEIGHT:
        return None
    size = INLINE_SIZE if inline else SIZE
    try:
        svg = str(_library().Latex(_aligned(source), size=size, color=color, inline=inline).svg())
    except Exception as cause:  # the library raises what its parsers do: ValueError, IndexError, KeyError, own types
        log.debug("a formula is shown as its source: %s", cause)
        return None
    box = _BOX.search(svg)
    if box is None:
        return None
    _, top, width, height = (float(part) for part in box.groups())
    if not (0 < width <= WIDEST and 0 < height <= HIGHEST):
        return None
    return Drawing(svg.encode(), width, -top, height + top)


@cache
def _library() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how it reads its own font
        found: Any = import_module("ziamath")
    found.config.svg2 = False  # Qt draws SVG Tiny
    return found


def _aligned(source: str) -> str:
    """Several aligned lines stand in an environment that knows them."""
    loose = "&" in source or "\\\\" in source
    return source if not loose or "\\begin" in source else f"\\begin{{aligned}}{source}\\end{{aligned}}"
