"""The words of those verbs for servers that stand for something the window offers."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable

from desktop_host.core.servers import LOG_LEVELS


def _level(p: ArgumentParser) -> None:
    p.add_argument("name", metavar="NAME")
    p.add_argument("level", choices=LOG_LEVELS, metavar="LEVEL")


def _links(p: ArgumentParser) -> None:
    p.add_argument("switch", choices=("on", "off"), metavar="on|off", nargs="?")


SERVERS: dict[tuple[str, ...], Callable[[ArgumentParser], None]] = {
    ("servers", "level"): _level,
    ("servers", "links"): _links,
}
