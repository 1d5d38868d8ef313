"""Which version a new session gets: weights in `rollout.toml`, and a stable draw by session and skill."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from desktop_host.core.errors import UserFault
from desktop_host.core.skills import SkillProblem, SkillStatus
from desktop_host.skills.problems import problem

FILE = "rollout.toml"
SLACK = 1e-6
"""How far weights may be from a sum of 1."""


@dataclass(frozen=True, slots=True)
class Share:
    """Status and weight of one version."""

    status: SkillStatus = SkillStatus.STABLE
    weight: float = 0.0


Rollout = dict[str, Share]
"""Version to its share, in version order; weights sum to 1."""


def version_key(version: str) -> tuple[Any, ...]:
    """Sorts versions as people mean it: 1.9 < 1.10, 2.0.0-beta < 2.0.0."""
    main, _, pre = version.partition("+")[0].removeprefix("v").partition("-")

    def parts(text: str) -> tuple[tuple[int, int, str], ...]:
        return tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in re.split(r"[._-]", text) if p)

    return (parts(main), 0 if pre else 1, parts(pre), version)


def ordered(versions: Iterable[str]) -> list[str]:
    """Versions, oldest first."""
    return sorted(versions, key=version_key)


def default_for(versions: Iterable[str]) -> Rollout:
    """Without a `rollout.toml`: the newest that is no pre-release gets every session."""
    names = ordered(versions)
    finished = [v for v in names if "-" not in v] or names
    return {
        v: Share(SkillStatus.STABLE if "-" not in v else SkillStatus.BETA, 1.0 if finished and v == finished[-1] else 0)
        for v in names
    }


def read(text: str, versions: Iterable[str]) -> tuple[Rollout, tuple[SkillProblem, ...]]:
    """The rollout that a file asks for, made to fit the versions that are there."""
    names = ordered(versions)
    problems: list[SkillProblem] = []
    try:
        table = tomllib.loads(text.removeprefix("\ufeff")).get("versions", {})
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+)", str(error))
        problems.append(problem("rollout-unreadable", int(place[1]) if place else 1, str(error), FILE))
        return default_for(names), tuple(problems)
    lines = text.split("\n")
    shares: Rollout = {}
    for version, given in table.items() if isinstance(table, dict) else ():
        line = next((n for n, ln in enumerate(lines, 1) if ln.strip().startswith("[") and version in ln), 1)
        if version not in names:
            problems.append(problem("rollout-unknown-version", line, version, FILE))
            continue
        given = given if isinstance(given, dict) else {}
        status = str(given.get("status", "stable"))
        if status not in {s.value for s in SkillStatus}:
            problems.append(problem("rollout-status", line, status, FILE))
            status = "stable"
        weight = given.get("weight", 0.0)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= 1:
            problems.append(problem("rollout-weights", line, f"{version}: {weight}", FILE))
            weight = 0.0
        shares[version] = Share(SkillStatus(status), float(weight))
    full = {v: shares.get(v, Share(weight=0.0)) for v in names}
    total = sum(s.weight for s in full.values())
    if total <= 0:
        if shares:
            problems.append(problem("rollout-weights", 1, "0", FILE))
        base = default_for(v for v in names if full[v].status is not SkillStatus.DEPRECATED) or default_for(names)
        return {v: replace(full[v], weight=base[v].weight if v in base else 0.0) for v in names}, tuple(problems)
    if abs(total - 1) > SLACK:
        problems.append(problem("rollout-weights", 1, f"{total:g}", FILE))
    return {v: replace(s, weight=s.weight / total) for v, s in full.items()}, tuple(problems)


def draw(session: str, name: str) -> float:
    """The place of a session on the scale from 0 to 1: the first 8 bytes of sha256 of `session/name`."""
    return int.from_bytes(hashlib.sha256(f"{session}/{name}".encode()).digest()[:8]) / 2**64


def route(session: str, name: str, rollout: Rollout) -> str:
    """The version that a session gets: its draw against the cumulated weights in version order."""
    place, sum_ = draw(session, name), 0.0
    chosen = ""
    for version, share in rollout.items():
        if share.weight > 0:
            chosen = version
            sum_ += share.weight
            if place < sum_:
                break
    return chosen or next(reversed(rollout), "")


def main_version(rollout: Rollout) -> str:
    """The version with the greatest weight, the newest of equals."""
    return max(rollout, key=lambda v: (rollout[v].weight, version_key(v)), default="")


def settle(rollout: Rollout, weights: Mapping[str, float], statuses: Mapping[str, SkillStatus]) -> Rollout:
    """A rollout with other weights.

    What the named weights leave over goes to the stable versions that were not named, in proportion to their
    present weights (evenly where those are 0); all other unnamed versions get 0.

    Raises:
        UserFault: `usage`, an unknown version, a weight outside 0..1, or a sum other than 1.
    """
    for version in (*weights, *statuses):
        if version not in rollout:
            known = ", ".join(rollout)
            raise UserFault("not_found", f"there is no version {version}; there are: {known}", kind="version",
                            name=version, choices=known)  # fmt: skip
    for version, weight in weights.items():
        if not 0 <= weight <= 1:
            raise UserFault("usage", f"{version}: a weight is a number from 0 to 1, not {weight}",
                            reason="bad_weight", version=version, value=weight)  # fmt: skip
    new = {v: Share(statuses.get(v, s.status), weights.get(v, 0.0)) for v, s in rollout.items()}
    if not weights:
        return {v: Share(new[v].status, s.weight) for v, s in rollout.items()}
    left = 1 - sum(weights.values())
    heirs = [v for v, s in new.items() if v not in weights and s.status is SkillStatus.STABLE]
    if left > SLACK and heirs:
        old = sum(rollout[v].weight for v in heirs)
        for v in heirs:
            new[v] = replace(new[v], weight=left * (rollout[v].weight / old if old else 1 / len(heirs)))
        left = 0.0
    if abs(left) > SLACK:
        raise UserFault("usage", f"the weights sum to {1 - left:g}, not to 1", reason="weight_sum", sum=1 - left)
    return new


def write(text: str, rollout: Rollout) -> str:
    """The file with these shares; its comments and unknown keys stay."""
    import tomlkit

    try:
        document = tomlkit.parse(text)
    except ValueError:
        document = tomlkit.document()
    table = document.get("versions")
    if not isinstance(table, dict):
        table = document["versions"] = tomlkit.table(is_super_table=True)
    for version in [v for v in table if v not in rollout]:
        del table[version]
    for version, share in rollout.items():
        if version not in table:
            table[version] = tomlkit.table()
        table[version]["status"] = share.status.value
        table[version]["weight"] = round(share.weight, 6)
    return tomlkit.dumps(document)
