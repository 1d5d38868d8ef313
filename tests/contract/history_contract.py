"""What every `History` and `Ledger` must do. `test_history.py` runs it on the fake and on the database."""

from __future__ import annotations

import base64
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.events import (
    AssistantSaid,
    Attachment,
    SessionOpened,
    Stamped,
    ToolRequested,
    ToolSettled,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
    UserSaid,
)
from desktop_host.core.messages import Image, Message, Native, Outcome, Role, Text, ToolCall
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.ports import History, Ledger
from desktop_host.core.sessions import SessionOptions, TurnStatus, TurnStop
from desktop_host.core.values import FrozenDict


@dataclass
class Desk:
    """One profile, opened by one process; `another()` opens it once more, as a second process would."""

    history: History
    ledger: Ledger
    another: Callable[[], Awaitable[Desk]]


def said(text: str, seq: int = 1, session: str = "s", turn: int = 1, t: float = 1000.0) -> Stamped:
    return Stamped(seq, t, session, turn, UserSaid(text))


def replied(text: str, seq: int = 2, session: str = "s", turn: int = 1, t: float = 1001.0) -> Stamped:
    return Stamped(seq, t, session, turn, AssistantSaid(Message(Role.ASSISTANT, (Text(text),)), "m"))


class HistoryContract:
    async def test_a_new_session_is_listed_with_its_options(self, desk: Desk) -> None:
        options = SessionOptions(model="local", roots=("/tmp/文件",), rules=(Rule(Effect.DENY, "a.*"),))
        await desk.history.create("s", "Title 标题", options)
        row = await desk.history.row("s")
        assert (row.session, row.title, row.messages, row.pinned, row.last_turn) == ("s", "Title 标题", 0, False, None)
        assert await desk.history.options("s") == options
        await desk.history.set_options("s", SessionOptions(model="x"))
        assert (await desk.history.options("s")).model == "x"

    async def test_an_unknown_session_is_named(self, desk: Desk) -> None:
        for attempt in (
            desk.history.row("ghost"), desk.history.options("ghost"), desk.history.read("ghost"),
            desk.history.append([said("x", session="ghost")]), desk.history.rename("ghost", "t"),
            desk.history.delete("ghost"), desk.history.lease("ghost"), desk.history.put_state("ghost", "k", 1),
            desk.history.save_draft("ghost", 1, "", ""), desk.history.last_seq("ghost"),
            desk.history.tail_seq("ghost", 1),
        ):  # fmt: skip
            with pytest.raises(UserFault) as caught:
                await attempt
            assert caught.value.code == "not_found"
            assert caught.value.params["name"] == "ghost"

    async def test_events_come_back_as_they_were(self, desk: Desk) -> None:
        await desk.history.create("s", "", SessionOptions())
        native = Native("chat", "http://127.0.0.1:1", "m", FrozenDict({"$": "odd", "a": (1, None, 2.5, True)}))
        call = ToolCall("c", "a__b", FrozenDict({"q": (1, FrozenDict(), ())}))
        events = [
            Stamped(1, 1.5, "s", 0, SessionOpened("local", "t")),
            Stamped(2, 2.5, "s", 1, UserSaid("hi \ud800 \0 你好", (Attachment("a.png", "image/png", 3),))),
            Stamped(5, 3.5, "s", 1, AssistantSaid(Message(Role.ASSISTANT, (Text("x"), call), native), "m")),
            Stamped(6, 4.5, "s", 1, ToolRequested("c", "a", "b", "a__b", FrozenDict({"q": 1}), Effect.ALLOW)),
            Stamped(9, 5.5, "s", 1, ToolSettled("c", Outcome.OK, (Text("y"),), FrozenDict({"$blob": "no"}), 12.5)),
        ]  # fmt: skip
        await desk.history.append(events[:3])
        await desk.history.append(events[3:])
        assert await desk.history.read("s") == tuple(events)
        assert await desk.history.read("s", after=5) == tuple(events[3:])
        assert await desk.history.read("s", after=1, limit=2) == tuple(events[1:3])
        assert await desk.history.last_seq("s") == 9
        assert [await desk.history.tail_seq("s", n) for n in (0, 2, 4, 5, 99)] == [9, 5, 1, 0, 0]

    async def test_big_strings_come_back_whole_wherever_they_stand(self, desk: Desk) -> None:
        """Hazard I92: a 2 MB result is kept and readable."""
        await desk.history.create("s", "", SessionOptions())
        picture = base64.b64encode(os.urandom(300_000)).decode()
        event = ToolSettled(
            "c", Outcome.OK,
            (Text("z" * 2_000_000), Image(picture, "image/png"), Text("\ud800 汉字" * 9000)),
            FrozenDict({"deep": (FrozenDict({"a.b/c": "k" * 20_000}), "small", "A" * 16_388)}),
        )  # fmt: skip
        await desk.history.append([Stamped(1, 1.0, "s", 1, event)])
        (back,) = await desk.history.read("s")
        assert back.event == event

    async def test_an_append_is_all_or_nothing(self, desk: Desk) -> None:
        await desk.history.create("s", "", SessionOptions())
        with pytest.raises(UserFault):
            await desk.history.append([said("one"), said("two", 2), said("stray", 1, session="ghost")])
        assert await desk.history.read("s") == ()
        assert (await desk.history.row("s")).messages == 0

    async def test_a_seq_that_is_taken_is_refused(self, desk: Desk) -> None:
        await desk.history.create("s", "", SessionOptions())
        await desk.history.append([said("one", 3)])
        with pytest.raises(UserFault) as caught:
            await desk.history.append([said("two", 3)])
        assert caught.value.code == "session_busy"
        assert [s.event for s in await desk.history.read("s")] == [UserSaid("one")]

    async def test_rows_count_messages_and_know_the_last_turn(self, desk: Desk) -> None:
        await desk.history.create("s", "", SessionOptions())
        silent = Stamped(3, 1001.0, "s", 1, AssistantSaid(Message(Role.ASSISTANT, (ToolCall("c", "a__b"),)), "m"))
        await desk.history.append([said("q"), Stamped(2, 1000.5, "s", 1, TurnStarted()), silent])
        row = await desk.history.row("s")
        assert (row.messages, row.last_turn, row.updated) == (1, TurnStatus.OPEN, 1001.0)
        ended = Stamped(5, 1003.0, "s", 1, TurnEnded(TurnStatus.DONE, TurnStop.END))
        await desk.history.append([replied("a", 4), ended])
        row = await desk.history.row("s")
        assert (row.messages, row.last_turn, row.updated) == (2, TurnStatus.DONE, 1003.0)

    async def test_pinned_sessions_come_first_then_the_newest(self, desk: Desk) -> None:
        for n, name in enumerate("abcd"):
            await desk.history.create(name, name, SessionOptions())
            await desk.history.append([said("x", session=name, t=1000.0 + n)])
        await desk.history.pin("b", True)
        assert [r.session for r in await desk.history.rows()] == ["b", "d", "c", "a"]
        assert [r.session for r in await desk.history.rows(limit=2, offset=1)] == ["d", "c"]
        await desk.history.pin("b", False)
        await desk.history.rename("a", "renamed")
        assert [r.title for r in await desk.history.rows()] == ["d", "c", "b", "renamed"]

    async def test_a_draft_is_kept_until_it_is_cleared(self, desk: Desk) -> None:
        await desk.history.create("s", "", SessionOptions())
        assert await desk.history.draft("s") is None
        await desk.history.save_draft("s", 1, "Hel", "")
        await desk.history.save_draft("s", 1, "Hello", "hm")
        assert await desk.history.draft("s") == (1, "Hello", "hm")
        await desk.history.clear_draft("s")
        await desk.history.clear_draft("s")
        assert await desk.history.draft("s") is None

    async def test_state_is_kept_by_key(self, desk: Desk) -> None:
        await desk.history.create("s", "", SessionOptions())
        value = {"tools": [{"name": "x"}, None, 1.5], "text": "你"}
        await desk.history.put_state("s", "prefix", FrozenDict(value))
        assert await desk.history.state("s", "prefix") == value
        assert await desk.history.state("s", "other") is None
        await desk.history.put_state("s", "prefix", [1])
        assert await desk.history.state("s", "prefix") == [1]

    async def test_search_finds_words_parts_and_short_chinese(self, desk: Desk) -> None:
        await desk.history.create("en", "Weather", SessionOptions())
        await desk.history.create("zh", "闲聊", SessionOptions())
        await desk.history.append([said("Where is the Grüne lighthouse, 100% sure?", session="en", t=1.0)])
        await desk.history.append([replied("The lighthouse stands in the north.", session="en", t=2.0)])
        await desk.history.append([said("今天北京天气怎么样？", session="zh", t=3.0)])

        async def found(text: str) -> list[str]:
            return [r.session for r in await desk.history.search(text)]

        assert await found("LIGHTHOUSE") == ["en"]
        assert await found("ghthou") == ["en"]
        assert await found("lighthouse north") == ["en"]
        assert await found("lighthouse south") == []
        assert await found("天气") == ["zh"]
        assert await found("北京天气") == ["zh"]
        assert await found("气 怎") == ["zh"]
        assert await found("weather") == ["en"]
        assert await found("闲聊") == ["zh"]
        assert await found("100%") == ["en"]
        assert await found("%") == ["en"]
        assert await found('" OR texts') == []
        assert await found("   ") == []
        (row,) = await desk.history.search("天气")
        assert row.snippet is not None
        assert "天气" in row.snippet
        assert (await desk.history.row("zh")).snippet is None

    async def test_search_gives_the_newest_first_and_honours_its_limit(self, desk: Desk) -> None:
        for n in range(4):
            await desk.history.create(f"s{n}", "", SessionOptions())
            await desk.history.append([said("needle", session=f"s{n}", t=float(n))])
        assert [r.session for r in await desk.history.search("needle", limit=3)] == ["s3", "s2", "s1"]

    async def test_a_deleted_session_is_gone_from_everywhere(self, desk: Desk) -> None:
        for name in ("s", "other"):
            await desk.history.create(name, "", SessionOptions())
            await desk.history.append([said("needle", session=name)])
        await desk.history.save_draft("s", 1, "d", "")
        await desk.history.put_state("s", "k", 1)
        await desk.history.delete("s")
        assert [r.session for r in await desk.history.search("needle")] == ["other"]
        assert [r.session for r in await desk.history.rows()] == ["other"]
        await desk.history.create("s", "", SessionOptions())
        assert await desk.history.read("s") == ()
        assert await desk.history.draft("s") is None
        assert await desk.history.state("s", "k") is None

    async def test_a_part_is_not_listed_is_found_and_paid_as_its_session_and_goes_with_it(self, desk: Desk) -> None:
        await desk.history.create("top", "All", SessionOptions())
        await desk.history.create("part", "Zebra", SessionOptions(parent="top", depth=1))
        await desk.history.create("deep", "Zebra too", SessionOptions(parent="part", depth=2))
        await desk.history.append([said("needle", session="top")])
        for name in ("part", "deep"):
            await desk.history.append([
                said(f"thread in {name}", session=name), Stamped(2, 1000.0, name, 1, UsageRecorded("m", "chat", 10, 5)),
            ])  # fmt: skip
        assert (await desk.history.options("deep")).parent == "part"
        assert [r.session for r in await desk.history.rows()] == ["top"]
        assert [r.session for r in await desk.history.search("thread")] == ["top"]
        assert [r.session for r in await desk.history.search("needle")] == ["top"]
        assert await desk.history.search("Zebra") == ()
        assert [(r["session"], r["requests"]) for r in await desk.ledger.usage("session")] == [("top", 2)]
        await desk.history.delete("top")
        for name in ("part", "deep"):
            with pytest.raises(UserFault):
                await desk.history.read(name)
        with pytest.raises(UserFault):
            await desk.history.create("orphan", "", SessionOptions(parent="top", depth=1))

    async def test_blobs_are_kept_by_their_digest_until_nobody_uses_them(self, desk: Desk) -> None:
        data = os.urandom(5000)
        sha = await desk.history.put_blob(data)
        assert await desk.history.put_blob(data) == sha
        assert await desk.history.blob(sha) == data
        for name in ("a", "b"):
            await desk.history.create(name, "", SessionOptions())
        await desk.history.put_state("a", "picture", {"sha": sha})
        await desk.history.append([said(f"see {sha}", session="b")])
        await desk.history.delete("a")
        assert await desk.history.blob(sha) == data
        await desk.history.delete("b")
        with pytest.raises(UserFault) as caught:
            await desk.history.blob(sha)
        assert caught.value.code == "not_found"

    async def test_a_blob_that_no_session_mentions_stays(self, desk: Desk) -> None:
        sha = await desk.history.put_blob(b"loose")
        await desk.history.create("a", "", SessionOptions())
        await desk.history.delete("a")
        assert await desk.history.blob(sha) == b"loose"

    async def test_a_path_is_no_digest(self, desk: Desk) -> None:
        for hostile in ("../host.db", "", "x" * 64, "A" * 64):
            with pytest.raises(UserFault) as caught:
                await desk.history.blob(hostile)
            assert caught.value.code == "not_found"

    async def test_a_session_is_leased_by_one_process(self, desk: Desk) -> None:
        """Hazard J101 (two writers of one conversation)."""
        await desk.history.create("s", "", SessionOptions())
        other = await desk.another()
        await desk.history.lease("s")
        await desk.history.lease("s")
        for attempt in (
            other.history.lease("s"), other.history.append([said("x")]), other.history.delete("s"),
            other.history.set_options("s", SessionOptions(model="x")), other.history.save_draft("s", 1, "x", ""),
        ):  # fmt: skip
            with pytest.raises(UserFault) as caught:
                await attempt
            assert caught.value.code == "session_busy"
        assert await other.history.read("s") == ()
        await other.history.release("s")
        with pytest.raises(UserFault):
            await other.history.lease("s")
        await desk.history.release("s")
        await other.history.lease("s")
        await other.history.append([said("x")])

    async def test_an_open_turn_is_found_unless_its_process_lives(self, desk: Desk) -> None:
        """Hazard J101."""
        await desk.history.create("s", "", SessionOptions())
        await desk.history.lease("s")
        await desk.history.append([said("q"), Stamped(2, 2.0, "s", 1, TurnStarted())])
        other = await desk.another()
        assert await desk.history.open_turns() == ("s",)
        assert await other.history.open_turns() == ()
        await desk.history.release("s")
        assert await other.history.open_turns() == ("s",)
        ended = TurnEnded(TurnStatus.INTERRUPTED, TurnStop.INTERRUPTED)
        await other.history.append([Stamped(3, 3.0, "s", 1, ended)])
        assert await other.history.open_turns() == ()
        assert (await desk.history.row("s")).last_turn is TurnStatus.INTERRUPTED

    async def test_another_process_sees_what_was_written(self, desk: Desk) -> None:
        other = await desk.another()
        await desk.history.create("s", "", SessionOptions())
        await desk.history.append([said("hi")])
        assert [s.event for s in await other.history.read("s")] == [UserSaid("hi")]


class LedgerContract:
    async def test_grants_come_back_in_order_and_can_be_revoked(self, desk: Desk) -> None:
        rules = (
            Rule(Effect.ALLOW, "files.read_*", tool_digest="d1", origin="person"),
            Rule(Effect.DENY, "files.delete", arguments="etc"),
            Rule(Effect.DENY, "files.delete"),
        )
        for rule in rules:
            await desk.ledger.grant(rule)
        assert await desk.ledger.grants() == rules
        await desk.ledger.revoke("files.delete")
        assert await desk.ledger.grants() == rules[:1]

    async def test_the_latest_word_on_a_pattern_counts(self, desk: Desk) -> None:
        await desk.ledger.grant(Rule(Effect.DENY, "a.b"))
        await desk.ledger.grant(Rule(Effect.ALLOW, "a.b", tool_digest="d"))
        assert await desk.ledger.grants() == (Rule(Effect.ALLOW, "a.b", tool_digest="d"),)

    async def test_the_allowed_definition_of_a_tool_is_remembered(self, desk: Desk) -> None:
        """Hazard K118 (a definition that changes after approval)."""
        assert await desk.ledger.known_tool("a.b") is None
        await desk.ledger.remember_tool("a.b", "d1", "old")
        await desk.ledger.remember_tool("a.b", "d2", "new")
        assert await desk.ledger.known_tool("a.b") == ("d2", "new")

    async def test_usage_is_summed_and_unknown_prices_stay_unknown(self, desk: Desk) -> None:
        for name in ("s1", "s2"):
            await desk.history.create(name, "", SessionOptions())
        used = UsageRecorded("m", "chat", 10, 5, 1, 2, 3, 0.25)
        free = UsageRecorded("unpriced", "chat", 7, 1)
        await desk.history.append([Stamped(1, 1.7e9, "s1", 1, used), Stamped(2, 1.7e9, "s1", 1, used)])
        await desk.history.append([Stamped(1, 1.7e9 + 200_000, "s2", 1, free)])
        m, unpriced = await desk.ledger.usage("model")
        assert m == {
            "model": "m", "requests": 2, "input": 20, "output": 10, "cache_read": 2, "cache_write": 4, "reasoning": 6,
            "cost_usd": 0.5, "unpriced": 0,
        }  # fmt: skip
        assert (unpriced["cost_usd"], unpriced["unpriced"]) == (None, 1)
        assert [r["session"] for r in await desk.ledger.usage("session")] == ["s1", "s2"]
        assert len(await desk.ledger.usage("day")) == 2
        await desk.history.delete("s1")
        assert len(await desk.ledger.usage("session")) == 2

    async def test_calls_are_counted_by_server(self, desk: Desk) -> None:
        await desk.history.create("s", "", SessionOptions())
        events: list[Stamped] = []
        for n, outcome in enumerate((Outcome.OK, Outcome.ERROR, Outcome.DENIED, Outcome.CANCELLED)):
            call = f"c{n}"
            asked = ToolRequested(call, "files", "read", "files__read", FrozenDict(), Effect.ALLOW)
            events.append(Stamped(2 * n + 1, 1.0, "s", 1, asked))
            events.append(Stamped(2 * n + 2, 1.0, "s", 1, ToolSettled(call, outcome, duration_ms=10.0)))
        await desk.history.append(events)
        none = {"sampling_requests": 0, "sampling_tokens": 0, "sampling_cost_usd": 0}
        row = {"server": "files", "calls": 4, "failed": 1, "denied": 1, "duration_ms": 40.0} | none
        assert await desk.ledger.usage("server") == (row,)

    async def test_usage_is_summed_by_the_server_that_asked_and_by_the_version_of_a_skill(self, desk: Desk) -> None:
        await desk.history.create("s", "", SessionOptions())
        asked = UsageRecorded("m", "sampling", 10, 5, 1, 2, 0, 0.25, server="files")
        skilled = UsageRecorded("m", "chat", 7, 1, skills=("trip@1.0", "pdf@2"))
        events = [asked, asked, skilled, UsageRecorded("m", "chat", 1, 1, cost_usd=0.5, skills=("pdf@2",))]
        await desk.history.append([Stamped(n + 1, 1.7e9 + n * 90_000, "s", 1, e) for n, e in enumerate(events)])
        (row,) = await desk.ledger.usage("server")
        assert (row["server"], row["calls"]) == ("files", 0)
        assert (row["sampling_requests"], row["sampling_tokens"], row["sampling_cost_usd"]) == (2, 36, 0.5)
        pdf, trip = await desk.ledger.usage("skill")
        assert (pdf["skill"], pdf["requests"], pdf["input"], pdf["cost_usd"], pdf["unpriced"]) == (
            "pdf@2",
            2,
            8,
            0.5,
            1,
        )
        assert (trip["skill"], trip["cost_usd"]) == ("trip@1.0", None)
        assert [r["purpose"] for r in await desk.ledger.usage("purpose")] == ["chat", "sampling"]

    async def test_usage_by_anything_else_is_refused(self, desk: Desk) -> None:
        with pytest.raises(UserFault) as caught:
            await desk.ledger.usage("day; DROP TABLE usage")
        assert caught.value.code == "usage"
