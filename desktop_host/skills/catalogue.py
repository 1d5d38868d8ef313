"""The skills as the model reads of them: the list in the system text, and a body with what belongs to it."""

from __future__ import annotations

from collections.abc import Sequence

from desktop_host.core.skill_admin import SkillFile
from desktop_host.core.skills import SkillVersion

INSTRUCTION = """# Skills
A skill is a folder of instructions for one kind of task. When a task fits one of these, call the tool use_skill with \
its name before you begin and follow what it returns; read further files of it with read_skill_file only when its \
instructions refer to them. When several fit, use the fewest that cover the task and say in which order."""
TEMPLATE = "- {name}: {description}"
SMALLEST = 40
"""Characters of a description that are worth listing."""
DEFAULT_WINDOW = 100_000
"""Tokens, where the model's context is unknown."""
BODY_LIMIT = 60_000
"""Characters of a body that are given at once; the rest is read on demand."""


def tokens_of(text: str) -> int:
    """Estimate of tokens: bytes / 3, which errs on the high side for English and fits Chinese."""
    return -(-len(text.encode()) // 3)


def catalogue(
    skills: Sequence[SkillVersion], dirs: Sequence[str], *, instruction: str, template: str, budget: int
) -> tuple[str, tuple[str, ...]]:
    """The list of skills within `budget` tokens, and the names that had no room.

    Over budget, descriptions are shortened evenly; where that is not enough, the last by name go.
    """
    if not skills or budget <= 0:
        return "", ()
    head = instruction.strip() or INSTRUCTION
    shape = template.strip("\n") or TEMPLATE
    longest = 1024
    while True:
        rows = [_row(shape, s, d, longest) for s, d in zip(skills, dirs, strict=True)]
        if tokens_of("\n".join([head, *rows])) <= budget or longest <= SMALLEST:
            break
        longest = max(SMALLEST, longest * 2 // 3)
    left = budget - tokens_of(head)
    kept: list[str] = []
    for row in rows:
        left -= tokens_of(row + "\n")
        if left < 0:
            break
        kept.append(row)
    dropped = tuple(s.name for s in skills[len(kept) :])
    if dropped:
        kept.append(f"({len(dropped)} more are not listed; use_skill takes their names too)")
    return "\n".join([head, *kept]), dropped


def _row(template: str, skill: SkillVersion, folder: str, longest: int) -> str:
    text = skill.description if len(skill.description) <= longest else skill.description[: longest - 1].rstrip() + "…"
    row = template
    for key, value in (("name", skill.name), ("version", skill.version), ("dir", folder), ("description", text)):
        row = row.replace("{" + key + "}", value)
    return row


def body_block(skill: SkillVersion, files: Sequence[SkillFile], main: str, *, source: str, arguments: str = "") -> str:
    """A skill's body as it stands in a message: marked, with its files, its arguments filled in."""
    body = skill.body
    if "$ARGUMENTS" in body:
        body = body.replace("$ARGUMENTS", arguments)
        arguments = ""
    if len(body) > BODY_LIMIT:
        body = body[:BODY_LIMIT] + f"\n[… cut; the rest is in {main}, to be read with read_skill_file …]"
    body = body.replace("</skill>", "<\\/skill>")
    version = f' version="{skill.version}"' if skill.version else ""
    parts = [f'<skill name="{skill.name}"{version} source="{source}">', body]
    if arguments:
        parts.append(f"Arguments: {arguments}")
    others = [f.path for f in files if f.path != main and f.kind != "script"]
    scripts = [f.path for f in files if f.kind == "script"]
    if others:
        parts.append(f"Files (tool read_skill_file, skill {skill.name!r}): {_listed(others)}")
    if scripts:
        parts.append(f"Scripts (tool run_skill_script, skill {skill.name!r}): {_listed(scripts)}")
    return "\n".join([*parts, "</skill>"])


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - 40} more" if len(paths) > 40 else ""
    return ", ".join(paths[:40]) + more
