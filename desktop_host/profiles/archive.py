"""A profile as one zip file, without its secrets; and back, with nothing trusted that the file says.

Blocking. What comes in gets an identity of its own, and no trust: its servers are commands that somebody else
wrote, so they are switched off; permissions, a proxy, certificates, variables, headers and a shared database that it
brings are dropped.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath

from desktop_host.core import settings as core
from desktop_host.core.errors import UserFault
from desktop_host.profiles import atomic
from desktop_host.profiles.settings_file import read_settings, rewrite_settings
from desktop_host.profiles.store import Profiles

FORM = 1
_MANIFEST = "profile.json"
_FILES = ("settings.toml", "servers.json", "toolkit.json")
_FOLDERS = ("skills", "blobs", "bundles")
_DATABASE = "host.db"
_OURS = "desktopHost"
"""Where a server's entry holds what is not common to all hosts."""
MAX_FILES = 100_000
MAX_BYTES = 4_000_000_000
"""All that may come out of one archive."""
MAX_RATIO = 200
"""So many times its packed size a file may have; text of a journal packs 10 to 20 times."""
FREE_BYTES = 1_000_000
"""Below this size any ratio will do."""
WELL_PACKED_BYTES = 500_000_000
"""Conversations and their blobs may pack better: a tool may answer ten million times the same letter, and exports of
before packed that as it came. All such files together unpack to no more than this."""


def export_profile(profiles: Profiles, name: str, target: Path) -> Path:
    """Write settings, servers, bundles, tool groups, skills and conversations to a zip file; it may be in use.

    Secrets are left out: the servers' file refers to them by name.

    Raises:
        UserFault: `not_found`.
        KnownFault: `disk_full` or `database_error`, the file cannot be written.
    """
    if name not in profiles.names():
        raise UserFault("not_found", f"there is no profile {name!r}", kind="profile", reason="profile", name=name)
    folder = profiles.path(name)
    manifest = {"app": "desktop-host", "form": FORM, "name": folder.name, "exported": time.time()}
    try:
        handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w+b") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
                bundle.writestr(_MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1))
                for path in _kept(folder):
                    bundle.write(path, path.relative_to(folder).as_posix(), _packing(path))
                if (folder / _DATABASE).exists():
                    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as room:
                        copy = Path(room) / _DATABASE
                        _snapshot(folder / _DATABASE, copy)
                        bundle.write(copy, _DATABASE, _packing(copy))
            os.replace(draft, target)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise atomic.fault_of(error, target) from error
    return target


def import_profile(profiles: Profiles, source: Path, name: str | None = None, *, trusted: bool = False) -> str:
    """Make a profile of a zip file that `export_profile` wrote; returns its name.

    Args:
        profiles: where it goes.
        source: the zip file.
        name: its name here; None: the name it had.
        trusted: it was exported by this very program just now (a clone); nothing is switched off or dropped.

    Raises:
        UserFault: `not_found`, there is no such file; `bad_archive` with a `reason`; `usage`, the name is bad or taken.
        KnownFault: `disk_full` or `database_error`.
    """
    try:
        bundle = zipfile.ZipFile(source)
    except FileNotFoundError:
        raise UserFault("not_found", f"there is no file {source}", kind="file", name=str(source)) from None
    except (zipfile.BadZipFile, OSError) as error:
        raise _bad(source, f"it is no zip file: {error}") from error
    with bundle:
        entries = list(_checked(source, bundle))
        wanted = name or _name_in(source, bundle)
        profiles.refuse_taken(wanted)
        room = profiles.incoming()
        try:
            for entry, parts in entries:
                _unpack(source, bundle, entry, room, room.joinpath(*parts))
            if not trusted:
                _distrust(source, room)
            for folder in ("skills", "logs"):
                (room / folder).mkdir(mode=0o700, exist_ok=True)
            (room / _MANIFEST).unlink()
            profiles.adopt(room, wanted)
        except OSError as error:
            raise atomic.fault_of(error, room) from error
        except (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
            # What `zipfile` and zlib raise for damaged, encrypted and unknown kinds of entries.
            raise _bad(source, f"it is damaged: {error}") from error
        finally:
            if room.exists():
                shutil.rmtree(room)
    return wanted


def _kept(folder: Path) -> Iterator[Path]:
    for name in _FILES:
        if (folder / name).is_file():
            yield folder / name
    for name in _FOLDERS:
        for path in sorted((folder / name).rglob("*")):
            # A link may point anywhere on this machine; what begins with `.new-` is still being unpacked.
            if (
                path.is_file()
                and not path.is_symlink()
                and not any(part.startswith(".new-") for part in path.relative_to(folder).parts)
            ):
                yield path


def _packing(path: Path) -> int:
    """How a file goes into the archive: as it is where packing would make it look like a bomb to the import."""
    size = path.stat().st_size
    if size <= FREE_BYTES:
        return zipfile.ZIP_DEFLATED
    packer, packed = zlib.compressobj(wbits=-15), 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            packed += len(packer.compress(block))
    packed += len(packer.flush())
    return zipfile.ZIP_STORED if size > packed * (MAX_RATIO // 2) else zipfile.ZIP_DEFLATED


def _snapshot(source: Path, target: Path) -> None:
    """One consistent state of a database that others may be writing to."""
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)


def _checked(source: Path, bundle: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipInfo, tuple[str, ...]]]:
    entries = bundle.infolist()
    if len(entries) > MAX_FILES:
        raise _bad(source, f"it holds {len(entries)} files")
    if sum(e.file_size for e in entries) > MAX_BYTES:
        raise _bad(source, "it would unpack to too much")
    seen: set[str] = set()
    well_packed = 0
    for entry in entries:
        if entry.is_dir():
            continue
        name = entry.filename
        path = PurePosixPath(name)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        hostile = (
            "\\" in name or ":" in name or "\0" in name or not name.isprintable() or path.is_absolute()
            or any(part in ("..", ".", "") or part != part.rstrip(" .") for part in name.split("/"))
            or kind not in (0, stat.S_IFREG) or bool(entry.flag_bits & 1) or name.casefold() in seen
        )  # fmt: skip
        if hostile:
            raise _bad(source, f"entry {name[:200]!r} may not be unpacked")
        top = path.parts[0]
        if entry.file_size > FREE_BYTES and entry.file_size > MAX_RATIO * max(1, entry.compress_size):
            well_packed += entry.file_size
            if top not in ("blobs", _DATABASE) or well_packed > WELL_PACKED_BYTES:
                raise _bad(source, f"entry {name[:200]!r} unpacks to {entry.file_size} bytes")
        seen.add(name.casefold())
        if name in (_MANIFEST, _DATABASE, *_FILES) or (top in _FOLDERS and len(path.parts) > 1):
            yield entry, path.parts
        else:
            raise _bad(source, f"entry {name[:200]!r} is no part of a profile")


def _name_in(source: Path, bundle: zipfile.ZipFile) -> str:
    try:
        manifest = json.loads(bundle.read(_MANIFEST))
        form, name = manifest["form"], manifest["name"]
    except (KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise _bad(source, f"it has no readable {_MANIFEST}") from error
    if form != FORM or not isinstance(name, str):
        raise _bad(source, f"its form is {form!r}; this version of the host knows {FORM}")
    return name


def _unpack(source: Path, bundle: zipfile.ZipFile, entry: zipfile.ZipInfo, room: Path, target: Path) -> None:
    for folder in reversed(target.relative_to(room).parents[:-1]):
        (room / folder).mkdir(mode=0o700, exist_ok=True)
    runs = target.relative_to(room).parts[0] == "bundles" and entry.external_attr >> 16 & 0o100
    handle = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o700 if runs else 0o600)
    with os.fdopen(handle, "wb") as out, bundle.open(entry) as packed:
        left = entry.file_size
        while block := packed.read(1 << 16):
            left -= len(block)
            if left < 0:
                raise _bad(source, f"entry {entry.filename[:200]!r} is bigger than it says")
            out.write(block)


def _distrust(source: Path, room: Path) -> None:
    _switch_off(room / "servers.json")
    _allow_nothing(room / "toolkit.json")
    try:
        settings = read_settings(room / "settings.toml").settings
        rules = tuple(rule for rule in settings.rules if rule.effect == "deny")
        values = {"tools.permission": "ask", "network.proxy": "", "network.ca_file": "", "storage.url": "",
                  "servers.env": "", "servers.headers": ""}  # fmt: skip
        changed = {key: value for key, value in values.items() if core.get(settings, key) != value}
        if changed or rules != settings.rules:
            rewrite_settings(room / "settings.toml", changed, {"rules": rules})
    except UserFault as error:
        raise _bad(source, error.message) from error
    database = room / _DATABASE
    if database.exists():
        try:
            with closing(sqlite3.connect(database)) as db, db:
                # Those that the person gave on another machine, or that somebody made up.
                if db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'grants'").fetchone():
                    db.execute("DELETE FROM grants")
        except sqlite3.Error as error:
            raise _bad(source, f"its {_DATABASE} cannot be used: {error}") from error


def _allow_nothing(toolkit: Path) -> None:
    """Let no group of somebody else allow its tools; a file that is no plain JSON is put aside whole."""
    if not toolkit.exists():
        return
    try:
        document = json.loads(toolkit.read_text("utf-8-sig"))
        for group in document.get("groups") or ():
            if group.get("permission") != "deny":
                group.pop("permission", None)
    except (ValueError, TypeError, AttributeError):
        toolkit.rename(toolkit.with_name("toolkit.imported.json"))
        return
    toolkit.write_text(json.dumps(document, ensure_ascii=False, indent=2), "utf-8")


def _switch_off(servers: Path) -> None:
    """Let no command of somebody else start by itself; a file that is no plain JSON is put aside whole."""
    if not servers.exists():
        return
    try:
        document = json.loads(servers.read_text("utf-8-sig"))
        for entry in document.get("mcpServers", {}).values():
            entry["disabled"] = True
            own = entry.get(_OURS, {})
            for key in ("enabled", "trusted", "sampling"):
                own.pop(key, None)
    except (ValueError, TypeError, AttributeError):
        servers.rename(servers.with_name("servers.imported.json"))
        return
    servers.write_text(json.dumps(document, ensure_ascii=False, indent=2), "utf-8")


def _bad(source: Path, what: str) -> UserFault:
    return UserFault("bad_archive", f"{source}: {what}", file=str(source), reason="profile")
