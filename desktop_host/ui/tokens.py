"""Design tokens: the only place where a distance, a type size or a colour is a number."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum


class Space:
    """Distances in pixels at 100 %."""

    XS = 4
    S = 8
    M = 12
    L = 16
    XL = 24


class Type(Enum):
    """The type scale: size in pixels at 100 % and weight."""

    CAPTION = (12, 400)
    BODY = (14, 400)
    STRONG = (14, 600)
    HEADING = (17, 600)
    TITLE = (22, 600)

    @property
    def px(self) -> int:
        """Size at 100 %."""
        return self.value[0]

    @property
    def weight(self) -> int:
        """Weight as CSS counts it."""
        return self.value[1]


RADIUS = 8
BASE_ICON = 18
TEXT_WIDTH = 760
"""Longest line of a conversation or a page, pixels at 100 %."""


GUTTER = 12
"""Right of a column that scrolls within its page: the scroll bar's, so that what it shows never moves."""
SIDEBAR = 264
"""Width of the sidebar, pixels at 100 %."""
SIDEBAR_FOLDED = 56
ASIDE = 380
"""Least width of the panel right of the centre, pixels at 100 %."""
ROOM_FOR_CENTRE = 420
"""Below this (pixels at 100 %) beside it, the sidebar folds by itself."""


class Scheme(StrEnum):
    """The looks there are."""

    LIGHT = "light"
    DARK = "dark"
    HIGH_CONTRAST = "high_contrast"


@dataclass(frozen=True, slots=True)
class Colors:
    """Colours by role, as `#rrggbb`. Text roles hold 4.5:1 on `window`, `base` and `raised`."""

    window: str
    sidebar: str
    base: str
    """Behind text that is read or typed."""
    raised: str
    """Cards and menus."""
    sunken: str
    """Code, logs, wells."""
    hover: str
    border: str
    border_strong: str
    """Edges of controls."""
    text: str
    muted: str
    faint: str
    """Disabled text and ornaments only."""
    accent: str
    on_accent: str
    accent_soft: str
    link: str
    focus: str
    success: str
    success_soft: str
    warning: str
    warning_soft: str
    danger: str
    danger_soft: str
    on_danger: str
    info: str
    info_soft: str


LIGHT = Colors(
    window="#f8f8fa", sidebar="#f0f0f4", base="#ffffff", raised="#ffffff", sunken="#f3f3f6", hover="#e6e6ec",
    border="#e1e1e7", border_strong="#c2c2cc", text="#1c1c21", muted="#5b5b67", faint="#8d8d99",
    accent="#4b57cf", on_accent="#ffffff", accent_soft="#e8eafb", link="#3d49c2", focus="#4b57cf",
    success="#177544", success_soft="#e2f4ea", warning="#8f5a00", warning_soft="#fdf1d8",
    danger="#c0323a", danger_soft="#fce8e8", on_danger="#ffffff", info="#2568a8", info_soft="#e4f0fa",
)  # fmt: skip

DARK = Colors(
    window="#1b1b1f", sidebar="#151518", base="#222227", raised="#26262c", sunken="#17171a", hover="#303037",
    border="#34343c", border_strong="#4d4d58", text="#ededf1", muted="#ababb7", faint="#74747f",
    accent="#8f98f2", on_accent="#14141c", accent_soft="#2e3050", link="#a3abf7", focus="#a3abf7",
    success="#5cc98e", success_soft="#1d3528", warning="#e5b158", warning_soft="#3a2f1a",
    danger="#f28b8b", danger_soft="#40262a", on_danger="#1c1014", info="#7fb8ee", info_soft="#1f3244",
)  # fmt: skip

HIGH_CONTRAST = Colors(
    window="#000000", sidebar="#000000", base="#000000", raised="#000000", sunken="#000000", hover="#333333",
    border="#ffffff", border_strong="#ffffff", text="#ffffff", muted="#ffffff", faint="#c8c8c8",
    accent="#ffe100", on_accent="#000000", accent_soft="#333333", link="#8cc8ff", focus="#00e5ff",
    success="#5cff9d", success_soft="#000000", warning="#ffd24d", warning_soft="#000000",
    danger="#ff9a9a", danger_soft="#000000", on_danger="#000000", info="#8cd2ff", info_soft="#000000",
)  # fmt: skip

COLORS: dict[Scheme, Colors] = {Scheme.LIGHT: LIGHT, Scheme.DARK: DARK, Scheme.HIGH_CONTRAST: HIGH_CONTRAST}
