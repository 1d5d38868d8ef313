"""The embedded models of this machine: listed, fetched, opened, unloaded."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from desktop_host.core.errors import KnownFault
from desktop_host.core.models import ModelEntry, ModelProgress
from desktop_host.providers.local_chat import LocalChatModel
from desktop_host.providers.local_runtime import LocalRuntime
from desktop_host.providers.weights import ModelCard, WeightStore, models_folder, read_cards
from desktop_host.providers.weights_fetch import WeightFetch


class LocalModels:
    """All embedded models. One process a model, shared by every chat of the profile.

    Args:
        folder: where weights are kept; None: `DESKTOP_HOST_MODELS` or the platform's data folder.
        environ: the environment of the child processes; None: this process's own.
    """

    def __init__(self, folder: Path | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self._store = WeightStore(folder or models_folder(self._environ), read_cards())
        self._runtimes: dict[str, LocalRuntime] = {}

    @property
    def folder(self) -> Path:
        """Where weights are kept; a person's own `.gguf` file put there becomes `local/<file name>`."""
        return self._store.folder

    async def open(self, name: str | None = None) -> LocalChatModel:
        """A model by name, alias or REF; None: the default. It is loaded when first asked.

        Raises:
            UserFault: `not_found`.
            KnownFault: `model_missing` with a `reason`: `no_weights`, `digest`, `no_runtime`.
        """
        card = await asyncio.to_thread(self._store.find, name)
        if not _has_runtime():
            raise KnownFault(
                "model_missing", "the runtime of local models (extra [local]) is not installed",
                reason="no_runtime", model=card.name,
            )  # fmt: skip
        path = await asyncio.to_thread(self._store.verify, card)
        runtime = self._runtimes.get(card.name)
        if runtime is None:
            runtime = self._runtimes[card.name] = LocalRuntime(path, card.context, environ=self._environ)
        return LocalChatModel(card, runtime)

    def entries(self) -> tuple[ModelEntry, ...]:
        """What there is to pick, whether or not its weights are here. Looks at the folder only."""
        runtime = _has_runtime()
        return tuple(self._entry(card, runtime) for card in self._store.cards())

    async def fetch(self, name: str | None, progress: Callable[[ModelProgress], None]) -> None:
        """Fetch the weights of a model by digest. Cancelling keeps finished parts for the next time.

        Raises:
            UserFault: `not_found`.
            KnownFault: `network`, `disk_full`, `model_missing` (with a `reason`).
        """
        card = await asyncio.to_thread(self._store.find, name)
        if not card.sha256:
            progress(ModelProgress(card.name, "done", card.bytes, card.bytes))
            return
        await WeightFetch(self._store, card, progress, environ=self._environ).run()

    async def remove(self, name: str | None) -> None:
        """Stop a model and delete its weights.

        Raises:
            UserFault: `not_found`, no such model.
        """
        card = await asyncio.to_thread(self._store.find, name)
        runtime = self._runtimes.pop(card.name, None)
        if runtime is not None:
            await runtime.stop()
        await asyncio.to_thread(self._store.remove, card)

    async def close(self) -> None:
        """Stop all processes."""
        runtimes, self._runtimes = list(self._runtimes.values()), {}
        await asyncio.gather(*(runtime.stop() for runtime in runtimes))

    def _entry(self, card: ModelCard, runtime: bool) -> ModelEntry:
        present = self._store.present(card)
        reason = "no_weights" if not present else None if runtime else "no_runtime"
        return ModelEntry(
            ref=card.ref, title=card.title, source="local", ready=reason is None, reason=reason,
            context_window=card.context, size_bytes=card.bytes, note=card.note, licence=card.licence,
        )  # fmt: skip


def _has_runtime() -> bool:
    return importlib.util.find_spec("xllamacpp") is not None
