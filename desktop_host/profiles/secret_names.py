"""Which secrets there are and where each lies; never their values. A keyring cannot list its own."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.profiles import atomic

FILE = "secrets.json"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a secret lies."""

    store: str
    """`keyring` or `file`."""
    change: str
    """Another word after each change, so that other processes drop what they remember."""
    parts: int = 1
    """In how many pieces a keyring holds it."""


def fresh() -> str:
    """A word for `Whereabouts.change`."""
    return secrets.token_hex(4)


def check_name(name: str) -> None:
    """Refuse what no store takes.

    Raises:
        UserFault: `usage`.
    """
    if not name or len(name) > 512 or not name.isprintable():
        raise UserFault(
            "usage", "the name of a secret is 1 to 512 printable characters", name=name[:80], reason="bad_secret"
        )


class SecretNames:
    """The index file of a profile. Blocking."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def read(self) -> dict[str, Whereabouts]:
        """All names.

        Raises:
            KnownFault: `vault_unavailable`, the index cannot be read.
        """
        try:
            found = json.loads(self.path.read_text("utf-8"))
            return {
                str(name): Whereabouts(str(at["store"]), str(at["change"]), int(at.get("parts", 1)))
                for name, at in found["names"].items()
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise KnownFault(
                "vault_unavailable", f"{self.path} cannot be read: {error}", reason="bad_index", path=str(self.path)
            ) from error

    def change(self, edit: Callable[[dict[str, Whereabouts]], object]) -> None:
        """Edit the names as they are now, one process at a time."""
        with atomic.locked(self.path.with_name(f".{FILE}.lock")):
            names = self.read()
            edit(names)
            kept = {
                name: {"store": at.store, "change": at.change, **({"parts": at.parts} if at.parts > 1 else {})}
                for name, at in sorted(names.items())
            }
            text = json.dumps({"schema": 1, "names": kept}, ensure_ascii=False, indent=1)
            try:
                atomic.write(self.path, text.encode())
            except OSError as error:
                raise atomic.fault_of(error, self.path) from error
