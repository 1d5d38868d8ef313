"""What the host keeps of signing in to one server, shared by all connections to it. Imports no SDK."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO

from desktop_host.core.admin import SecretStore
from desktop_host.core.auth import NoAuth, SignInDefaults, SignInState
from desktop_host.core.errors import HostError
from desktop_host.core.servers import Launch, Stdio
from desktop_host.servers import private
from desktop_host.servers.records import Redactor

POLL_S = 0.1
"""How often another process's turn is looked at."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept in the vault of one server; tokens and secrets among it. Never log it."""

    url: str = ""
    """The server it belongs to: a record of another address is not used."""
    client: dict[str, Any] | None = None
    """Client information as registered."""
    tokens: dict[str, Any] | None = None
    expires_at: float | None = None
    """Of the access token, seconds since the epoch."""
    metadata: dict[str, Any] | None = None
    """Of the authorization server: without it a refresh after a restart would go to the wrong address."""
    resource: dict[str, Any] | None = None
    """Protected resource metadata."""
    issuer: str = ""
    """The authorization server that our own credentials were last used with."""
    port: int = 0
    """Where the browser comes back to: another one would need another registration."""

    def __repr__(self) -> str:
        return f"<Record of {self.url or 'nothing'}>"

    def secrets(self) -> Iterator[str]:
        """All values that no log may show."""
        for held, names in (
            (self.tokens, ("access_token", "refresh_token", "id_token")),
            (self.client, ("client_secret", "registration_access_token")),
        ):
            for name in names:
                if isinstance(value := (held or {}).get(name), str):
                    yield value


class SignIn:
    """The record of one server, the state a person sees, and the turns in which it is changed.

    Args:
        name: the server's alias; the record is the vault's secret `oauth/<name>`.
        told: called when `state` is another now.
        folder: where the lock lies that other processes of this profile respect.
    """

    def __init__(
        self,
        name: str,
        vault: SecretStore,
        redact: Redactor,
        told: Callable[[], None],
        folder: Path,
        defaults: Callable[[], SignInDefaults],
    ) -> None:
        self.name, self.defaults = name, defaults
        self.state = SignInState.NONE
        self.cancelled = asyncio.Event()
        self._vault, self._redact, self._told = vault, redact, told
        self._lock, self._file = asyncio.Lock(), folder / f"sign-in-{name}.lock"
        self._guests = 0

    @property
    def key(self) -> str:
        """The name of the record in the vault."""
        return f"oauth/{self.name}"

    @property
    def welcome(self) -> bool:
        """Whether a person has just asked for this server, and so may be asked to sign in."""
        return self._guests > 0

    @contextlib.contextmanager
    def invited(self) -> Iterator[None]:
        """While open, the person may be asked."""
        self._guests += 1
        self.cancelled.clear()
        try:
            yield
        finally:
            self._guests -= 1

    def become(self, state: SignInState) -> None:
        """Change the state."""
        if state is not self.state:
            self.state = state
            self._told()

    async def load(self, url: str) -> Record:
        """What is known of this server at this address; an empty record where there is nothing.

        Raises:
            KnownFault: `vault_locked` or `vault_unavailable`.
        """
        text = await self._vault.get(self.key)
        record = _read(text)
        if record.url != url:
            record = Record(url, port=record.port)
        self._redact.learn(record.secrets())
        if record.tokens:
            self.become(SignInState.SIGNED_IN)
        return record

    async def save(self, record: Record) -> None:
        """Keep it.

        Raises:
            KnownFault: `vault_locked` or `vault_unavailable`.
        """
        self._redact.learn(record.secrets())
        await self._vault.put(self.key, json.dumps(asdict(record), separators=(",", ":")))

    async def forget(self, record: Record) -> None:
        """Delete all but the port."""
        if record.port:
            await self.save(Record(record.url, port=record.port))
        else:
            await self._vault.delete(self.key)
        self.become(SignInState.NONE)

    async def erase(self) -> None:
        """Delete the record: the server was removed. A vault that does not open keeps what it has."""
        with contextlib.suppress(HostError):
            await self._vault.delete(self.key)

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One at a time, over all connections and processes: a refresh token that rotates is used once."""
        async with self._lock:
            file = await asyncio.to_thread(_opened, self._file)
            try:
                while not _locked(file):  # noqa: ASYNC110  (another process cannot set an event of ours)
                    await asyncio.sleep(POLL_S)
                yield
            finally:
                file.close()


def wants_sign_in(launch: Launch) -> bool:
    """Whether the host may sign in to a server. A configured Authorization header is the person's own way."""
    if isinstance(launch, Stdio) or isinstance(launch.auth, NoAuth):
        return False
    return not any(str(name).lower() == "authorization" for name in launch.headers)


def _read(text: str | None) -> Record:
    try:
        raw = json.loads(text or "{}")
        known = {f.name for f in fields(Record)}
        record = replace(Record(), **{k: v for k, v in raw.items() if k in known})
    except (ValueError, AttributeError):
        return Record()  # Not ours, or of a later version: signing in again makes it anew.
    shaped = all(v is None or isinstance(v, dict) for v in (record.client, record.tokens, record.metadata))
    return record if shaped and isinstance(record.url, str) and isinstance(record.port, int) else Record()


def _opened(path: Path) -> BinaryIO:
    private.folder(path.parent)
    return open(path, "a+b", opener=private.opener)


def _locked(file: BinaryIO) -> bool:
    """Try to lock; the lock ends with the file."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
