"""Which embedded models there are, and whether their weights lie whole in the shared models folder."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.places import shipped

CHUNK = 1 << 20
FOLDER_VARIABLE = "DESKTOP_HOST_MODELS"


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One model: what its weights are and how much it can be trusted with."""

    name: str
    title: str
    file: str
    """File name in the models folder."""
    bytes: int
    sha256: str
    """Digest of the whole file; empty for a person's own file, which is taken as it is."""
    licence: str = ""
    context: int = 8192
    """Tokens of context that the runtime is started with."""
    tool_cap: int = 8
    """Most tools offered in one request."""
    calls_per_turn: int = 3
    """Tool calls after which a turn must be answered."""
    result_tokens: int = 400
    """How much of one tool result the model reads."""
    invents: bool = False
    """Whether it makes things up where it is free to: then a question must be looked up where a search tool is
    offered, and optional arguments are kept to those that the person spoke of."""
    note: str = "model.note.own"
    """Locale key of an honest sentence about its limits."""
    url: str = ""
    parts: tuple[str, ...] = ()
    """Data wheels as pinned requirements, in the order of the file."""
    aliases: tuple[str, ...] = ()
    default: bool = False

    @property
    def ref(self) -> str:
        """The REF of the command line."""
        return "local" if self.default else f"local/{self.name}"


def read_cards(path: Path | None = None) -> tuple[ModelCard, ...]:
    """The pinned models of `resources/models.toml`, the default one first in the file.

    Raises:
        UserFault: `bad_config`, the file is not what it should be.
    """
    source = path or shipped("resources", "models.toml")
    try:
        with source.open("rb") as file:
            rows = tomllib.load(file)["model"]
        return tuple(_card(row) for row in rows)
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise UserFault("bad_config", f"{source}: {error}", file=str(source), reason=str(error)) from error


def _card(row: dict[str, Any]) -> ModelCard:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    return ModelCard(**values)


def models_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where weights are kept: shared by all homes and profiles (decision 22)."""
    env = os.environ if environ is None else environ
    if env.get(FOLDER_VARIABLE):
        return Path(env[FOLDER_VARIABLE]).expanduser()
    from platformdirs import user_data_dir

    return Path(user_data_dir("desktop-host", appauthor=False)) / "models"


class WeightStore:
    """The models folder. Every method reads or writes the disk: call them off the event loop."""

    def __init__(self, folder: Path, cards: tuple[ModelCard, ...]) -> None:
        self.folder = folder
        self._pinned = cards

    def cards(self) -> tuple[ModelCard, ...]:
        """The pinned models, then the person's own `.gguf` files that lie in the folder."""
        known = {card.file for card in self._pinned}
        try:
            own = sorted(p for p in self.folder.glob("*.gguf") if p.is_file() and p.name not in known)
        except OSError:
            own = []
        return self._pinned + tuple(
            ModelCard(name=p.stem, title=p.stem, file=p.name, bytes=p.stat().st_size, sha256="") for p in own
        )

    def find(self, name: str | None) -> ModelCard:
        """A model by name, alias, REF or (None, "" and `local`) the default.

        Raises:
            UserFault: `not_found`.
        """
        wanted = (name or "").removeprefix("local/").strip()
        for card in self.cards():
            if wanted in (card.name, *card.aliases) or (card.default and wanted in ("", "local", "default")):
                return card
        names = ", ".join(card.name for card in self.cards())
        raise UserFault(
            "not_found", f"there is no local model {wanted!r}; there are {names}", kind="model", name=wanted
        )  # fmt: skip

    def path(self, card: ModelCard) -> Path:
        """Where the weights of a model belong."""
        return self.folder / card.file

    def partial(self, card: ModelCard) -> Path:
        """Where weights grow until they are whole."""
        return self.folder / f".{card.file}.partial"

    def progress_note(self, card: ModelCard) -> Path:
        """Where a fetch keeps how far it got, so that the next one goes on from there."""
        return self.folder / f".{card.file}.partial.json"

    def _stamp(self, card: ModelCard) -> Path:
        return self.folder / f".{card.file}.verified"

    def present(self, card: ModelCard) -> bool:
        """Whether a file of the right name and size lies there; the digest is `verify`'s business."""
        try:
            return self.path(card).stat().st_size == card.bytes
        except OSError:
            return False

    def verify(
        self, card: ModelCard, progress: Callable[[int], None] | None = None, stop: threading.Event | None = None
    ) -> Path:
        """The path of weights whose digest is right. A file is hashed once, then known by size and time.

        Raises:
            KnownFault: `model_missing` with `reason` `no_weights` or `digest`.
        """
        path = self.path(card)
        if not self.present(card):
            raise KnownFault(
                "model_missing", f"the weights of {card.title} are not here yet",
                reason="no_weights", model=card.name, bytes=card.bytes,
            )  # fmt: skip
        if not card.sha256:
            return path
        mark = self._mark(card, path)
        try:
            if self._stamp(card).read_text("utf-8") == mark:
                return path
        except (OSError, UnicodeDecodeError):
            pass  # no stamp to trust: hash the file
        if digest(path, progress, stop) != card.sha256:
            raise KnownFault(
                "model_missing", f"{path} is not the published {card.title}: its digest differs",
                reason="digest", model=card.name, path=str(path),
            )  # fmt: skip
        self._write_stamp(card, mark)
        return path

    def adopt(self, card: ModelCard) -> Path:
        """Move verified weights from `partial` to their place."""
        path = self.path(card)
        os.replace(self.partial(card), path)
        self.progress_note(card).unlink(missing_ok=True)
        self._write_stamp(card, self._mark(card, path))
        return path

    def remove(self, card: ModelCard) -> bool:
        """Delete the weights and what a broken fetch left. Whether there was anything."""
        found = False
        for path in (self.path(card), self._stamp(card), self.partial(card), self.progress_note(card)):
            try:
                path.unlink()
                found = True
            except FileNotFoundError:
                continue
        return found

    @staticmethod
    def _mark(card: ModelCard, path: Path) -> str:
        seen = path.stat()
        return f"{card.sha256} {seen.st_size} {seen.st_mtime_ns}\n"

    def _write_stamp(self, card: ModelCard, mark: str) -> None:
        stamp = self._stamp(card)
        fresh = stamp.with_name(f"{stamp.name}.{os.getpid()}")
        try:
            fresh.write_text(mark, "utf-8")
            os.replace(fresh, stamp)
        except OSError:
            fresh.unlink(missing_ok=True)  # a read-only folder: the next start hashes again


class Stopped(Exception):
    """The person stopped what a worker thread was doing."""


def digest(path: Path, progress: Callable[[int], None] | None = None, stop: threading.Event | None = None) -> str:
    """The sha256 of a file (hex). `progress` is told how many bytes were read.

    Raises:
        Stopped: `stop` was set.
    """
    summed, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK * 4):
            if stop is not None and stop.is_set():
                raise Stopped
            summed.update(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done)
    return summed.hexdigest()


if sys.platform == "win32":
    import msvcrt

    def try_lock(file: IO[bytes]) -> bool:
        """Take the exclusive lock of an open file; False while another holds it. Closing the file gives it back."""
        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(file: IO[bytes]) -> bool:
        """Take the exclusive lock of an open file; False while another holds it. Closing the file gives it back."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
