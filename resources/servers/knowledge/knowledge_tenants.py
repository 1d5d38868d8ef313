"""Tenants: who has which key, folders and tools, as a file says that may change while the server runs.

The file: `{"tenants": {NAME: {"key_sha256": HEX, "folders": [DIR], "tools": [GLOB], "may_add": [DIR]}}}`. It holds
no key, only digests; `knowledge key` makes a pair. Each tenant has an index, a server and connections of its own, so
that nothing has to be filtered: what is another's is not there.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from knowledge_folders import BadRequest

_NAME = re.compile(r"[a-z0-9-]{1,32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Tenant:
    """One who may use the server."""

    name: str
    folders: tuple[Path, ...]
    tools: tuple[str, ...] = ("*",)
    """Globs of the tools that are offered."""
    may_add: tuple[Path, ...] | None = ()
    """Folders below which `add_folder` may take in others; None: all."""
    key_sha256: str | None = None
    """Digest of the API key; None: cannot be reached over HTTP."""
    chain: Path | None = None

    def allows(self, folder: Path) -> bool:
        """Whether `add_folder` may take this folder in."""
        return self.may_add is None or any(folder.is_relative_to(p.resolve()) for p in self.may_add)


def read_tenants(file: Path) -> dict[str, Tenant]:
    """The tenants of a file. Relative folders count from the file's own.

    Raises:
        BadRequest: it cannot be read, or names what cannot be.
    """
    try:
        listed = json.loads(file.read_text("utf-8-sig"))["tenants"]
        made = {name: _tenant(file, name, entry) for name, entry in listed.items()}
    except (OSError, ValueError) as error:
        raise BadRequest(f"{file} cannot be read: {error}") from None
    except (KeyError, TypeError, AttributeError):
        raise BadRequest(f'{file}: {{"tenants": {{NAME: {{"key_sha256", "folders", "tools"}}}}}} is wanted.') from None
    digests = [tenant.key_sha256 for tenant in made.values() if tenant.key_sha256]
    if len(digests) != len(set(digests)):
        raise BadRequest(f"{file}: two tenants have the same key.")
    return made


def _tenant(file: Path, name: str, entry: dict[str, object]) -> Tenant:
    if not _NAME.fullmatch(name):
        raise BadRequest(f"{file}: {name!r} is no name (a-z, 0-9 and -, at most 32).")
    digest = entry.get("key_sha256")
    if digest is not None and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
        raise BadRequest(f"{file}: {name}: key_sha256 is the SHA-256 of a key, 64 hex digits. Make one: knowledge key.")
    folders = tuple(file.parent / Path(f).expanduser() for f in _texts(entry["folders"]))
    chain = entry.get("chain")
    return Tenant(
        name, folders, tuple(_texts(entry.get("tools", ["*"]))),
        tuple(file.parent / Path(f).expanduser() for f in _texts(entry.get("may_add", []))), digest,
        file.parent / chain if isinstance(chain, str) else None,
    )  # fmt: skip


def _texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
        raise TypeError("a list of texts is wanted")
    return value


def new_key() -> tuple[str, str]:
    """A new API key and its digest."""
    key = secrets.token_urlsafe(32)
    return key, digest_of(key)


def digest_of(key: str) -> str:
    """What the file keeps of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def holder(key: str, digests: Iterable[tuple[str, str | None]]) -> str | None:
    """Whose key this is. Takes as long for any key: every digest is compared, in constant time each."""
    given, found = digest_of(key), None
    for name, digest in digests:
        if hmac.compare_digest(given, digest or "-" * 64):
            found = name
    return found
