"""A skill of the library as a line for people."""

from __future__ import annotations

from desktop_host.core.skill_admin import SkillRow, SkillVersionRow
from desktop_host.core.skills import SkillProblem
from desktop_host.skills.library import Library
from desktop_host.skills.problems import problem
from desktop_host.skills.scan import Entry, Found
from desktop_host.skills.source import SkillChoices


def row_of(found: Found, library: Library, choices: SkillChoices) -> SkillRow:
    """The line of one skill."""
    main = found.main
    granted = library.state.granted(found.name)
    own = (*found.problems, *(p for e in found.entries.values() for p in e.problems))
    return SkillRow(
        found.name,
        main.skill.label or found.name,
        main.skill.description,
        found.place.kind,
        str(found.folder),
        found.version,
        tuple(_version_row(found, v, e) for v, e in found.entries.items()),
        found.name not in library.state.disabled,
        found.loaded,
        found.shadowed_by,
        (*own, *_links(found, library)),
        bool(granted) and set(main.skill.allowed_tools) <= set(granted),
        tuple(choices.needs(main.skill)),
        found.place.kind == "profile",
    )


def _links(found: Found, library: Library) -> list[SkillProblem]:
    """Required skills that are not there, and requirements that go in a circle."""
    known = library.snapshot.skills
    out = [problem("requires-unknown", 0, n) for n in found.main.skill.requires if n not in known]
    path = [found.name]
    while (nexts := known[path[-1]].main.skill.requires if path[-1] in known else ()) and len(path) < 20:
        path.append(nexts[0])
        if nexts[0] == found.name:
            out.append(problem("requires-cycle", 0, " > ".join(path)))
            break
    return out


def _version_row(found: Found, version: str, entry: Entry) -> SkillVersionRow:
    share = found.rollout[version]
    return SkillVersionRow(
        version, share.status, share.weight, entry.skill.digest, str(entry.folder), entry.problems, entry.loaded,
        entry.stale, entry.manifest.changed,
    )  # fmt: skip
