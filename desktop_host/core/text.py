"""Bytes from outside as text: one rule for files, standard input and what is dropped on the window."""

from __future__ import annotations


def decoded(data: bytes) -> str:
    """The text of a file that people write: UTF-8 with or without BOM (kept), or UTF-16 with BOM.

    Raises:
        UnicodeDecodeError: it is neither; nothing is replaced or guessed.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    return data.decode("utf-8")
