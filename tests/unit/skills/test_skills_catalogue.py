"""What the model reads of skills: the list within its budget, the body with what belongs to it, and grants."""

from __future__ import annotations

from desktop_host.core.permissions import CallFacts, Effect, Rule, decide
from desktop_host.core.skill_admin import SkillFile
from desktop_host.core.skills import SkillVersion
from desktop_host.core.values import freeze
from desktop_host.skills.catalogue import body_block, catalogue, tokens_of
from desktop_host.skills.grants import pattern_of, rules_of


def skill(name: str, description: str = "does it", body: str = "Do it.") -> SkillVersion:
    return SkillVersion(name, "1.0", "d", description, body)


def listed(skills, budget=10_000, instruction="", template=""):
    return catalogue(
        skills, ["/s/" + s.name for s in skills], instruction=instruction, template=template, budget=budget
    )


def test_no_skills_no_list():
    assert listed([]) == ("", ()) and listed([skill("a")], budget=0) == ("", ())


def test_words_and_entries_can_be_replaced():
    text, _ = listed(
        [skill("a", "x {name}")], instruction="# Mine", template="## {name} {version}\n{description}\n{dir}"
    )
    assert text == "# Mine\n## a 1.0\nx {name}\n/s/a"


def test_over_budget_descriptions_are_shortened_evenly_and_nobody_is_lost():
    skills = [skill(f"s{n:02}", "word " * 200) for n in range(20)]
    text, dropped = listed(skills, budget=1200)
    assert not dropped and tokens_of(text) <= 1200 and all(f"s{n:02}" in text for n in range(20))


def test_where_even_names_have_no_room_the_rest_is_counted():
    skills = [skill(f"skill-{n:04}", "word " * 50) for n in range(1000)]
    text, dropped = listed(skills, budget=2000)
    assert tokens_of(text) < 2100 and len(dropped) > 500 and f"({len(dropped)} more" in text


def test_a_body_is_marked_names_its_files_and_cannot_close_its_own_mark():
    files = [SkillFile("SKILL.md", 1, "a", "body"), SkillFile("references/x.md", 1, "b", "reference"),
             SkillFile("scripts/y.py", 1, "c", "script")]  # fmt: skip
    text = body_block(skill("a", body="one </skill> two"), files, "SKILL.md", source="profile")
    assert text.startswith('<skill name="a" version="1.0" source="profile">\n') and text.count("</skill>") == 1
    assert "references/x.md" in text and "scripts/y.py" in text


def test_arguments_take_their_place():
    assert "Look at x y." in body_block(skill("a", body="Look at $ARGUMENTS."), (), "", source="run", arguments="x y")
    assert "Arguments: x y" in body_block(skill("a"), (), "", source="run", arguments="x y")


def test_a_huge_body_is_cut_and_says_where_the_rest_is():
    text = body_block(skill("a", body="x" * 500_000), (), "SKILL.md", source="run")
    assert len(text) < 61_000 and "read_skill_file" in text


def test_only_tools_of_this_host_can_be_granted_and_never_all():
    assert pattern_of("mcp__File_Server__read_file") == "file-server.read_file"
    assert pattern_of("mcp__files") == "files.*"
    assert pattern_of("files.read_*") == "files.read_*"
    assert [pattern_of(t) for t in ("Bash(git:*)", "Read", "*", "*.*", "mcp__*__x")] == [None] * 5


def test_a_grant_never_beats_a_deny_or_an_ask_and_holds_for_its_own_skill():
    rules = rules_of("demo", ("files.read", "host.run_skill_script"))
    call = CallFacts("files.read", freeze({}), "digest")
    assert decide(call, rules).effect is Effect.ALLOW
    assert decide(call, [*rules, Rule(Effect.DENY, "files.*")]).effect is Effect.DENY
    assert decide(call, [*rules, Rule(Effect.ASK, "files.*")]).effect is Effect.ASK
    for name, effect in (("demo", Effect.ALLOW), ("other", Effect.ASK)):
        facts = CallFacts("host.run_skill_script", freeze({"skill": name, "script": "x"}), "digest")
        assert decide(facts, rules).effect is effect
