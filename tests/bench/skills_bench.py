"""What a library of skills costs: reading, reading again, an edit until it is visible, a storm, memory, triggers.

    python tests/bench/skills_bench.py [--skills 1000] [--json FILE]

Prints one line a figure; with `--json` also a list of `{figure, ours, unit, limit, bare, peers, ratio, target, met}`.
`bare` is `python-frontmatter` reading the same files: what a host that only wants names and descriptions pays. Where
AgentScope is installed, its loader reads the same folder in the same run, and ours must be quicker. Readings are
measured in processor time, files warm: a busy machine changes that little.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from desktop_host.core.skill_admin import SkillPlace
from desktop_host.core.skills import SkillVersion
from desktop_host.skills.choose import Policy, choose
from desktop_host.skills.matchers import LexicalMatcher
from desktop_host.skills.scan import Scanner
from tests.live.test_skills_watch import watched

BODY = "# Steps\n\n" + "Do one thing after the other, and say what was done.\n" * 80


def make(folder: Path, count: int) -> None:
    """Skills of the size that public ones have: a 4 KB body, a reference, a script."""
    for n in range(count):
        skill = folder / f"group-{n % 20:02}" / f"skill-{n:04}"
        (skill / "scripts").mkdir(parents=True)
        (skill / "references").mkdir()
        (skill / "SKILL.md").write_text(
            f"---\nname: skill-{n:04}\ndescription: Handle case number {n} of kind {n % 37}. Use when it comes up.\n"
            f"metadata:\n  desktop-host-keywords: case {n};事项{n}\n---\n{BODY}", "utf-8",
        )  # fmt: skip
        (skill / "scripts" / "run.py").write_text("print('done')\n")
        (skill / "references" / "guide.md").write_text("Guide.\n" * 100)


def rss_mb() -> float:
    """Memory of this process (MB)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def bare(folder: Path) -> float:
    """Seconds that python-frontmatter needs for the same SKILL.md files."""
    import frontmatter

    started = time.process_time()
    for path in folder.rglob("SKILL.md"):
        frontmatter.load(str(path))
    return time.process_time() - started


async def peer(folder: Path) -> dict[str, list[float]]:
    """What AgentScope's loader needs for the same folder: the first time and again; nothing where it is not there."""
    try:
        from agentscope.skill import LocalSkillLoader  # type: ignore[import-not-found]
    except ImportError:
        return {}
    first, again = [], []
    for _ in range(3):
        loader = LocalSkillLoader(str(folder), scan_subdir=True)
        for times in (first, again):
            started = time.process_time()
            await loader.list_skills()
            times.append(time.process_time() - started)
    return {"first": first, "again": again}


def figure(
    name: str, ours: float, unit: str, limit: float | None, bare_: float | None = None, peer_: float | None = None
) -> dict[str, Any]:
    """One line of the results. Where a peer was measured, ours must be below it."""
    ratio = round(ours / bare_, 3) if bare_ else None
    met = (limit is None or ours <= limit) and (peer_ is None or ours <= peer_)
    told = "" if peer_ is None else f"  peer {peer_:.3f}"
    print(
        f"{name:<44}{ours:10.3f} {unit:<6} limit {limit}  bare {bare_ and round(bare_, 3)}{told}"
        f"  {'ok' if met else 'MISSED'}"
    )
    peers = {} if peer_ is None else {"AgentScope": round(peer_, 4)}
    return {"figure": name, "ours": round(ours, 4), "unit": unit, "limit": limit, "bare": bare_ and round(bare_, 4),
            "peers": peers, "ratio": ratio, "target": limit, "met": met}  # fmt: skip


async def reloads(home: Path, folder: Path, paths: list[Path]) -> list[dict[str, Any]]:
    """Edits and a storm on a library that is watched."""
    count = len(paths)
    out = []
    async with watched(home, folder) as w:
        times = []
        for n in range(10):
            path = paths[n * 7 % count]
            path.write_text(path.read_text() + f"edit {n}\n")
            name = path.parent.name
            times.append(await w.until(lambda name=name, n=n: (w.body(name) or "").endswith(f"edit {n}"), 20))
        out.append(figure("save to visible, median of 10", statistics.median(times), "s", 1.0))
        out.append(figure("save to visible, slowest of 10", max(times), "s", 1.0))
        for turn in ("first", "second", "third", "fourth", "fifth"):
            gc.collect()
            before, scans = rss_mb(), w.watcher.scans
            started = time.perf_counter()
            await asyncio.to_thread(storm, paths, turn)
            await w.until(lambda turn=turn: all(_ends(w, paths[n], f"{turn} {n}") for n in range(500)), 60)
            took = time.perf_counter() - started
            for _ in range(10):
                await w.library.rescan()
            gc.collect()
            grown = rss_mb() - before
        out.append(figure("500 edits at once until all are visible", took, "s", 5.0))
        out.append(figure("readings of the library meanwhile", w.watcher.scans - scans, "", 20))
        out.append(figure("memory growth over a fifth storm", grown, "MB", 5))
    return out


def storm(paths: list[Path], word: str) -> None:
    """500 skills are saved, one right after the other."""
    for n in range(500):
        text = paths[n].read_text()
        paths[n].write_text(f"{text.rpartition('storm ')[0] or text}storm {word} {n}\n")


def _ends(w: Any, path: Path, words: str) -> bool:
    return (w.body(path.parent.name) or "").endswith(words)


def triggers(count: int) -> list[dict[str, Any]]:
    """One decision among many skills."""
    skills = {f"skill-{n:04}": SkillVersion(f"skill-{n:04}", "", "", f"Handle case {n} of kind {n % 37}.", "x")
              for n in range(count)}  # fmt: skip
    matcher = LexicalMatcher()
    choose("warm up", skills, matcher, Policy())
    started = time.perf_counter()
    for n in range(20):
        choose(f"please handle case {n} for me", skills, matcher, Policy())
    return [figure(f"one decision among {count} skills", (time.perf_counter() - started) / 20 * 1000, "ms", 100)]


def main() -> int:
    """Measure everything; exit 1 where a limit is missed."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--skills", type=int, default=1000)
    words.add_argument("--json", type=Path)
    asked = words.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "skills"
        make(folder, asked.skills)
        place = (SkillPlace("extra", str(folder)),)
        floor = min(bare(folder) for _ in range(2))
        theirs = asyncio.run(peer(folder))
        cold, warm = [], []
        for _ in range(3):
            scanner = Scanner()
            for times in (cold, warm):
                started = time.process_time()
                found = scanner.scan(place)
                times.append(time.process_time() - started)
            assert len(found.skills) == asked.skills and all(f.loaded for f in found.all)
        rows = [
            figure(f"first reading of {asked.skills} skills, all files digested", min(cold), "s", 3.0, floor,
                   min(theirs["first"]) if theirs else None),
            figure(f"reading {asked.skills} unchanged skills again", min(warm), "s", 0.5, floor,
                   min(theirs["again"]) if theirs else None),
            *asyncio.run(reloads(Path(scratch) / "home", folder, sorted(folder.rglob("SKILL.md")))),
            *triggers(asked.skills),
        ]  # fmt: skip
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1), "utf-8")
    return 0 if all(r["met"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
