"""The theme as a page of a server may take it over: MCP Apps 2026-01-26, "Theming" (`hostContext.styles`)."""

from __future__ import annotations

from typing import Any

from desktop_host.ui.theme import theme
from desktop_host.ui.tokens import RADIUS, Type

_COLORS = {
    "background-primary": "base", "background-secondary": "sunken", "background-tertiary": "hover",
    "background-inverse": "text", "background-ghost": "raised", "background-info": "info_soft",
    "background-danger": "danger_soft", "background-success": "success_soft",
    "background-warning": "warning_soft", "background-disabled": "sunken",
    "text-primary": "text", "text-secondary": "muted", "text-tertiary": "muted", "text-inverse": "base",
    "text-info": "info", "text-danger": "danger", "text-success": "success", "text-warning": "warning",
    "text-disabled": "faint", "text-ghost": "muted",
    "border-primary": "border", "border-secondary": "border_strong", "border-tertiary": "border",
    "border-inverse": "text", "border-ghost": "raised", "border-info": "info", "border-danger": "danger",
    "border-success": "success", "border-warning": "warning", "border-disabled": "border",
    "ring-primary": "focus", "ring-secondary": "border_strong", "ring-inverse": "base", "ring-info": "info",
    "ring-danger": "danger", "ring-success": "success", "ring-warning": "warning",
}  # fmt: skip
_SIZES = {
    "font-text-xs": Type.CAPTION, "font-text-sm": Type.CAPTION, "font-text-md": Type.BODY, "font-text-lg": Type.BODY,
    "font-heading-xs": Type.STRONG, "font-heading-sm": Type.STRONG, "font-heading-md": Type.HEADING,
    "font-heading-lg": Type.HEADING, "font-heading-xl": Type.TITLE, "font-heading-2xl": Type.TITLE,
    "font-heading-3xl": Type.TITLE,
}  # fmt: skip


def looks() -> dict[str, Any]:
    """`theme` and `styles` of the host's context, as the window looks now; sizes follow the font scale."""
    variables = {f"--color-{name}": theme.color(role).name() for name, role in _COLORS.items()}
    for name, kind in _SIZES.items():
        variables[f"--{name}-size"] = f"{theme.px(kind.px)}px"
        variables[f"--{name}-line-height"] = "1.5" if "text" in name else "1.3"
    for name, weight in (("normal", 400), ("medium", 500), ("semibold", 600), ("bold", 700)):
        variables[f"--font-weight-{name}"] = str(weight)
    family = theme.font(Type.BODY).family()
    variables |= {
        "--font-sans": f'"{family}", sans-serif', "--font-mono": "monospace", "--border-width-regular": "1px",
        "--border-radius-xs": "2px", "--border-radius-sm": "4px", "--border-radius-md": f"{RADIUS}px",
        "--border-radius-lg": "12px", "--border-radius-xl": "16px", "--border-radius-full": "9999px",
    }  # fmt: skip
    return {"theme": "dark" if theme.dark else "light", "styles": {"variables": variables}}
