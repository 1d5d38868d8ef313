"""Skills anywhere on disk, checked against the open format."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from desktop_host.core.errors import UserFault
from desktop_host.core.skill_admin import LintReport
from desktop_host.skills import archive
from desktop_host.skills.scan import Scanner, discover


def lint(paths: tuple[Path, ...]) -> tuple[LintReport, ...]:
    """Read skills anywhere; blocking.

    Raises:
        UserFault: `not_found`, a path that is not there or holds no skill; `bad_archive`.
    """
    reports = []
    scanner = Scanner()
    for path in paths:
        if path.is_file() and path.suffix.lower() in archive.SUFFIXES:
            reports += _packed(path)
            continue
        folder = path.parent if path.is_file() and path.name.lower() == "skill.md" else path
        if not folder.is_dir():
            raise UserFault("not_found", f"there is no skill at {path}", kind="path", name=str(path))
        found = list(discover(folder))
        if not found:
            raise UserFault("not_found", f"{path} holds no SKILL.md", kind="path", name=str(path))
        for root, versions in found:
            known = [v for v, _ in versions if v]
            for version, inner in versions:
                entry = scanner.entry(inner, version)
                problems = entry.problems
                if known and version == known[0]:
                    problems = (*problems, *scanner.rollout(root, known)[1])
                ok = not any(p.strict for p in problems)
                skill = entry.skill
                reports.append(
                    LintReport(str(inner), skill.label, skill.name, skill.version, ok, entry.loaded, problems)
                )
    return tuple(reports)


def _packed(path: Path) -> list[LintReport]:
    """The skills in an archive, each under the archive's own path."""
    with tempfile.TemporaryDirectory(prefix="desktop-host-lint-") as scratch:
        folder = Path(scratch) / path.stem
        folder.mkdir()
        archive.unpack(path, folder)
        return [replace(r, path=f"{path}{r.path.removeprefix(scratch)}") for r in lint((folder,))]
