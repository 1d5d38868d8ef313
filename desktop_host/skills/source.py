"""Which skills a message wakes in a session: the port `SkillSource`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from desktop_host.core.admin import SettingsStore
from desktop_host.core.errors import UserFault
from desktop_host.core.permissions import Rule
from desktop_host.core.skills import SkillMatch, SkillNeed, SkillPin, SkillPlan, SkillVersion
from desktop_host.skills.catalogue import DEFAULT_WINDOW, body_block, catalogue
from desktop_host.skills.choose import Choice, Policy, called_by, choose
from desktop_host.skills.document import slug
from desktop_host.skills.grants import rules_of
from desktop_host.skills.library import Library
from desktop_host.skills.matchers import Matchers
from desktop_host.skills.pins import Pinned, Pins, SessionSkills
from desktop_host.skills.remote import RemoteLibrary
from desktop_host.skills.rollout import route
from desktop_host.skills.scan import Entry, Found

SHORT = 12
"""Characters below which a message is read together with the one before it."""
_log = logging.getLogger(__name__)

Aliases = Callable[[], frozenset[str]]
"""The aliases of the servers that are configured and switched on."""

MATCHED_CHARS = 4000
"""What of a message is compared with the skills: its beginning and its end."""


class SkillChoices:
    """Chooses, pins and lists skills for sessions."""

    def __init__(
        self, library: Library, pins: Pins, settings: SettingsStore, servers: Aliases,
        remote: RemoteLibrary | None = None,
    ) -> None:  # fmt: skip
        self.library = library
        self.pins = pins
        self._settings = settings
        self._servers = servers
        self._remote = remote
        self._matchers = Matchers()
        self._matching = asyncio.Lock()

    # ---- the port
    async def plan(
        self, session: str, text: str, wanted: tuple[str, ...] | None, roots: tuple[str, ...] = ()
    ) -> SkillPlan:
        """Choose for one message, pin what is chosen, and give the bodies that the session has not seen.

        Raises:
            UserFault: `not_found`, a skill of `wanted` is not there.
        """
        if len(text) > MATCHED_CHARS:
            half = MATCHED_CHARS // 2
            text = f"{text[:half]}\n{text[-half:]}"
        await self.library.ready()
        memory = await self.pins.of(session)
        memory.active = ()
        if wanted == ():
            return SkillPlan()
        if self._remote is not None:
            await self._remote.ensure()
        choice, called, arguments = await self._choose(session, memory, text, wanted, roots)
        memory.said = text
        memory.ranked = tuple(m.name for m in choice.matches if m.refused is None or m.suggested)
        chosen, bodies = [], []
        for match in choice.chosen:
            pinned = memory.pins.get(match.name) or await self._pin(session, match.name, "chosen")
            memory.active = (*memory.active, match.name)
            reason = "; ".join(str(r) for r in match.reasons)
            chosen.append(replace(pinned.pin, reason=reason))
            new = memory.given.get(match.name) != pinned.pin.digest or (match.name == called and bool(arguments))
            memory.given[match.name] = pinned.pin.digest
            bodies.append(self.block(pinned, arguments if match.name == called else "") if new else "")
            if new:
                await self.pins.run(session, match.name, pinned.pin.version, text, "message")
        needs = [SkillNeed(skill, "skill", name) for skill, name in choice.missing]
        needs += [n for name in memory.active for n in self.needs(memory.pins[name].skill)]
        suggested = tuple(m.name for m in choice.matches if m.suggested and not m.chosen)[:3]
        first = next((memory.pins[m.name].skill.route for m in choice.matches if m.chosen), None)
        untrusted = await asyncio.to_thread(self.library.untrusted, roots) if roots and not memory.warned else ()
        memory.warned = memory.warned or bool(untrusted)
        return SkillPlan(
            tuple(chosen), tuple(bodies), suggested, tuple(needs), first, tuple(u.folder for u in untrusted)
        )

    async def catalogue(
        self, session: str, wanted: tuple[str, ...] | None = None, roots: tuple[str, ...] = (),
        window: int | None = None,
    ) -> str:  # fmt: skip
        """The part of the system text that lists the skills; empty where there are none.

        Args:
            session: whose versions are listed.
            wanted: ids that the session is limited to.
            roots: the session's folders; a project's skills are listed for its own sessions only.
            window: the model's context in tokens, of which the list may take the setting's share.
        """
        await self.library.ready()
        settings = self._settings.current().skills
        memory = await self.pins.of(session)
        skills = self.visible(session, memory, roots)
        listed = [
            s for s in skills.values()
            if s.model_invocable and s.name not in self.library.state.disabled
            and (wanted is None or s.name in {slug(w) for w in wanted})
        ]  # fmt: skip
        dirs = [str(self._entry(session, s.name).folder) if s.name not in memory.pins else "" for s in listed]
        for served in self._remote.skills() if self._remote is not None and wanted is None else ():
            if served.approved:
                text = f"(served by {served.server}) {served.description}"
                listed.append(SkillVersion(served.id, "", served.digest, text, ""))
                dirs.append(served.uri)
        budget = (window or DEFAULT_WINDOW) * settings.catalogue_percent // 100
        text, dropped = catalogue(
            listed, dirs, instruction=settings.agent_skill_instruction, template=settings.agent_skill_template,
            budget=budget,
        )  # fmt: skip
        if dropped:
            _log.warning("%d skills have no room in the system text (%d tokens)", len(dropped), budget)
        return text

    def rules(self, session: str) -> tuple[Rule, ...]:
        """What a person granted to the skills that are active in the running turn; never beats a deny."""
        memory = self.pins.known(session)
        if memory is None:
            return ()
        rules: list[Rule] = []
        for name in memory.active:
            pinned = memory.pins.get(name)
            granted = self.library.state.granted(name)
            if pinned is not None and granted and self.known(pinned):
                kept = tuple(t for t in pinned.skill.allowed_tools if t in granted)
                rules += rules_of(name, kept)
        return tuple(rules)

    # ---- choosing
    async def match(self, text: str, session: str | None = None) -> tuple[SkillMatch, ...]:
        """What a sentence would wake, with reasons; nothing is pinned."""
        await self.library.ready()
        memory = await self.pins.read(session) if session else SessionSkills()
        choice, _, _ = await self._choose(session or "", memory, text, None, None)
        return tuple(sorted(choice.matches, key=lambda m: not m.chosen))

    async def _choose(
        self, session: str, memory: SessionSkills, text: str, wanted: tuple[str, ...] | None,
        roots: tuple[str, ...] | None,
    ) -> tuple[Choice, str | None, str]:  # fmt: skip
        settings = self._settings.current().skills
        skills = self.visible(session, memory, roots)
        asked = None if wanted is None else tuple(slug(w) for w in wanted)
        for name in asked or ():
            if name not in skills:
                await self.library.find(name)  # tells the near names
                raise UserFault("not_found", f"{name} cannot be used here", kind="skill", name=name)
        called, arguments = called_by(text, skills)
        policy = Policy(
            settings.activation,
            settings.auto_score / 100 if settings.auto_score else None,
            settings.suggest_score / 100 if settings.suggest_score else None,
            settings.max_active,
            asked,
            called,
            self.library.state.disabled,
        )
        query = arguments if called else text
        if len(query) < SHORT and memory.said and not called:
            query = f"{memory.said}\n{query}"
        async with self._matching:
            matcher = await self._matchers.get(settings.matcher)
            return await asyncio.to_thread(choose, query, skills, matcher, policy), called, arguments

    # ---- what a session sees
    def visible(
        self, session: str, memory: SessionSkills, roots: tuple[str, ...] | None = None
    ) -> dict[str, SkillVersion]:
        """The usable skills of a session by id; pins win. `roots` None: the skills of every trusted project."""
        out: dict[str, SkillVersion] = {}
        folders = None if roots is None else [Path(r).resolve() for r in roots]
        for name, found in self.library.snapshot.skills.items():
            if not found.loaded or not self._here(found, folders):
                continue
            out[name] = self._entry(session, name).skill
        out |= {name: pinned.skill for name, pinned in memory.pins.items() if pinned.skill.body}
        return dict(sorted(out.items()))

    def _here(self, found: Found, folders: list[Path] | None) -> bool:
        project = self.library.project_of(found)
        if project is None or folders is None:
            return True
        home = project.resolve()
        return any(f == home or f.is_relative_to(home) or home.is_relative_to(f) for f in folders)

    def _entry(self, session: str, name: str) -> Entry:
        """The version that a session gets; without a session the main one."""
        found = self.library.snapshot.skills[name]
        if not session:
            return found.main
        version = route(self.home(session), name, found.rollout)
        entry = found.entries[version]
        return entry if entry.loaded else found.main

    def home(self, session: str) -> str:
        """The session whose versions and working copies count: of a sub-task, the one in which the person is."""
        memory = self.pins.known(session)
        return (memory.root if memory else "") or session

    def needs(self, skill: SkillVersion) -> list[SkillNeed]:
        """What a skill names and is not there now."""
        here = self._servers()
        return [SkillNeed(skill.name, "server", alias) for alias in skill.servers if alias not in here]

    # ---- pins
    async def _pin(self, session: str, name: str, reason: str) -> Pinned:
        found = self.library.snapshot.skills[name]
        return await self.pins.pin(session, self._entry(session, name), found.place.kind, reason)

    async def pin(self, session: str, name: str, version: str | None) -> SkillPin:
        """Give a session this version (None: the one a new session of this id would get) from its next message on.

        Raises:
            UserFault: `not_found`.
        """
        found, entry = await self.library.find(name, version)
        if version is None:
            entry = self._entry(session, found.name)
        if not entry.loaded:
            raise UserFault("bad_skill", f"{found.name} {version or ''} cannot be used", reason="broken",
                            name=found.name)  # fmt: skip
        return (await self.pins.pin(session, entry, found.place.kind, "person")).pin

    async def take_up(self, session: str, name: str, given: str) -> Pinned:
        """Activate a skill for the model (`use_skill`), with what it is handed over.

        Raises:
            UserFault: `not_found`, or `bad_skill` where it is switched off or the person's alone.
        """
        memory = await self.pins.of(session)
        found = await self._usable(session, memory, name)
        by = memory.active[-1] if memory.active and memory.active[-1] != found else "model"
        pinned = memory.pins.get(found) or await self._pin(session, found, f"used by {by}")
        if found not in memory.active:
            memory.active = (*memory.active, found)
        await self.pins.run(session, found, pinned.pin.version, given, by)
        return pinned

    async def _usable(self, session: str, memory: SessionSkills, name: str) -> str:
        """The id of a skill that the model may take up."""
        await self.library.ready()
        found = slug(name)
        skill = self.visible(session, memory).get(found)
        if skill is None:
            await self.library.find(name)
            raise UserFault("bad_skill", f"{name} is broken and has no good version", reason="broken", name=name)
        if found in self.library.state.disabled:
            raise UserFault("bad_skill", f"{name} is switched off", reason="disabled", name=name)
        if not skill.model_invocable and found not in memory.pins:
            raise UserFault("bad_skill", f"{name} is started by the person only", reason="manual_only", name=name)
        return found

    async def hand_over(self, session: str, part: str, skill: str, given: str) -> tuple[str, tuple[str, ...]]:
        """Let a sub-task's session work with the versions of the session above it."""
        above, mine = await self.pins.of(session), await self.pins.of(part)
        mine.root = above.root or session
        label, fallback = "", tuple[str, ...]()
        if skill:
            found = await self._usable(session, above, skill)
            pinned = above.pins.get(found) or await self._pin(session, found, "used by a sub-task")
            await self.pins.run(session, found, pinned.pin.version, given, "sub-task")
            label = f"{found}@{pinned.pin.version}" if pinned.pin.version else found
            fallback = tuple(f for f in pinned.skill.fallback if f in self.library.snapshot.skills)
        mine.pins = dict(above.pins)
        await self.pins.keep(part, mine)
        return label, fallback

    async def settle(self, session: str, status: str) -> None:
        """A turn ended: note how the runs in it ended."""
        await self.pins.settle(session, status)

    def known(self, pinned: Pinned) -> bool:
        """Whether a pinned version is one of this library, and not what a session from elsewhere brought along."""
        if not pinned.foreign:
            return True
        found = self.library.snapshot.skills.get(pinned.pin.name)
        return found is not None and any(e.skill.digest == pinned.pin.digest for e in found.entries.values())

    def block(self, pinned: Pinned, arguments: str) -> str:
        """A skill's body as it stands in a message."""
        return body_block(pinned.skill, pinned.files, pinned.main, source=pinned.source, arguments=arguments)
