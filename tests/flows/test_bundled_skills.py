"""The three skills that come with the host, used as a person would: woken by plain words, run to their end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from desktop_host.app.compose import open_host
from desktop_host.core.events import SkillsChosen, SubtaskChanged, ToolSettled
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.places import shipped
from desktop_host.core.sessions import SessionOptions, TurnStatus
from desktop_host.engine.host import HeadlessPolicy, Host, HostSpec, UserInput
from desktop_host.i18n import LANGUAGES, Translator
from desktop_host.skills.document import parse
from desktop_host.skills.lint import lint

SUMMARIZE = shipped("skills") / "data-analyst" / "scripts" / "summarize.py"
SALES = """日期,地区,销售额
2025/9/6,华东,100
2025/10/1,华北,"1,200.50"
2025/10/3,华东,300
2025/10/3,华东,300
2025-11-20,华北,
"""


def call(tool: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"call": {"tool": f"host.{tool}", "arguments": arguments}}]


def prepare(home: Path, replies: tuple[Any, ...]) -> None:
    home.mkdir(exist_ok=True)
    (home / "script.json").write_text(json.dumps(replies), "utf-8")


@asynccontextmanager
async def opened(home: Path, *replies: Any, allow: str = "") -> AsyncIterator[tuple[Host, str]]:
    prepare(home, replies)
    rules = (Rule(Effect.ALLOW, allow),) if allow else ()
    async with open_host(HostSpec(home, headless=HeadlessPolicy())) as host:
        await host.skills.rescan()
        options = SessionOptions(model=f"script:{home / 'script.json'}", servers=(), rules=rules)
        yield host, await host.new_session(options)


async def say(host: Host, session: str, words: str) -> Any:
    return await (await host.submit(session, UserInput(words))).done


async def events(host: Host, session: str, kind: type) -> list[Any]:
    return [s.event for s in await host.history.read(session) if isinstance(s.event, kind)]


def told(event: ToolSettled) -> str:
    return "".join(b.text for b in event.content if isinstance(b, Text))


def test_all_of_them_are_strictly_valid_and_every_file_they_name_is_there():
    reports = lint((shipped("skills"),))
    assert len(reports) == 5 and all(r.ok and not r.problems for r in reports)
    for report in reports:
        folder = Path(report.path)
        body = parse((folder / "SKILL.md").read_bytes(), folder.name).skill.body
        named = {w.strip("`.,;") for w in body.split() if w.startswith(("`references/", "`assets/", "`scripts/"))}
        assert all((folder / name).is_file() for name in named), named


@pytest.mark.parametrize(
    "words",
    [
        "我想去旅行", "国庆旅游", "五一出行有什么建议", "求一份成都攻略", "周末去哪玩", "帮我订机票去上海",
        "订一张去上海的机票",
        "帮我订酒店", "帮我规划一个三天两夜的行程", "Plan a trip to Lisbon", "we need a vacation",
    ],
)  # fmt: skip
async def test_the_words_of_travel_wake_the_travel_planner(tmp_path, words):
    async with opened(tmp_path / "home") as (host, _):
        best = (await host.skills.match(words))[0]
        assert (best.name, best.chosen) == ("travel-planner", True)


@pytest.mark.parametrize(
    "words", ["今天天气怎么样", "明天北京会下雨吗", "What's the weather in Paris tomorrow?", "气温多少度"]
)
async def test_a_plain_question_about_the_weather_wakes_none(tmp_path, words):
    async with opened(tmp_path / "home") as (host, _):
        assert not any(m.chosen for m in await host.skills.match(words))


@pytest.mark.parametrize(
    "words",
    [
        *(Translator(language).text("demo.question") for language in LANGUAGES),
        "Which of my documents mention the budget?", "在我的文档里找一下保修期",
    ],
)  # fmt: skip
async def test_a_question_that_only_names_documents_is_offered_no_skill(tmp_path, words):
    async with opened(tmp_path / "home") as (host, _):
        assert [m.name for m in await host.skills.match(words) if m.chosen or m.suggested] == []


async def test_a_trip_is_planned_with_parts_side_by_side_and_handed_over_to_the_writer(tmp_path):
    """Steps, parts, hand-over with what is done: the travel planner reads its form, forks, and calls the writer."""
    tasks = [
        {"name": "Ways", "task": "x", "skill": "nowhere"},
        {"name": "Stay", "task": "y", "skill": "document-writer"},
    ]
    async with opened(
        tmp_path / "home", call("read_skill_file", skill="travel-planner", path="references/day-plan.md"),
        call("run_subtasks", tasks=tasks), call("use_skill", name="document-writer", input="the plan"),
        [{"text": "The dossier."}],
    ) as (host, session):  # fmt: skip
        await host.pin_skill(session, "travel-planner", "1.1.0")
        done = await say(host, session, "帮我规划一个三天两夜的行程")
        assert (done.status, done.text) == (TurnStatus.DONE, "The dossier.")
        (chosen,) = await events(host, session, SkillsChosen)
        assert [(p.name, p.version) for p in chosen.skills] == [("travel-planner", "1.1.0")]
        form, parts, writer = await events(host, session, ToolSettled)
        assert "每日行程格式" in told(form)
        assert "[Part 1 of 2, Ways: failed by nowhere, not_found" in told(parts)
        assert "Handed over from: travel-planner (帮我规划一个三天两夜的行程)" in told(writer)
        assert len(await events(host, session, SubtaskChanged)) >= 4


async def test_a_real_table_is_summarised_behind_the_gate(tmp_path):
    table = tmp_path / "sales.csv"
    table.write_bytes(SALES.encode("gb18030"))
    run = call("run_skill_script", skill="data-analyst", script="scripts/summarize.py",
               arguments=[str(table), "--month", "日期", "--rows", "1"])  # fmt: skip
    async with opened(tmp_path / "home", run, [{"text": "October."}], allow="host.run_skill_script") as (host, session):
        done = await say(host, session, "请做数据分析: sales.csv 哪个月卖得最多")
        assert done.text == "October."
        (settled,) = await events(host, session, ToolSettled)
        assert settled.outcome is Outcome.OK, told(settled)
        assert "5 rows, 3 columns, 1 doubled rows" in told(settled)
        assert "| 日期 | date | 0 | 4 | 2025/9/6 to 2025-11-20, 3 months |" in told(settled)
        assert "| 2025-10 | 3 | 1,800.5 (+1700.5 %) |" in told(settled)


def summarize(*words: str, given: str = "") -> tuple[int, str]:
    done = subprocess.run([sys.executable, str(SUMMARIZE), *words], input=given, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "given", "code", "says"),
    [
        (("-",), '[{"a": 1, "b": "x"}, {"a": 2}]', 0, "| b | text | 1 | 1 | x (1) |"),
        (("-",), '{"a": 1}\n{"a": 3}\n', 0, "mean 2, median 2"),
        (("-", "--by", "b"), "a;b\n1;x\n3;x\n5;y\n", 0, "| x | 2 | 2 / 4 |"),
        (("-", "--only", "b=x"), "a;b\n1;x\n3;x\n5;y\n", 0, "2 rows"),
        (("-",), "n\n" + "\n".join([*(str(i) for i in range(20)), "9999"]) + "\n", 0, "1 far out"),
        (("-", "--only", "c=x"), "a;b\n1;x\n", 1, "there is no column 'c'"),
        (("-", "--month", "b"), "a;b\n1;x\n", 1, "no dates"),
        (("-",), "[1, 2]", 1, "no list of objects"),
        (("-",), "", 1, "no rows"),
        (("/nowhere/at.csv",), "", 1, "cannot be read"),
    ],
)  # fmt: skip
def test_the_script_says_what_stands_in_a_table_and_what_is_wrong_with_it(words, given, code, says):
    assert summarize(*words, given=given) == (code, summarize(*words, given=given)[1])
    assert says in summarize(*words, given=given)[1]


async def test_minutes_are_written_by_their_form(tmp_path):
    async with opened(
        tmp_path / "home", call("read_skill_file", skill="document-writer", path="assets/minutes.md"),
        [{"expect": {"last_result_contains": "决议"}}, {"text": "# Minutes"}],
    ) as (host, session):  # fmt: skip
        done = await say(host, session, "帮我把这些写成会议纪要")
        assert (done.status, done.text) == (TurnStatus.DONE, "# Minutes")
        (chosen,) = await events(host, session, SkillsChosen)
        assert [p.name for p in chosen.skills] == ["document-writer"]
