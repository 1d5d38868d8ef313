"""The system's keyring, on a thread of its own and with a time limit: a locked or stopped one blocks for ever.

`keyring` is imported on that thread, on first use (a quarter of a second).
"""

from __future__ import annotations

import asyncio
import queue
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from desktop_host.core.errors import KnownFault

T = TypeVar("T")
LIMIT_S = 10.0
"""How long one access may take, with a person answering the keyring's own prompt."""
STUCK_S = 1.0
"""How long further accesses wait behind one that is over its limit."""
WINDOWS_CHARS = 1200
"""Windows keeps 2560 bytes a credential, that is 1280 UTF-16 units; longer secrets are kept in parts."""

_PLAINTEXT = ("keyrings.alt", "keyrings.cryptfile")
"""Packages whose backends keep secrets in files that any program can read, or ask on a terminal."""


class Keychain:
    """The keyring under one service name.

    Args:
        service: `desktop-host/<profile uuid>`.
        limit_s: seconds one access may take.
        part_chars: longest piece the backend takes; None: as the backend is known to.
    """

    def __init__(self, service: str, *, limit_s: float = LIMIT_S, part_chars: int | None = None) -> None:
        self.service = service
        self.limit_s = limit_s
        self._part_chars = part_chars
        self._backend: Any = None
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._late: Future[Any] | None = None

    def __repr__(self) -> str:
        return f"<Keychain {self.service}>"

    @property
    def backend_name(self) -> str:
        """The backend in use; empty before the first access."""
        kind = type(self._backend)
        return "" if self._backend is None else f"{kind.__module__}.{kind.__qualname__}"

    async def check(self) -> None:
        """Prove the keyring by writing, reading and deleting.

        Raises:
            KnownFault: `vault_unavailable` or `vault_locked` with `reason` and `backend`.
        """
        await self._run(self._check)

    async def get(self, name: str, parts: int = 1) -> str | None:
        """A secret, or None.

        Raises:
            KnownFault: as `check`.
        """
        return await self._run(lambda: self._get(name, parts))

    async def put(self, name: str, value: str) -> int:
        """Keep a secret; returns in how many parts.

        Raises:
            KnownFault: as `check`.
        """
        return await self._run(lambda: self._put(name, value))

    async def delete(self, name: str, parts: int = 1, first: int = 0) -> bool:
        """Forget a secret, or its parts from `first` on; whether there was one.

        Raises:
            KnownFault: as `check`.
        """
        return await self._run(lambda: self._delete(name, parts, first))

    def delete_now(self, name: str, parts: int = 1) -> bool:
        """`delete` for callers that may block."""
        future = self._submit(lambda: self._delete(name, parts))
        try:
            return future.result(self._patience())
        except TimeoutError:
            raise self._too_late(future) from None

    # ---- the thread
    def _submit(self, work: Callable[[], T]) -> Future[T]:
        if self._thread is None:
            # A daemon, since a program must be able to end while its keyring does not answer.
            self._thread = threading.Thread(target=self._serve, name="desktop-host-keyring", daemon=True)
            self._thread.start()
        future: Future[T] = Future()
        self._jobs.put((work, future))
        return future

    def _serve(self) -> None:
        while True:
            work, future = self._jobs.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            del work, future

    def _patience(self) -> float:
        return STUCK_S if self._late is not None and not self._late.done() else self.limit_s

    async def _run(self, work: Callable[[], T]) -> T:
        patience = self._patience()
        future = self._submit(work)
        try:
            async with asyncio.timeout(patience):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise self._too_late(future) from None

    def _too_late(self, future: Future[Any]) -> KnownFault:
        if not future.cancel() and not future.done():
            self._late = future
        return self._fault("vault_locked", "timeout", f"the keyring did not answer within {self.limit_s:g} s")

    def _fault(self, code: str, reason: str, message: str) -> KnownFault:
        return KnownFault(code, message, reason=reason, backend=self.backend_name)

    # ---- on the thread
    def _check(self) -> None:
        name, value = f"probe-{secrets.token_hex(8)}", secrets.token_hex(16)
        self._put(name, value)
        back = self._get(name)
        self._delete(name)
        if back != value:
            raise self._fault("vault_unavailable", "does_not_keep", "the keyring does not give back what it was given")

    def _get(self, name: str, parts: int = 1) -> str | None:
        pieces = [self._do("get_password", _part(name, n)) for n in range(parts)]
        return None if any(p is None for p in pieces) else "".join(pieces)

    def _put(self, name: str, value: str) -> int:
        backend = self._choose()
        size = self._part_chars
        if size is None and type(backend).__module__.startswith("keyring.backends.Windows"):
            size = WINDOWS_CHARS  # pragma: no cover - Windows, not run
        size = size or len(value) or 1
        pieces = [value[at : at + size] for at in range(0, len(value), size)] or [""]
        for n, piece in enumerate(pieces):
            self._do("set_password", _part(name, n), piece)
        return len(pieces)

    def _delete(self, name: str, parts: int = 1, first: int = 0) -> bool:
        there = False
        for n in range(first, parts):
            if self._do("get_password", _part(name, n)) is not None:
                self._do("delete_password", _part(name, n))
                there = True
        return there

    def _do(self, method: str, *words: str) -> Any:
        backend = self._choose()
        import keyring.errors as known

        try:
            return getattr(backend, method)(self.service, *words)
        except known.NoKeyringError:
            raise self._fault("vault_unavailable", "no_keyring", "this system has no keyring") from None
        except known.KeyringLocked as error:
            raise self._fault("vault_locked", "locked", f"the keyring is locked: {error}") from None
        except known.InitError as error:
            raise self._fault("vault_unavailable", "no_keyring", f"the keyring cannot be opened: {error}") from None
        except Exception as error:
            # Backends let anything through (D-Bus replies, size limits, closed sockets). The text stays out:
            # nobody knows what it holds.
            message = f"the keyring failed: {type(error).__module__}.{type(error).__qualname__}"
            raise self._fault("vault_unavailable", "failed", message) from None

    def _choose(self) -> Any:
        if self._backend is not None:
            return self._backend
        import keyring

        try:
            found = keyring.get_keyring()
        except Exception as error:
            # A broken keyringrc.cfg or PYTHON_KEYRING_BACKEND raises whatever its import does.
            message = f"the keyring cannot be chosen: {type(error).__qualname__}: {error}"
            raise self._fault("vault_unavailable", "failed", message) from error
        candidates = list(getattr(found, "backends", ())) if _kind(found) == "chainer" else [found]
        kinds = [_kind(backend) for backend in candidates]
        if "sound" in kinds:
            self._backend = candidates[kinds.index("sound")]
            return self._backend
        unsafe = [kind for kind in kinds if kind != "fail"]
        if not unsafe:
            raise self._fault("vault_unavailable", "no_keyring", "this system has no keyring")
        name = f"{type(found).__module__}.{type(found).__qualname__}"
        raise KnownFault(
            "vault_unavailable", f"the keyring backend {name} keeps no secrets safely", reason=unsafe[0], backend=name
        )


def _part(name: str, number: int) -> str:
    return name if number == 0 else f"{name}#part{number}"


def _kind(backend: Any) -> str:
    """`sound`, `chainer`, `fail` (none there), `null` (forgets all) or `plaintext`."""
    for cls in type(backend).__mro__:
        home = cls.__module__
        if home.startswith(_PLAINTEXT) or "plaintext" in cls.__name__.lower():
            return "plaintext"
        for kind in ("chainer", "fail", "null"):
            if home == f"keyring.backends.{kind}":
                return kind
    return "sound"
