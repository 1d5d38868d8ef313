"""Folders on disk: which skills are found, who shadows whom, and what never leaves a skill's folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_host.core.errors import UserFault
from desktop_host.core.skill_admin import SkillFile, SkillPlace
from desktop_host.core.values import canonical
from desktop_host.skills.folder import DigestCache, RealPaths, contents, digest_of, inside, survey
from desktop_host.skills.scan import Scanner, discover
from desktop_host.skills.state import SkillState


def make(root: Path, name: str, description: str = "does things", body: str = "Do it.", **meta: str) -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    extra = "metadata:\n" + "".join(f'  {k}: "{v}"\n' for k, v in meta.items()) if meta else ""
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n{extra}---\n{body}\n", "utf-8")
    return folder


def scan(*roots: Path, scanner: Scanner | None = None):
    return (scanner or Scanner()).scan(tuple(SkillPlace("extra", str(r)) for r in roots))


def test_skills_are_found_at_any_depth_but_not_within_skills(tmp_path):
    make(tmp_path, "one")
    make(tmp_path / "group" / "deeper", "two")
    make(tmp_path / "one" / "inner", "three")
    make(tmp_path / ".hidden", "four")
    make(tmp_path / "node_modules", "five")
    assert sorted(scan(tmp_path).skills) == ["one", "two"]


def test_a_place_may_be_a_skill_itself(tmp_path):
    make(tmp_path, "solo")
    assert list(scan(tmp_path / "solo").skills) == ["solo"]


def test_the_first_place_shadows_the_second_and_both_are_shown(tmp_path):
    first, second = make(tmp_path / "a", "same", "new"), make(tmp_path / "b", "same", "old")
    found = scan(tmp_path / "a", tmp_path / "b")
    assert found.skills["same"].main.skill.description == "new"
    assert [(f.folder, f.shadowed_by) for f in found.all] == [(first, None), (second, str(first))]


def test_linked_skill_folders_are_found_and_loops_end(tmp_path):
    """Hazard P146."""
    make(tmp_path / "real", "linked")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "linked").symlink_to(tmp_path / "real" / "linked")
    (tmp_path / "place" / "loop").symlink_to(tmp_path / "place")
    snapshot = scan(tmp_path / "place")
    assert list(snapshot.skills) == ["linked"]
    assert snapshot.skills["linked"].main.skill.body == "Do it."
    assert len(snapshot.all) == 1, "a folder is found once, however many ways lead to it"


def test_links_that_leave_a_skill_are_left_out_and_told(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    folder = make(tmp_path / "s", "demo")
    (folder / "references").mkdir()
    (folder / "references" / "leak.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "references" / "gone.txt").symlink_to(tmp_path / "nowhere")
    (folder / "references" / "fine.md").symlink_to(folder / "SKILL.md")
    entry = Scanner().entry(folder, "")
    assert [f.path for f in entry.manifest.files] == ["SKILL.md", "references/fine.md"]
    assert {(p.code, p.file) for p in entry.problems} == {
        ("symlink-outside", "references/leak.txt"), ("symlink-broken", "references/gone.txt"),
    }  # fmt: skip
    assert entry.loaded


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "~/x", "C:\\x", "a\\b", "x\0y", ".", "", "leak"])
def test_reading_never_leaves_the_folder(tmp_path, path):
    folder = make(tmp_path / "s", "demo")
    (tmp_path / "s" / "x").write_text("no")
    (folder / "leak").symlink_to(tmp_path / "s" / "x")
    with pytest.raises(UserFault) as caught:
        inside(folder, path)
    assert caught.value.code == "bad_skill"


def test_odd_files_are_left_out(tmp_path):
    folder = make(tmp_path, "demo")
    os.mkfifo(folder / "pipe")
    with (folder / "big.bin").open("wb") as file:
        file.truncate(11 * 2**20)
    entry = Scanner().entry(folder, "")
    assert {(p.code, p.file) for p in entry.problems} == {("file-skipped", "pipe"), ("file-skipped", "big.bin")}
    assert entry.loaded and [f.path for f in entry.manifest.files] == ["SKILL.md"]


def test_a_digest_covers_paths_and_contents_and_nothing_else(tmp_path):
    folder = make(tmp_path, "demo")
    (folder / "a.txt").write_text("1")
    one = survey(folder, DigestCache()).digest
    os.utime(folder / "a.txt", (1, 1))
    assert survey(folder, DigestCache()).digest == one
    (folder / "a.txt").rename(folder / "b.txt")
    assert survey(folder, DigestCache()).digest != one


@given(st.lists(st.tuples(st.text(max_size=20), st.text("0123456789abcdef", min_size=64, max_size=64)), max_size=5))
def test_a_digest_is_that_of_the_canonical_json_of_its_files(rows):
    rows = [(path.encode("utf-8", "replace").decode(), sha) for path, sha in rows]
    files = [SkillFile(path, 0, sha, "other") for path, sha in rows]
    text = canonical(sorted([path, sha] for path, sha in rows))
    assert digest_of(files) == hashlib.sha256(text.encode()).hexdigest()


def test_a_folder_in_which_nothing_changed_is_not_listed_anew(tmp_path):
    folder = make(tmp_path, "demo")
    (folder / "a.txt").write_text("1")
    before = survey(folder, DigestCache())
    assert survey(folder, DigestCache(), before) is before
    (folder / "a.txt").write_text("2")
    os.utime(folder / "a.txt", ns=(0, int(before.changed * 1e9)))
    after = survey(folder, DigestCache(), before)
    assert after is not before and after.digest != before.digest
    (folder / "b.txt").symlink_to("/etc/hostname")
    assert [p.code for p in survey(folder, DigestCache(), after).problems] == ["symlink-outside"]


def test_real_paths_are_those_of_the_system(tmp_path):
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "hop").symlink_to("inner")
    reals = RealPaths()
    for path in (tmp_path, tmp_path / "link", tmp_path / "link" / "inner", tmp_path / "link" / "hop", "/", ".",
                 tmp_path / "link" / "hop" / "..", tmp_path / "gone" / "x"):  # fmt: skip
        assert reals.of(path) == os.path.realpath(path)


def test_a_broken_skill_costs_itself_and_its_last_good_version_stays(tmp_path):
    make(tmp_path, "good")
    broken = make(tmp_path, "fragile", body="first")
    scanner = Scanner()
    scan(tmp_path, scanner=scanner)
    (broken / "SKILL.md").write_text("---\nname: fragile\n")
    snapshot = scan(tmp_path, scanner=scanner)
    entry = snapshot.skills["fragile"].main
    assert entry.stale and entry.loaded and entry.skill.body == "first"
    assert [(p.code, p.line) for p in entry.problems] == [("unclosed", 1)]
    assert snapshot.skills["good"].main.skill.body == "Do it."
    make(tmp_path, "fragile", body="mended")
    entry = scan(tmp_path, scanner=scanner).skills["fragile"].main
    assert not entry.stale and entry.skill.body == "mended"


def test_a_skill_broken_from_the_start_is_a_row_with_a_reason(tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").write_text("no frontmatter at all")
    found = scan(tmp_path).skills["bad"]
    assert not found.loaded and [p.code for p in found.main.problems] == ["no-frontmatter"]


def test_versions_lie_side_by_side(tmp_path):
    for version in ("1.0.0", "1.10.0", "2.0.0-beta"):
        make(tmp_path / "trip" / version, "trip", body=version)
    (tmp_path / "trip" / "rollout.toml").write_text(
        '[versions."1.10.0"]\nweight = 0.8\n[versions."2.0.0-beta"]\nweight = 0.2\n'
    )
    found = scan(tmp_path).skills["trip"]
    assert list(found.entries) == ["1.0.0", "1.10.0", "2.0.0-beta"]
    assert found.version == "1.10.0" and found.main.skill.body == "1.10.0"
    assert [round(s.weight, 3) for s in found.rollout.values()] == [0, 0.8, 0.2]


def test_a_version_that_is_broken_leaves_the_others(tmp_path):
    make(tmp_path / "trip" / "1.0", "trip")
    make(tmp_path / "trip" / "2.0", "trip")
    (tmp_path / "trip" / "2.0" / "trip" / "SKILL.md").write_text("")
    found = scan(tmp_path).skills["trip"]
    assert found.loaded and found.version == "1.0"
    assert [e.loaded for e in found.entries.values()] == [True, False]


def test_the_file_and_the_folder_may_disagree_about_the_version(tmp_path):
    make(tmp_path / "trip" / "2.0", "trip", version="1.9")
    entry = scan(tmp_path).skills["trip"].main
    assert entry.skill.version == "2.0" and [p.code for p in entry.problems] == ["version-mismatch"]


def test_unreadable_folders_are_told_not_fatal(tmp_path):
    make(tmp_path, "fine")
    folder = make(tmp_path, "locked")
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").mkdir()
    assert list(scan(tmp_path).skills) == ["fine"]


def test_discovery_is_in_order_and_does_not_go_deeper_than_six(tmp_path):
    deep = tmp_path.joinpath(*"abcdefg")
    make(deep, "toodeep")
    make(tmp_path / "b", "fine")
    assert [f.name for f, _ in discover(tmp_path)] == ["fine"]


def test_what_a_person_decided_survives_two_processes_and_a_broken_file(tmp_path):
    one, two = SkillState(tmp_path), SkillState(tmp_path)
    one.change(lambda d: d.update(disabled=["a"]))
    two.change(lambda d: d["disabled"].append("b"))
    one.refresh()
    assert one.disabled == {"a", "b"}
    one.path.write_text("{broken")
    assert one.refresh() and one.disabled == frozenset()
    assert one.path.with_suffix(".broken.json").read_text() == "{broken"
    assert not list(tmp_path.glob("*.lock"))


@pytest.mark.parametrize("size", [0, 1, 4, 5, 6, 100_000])
def test_a_file_is_read_whole_whatever_its_size_was_said_to_be(tmp_path, size):
    for data in (b"", b"12345", b"x" * 3_000_000):
        (tmp_path / "file").write_bytes(data)
        assert contents(str(tmp_path / "file"), size) == data
