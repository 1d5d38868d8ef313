"""The knowledge index at size: real documents, build time, query times, memory, and 30 written questions.

Run: `python tests/bench/knowledge_bench.py [--documents 10000] [--fetch] [--semantic] [--docs DIR] [--compare]`.
With `--fetch` Debian's packages of PACKAGES are downloaded (110 MB, `apt-get download`) and unpacked into DIR; else
DIR must hold them, or the documents of this machine are used and the questions are left out. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "resources" / "servers" / "knowledge"))

from knowledge_extract import READERS  # noqa: E402
from knowledge_index import Index  # noqa: E402
from knowledge_meaning import Meaning  # noqa: E402

PACKAGES = ("linux-doc-6.1", "postgresql-doc-15", "python3.11-doc", "debian-handbook", "libstdc++-12-doc")
QUESTIONS = (
    ("How do I upgrade Debian to the next stable release?", ("en-US/sect.dist-upgrade", "en-US/sect.apt-get")),
    ("How do I verify the authenticity of a package?", ("en-US/sect.package-authentication",)),
    ("Set up an encrypted partition with LVM during installation", ("en-US/sect.installation-steps",)),
    ("How do I configure a RAID array with mdadm?", ("en-US/advanced-administration", "admin-guide/md")),
    ("Which firewall commands does nftables offer?", ("en-US/sect.firewall",)),
    ("How to rotate log files", ("en-US/", "library/logging", "howto/logging")),
    ("How do I create a table that is partitioned by range?", ("ddl-partitioning", "sql-createtable")),
    ("What does VACUUM FULL do?", ("sql-vacuum", "routine-vacuuming")),
    ("How do I dump a database and restore it?", ("backup-dump", "app-pgdump", "app-pgrestore", "app-pg-dumpall")),
    ("Which isolation levels are there?", ("transaction-iso", "sql-set-transaction", "mvcc")),
    ("Set up streaming replication with a standby server", ("warm-standby", "hot-standby", "high-availability")),
    ("How do I write a trigger in PL/pgSQL?", ("plpgsql-trigger", "trigger", "sql-createtrigger")),
    ("Search text with tsvector and tsquery", ("textsearch", "datatype-textsearch", "functions-textsearch")),
    ("What is a GIN index for?", ("gin", "indexes-types")),
    ("How do I grant privileges on a schema?", ("sql-grant", "ddl-priv", "ddl-schemas")),
    ("How do I read a JSON column with an operator?", ("functions-json", "datatype-json")),
    ("How do I run a subprocess and capture its output?", ("library/subprocess", "asyncio-subprocess")),
    ("How do I cancel an asyncio task?", ("library/asyncio-task", "asyncio-")),
    ("Parse command line arguments with subcommands", ("library/argparse", "howto/argparse")),
    ("How do I make a dataclass immutable?", ("library/dataclasses",)),
    ("Match a regular expression with a lookbehind", ("library/re", "howto/regex")),
    ("How do I write unit tests with setUp and tearDown?", ("library/unittest",)),
    ("Walk a directory tree recursively", ("library/os", "library/pathlib")),
    ("What is new in Python 3.11 about exception groups?", ("whatsnew/3.11", "tutorial/errors", "exceptions")),
    ("How does structural pattern matching with match work?", ("whatsnew/3.10", "controlflow", "compound_stmts")),
    ("How do I write a character device driver?", ("linux-doc",)),
    ("What does the vm.swappiness sysctl do?", ("sysctl/vm", "cgroup", "admin-guide/mm")),
    ("How do I limit memory with cgroup v2?", ("cgroup-v2", "cgroup-v1/memory", "mm/")),
    ("How do I submit a patch to the kernel?", ("submitting-patches", "process/")),
    ("ftrace: trace the functions that a process calls", ("trace/",)),
)
"""Questions and what the path of a right document holds."""


def fetch(docs: Path) -> None:
    """Download and unpack the packages, unless they are there."""
    docs.mkdir(parents=True, exist_ok=True)
    if any((docs / "usr").rglob("postgresql-doc-15")):
        return
    subprocess.run(["apt-get", "download", "-q", *PACKAGES], cwd=docs, check=True, stdout=subprocess.DEVNULL)
    for package in docs.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(docs)], check=True)
        package.unlink()


def gather(target: Path, documents: int, docs: Path | None) -> int:
    """Copy real documents into one folder: the packages', else this machine's and Python's own source."""
    roots = [Path("/usr/share/doc"), Path(sysconfig.get_path("stdlib"))]
    if docs is not None:  # The packages that the questions are about come first.
        roots = sorted(
            (docs / "usr" / "share" / "doc").iterdir(), key=lambda p: (p.name.startswith(("lib", "gcc")), p.name)
        )
    taken = 0
    for root in roots:
        for folder, names, files in os.walk(root):
            names[:] = sorted(n for n in names if n not in ("__pycache__", "test", "tests", "_sources"))
            for name in sorted(files):
                source = Path(folder, name)
                if taken >= documents:
                    return taken
                if source.suffix.lower() in READERS and source.is_file() and 200 < source.stat().st_size < 2_000_000:
                    to = target / root.name / source.relative_to(root)
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, to)
                    taken += 1
    return taken


def compare(docs: Path) -> dict[str, object]:
    """Words alone against words and sense, on a few documents that are right for each question and some others.

    Making vectors takes 10 to 30 ms of processor time a passage, too long for all documents.
    """
    root = docs / "usr" / "share" / "doc"
    every = sorted((p for p in root.rglob("*") if p.suffix.lower() in READERS and p.is_file()),
                   key=lambda p: (p.stat().st_size, str(p)))  # fmt: skip
    whole = [p for p in every if 1_000 < p.stat().st_size < 200_000 and "_sources" not in p.parts]
    chosen = {p for _q, right in QUESTIONS for p in [w for w in whole if any(r in str(w) for r in right)][:3]}
    chosen |= set(whole[:: max(1, len(whole) // 60)])
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "documents")
        for source in chosen:
            to = folder / source.relative_to(root)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, to)
        held = [sum(any(r in str(p) for r in right) for p in chosen) for _question, right in QUESTIONS]
        made: dict[str, object] = {"documents": len(chosen), "answerable": sum(n > 0 for n in held)}
        for way in ("words", "hybrid"):
            index = Index([folder], None, Meaning() if way == "hybrid" else None)
            index.refresh(force=True)
            busy = time.process_time()
            if index.meaning is not None:
                index.meaning.learn(index.store)
            made |= {"passages": index.stats()["passages"], f"{way}_learn_cpu_s": round(time.process_time() - busy, 1)}
            index.watched = True
            times, ranks = [], []
            for question, right in QUESTIONS:
                started = time.process_time()
                hits = index.search(question, 5)
                times.append((time.process_time() - started) * 1000)
                places = [n for n, hit in enumerate(hits, 1) if any(part in hit.path for part in right)]
                ranks.append(places[0] if places else 0)
            index.close()
            made |= {f"{way}_first": sum(r == 1 for r in ranks), f"{way}_in_five": sum(r > 0 for r in ranks),
                     f"{way}_query_cpu_p50_ms": round(statistics.median(times), 1)}  # fmt: skip
    return made


def memory_mb() -> float:
    """The most memory this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(documents: int, docs: Path | None, *, semantic: bool) -> dict[str, object]:
    """Build, ask, change; returns the figures."""
    with tempfile.TemporaryDirectory() as place:
        folder, cache = Path(place, "documents"), Path(place, "cache")
        found = gather(folder, documents, docs)
        before, busy = memory_mb(), time.process_time()
        started = time.perf_counter()
        index = Index([folder], cache, Meaning() if semantic else None)
        index.refresh(force=True)
        build, busy = time.perf_counter() - started, time.process_time() - busy
        if index.meaning is not None:
            index.meaning.learn(index.store)
        stats = index.stats()
        index.watched = True  # As in the server, where the system tells of changes.
        times: list[float] = []
        works: list[float] = []
        ranks: list[int] = []
        for question, right in QUESTIONS * 3:
            started, at_work = time.perf_counter(), time.process_time()
            hits = index.search(question, 5)
            times.append((time.perf_counter() - started) * 1000)
            works.append((time.process_time() - at_work) * 1000)
            places = [n for n, hit in enumerate(hits, 1) if any(part in hit.path for part in right)]
            ranks.append(places[0] if places else 0)
        ranks = ranks[: len(QUESTIONS)]
        changed = next(p for p in folder.rglob("*") if p.is_file())
        changed.write_text("<p>quokka wombat numbat</p>")
        started, at_work = time.perf_counter(), time.process_time()
        index.refresh(force=True)
        again, again_cpu = time.perf_counter() - started, time.process_time() - at_work
        database = sum(p.stat().st_size for p in cache.rglob("*.db*"))
        index.close()
    cuts, work_cuts = statistics.quantiles(times, n=20), statistics.quantiles(works, n=20)
    return {
        "documents": found, "indexed": stats["documents"], "passages": stats["passages"],
        "megabytes": round(int(str(stats["bytes"])) / 1e6, 1), "build_s": round(build, 1),
        "build_cpu_s": round(busy, 1),
        "documents_per_s": round(found / build), "query_p50_ms": round(statistics.median(times), 1),
        "query_p95_ms": round(cuts[18], 1), "query_cpu_p50_ms": round(statistics.median(works), 1),
        "query_cpu_p95_ms": round(work_cuts[18], 1), "one_change_s": round(again, 2),
        "one_change_cpu_s": round(again_cpu, 2),
        "memory_mb": round(memory_mb()), "memory_before_mb": round(before), "database_mb": round(database / 1e6, 1),
        "questions": len(QUESTIONS) if docs is not None else 0,
        "right_first": sum(rank == 1 for rank in ranks), "right_in_five": sum(rank > 0 for rank in ranks),
        "missed": [q for (q, _right), rank in zip(QUESTIONS, ranks, strict=True) if not rank] if docs else [],
        "semantic": semantic,
    }  # fmt: skip


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--docs", type=Path, default=ROOT / ".tools" / "docs")
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--semantic", action="store_true")
    parser.add_argument("--compare", action="store_true", help="words against words and sense, on few documents")
    args = parser.parse_args()
    if args.fetch:
        fetch(args.docs)
    if args.compare:
        print(json.dumps(compare(args.docs)))
        return 0
    docs = args.docs if args.docs.is_dir() else None
    print(json.dumps(measure(args.documents, docs, semantic=args.semantic), ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
