"""A skills library in memory that behaves: it installs, matches, shares out, pins and remembers."""

from __future__ import annotations

import difflib
import hashlib
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from desktop_host.core import events as ev
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.messages import assistant
from desktop_host.core.remote_skills import RemoteSkill
from desktop_host.core.sessions import TurnStatus, TurnStop
from desktop_host.core.skill_admin import (
    FileChange,
    InstallPreview,
    LintReport,
    SessionPin,
    SkillChange,
    SkillDetail,
    SkillFile,
    SkillPlace,
    SkillRow,
    SkillVersionRow,
    UntrustedProject,
    VersionResults,
)
from desktop_host.core.skills import (
    Reason,
    SkillMatch,
    SkillNeed,
    SkillPin,
    SkillProblem,
    SkillStatus,
    SkillVersion,
    Triggers,
)
from desktop_host.core.values import FrozenDict

if TYPE_CHECKING:
    from tests.fakes.fake_host import FakeHost

HOME = "/home/ada/.local/share/desktop-host/profiles/default/skills"


def sha(text: str | bytes) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


class SkillLibrary:
    """`SkillAdmin` over dictionaries. `texts[name][version][path]` is a file."""

    def __init__(self, host: FakeHost) -> None:
        self._host = host
        self.rows: list[SkillRow] = []
        self.facts: dict[tuple[str, str], SkillVersion] = {}
        self.texts: dict[str, dict[str, dict[str, bytes]]] = {}
        self.kept: dict[str, list[SessionPin]] = {}
        self.done: dict[str, tuple[VersionResults, ...]] = {}
        self.log: dict[str, list[SkillChange]] = {}
        self.offers: dict[Path, tuple[InstallPreview, ...] | HostError] = {}
        self.folders = [
            SkillPlace("profile", HOME, True, True),
            SkillPlace("bundled", "/opt/desktop-host/skills", True, False),
        ]
        self.foreign = [SkillPlace("foreign", "/home/ada/.claude/skills")]
        self.served: list[RemoteSkill] = []
        self.served_files: dict[str, dict[str, bytes]] = {}
        self.fail: HostError | None = None
        """What reading the rows fails with."""
        self.exported: list[tuple[str, Path]] = []

    def put(self, row: SkillRow, *versions: tuple[SkillVersion, dict[str, bytes]]) -> None:
        """Put a skill on the shelf."""
        self.rows.append(row)
        for skill, files in versions:
            self.facts[row.name, skill.version] = skill
            self.texts.setdefault(row.name, {})[skill.version] = files
        self.rows.sort(key=lambda r: (r.name, r.shadowed_by or ""))

    def save(self, name: str, **changed: object) -> None:
        """Somebody saved the skill's files on disk."""
        self._change(name, **changed)

    async def skills(self) -> tuple[SkillRow, ...]:
        if self.fail is not None:
            raise self.fail
        return tuple(self.rows)

    async def skill(self, name: str, version: str | None = None) -> SkillDetail:
        row = self._row(name)
        wanted = row.version if version is None else "" if version == "-" else version
        skill = self.facts.get((name, wanted))
        if skill is None:
            raise UserFault("not_found", f"{name} has no version {wanted}", kind="version", name=wanted)
        files = self.texts[name][wanted]
        listed = tuple(SkillFile(p, len(d), sha(d), _kind(p)) for p, d in files.items())
        return SkillDetail(skill, row, listed, files["SKILL.md"].decode())

    async def read_file(self, name: str, path: str, version: str | None = None) -> bytes:
        row = self._row(name)
        files = self.texts[name][row.version if version is None else "" if version == "-" else version]
        if path not in files:
            raise UserFault("not_found", f"no {path}", kind="path", name=path)
        return files[path]

    async def places(self) -> tuple[SkillPlace, ...]:
        return tuple(self.folders)

    async def foreign_places(self) -> tuple[SkillPlace, ...]:
        used = {p.path for p in self.folders}
        return tuple(p for p in self.foreign if p.path not in used)

    async def add_place(self, folder: Path) -> None:
        kind = "foreign" if str(folder) in {p.path for p in self.foreign} else "extra"
        self.folders.insert(1, SkillPlace(kind, str(folder), True, True))
        self._tell()

    async def remove_place(self, folder: Path) -> None:
        self.folders = [p for p in self.folders if p.path != str(folder)]
        self._tell()

    async def trust_project(self, folder: Path, on: bool) -> None:
        path = str(folder / ".agents" / "skills")
        self.folders = [p for p in self.folders if p.path != path]
        if on:
            self.folders.insert(0, SkillPlace("project", path, True, True))
        self._tell()

    async def rescan(self) -> tuple[str, ...]:
        return ()

    async def remote_skills(self, *, refresh: bool = False) -> tuple[RemoteSkill, ...]:
        return tuple(self.served)

    def remote_problems(self) -> Mapping[str, tuple[str, ...]]:
        return {}

    async def read_remote(self, id_: str, path: str) -> bytes:
        return self.served_files[id_][path]

    async def approve_remote(self, id_: str, digest: str) -> None:
        self.served = [replace(s, approved=s.digest == digest) if s.id == id_ else s for s in self.served]

    async def revoke_remote(self, id_: str) -> None:
        self.served = [replace(s, approved=False, changed=False) if s.id == id_ else s for s in self.served]

    async def lint(self, paths: tuple[Path, ...]) -> tuple[LintReport, ...]:
        return ()

    async def match(self, text: str, session: str | None = None) -> tuple[SkillMatch, ...]:
        mode = self._host.settings.current().skills.activation
        out = []
        for row in (r for r in self.rows if r.loaded and not r.shadowed_by):
            skill = self.facts[row.name, row.version]
            hits = [k for k in skill.triggers.keywords if k.casefold() in text.casefold()]
            vetoes = [k for k in skill.triggers.exclude if k.casefold() in text.casefold()]
            reasons = tuple(Reason("keyword", k) for k in hits)
            like = difflib.SequenceMatcher(None, text.casefold(), skill.description.casefold()).ratio()
            match = SkillMatch(row.name, row.version, 0.8 if hits else round(like / 2, 2), False, reasons)
            if text.startswith(f"/{row.name}"):
                match = replace(match, chosen=True, score=1.0, reasons=(Reason("person"), *reasons))
            elif not row.enabled:
                match = replace(match, refused=Reason("disabled"))
            elif vetoes:
                match = replace(match, score=0.0, refused=Reason("excluded", vetoes[0]))
            elif not hits:
                match = replace(match, refused=Reason("below_threshold", "0.62", round(like, 2)))
            elif mode == "suggest":
                match = replace(match, refused=Reason("suggest_only"), suggested=True)
            else:
                match = replace(match, chosen=True)
            out.append(match)
        return tuple(sorted(out, key=lambda m: (not m.chosen, -m.score, m.name)))

    async def untrusted(self, roots: tuple[str, ...]) -> tuple[UntrustedProject, ...]:
        return ()

    async def preview_file(self, path: Path, name: str, file: str) -> bytes:
        return f"{name}/{file} in {path.name}".encode()

    async def preview(self, path: Path) -> tuple[InstallPreview, ...]:
        found = self.offers.get(path)
        if found is None:
            raise UserFault("bad_archive", f"{path.name} is no archive", reason="not_zip", file=path.name)
        if isinstance(found, HostError):
            raise found
        return found

    async def install(self, path: Path, *, replace: bool = False) -> tuple[SkillRow, ...]:
        rows = []
        for one in await self.preview(path):
            if one.replaces and not replace:
                raise UserFault("bad_skill", f"{one.name} is installed", reason="installed", name=one.name)
            self.rows = [r for r in self.rows if r.name != one.name]
            body = f"# {one.name}\n\n{one.description}\n"
            skill = SkillVersion(one.name, one.version, sha(body), one.description, body,
                                 allowed_tools=one.allowed_tools)  # fmt: skip
            row = SkillRow(one.name, one.name, one.description, "profile", f"{HOME}/{one.name}", one.version,
                           (version_row(skill, 1.0),), removable=True, problems=one.problems)  # fmt: skip
            self.put(row, (skill, {"SKILL.md": body.encode()}))
            self._note(one.name, "installed", str(path))
            rows.append(row)
        self._tell(*(r.name for r in rows))
        return tuple(rows)

    async def remove(self, name: str, version: str | None = None) -> None:
        row = self._row(name)
        if not row.removable:
            raise UserFault("usage", f"{name} is not of this profile", reason="not_removable", name=name)
        if version is None:
            self.rows = [r for r in self.rows if r.name != name]
        else:
            self._change(name, versions=tuple(v for v in row.versions if v.version != version))
        self._tell(name)

    async def export(self, name: str, target: Path) -> Path:
        self._row(name)
        self.exported.append((name, target))
        return target

    async def enable(self, name: str, on: bool) -> None:
        self._change(name, enabled=on)

    async def grant_tools(self, name: str, on: bool) -> None:
        self._note(
            name, "granted" if on else "revoked", " ".join(self.facts[name, self._row(name).version].allowed_tools)
        )
        self._change(name, granted=on)

    async def set_rollout(
        self, name: str, weights: Mapping[str, float], statuses: Mapping[str, SkillStatus] | None = None
    ) -> SkillRow:
        row = self._row(name)
        if abs(sum(weights.values()) - 1) > 1e-6:
            raise UserFault("usage", "weights must sum to 1", reason="weight_sum", sum=sum(weights.values()))
        versions = tuple(
            replace(v, weight=weights.get(v.version, 0.0), status=(statuses or {}).get(v.version, v.status))
            for v in row.versions
        )
        main = max(versions, key=lambda v: v.weight).version
        self._note(name, "rollout", ", ".join(f"{v.version}={v.weight:g}" for v in versions))
        self._change(name, versions=versions, version=main)
        return self._row(name)

    async def pins(self, name: str) -> tuple[SessionPin, ...]:
        self._row(name)
        return tuple(self.kept.get(name, ()))

    async def results(self, name: str) -> tuple[VersionResults, ...]:
        row = self._row(name)
        return self.done.get(name) or tuple(VersionResults(v.version, v.digest) for v in row.versions)

    async def diff(self, name: str, old: str, new: str) -> tuple[FileChange, ...]:
        before, after = (self.texts[name]["" if v == "-" else v] for v in (old, new))
        out = []
        for path in sorted(before.keys() | after.keys()):
            a, b = before.get(path), after.get(path)
            if a == b:
                continue
            change = "added" if a is None else "removed" if b is None else "changed"
            lines = difflib.unified_diff(
                (a or b"").decode().splitlines(), (b or b"").decode().splitlines(), old, new, lineterm=""
            )
            out.append(FileChange(path, change, "\n".join(lines)))
        return tuple(out)

    async def changes(self, name: str) -> tuple[SkillChange, ...]:
        self._row(name)
        return tuple(reversed(self.log.get(name, [])))

    def pin(self, session: str, name: str, version: str | None) -> SkillPin:
        """Give a session a version; see `Host.pin_skill`."""
        row = self._row(name)
        skill = self.facts[name, version or row.version]
        pin = SkillPin(name, skill.version, skill.digest, "person")
        old = [p for p in self.kept.get(name, []) if p.session != session]
        title = next((p.title for p in self.kept.get(name, []) if p.session == session), "")
        self.kept[name] = [*old, SessionPin(session, title, pin, True)]
        return pin

    # ---- inside

    def _row(self, name: str) -> SkillRow:
        found = next((r for r in self.rows if r.name == name and not r.shadowed_by), None)
        if found is None:
            raise UserFault("not_found", f"there is no skill {name}", kind="skill", name=name)
        return found

    def _change(self, name: str, **changed: object) -> None:
        row = self._row(name)
        self.rows[self.rows.index(row)] = replace(row, **changed)  # type: ignore[arg-type]
        self._tell(name)

    def _note(self, name: str, event: str, detail: str) -> None:
        row = next((r for r in self.rows if r.name == name), None)
        change = SkillChange(time.time(), row.version if row else "", sha(name), event, (), detail)
        self.log.setdefault(name, []).append(change)

    def _tell(self, *names: str) -> None:
        self._host.publish("", ev.LibraryChanged(names))


def _kind(path: str) -> str:
    kinds = {"SKILL.md": "body", "scripts": "script", "references": "reference", "assets": "asset"}
    return kinds.get(path.split("/")[0], "other")


def version_row(
    skill: SkillVersion, weight: float, status: SkillStatus = SkillStatus.STABLE, **more: object
) -> SkillVersionRow:
    """The row of a version."""
    return SkillVersionRow(skill.version, status, weight, skill.digest, f"{HOME}/{skill.name}", changed=1_796_000_000,
                           **more)  # type: ignore[arg-type]  # fmt: skip


TRAVEL = """# Travel planner

Plan a trip **day by day** from what the person says and what the tools find.

## Before the plan
1. Ask for dates, budget and pace if they are missing.
2. Read `references/visas.md` when the trip crosses a border.

## The plan

| Day | Morning | Afternoon | Evening |
|-----|---------|-----------|---------|
| 1 | Arrival | Old town | Harbour |
| 2 | Museum | Ferry | 夜市 |

- Never invent opening hours; look them up.
- Give sums in the person's currency.

```bash
python scripts/budget.py --days 5 --currency EUR
```

> A plain weather question is no trip.
"""


def stock(library: SkillLibrary) -> None:
    """A library that shows the range: versions under canary, scripts, broken, doubtful, off and shadowed ones."""

    def travel(version: str, body: str) -> SkillVersion:
        return SkillVersion(
            "travel-planner", version, sha(body), "Plan journeys day by day: routes, stays, budgets and visas. "
            "用于旅行规划：行程、住宿、预算与签证。", body,
            Triggers(("trip", "itinerary", "travel to", "旅行", "行程"), 
                     ("Plan five days in Kyoto", "帮我规划去成都的旅行"), ("weather", "天气")),
            2, ("maps.search_*", "host.run_skill_script"), ("document-writer",), (), "Travel planner",
            servers=("maps",), license="Apache-2.0", argument_hint="[where] [days]",
        )  # fmt: skip

    old, now, new = (
        travel("1.0.0", TRAVEL.replace("> A plain weather question is no trip.\n", "")),
        travel("1.1.0", TRAVEL),
        travel("1.2.0-beta", TRAVEL.replace("- Give sums", "- Offer two paces, calm and full.\n- Give sums")),
    )
    script = b'"""Sum up a trip."""\nimport argparse\n\nparser = argparse.ArgumentParser()\n'
    visas = b"# Visas\n\nAsk for the *passport*, not the place of living.\n"
    files = [
        {"SKILL.md": s.body.encode(), "scripts/budget.py": script, "references/visas.md": visas}
        for s in (old, now, new)
    ]
    files[2]["references/paces.md"] = b"# Paces\n\ncalm: three things a day\n"
    library.put(
        SkillRow(
            "travel-planner", "Travel planner", now.description, "profile", f"{HOME}/travel-planner", "1.1.0",
            (version_row(old, 0.0, SkillStatus.DEPRECATED), version_row(now, 0.9),
             version_row(new, 0.1, SkillStatus.BETA)),
            removable=True, needs=(SkillNeed("travel-planner", "server", "maps"),),
        ),
        *zip((old, now, new), files, strict=True),
    )  # fmt: skip
    library.done["travel-planner"] = (
        VersionResults("1.0.0", old.digest, 41, 203, 9, 4, 12, 5, 1.9312, 402_113, 88_120),
        VersionResults("1.1.0", now.digest, 118, 590, 6, 3, 61, 4, 4.4021, 1_120_500, 240_380),
        VersionResults("1.2.0-beta", new.digest, 13, 58, 7, 2, 3, 6, 0.5210, 131_002, 30_411),
    )
    library.kept["travel-planner"] = [
        SessionPin("c2", "Plan a week in Lisbon with the calendar server", SkillPin(
            "travel-planner", "1.0.0", old.digest, "keyword: trip; semantic 0.71: lexical"), False),
        SessionPin("c5", "Reading list", SkillPin("travel-planner", "1.1.0", now.digest, "person"), True),
    ]  # fmt: skip
    t = 1_796_000_000
    library.log["travel-planner"] = [
        SkillChange(t, "1.0.0", old.digest, "installed", (), "~/Downloads/travel-planner.zip"),
        SkillChange(t + 90_000, "1.1.0", now.digest, "changed", (FileChange("SKILL.md", "changed"),)),
        SkillChange(t + 180_000, "", now.digest, "rollout", (), "1.0.0=0, 1.1.0=0.9, 1.2.0-beta=0.1"),
    ]
    for name, label, words, keys, source in (
        ("document-writer", "Document writer", "Write letters, reports and minutes in a style. 撰写文档与纪要。",
         ("report", "minutes", "纪要"), "bundled"),
        ("data-analyst", "Data analyst", "Read a CSV, say what stands out, and draw the chart that shows it.",
         ("csv", "chart"), "bundled"),
    ):  # fmt: skip
        body = f"# {label}\n\n{words}\n"
        skill = SkillVersion(name, "1.0.0", sha(body), words, body, Triggers(keys), label=label)
        library.put(
            SkillRow(name, label, words, source, f"/opt/desktop-host/skills/{name}", "1.0.0", (version_row(skill, 1),),
                     enabled=name != "data-analyst"),
            (skill, {"SKILL.md": body.encode()}),
        )  # fmt: skip
    body = "# Changelog\n"
    skill = SkillVersion(
        "changelog", "", sha(body), "Keep a changelog: one line for each thing a reader notices.", body
    )
    library.put(
        SkillRow(
            "changelog", "Changelog", skill.description, "project", "/home/ada/src/app/.agents/skills/changelog", "",
            (version_row(skill, 1.0),),
            problems=(
                SkillProblem("yaml-repaired", "warning", 3, "description", True),
                SkillProblem("name-mismatch", "warning", 2, "Changelog", True),
                SkillProblem("bom", "warning", 1, "", True),
            ),
        ),
        (skill, {"SKILL.md": body.encode()}),
    )  # fmt: skip
    library.put(
        SkillRow(
            "broken-one",
            "broken-one",
            "",
            "profile",
            f"{HOME}/broken-one",
            "",
            (),
            loaded=False,
            removable=True,
            problems=(SkillProblem("unclosed", "error", 1, "", True), SkillProblem("empty-body", "warning", 0)),
        )
    )
    library.put(
        SkillRow("document-writer", "Document writer", "An older copy.", "foreign",
                 "/home/ada/.claude/skills/document-writer", "0.9.0",
                 shadowed_by="/opt/desktop-host/skills/document-writer")
    )  # fmt: skip


def parcels(library: SkillLibrary, good: Path, bad: Path) -> None:
    """Two archives to install: one that is new and holds a script, one that escapes its folder."""
    files = (
        SkillFile("SKILL.md", 2_410, sha("a"), "body"),
        SkillFile("scripts/collect.py", 5_120, sha("b"), "script"),
        SkillFile("references/style.md", 9_730, sha("c"), "reference"),
    )
    library.offers[good] = (
        InstallPreview(
            "release-notes", "2.0.0", "Turn merged changes into notes that a user can read.", files,
            ("scripts/collect.py",), ("github.list_*", "host.run_skill_script"), sum(f.size for f in files),
            (SkillProblem("unexpected-field", "warning", 6, "author", True),), None, good.name,
        ),
    )  # fmt: skip
    library.offers[bad] = UserFault(
        "bad_archive", "an entry leads outside", reason="outside", file=bad.name, entry="../../.bashrc",
        path="../../.bashrc", name="../../.bashrc",
    )  # fmt: skip


def travelled(host: FakeHost, session: str = "c2") -> None:
    """A chat in which a skill woke, another is offered, and something is missing."""
    pin = SkillPin("travel-planner", "1.0.0", host.library.kept["travel-planner"][0].pin.digest,
                   "keyword: trip; semantic 0.71: lexical")  # fmt: skip
    host.publish(session, ev.UserSaid("Plan a trip to Lisbon, five days, not too full."))
    host.publish(session, ev.SkillsChosen((pin,), "", ("document-writer",)))
    host.publish(session, ev.TurnStarted())
    host.publish(session, ev.Notice("skill_needs", FrozenDict({"skill": pin.name, "kind": "server", "name": "maps"})))
    host.publish(
        session, ev.AssistantSaid(assistant("Day 1: arrive, walk **Alfama**, dine by the river."), "script:demo")
    )
    host.publish(session, ev.TurnEnded(TurnStatus.DONE, TurnStop.END))
