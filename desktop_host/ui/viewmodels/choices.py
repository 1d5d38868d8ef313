"""What a chat runs with: its model and its servers, and what there is to choose from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_host.core.events import ServerChanged, Stamped
from desktop_host.core.models import ModelEntry
from desktop_host.core.sessions import SessionOptions
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """A server as this chat may use it."""

    alias: str
    title: str
    state: str
    tools: int
    tokens: int
    """Estimate of what its tools cost in each request."""
    on: bool


class Choices(QObject):
    """The options of the open chat, and the models and servers of the profile."""

    options_changed = Signal()
    models_changed = Signal()
    servers_changed = Signal()
    picked = Signal(object)
    """`SessionOptions`: the person chose; the session is to be told."""
    failed = Signal(object)

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self.options = SessionOptions()
        self.models: tuple[ModelEntry, ...] = ()
        self.models_known = False
        self.servers: tuple[ServerChoice, ...] = ()
        self.default_model = ""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(250)
        self._timer.timeout.connect(self.refresh_servers)
        bridge.batch.connect(self._take)

    def begin(self, options: SessionOptions) -> None:
        """Another chat is open, with these options."""
        self.options = options
        self.options_changed.emit()
        self.refresh_models()
        self.refresh_servers()

    def _take(self, events: tuple[Stamped, ...]) -> None:
        if any(isinstance(s.event, ServerChanged) for s in events):
            self._timer.start()

    @property
    def model(self) -> str:
        """REF of the model that answers next."""
        return self.options.model or self.default_model

    @property
    def model_entry(self) -> ModelEntry | None:
        """What is known of that model."""
        return next((m for m in self.models if m.ref == self.model), None)

    @property
    def can_answer(self) -> bool:
        """Whether a message would find a model; hopeful while that is not known."""
        if not self.models_known:
            return True
        entry = self.model_entry
        return entry.ready if entry is not None else bool(self.model)

    def refresh_models(self) -> None:
        """Ask which models there are."""

        async def read(host: Host) -> tuple[tuple[ModelEntry, ...], str]:
            return await host.models.entries(), host.settings.current().model.default

        def done(found: tuple[tuple[ModelEntry, ...], str]) -> None:
            self.models, self.default_model = found
            self.models_known = True
            self.models_changed.emit()

        self._bridge.then(read, done, self.failed.emit, self)

    def refresh_servers(self) -> None:
        """Ask which servers this chat may use and what their tools cost."""
        wanted = self.options.servers

        async def read(host: Host) -> tuple[ServerChoice, ...]:
            titles = {c.name: c.title or c.name for c in host.servers.configs()}
            found = []
            for status in host.servers.statuses():
                if not status.enabled:
                    continue
                tools = [t for t in host.servers.tools(status.name) if t.enabled] if status.tools else []
                on = wanted is None or status.name in wanted
                found.append(ServerChoice(
                    status.name, titles.get(status.name, status.name), status.state.value, len(tools),
                    sum(t.tokens for t in tools), on,
                ))  # fmt: skip
            return tuple(found)

        def done(found: tuple[ServerChoice, ...]) -> None:
            self.servers = found
            self.servers_changed.emit()

        self._bridge.then(read, done, self.failed.emit, self)

    def pick_model(self, ref: str) -> None:
        """Let another model answer from the next turn on."""
        self._set_options(replace(self.options, model=ref))

    def pick_servers(self, aliases: tuple[str, ...]) -> None:
        """Let this chat use these servers only."""
        every = {s.alias for s in self.servers}
        self._set_options(replace(self.options, servers=None if set(aliases) == every else aliases))
        self.refresh_servers()

    def pick_roots(self, folders: tuple[str, ...]) -> None:
        """Let this chat's servers know of these folders; none: of those of the profile. They are told at once."""
        self._set_options(replace(self.options, roots=folders))

    def _set_options(self, options: SessionOptions) -> None:
        self.options = options
        self.options_changed.emit()
        self.picked.emit(options)
