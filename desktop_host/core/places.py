"""Where the shipped files lie: in a checkout beside the package, in a wheel inside it."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped(*parts: str) -> Path:
    """The path of a shipped file or folder, e.g. `shipped("resources", "icons", "stop.svg")`."""
    inside = _PACKAGE / "_data"
    return (inside if inside.is_dir() else _PACKAGE.parent).joinpath(*parts)
