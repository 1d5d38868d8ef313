"""May this call run? Rules first, then the person. Any failure on the way denies."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable

from desktop_host.core.asks import Advice, Allow, ApproveTool, Refuse
from desktop_host.core.messages import ToolCall
from desktop_host.core.permissions import CallFacts, Effect, Life, Rule, Scope, Verdict, decide
from desktop_host.core.ports import Ledger
from desktop_host.core.settings import Settings
from desktop_host.core.tools import ToolSpec
from desktop_host.engine.inbox import Inbox

SessionRules = Callable[[], tuple[Rule, ...]]
"""The rules of a session as they are when called."""

_log = logging.getLogger(__name__)


class Gate:
    """Decides calls and remembers what a person granted."""

    def __init__(
        self,
        inbox: Inbox,
        ledger: Ledger,
        settings: Callable[[], Settings],
        trusted: Callable[[str], bool],
        default: Callable[[ToolSpec], Effect | None] = lambda _spec: None,
    ) -> None:
        self._inbox = inbox
        self._ledger = ledger
        self._settings = settings
        self._trusted = trusted
        self._default = default
        """What holds for a tool where no rule speaks: its group's word."""
        self._waiting: dict[str, tuple[ToolSpec, ToolCall, SessionRules, bool, bool]] = {}
        """What each open ask is about, so that a grant given for another settles it too."""

    async def decide(
        self, spec: ToolSpec, call: ToolCall, session_rules: tuple[Rule, ...], *, foreign: bool = False
    ) -> Verdict:
        """The verdict of the rules, before anybody is asked. `foreign`: no server of ours said what `spec` says."""
        try:
            settings = self._settings()
            rules = [
                *(
                    Rule(Effect(r.effect), r.pattern, r.arguments or None, r.tool_digest or None, origin="settings")
                    for r in settings.rules
                ),
                *await self._ledger.grants(),
                *session_rules,
            ]
            read_only = bool(spec.hints.read_only) and not foreign
            facts = CallFacts(spec.full_name, call.arguments, spec.digest, read_only, self._trusted(spec.server))
            return decide(
                facts, rules, group_default=self._default(spec), profile_default=Effect(settings.tools.permission)
            )
        except Exception:  # Whatever fails in a check denies.
            _log.exception("the gate failed; the call is denied")
            return Verdict(Effect.DENY, "gate_failed")

    async def ask(
        self,
        session: str,
        spec: ToolSpec,
        call: ToolCall,
        rules: SessionRules,
        locked: tuple[str, ...] = (),
        *,
        foreign: bool = False,
        advice: Advice | None = None,
    ) -> tuple[Verdict, Rule | None]:
        """Ask the person; the rule is what holds for the rest of the session, if they said so.

        Whoever keeps that rule calls `recheck` afterwards.
        """
        known = await self._ledger.known_tool(spec.full_name)
        changed = known is not None and known[0] != spec.digest
        ask = ApproveTool(
            uuid.uuid4().hex,
            session,
            call.id,
            spec.server,
            spec.name,
            call.arguments,
            title=spec.display_name,
            description=spec.description,
            hints=spec.hints,
            trusted=self._trusted(spec.server),
            tool_digest=spec.digest,
            changed=changed,
            previous_description=known[1] if known and changed else None,
            locked=locked,
            advice=advice,
        )
        warned = advice is not None and advice.verdict != "safe"
        self._waiting[ask.ask_id] = (spec, call, rules, foreign, warned)
        try:
            answer = await self._inbox.ask(ask)
        finally:
            del self._waiting[ask.ask_id]
        match answer:
            case Allow(life=life, scope=scope, tool_digest=digest):
                if digest not in (None, spec.digest):
                    return Verdict(Effect.DENY, "tool_changed"), None
                await self._ledger.remember_tool(spec.full_name, spec.digest, spec.description)
                return Verdict(Effect.ALLOW, "person"), await self._grant(Effect.ALLOW, life, scope, spec)
            case Refuse(life=life, scope=scope):
                return Verdict(Effect.DENY, "person"), await self._grant(Effect.DENY, life, scope, spec)
            case _:
                return Verdict(Effect.DENY, "dismissed"), None

    async def recheck(self) -> None:
        """Settle the open asks that the rules now decide: "always this server" speaks for its waiting calls too.

        One that a second opinion warned of waits for the person all the same.
        """
        for ask_id, (spec, call, rules, foreign, warned) in list(self._waiting.items()):
            verdict = await self.decide(spec, call, rules(), foreign=foreign)
            if verdict.effect is Effect.ALLOW and not warned:
                self._inbox.answer(ask_id, Allow(tool_digest=spec.digest), by="policy")
            elif verdict.effect is Effect.DENY:
                self._inbox.answer(ask_id, Refuse(), by="policy")

    async def _grant(self, effect: Effect, life: Life, scope: Scope, spec: ToolSpec) -> Rule | None:
        if life is Life.ONCE or scope is Scope.CALL:
            return None
        pattern = f"{spec.server}.*" if scope is Scope.SERVER else spec.full_name
        digest = spec.digest if scope is Scope.TOOL and effect is Effect.ALLOW else None
        rule = Rule(effect, escaped(pattern, scope), None, digest, life, "person")
        if life is Life.PROFILE:
            await self._ledger.grant(rule)
            return None
        return rule


def escaped(pattern: str, scope: Scope) -> str:
    """A glob that matches the name itself: a tool may be called `a[b]*`."""
    if scope is Scope.SERVER:
        return pattern
    return "".join(f"[{c}]" if c in "*?[" else c for c in pattern)
