"""The verbs `skills` and the options of `chat` about them, as scripts use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write(folder: Path, body: str = "Do it.", version: str = "1.0.0", keywords: str = "zug") -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: {folder.name}\ndescription: About trains\nmetadata:\n  version: \"{version}\"\n"
        f"  desktop-host-keywords: \"{keywords}\"\n---\n{body}\n", "utf-8",
    )  # fmt: skip
    return folder


def script(tmp_path: Path, *texts: str) -> str:
    path = tmp_path / "script.json"
    path.write_text(json.dumps([[{"text": t}] for t in texts]), "utf-8")
    return f"script:{path}"


def of(rows: list[dict[str, Any]], type_: str) -> list[dict[str, Any]]:
    return [r for r in rows if r.get("type") == type_]


def test_lint_has_the_agreed_shape_and_fails_where_a_file_is_not_strict(cli, tmp_path):
    good = write(tmp_path / "good")
    code, rows = cli("skills", "lint", str(good))
    assert (code, rows[0]["ok"], rows[0]["loaded"], rows[0]["problems"]) == (0, True, True, [])
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "SKILL.md").write_text("---\nname: bad\ndescription: Use when: always\n---\nx\n")
    code, rows = cli("skills", "lint", str(good), str(bad))
    assert code == 1 and [r["ok"] for r in rows] == [True, False] and rows[1]["loaded"]
    assert {"path", "name", "version", "ok", "loaded", "problems"} <= rows[1].keys()
    problem = rows[1]["problems"][0]
    assert {"code", "severity", "line", "message", "fix"} <= problem.keys()
    assert (problem["code"], problem["line"], problem["severity"]) == ("yaml-repaired", 3, "warning")
    code, rows = cli("skills", "lint", str(tmp_path / "nowhere"))
    assert (code, rows[0]["code"]) == (2, "not_found")


def test_bundled_skills_are_there_and_valid(cli):
    code, rows = cli("skills", "list")
    assert code == 0 and {r["name"] for r in rows} == {"travel-planner", "document-writer", "data-analyst"}
    assert all(r["state"] == "ok" and r["source"] == "bundled" for r in rows)
    code, rows = cli("skills", "lint", *{r["path"] for r in rows})
    assert code == 0 and len(rows) == 5


def test_the_travel_skill_wakes_as_its_makers_meant(cli):
    def chosen(text: str) -> list[str]:
        return [r["name"] for r in cli("skills", "match", text)[1] if r["chosen"]]

    for text in (
        "旅行",
        "旅游",
        "出行",
        "攻略",
        "去哪玩",
        "订机票",
        "订酒店",
        "帮我规划一个三天两夜的行程",
        "plan a trip to Oslo",
    ):
        assert chosen(text) == ["travel-planner"], text
    for text in ("今天北京天气怎么样", "What's the weather like in Paris?", "hello", "谢谢"):
        assert chosen(text) == [], text


def test_match_tells_why_and_why_not_best_first(cli):
    _, rows = cli("skills", "match", "去上海的天气怎么样")
    assert {"name", "version", "score", "chosen", "reasons", "refused"} <= rows[0].keys()
    travel = next(r for r in rows if r["name"] == "travel-planner")
    assert not travel["chosen"] and travel["refused"] == "excluded: 天气怎么样"
    _, rows = cli("skills", "match", "分析一下这份表格")
    assert rows[0]["name"] == "data-analyst" and rows[0]["chosen"] and "keyword: 分析一下这份表格" in rows[0]["reasons"]
    assert [r["score"] for r in rows] == sorted((r["score"] for r in rows), reverse=True)


def test_versions_and_rollout_of_the_canary(cli):
    _, rows = cli("skills", "versions", "travel-planner")
    assert [(r["version"], r["status"], r["weight"]) for r in rows] == [
        ("1.0.0", "deprecated", 0.0), ("1.1.0", "stable", 0.9), ("2.0.0-beta", "beta", 0.1),
    ]  # fmt: skip
    code, rows = cli("skills", "rollout", "travel-planner", "1.1.0=0.5", "2.0.0-beta=0.5")
    assert code == 0 and [r["weight"] for r in rows] == [0.0, 0.5, 0.5]
    assert [r["weight"] for r in cli("skills", "versions", "travel-planner")[1]] == [0.0, 0.5, 0.5]
    code, rows = cli("skills", "rollout", "travel-planner", "1.1.0=0.5", "2.0.0-beta=0.7")
    assert (code, rows[0]["code"]) == (2, "usage")
    code, rows = cli("skills", "rollout", "travel-planner", "9=1")
    assert (code, rows[0]["code"]) == (2, "not_found")
    code, rows = cli("skills", "rollout", "travel-planner", "nonsense")
    assert (code, rows[0]["code"]) == (2, "usage")


def test_install_show_remove(cli, tmp_path):
    code, rows = cli("skills", "install", str(write(tmp_path / "rail")))
    assert code == 0 and (rows[0]["name"], rows[0]["source"]) == ("rail", "profile")
    code, rows = cli("skills", "show", "rail")
    assert rows[0]["body"] == "Do it." and rows[0]["triggers"]["keywords"] == ["zug"]
    assert [f["path"] for f in rows[0]["files"]] == ["SKILL.md"]
    assert cli("skills", "remove", "rail")[0] == 0
    code, rows = cli("skills", "show", "rail")
    assert (code, rows[0]["code"]) == (2, "not_found")
    code, rows = cli("skills", "remove", "travel-planner")
    assert (code, rows[0]["code"]) == (2, "usage")
    (tmp_path / "x.zip").write_bytes(b"no")
    code, rows = cli("skills", "install", str(tmp_path / "x.zip"))
    assert (code, rows[0]["code"]) == (2, "bad_archive")


def test_chat_takes_folders_names_and_none(cli, tmp_path):
    write(tmp_path / "mine" / "rail", "Mind the gap.")
    chat = ("chat", "which zug?", "--model", script(tmp_path, "hi"), "--no-servers")
    code, rows = cli(*chat, "--skills", str(tmp_path / "mine"))
    chosen = of(rows, "skills_chosen")[0]["skills"]
    assert code == 0 and [s["name"] for s in chosen] == ["rail"]
    assert set(chosen[0]) == {"name", "version", "digest", "reason"} and len(chosen[0]["digest"]) == 64
    assert of(cli(*chat)[1], "skills_chosen")[0]["skills"] == []
    code, rows = cli("chat", "hello", *chat[2:], "--skills", str(tmp_path / "mine"), "--skill", "rail")
    assert [s["name"] for s in of(rows, "skills_chosen")[0]["skills"]] == ["rail"]
    code, rows = cli(*chat, "--skills", str(tmp_path / "mine"), "--no-skills")
    assert code == 0 and of(rows, "skills_chosen")[0]["skills"] == []
    code, rows = cli(*chat, "--skill", "nobody")
    assert code == 2 and of(rows, "error")[0]["code"] == "not_found"
    code, rows = cli(*chat, "--skills", str(tmp_path / "nowhere"))
    assert code == 2 and of(rows, "error")[0]["code"] == "not_found"


def test_a_pin_by_hand_holds_from_the_next_message_on(cli, tmp_path):
    ref = script(tmp_path, "one", "two")
    rows = cli("chat", "a trip to Rome", "--model", ref, "--no-servers")[1]
    session = rows[0]["session"]
    code, pinned = cli("skills", "pin", session, "travel-planner", "2.0.0-beta")
    assert code == 0 and (pinned[0]["version"], len(pinned[0]["digest"])) == ("2.0.0-beta", 64)
    rows = cli("chat", "a trip to Oslo", "--session", session, "--model", ref, "--no-servers")[1]
    chosen = of(rows, "skills_chosen")[0]["skills"][0]
    assert (chosen["version"], chosen["digest"]) == ("2.0.0-beta", pinned[0]["digest"])
    code, rows = cli("skills", "pin", session, "travel-planner", "7")
    assert (code, rows[0]["code"]) == (2, "not_found")
    code, rows = cli("skills", "pin", "nobody", "travel-planner", "1.1.0")
    assert (code, rows[0]["code"]) == (2, "not_found")
    results = cli("skills", "versions", "travel-planner")[1]
    assert sum(r["results"]["turns"] for r in results) == 2 and results[2]["results"]["turns"] >= 1


def test_one_broken_skill_costs_itself_alone(cli, tmp_path):
    """Hazards P140, P145."""
    write(tmp_path / "home" / "profiles" / "default" / "skills" / "rail")
    bad = tmp_path / "home" / "profiles" / "default" / "skills" / "bad"
    bad.mkdir()
    (bad / "SKILL.md").write_bytes(b"\xff\xfe\x00garbage")
    rows = {r["name"]: r for r in cli("skills", "list")[1]}
    assert rows["bad"]["state"] == "broken" and rows["bad"]["problems"][0]["line"] == 1
    assert rows["rail"]["state"] == "ok"
