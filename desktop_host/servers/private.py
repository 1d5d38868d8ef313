"""Files and folders that only their owner can look into, whatever the process's mask is."""

from __future__ import annotations

import os
from pathlib import Path


def opener(path: str, flags: int) -> int:
    """For `open`: a new file is its owner's alone."""
    return os.open(path, flags, 0o600)


def folder(path: Path) -> None:
    """Make a folder, and what is missing above it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def write(path: Path, text: str) -> None:
    """Write a text file."""
    with open(path, "w", encoding="utf-8", opener=opener) as file:
        file.write(text)
