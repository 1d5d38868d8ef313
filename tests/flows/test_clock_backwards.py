"""The computer's clock is set back by days in the middle of a conversation."""

from __future__ import annotations

from pathlib import Path

from desktop_host.core.events import UsageRecorded, UserSaid
from desktop_host.core.messages import Outcome
from desktop_host.core.sessions import TurnStatus
from desktop_host.core.transcript import ToolEntry
from desktop_host.storage import open_storage
from tests.fakes.list_model import call
from tests.fakes.manual_clock import ManualClock
from tests.fakes.rig import Rig

DAY = 86_400


async def test_a_clock_that_is_set_back_changes_neither_order_nor_sums_nor_what_may_go_on(tmp_path: Path) -> None:
    clock = ManualClock()
    replies = [[call("t.one", "c1")], ["first"], [call("t.one", "c2")], ["second"], ["third"]]
    async with open_storage(tmp_path, now=clock.now) as storage:
        r = Rig(replies, storage=storage, clock=clock)
        r.tools.add("t.one", "1")
        session = await r.session()
        await r.say(session, "a")
        clock._now -= 3 * DAY
        second = await r.say(session, "b")
        assert (second.status, second.text) == (TurnStatus.DONE, "second")
        seqs = [s.seq for s in r.events]
        assert seqs == sorted(set(seqs))
        assert r.events[-1].t < r.events[0].t
        await r.close()
    clock._now -= DAY
    async with open_storage(tmp_path, now=clock.now) as storage:
        again = Rig(replies, storage=storage, clock=clock)
        again.tools.add("t.one", "1")
        third = await again.say(session, "c")
        assert (third.status, third.text) == (TurnStatus.DONE, "third")
        read = await storage.history.read(session)
        assert [s.seq for s in read] == sorted(s.seq for s in read)
        assert [s.event.text for s in read if isinstance(s.event, UserSaid)] == ["a", "b", "c"]
        cards = [e for e in (await again.host.transcript(session)).entries if isinstance(e, ToolEntry)]
        assert [(c.call_id, c.outcome) for c in cards] == [("c1", Outcome.OK), ("c2", Outcome.OK)]
        used = [s.event for s in read if isinstance(s.event, UsageRecorded)]
        days = await storage.ledger.usage("day")
        assert sum(row["input"] for row in days) == sum(u.input for u in used)
        await again.close()
