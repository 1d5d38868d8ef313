"""Summarise a table: `summarize.py FILE|- [--by COLUMN] [--only COLUMN=VALUE] [--top N]`.

Reads CSV, TSV (the delimiter is found by itself) or JSON lines; standard library only. Prints Markdown.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path

MISSING = {"", "na", "n/a", "null", "none", "nan", "-", "无", "缺失"}


def read(source: str) -> list[dict[str, str]]:
    """The rows of a file, or of standard input for `-`."""
    raw = sys.stdin.buffer.read() if source == "-" else Path(source).expanduser().read_bytes()
    for encoding in ("utf-8-sig", "gb18030", "latin-1"):
        try:
            text = raw.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    if text.lstrip().startswith("{"):
        items = [json.loads(line) for line in text.splitlines() if line.strip()]
        columns = list(dict.fromkeys(key for item in items for key in item))
        return [{c: "" if item.get(c) is None else str(item.get(c)) for c in columns} for item in items]
    try:
        dialect = csv.Sniffer().sniff(text[:16384], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    rows = csv.DictReader(io.StringIO(text), dialect=dialect)
    return [{(k or "?").strip(): (v or "").strip() for k, v in row.items() if isinstance(v, str)} for row in rows]


def number(text: str) -> float | None:
    """The number that a cell holds: `1,234.5`, `12 %`, `¥30`; None where it holds none."""
    plain = text.replace(",", "").replace("%", "").strip(" $€£¥￥")
    try:
        value = float(plain)
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None


def shown(value: float) -> str:
    """A figure with six digits at most."""
    return f"{value:,.6g}" if abs(value) < 1e15 else f"{value:.3e}"


def describe(name: str, cells: list[str], top: int) -> str:
    """One line of the table of columns."""
    there = [c for c in cells if c.lower() not in MISSING]
    numbers = [n for c in there if (n := number(c)) is not None]
    gaps = len(cells) - len(there)
    if there and len(numbers) >= 0.9 * len(there):
        spread = f", sd {shown(statistics.stdev(numbers))}" if len(numbers) > 1 else ""
        what = (
            f"{shown(min(numbers))} to {shown(max(numbers))}, mean {shown(statistics.fmean(numbers))}, "
            f"median {shown(statistics.median(numbers))}{spread}, sum {shown(sum(numbers))}"
        )
        kind = "number"
    else:
        common = Counter(there).most_common(top)
        what = "; ".join(f"{value[:40]} ({count})" for value, count in common)
        kind = "text"
    return f"| {name} | {kind} | {gaps} | {len(set(there))} | {what} |"


def main() -> int:
    """Read, filter, summarise."""
    words = argparse.ArgumentParser(description="Summarise a table of data.")
    words.add_argument("file", help="CSV, TSV or JSON lines; - for standard input")
    words.add_argument("--by", help="also group by this column")
    words.add_argument("--only", action="append", default=[], metavar="COLUMN=VALUE", help="only these rows")
    words.add_argument("--top", type=int, default=5, help="commonest values shown")
    asked = words.parse_args()
    try:
        rows = read(asked.file)
    except (OSError, ValueError) as error:
        print(f"{asked.file} cannot be read: {error}", file=sys.stderr)
        return 1
    for pair in asked.only:
        column, _, value = pair.partition("=")
        rows = [r for r in rows if r.get(column) == value]
    if not rows:
        print("no rows", file=sys.stderr)
        return 1
    columns = list(rows[0])
    if asked.by and asked.by not in columns:
        print(f"there is no column {asked.by!r}; there are: {', '.join(columns)}", file=sys.stderr)
        return 1
    doubled = len(rows) - len({tuple(r.get(c, "") for c in columns) for r in rows})
    print(f"{len(rows):,} rows, {len(columns)} columns, {doubled} doubled rows\n")
    print("| column | kind | missing | distinct | values |\n|---|---|---|---|---|")
    for column in columns:
        print(describe(column, [r.get(column, "") for r in rows], asked.top))
    if asked.by:
        groups: dict[str, list[dict[str, str]]] = defaultdict(list)
        for row in rows:
            groups[row.get(asked.by, "")].append(row)
        measured = [c for c in columns if c != asked.by and any(number(r.get(c, "")) is not None for r in rows)]
        print(f"\n| {asked.by} | rows | " + " | ".join(f"{c}: mean / sum" for c in measured) + " |")
        print("|---" * (len(measured) + 2) + "|")
        for value, part in sorted(groups.items(), key=lambda g: -len(g[1]))[:50]:
            cells = []
            for column in measured:
                numbers = [n for r in part if (n := number(r.get(column, ""))) is not None]
                cells.append(f"{shown(statistics.fmean(numbers))} / {shown(sum(numbers))}" if numbers else "-")
            print(f"| {value or '(none)'} | {len(part)} | " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
