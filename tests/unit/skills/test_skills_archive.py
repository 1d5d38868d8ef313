"""Archives and folders on their way in and out: what is taken, and what an enemy packed is refused for."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.skill_admin import SkillPlace
from desktop_host.skills import archive
from desktop_host.skills.install import export, install, opened, preview, remove
from desktop_host.skills.scan import Scanner

SKILL = '---\nname: demo\ndescription: d\nmetadata:\n  version: "{version}"\n---\n{body}\n'


def text(version: str = "1.0.0", body: str = "Do it.") -> str:
    return SKILL.format(version=version, body=body)


def packed(path: Path, files: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            z.writestr(name, data)
    return path


def names(source: Path, tmp_path: Path) -> list[str]:
    with opened(source, tmp_path / "scratch") as found:
        return sorted(p.name for p in found)


def put(source: Path, profile: Path, *, over: bool = False) -> list[bool]:
    place = SkillPlace("profile", str(profile), writable=True)
    present = Scanner().scan((place,)).skills if profile.is_dir() else {}
    with opened(source, profile.parent / "scratch") as found:
        return [install(p, profile, present.get(p.name), over=over) for p in found]


def look(profile: Path):
    return Scanner().scan((SkillPlace("profile", str(profile), writable=True),)).skills


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ({"SKILL.md": text()}, ["demo"]),
        ({"demo/SKILL.md": text(), "demo/references/a.md": "a"}, ["demo"]),
        ({"repo-main/skills/demo/SKILL.md": text(), "repo-main/README.md": "x"}, ["demo"]),
        ({"demo/SKILL.md": text(), "other/SKILL.md": text().replace("demo", "other")}, ["demo", "other"]),
        ({"demo/SKILL.md": text(), "__MACOSX/demo/._SKILL.md": b"\0\1", "demo/.DS_Store": b"\0"}, ["demo"]),
        ({"SKILL.md": text().replace("demo", "claude-helper")}, ["claude-helper"]),
    ],
)  # fmt: skip
def test_an_archive_may_hold_a_skill_anywhere(tmp_path, layout, expected):
    """Hazards P148, P149: named by the skill, never by the archive or by a folder `content`."""
    assert names(packed(tmp_path / "content.skill", layout), tmp_path) == expected


def test_two_downloads_of_one_name_are_two_skills_and_one_never_lands_in_the_other(tmp_path):
    """Hazard P149."""
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first = packed(tmp_path / "first" / "content.zip", {"content/SKILL.md": text(), "content/a.md": "a"})
    other = text().replace("demo", "other")
    second = packed(tmp_path / "second" / "content.zip", {"content/SKILL.md": other, "content/b.md": "b"})
    profile = tmp_path / "skills"
    put(first, profile)
    put(second, profile)
    found = Scanner().scan((SkillPlace("profile", str(profile), writable=True),)).skills
    assert {name: sorted(f.path for f in s.main.manifest.files) for name, s in found.items()} == {
        "demo": ["SKILL.md", "a.md"], "other": ["SKILL.md", "b.md"]
    }  # fmt: skip


def test_an_archive_with_two_skills_of_one_name_is_refused_whole(tmp_path):
    """Hazard P149: the second would overwrite the first."""
    with pytest.raises(UserFault) as caught:
        names(packed(tmp_path / "a.zip", {"x/SKILL.md": text(body="one"), "y/SKILL.md": text(body="two")}), tmp_path)
    assert (caught.value.code, caught.value.params["reason"]) == ("bad_skill", "twice")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../evil.txt", "outside"), ("/etc/evil", "outside"), ("demo/../../evil", "outside"), ("C:/evil", "outside"),
        ("demo\\..\\evil", "outside"), ("demo/CON", "reserved"), ("demo/nul.txt", "reserved"), ("demo/x.", "reserved"),
        ("demo/" + "a" * 1100, "long_path"), ("demo/" + "a" * 300, "long_path"),
    ],
)  # fmt: skip
def test_paths_that_lead_elsewhere_are_refused(tmp_path, name, reason):
    source = packed(tmp_path / "a.zip", {"demo/SKILL.md": text(), name: "x"})
    with pytest.raises(UserFault) as caught:
        names(source, tmp_path)
    assert (caught.value.code, caught.value.params["reason"]) == ("bad_archive", reason)
    assert not list(tmp_path.parent.glob("evil*")) and not (tmp_path / "evil.txt").exists()


def test_links_in_an_archive_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as z:
        z.writestr("demo/SKILL.md", text())
        link = zipfile.ZipInfo("demo/passwd")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        z.writestr(link, "/etc/passwd")
    with pytest.raises(UserFault) as caught:
        names(tmp_path / "a.zip", tmp_path)
    assert caught.value.params["reason"] == "symlink"


def test_a_zip_bomb_is_refused_before_it_is_large(tmp_path):
    source = packed(tmp_path / "a.zip", {"demo/SKILL.md": text(), "demo/zeros": b"\0" * (9 * 2**20)})
    assert source.stat().st_size < 100_000
    with pytest.raises(UserFault) as caught:
        names(source, tmp_path)
    assert caught.value.params["reason"] == "bomb"
    assert not list((tmp_path / "scratch").iterdir())


def test_a_lie_about_a_size_is_found_out_while_unpacking(tmp_path):
    source = packed(tmp_path / "a.zip", {"demo/SKILL.md": text(), "demo/big": bytes(range(256)) * 48 * 1024})
    with pytest.raises(UserFault) as caught:
        names(source, tmp_path)
    assert caught.value.params["reason"] in ("too_large", "bomb")


def test_an_archive_of_very_many_entries_is_refused(tmp_path):
    source = packed(tmp_path / "a.zip", {f"demo/{n}": "" for n in range(archive.MAX_FILES + 1)})
    with pytest.raises(UserFault) as caught:
        names(source, tmp_path)
    assert caught.value.params["reason"] == "too_many"


def test_names_that_differ_in_case_alone_are_refused(tmp_path):
    source = packed(tmp_path / "a.zip", {"demo/SKILL.md": text(), "demo/a": "1", "demo/A": "2"})
    with pytest.raises(UserFault) as caught:
        names(source, tmp_path)
    assert caught.value.params["reason"] == "twice"


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04rubbish", b"not a zip"])
def test_what_is_no_archive_is_refused(tmp_path, data):
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(UserFault) as caught:
        names(tmp_path / "a.zip", tmp_path)
    assert caught.value.code == "bad_archive"


def test_what_holds_no_skill_is_refused(tmp_path):
    for source in (packed(tmp_path / "a.zip", {"README.md": "x"}), tmp_path / "gone.zip"):
        with pytest.raises(UserFault) as caught:
            names(source, tmp_path)
        assert caught.value.code in ("bad_skill", "not_found")
    assert caught.value.code == "not_found"


def test_a_preview_tells_files_scripts_and_tools_and_installs_nothing(tmp_path):
    folder = tmp_path / "src" / "demo"
    (folder / "scripts").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("secret")
    (folder / "scripts" / "run.py").write_text("print(1)")
    (folder / "SKILL.md").write_text(
        text().replace("description: d", "description: d\nallowed-tools: Bash(git:*) files.read")
    )
    with opened(folder, tmp_path / "scratch") as found:
        seen = preview(found[0], None, "demo")
    assert (seen.name, seen.version, seen.scripts) == ("demo", "1.0.0", ("scripts/run.py",))
    assert seen.allowed_tools == ("Bash(git:*)", "files.read") and seen.replaces is None
    assert {f.path for f in seen.files} == {"SKILL.md", "scripts/run.py"}


def test_a_broken_skill_is_not_installed(tmp_path):
    source = packed(tmp_path / "a.zip", {"demo/SKILL.md": "---\nname: demo\n"})
    with pytest.raises(UserFault) as caught:
        put(source, tmp_path / "skills")
    assert (caught.value.code, caught.value.params["line"]) == ("bad_skill", 1)
    assert not (tmp_path / "skills" / "demo").exists()


def test_installing_the_same_again_changes_nothing_and_other_files_need_a_word(tmp_path):
    profile = tmp_path / "skills"
    first = packed(tmp_path / "a.zip", {"demo/SKILL.md": text()})
    other = packed(tmp_path / "b.zip", {"demo/SKILL.md": text(body="Else.")})
    assert put(first, profile) == [True] and put(first, profile) == [False]
    with pytest.raises(UserFault) as caught:
        put(other, profile)
    assert caught.value.params["reason"] == "installed" and look(profile)["demo"].main.skill.body == "Do it."
    assert put(other, profile, over=True) == [True] and look(profile)["demo"].main.skill.body == "Else."
    assert [p.name for p in profile.iterdir()] == ["demo"]


def test_another_version_stands_beside_the_first_without_sessions_yet(tmp_path):
    profile = tmp_path / "skills"
    put(packed(tmp_path / "a.zip", {"demo/SKILL.md": text("1.0.0")}), profile)
    put(packed(tmp_path / "b.zip", {"demo/SKILL.md": text("1.1.0", "New.")}), profile)
    found = look(profile)["demo"]
    assert {v: s.weight for v, s in found.rollout.items()} == {"1.0.0": 1.0, "1.1.0": 0.0}
    assert found.entries["1.1.0"].skill.body == "New." and not found.problems
    remove(found, "1.0.0")
    left = look(profile)["demo"]
    assert {v: s.weight for v, s in left.rollout.items()} == {"1.1.0": 1.0} and not left.problems


def test_an_exported_skill_comes_back_the_same(tmp_path):
    profile, again = tmp_path / "skills", tmp_path / "again"
    put(packed(tmp_path / "a.zip", {"demo/SKILL.md": text("1.0.0"), "demo/scripts/x.sh": "echo"}), profile)
    put(packed(tmp_path / "b.zip", {"demo/SKILL.md": text("2.0.0")}), profile)
    found = look(profile)["demo"]
    one, two = export(found, tmp_path / "x.skill"), export(found, tmp_path / "y.zip")
    assert one.read_bytes() == two.read_bytes()
    put(one, again)
    back = look(again)["demo"]
    assert {v: e.skill.digest for v, e in back.entries.items()} == {v: e.skill.digest for v, e in found.entries.items()}
    assert back.rollout == found.rollout


def test_only_skills_of_the_profile_are_deleted(tmp_path):
    folder = tmp_path / "elsewhere" / "demo"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text())
    found = Scanner().scan((SkillPlace("extra", str(folder.parent)),)).skills["demo"]
    with pytest.raises(UserFault):
        remove(found, None)
    assert folder.exists()
