"""The verbs `skills served`, `approve` and `revoke`: skills that servers serve (SEP-2640)."""

from __future__ import annotations

from typing import Any

from desktop_host.cli.context import Run, Verb
from desktop_host.cli.output import visible
from desktop_host.core.errors import UserFault
from desktop_host.core.remote_skills import RemoteSkill
from desktop_host.i18n import tr

MAIN = "SKILL.md"


def served_object(skill: RemoteSkill) -> dict[str, Any]:
    """One line of `skills served --json`."""
    return {
        "id": skill.id, "server": skill.server, "uri": skill.uri, "name": skill.name,
        "description": skill.description, "digest": skill.digest, "approved": skill.approved,
        "changed": skill.changed, "files": list(skill.files),
    }  # fmt: skip


def state_of(skill: RemoteSkill) -> str:
    """`approved`, `changed` or `new`."""
    return "approved" if skill.approved else "changed" if skill.changed else "new"


async def _listed(run: Run, id_: str = "") -> tuple[RemoteSkill, ...]:
    """What the enabled servers serve now; with an id only the servers that it can be of are started."""
    servers = run.host.servers
    names = (c.name for c in servers.configs() if c.enabled and (not id_ or id_.startswith(f"{c.name}--")))
    await servers.autostart(tuple(names))
    found = await run.host.skills.remote_skills(refresh=True)
    for server, told in run.host.skills.remote_problems().items():
        for problem in told:
            run.out.note(tr("cli.skills.served.problem", server=server, problem=visible(problem)))
    return found


async def _one(run: Run) -> RemoteSkill:
    id_ = run.ns.name
    found = next((s for s in await _listed(run, id_) if s.id == id_), None)
    if found is None:
        raise UserFault("not_found", f"no server serves a skill {id_!r} now", kind="skill", name=id_)
    return found


async def _served(run: Run) -> int:
    if run.ns.name:
        skill = await _one(run)
        body = (await run.host.skills.read_remote(skill.id, MAIN)).decode("utf-8", "replace")
        text = [f"{skill.id}  {tr(f'skills.served.{state_of(skill)}')}", *(f"  {f}" for f in skill.files), "", body]
        run.out.item(served_object(skill) | {"body": body}, visible("\n".join(text)))
        return 0
    rows = []
    for skill in await _listed(run):
        run.out.item(served_object(skill))
        rows.append([skill.id, tr(f"skills.served.{state_of(skill)}"), visible(skill.description)])
    if not rows and not run.out.json:
        run.out.note(tr("cli.skills.served.none"))
    run.out.table(rows)
    return 0


async def _approve(run: Run) -> int:
    skill = await _one(run)
    await run.host.skills.approve_remote(skill.id, run.ns.digest or skill.digest)
    run.out.item(
        {"id": skill.id, "digest": skill.digest, "approved": True},
        tr("cli.skills.served.approved", name=skill.id, count=len(skill.files), digest=skill.digest[:12]),
    )
    return 0


async def _revoke(run: Run) -> int:
    skill = await _one(run)
    await run.host.skills.revoke_remote(skill.id)
    run.out.item({"id": skill.id, "approved": False}, tr("cli.skills.served.revoked", name=skill.id))
    return 0


VERBS: dict[tuple[str, str | None], Verb] = {
    ("skills", "served"): _served,
    ("skills", "approve"): _approve,
    ("skills", "revoke"): _revoke,
}
