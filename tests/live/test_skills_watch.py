"""Hot reload on a real file system: every way to save, move and delete, storms, lost folders, no watches left."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from desktop_host.core.events import Event, LibraryChanged
from desktop_host.core.settings import Settings
from desktop_host.skills.library import Library
from desktop_host.skills.watcher import Watcher

pytestmark = pytest.mark.live


@dataclass
class Fixed:
    settings: Settings = field(default_factory=Settings)

    def current(self) -> Settings:
        return self.settings


@dataclass
class Watched:
    library: Library
    watcher: Watcher
    folder: Path
    told: list[LibraryChanged]

    def body(self, name: str) -> str | None:
        found = self.library.snapshot.skills.get(name)
        return found.main.skill.body if found else None

    async def until(self, true: Callable[[], bool], within: float = 10.0) -> float:
        """Wait until it is true; how long that took."""
        started = time.monotonic()
        while not true():
            assert time.monotonic() - started < within, "it did not come true in time"
            await asyncio.sleep(0.01)
        return time.monotonic() - started


def write(folder: Path, body: str = "one") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: d\n---\n{body}\n", "utf-8")
    return folder / "SKILL.md"


@asynccontextmanager
async def watched(home: Path, *folders: Path, polling: bool = False) -> AsyncIterator[Watched]:
    told: list[LibraryChanged] = []

    def tell(event: Event) -> None:
        assert isinstance(event, LibraryChanged)
        told.append(event)

    (home / "skills").mkdir(parents=True, exist_ok=True)
    library = Library(home, Fixed(), tell, folders)  # type: ignore[arg-type]
    watcher = Watcher(library, polling=polling)
    watcher.start()
    try:
        one = Watched(library, watcher, home / "skills", told)
        await one.until(lambda: bool(watcher.watching) and watcher.scans > 0)
        yield one
    finally:
        await watcher.close()
        await library.close()


async def test_an_edit_is_visible_within_a_second_and_told_once(tmp_path):
    """Hazard P152."""
    file = write(tmp_path / "skills" / "demo")
    async with watched(tmp_path) as w:
        times = []
        for n in range(5):
            file.write_text(file.read_text().replace("\none", "\ntwo") + f"{n}\n")
            times.append(await w.until(lambda n=n: (w.body("demo") or "").endswith(str(n))))
        assert max(times) < 1.0, times
        await w.until(lambda: len(w.told) == 5)
        assert all(e.skills == ("demo",) for e in w.told)


async def test_every_way_to_save_is_seen(tmp_path):
    file = write(tmp_path / "skills" / "demo")
    head = "---\nname: demo\ndescription: d\n---\n"

    def in_place(text: str) -> None:
        file.write_text(text)

    def by_rename(text: str) -> None:
        draft = file.with_name(".SKILL.md.swp")
        draft.write_text(text)
        os.replace(draft, file)

    def by_backup(text: str) -> None:
        os.replace(file, file.with_name("SKILL.md~"))
        file.write_text(text)
        file.with_name("SKILL.md~").unlink()

    def by_delete(text: str) -> None:
        file.unlink()
        file.write_text(text)

    def same_size_and_time(text: str) -> None:
        info = file.stat()
        draft = file.with_name("x")
        draft.write_text(text)
        os.utime(draft, ns=(info.st_atime_ns, info.st_mtime_ns))
        os.replace(draft, file)

    async with watched(tmp_path) as w:
        for n, save in enumerate((in_place, by_rename, by_backup, by_delete, same_size_and_time)):
            await asyncio.to_thread(save, f"{head}body {n}\n")
            await w.until(lambda n=n: w.body("demo") == f"body {n}")


async def test_skills_come_go_move_and_are_renamed(tmp_path):
    async with watched(tmp_path) as w:
        write(w.folder / "a")
        await w.until(lambda: w.body("a") == "one")
        (w.folder / "group").mkdir()
        os.replace(w.folder / "a", w.folder / "group" / "a")
        await w.until(lambda: w.library.snapshot.skills["a"].folder == w.folder / "group" / "a")
        (w.folder / "group" / "a" / "references").mkdir()
        (w.folder / "group" / "a" / "references" / "x.md").write_text("x")
        await w.until(lambda: len(w.library.snapshot.skills["a"].main.manifest.files) == 2)
        shutil.rmtree(w.folder / "group")
        await w.until(lambda: w.body("a") is None)


async def test_a_broken_save_keeps_the_last_good_version_and_says_so(tmp_path):
    file = write(tmp_path / "skills" / "demo")
    good = file.read_text()
    async with watched(tmp_path) as w:
        file.write_text("---\nname: demo\n")
        await w.until(lambda: w.library.snapshot.skills["demo"].main.stale)
        assert w.body("demo") == "one"
        file.write_text(good.replace("one", "two"))
        await w.until(lambda: w.body("demo") == "two")
        assert not w.library.snapshot.skills["demo"].main.stale


async def test_edits_that_do_not_stop_are_read_all_the_same(tmp_path):
    """Half a second at most: an editor that saves all the time must not keep a skill from being read."""
    folder = tmp_path / "skills"
    write(folder / "demo", "start")
    async with watched(tmp_path, folder) as w:
        w.told.clear()
        began = time.monotonic()
        number = 0
        while w.body("demo") == "start" and time.monotonic() - began < 4:
            number += 1
            write(folder / "demo", f"edit {number}")
            await asyncio.sleep(0.05)
        assert w.body("demo") != "start", "it waited for a quiet that never came"
        assert len(w.told) <= 2


async def test_a_storm_of_500_edits_loses_nothing_and_is_not_500_readings(tmp_path):
    for n in range(100):
        write(tmp_path / "skills" / f"s{n:03}")
    async with watched(tmp_path) as w:
        before = w.watcher.scans

        def storm() -> None:
            for n in range(500):
                write(tmp_path / "skills" / f"s{n % 100:03}", f"edit {n}")

        await asyncio.to_thread(storm)
        await w.until(lambda: all(w.body(f"s{n:03}") == f"edit {400 + n}" for n in range(100)), 20)
        assert w.watcher.scans - before < 40


async def test_a_folder_that_is_deleted_and_made_anew_is_watched_again(tmp_path):
    place = tmp_path / "place"
    write(place / "demo")
    async with watched(tmp_path / "home", place) as w:
        assert w.body("demo") == "one"
        shutil.rmtree(place)
        await w.until(lambda: w.body("demo") is None)
        file = write(place / "demo", "again")
        await w.until(lambda: w.body("demo") == "again")
        await w.until(lambda: str(place) in w.watcher.watching)
        file.write_text(file.read_text().replace("again", "and again"))
        await w.until(lambda: w.body("demo") == "and again")


async def test_a_linked_skill_is_watched_where_it_really_lies(tmp_path):
    """Hazard P146."""
    file = write(tmp_path / "elsewhere" / "demo")
    (tmp_path / "home" / "skills").mkdir(parents=True)
    (tmp_path / "home" / "skills" / "demo").symlink_to(file.parent)
    async with watched(tmp_path / "home") as w:
        await w.until(lambda: str(file.parent) in w.watcher.watching)
        file.write_text(file.read_text().replace("one", "two"))
        assert await w.until(lambda: w.body("demo") == "two") < 2


async def test_without_watches_folders_are_polled(tmp_path):
    file = write(tmp_path / "skills" / "demo")
    async with watched(tmp_path, polling=True) as w:
        file.write_text(file.read_text().replace("one", "two"))
        await w.until(lambda: w.body("demo") == "two")
        assert w.watcher.polling


async def test_what_another_process_decided_is_taken_over(tmp_path):
    write(tmp_path / "skills" / "demo")
    async with watched(tmp_path) as w:
        (tmp_path / "skills-state.json").write_text('{"disabled": ["demo"]}')
        await w.until(lambda: w.library.state.disabled == {"demo"})


async def test_reading_skills_is_no_change_of_them(tmp_path):
    """Opening files raises events of its own; they must not set off a reading that opens files."""
    write(tmp_path / "skills" / "demo")
    async with watched(tmp_path) as w:
        scans = w.watcher.scans
        for _ in range(20):
            (tmp_path / "skills" / "demo" / "SKILL.md").read_bytes()
            await w.library.rescan()
        deadline = time.monotonic() + 1.5
        await w.until(lambda: time.monotonic() > deadline)
        assert w.watcher.scans == scans and not w.told
