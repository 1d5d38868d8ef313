"""Join `resources/locale/<language>/*.po` into one `desktop_host.mo` a language.

    python packaging/compile_locale.py [--check]

`--check` writes nothing and fails where a compiled file is stale or a language lacks a key of another.
"""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

FIXED = datetime(2026, 1, 1, tzinfo=UTC)
"""The same texts give the same file, whenever they are compiled."""
LOCALE = Path(__file__).resolve().parent.parent / "resources" / "locale"


def joined(language: str) -> Catalog:
    """All messages of a language; a key in two files is an error."""
    whole = Catalog(locale=language, fuzzy=False, creation_date=FIXED, revision_date=FIXED)
    origin: dict[str, str] = {}
    for path in sorted((LOCALE / language).glob("*.po")):
        with path.open("rb") as file:
            part = read_po(file, locale=language, abort_invalid=True)
        for message in part:
            if not message.id:
                continue
            key = message.id if isinstance(message.id, str) else message.id[0]
            if key in origin:
                raise SystemExit(f"{path.name}: {key} stands in {origin[key]} too")
            if not message.string or not all(message.string if isinstance(message.string, tuple) else [message.string]):
                raise SystemExit(f"{language}/{path.name}: {key} has no text")
            origin[key] = path.name
            whole.add(message.id, message.string)
    return whole


def keys(catalog: Catalog) -> set[str]:
    """The keys of a catalog."""
    return {m.id if isinstance(m.id, str) else m.id[0] for m in catalog if m.id}


def main() -> int:
    """Compile or check."""
    check = "--check" in sys.argv
    catalogs = {p.name: joined(p.name) for p in sorted(LOCALE.iterdir()) if p.is_dir()}
    every = set().union(*(keys(c) for c in catalogs.values()))
    bad = False
    for language, catalog in catalogs.items():
        for key in sorted(every - keys(catalog)):
            print(f"{language} lacks {key}", file=sys.stderr)
            bad = True
        out = io.BytesIO()
        write_mo(out, catalog)
        target = LOCALE / language / "desktop_host.mo"
        if check:
            if not target.exists() or target.read_bytes() != out.getvalue():
                print(f"{target.name} of {language} is stale: run packaging/compile_locale.py", file=sys.stderr)
                bad = True
        else:
            target.write_bytes(out.getvalue())
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main())
