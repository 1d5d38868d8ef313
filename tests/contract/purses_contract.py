"""What every `Purses` and `Answers` must do. `test_purses.py` runs it on the fake and on the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from desktop_host.core.budgets import Answers, CachedAnswer, Purse, Purses
from desktop_host.core.errors import HostError
from desktop_host.core.values import FrozenDict


@dataclass
class Till:
    """One profile, opened by one process; `another()` opens it once more, as a second process would."""

    purses: Purses
    answers: Answers
    another: Callable[[], Awaitable[Till]]


DAY, CHAT = Purse("day", "2026-11-30", usd=1.0), Purse("session", "s", usd=0.5)


class PursesContract:
    async def test_money_is_set_aside_and_settled(self, till: Till) -> None:
        held = await till.purses.reserve((DAY, CHAT), 0.2, 0.1)
        assert held.usd == 0.2
        day, chat = await till.purses.standing((DAY, CHAT))
        assert (day.spent_usd, day.reserved_usd, day.reserved_calls, chat.reserved_usd) == (0.0, 0.2, 1, 0.2)
        await till.purses.settle(held, (DAY, CHAT), 0.05, 1)
        day, chat = await till.purses.standing((DAY, CHAT))
        assert (day.spent_usd, day.calls, day.reserved_usd, day.reserved_calls) == (0.05, 1, 0.0, 0)
        assert chat == day

    async def test_a_purse_gives_what_it_still_holds_but_not_less_than_needed(self, till: Till) -> None:
        await till.purses.settle(None, (CHAT,), 0.4, 1)
        held = await till.purses.reserve((DAY, CHAT), 0.3, 0.05)
        assert held.usd == pytest.approx(0.1)
        with pytest.raises(HostError) as caught:
            await till.purses.reserve((DAY, CHAT), 0.3, 0.05)
        assert (caught.value.code, caught.value.params["scope"], caught.value.params["limit"]) == (
            "budget_spent", "session", 0.5,
        )  # fmt: skip
        told = caught.value.params
        assert (told["reason"], told["spent"], told["left"], told["held"]) == ("session_short", 0.4, 0.0, 0.1)
        await till.purses.settle(held, (CHAT,), 0.1, 1)
        with pytest.raises(HostError) as caught:
            await till.purses.reserve((CHAT,), 0.3, 0.05)
        assert (caught.value.params["reason"], caught.value.params["spent"]) == ("session", 0.5)
        assert (await till.purses.standing((DAY,)))[0].reserved_calls == 0  # nothing was set aside by the refusals

    async def test_what_costs_nothing_passes_a_spent_budget_but_not_a_spent_quota(self, till: Till) -> None:
        full, quota = Purse("day", "d", usd=0.1), Purse("day", "d", usd=0.1, calls=2)
        await till.purses.settle(None, (full,), 0.2, 1)
        held = await till.purses.reserve((full,), 0.0, 0.0)
        with pytest.raises(HostError) as caught:
            await till.purses.reserve((quota,), 0.0, 0.0)
        assert (caught.value.code, caught.value.params["reason"]) == ("quota_spent", "day")
        await till.purses.settle(held, (full,), 0.0, 0)
        await till.purses.reserve((quota,), 0.0, 0.0)

    async def test_tokens_are_counted_beside_money_and_by_all_processes(self, till: Till) -> None:
        await till.purses.settle(None, (DAY, CHAT), 0.0, 0, 120)
        other = await till.another()
        await other.purses.settle(None, (DAY,), 0.1, 1, 30)
        day, chat = await till.purses.standing((DAY, CHAT))
        assert (day.tokens, chat.tokens, day.calls) == (150, 120, 1)

    async def test_a_limit_can_be_raised(self, till: Till) -> None:
        await till.purses.settle(None, (CHAT,), 0.5, 1)
        with pytest.raises(HostError):
            await till.purses.reserve((CHAT,), 0.1, 0.1)
        await till.purses.reserve((Purse("session", "s", usd=2.0),), 0.1, 0.1)

    async def test_sums_of_money_are_exact(self, till: Till) -> None:
        for _ in range(10):
            await till.purses.settle(None, (DAY,), 0.1, 1)
        assert (await till.purses.standing((DAY,)))[0].spent_usd == 1.0
        with pytest.raises(HostError):
            await till.purses.reserve((DAY,), 0.000001, 0.000001)

    async def test_sixteen_sessions_never_overspend_one_budget(self, till: Till) -> None:
        """16 at once, half of them in another process's shoes; a request costs at most what was set aside."""
        tills = [till, await till.another()]
        spent = 0.0
        refused: list[str] = []

        async def session(number: int) -> None:
            nonlocal spent
            own = Purse("session", f"s{number}")
            purses = tills[number % 2].purses
            for turn in range(12):
                try:
                    held = await purses.reserve((DAY, own), 0.03, 0.01)
                except HostError as error:
                    refused.append(error.code)
                    continue
                await asyncio.sleep(0)
                cost = held.usd if turn % 3 else held.usd / 2
                spent += cost
                await purses.settle(held, (DAY, own), cost, 1)

        await asyncio.gather(*(session(n) for n in range(16)))
        (day,) = await till.purses.standing((DAY,))
        assert day.reserved_usd == 0.0 and day.spent_usd == pytest.approx(spent)
        assert 0.98 < day.spent_usd <= 1.0 and set(refused) == {"budget_spent"}


def answer(key: str, question: str, created: float) -> CachedAnswer:
    return CachedAnswer(key, question, "m", FrozenDict({"text": "你好"}), created)


class AnswersContract:
    async def test_an_answer_comes_back_until_it_is_too_old(self, till: Till) -> None:
        kept = answer("k", "what?", 100.0)
        await till.answers.put("scope", kept)
        assert await till.answers.get("k", 50.0) == kept
        assert await till.answers.get("k", 101.0) is None and await till.answers.get("x", 0.0) is None
        await till.answers.put("scope", answer("k", "what?", 200.0))
        assert (await till.answers.get("k", 150.0)).created == 200.0  # type: ignore[union-attr]

    async def test_questions_are_told_by_scope_the_newest_first(self, till: Till) -> None:
        for n in range(3):
            await till.answers.put("a", answer(f"k{n}", f"q{n}", float(n)))
        await till.answers.put("b", answer("other", "q", 9.0))
        assert await till.answers.questions("a", 1.0) == (("k2", "q2"), ("k1", "q1"))
        await till.answers.clear()
        assert await till.answers.questions("a", 0.0) == ()
