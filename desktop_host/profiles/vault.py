"""A profile's secrets: the system's keyring, or, named and with a passphrase, an encrypted file; never plaintext.

Opening touches nothing and imports nothing; the store is chosen and proved when the first secret is kept.
Each name remembers where its secret lies, so a session without a keyring never hides what another one kept.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from desktop_host.core.errors import HostError, KnownFault, UserFault
from desktop_host.core.values import FrozenDict
from desktop_host.profiles.encrypted_file import EncryptedFile
from desktop_host.profiles.keychain import LIMIT_S, Keychain
from desktop_host.profiles.secret_names import SecretNames, Whereabouts, check_name, fresh

PASSPHRASE_FILE = "DESKTOP_HOST_PASSPHRASE_FILE"
"""Environment variable: a file whose first line is the passphrase of the encrypted file."""

_log = logging.getLogger(__name__)

Passphrase = Callable[[], Awaitable[str | None]]


async def open_vault(
    profile_uuid: str,
    folder: Path,
    *,
    passphrase: Passphrase | None = None,
    environ: Mapping[str, str] | None = None,
    seen: Callable[[str], None] | None = None,
    limit_s: float = LIMIT_S,
) -> Vault:
    """The vault of a profile; no store is touched yet.

    Args:
        profile_uuid: names the keyring's service, `desktop-host/<uuid>`.
        folder: the profile's folder; holds the names, and the encrypted file where that is used.
        passphrase: asks the person for the encrypted file's passphrase; None means that they declined.
        environ: where `DESKTOP_HOST_PASSPHRASE_FILE` is looked up; None: the process's environment.
        seen: told every value that passes through, so that logs can leave it out.
        limit_s: seconds one access of the keyring may take.
    """
    keychain = Keychain(service(profile_uuid), limit_s=limit_s)
    return Vault(keychain, folder, passphrase, os.environ if environ is None else environ, seen)


def service(profile_uuid: str) -> str:
    """The keyring's service name of a profile."""
    return f"desktop-host/{profile_uuid}"


class Vault:
    """`SecretStore` of a profile."""

    def __init__(
        self,
        keychain: Keychain,
        folder: Path,
        passphrase: Passphrase | None,
        environ: Mapping[str, str],
        seen: Callable[[str], None] | None,
    ) -> None:
        self._keychain = keychain
        self._file = EncryptedFile(folder)
        self._index = SecretNames(folder)
        self._passphrase = passphrase
        self._environ = environ
        self._seen = seen or (lambda _value: None)
        self._remembered: dict[str, tuple[str, str]] = {}
        self._store = ""
        self._choosing = asyncio.Lock()
        self._unlocking = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Vault in {self._store or 'no store yet'}>"

    def describe(self) -> FrozenDict:
        """`{store, detail}`: `keyring`, `encrypted_file`, or empty while none was needed."""
        detail = {"keyring": self._keychain.backend_name, "encrypted_file": str(self._file.path)}
        return FrozenDict({"store": self._store, "detail": detail.get(self._store, "")})

    async def names(self) -> tuple[str, ...]:
        """All names, sorted; asks no store."""
        return tuple(sorted(await asyncio.to_thread(self._index.read)))

    async def get(self, name: str) -> str | None:
        """A secret, or None where there is none; remembered until it changes.

        Raises:
            KnownFault: `vault_unavailable` or `vault_locked`, with `reason`.
        """
        at = (await asyncio.to_thread(self._index.read)).get(name)
        if at is None:
            self._remembered.pop(name, None)
            return None
        change, value = self._remembered.get(name, ("", ""))
        if change == at.change:
            return value
        found = await self._fetch(name, at)
        if found is not None:
            self._remembered[name] = (at.change, found)
            self._seen(found)
        return found

    async def put(self, name: str, value: str) -> None:
        """Keep a secret.

        Raises:
            UserFault: `usage`, a name or value that no store takes.
            KnownFault: `vault_unavailable`, `vault_locked`, `disk_full`.
        """
        check_name(name)
        if not value or "\0" in value:
            raise UserFault("usage", f"there is no value for the secret {name}", name=name, reason="bad_secret")
        self._seen(value)
        store = await self._choose()
        before = (await asyncio.to_thread(self._index.read)).get(name)
        parts = 1
        if store == "keyring":
            parts = await self._keychain.put(name, value)
        else:
            await asyncio.to_thread(self._file.change, lambda secrets: secrets.update({name: value}))
        at = Whereabouts(store, fresh(), parts)
        await asyncio.to_thread(self._index.change, lambda names: names.update({name: at}))
        self._remembered[name] = (at.change, value)
        if before and (before.store != store or before.parts > parts):
            await self._forget_old(name, before, parts if before.store == store else 0)

    async def delete(self, name: str) -> bool:
        """Forget a secret.

        Raises:
            KnownFault: `vault_unavailable` or `vault_locked`; then the name stays.
        """
        at = (await asyncio.to_thread(self._index.read)).get(name)
        if at is None:
            return False
        await self._remove(name, at)
        await asyncio.to_thread(self._index.change, lambda names: names.pop(name, None))
        self._remembered.pop(name, None)
        return True

    async def probe(self) -> FrozenDict:
        """`{store, ok, detail, remedy}` after a write, a read and a delete; `remedy` is a key of the locale.

        Asks nobody: a look at the vault is no reason to ask for a passphrase.
        """
        try:
            store = await self._choose(anew=True, quiet=True)
            if store == "encrypted_file":
                await asyncio.to_thread(self._prove_file)
        except HostError as error:
            reason = error.params.get("reason")
            remedy = f"remedy.{error.code}.{reason}" if reason else f"remedy.{error.code}"
            return FrozenDict({"store": "none", "ok": False, "detail": error.message, "remedy": remedy})
        return FrozenDict({"store": store, "ok": True, "detail": self.describe()["detail"], "remedy": ""})

    async def close(self) -> None:
        """Drop what is remembered."""
        self._remembered.clear()

    async def _fetch(self, name: str, at: Whereabouts) -> str | None:
        if at.store == "keyring":
            return await self._keychain.get(name, at.parts)
        await self._unlock_file()
        return (await asyncio.to_thread(self._file.read)).get(name)

    async def _remove(self, name: str, at: Whereabouts) -> None:
        if at.store == "keyring":
            await self._keychain.delete(name, at.parts)
        else:
            await self._unlock_file()
            await asyncio.to_thread(self._file.change, lambda secrets: secrets.pop(name, None))

    async def _choose(self, *, anew: bool = False, quiet: bool = False) -> str:
        """The store for new secrets: the keyring if it works, else the file if there is a passphrase."""
        async with self._choosing:
            if self._store and not anew:
                return self._store
            self._store = ""
            try:
                await self._keychain.check()
            except KnownFault as error:
                # A locked keyring is to be unlocked, not gone around; a passphrase file says that this is meant.
                if error.code == "vault_locked" and not self._environ.get(PASSPHRASE_FILE):
                    raise
                await self._unlock_file(instead_of=error, quiet=quiet)
                self._store = "encrypted_file"
            else:
                self._store = "keyring"
            return self._store

    async def _unlock_file(self, instead_of: KnownFault | None = None, *, quiet: bool = False) -> None:
        async with self._unlocking:
            if self._file.unlocked:
                return
            words = await self._ask(quiet)
            if not words:
                raise instead_of or KnownFault(
                    "vault_locked", f"{self._file.path} needs its passphrase", reason="no_passphrase",
                    path=str(self._file.path), backend="encrypted_file",
                )  # fmt: skip
            await asyncio.to_thread(self._file.unlock, words)

    async def _ask(self, quiet: bool) -> str | None:
        path = self._environ.get(PASSPHRASE_FILE)
        if not path:
            return await self._passphrase() if self._passphrase and not quiet else None
        try:
            text = await asyncio.to_thread(Path(path).read_text, "utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise KnownFault(
                "vault_locked", f"{PASSPHRASE_FILE}={path} cannot be read: {type(error).__name__}",
                reason="passphrase_file", path=path, backend="encrypted_file",
            ) from None  # fmt: skip
        return text.partition("\n")[0].rstrip("\r")

    def _prove_file(self) -> None:
        name, value = f"probe-{fresh()}", fresh()
        self._file.change(lambda secrets: secrets.update({name: value}))
        back = self._file.read().get(name)
        self._file.change(lambda secrets: secrets.pop(name, None))
        if back != value:
            raise KnownFault("vault_unavailable", f"{self._file.path} does not keep secrets", reason="does_not_keep")

    async def _forget_old(self, name: str, before: Whereabouts, keep: int) -> None:
        """Remove what another store, or a longer value, left; what cannot be reached now stays there, unused."""
        try:
            if before.store == "keyring":
                await self._keychain.delete(name, before.parts, keep)
            elif self._file.unlocked:
                await self._remove(name, before)
        except KnownFault as error:
            _log.warning("an older value of the secret %s could not be removed: %s", name, error)


def forget_profile(profile_uuid: str, folder: Path, *, limit_s: float = LIMIT_S) -> tuple[str, ...]:
    """Remove the secrets of a profile from the keyring; blocking. Its encrypted file goes with its folder.

    Returns:
        The names that the keyring would not give up.
    """
    keychain = Keychain(service(profile_uuid), limit_s=limit_s)
    left = []
    for name, at in SecretNames(folder).read().items():
        if at.store == "keyring":
            try:
                keychain.delete_now(name, at.parts)
            except KnownFault:
                left.append(name)
    return tuple(left)
