"""What the verbs about routes, costs and long conversations take."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable

SUMS = ("day", "model", "session", "server", "purpose", "skill", "budget")


def _nothing(_p: ArgumentParser) -> None:
    """A verb without arguments of its own."""


def _usage(p: ArgumentParser) -> None:
    p.add_argument("--by", choices=SUMS, default="day")


def _explain(p: ArgumentParser) -> None:
    p.add_argument("--task", metavar="T", required=True)
    p.add_argument("--context", type=int, metavar="N", default=0)
    p.add_argument("--images", action="store_true")
    p.add_argument("--with-tools", action="store_true")


def _set(p: ArgumentParser) -> None:
    p.add_argument("name", metavar="NAME")
    p.add_argument("models", metavar="REF", nargs="+")


def _remove(p: ArgumentParser) -> None:
    p.add_argument("name", metavar="NAME")


def _example(p: ArgumentParser) -> None:
    p.add_argument("--write", action="store_true")


def _compact(p: ArgumentParser) -> None:
    p.add_argument("session", metavar="ID")
    p.add_argument("--undo", action="store_true")


MONEY: dict[tuple[str, ...], Callable[[ArgumentParser], None]] = {
    ("usage",): _usage,
    ("sessions", "compact"): _compact,
    ("sessions", "upload"): lambda _p: None,
    ("route", "list"): _nothing,
    ("route", "explain"): _explain,
    ("route", "set"): _set,
    ("route", "remove"): _remove,
    ("route", "example"): _example,
}
"""The words of a verb to what builds its arguments."""
