"""A profile's own file copied into the shared database."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from desktop_host.core.budgets import Purse
from desktop_host.core.events import (
    AssistantSaid,
    Stamped,
    ToolRequested,
    ToolSettled,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
    UserSaid,
)
from desktop_host.core.messages import Message, Outcome, Role, Text
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.sessions import SessionOptions, TurnStatus, TurnStop
from desktop_host.core.values import FrozenDict
from desktop_host.storage import Storage, blob_rows, open_storage
from tests.fakes.postgres_server import PostgresServer

DAY = Purse("day", "2026-11-30")
RULES = (Rule(Effect.ALLOW, "files.*", origin="person"),)
USED = UsageRecorded("m", "sampling", 10, 5, 1, 2, 3, 0.25, server="files", skills=("travel@1",))


async def fill(storage: Storage, name: str) -> None:
    history = storage.history
    await history.create(name, f"Title {name}", SessionOptions(model="m", budget_usd=1.5, roots=("/r",), rules=RULES))
    await history.append([
        Stamped(1, 1.7e9, name, 1, UserSaid(f"Where is the lighthouse {name}? 灯塔\0在哪里")),
        Stamped(2, 1.7e9 + 1, name, 1, TurnStarted()),
        Stamped(4, 1.7e9 + 2, name, 1, AssistantSaid(Message(Role.ASSISTANT, (Text("big " * 20_000),)), "m")),
        Stamped(5, 1.7e9 + 2, name, 1, USED),
        Stamped(6, 1.7e9 + 3, name, 1, ToolRequested("c1", "files", "read", "files__read", FrozenDict(), Effect.ALLOW)),
        Stamped(7, 1.7e9 + 4, name, 1, ToolSettled("c1", Outcome.ERROR, (Text("x" * 30_000),), duration_ms=5.0)),
        Stamped(8, 1.7e9 + 5, name, 1, ToolRequested("c2", "files", "read", "files__read", FrozenDict(), Effect.ALLOW)),
    ])  # fmt: skip
    sha = await history.put_blob(b"picture " + name.encode())
    await history.put_state(name, "picture", {"sha": sha})
    await history.save_draft(name, 1, "half a", "")
    await history.pin(name, True)


async def all_of(storage: Storage, name: str) -> list[object]:
    history = storage.history
    state = await history.state(name, "picture")
    return [
        await history.row(name), await history.options(name), await history.read(name), state,
        await history.draft(name), await history.blob(state["sha"]),
        [await storage.ledger.usage(by) for by in ("day", "model", "session", "purpose", "server", "skill")],
    ]  # fmt: skip


async def test_everything_is_copied_once_and_the_file_stays_as_it_is(postgres: PostgresServer, tmp_path: Path) -> None:
    shared = postgres.emptied()
    async with open_storage(tmp_path) as storage:
        for name in ("a", "b"):
            await fill(storage, name)
        await storage.purses.settle(None, (DAY,), 0.75, 3)
        await storage.ledger.grant(Rule(Effect.ALLOW, "files.*"))
        assert storage.upload is None
        before = [await all_of(storage, name) for name in ("a", "b")]
    files = {p: p.read_bytes() for p in (tmp_path / "blobs").rglob("*") if p.is_file()}
    async with open_storage(tmp_path, shared=shared) as storage:
        assert storage.upload is not None and await storage.history.rows() == ()
        assert await storage.upload("me") == {"copied": 2, "present": 0, "busy": 0, "failed": 0}
        assert await storage.upload("me") == {"copied": 0, "present": 2, "busy": 0, "failed": 0}
        assert [await all_of(storage, name) for name in ("a", "b")] == before
        stored = postgres.admin("SELECT string_agg(options, '') FROM desktop_host.sessions", shared["dbname"])
        assert "files" not in str(stored) and "/r" not in str(stored)
        (standing,) = await storage.purses.standing((DAY,))
        assert (standing.spent_usd, standing.calls) == (0.75, 3)
        assert {r.session for r in await storage.history.search("灯塔")} == {"a", "b"}
        assert len(await storage.ledger.grants()) == 1
        # It goes on: the open call settles, the turn ends, a later event has its place.
        end = TurnEnded(TurnStatus.INTERRUPTED, TurnStop.INTERRUPTED)
        assert set(await storage.history.open_turns()) == {"a", "b"}
        await storage.history.append([
            Stamped(9, 1.8e9, "a", 1, ToolSettled("c2", Outcome.UNKNOWN)), Stamped(10, 1.8e9, "a", 1, end),
        ])  # fmt: skip
        (row,) = await storage.ledger.usage("server")
        assert (row["calls"], row["failed"]) == (3, 3)
        await storage.history.delete("a")
        await storage.history.delete("b")
        assert postgres.admin("SELECT count(*) FROM desktop_host.blobs WHERE loose = 0", shared["dbname"]) == [(0,)]
    assert {p: p.read_bytes() for p in (tmp_path / "blobs").rglob("*") if p.is_file()} == files
    async with open_storage(tmp_path) as storage:
        assert [await all_of(storage, name) for name in ("a", "b")] == before


async def test_another_profile_adds_its_own_and_a_chat_that_runs_is_left_out(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    shared = postgres.emptied()
    for profile in ("one", "two"):
        async with open_storage(tmp_path / profile) as storage:
            await fill(storage, profile)
            await storage.purses.settle(None, (DAY,), 0.5, 1)
    async with open_storage(tmp_path / "two") as running:
        await running.history.lease("two")
        for profile, busy in (("one", 0), ("two", 1)):
            async with open_storage(tmp_path / profile, shared=shared) as storage:
                assert storage.upload is not None
                assert (await storage.upload(profile))["busy"] == busy
        await running.history.release("two")
    async with open_storage(tmp_path / "two", shared=shared) as storage:
        assert storage.upload is not None and (await storage.upload("two"))["copied"] == 1
        (standing,) = await storage.purses.standing((DAY,))
        assert (standing.spent_usd, standing.calls) == (1.0, 2)
        (skill,) = await storage.ledger.usage("skill")
        assert (skill["requests"], skill["cost_usd"]) == (2, 0.5)


async def test_what_does_not_fit_does_not_stop_the_rest(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = postgres.emptied()
    async with open_storage(tmp_path) as storage:
        for name in ("a", "b"):
            await fill(storage, name)
        await storage.history.create("big", "", SessionOptions())
        await storage.history.append([Stamped(1, 1.0, "big", 1, UserSaid(os.urandom(100_000).hex()))])
    monkeypatch.setattr(blob_rows, "LIMIT", 120_000)
    async with open_storage(tmp_path, shared=shared) as storage:
        assert storage.upload is not None
        assert await storage.upload("me") == {"copied": 2, "present": 0, "busy": 0, "failed": 1}
        assert {r.session for r in await storage.history.rows()} == {"a", "b"}
