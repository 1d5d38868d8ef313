"""Questions of the same meaning, and those that only look so: where the limit of kept answers comes from."""

from __future__ import annotations

import pytest

from desktop_host.providers.cache import MEANING_PERCENT, may_mean_the_same, similarity
from desktop_host.skills.likeness import Likeness
from desktop_host.skills.matchers import semantic_installed

SAME = (
    ("What is the capital of France?", "Which city is the capital of France?"),
    ("How do I reverse a list in Python?", "How can I reverse a list in Python?"),
    ("How many days are there in a leap year?", "How many days does a leap year have?"),
    ("What causes rain?", "Why does it rain?"),
    ("Explain what an API is", "What is an API? Explain it to me"),
    ("How do I boil an egg?", "How should I boil an egg?"),
    ("Who wrote Hamlet?", "Who is the author of Hamlet?"),
    ("What does HTTP stand for?", "What is HTTP short for?"),
    ("How far is the moon from the earth?", "What is the distance between the earth and the moon?"),
    ("Give me a recipe for pancakes", "Please give me a pancake recipe"),
    ("What is the boiling point of water?", "At what temperature does water boil?"),
    ("How do I undo the last commit in git?", "How can I undo my last git commit?"),
    ("What is the difference between TCP and UDP?", "How do TCP and UDP differ?"),
    ("法国的首都是哪里？", "法国首都是哪个城市？"),
    ("怎么用 Python 反转列表？", "Python 中如何反转一个列表？"),
    ("闰年有多少天？", "一个闰年有几天？"),
    ("为什么会下雨？", "下雨的原因是什么？"),
    ("什么是 API？", "请解释一下什么是 API"),
    ("鸡蛋怎么煮？", "怎样煮鸡蛋？"),
    ("《哈姆雷特》是谁写的？", "《哈姆雷特》的作者是谁？"),
    ("月球离地球有多远？", "地球和月球之间的距离是多少？"),
    ("水的沸点是多少？", "水在多少度沸腾？"),
    ("怎么撤销 git 的上一次提交？", "如何撤销上一个 git 提交？"),
    ("TCP 和 UDP 有什么区别？", "TCP 与 UDP 的区别是什么？"),
    ("给我一个煎饼的做法", "请给我煎饼的食谱"),
)
NEAR = (
    ("What is the capital of France?", "What is the capital of Spain?"),
    ("How do I reverse a list in Python?", "How do I sort a list in Python?"),
    ("How do I reverse a list in Python?", "How do I reverse a list in Java?"),
    ("How many days are there in a leap year?", "How many weeks are there in a leap year?"),
    ("What causes rain?", "What causes snow?"),
    ("How do I boil an egg?", "How do I fry an egg?"),
    ("Who wrote Hamlet?", "Who wrote Macbeth?"),
    ("What does HTTP stand for?", "What does HTML stand for?"),
    ("How far is the moon from the earth?", "How far is the sun from the earth?"),
    ("Give me a recipe for pancakes", "Give me a recipe for waffles"),
    ("What is the boiling point of water?", "What is the freezing point of water?"),
    ("How do I undo the last commit in git?", "How do I amend the last commit in git?"),
    ("What is the difference between TCP and UDP?", "What is the difference between TCP and IP?"),
    ("Is it safe to take aspirin with alcohol?", "Is it safe to take ibuprofen with alcohol?"),
    ("How do I enable the firewall?", "How do I disable the firewall?"),
    ("法国的首都是哪里？", "西班牙的首都是哪里？"),
    ("怎么用 Python 反转列表？", "怎么用 Python 排序列表？"),
    ("闰年有多少天？", "闰年有多少周？"),
    ("为什么会下雨？", "为什么会下雪？"),
    ("什么是 API？", "什么是 SDK？"),
    ("鸡蛋怎么煮？", "鸡蛋怎么煎？"),
    ("《哈姆雷特》是谁写的？", "《麦克白》是谁写的？"),
    ("月球离地球有多远？", "太阳离地球有多远？"),
    ("水的沸点是多少？", "水的冰点是多少？"),
    ("怎么撤销 git 的上一次提交？", "怎么修改 git 的上一次提交？"),
    ("TCP 和 UDP 有什么区别？", "TCP 和 IP 有什么区别？"),
    ("如何打开防火墙？", "如何关闭防火墙？"),
    ("阿司匹林可以和酒一起吃吗？", "布洛芬可以和酒一起吃吗？"),
)


def test_by_words_no_near_miss_serves() -> None:
    assert max(similarity(*pair) for pair in NEAR) < 0.92


@pytest.mark.skipif(not semantic_installed(), reason="the extra [semantic] is not installed")
async def test_by_meaning_rephrasings_serve_and_no_near_miss_does() -> None:
    likeness = Likeness()

    async def served(one: str, other: str) -> bool:
        scores = await likeness.scores(one, [other])
        assert scores is not None
        return may_mean_the_same(one, other) and scores[0] * 100 >= MEANING_PERCENT

    assert [pair for pair in NEAR if await served(*pair)] == []
    assert sum([await served(*pair) for pair in SAME]) >= 6
    assert not await served("What is MCP?", "MCP 是什么？")


async def test_without_the_extra_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_host.skills.likeness.semantic_installed", lambda: False)
    assert await Likeness().scores("a", ["b"]) is None
