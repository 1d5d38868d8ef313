"""The toolkit: every tool of servers and host, in groups, with fixed arguments, rules for results and a search.

From Python, without a window or a model:

    toolkit = host.toolkit
    toolkit.register(my_function)                              # host.my_function
    add = toolkit.callable("everything", "get-sum")            # await add(a=1, b=2)
    await toolkit.put_group(ToolGroup("files", ("fs.*",), enabled=False, description="Read and write files."))
    await toolkit.switch(session, "files", True)
    await toolkit.put_rule(ToolRule("web.fetch", preset=freeze({"max_length": 5000}), post=PostRule(max_chars=4000)))
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from desktop_host.core.admin import SecretStore
from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.host_tools import ALIAS
from desktop_host.core.messages import Outcome, Text, ToolCall
from desktop_host.core.permissions import Effect, Verdict
from desktop_host.core.ports import History, ToolSource
from desktop_host.core.toolkit import ToolkitConfig, ToolkitStore, ToolRule, completed, group_of, shaped
from desktop_host.core.tools import ToolGroup, ToolSpec
from desktop_host.core.values import FrozenDict, canonical, freeze
from desktop_host.engine import postprocess, tool_search
from desktop_host.engine.functions import Functions
from desktop_host.engine.group_switches import GroupSwitches
from desktop_host.engine.presets import Presets
from desktop_host.engine.toolbox import ToolTable

ByHand = Callable[[str, str, FrozenDict, Callable[[Progress], None] | None], Awaitable[ToolOutcome]]


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a call of the model's really calls; `answer` is set where it cannot run."""

    spec: ToolSpec | None
    call: ToolCall
    answer: str | None = None
    locked: tuple[str, ...] = ()
    """Arguments that the person has fixed."""


class Toolkit:
    """A `ToolSource` over another.

    Args:
        inner: servers and the host's own tools.
        store: where groups and rules are kept.
        history: where each session keeps the groups it switched.
        secrets: for fixed arguments that name a secret.
        by_hand: runs a server's tool without a session (`ServerAdmin.call_tool`).
        learn: told which secrets went to which server, so that its trace hides them.
    """

    def __init__(
        self, inner: ToolSource, store: ToolkitStore, history: History, secrets: SecretStore, by_hand: ByHand,
        learn: Callable[[str, frozenset[str]], None],
    ) -> None:  # fmt: skip
        self._inner, self._store, self._switches = inner, store, GroupSwitches(history)
        self._presets, self._by_hand = Presets(secrets, learn), by_hand
        self._aliases: dict[str, tuple[str, ...] | None] = {}
        self._functions = Functions()
        self.register, self.unregister = self._functions.register, self._functions.unregister

    # ---- the person's side
    @property
    def config(self) -> ToolkitConfig:
        """Groups and rules of the profile."""
        return self._store.current()

    async def put_group(self, group: ToolGroup) -> None:
        """Make a group, or change the one of this name.

        Raises:
            UserFault: `usage`, a name that is not 1 to 64 of letters, digits, `_` and `-`.
        """
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", group.name):
            raise UserFault("usage", f"{group.name!r} cannot be a group's name", reason="bad_group_name")
        config = self.config
        known = any(g.name == group.name for g in config.groups)
        groups = tuple(group if g.name == group.name else g for g in config.groups)
        await self._store.save(replace(config, groups=groups if known else (*groups, group)))

    async def remove_group(self, name: str) -> None:
        """Forget a group; its tools are in none then, and so always there.

        Raises:
            UserFault: `not_found`.
        """
        self.config.group(name)
        await self._store.save(replace(self.config, groups=tuple(g for g in self.config.groups if g.name != name)))

    async def let_model_switch(self, on: bool) -> None:
        """Whether models may switch groups themselves."""
        await self._store.save(replace(self.config, model_switches=on))

    async def put_rule(self, rule: ToolRule) -> None:
        """Set what holds for one tool; an empty rule takes it away.

        Raises:
            UserFault: `bad_settings`, its JMESPath does not compile.
        """
        await postprocess.check(rule.post)
        others = tuple(r for r in self.config.rules if r.tool != rule.tool)
        empty = rule == ToolRule(rule.tool)
        await self._store.save(replace(self.config, rules=others if empty else (*others, rule)))

    def active(self, session: str | None = None) -> dict[str, bool]:
        """Group to whether it is on: in a session, or (None) in new ones."""
        switched = self._switches.of(session or "")
        return {g.name: switched.get(g.name, g.enabled) for g in self.config.groups}

    async def switch(self, session: str, group: str, on: bool) -> None:
        """Switch a group in one session; the model's list follows with its next turn.

        Raises:
            UserFault: `not_found`.
        """
        self.config.group(group)
        await self._switches.keep(session, {**await self._switches.read(session), group: on})

    async def groups(self, session: str) -> tuple[tuple[ToolGroup, bool], ...]:
        """The groups, and whether each is on in a session."""
        switched = await self._switches.read(session)
        return tuple((g, switched.get(g.name, g.enabled)) for g in self.config.groups)

    def callable(self, server: str, tool: str) -> Callable[..., Awaitable[ToolOutcome]]:
        """A tool as an async function of its arguments: no model, no session; its rule holds."""

        async def run(progress: Callable[[Progress], None] | None = None, **arguments: Any) -> ToolOutcome:
            full_name = f"{server}.{tool}"
            rule = self.config.rule(full_name)
            given = await self._presets.expanded(full_name, completed(freeze(arguments), rule), rule)
            if server == ALIAS:
                spec = next((s for s in self._functions.specs("") if s.name == tool), ToolSpec(server, tool))
                outcome = await self._functions.call("", "", spec, given, progress or (lambda _p: None))
            else:
                outcome = await self._by_hand(server, tool, given, progress)
            return await postprocess.processed(outcome, rule.post) if rule else outcome

        run.__name__ = run.__qualname__ = re.sub(r"\W", "_", tool)
        return run

    # ---- as a source
    async def prepare(self, session: str, aliases: tuple[str, ...] | None, roots: tuple[str, ...]) -> None:
        self._aliases[session] = aliases
        await self._switches.read(session)
        await self._inner.prepare(session, aliases, roots)

    def session_tools(self, session: str, aliases: tuple[str, ...] | None = None) -> tuple[ToolSpec, ...]:
        active = self.active(session)
        every = (*self._inner.session_tools(session, aliases), *self._functions.specs(session))
        return tuple(sorted((self.dressed(t, active) for t in every), key=lambda t: (t.server, t.name)))

    def dressed(self, spec: ToolSpec, active: Mapping[str, bool] | None = None) -> ToolSpec:
        """A tool as the person made it: its group, and what the model is told of it."""
        config = self.config
        spec = shaped(spec, config.rule(spec.full_name))
        group = group_of(spec.full_name, config.groups)
        if group is None:
            return spec
        return replace(spec, group=group.name, enabled=spec.enabled and (active or self.active())[group.name])

    def is_trusted(self, alias: str) -> bool:
        return alias == ALIAS or self._inner.is_trusted(alias)

    async def release(self, session: str) -> None:
        self._switches.forget(session)
        self._aliases.pop(session, None)
        await self._inner.release(session)

    async def call(
        self,
        session: str,
        call_id: str,
        spec: ToolSpec,
        arguments: FrozenDict,
        verdict: Verdict,
        progress: Callable[[Progress], None],
    ) -> ToolOutcome:
        if spec.server == ALIAS and spec.name in tool_search.META:
            if verdict.effect is not Effect.ALLOW:
                raise UserFault("permission", f"{spec.full_name} was not allowed", tool=spec.full_name)
            return await self._meta(session, spec.name, arguments)
        rule = self.config.rule(spec.full_name)
        if spec.server == ALIAS and any(s.name == spec.name for s in self._functions.specs(session)):
            if verdict.effect is not Effect.ALLOW:
                raise UserFault("permission", f"{spec.full_name} was not allowed", tool=spec.full_name)
            given = await self._presets.expanded(spec.full_name, arguments, rule)
            outcome = await self._functions.call(session, call_id, spec, given, progress)
        else:
            given = await self._presets.expanded(spec.full_name, arguments, rule)
            outcome = await self._inner.call(session, call_id, spec, given, verdict, progress)
        return await postprocess.processed(outcome, rule.post) if rule else outcome

    # ---- for the engine
    def told(
        self, tools: tuple[ToolSpec, ...], window: int | None, share: int, before: tuple[ToolSpec, ...] | None,
        near: tuple[str, ...] = (),
    ) -> tuple[ToolSpec, ...]:  # fmt: skip
        """What a model is told of: the tools, or a search in their place where they take too much room.

        Args:
            tools: those that are on.
            window: the model's context in tokens, where known.
            share: percent of it that definitions may take.
            before: what the model was told earlier in this conversation; it goes on in the same way.
            near: full names of tools that are told of beside the search.
        """
        config = self.config
        meta = [tool_search.reset_spec(config.groups)] if config.groups and config.model_switches else []
        old = {t.name: t for t in before or () if t.server == ALIAS}
        if tool_search.SEARCH in old or (before is None and tool_search.needed(tools, window, share)):
            meta += [old.get(tool_search.SEARCH) or tool_search.search_spec(tools), tool_search.call_spec()]
            tools = tool_search.kept(tools, near if before is None else [t.full_name for t in before])
        elif meta:
            meta.append(tool_search.call_spec())
        return tuple(sorted([*tools, *meta], key=lambda t: (t.server, t.name)))

    def resolve(self, session: str, aliases: tuple[str, ...] | None, table: ToolTable, call: ToolCall) -> Resolved:
        """What a call of the model's really calls: meta-tools looked through, fixed arguments put in."""
        spec = table.find(call.wire_name)
        now = self.session_tools(session, aliases)
        if spec is None:
            spec = next((t for t in now if t.wire_name == call.wire_name and t.enabled), None)
            if spec is None and not self._off(session, next((t for t in now if t.wire_name == call.wire_name), None)):
                return Resolved(None, call, table.unknown(call.wire_name, now))
        if spec is not None and spec.full_name == f"{ALIAS}.{tool_search.CALL}" and call.problem is None:
            spec, arguments, why = tool_search.called(now, call.arguments)
            if spec is None:
                off = next((t for t in now if call.arguments.get("name") in (t.full_name, t.wire_name)), None)
                return Resolved(None, call, self._off(session, off) or why)
            call = replace(call, arguments=freeze(arguments))
        here = next((t for t in now if t.wire_name == (spec.wire_name if spec else call.wire_name)), None)
        if answer := self._off(session, here):
            return Resolved(spec or here, call, answer)
        rule = self.config.rule(spec.full_name) if spec else None
        return Resolved(
            spec, replace(call, arguments=completed(call.arguments, rule)), None, tuple(rule.preset) if rule else ()
        )

    def of_page(self, session: str, spec: ToolSpec, call: ToolCall) -> Resolved:
        """What a call of a page really calls: fixed arguments put in, a group that is off answered."""
        rule = self.config.rule(spec.full_name)
        completed_ = replace(call, arguments=completed(call.arguments, rule))
        return Resolved(spec, completed_, self._off(session, spec), tuple(rule.preset) if rule else ())

    def default(self, spec: ToolSpec) -> Effect | None:
        """What the gate says of a tool where no rule speaks, by its group. Meta-tools do nothing by themselves."""
        if spec.server == ALIAS and spec.name in tool_search.META:
            return Effect.ALLOW
        group = group_of(spec.full_name, self.config.groups)
        return group.default if group else None

    # ---- inside
    def _off(self, session: str, spec: ToolSpec | None) -> str | None:
        """What to tell a model that calls a tool of a group that is off."""
        group = group_of(spec.full_name, self.config.groups) if spec else None
        if group is None or self.active(session)[group.name]:
            return None
        way = f"Switch it on with {ALIAS}__{tool_search.RESET}." if self.config.model_switches else "Go on without it."
        return f"This tool belongs to the group {group.name!r}, which is switched off. {way}"

    async def _meta(self, session: str, name: str, arguments: FrozenDict) -> ToolOutcome:
        if name == tool_search.RESET:
            return await self._reset(session, arguments)
        limit, server = arguments.get("limit"), arguments.get("server")
        hits = tool_search.found(
            self.session_tools(session, self._aliases.get(session)),
            str(arguments.get("query") or ""),
            server if isinstance(server, str) else None,
            min(max(limit, 1), 20) if isinstance(limit, int) else 5,
        )
        text = canonical(freeze(hits)) if hits else "No tool fits. Try other words, or name a server."
        return ToolOutcome(Outcome.OK, (Text(text),))

    async def _reset(self, session: str, wanted: FrozenDict) -> ToolOutcome:
        if not self.config.model_switches:
            return ToolOutcome(Outcome.ERROR, (Text("The person does not let models switch groups."),))
        groups = self.config.groups
        await self._switches.keep(session, {g.name: wanted.get(g.name) is True for g in groups})
        on = [g for g in groups if wanted.get(g.name) is True]
        here = self.session_tools(session, self._aliases.get(session))
        names = [t.full_name for t in here if t.enabled and t.group in {g.name for g in on}]
        parts = [f"On: {', '.join(g.name for g in on) or 'none'}."]
        parts += [f"<tool-instructions group={g.name!r}>\n{g.notes}\n</tool-instructions>" for g in on if g.notes]
        if names:
            parts.append(f"Until your next turn call them with {ALIAS}__{tool_search.CALL}: {', '.join(names)}.")
        return ToolOutcome(Outcome.OK, (Text("\n".join(parts)),))
