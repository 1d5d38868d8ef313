"""What the verb `doctor` takes."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable


def _doctor(p: ArgumentParser) -> None:
    p.add_argument("--report", metavar="FILE")


HEALTH: dict[tuple[str, ...], Callable[[ArgumentParser], None]] = {("doctor",): _doctor}
"""The words of a verb to what builds its arguments."""
