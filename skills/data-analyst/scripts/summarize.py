"""Summarise a table: `summarize.py FILE|- [--by COLUMN] [--month COLUMN] [--only COLUMN=VALUE] [--top N] [--rows N]`.

Reads CSV, TSV (the delimiter is found by itself), JSON lines or a JSON list; standard library only. Prints Markdown.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path

DATE = re.compile(r"(\d{4})\s*[-/.年]\s*(\d{1,2})(?:\s*[-/.月]\s*(\d{1,2}))?(?!\d)")
"""A date that begins with the year: 2026-03-09, 2026/3, 2026年3月9日. Others are read in more ways than one."""
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
    if text.lstrip().startswith(("{", "[")):
        whole = text.lstrip().startswith("[")
        items = json.loads(text) if whole else [json.loads(line) for line in text.splitlines() if line.strip()]
        if not all(isinstance(item, dict) for item in items):
            raise ValueError("it is JSON, but no list of objects")
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


def month(text: str) -> str | None:
    """The month that a cell names, as 2026-03; None where it names none."""
    found = DATE.match(text)
    return f"{found[1]}-{int(found[2]):02}" if found and 1 <= int(found[2]) <= 12 else None


def moment(text: str) -> tuple[int, ...]:
    """Year, month and day of a date, to sort by."""
    found = DATE.match(text)
    return tuple(int(part or 0) for part in found.groups()) if found else ()


def outliers(numbers: list[float]) -> int:
    """How many lie further than three times the middle half's width outside of it."""
    if len(numbers) < 8:
        return 0
    low, _, high = statistics.quantiles(numbers, n=4)
    room = 3 * (high - low)
    return sum(not low - room <= n <= high + room for n in numbers) if room else 0


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
        if len(numbers) >= 4:
            low, _, high = statistics.quantiles(numbers, n=4)
            what += f", middle half {shown(low)} to {shown(high)}"
        if far := outliers(numbers):
            what += f", {far} far out"
        kind = "number"
    elif there and sum(month(c) is not None for c in there) >= 0.9 * len(there):
        days = sorted((c for c in there if month(c)), key=moment)
        what = f"{days[0]} to {days[-1]}, {len({month(c) for c in days})} months"
        kind = "date"
    else:
        common = Counter(there).most_common(top)
        what = "; ".join(f"{value[:40]} ({count})" for value, count in common)
        kind = "text"
    return f"| {name} | {kind} | {gaps} | {len(set(there))} | {what} |"


def by_month(rows: list[dict[str, str]], columns: list[str], wanted: str) -> str:
    """Sums of each month and how they changed against the month before."""
    parts: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        parts[month(row.get(wanted, "")) or "(none)"].append(row)
    measured = [c for c in columns if c != wanted and any(number(r.get(c, "")) is not None for r in rows)]
    heads = " | ".join(f"{c}: sum (change)" for c in measured)
    lines = [f"\n| month | rows | {heads} |", "|---" * (len(measured) + 2) + "|"]
    before: dict[str, float] = {}
    for name in sorted(parts):
        cells = []
        for column in measured:
            numbers = [n for r in parts[name] if (n := number(r.get(column, ""))) is not None]
            total = sum(numbers)
            change = f" ({(total / before[column] - 1) * 100:+.1f} %)" if before.get(column) else ""
            cells.append(f"{shown(total)}{change}" if numbers else "-")
            before[column] = total
        lines.append(f"| {name} | {len(parts[name])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Read, filter, summarise."""
    words = argparse.ArgumentParser(description="Summarise a table of data.")
    words.add_argument("file", help="CSV, TSV or JSON lines; - for standard input")
    words.add_argument("--by", help="also group by this column")
    words.add_argument("--month", metavar="COLUMN", help="sums by the months of this column, with changes")
    words.add_argument("--rows", type=int, default=0, help="also print so many rows")
    words.add_argument("--only", action="append", default=[], metavar="COLUMN=VALUE", help="only these rows")
    words.add_argument("--top", type=int, default=5, help="commonest values shown")
    asked = words.parse_args()
    try:
        rows = read(asked.file)
    except (OSError, ValueError) as error:
        print(f"{asked.file} cannot be read: {error}", file=sys.stderr)
        return 1
    known = list(rows[0]) if rows else []
    for pair in asked.only:
        column, _, value = pair.partition("=")
        if rows and column not in known:
            print(f"there is no column {column!r}; there are: {', '.join(known)}", file=sys.stderr)
            return 1
        rows = [r for r in rows if r.get(column) == value]
    if not rows:
        print("no rows", file=sys.stderr)
        return 1
    columns = list(rows[0])
    for named in filter(None, (asked.by, asked.month)):
        if named not in columns:
            print(f"there is no column {named!r}; there are: {', '.join(columns)}", file=sys.stderr)
            return 1
    if asked.month and not any(month(r.get(asked.month, "")) for r in rows):
        print(f"{asked.month!r} holds no dates that begin with the year", file=sys.stderr)
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
    if asked.month:
        print(by_month(rows, columns, asked.month))
    if asked.rows > 0:
        print(f"\n| {' | '.join(columns)} |\n" + "|---" * len(columns) + "|")
        for row in rows[: asked.rows]:
            print(f"| {' | '.join(row.get(c, '')[:80] for c in columns)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
