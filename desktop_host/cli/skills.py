"""The verbs `skills`: the library without a window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from desktop_host.cli.context import Run, Verb
from desktop_host.cli.options import expanded
from desktop_host.core.errors import UserFault
from desktop_host.core.skill_admin import SkillDetail, SkillRow, SkillVersionRow, VersionResults
from desktop_host.core.skills import Reason, SkillMatch, SkillProblem
from desktop_host.i18n import Translator, current, tr


def problem_object(problem: SkillProblem) -> dict[str, Any]:
    """A problem as `--json` has it: English, never localised."""
    message, fix = problem_text(problem, Translator("en"))
    return {
        "code": problem.code, "severity": problem.severity, "line": problem.line, "message": message, "fix": fix,
        "strict": problem.strict, "file": problem.file,
    }  # fmt: skip


def problem_text(problem: SkillProblem, words: Translator) -> tuple[str, str]:
    """What is wrong, and how to mend it."""
    keys = (f"skill.problem.{problem.code}", f"skill.fix.{problem.code}")
    told = {"detail": problem.detail or "?", "file": problem.file, "line": problem.line}
    return words.text(keys[0], **told), words.text(keys[1], **told)


def row_object(row: SkillRow) -> dict[str, Any]:
    """One line of `skills list --json`."""
    return {
        "name": row.name, "label": row.label, "description": row.description, "version": row.version or None,
        "versions": [v.version for v in row.versions], "state": row.state, "enabled": row.enabled,
        "loaded": row.loaded, "source": row.source, "path": row.path, "shadowed_by": row.shadowed_by,
        "granted": row.granted, "needs": [{"kind": n.kind, "name": n.name} for n in row.needs],
        "problems": [problem_object(p) for p in row.problems],
    }  # fmt: skip


def detail_object(detail: SkillDetail) -> dict[str, Any]:
    """The line of `skills show --json`."""
    skill = detail.skill
    t = skill.triggers
    return row_object(detail.row) | {
        "version": skill.version or None, "digest": skill.digest, "body": skill.body, "license": skill.license,
        "compatibility": skill.compatibility, "allowed_tools": list(skill.allowed_tools),
        "triggers": {"keywords": list(t.keywords), "examples": list(t.examples), "exclude": list(t.exclude),
                     "threshold": t.threshold},
        "priority": skill.priority, "requires": list(skill.requires), "conflicts": list(skill.conflicts),
        "fallback": list(skill.fallback), "route": skill.route, "servers": list(skill.servers),
        "files": [{"path": f.path, "size": f.size, "sha256": f.sha256, "kind": f.kind} for f in detail.files],
    }  # fmt: skip


def match_object(match: SkillMatch) -> dict[str, Any]:
    """One line of `skills match --json`."""
    return {
        "name": match.name, "version": match.version or None, "score": match.score, "chosen": match.chosen,
        "reasons": [str(r) for r in match.reasons], "refused": None if match.refused is None else str(match.refused),
        "suggested": match.suggested,
    }  # fmt: skip


def reason_text(reason: Reason) -> str:
    """A reason in the person's language."""
    score = "" if reason.score is None else f" {reason.score:.2f}"
    key = f"skill.reason.{reason.code}"
    name = tr(key) if current().has(key) else reason.code
    return f"{name}{score}" + (f": {reason.value}" if reason.value else "")


async def _list(run: Run) -> int:
    rows = []
    for row in await run.host.skills.skills():
        run.out.item(row_object(row))
        state = tr(f"skill.state.{row.state}")
        rows.append([row.name, row.version, state, tr(f"skill.source.{row.source}"), _short(row.description)])
    if not rows and not run.out.json:
        run.out.note(tr("cli.skills.none"))
    run.out.table(rows)
    return 0


def _short(text: str) -> str:
    return text if len(text) <= 70 else text[:69].rstrip() + "…"


async def _show(run: Run) -> int:
    detail = await run.host.skills.skill(run.ns.name)
    lines = [f"{detail.row.label} {detail.skill.version}".strip(), detail.skill.description, detail.row.path]
    lines += [_problem_line(p) for p in detail.row.problems]
    lines += [f"  {f.path}  {f.size:,}" for f in detail.files]
    run.out.item(detail_object(detail), "\n".join([*lines, "", detail.skill.body]))
    return 0


def _problem_line(problem: SkillProblem) -> str:
    message, fix = problem_text(problem, current())
    place = f"{problem.file}:{problem.line}" if problem.line else problem.file
    return f"  {tr(f'skill.severity.{problem.severity}')}  {place}  {message} {fix}"


async def _lint(run: Run) -> int:
    paths = tuple(path for p in run.ns.paths if (path := expanded(p)) is not None)
    reports = await run.host.skills.lint(paths)
    for report in reports:
        state = "strict" if report.ok else "loaded" if report.loaded else "broken"
        text = [f"{report.path}  {tr(f'cli.skills.lint.{state}')}", *(_problem_line(p) for p in report.problems)]
        run.out.item(
            {
                "path": report.path, "name": report.name, "id": report.id, "version": report.version or None,
                "ok": report.ok, "loaded": report.loaded, "problems": [problem_object(p) for p in report.problems],
            },
            "\n".join(text),
        )  # fmt: skip
    return 0 if all(r.ok for r in reports) else 1


async def _install(run: Run) -> int:
    for row in await run.host.skills.install(expanded(run.ns.path) or Path()):
        run.out.item(row_object(row), tr("cli.skills.installed", name=row.name, path=row.path))
        for problem in row.problems:
            run.out.note(_problem_line(problem))
    return 0


async def _remove(run: Run) -> int:
    await run.host.skills.remove(run.ns.name)
    run.out.item({"name": run.ns.name, "removed": True}, tr("cli.skills.removed", name=run.ns.name))
    return 0


async def _match(run: Run) -> int:
    for match in await run.host.skills.match(run.ns.text):
        mark = "+" if match.chosen else "?" if match.suggested else "-"
        why = "; ".join(reason_text(r) for r in (*match.reasons, *([match.refused] if match.refused else [])))
        run.out.item(match_object(match), f"{mark} {match.score:5.3f}  {match.name} {match.version}  {why}")
    return 0


def version_object(row: SkillVersionRow, skill: SkillRow, results: VersionResults | None) -> dict[str, Any]:
    """One line of `skills versions --json`."""
    out: dict[str, Any] = {
        "name": skill.name, "version": row.version or None, "status": row.status.value, "weight": round(row.weight, 6),
        "digest": row.digest, "path": row.path, "loaded": row.loaded, "stale": row.stale,
        "problems": [problem_object(p) for p in row.problems],
    }  # fmt: skip
    r = results or VersionResults(row.version, row.digest)
    out["results"] = {
        "sessions": r.sessions, "turns": r.turns, "failed_turns": r.failed_turns, "tool_errors": r.tool_errors,
        "thumbs_up": r.thumbs_up, "thumbs_down": r.thumbs_down, "cost_usd": r.cost_usd,
    }  # fmt: skip
    return out


async def _versions(run: Run) -> int:
    skill = (await run.host.skills.skill(run.ns.name)).row
    results = {(r.version, r.digest): r for r in await run.host.skills.results(run.ns.name)}
    for row in skill.versions:
        result = results.get((row.version, row.digest))
        _version_line(run, row, skill, result)
    return 0


def _version_line(run: Run, row: SkillVersionRow, skill: SkillRow, results: VersionResults | None) -> None:
    used = "" if results is None else tr("cli.skills.used", turns=results.turns, failed=results.failed_turns)
    status = tr(f"skill.status.{row.status.value}")
    run.out.item(
        version_object(row, skill, results), f"{row.version or '-':<16}{status:<12}{row.weight:6.1%}  {used}".rstrip()
    )


async def _rollout(run: Run) -> int:
    weights: dict[str, float] = {}
    for pair in run.ns.weights:
        version, equals, text = pair.rpartition("=")
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            equals = ""
        if not equals or not version:
            raise UserFault("usage", f"{pair!r} is not VERSION=WEIGHT, like 1.1.0=0.9", reason="bad_weight",
                            version=pair, value=text)  # fmt: skip
        weights[version] = number
    skill = await run.host.skills.set_rollout(run.ns.name, weights)
    for row in skill.versions:
        _version_line(run, row, skill, None)
    return 0


async def _pin(run: Run) -> int:
    pin = await run.host.pin_skill(run.ns.session, run.ns.name, run.ns.skill_version)
    run.out.item(
        {"session": run.ns.session, "name": pin.name, "version": pin.version or None, "digest": pin.digest},
        tr("cli.skills.pinned", name=pin.name, version=pin.version or "-"),
    )
    return 0


VERBS: dict[tuple[str, str | None], Verb] = {
    ("skills", "list"): _list,
    ("skills", "show"): _show,
    ("skills", "lint"): _lint,
    ("skills", "install"): _install,
    ("skills", "remove"): _remove,
    ("skills", "match"): _match,
    ("skills", "versions"): _versions,
    ("skills", "rollout"): _rollout,
    ("skills", "pin"): _pin,
}
