"""The file that a conversation was exported to, as text."""

from __future__ import annotations

from pathlib import Path

from desktop_host.core.errors import UserFault
from desktop_host.core.text import decoded


def text_of(path: Path) -> str:
    """The text of an exported conversation; blocking.

    Raises:
        UserFault: `bad_bundle`, it cannot be read or is no text.
    """
    try:
        return decoded(path.read_bytes()).removeprefix("\ufeff")
    except OSError as error:
        raise UserFault("bad_bundle", f"{path}: {error.strerror}", reason="not_readable", file=path.name) from error
    except UnicodeDecodeError as error:
        raise UserFault("bad_bundle", f"{path} is no text", reason="format", file=path.name) from error
