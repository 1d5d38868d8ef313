"""Lone surrogate escapes in JSON: legal to many writers, refused by the strict reader; one must not cost an answer."""

from __future__ import annotations

import re

_SUSPECT = re.compile(rb"\\u[dD][89a-fA-F]")
# Every escape is taken whole, so that an escaped backslash before a `u` stays what it is.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def whole_characters(raw: bytes) -> bytes:
    """`raw` JSON with each half of a surrogate pair that stands alone replaced by U+FFFD; the same object if none."""
    if not _SUSPECT.search(raw):
        return raw
    made = _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], raw)
    return raw if made == raw else made
