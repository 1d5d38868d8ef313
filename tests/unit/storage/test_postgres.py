"""The real PostgreSQL: what it refuses, what is lost on the way, and its form."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_host.core.budgets import Purse
from desktop_host.core.codec import encode
from desktop_host.core.errors import HostError, KnownFault, UserFault
from desktop_host.core.events import (
    Stamped,
    ToolRequested,
    ToolSettled,
    ToolStarted,
    TurnStarted,
    UsageRecorded,
    UserSaid,
)
from desktop_host.core.messages import Outcome
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.values import FrozenDict
from desktop_host.i18n import LANGUAGES, Translator
from desktop_host.storage import blob_rows, open_storage
from desktop_host.storage import postgres as driver
from desktop_host.storage.postgres_schema import STEPS
from desktop_host.storage.postgres_transaction import key
from tests.fakes.cut_wire import CutWire
from tests.fakes.postgres_server import PASSWORD, PostgresServer, certificate, running


async def refused(folder: Path, params: dict[str, str]) -> KnownFault:
    """The fault of opening; told in both languages with a remedy of its own, and without the password."""
    with pytest.raises(KnownFault) as caught:
        async with open_storage(folder, shared=params):
            pass
    fault = caught.value
    assert (fault.code, fault.exit_code) == ("storage_unavailable", 5)
    assert params.get("password", PASSWORD) not in f"{fault} {fault.params}"
    for language in LANGUAGES:
        texts = Translator(language)
        assert texts.has(f"error.storage_unavailable.{fault.params['reason']}")
        what, remedy = texts.error(fault.code, fault.params, fault.message)
        assert what and remedy and "{" not in what.replace("${", "") + remedy.replace("${", "")
    return fault


async def test_what_the_server_refuses_is_named_with_its_remedy(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard O137."""
    good = postgres.params()
    latin = postgres.database(options="ENCODING LATIN1 TEMPLATE template0")
    others = postgres.database(owner="postgres")
    wrong = {
        "password": good | {"password": "hunter2-hunter2"},
        "host": good | {"port": "1"},
        "no_database": good | {"dbname": "nowhere"},
        "not_admitted": good | {"user": "only_tls", "sslmode": "disable"},
        "tls": good | {"sslmode": "verify-full", "sslrootcert": "system"},
        "encoding": good | {"dbname": latin},
        "permission": good | {"dbname": others},
    }
    for reason, params in wrong.items():
        fault = await refused(tmp_path, params)
        assert fault.params["reason"] == reason, fault
    unknown = await refused(tmp_path, good | {"host": "no-such-host.invalid"})
    assert unknown.params["reason"] == "host"
    monkeypatch.setattr("desktop_host.storage.postgres.OLDEST", 990000)
    old = await refused(tmp_path, good)
    assert (old.params["reason"], old.params["wanted"]) == ("version", 99)
    assert "127.0.0.1" in old.params["place"]


async def test_the_asked_for_tls_is_what_is_used(postgres: PostgresServer, tmp_path: Path) -> None:
    params = postgres.params()
    certificate(tmp_path)  # of somebody else
    trusted = {"sslmode": "verify-full", "sslrootcert": str(postgres.folder / "server.crt")}
    async with open_storage(tmp_path / "a", shared=params | trusted) as storage:
        assert storage.where()["detail"].endswith(", TLS")
    async with open_storage(tmp_path / "a", shared=params | {"sslmode": "disable"}) as storage:
        assert "TLS" not in storage.where()["detail"]
        assert storage.where()["place"] == f"postgresql://host@127.0.0.1:{postgres.port}/{params['dbname']}"
        assert await storage.problem() is None
    fault = await refused(tmp_path / "a", params | trusted | {"sslrootcert": str(tmp_path / "server.crt")})
    assert fault.params["reason"] == "tls"


async def test_without_the_driver_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    fault = await refused(tmp_path, {"host": "127.0.0.1"})
    assert fault.params["reason"] == "no_driver"
    assert "desktop-host[postgres]" in Translator("en").error(fault.code, fault.params)[1]


async def test_hosts_that_start_at_once_make_the_form_once(postgres: PostgresServer, tmp_path: Path) -> None:
    params = postgres.params()

    async def one(number: int) -> None:
        async with open_storage(tmp_path / str(number), shared=params) as storage:
            await storage.history.create(f"s{number}", "", SessionOptions())

    await asyncio.gather(*(one(n) for n in range(6)))
    assert postgres.admin("SELECT number FROM desktop_host.form", params["dbname"]) == [(len(STEPS),)]
    async with open_storage(tmp_path / "x", shared=params) as storage:
        assert len(await storage.history.rows()) == 6


async def test_a_database_of_a_newer_host_is_left_as_it_is(postgres: PostgresServer, tmp_path: Path) -> None:
    params = postgres.params()
    async with open_storage(tmp_path, shared=params):
        pass
    postgres.admin("UPDATE desktop_host.form SET number = 99", params["dbname"])
    with pytest.raises(KnownFault) as caught:
        async with open_storage(tmp_path, shared=params):
            pass
    assert (caught.value.code, caught.value.params["reason"]) == ("database_error", "newer_schema")
    assert postgres.admin("SELECT number FROM desktop_host.form", params["dbname"]) == [(99,)]


async def test_what_other_programs_keep_in_the_same_database_is_left_alone(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    params = postgres.params()
    postgres.admin("CREATE TABLE sessions (theirs text)", params["dbname"])
    async with open_storage(tmp_path, shared=params) as storage:
        await storage.history.create("s", "", SessionOptions())
    assert postgres.admin("SELECT count(*) FROM public.sessions", params["dbname"]) == [(0,)]


async def test_bytes_are_kept_in_the_database_up_to_a_limit(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params, data = postgres.params(), os.urandom(3_000_000)
    async with open_storage(tmp_path / "here", shared=params) as storage:
        sha = await storage.history.put_blob(data)
        monkeypatch.setattr(blob_rows, "LIMIT", 100_000)
        with pytest.raises(KnownFault) as caught:
            await storage.history.put_blob(data)
        assert (caught.value.code, caught.value.params["limit"]) == ("too_large", 100_000)
    async with open_storage(tmp_path / "there", shared=params) as storage:
        assert await storage.history.blob(sha) == data
    assert not (tmp_path / "here" / "blobs").exists()


async def test_what_a_person_allowed_stays_on_their_computer(postgres: PostgresServer, tmp_path: Path) -> None:
    """Hazard K118: on another computer the same name may be another server, and a writer may be somebody else."""
    params = postgres.params()
    deny, allow = Rule(Effect.DENY, "files.delete"), Rule(Effect.ALLOW, "files.*", origin="person")
    async with (
        open_storage(tmp_path / "here", shared=params) as here,
        open_storage(tmp_path / "there", shared=params) as there,
    ):
        await here.ledger.grant(Rule(Effect.ALLOW, "files.*"))
        assert len(await here.ledger.grants()) == 1 and await there.ledger.grants() == ()
        options = SessionOptions(model="m", rules=(deny, allow), roots=("/home/ada",))
        await here.history.create("s", "", options)
        assert await here.history.options("s") == options
        assert await there.history.options("s") == SessionOptions(model="m", rules=(deny,))
        await there.history.set_options("s", SessionOptions(model="n", rules=(deny,)))
        assert await here.history.options("s") == SessionOptions(model="n", rules=(deny, allow), roots=("/home/ada",))
        forged = json.dumps(encode(SessionOptions(rules=(Rule(Effect.ALLOW, "*"),), roots=("/",))))
        postgres.admin(f"UPDATE desktop_host.sessions SET options = $x${forged}$x$", params["dbname"])
        assert await there.history.options("s") == SessionOptions()
        await here.history.delete("s")
        await here.history.create("s", "", SessionOptions())
        assert await here.history.options("s") == SessionOptions()


async def test_a_holder_elsewhere_is_judged_by_its_heartbeat_on_the_server_s_clock(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    params = postgres.params()
    beat = "UPDATE desktop_host.leases SET place = 'laptop boot', beat = extract(epoch FROM clock_timestamp()) - {}"
    # Clocks of computers differ: this one is a day behind, and it does not matter.
    async with (
        open_storage(tmp_path / "a", shared=params) as a,
        open_storage(tmp_path / "b", shared=params, now=lambda: 1000.0) as b,
    ):
        await a.history.create("s", "", SessionOptions())
        await a.history.lease("s")
        postgres.admin(beat.format(60), params["dbname"])
        with pytest.raises(UserFault) as caught:
            await b.history.lease("s")
        assert (caught.value.code, caught.value.params["reason"], caught.value.params["machine"]) == (
            "session_busy", "other_machine", "laptop",
        )  # fmt: skip
        postgres.admin(beat.format(120), params["dbname"])
        await b.history.lease("s")
        for late in (
            a.history.append([Stamped(1, 1.0, "s", 1, UserSaid("late"))]), a.history.save_draft("s", 1, "late", ""),
        ):  # fmt: skip
            with pytest.raises(UserFault):
                await late  # the one that was taken for dead writes nothing more
        await b.history.append([Stamped(1, 1.0, "s", 1, UserSaid("mine"))])
        assert [s.event for s in await a.history.read("s")] == [UserSaid("mine")]


async def test_two_that_take_a_session_at_once_never_both_have_it(postgres: PostgresServer, tmp_path: Path) -> None:
    params = postgres.params()
    async with (
        open_storage(tmp_path / "a", shared=params) as a,
        open_storage(tmp_path / "b", shared=params) as b,
    ):
        for n in range(20):
            await a.history.create(f"s{n}", "", SessionOptions())
            took = await asyncio.gather(a.history.lease(f"s{n}"), b.history.lease(f"s{n}"), return_exceptions=True)
            assert sorted(type(t).__name__ for t in took) == ["NoneType", "UserFault"]


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that a test may stop."""
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(running())
        except LookupError as missing:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(str(missing))
        yield server


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_a_server_that_restarts_is_waited_for_and_nothing_is_lost_or_doubled(
    own_server: PostgresServer, tmp_path: Path, how: signal.Signals
) -> None:
    async with open_storage(tmp_path, shared=own_server.params()) as storage:
        history = storage.history
        await history.create("s", "", SessionOptions())
        await history.lease("s")
        acknowledged: list[int] = []
        halfway, ready = asyncio.Event(), asyncio.Event()

        async def writer() -> None:
            for seq in range(1, 121):
                text = f"event {seq} " + "x" * 20_000 * (seq % 7 == 0)
                await history.append([Stamped(seq, 1.0, "s", 1, UserSaid(text))])
                acknowledged.append(seq)
                if seq == 40:
                    halfway.set()

        async def reader() -> None:
            while not ready.is_set():
                kept = [s.seq for s in await history.read("s")]
                assert kept == list(range(1, len(kept) + 1))

        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(writer())
            tasks.create_task(reader())
            await halfway.wait()
            await asyncio.to_thread(own_server.stop, how)
            await asyncio.to_thread(own_server.start)
            await writing
            ready.set()
        assert [s.seq for s in await history.read("s")] == acknowledged == list(range(1, 121))


async def test_a_server_that_stays_away_is_a_clear_error_and_its_return_is_noticed(
    own_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "PATIENCE_S", 0.5)
    async with open_storage(tmp_path, shared=own_server.params()) as storage:
        await storage.history.create("s", "", SessionOptions())
        await asyncio.to_thread(own_server.stop)
        for _ in range(2):
            with pytest.raises(KnownFault) as caught:
                await storage.history.append([Stamped(1, 1.0, "s", 1, UserSaid("x"))])
            assert (caught.value.code, caught.value.params["reason"], caught.value.retryable) == (
                "storage_unavailable", "lost", True,
            )  # fmt: skip
        with pytest.raises(KnownFault):
            await storage.problem()
        await asyncio.to_thread(own_server.start)
        await storage.history.append([Stamped(1, 1.0, "s", 1, UserSaid("x"))])
        assert await storage.problem() is None
        assert len(await storage.history.read("s")) == 1


async def test_an_event_costs_two_journeys_to_the_server_whatever_follows_from_it(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    params = postgres.params(sslmode="disable", gssencmode="disable")
    async with (
        CutWire(postgres.port) as wire,
        open_storage(tmp_path, shared=params | {"port": str(wire.port)}) as storage,
    ):
        await storage.history.create("s", "", SessionOptions())
        await storage.history.lease("s")
        events = (
            UserSaid("where is the lighthouse"), TurnStarted(),
            ToolRequested("c", "files", "read", "files__read", FrozenDict(), Effect.ALLOW), ToolStarted("c"),
            ToolSettled("c", Outcome.OK), UsageRecorded("m", "chat", 9, 9, cost_usd=0.1),
        )  # fmt: skip
        for seq, event in enumerate(events, 1):
            before = wire.journeys
            await storage.history.append([Stamped(seq, 1.0, "s", 1, event)])
            assert wire.journeys - before == 2, event.type
        before = wire.journeys
        await storage.history.append([Stamped(n, 1.0, "s", 1, UserSaid(f"message {n}")) for n in range(10, 40)])
        assert wire.journeys - before == 2
        day = Purse("day", "d", usd=1.0)
        before = wire.journeys
        await storage.purses.reserve((day, Purse("session", "s"), Purse("month", "m")), 0.1, 0.1)
        assert wire.journeys - before == 3
        assert (await storage.history.search("lighthouse"))[0].session == "s"
        assert {row["server"]: row["calls"] for row in await storage.ledger.usage("server")} == {"files": 1}


async def test_a_statement_that_is_refused_on_the_way_is_told_and_nothing_of_its_transaction_stays(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    params = postgres.params()
    async with open_storage(tmp_path, shared=params) as storage:
        await storage.history.create("s", "", SessionOptions())
        postgres.admin("ALTER TABLE desktop_host.sessions ADD CHECK (messages < 2)", params["dbname"])
        await storage.history.append([Stamped(1, 1.0, "s", 1, UserSaid("one"))])
        for _ in range(2):
            with pytest.raises(Exception, match="violates check constraint"):  # unlike any fault that is foreseen
                await storage.history.append([Stamped(2, 1.0, "s", 1, UserSaid("two"))])
        postgres.admin("ALTER TABLE desktop_host.sessions DROP CONSTRAINT sessions_messages_check", params["dbname"])
        await storage.history.append([Stamped(2, 1.0, "s", 1, UserSaid("three"))])
        assert [s.event for s in await storage.history.read("s")] == [UserSaid("one"), UserSaid("three")]


@pytest.mark.parametrize("deliver", [True, False])
async def test_a_commit_whose_answer_is_lost_is_neither_lost_nor_repeated(
    postgres: PostgresServer, tmp_path: Path, deliver: bool
) -> None:
    params = postgres.params(sslmode="disable", gssencmode="disable")
    async with (
        CutWire(postgres.port) as wire,
        open_storage(tmp_path, shared=params | {"port": str(wire.port)}) as storage,
    ):
        await storage.history.create("s", "", SessionOptions())
        day = Purse("day", "d", usd=1.0)
        for seq in range(1, 6):
            wire.at, wire.deliver = b"COMMIT", deliver
            await storage.history.append([Stamped(seq, 1.0, "s", 1, UserSaid(f"event {seq}"))])
            wire.at = b"COMMIT"
            await storage.purses.settle(None, (day,), 0.1, 1)
        assert wire.cuts == 10
        assert [s.seq for s in await storage.history.read("s")] == [1, 2, 3, 4, 5]
        (standing,) = await storage.purses.standing((day,))
        assert (standing.spent_usd, standing.calls) == (0.5, 5)


@pytest.mark.parametrize("word", [b"INSERT INTO events", b"BEGIN ISOLATION", b"advisory"])
async def test_a_connection_cut_in_mid_transaction_is_made_anew(
    postgres: PostgresServer, tmp_path: Path, word: bytes
) -> None:
    params = postgres.params(sslmode="disable", gssencmode="disable")
    async with (
        CutWire(postgres.port) as wire,
        open_storage(tmp_path, shared=params | {"port": str(wire.port)}) as storage,
    ):
        await storage.history.create("s", "", SessionOptions())
        wire.at = word
        await storage.history.append([Stamped(1, 1.0, "s", 1, UserSaid("event"))])
        assert wire.cuts == 1 and len(await storage.history.read("s")) == 1


async def test_a_host_that_stands_still_in_a_transaction_does_not_stop_the_others(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    import psycopg

    params = postgres.params()
    async with open_storage(tmp_path, shared=params) as storage:
        day = Purse("day", "d", usd=1.0)
        await storage.purses.settle(None, (day,), 0.1, 1)

        def frozen() -> psycopg.Connection[object]:
            stuck = psycopg.connect(**params, autocommit=True)
            stuck.execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 300")
            stuck.execute("SELECT pg_advisory_xact_lock(%s)", (key("money"),))
            return stuck

        stuck = await asyncio.to_thread(frozen)
        await storage.purses.settle(None, (day,), 0.1, 1)
        (standing,) = await storage.purses.standing((day,))
        assert standing.calls == 2
        stuck.close()


async def test_a_full_pool_of_connections_is_named(postgres: PostgresServer, tmp_path: Path) -> None:
    name = postgres.database(options="CONNECTION LIMIT 2")
    async with open_storage(tmp_path / "a", shared=postgres.params(name)) as storage:
        await storage.history.create("s", "", SessionOptions())
        with pytest.raises(HostError) as caught:
            async with open_storage(tmp_path / "b", shared=postgres.params(name)):
                pass
        assert caught.value.params["reason"] == "too_many"
