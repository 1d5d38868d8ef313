"""Take the person out of text that leaves the computer: home folder, user and computer name, what hides in URLs."""

from __future__ import annotations

import getpass
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

_SHORTEST = 3
"""A shorter name is a syllable of other words."""
_COMMON = frozenset({"localhost", "local", "desktop", "user", "home"})
_QUERY = re.compile(r"(\b[a-z][\w+.-]{0,30}://[^\s?#\"'<>]{1,2000})[?#][^\s\"'<>)]+", re.I)
_SEGMENT = re.compile(r"(?<=/)(?=[\w.~-]{0,200}\d)(?=[\w.~-]{0,200}[A-Za-z])[\w~-]{20,}(?=[/\s\"'?#]|$)")
_URL = re.compile(r"\b[a-z][\w+.-]{0,30}://[^\s\"'<>]{1,2000}", re.I)
_MAIL = re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,3}\.[A-Za-z]{2,24}\b")


@dataclass(frozen=True, slots=True)
class Person:
    """Whose names must not be in a report."""

    homes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def of_this_computer(cls) -> Person:
        """Who runs this process, and where."""
        try:
            user = getpass.getuser()
        except (OSError, KeyError, ImportError):  # a container without an entry for the number
            user = ""
        home = str(Path.home())
        homes = dict.fromkeys([home, os.path.realpath(home), home.replace("\\", "\\\\")])
        return cls(tuple(h for h in homes if len(h) > 1), (user, platform.node(), platform.node().partition(".")[0]))

    def out_of(self, text: str) -> str:
        """The text without them: `~` for the home folder, `[user]`, `[mail]`, and URLs without queries."""
        for home in sorted(self.homes, key=len, reverse=True):
            text = re.sub(rf"{re.escape(home)}(?=[/\\\s\"':;,)\]]|$)", "~", text)
        names = {n for n in self.names if len(n) >= _SHORTEST and n.lower() not in _COMMON}
        if names:
            whole = "|".join(re.escape(n) for n in sorted(names, key=len, reverse=True))
            text = re.sub(rf"(?<![A-Za-z0-9])(?:{whole})(?![A-Za-z0-9])", "[user]", text)
        text = _QUERY.sub(r"\1?[query]", text)
        text = _URL.sub(lambda m: _SEGMENT.sub("[secret]", m[0]), text)
        return _MAIL.sub("[mail]", text)
