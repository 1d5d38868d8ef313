"""What the verbs about skills take that take more than a name."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable


def _lint(p: ArgumentParser) -> None:
    p.add_argument("paths", metavar="PATH", nargs="+")


def _rollout(p: ArgumentParser) -> None:
    p.add_argument("name", metavar="NAME")
    p.add_argument("weights", metavar="V=W", nargs="+")


def _pin(p: ArgumentParser) -> None:
    p.add_argument("session", metavar="SESSION")
    p.add_argument("name", metavar="NAME")
    p.add_argument("skill_version", metavar="VERSION")


def _served(p: ArgumentParser) -> None:
    p.add_argument("name", metavar="ID", nargs="?", default="")


def _approve(p: ArgumentParser) -> None:
    p.add_argument("name", metavar="ID")
    p.add_argument("--digest", metavar="SHA256", default="")


def _revoke(p: ArgumentParser) -> None:
    p.add_argument("name", metavar="ID")


SKILLS: dict[tuple[str, ...], Callable[[ArgumentParser], None]] = {
    ("skills", "lint"): _lint,
    ("skills", "rollout"): _rollout,
    ("skills", "pin"): _pin,
    ("skills", "served"): _served,
    ("skills", "approve"): _approve,
    ("skills", "revoke"): _revoke,
}
