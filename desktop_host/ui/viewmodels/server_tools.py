"""What the person decided about tools: who may call them, their groups, their fixed arguments."""

from __future__ import annotations

import glob
from collections.abc import Awaitable, Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from desktop_host.core.errors import HostError
from desktop_host.core.permissions import CallFacts, Effect, Life, Rule, Verdict, decide
from desktop_host.core.toolkit import PostRule, ToolkitConfig, ToolRule, group_of
from desktop_host.core.tools import ToolGroup, ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge


class ToolRules(QObject):
    """Read once for a list of tools; `changed` after every change."""

    changed = Signal()
    failed = Signal(object)

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self.grants: tuple[Rule, ...] = ()
        self.settings: tuple[Rule, ...] = ()
        self.default = Effect.ASK
        self.toolkit = ToolkitConfig()

    def refresh(self) -> None:
        """Read all again."""

        async def read(host: Host) -> tuple[tuple[Rule, ...], tuple[Rule, ...], Effect, ToolkitConfig]:
            settings = host.settings.current()
            rules = tuple(
                Rule(Effect(r.effect), r.pattern, r.arguments or None, r.tool_digest or None) for r in settings.rules
            )
            return await host.grants(), rules, Effect(settings.tools.permission), host.toolkit.config

        def done(got: tuple[tuple[Rule, ...], tuple[Rule, ...], Effect, ToolkitConfig]) -> None:
            self.grants, self.settings, self.default, self.toolkit = got
            self.changed.emit()

        self._bridge.then(read, done, self.failed.emit, self)

    # ---- permission

    def own(self, spec: ToolSpec) -> Effect | None:
        """What the person said of this one tool, whatever its arguments; None: nothing."""
        pattern = glob.escape(spec.full_name)
        found = [r for r in self.grants if r.pattern == pattern and r.arguments is None]
        live = [r for r in found if r.effect is not Effect.ALLOW or r.tool_digest in (None, spec.digest)]
        return live[-1].effect if live else None

    def verdict(self, spec: ToolSpec, trusted: bool) -> Verdict:
        """What the gate would say of a call without arguments."""
        facts = CallFacts(spec.full_name, EMPTY, spec.digest, bool(spec.hints.read_only), trusted)
        group = group_of(spec.full_name, self.toolkit.groups)
        plain = [r for r in (*self.settings, *self.grants) if r.arguments is None]
        return decide(facts, plain, group_default=group.default if group else None, profile_default=self.default)

    def allow(self, spec: ToolSpec, effect: Effect | None) -> None:
        """Allow, ask or deny one tool from now on; None: as the rest."""
        pattern = glob.escape(spec.full_name)

        async def act(host: Host) -> None:
            await host.revoke(pattern)
            if effect is not None:
                digest = spec.digest if effect is Effect.ALLOW else None
                await host.ledger.grant(Rule(effect, pattern, None, digest, Life.PROFILE, "person"))

        self._do(act)

    # ---- groups

    def group(self, spec: ToolSpec) -> ToolGroup | None:
        """The group that a tool belongs to."""
        return group_of(spec.full_name, self.toolkit.groups)

    def put_into(self, spec: ToolSpec, name: str) -> None:
        """Put a tool into a group, made if there is none of the name; empty: into none."""
        full = glob.escape(spec.full_name)
        groups = self.toolkit.groups

        async def act(host: Host) -> None:
            for one in groups:
                if full in one.patterns and one.name != name:
                    left = tuple(p for p in one.patterns if p != full)
                    await host.toolkit.put_group(replace(one, patterns=left))
            if not name:
                return
            old = next((g for g in groups if g.name == name), ToolGroup(name, ()))
            if full not in old.patterns:
                await host.toolkit.put_group(replace(old, patterns=(*old.patterns, full)))

        self._do(act)

    def put_server_into(self, server: str, name: str) -> None:
        """Put all tools of a server into a group, those that come later as well."""
        every, groups = f"{server}.*", self.toolkit.groups

        async def act(host: Host) -> None:
            old = next((g for g in groups if g.name == name), ToolGroup(name, ()))
            if every not in old.patterns:
                await host.toolkit.put_group(replace(old, patterns=(*old.patterns, every)))

        self._do(act)

    def change(self, group: ToolGroup) -> None:
        """Keep a group as the person changed it."""
        self._do(lambda host: host.toolkit.put_group(group))

    def switch(self, group: ToolGroup, on: bool) -> None:
        """Switch a group on or off for new chats."""
        self._do(lambda host: host.toolkit.put_group(replace(group, enabled=on)))

    def remove(self, name: str) -> None:
        """Forget a group; its tools are in none then."""
        self._do(lambda host: host.toolkit.remove_group(name))

    def let_model_switch(self, on: bool) -> None:
        """Whether models may switch groups themselves."""
        self._do(lambda host: host.toolkit.let_model_switch(on))

    # ---- fixed arguments

    def rule(self, spec: ToolSpec) -> ToolRule:
        """What holds for a tool."""
        return self.toolkit.rule(spec.full_name) or ToolRule(spec.full_name)

    def fix(self, spec: ToolSpec, preset: FrozenDict) -> None:
        """Fix arguments: the model neither sees nor sets them."""
        rule = replace(self.rule(spec), preset=preset)
        self._do(lambda host: host.toolkit.put_rule(rule))

    def reshape(self, spec: ToolSpec, post: PostRule, about: str, refused: Callable[[HostError], None]) -> None:
        """Set what becomes of a tool's results, and what models are told of it instead of its own description."""
        rule = replace(self.rule(spec), post=post, description=about)
        self._bridge.then(lambda host: host.toolkit.put_rule(rule), lambda _: self.refresh(), refused, self)

    # ---- inside

    def _do(self, act: Callable[[Host], Awaitable[object]]) -> None:
        self._bridge.then(act, lambda _: self.refresh(), self._fail, self)

    def _fail(self, error: object) -> None:
        self.failed.emit(error)
        self.refresh()
