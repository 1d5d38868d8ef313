"""Skills in sessions, from disk to the model: chosen, pinned, kept through edits and restarts, run behind the gate."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from desktop_host.app.compose import open_host
from desktop_host.core.events import AskRaised, Notice, SkillPinned, SkillsChosen, ToolSettled
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.sessions import SessionOptions, TurnStatus
from desktop_host.engine.host import HeadlessPolicy, Host, HostSpec, UserInput
from desktop_host.skills.rollout import route


def write(folder: Path, body: str = "Do it.", files: dict[str, str] | None = None, **meta: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    keys = {"desktop-host-keywords": "zug;train", **{k.replace("_", "-"): v for k, v in meta.items()}}
    tools = keys.pop("allowed-tools", "")
    front = f"name: {folder.name}\ndescription: About trains\n" + (f"allowed-tools: {tools}\n" if tools else "")
    front += "metadata:\n" + "".join(f'  {k}: "{v}"\n' for k, v in keys.items())
    (folder / "SKILL.md").write_text(f"---\n{front}---\n{body}\n", "utf-8")
    for name, text in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


@dataclass
class Stage:
    """A profile with a folder of skills."""

    home: Path
    replies: list[Any] = field(default_factory=list)

    @property
    def skills(self) -> Path:
        return self.home / "profiles" / "default" / "skills"

    def script(self, *replies: Any) -> str:
        path = self.home / "script.json"
        path.write_text(json.dumps([[r] if isinstance(r, dict) else r for r in replies]), "utf-8")
        return f"script:{path}"

    @asynccontextmanager
    async def host(self, **spec: Any) -> AsyncIterator[Host]:
        async with open_host(HostSpec(self.home, headless=HeadlessPolicy(), **spec)) as host:
            await host.skills.rescan()
            yield host


@pytest.fixture
def stage(tmp_path) -> Stage:
    (tmp_path / "home").mkdir()
    return Stage(tmp_path / "home")


def text(t: str) -> dict[str, str]:
    return {"text": t}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": {"tool": tool, "arguments": arguments}}


async def say(host: Host, session: str, words: str):
    return await (await host.submit(session, UserInput(words))).done


async def events(host: Host, session: str, kind: type) -> list[Any]:
    return [s.event for s in await host.history.read(session) if isinstance(s.event, kind)]


def sent(host: Host, session: str) -> list[str]:
    """The person's messages as the model gets them."""
    context = host._sessions.context(session)
    assert context is not None
    return ["\n".join(b.text for b in m.blocks if isinstance(b, Text)) for m in context.conversation.messages()
            if m.role.value == "user"]  # fmt: skip


def settled(found: list[ToolSettled]) -> list[tuple[str, str]]:
    return [(e.outcome.value, "".join(b.text for b in e.content if isinstance(b, Text))) for e in found]


async def test_a_chosen_skill_is_appended_to_the_message_once_and_never_to_the_system_text(stage):
    write(stage.skills / "rail", body="Mind the gap.")
    ref = stage.script(text("one"), text("two"), text("three"))
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        await say(host, session, "which zug?")
        prefix = host._sessions.context(session).prefix
        await say(host, session, "another train please")
        await say(host, session, "and what about the weather on the moon")
        first, second, third = await events(host, session, SkillsChosen)
        assert [p.name for p in first.skills] == ["rail"] and "keyword: zug" in first.skills[0].reason
        assert [p.digest for p in second.skills] == [p.digest for p in first.skills] and second.text == ""
        assert third.skills == ()
        assert "Mind the gap." in sent(host, session)[0] and "Mind the gap." not in sent(host, session)[1]
        assert "Mind the gap." not in prefix.system and "- rail: About trains" in prefix.system
        assert host._sessions.context(session).prefix == prefix


async def test_an_edit_reaches_new_sessions_while_open_ones_keep_theirs_also_after_a_restart(stage):
    """Hazard P152: the start of the conversation is the same bytes, so the vendor's cache holds."""
    write(stage.skills / "rail", "Old words.", {"references/a.md": "old file"})
    ref = stage.script(
        text("one"), call("host.read_skill_file", skill="rail", path="references/a.md"), text("two"),
        call("host.read_skill_file", skill="rail", path="references/a.md"), text("three"),
    )  # fmt: skip
    options = SessionOptions(model=ref, servers=())
    async with stage.host() as host:
        old = await host.new_session(options)
        await say(host, old, "zug")
        system = host._sessions.context(old).prefix
        write(stage.skills / "rail", "New words.", {"references/a.md": "new file"})
        assert await host.skills.rescan() == ("rail",)
        await say(host, old, "zug again")
        assert host._sessions.context(old).prefix == system
        fresh = await host.new_session(options)
        await say(host, fresh, "zug")
        assert "New words." in sent(host, fresh)[0] and "Old words." in sent(host, old)[0]
        pins = {p.session: p for p in await host.skills.pins("rail")}
        assert (pins[old].newest, pins[fresh].newest) == (False, True)
    shutil.rmtree(stage.skills / "rail")
    async with stage.host() as host:
        await say(host, old, "zug once more")
        assert settled(await events(host, old, ToolSettled)) == [("ok", "old file"), ("ok", "old file")]
        chosen = await events(host, old, SkillsChosen)
        assert len({p.digest for e in chosen for p in e.skills}) == 1


async def test_use_newest_gives_an_open_session_the_new_text_with_its_next_message(stage):
    write(stage.skills / "rail", "Old words.")
    ref = stage.script(text("one"), text("two"))
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        await say(host, session, "zug")
        write(stage.skills / "rail", "New words.")
        await host.skills.rescan()
        pin = await host.pin_skill(session, "rail", None)
        await say(host, session, "zug")
        assert "New words." in sent(host, session)[1]
        assert [e.pin.digest for e in await events(host, session, SkillPinned)] == [pin.digest]


async def test_a_canary_choice_stays_with_its_session_and_its_results_are_counted(stage):
    for version in ("1.0", "2.0-beta"):
        write(stage.skills / "rail" / version / "rail", f"Version {version}.")
    rollout = stage.skills / "rail" / "rollout.toml"
    rollout.write_text('[versions."1.0"]\nweight = 0.5\n[versions."2.0-beta"]\nstatus = "beta"\nweight = 0.5\n')
    reply = [text("x"), {"usage": {"input": 10, "output": 5, "cost_usd": 0.01}}]
    ref = stage.script(reply, reply)
    got: dict[str, str] = {}
    async with stage.host() as host:
        found = (await host.skills.skill("rail")).row
        for _ in range(6):
            session = await host.new_session(SessionOptions(model=ref, servers=()))
            await say(host, session, "zug")
            got[session] = (await events(host, session, SkillsChosen))[0].skills[0].version
        await host.skills.set_rollout("rail", {"1.0": 1.0, "2.0-beta": 0.0})
        assert found.versions[1].status.value == "beta"
    async with stage.host() as host:
        for session, version in got.items():
            await say(host, session, "zug")
            assert {p.version for e in await events(host, session, SkillsChosen) for p in e.skills} == {version}
        results = {r.version: r for r in await host.skills.results("rail")}
        for version in ("1.0", "2.0-beta"):
            number = list(got.values()).count(version)
            assert (results[version].sessions, results[version].turns) == (number, 2 * number)
            assert results[version].cost_usd == pytest.approx(0.02 * number)


async def test_thumbs_count_for_the_version_of_their_turn_and_a_branch_counts_nothing_twice(stage):
    write(stage.skills / "rail")
    ref = stage.script(text("one"), text("two"), text("three"))
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        await say(host, session, "zug")
        await say(host, session, "zug")
        await host.give_feedback(session, 1, True)
        await host.give_feedback(session, 2, False)
        await host.give_feedback(session, 2, True)
        row = (await host.skills.results("rail"))[0]
        assert (row.turns, row.sessions, row.thumbs_up, row.thumbs_down) == (2, 1, 2, 0)
        branch = await host.branch(session, 2)
        row = (await host.skills.results("rail"))[0]
        assert (row.turns, row.thumbs_up) == (2, 2)
        write(stage.skills / "rail", "New words.")
        await host.skills.rescan()
        await say(host, branch, "zug")
        first, second = await events(host, branch, SkillsChosen)
        assert first.skills[0].digest == second.skills[0].digest and second.text == "", "a branch keeps the version"


async def test_the_drawn_version_depends_on_session_and_skill_alone(stage):
    for version in ("1.0", "2.0"):
        write(stage.skills / "rail" / version / "rail")
    (stage.skills / "rail" / "rollout.toml").write_text(
        '[versions."1.0"]\nweight = 0.5\n[versions."2.0"]\nweight = 0.5\n'
    )
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=stage.script(text("x")), servers=()))
        await say(host, session, "zug")
        shares = {v.version: v.weight for v in (await host.skills.skill("rail")).row.versions}
        assert shares == {"1.0": 0.5, "2.0": 0.5}
        from desktop_host.skills.rollout import Share

        expected = route(session, "rail", {v: Share(weight=w) for v, w in shares.items()})
        assert (await events(host, session, SkillsChosen))[0].skills[0].version == expected


async def test_the_model_takes_up_a_skill_reads_it_and_runs_its_script(stage):
    add = "import sys\nprint(sum(map(int, sys.argv[1:])))\n"
    write(stage.skills / "calc", "Use the script.", {"scripts/add.py": add}, desktop_host_keywords="nothing")
    ref = stage.script(
        call("host.use_skill", name="calc", input="add 2 and 3"),
        call("host.run_skill_script", skill="calc", script="scripts/add.py", arguments=["2", "3"]), text("5"),
    )  # fmt: skip
    async with stage.host() as host:
        options = SessionOptions(model=ref, servers=(), rules=(Rule(Effect.ALLOW, "host.*"),))
        session = await host.new_session(options)
        result = await say(host, session, "please add")
        assert result.text == "5"
        used, ran = settled(await events(host, session, ToolSettled))
        assert "Use the script." in used[1] and ran == ("ok", "5\n")
        assert [e.pin.name for e in await events(host, session, SkillPinned)] == ["calc"]


async def test_instructions_need_no_leave_but_a_script_does(stage):
    write(stage.skills / "calc", "x", {"scripts/a.py": "print('ran')\n"}, desktop_host_keywords="sum")
    ref = stage.script(
        call("host.use_skill", name="calc"), call("host.run_skill_script", skill="calc", script="scripts/a.py"),
        text("done"),
    )  # fmt: skip
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        result = await say(host, session, "hello")
        assert result.undecided
        assert [e.outcome for e in await events(host, session, ToolSettled)] == [Outcome.OK, Outcome.DENIED]
        assert [e.ask.tool for e in await events(host, session, AskRaised)] == ["run_skill_script"]


async def test_a_granted_skill_runs_its_script_while_it_is_active_and_a_deny_still_wins(stage):
    write(stage.skills / "calc", "x", {"scripts/a.py": "print('ran')\n"}, desktop_host_keywords="sum",
          allowed_tools="host.run_skill_script Bash(git:*)")  # fmt: skip
    run = call("host.run_skill_script", skill="calc", script="scripts/a.py")
    ref = stage.script(run, text("done"), run, text("done"))
    async with stage.host() as host:
        await host.skills.grant_tools("calc", True)
        assert (await host.skills.skill("calc")).row.granted
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        await say(host, session, "sum it")
        assert settled(await events(host, session, ToolSettled)) == [("ok", "ran\n")]
        denied = await host.new_session(SessionOptions(model=ref, servers=(), rules=(Rule(Effect.DENY, "host.run_*"),)))
        await say(host, denied, "sum it")
        assert [e.outcome for e in await events(host, denied, ToolSettled)] == [Outcome.DENIED]
        write(stage.skills / "calc", "x", {"scripts/a.py": "print('ran')\n"}, desktop_host_keywords="sum",
              allowed_tools="host.run_skill_script files.*")  # fmt: skip
        await host.skills.rescan()
        assert not (await host.skills.skill("calc")).row.granted, "another request is another decision"


async def test_a_file_outside_the_skill_cannot_be_read_or_run(stage):
    """Issue: a skill that tries to read outside its folder."""
    (stage.home / "secret.txt").write_text("secret")
    folder = write(stage.skills / "calc", "x", desktop_host_keywords="sum")
    (folder / "leak").symlink_to(stage.home / "secret.txt")
    paths = ["../../../../secret.txt", str(stage.home / "secret.txt"), "leak"]
    steps = [call("host.read_skill_file", skill="calc", path=p) for p in paths]
    steps += [call("host.run_skill_script", skill="calc", script=p) for p in paths]
    ref = stage.script(steps, text("done"))
    async with stage.host() as host:
        options = SessionOptions(model=ref, servers=(), rules=(Rule(Effect.ALLOW, "host.*"),))
        session = await host.new_session(options)
        await say(host, session, "sum")
        told = settled(await events(host, session, ToolSettled))
        assert len(told) == 6 and all(outcome == "error" and "secret\n" not in t for outcome, t in told)


async def test_a_failing_script_names_what_to_use_instead(stage):
    write(stage.skills / "calc", "x", {"scripts/a.py": "raise SystemExit(3)\n"}, desktop_host_keywords="sum",
          desktop_host_fallback="plain")  # fmt: skip
    write(stage.skills / "plain", "By hand.", desktop_host_keywords="nothing")
    ref = stage.script(
        call("host.run_skill_script", skill="calc", script="scripts/a.py"), call("host.use_skill", name="plain"),
        text("done"),
    )  # fmt: skip
    async with stage.host() as host:
        options = SessionOptions(model=ref, servers=(), rules=(Rule(Effect.ALLOW, "host.*"),))
        session = await host.new_session(options)
        await say(host, session, "sum")
        failed, used = settled(await events(host, session, ToolSettled))
        assert failed[0] == "error" and "exit code 3" in failed[1] and "call use_skill with plain" in failed[1]
        assert "By hand." in used[1] and "Handed over from: calc" in used[1]


async def test_several_skills_are_taken_up_at_once_and_joined(stage):
    for name in ("one", "two", "three"):
        write(stage.skills / name, f"Part {name}.", desktop_host_keywords="nothing")
    ref = stage.script([call("host.use_skill", name=n) for n in ("one", "two", "three")], text("joined"))
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=ref, servers=()))
        result = await say(host, session, "go")
        assert result.text == "joined"
        found = settled(await events(host, session, ToolSettled))
        assert sorted(o for o, _ in found) == ["ok"] * 3
        assert {e.pin.name for e in await events(host, session, SkillPinned)} == {"one", "two", "three"}


async def test_requirements_come_along_and_what_is_missing_is_said_before_the_run(stage):
    write(stage.skills / "rail", "x", desktop_host_requires="maps-skill;gone", desktop_host_servers="timetable")
    write(stage.skills / "maps-skill", "Maps.", desktop_host_keywords="nothing")
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=stage.script(text("x")), servers=()))
        await say(host, session, "zug")
        chosen = (await events(host, session, SkillsChosen))[0]
        assert [p.name for p in chosen.skills] == ["maps-skill", "rail"]
        assert chosen.text.index("Maps.") < chosen.text.index('name="rail"')
        needs = {
            (n.params["kind"], n.params["name"]) for n in await events(host, session, Notice) if n.code == "skill_needs"
        }
        assert needs == {("skill", "gone"), ("server", "timetable")}


async def test_the_person_calls_a_skill_by_its_name_with_arguments(stage):
    write(stage.skills / "rail", "Look up $ARGUMENTS now.", desktop_host_keywords="nothing")
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=stage.script(text("x")), servers=()))
        await say(host, session, "/rail Berlin to Rome")
        chosen = (await events(host, session, SkillsChosen))[0]
        assert chosen.skills[0].reason.startswith("person") and "Look up Berlin to Rome now." in chosen.text


async def test_without_skills_the_model_hears_nothing_of_them(stage):
    write(stage.skills / "rail")
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=stage.script(text("x")), servers=(), skills=()))
        await say(host, session, "zug")
        prefix = host._sessions.context(session).prefix
        assert "rail" not in prefix.system and not [t for t in prefix.tools if "skill" in t.name]
        assert (await events(host, session, SkillsChosen))[0].skills == ()


async def test_a_session_limited_to_skills_wakes_them_at_once_and_no_other(stage):
    write(stage.skills / "rail")
    write(stage.skills / "other", desktop_host_keywords="hello")
    async with stage.host() as host:
        ref = stage.script(text("x"))
        session = await host.new_session(SessionOptions(model=ref, servers=(), skills=("rail",)))
        await say(host, session, "hello")
        assert [p.name for p in (await events(host, session, SkillsChosen))[0].skills] == ["rail"]
        missing = await host.new_session(SessionOptions(model=ref, servers=(), skills=("rial",)))
        result = await say(host, missing, "hello")
        assert result.status is TurnStatus.FAILED and result.error["code"] == "not_found"
        assert "rail" in result.error["params"]["nearest"]


async def test_a_project_s_skills_count_once_it_is_trusted_and_for_its_own_sessions(stage):
    project, elsewhere = stage.home / "project", stage.home / "elsewhere"
    elsewhere.mkdir()
    write(project / ".agents" / "skills" / "house-rules", desktop_host_keywords="zug")
    ref = stage.script(text("x"))
    async with stage.host() as host:

        async def woken(root: Path) -> list[str]:
            session = await host.new_session(SessionOptions(model=ref, servers=(), roots=(str(root),)))
            await say(host, session, "zug")
            return [p.name for p in (await events(host, session, SkillsChosen))[0].skills]

        assert await woken(project) == []
        told = [n for s in await host.history.rows() for n in await events(host, s.session, Notice)]
        assert [(n.code, n.params["folder"]) for n in told] == [("skill_project", str(project))]
        await host.skills.trust_project(project, True)
        assert await woken(project) == ["house-rules"] and await woken(elsewhere) == []
        await host.skills.trust_project(project, False)
        assert await woken(project) == []


async def test_settings_offer_instead_of_choosing(stage):
    write(stage.skills / "rail")
    async with stage.host() as host:
        await host.settings.set("skills.activation", "suggest")
        session = await host.new_session(SessionOptions(model=stage.script(text("x")), servers=()))
        await say(host, session, "zug")
        chosen = (await events(host, session, SkillsChosen))[0]
        assert chosen.skills == () and chosen.suggested == ("rail",)


async def test_a_skill_that_is_off_neither_wakes_nor_is_listed(stage):
    """Hazard P151: a switch is a line in the profile's state, no link and no moved folder."""
    write(stage.skills / "rail")
    async with stage.host() as host:
        await host.skills.enable("rail", False)
        session = await host.new_session(SessionOptions(model=stage.script(text("x")), servers=()))
        await say(host, session, "zug")
        assert (await events(host, session, SkillsChosen))[0].skills == ()
        assert "- rail" not in host._sessions.context(session).prefix.system
        assert (await host.skills.skill("rail")).row.state == "disabled"
        assert not (stage.skills / "rail").is_symlink() and (stage.skills / "rail" / "SKILL.md").is_file()


async def test_a_change_is_kept_in_the_history_of_a_skill(stage):
    source = write(stage.home / "src" / "rail", "One.", version="1.0")
    async with stage.host() as host:
        await host.skills.install(source)
        write(stage.skills / "rail", "Two.", {"scripts/new.py": ""}, version="1.0")
        await host.skills.rescan()
        newest, first = await host.skills.changes("rail")
        assert (first.event, newest.event) == ("installed", "changed")
        assert {(f.path, f.change) for f in newest.files} == {("SKILL.md", "changed"), ("scripts/new.py", "added")}


async def test_versions_are_compared_file_by_file(stage):
    write(stage.skills / "rail" / "1.0" / "rail", "One.", {"a.txt": "x"})
    write(stage.skills / "rail" / "2.0" / "rail", "Two.", {"b.txt": "y"})
    async with stage.host() as host:
        changes = {c.path: c for c in await host.skills.diff("rail", "1.0", "2.0")}
        assert {p: c.change for p, c in changes.items()} == {
            "SKILL.md": "changed",
            "a.txt": "removed",
            "b.txt": "added",
        }
        assert "-One." in changes["SKILL.md"].diff and "+Two." in changes["SKILL.md"].diff


async def test_a_local_model_is_told_of_skills_only_once_one_wakes(stage):
    from desktop_host.engine.skills import skilled, without_skills

    write(stage.skills / "rail")
    async with stage.host() as host:
        session = await host.new_session(SessionOptions(model=stage.script(text("x")), servers=()))
        await say(host, session, "hello")
        context = host._sessions.context(session)
        tools = context.prefix.tools
        assert skilled(context) and [t.name for t in tools if t.group == "skills"]
        context.options = SessionOptions(model="local", servers=())
        assert not skilled(context) and not [t for t in without_skills(context, tools) if t.group == "skills"]
        context.conversation.skilled = True
        assert without_skills(context, tools) == tools


async def test_folders_of_other_hosts_are_offered_and_used_on_request_only(stage, monkeypatch):
    monkeypatch.setenv("HOME", str(stage.home / "person"))
    theirs = stage.home / "person" / ".claude" / "skills"
    write(theirs / "borrowed")
    async with stage.host() as host:
        assert [p.path for p in await host.skills.foreign_places()] == [str(theirs)]
        assert "borrowed" not in {r.name for r in await host.skills.skills()}
        await host.skills.add_place(theirs)
        row = (await host.skills.skill("borrowed")).row
        assert (row.source, row.removable) == ("foreign", False)
        assert await host.skills.foreign_places() == ()
        await host.skills.remove_place(theirs)
        assert "borrowed" not in {r.name for r in await host.skills.skills()}


async def test_a_skill_goes_out_and_comes_in_with_a_look_before(stage):
    source = write(stage.home / "src" / "rail", "One.", {"scripts/a.py": ""}, version="1.0")
    async with stage.host() as host:
        await host.skills.install(source)
        packed = await host.skills.export("rail", stage.home)
        await host.skills.remove("rail")
        (seen,) = await host.skills.preview(packed)
        assert (seen.name, seen.version, seen.scripts, seen.replaces) == ("rail", "1.0", ("scripts/a.py",), None)
        assert "rail" not in {r.name for r in await host.skills.skills()}
        (row,) = await host.skills.install(packed)
        assert (row.name, row.version, row.state) == ("rail", "1.0", "ok")
        assert [c.event for c in await host.skills.changes("rail")] == ["installed", "removed", "installed"]


async def test_a_profile_s_skill_shadows_a_bundled_one_and_both_are_rows(stage):
    write(stage.skills / "data-analyst", "Mine.")
    async with stage.host() as host:
        rows = [r for r in await host.skills.skills() if r.name == "data-analyst"]
        assert [(r.source, r.state) for r in rows] == [("profile", "ok"), ("bundled", "shadowed")]
        assert (await host.skills.skill("data-analyst")).skill.body == "Mine."


async def test_requirements_that_go_in_a_circle_are_told(stage):
    write(stage.skills / "a", desktop_host_requires="b")
    write(stage.skills / "b", desktop_host_requires="a")
    async with stage.host() as host:
        row = (await host.skills.skill("a")).row
        assert ("requires-cycle", "a > b > a") in {(p.code, p.detail) for p in row.problems}


async def test_the_working_copy_of_a_script_stays_with_its_session_and_goes_with_it(stage):
    write(stage.skills / "calc", "x", {"scripts/n.sh": "echo x >> notes; wc -l < notes\n"}, desktop_host_keywords="sum")
    run = call("host.run_skill_script", skill="calc", script="scripts/n.sh")
    ref = stage.script(run, text("a"), run, text("b"))
    async with stage.host() as host:
        options = SessionOptions(model=ref, servers=(), rules=(Rule(Effect.ALLOW, "host.*"),))
        session = await host.new_session(options)
        await say(host, session, "sum")
        await say(host, session, "sum")
        assert [t.strip() for _, t in settled(await events(host, session, ToolSettled))] == ["1", "2"]
        assert not (stage.skills / "calc" / "notes").exists(), "the library's own files are never the working copy"
        await host.delete(session)
    runs = stage.home / "profiles" / "default" / "skill-runs"
    assert [p.name for p in runs.iterdir()] == [session]
    async with stage.host():
        await until(lambda: not list(runs.iterdir()))


async def until(true) -> None:
    """Look again and again, for ten seconds at most."""
    import asyncio
    import time

    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
