"""The fallback store: one file, encrypted with a key made from a passphrase (scrypt, AES-256-GCM)."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from desktop_host.core.errors import KnownFault
from desktop_host.profiles import atomic

FILE = "vault.enc"
_COST = {"n": 1 << 15, "r": 8, "p": 1}
"""32 MB and about a tenth of a second for each try."""


class EncryptedFile:
    """Secrets in an encrypted file. Blocking; the passphrase itself is not kept, the key is."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._key: bytes | None = None
        self._head: dict[str, Any] | None = None
        self._turn = threading.Lock()

    def __repr__(self) -> str:
        return f"<EncryptedFile {self.path}>"

    @property
    def unlocked(self) -> bool:
        """Whether the key is known."""
        return self._key is not None

    def unlock(self, passphrase: str) -> None:
        """Make the key; for a file that is not there yet, the key of the file to come.

        Raises:
            KnownFault: `vault_locked`, the passphrase is wrong; `vault_unavailable`, the file is damaged.
        """
        with self._turn:
            content = self._content()
            head: dict[str, Any] = content["head"] if content else {**_COST, "salt": _text(os.urandom(16)), "format": 1}
            key = hashlib.scrypt(
                passphrase.encode("utf-8", "surrogatepass"), salt=base64.b64decode(head["salt"]), n=head["n"],
                r=head["r"], p=head["p"], maxmem=256 * 1024 * 1024, dklen=32,
            )  # fmt: skip
            if content:
                self._decrypt(content, key)
            self._key, self._head = key, head

    def read(self) -> dict[str, str]:
        """All secrets as they are now.

        Raises:
            KnownFault: `vault_locked` (not unlocked, or locked anew by another passphrase), `vault_unavailable`.
        """
        with self._turn:
            content = self._content()
            return self._decrypt(content, self._known_key()) if content else {}

    def change(self, edit: Callable[[dict[str, str]], object]) -> None:
        """Edit the secrets as they are now, one process at a time.

        Raises:
            KnownFault: as `read`; `disk_full`.
        """
        with atomic.locked(self.path.with_name(f".{FILE}.lock")), self._turn:
            key = self._known_key()
            content = self._content()
            secrets = self._decrypt(content, key) if content else {}
            edit(secrets)
            head = content["head"] if content else self._head
            try:
                atomic.write(self.path, self._encrypt(head, key, secrets))
            except OSError as error:
                raise atomic.fault_of(error, self.path) from error

    def _known_key(self) -> bytes:
        if self._key is None:
            raise self._fault("vault_locked", "no_passphrase", "is not unlocked")
        return self._key

    def _content(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self.path.read_bytes())
            head = found["head"]
            sizes = (head["n"], head["r"], head["p"])
            # The cost comes from the file; a hostile one must not take all memory.
            bounded = all(isinstance(s, int) for s in sizes) and 2 <= head["n"] <= 1 << 18
            if head["format"] != 1 or not (bounded and 1 <= head["r"] <= 8 and 1 <= head["p"] <= 4):
                raise ValueError("unknown format or cost")
            for part in (head["salt"], found["nonce"], found["data"]):
                base64.b64decode(part, validate=True)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise self._fault("vault_unavailable", "damaged", f"cannot be read: {error}") from error
        return dict(found)

    def _decrypt(self, content: dict[str, Any], key: bytes) -> dict[str, str]:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            plain = AESGCM(key).decrypt(
                base64.b64decode(content["nonce"]), base64.b64decode(content["data"]), _sealed(content["head"])
            )
        except (InvalidTag, ValueError):
            raise self._fault("vault_locked", "wrong_passphrase", "does not open with this passphrase") from None
        return {str(k): str(v) for k, v in json.loads(plain).items()}

    def _encrypt(self, head: Any, key: bytes, secrets: dict[str, str]) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(12)
        data = AESGCM(key).encrypt(nonce, json.dumps(secrets).encode(), _sealed(head))
        return json.dumps({"head": head, "nonce": _text(nonce), "data": _text(data)}, indent=1).encode()

    def _fault(self, code: str, reason: str, what: str) -> KnownFault:
        return KnownFault(code, f"{self.path} {what}", reason=reason, path=str(self.path), backend="encrypted_file")


def _sealed(head: Any) -> bytes:
    return json.dumps(head, sort_keys=True).encode()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
