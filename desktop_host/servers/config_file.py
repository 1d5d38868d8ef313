"""`servers.json`: read leniently, written atomically, shared with whoever edits it by hand."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.servers import ServerConfig
from desktop_host.core.text import decoded
from desktop_host.core.tools import ALIAS, alias_for
from desktop_host.core.values import canonical
from desktop_host.servers import jsonc, private
from desktop_host.servers.entries import OURS, from_json, to_json
from desktop_host.servers.jsonc_edit import edit, write

__all__ = ["ConfigFile", "from_json", "merge", "to_json"]

BACKUPS = 5
"""How many earlier versions are kept, as `servers.json.1` (the newest) to `servers.json.5`."""

SERVERS = "mcpServers"
_NOTHING: Any = object()


class ConfigFile:
    """The servers of a profile, in the shape that other hosts read too.

    What the file holds is the person's: a file that cannot be read is never written; an entry that cannot
    be read stays in the file and is listed in `problems`; comments, unknown keys and the order stay; what
    was edited elsewhere since `load` is merged server by server and key by key, and only a key changed on
    both sides takes our value.
    """

    problems: tuple[UserFault, ...] = ()
    """Entries of the last load or save that could not be used, each with file, line and column."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._base: dict[str, Any] = {}
        """Entries by the key they have in the file, as last seen there."""
        self._keys: dict[str, str] = {}
        """Alias to key, where the file's key is no alias."""
        self._seen: dict[str, Any] = {}
        """By file key: what we would have written for the entries that could be used."""
        self._turn = asyncio.Lock()

    async def load(self) -> tuple[ServerConfig, ...]:
        """Read the file; no file means no servers.

        Raises:
            UserFault: `bad_config` with `file`, `line`, `column`, `excerpt`; the file stays as it is.
        """
        async with self._turn:
            return await asyncio.to_thread(self._load)

    async def save(self, configs: Iterable[ServerConfig]) -> tuple[ServerConfig, ...]:
        """Make the file hold `configs`, merged with edits made elsewhere; returns what it holds now.

        Raises:
            UserFault: `bad_config`, the file cannot be read (then nothing is written) or not be written.
            KnownFault: `disk_full`.
        """
        wanted = tuple(configs)
        async with self._turn:
            return await asyncio.to_thread(self._save, wanted)

    def _load(self) -> tuple[ServerConfig, ...]:
        text, entries = self._read()
        return self._adopt(text, entries)

    def _save(self, configs: tuple[ServerConfig, ...]) -> tuple[ServerConfig, ...]:
        try:
            private.folder(self.path.parent)
            with _locked(self.path.with_name(f".{self.path.name}.lock")):
                text, node = self._read()
                # A file that vanished or lost its servers altogether is an accident, not a wish.
                theirs = self._base if node is None else node.value
                merged = merge(self._base, self._mine(configs), theirs)
                new = _rewritten(text, node, merged)
                if new != text:
                    self._replace(new)
                return self._adopt(*self._parse(new))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise KnownFault("disk_full", f"no room to write {self.path}", file=str(self.path)) from error
            raise self._fault(
                "not_writable", f"cannot write {self.path}: {error.strerror}", detail=error.strerror
            ) from error

    def _mine(self, configs: tuple[ServerConfig, ...]) -> dict[str, Any]:
        """Our entries by file key: untouched ones as the file has them, unusable ones kept."""
        names = {self._keys.get(c.name, c.name) for c in configs}
        mine = {k: v for k, v in self._base.items() if k not in names and k not in self._seen}
        for config in configs:
            key = self._keys.get(config.name, config.name)
            entry = to_json(config)
            own = entry.get(OURS, {})
            if config.name in self._keys and own.get("title") == key:  # The key says it already.
                del own["title"]
                if not own:
                    del entry[OURS]
            if key in self._seen:  # Put only what we changed into the entry as it was written.
                entry = merge(self._seen[key], entry, self._base[key])
                if "disabled" in entry:
                    entry["disabled"] = not config.enabled
            mine[key] = entry
        return mine

    def _adopt(self, text: str, node: jsonc.Node | None) -> tuple[ServerConfig, ...]:
        self._base, self._keys, self._seen = {}, {}, {}
        configs: list[ServerConfig] = []
        problems: list[UserFault] = []
        keys = {m.key for m in node.members} if node else set()
        for key in node.repeated if node else ():
            problems.append(self._fault("duplicate_key", f"{key!r} stands twice; the last one counts", server=key))
        for key, entry in (node.value if node else {}).items():
            self._base[key] = entry
            alias = key
            if not ALIAS.fullmatch(key) or key == "host":
                alias = alias_for(key, frozenset(keys | set(self._keys)))
                self._keys[alias] = key
            try:
                config = from_json(alias, entry)
            except UserFault as error:
                start = next(m.start for m in reversed(node.members) if m.key == key) if node else 0
                where = jsonc.place(text, start)
                found = {"file": str(self.path), "line": where.line, "column": where.column}
                problems.append(UserFault("bad_config", error.message, **{**error.params, **found}))
                continue
            self._seen[key] = to_json(config)
            if alias != key and config.title is None:
                config = replace(config, title=key)
            configs.append(config)
        self.problems = tuple(problems)
        return tuple(configs)

    def _read(self) -> tuple[str, jsonc.Node | None]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return "", None
        except OSError as error:
            raise self._fault(
                "not_readable", f"cannot read {self.path}: {error.strerror}", detail=error.strerror
            ) from error
        try:
            text = decoded(data)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
            raise self._fault(
                "not_utf8", f"{self.path} is not UTF-8", byte=error.start, line=line, column=column
            ) from None
        return self._parse(text)

    def _parse(self, text: str) -> tuple[str, jsonc.Node | None]:
        if not text.strip("\ufeff \t\r\n"):
            return text, None
        try:
            root = jsonc.read(text)
            if not isinstance(root.value, dict):
                raise jsonc.JsonProblem("json_not_an_object", text, root.start)
            node = root.member(SERVERS)
            if node is not None and not isinstance(node.value, dict):
                raise jsonc.JsonProblem("json_not_an_object", text, node.start)
        except jsonc.JsonProblem as problem:
            where = problem.place
            raise self._fault(
                problem.code, f"{problem.message} (line {where.line}, column {where.column} of {self.path})",
                line=where.line, column=where.column, excerpt=where.excerpt,
            ) from None  # fmt: skip
        return text, node

    def _replace(self, text: str) -> None:
        target = Path(os.path.realpath(self.path))  # A link into somebody's dotfiles stays a link.
        draft, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # Made with mode 0600.
        try:
            with os.fdopen(draft, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            self._back_up(target)
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        if sys.platform != "win32":
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _back_up(self, target: Path) -> None:
        if not target.exists():
            return
        kept = [target.with_name(f"{target.name}.{n}") for n in range(1, BACKUPS + 1)]
        for newer, older in zip(kept[-2::-1], kept[:0:-1], strict=True):
            if newer.exists():
                os.replace(newer, older)
        with os.fdopen(os.open(kept[0], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as copy:
            copy.write(target.read_bytes())

    def _fault(self, reason: str, message: str, **params: Any) -> UserFault:
        return UserFault("bad_config", message, reason=reason, file=str(self.path), **params)


def merge(base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Three-way merge of JSON objects, key by key; where both sides changed a plain value, `mine` stands."""
    out: dict[str, Any] = {}
    for key in dict.fromkeys([*theirs, *mine]):
        was, ours, other = (side.get(key, _NOTHING) for side in (base, mine, theirs))
        if _same(ours, was):
            chosen = other
        elif _same(other, was) or not all(isinstance(v, Mapping) for v in (ours, other)):
            chosen = ours
        else:
            chosen = merge(was if isinstance(was, Mapping) else {}, ours, other)
        if chosen is not _NOTHING:
            out[key] = chosen
    return out


def _same(a: Any, b: Any) -> bool:
    if a is _NOTHING or b is _NOTHING:
        return a is b
    return canonical(a) == canonical(b)


def _rewritten(text: str, node: jsonc.Node | None, entries: dict[str, Any]) -> str:
    """The file's text with these entries in it; everything else stays, comments too."""
    if node is not None:
        new = edit(text, node, entries)
    elif text.strip("\ufeff \t\r\n"):
        root = jsonc.read(text)
        new = edit(text, root, {**root.value, SERVERS: entries}) if entries else text
    else:
        return write({SERVERS: entries}) + "\n" if entries else text
    back = jsonc.read(new).member(SERVERS)
    if entries and (back is None or not _same(back.value, entries)):
        raise AssertionError("an edit of servers.json did not read back")  # Better no write than a wrong one.
    return new


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other hosts of this profile from writing between our reading and our writing."""
    with open(path, "a+b", opener=private.opener) as file:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
            try:
                yield
            finally:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
            yield
