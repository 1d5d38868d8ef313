"""Shares of new sessions among the versions of a skill: whole percents that always sum to 100."""

from __future__ import annotations

from collections.abc import Mapping

from desktop_host.core.skill_admin import SkillVersionRow
from desktop_host.core.skills import SkillStatus

WHOLE = 100

Shares = dict[str, int]
"""Version to percent."""


def fitted(wanted: Mapping[str, float]) -> Shares:
    """Whole percents nearest to these shares, which may have any positive sum. All zero: the last gets all."""
    total = sum(max(0.0, w) for w in wanted.values())
    if not wanted:
        return {}
    if total <= 0:
        last = list(wanted)[-1]
        return {v: WHOLE if v == last else 0 for v in wanted}
    exact = {v: max(0.0, w) * WHOLE / total for v, w in wanted.items()}
    shares = {v: int(x) for v, x in exact.items()}
    # The largest remainders get what rounding down left over.
    for version in sorted(exact, key=lambda v: shares[v] - exact[v])[: WHOLE - sum(shares.values())]:
        shares[version] += 1
    return shares


def moved(shares: Mapping[str, int], version: str, to: int) -> Shares:
    """The shares after one slider was moved: the others give or take in proportion, and the sum stays 100.

    Where all others have nothing, the newest of them takes what is left.
    """
    to = max(0, min(WHOLE, to))
    others = {v: s for v, s in shares.items() if v != version}
    if not others:
        return {version: WHOLE}
    left = WHOLE - to
    total = sum(others.values())
    if total == 0:
        newest = list(others)[-1]
        rest = {v: left if v == newest else 0 for v in others}
    else:
        exact = {v: s * left / total for v, s in others.items()}
        rest = {v: int(x) for v, x in exact.items()}
        for v in sorted(exact, key=lambda v: rest[v] - exact[v])[: left - sum(rest.values())]:
            rest[v] += 1
    return {v: to if v == version else rest[v] for v in shares}


def promoted(rows: tuple[SkillVersionRow, ...], version: str) -> tuple[dict[str, float], dict[str, SkillStatus]]:
    """All new sessions to one version, which is stable from now on."""
    return {r.version: 1.0 if r.version == version else 0.0 for r in rows}, {version: SkillStatus.STABLE}


def rolled_back(rows: tuple[SkillVersionRow, ...], version: str) -> dict[str, float]:
    """No new session to one version: its share goes to the stable others, the nearest older one if none has any."""
    others = [r for r in rows if r.version != version and r.loaded]
    heirs = [r for r in others if r.status is SkillStatus.STABLE] or others
    if not heirs:
        return {r.version: r.weight for r in rows}
    if not sum(r.weight for r in heirs):
        at = next(i for i, r in enumerate(rows) if r.version == version)
        older = [r for r in rows[:at] if r in heirs]
        heirs = [older[-1] if older else heirs[-1]]
        return {r.version: 1.0 if r is heirs[0] else 0.0 for r in rows}
    shares = fitted({r.version: r.weight for r in heirs})
    return {r.version: shares.get(r.version, 0) / WHOLE for r in rows}
