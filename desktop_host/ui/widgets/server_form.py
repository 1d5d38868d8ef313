"""A server's settings: launch, protocol, scope, trust and time limits."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtWidgets import QComboBox, QLineEdit, QWidget

from desktop_host.core.asks import DAILY_USD
from desktop_host.core.errors import HostError
from desktop_host.core.servers import (
    LOG_LEVELS,
    Launch,
    Protocol,
    SamplingPolicy,
    ServerConfig,
    ServerScope,
    Stdio,
    Timeouts,
)
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_role
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.servers import LIVE, Servers
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import Field, Lines, MoneyBox, NumberBox, Pairs, SecondsBox
from desktop_host.ui.widgets.page import Empty, Page, told
from desktop_host.ui.widgets.pieces import Card, button, clear, column, label, row
from desktop_host.ui.widgets.switch import Switch


def choice(values: list[tuple[str, str]], now: str) -> QComboBox:
    """A box of `(value, text)`."""
    box = QComboBox()
    for value, text in values:
        box.addItem(text, value)
    box.setCurrentIndex(max(0, box.findData(now)))
    return box


class SamplingFields(QWidget):
    """Whether a server may ask the host's model, and within which limits."""

    def __init__(self, policy: SamplingPolicy) -> None:
        super().__init__()
        self._policy = policy
        modes = [(mode, tr(f"server.sampling.{mode}")) for mode in ("off", "ask", "allow")]
        self.mode = choice(modes, policy.mode)
        self.max_tokens = NumberBox(1, 1_000_000, step=256)
        self.daily_tokens = NumberBox(0, 100_000_000, step=1000)
        self.daily_usd = MoneyBox(policy.daily_usd)
        self.per_minute = NumberBox(1, 1000)
        for box, now in (
            (self.max_tokens, policy.max_tokens),
            (self.daily_tokens, policy.daily_tokens),
            (self.per_minute, policy.per_minute),
        ):
            box.setValue(now)
        inner = column(self, space=Space.S)
        inner.addWidget(Field(tr("server.sampling"), self.mode, tr("server.sampling.help")))
        limits: tuple[tuple[str, QWidget], ...] = (
            ("max_tokens", self.max_tokens), ("daily_tokens", self.daily_tokens),
            ("daily_usd", self.daily_usd), ("per_minute", self.per_minute),
        )  # fmt: skip
        self._limits = QWidget()
        self._limits.setLayout(Flow(*(Field(tr(f"server.sampling.{n}"), box) for n, box in limits), space=Space.M))
        inner.addWidget(self._limits)
        self.mode.currentIndexChanged.connect(lambda _at: self._show())
        self._show()

    def value(self) -> SamplingPolicy:
        """The policy as filled in."""
        return SamplingPolicy(
            mode=str(self.mode.currentData()), max_tokens=self.max_tokens.value(),
            daily_tokens=self.daily_tokens.value(), daily_usd=self.daily_usd.value(),
            per_minute=self.per_minute.value(),
        )  # fmt: skip

    def _show(self) -> None:
        mode = self.mode.currentData()
        self._limits.setHidden(mode == "off")
        alone = mode == "allow"  # Nobody is asked: then there is a limit in money, always.
        self.daily_usd.setMinimum(0.01 if alone else 0.0)
        self.daily_usd.setSpecialValueText("" if alone else tr("sampling.no_limit"))
        if alone and not self._policy.daily_usd and self.daily_usd.value() < 0.02:
            self.daily_usd.setValue(DAILY_USD)


class ServerForm(QWidget):
    """The fields of one configuration."""

    def __init__(self, config: ServerConfig) -> None:
        super().__init__()
        self._config = config
        inner = column(self, space=Space.L)
        launch = config.launch
        if isinstance(launch, Stdio):
            self.command = Field(tr("server.command"), QLineEdit(launch.command))
            self.args = Field(tr("server.args"), Lines(launch.args), tr("server.args.help"))
            self.pairs = Field(tr("server.env"), Pairs(launch.env), tr("server.env.help"))
            self.cwd = Field(tr("server.cwd"), QLineEdit(launch.cwd or ""), tr("server.cwd.help"))
            parts: tuple[QWidget, ...] = (self.command, self.args, self.pairs, self.cwd)
        else:
            self.url = Field(tr("server.url"), QLineEdit(launch.url))
            self.pairs = Field(tr("server.headers"), Pairs(launch.headers, sign=":"), tr("server.headers.help"))
            parts = (self.url, self.pairs)
        protocols = [(p.value, tr(f"server.protocol.{p.name.lower()}")) for p in Protocol]
        scopes = [
            (s.value, tr(f"server.scope.{s.value}"))
            for s in ServerScope
            if s is not ServerScope.CALL or not isinstance(launch, Stdio)
        ]
        self.protocol = choice(protocols, config.protocol.value)
        self.scope = choice(scopes, config.scope.value)
        self.trusted = Switch(tr("server.trusted"), config.trusted)
        self.connect_s = SecondsBox(config.timeouts.connect_s)
        self.call_s = SecondsBox(config.timeouts.call_s, unset=tr("server.call_s.unset"))
        self.call_max_s = SecondsBox(config.timeouts.call_max_s)
        for part in parts:
            inner.addWidget(part)
        inner.addWidget(Field(tr("server.protocol"), self.protocol, tr("server.protocol.help")))
        inner.addWidget(Field(tr("server.scope"), self.scope, tr("server.scope.help")))
        self.level = choice([(level, level) for level in LOG_LEVELS], config.log_level)
        inner.addWidget(Field(tr("server.log_level"), self.level, tr("server.log_level.help")))
        self.sampling = SamplingFields(config.sampling)
        inner.addWidget(self.sampling)
        trust = column(space=Space.XS)
        trust.addLayout(row(label(tr("server.trusted"), "strong"), self.trusted))
        trust.addWidget(label(tr("server.trusted.help"), "caption"))
        inner.addLayout(trust)
        inner.addWidget(Field(tr("server.connect_s"), self.connect_s))
        inner.addWidget(Field(tr("server.call_s"), self.call_s, tr("server.call_s.help")))
        inner.addWidget(Field(tr("server.call_max_s"), self.call_max_s))

    def value(self) -> ServerConfig | None:
        """The configuration as filled in; None where a field is wrong (which then says so)."""
        try:
            pairs = self.pairs.control.pairs() if isinstance(self.pairs.control, Pairs) else None
        except ValueError as cause:
            self.pairs.complain(str(cause))
            return None
        assert pairs is not None
        self.pairs.complain("")
        old = self._config.launch
        launch: Launch
        if isinstance(old, Stdio):
            command = self._text(self.command)
            self.command.complain("" if command else tr("form.needed"))
            if not command:
                return None
            lines = self.args.control
            assert isinstance(lines, Lines)
            launch = replace(old, command=command, args=lines.values(), env=pairs, cwd=self._text(self.cwd) or None)
        else:
            url = self._text(self.url)
            good = url.startswith(("http://", "https://"))
            self.url.complain("" if good else tr("form.bad_url"))
            if not good:
                return None
            launch = replace(old, url=url, headers=pairs)
        return replace(
            self._config,
            launch=launch,
            protocol=Protocol(self.protocol.currentData()),
            scope=ServerScope(self.scope.currentData()),
            trusted=self.trusted.isChecked(),
            log_level=str(self.level.currentData()),
            sampling=self.sampling.value(),
            timeouts=Timeouts(self.connect_s.value(), self.call_s.limit(), self.call_max_s.value()),
        )

    @staticmethod
    def _text(field: Field) -> str:
        assert isinstance(field.control, QLineEdit)
        return field.control.text().strip()


class ServerSettings(Page):
    """The form with its buttons; a change of the launch restarts a running server."""

    def __init__(self, servers: Servers, name: str) -> None:
        super().__init__(inside=True)
        self._servers, self._name = servers, name
        self.form: ServerForm | None = None
        self._place = column()
        self._said = label("")
        self._said.hide()
        self.save = button(tr("action.save"), self._save, role="primary")
        self.undo = button(tr("action.undo"), self._reset)
        card = Card(space=Space.L)
        card.add(self._place)
        self.add(card, self._said, Flow(self.save, self.undo))
        self._reset()

    def _reset(self) -> None:
        clear(self._place)
        config = self._servers.config(self._name)
        if config is None:
            self.form = None
            self._place.addWidget(Empty("servers", tr("server.gone"), ""))
            return
        self.form = ServerForm(config)
        self._place.addWidget(self.form)
        self._said.hide()

    def _save(self) -> None:
        if self.form is None or (config := self.form.value()) is None:
            return
        # Switches of tools and the enabled state are changed elsewhere meanwhile: keep theirs.
        now = self._servers.config(self._name)
        if now is not None:
            config = replace(config, enabled=now.enabled, disabled_tools=now.disabled_tools)
        status = self._servers.status(self._name)
        live = status is not None and status.state in LIVE
        level = None if now is None or config.log_level == now.log_level else config.log_level
        restart = live and now is not None and config.launch != now.launch
        self.save.setEnabled(False)
        done, failed = while_alive(self, self._saved), while_alive(self, self._failed)
        self._servers.update(config, done, failed, restart=restart, log_level=level if live else None)

    def _saved(self) -> None:
        self.save.setEnabled(True)
        self._say(tr("server.saved"), "success")

    def _failed(self, error: HostError) -> None:
        self.save.setEnabled(True)
        self._say(" ".join(told(error)), "danger")

    def _say(self, text: str, role: str) -> None:
        self._said.setText(text)
        set_role(self._said, role)
        self._said.show()
