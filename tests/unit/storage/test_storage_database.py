from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from desktop_host.core.errors import KnownFault, PeerFault, UserFault
from desktop_host.core.events import AssistantSaid, Stamped, ToolSettled, UserSaid
from desktop_host.core.messages import Message, Outcome, Role, Text
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.values import FrozenDict
from desktop_host.storage import Storage, database, open_storage, set_aside
from desktop_host.storage.blobs import join, split
from desktop_host.storage.migrations import STEPS, migrate


def files(folder: Path) -> dict[Path, tuple[bytes, int]]:
    return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.glob("host.db*")}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def fill(folder: Path) -> None:
    async with open_storage(folder) as storage:
        await storage.history.create("s", "t", SessionOptions())
        await storage.history.append([Stamped(1, 1.0, "s", 1, UserSaid("x y " * 5_000))])


async def test_only_the_owner_can_read_what_is_kept(tmp_path: Path) -> None:
    """Hazard O136."""
    folder = tmp_path / "new" / "profile"
    await fill(folder)
    assert mode(folder) == 0o700
    for path in folder.rglob("*"):
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


async def test_big_strings_lie_in_files_and_only_once(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with open_storage(tmp_path) as storage:
        await storage.history.append([Stamped(2, 1.0, "s", 1, UserSaid("x y " * 5_000))])
    files = [p for p in (tmp_path / "blobs").rglob("*") if p.is_file()]
    assert [p.stat().st_size for p in files] == [20_000]
    assert (tmp_path / "host.db").stat().st_size < 300_000


async def test_deleting_a_session_deletes_its_files(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with open_storage(tmp_path) as storage:
        await storage.history.create("other", "", SessionOptions())
        await storage.history.append([Stamped(1, 1.0, "other", 1, UserSaid("x y " * 5_000))])
        await storage.history.delete("s")
        assert [p for p in (tmp_path / "blobs").rglob("*") if p.is_file()]
        await storage.history.delete("other")
        assert not [p for p in (tmp_path / "blobs").rglob("*") if p.is_file()]


async def test_what_a_dead_process_left_of_a_deletion_is_swept_at_the_next_open(tmp_path: Path) -> None:
    await fill(tmp_path)
    with sqlite3.connect(tmp_path / "host.db") as db:
        db.execute("DELETE FROM blob_uses")
    db.close()
    async with open_storage(tmp_path):
        pass
    assert not [p for p in (tmp_path / "blobs").rglob("*") if p.is_file()]


async def test_a_newer_database_is_named_and_left_untouched(tmp_path: Path) -> None:
    await fill(tmp_path)
    path = tmp_path / "host.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(STEPS) + 4}")
    db.close()
    before = files(tmp_path)
    with pytest.raises(KnownFault) as caught:
        async with open_storage(tmp_path):
            pass
    assert caught.value.code == "database_error"
    assert caught.value.params["reason"] == "newer_schema"
    assert caught.value.params["path"] == str(path)
    assert files(tmp_path) == before


async def test_a_file_that_is_no_database_is_kept_until_it_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    path.write_bytes(b"not a database at all " * 100)
    with pytest.raises(KnownFault) as caught:
        async with open_storage(tmp_path):
            pass
    assert caught.value.params["reason"] == "corrupt"
    assert path.read_bytes() == b"not a database at all " * 100
    kept = set_aside(tmp_path)
    assert kept.read_bytes() == b"not a database at all " * 100
    await fill(tmp_path)
    assert path.exists()


def test_nothing_can_be_set_aside_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(UserFault) as caught:
        set_aside(tmp_path)
    assert caught.value.code == "not_found"


async def problem_of(storage: Storage) -> str:
    try:
        return await storage.problem() or ""
    except KnownFault as error:
        return error.message


async def test_a_damaged_page_is_a_fault_that_names_the_file(tmp_path: Path) -> None:
    async with open_storage(tmp_path) as storage:
        await storage.history.create("s", "t", SessionOptions())
        for n in range(200):
            await storage.history.append([Stamped(n + 1, 1.0, "s", 1, UserSaid("x" * 2000))])
    path = tmp_path / "host.db"
    with path.open("r+b") as file:
        for page in range(60, 64):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    async with open_storage(tmp_path) as storage:
        with pytest.raises(KnownFault) as caught:
            await storage.history.read("s")
        assert caught.value.params == {"reason": "corrupt", "path": str(path)}
        assert await problem_of(storage) != ""


async def test_a_sound_file_has_no_problem(tmp_path: Path) -> None:
    async with open_storage(tmp_path) as storage:
        assert await storage.problem() is None


async def test_a_database_locked_by_another_program_is_a_fault_worth_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_MS", 50)
    async with open_storage(tmp_path) as storage:
        await storage.history.create("s", "t", SessionOptions())
        other = sqlite3.connect(tmp_path / "host.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(KnownFault) as caught:
            await storage.history.rename("s", "u")
        assert (caught.value.params["reason"], caught.value.retryable) == ("locked", True)
        other.execute("ROLLBACK")
        other.close()
        await storage.history.rename("s", "u")
        assert (await storage.history.row("s")).title == "u"


async def test_a_damaged_blob_is_never_given_out(tmp_path: Path) -> None:
    await fill(tmp_path)
    (path,) = [p for p in (tmp_path / "blobs").rglob("*") if p.is_file()]
    path.write_bytes(b"x" * 20_001)
    async with open_storage(tmp_path) as storage:
        with pytest.raises(KnownFault) as caught:
            await storage.history.read("s")
        assert caught.value.params == {"reason": "blob_damaged", "path": str(path)}
        path.unlink()
        with pytest.raises(KnownFault) as caught:
            await storage.history.read("s")
        assert caught.value.params["reason"] == "blob_missing"


async def test_a_lost_file_is_written_anew_when_the_same_bytes_come(tmp_path: Path) -> None:
    await fill(tmp_path)
    (path,) = [p for p in (tmp_path / "blobs").rglob("*") if p.is_file()]
    path.unlink()
    async with open_storage(tmp_path) as storage:
        await storage.history.append([Stamped(2, 1.0, "s", 1, UserSaid("x y " * 5_000))])
        assert len(await storage.history.read("s")) == 2


async def test_an_event_that_nobody_wrote_is_bad_history(tmp_path: Path) -> None:
    await fill(tmp_path)
    for body in ('{"$": "Martian"}', '{"$": "TurnEnded", "status": "odd", "stop": "end"}', "{", '{"$": "TurnEnded"}'):
        with sqlite3.connect(tmp_path / "host.db") as db:
            db.execute("UPDATE events SET body = ?, parts = NULL", (body,))
        db.close()
        async with open_storage(tmp_path) as storage:
            with pytest.raises(PeerFault) as caught:
                await storage.history.read("s")
            assert (caught.value.code, caught.value.params["seq"]) == ("bad_history", 1)


async def test_a_failed_migration_leaves_the_old_schema(tmp_path: Path) -> None:
    await fill(tmp_path)
    db = sqlite3.connect(tmp_path / "host.db", isolation_level=None)

    def breaks(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        connection.execute("SELECT * FROM nowhere")

    with pytest.raises(sqlite3.OperationalError):
        migrate(db, "host.db", (*STEPS, breaks))
    assert db.execute("PRAGMA user_version").fetchone() == (len(STEPS),)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)

    def works(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE sessions ADD COLUMN colour TEXT")

    migrate(db, "host.db", (*STEPS, works))
    assert db.execute("PRAGMA user_version").fetchone() == (len(STEPS) + 1,)
    db.close()


async def test_several_processes_may_make_the_database_at_once(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys, pathlib\n"
        "from desktop_host.storage import open_storage\n"
        "from desktop_host.core.sessions import SessionOptions\n"
        "async def main():\n"
        "    async with open_storage(pathlib.Path(sys.argv[1])) as s:\n"
        "        await s.history.create(sys.argv[2], '', SessionOptions())\n"
        "asyncio.run(main())\n"
    )
    children = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(tmp_path), str(n)) for n in range(4)
    ]
    assert await asyncio.gather(*(c.wait() for c in children)) == [0, 0, 0, 0]
    async with open_storage(tmp_path) as storage:
        assert {r.session for r in await storage.history.rows()} == {"0", "1", "2", "3"}


async def test_ten_thousand_events_are_quick_to_write_and_read(tmp_path: Path) -> None:
    reply = AssistantSaid(Message(Role.ASSISTANT, (Text("The answer, at some length. " * 10),)), "m")
    events = [Stamped(n + 1, float(n), "s", n // 10, reply) for n in range(10_000)]
    async with open_storage(tmp_path) as storage:
        await storage.history.create("s", "", SessionOptions())
        began = time.monotonic()
        for start in range(0, 10_000, 100):
            await storage.history.append(events[start : start + 100])
        wrote = time.monotonic() - began
        longest, last, done = 0.0, time.monotonic(), asyncio.Event()

        async def heart() -> None:
            nonlocal longest, last
            while not done.is_set():
                await asyncio.sleep(0.005)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()

        beating = asyncio.create_task(heart())
        began = time.monotonic()
        back = await storage.history.read("s")
        read = time.monotonic() - began
        done.set()
        await beating
    assert len(back) == 10_000
    print(f"10k events: written in {wrote:.2f} s, read in {read:.2f} s, longest stall {longest * 1000:.0f} ms")
    assert wrote < 20
    assert read < 10


async def test_a_result_cannot_forge_a_blob(tmp_path: Path) -> None:
    async with open_storage(tmp_path) as storage:
        sha = await storage.history.put_blob(b"someone else's")
        await storage.history.create("s", "", SessionOptions())
        forged = FrozenDict({"$blob": sha, "$": "Text", "parts": ((("text",), sha, "text"),)})
        event = ToolSettled("c", Outcome.OK, (Text("x"),), forged)
        await storage.history.append([Stamped(1, 1.0, "s", 1, event)])
        (back,) = await storage.history.read("s")
        assert back.event == event


def test_splitting_and_joining_gives_the_same_value() -> None:
    for big in (
        "a" * 20_000,
        "QUJD" * 5000,
        "QUJ=" * 5000,
        "Zm9v" * 4999 + "Zm8=",
        "Zm9v" * 4999 + "Zm9=",
        "é" * 20_000,
    ):
        for value in (big, [1, big], {"a": {"b": [None, {"c": big}]}}):
            small, parts = split(value)
            for path, data, form in parts:
                small = join(small, path, data, form)
            assert small == value
    _, parts = split("Zm9v" * 5000)
    assert parts[0][1] == b"foo" * 5000


def test_opening_a_folder_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    code = (
        "import asyncio, sys, pathlib\n"
        "from desktop_host.storage import open_storage\n"
        "from desktop_host.core.errors import KnownFault\n"
        "async def main():\n"
        "    try:\n"
        "        async with open_storage(pathlib.Path(sys.argv[1])): pass\n"
        "    except KnownFault as e: print(e.code, e.params['reason'])\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(blocked / "profile")], capture_output=True, text=True, env={**os.environ}
    )
    assert done.stdout.split() == ["database_error", "io"], done.stderr
