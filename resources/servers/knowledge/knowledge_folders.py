"""The folders of an index: which they are, what their documents' paths begin with, and what lies in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from knowledge_extract import READERS

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "dist-info"})


class BadRequest(Exception):
    """What was asked for cannot be answered; the text tells how to ask instead."""


def checked(folder: Path) -> Path:
    """The folder as an absolute path without links.

    Raises:
        BadRequest: it does not exist.
    """
    try:
        found = folder.expanduser().resolve()
        if found.is_dir():
            return found
    except (OSError, RuntimeError, ValueError):
        pass  # An impossible name; told like one that is not there.
    raise BadRequest(f"{folder} is no folder. Give the path of a folder with documents.")


class Folders:
    """Folders by the label that the paths of their documents begin with (empty for a single folder)."""

    def __init__(self, folders: Sequence[Path]) -> None:
        given = tuple(dict.fromkeys(checked(Path(f)) for f in folders))
        self._labels: dict[str, Path] = {}
        if len(given) == 1:
            self._labels[""] = given[0]
        else:
            for folder in given:
                self.add(folder)

    def __iter__(self) -> Iterator[Path]:
        return iter(self._labels.values())

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, folder: Path, label: str | None = None) -> str:
        """Take a folder in and return its label; one that is there keeps its own."""
        for known, path in self._labels.items():
            if path == folder:
                return known
        if label is None or label in self._labels:
            name, n = folder.name or "root", 2
            while f"{name}/" in self._labels or self._taken(name):
                name, n = f"{folder.name or 'root'}-{n}", n + 1
            label = f"{name}/"
        self._labels = {**self._labels, label: folder}
        return label

    def remove(self, folder: Path) -> None:
        """Leave a folder out."""
        self._labels = {label: path for label, path in self._labels.items() if path != folder}

    def _taken(self, name: str) -> bool:
        whole = self._labels.get("")
        return whole is not None and (whole / name).exists()

    def covering(self, folder: Path) -> Path | None:
        """The folder that holds this one already, or None."""
        return next((path for path in self if folder.is_relative_to(path)), None)

    def file(self, path: str) -> Path | None:
        """The file of a document's path; None where it leads out of its folder or is none."""
        fitting = [label for label in self._labels if path.startswith(label)]
        if not fitting or not path:
            return None
        label = max(fitting, key=len)
        file = self._labels[label] / path[len(label) :]
        return file if inside(file, self._labels[label]) else None

    def files(self, skipped: list[str]) -> Iterator[tuple[str, Path, os.stat_result]]:
        """All readable files with their documents' paths; what is left out is told in `skipped`."""
        for label, root in self._labels.items():
            for folder, names, files in os.walk(root, onerror=lambda e: skipped.append(str(e))):
                names[:] = sorted(n for n in names if not n.startswith(".") and n not in _SKIPPED)
                for name in sorted(files):
                    if name.startswith(".") or os.path.splitext(name)[1].lower() not in READERS:
                        continue
                    file = Path(folder, name)
                    if file.is_symlink() and not inside(file, root):
                        skipped.append(f"{file}: a link that leads out of the folder")
                        continue
                    try:
                        stat = file.stat()
                    except OSError as error:
                        skipped.append(f"{file}: {error.strerror}")
                        continue
                    path = label + file.relative_to(root).as_posix()
                    try:
                        path.encode()
                    except UnicodeEncodeError:
                        skipped.append(f"{path!r}: its name is no UTF-8")
                        continue
                    yield path, file, stat


def inside(file: Path, root: Path) -> bool:
    """Whether this is a file below `root`, links followed."""
    try:
        return file.resolve().is_relative_to(root) and file.is_file()
    except (OSError, ValueError):
        return False
