from __future__ import annotations

import stat
import subprocess
import sys
import uuid
from pathlib import Path

import keyring
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_host.core.errors import HostError, KnownFault, UserFault
from desktop_host.i18n import Translator
from desktop_host.profiles.store import Profiles, checked_name
from desktop_host.profiles.vault import open_vault, service
from tests.fakes.memory_keyring import MemoryKeyring


def test_a_profile_is_made_on_first_use_with_private_folders(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path / "家" / "home")
    assert profiles.names() == ()
    opened = profiles.open("工作 2")
    assert opened.path == tmp_path / "家" / "home" / "profiles" / "工作 2"
    assert uuid.UUID(opened.uuid)
    for folder in (opened.path, opened.path / "skills", opened.path / "logs", opened.path.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert profiles.names() == ("工作 2",)
    assert profiles.open("工作 2").uuid == opened.uuid


def test_a_folder_that_others_can_read_is_closed_to_them(tmp_path: Path) -> None:
    """Hazard O136."""
    folder = tmp_path / "profiles" / "default"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    Profiles(tmp_path).open("default")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "a\\b", "/etc", "C:\\x", "C:", "a\0b", "a\nb", " a", "a ", "a.", ".hidden", "nul",
     "CON", "com1.txt", "x" * 65, "汉" * 80, "a:b", "a*", "\ud800", "~", "-"],
)  # fmt: skip
def test_a_name_that_is_no_harmless_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserFault) as caught:
        Profiles(tmp_path).open(name)
    assert caught.value.code == "usage"
    assert not (tmp_path / "profiles").exists()


@given(st.text(max_size=80))
def test_whatever_name_is_taken_stays_inside(name: str) -> None:
    home = Path("/home-of-a-test")
    try:
        path = Profiles(home).path(name)
    except HostError:
        return
    assert path.parent == home / "profiles"
    assert path.name == checked_name(path.name)


def test_names_that_differ_in_case_alone_are_one(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path)
    profiles.create("Work")
    for taken in ("Work", "work"):
        with pytest.raises(UserFault) as caught:
            profiles.create(taken)
        assert caught.value.params["reason"] == "profile_exists"


def test_a_renamed_profile_keeps_its_identity(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path)
    before = profiles.open("a")
    identity = before.uuid
    before.close()
    profiles.rename("a", "A")
    profiles.rename("A", "b")
    assert profiles.names() == ("b",)
    assert profiles.open("b").uuid == identity
    profiles.create("c")
    with pytest.raises(UserFault):
        profiles.rename("c", "B")
    with pytest.raises(UserFault) as caught:
        profiles.rename("ghost", "d")
    assert caught.value.code == "not_found"


def test_a_profile_that_is_open_is_neither_deleted_nor_renamed(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path)
    opened = profiles.open("a")
    code = (
        "import sys, pathlib\n"
        "from desktop_host.profiles.store import Profiles\n"
        "from desktop_host.core.errors import UserFault\n"
        "p = Profiles(pathlib.Path(sys.argv[1]))\n"
        "p.open('a').close()\n"
        "for work in (lambda: p.delete('a'), lambda: p.rename('a', 'b')):\n"
        "    try: work(); print('done')\n"
        "    except UserFault as e: print(e.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout.split() == ["session_busy", "session_busy"], done.stderr
    assert opened.path.is_dir()
    opened.close()
    opened.close()
    profiles.delete("a")
    assert profiles.names() == ()
    assert list((tmp_path / "profiles").iterdir()) == []


def test_an_open_profile_is_let_go_with_its_object(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path)
    profiles.open("a")
    profiles.delete("a")


async def test_deleting_a_profile_deletes_its_secrets_and_no_others(tmp_path: Path) -> None:
    before = keyring.get_keyring()
    fake = MemoryKeyring()
    keyring.set_keyring(fake)
    try:
        profiles = Profiles(tmp_path)
        kept: dict[str, str] = {}
        for name in ("a", "b"):
            opened = profiles.open(name)
            vault = await open_vault(opened.uuid, opened.path, environ={})
            await vault.put("openai", f"key of {name}")
            kept[name] = opened.uuid
            opened.close()
        assert profiles.delete("a") == ()
        assert fake.kept == {(service(kept["b"]), "openai"): "key of b"}
        fake.locked = True
        assert profiles.delete("b") == ("openai",)
        assert profiles.names() == ()
    finally:
        keyring.set_keyring(before)


def test_a_link_is_no_profile_that_can_be_deleted(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path)
    profiles.create("real")
    (tmp_path / "profiles" / "link").symlink_to(tmp_path / "profiles" / "real")
    with pytest.raises(UserFault) as caught:
        profiles.delete("link")
    assert caught.value.code == "not_found"
    assert profiles.open("real").path.is_dir()


@pytest.mark.parametrize("left", [b"nonsense", b"", b"\xb9\xff\x00"], ids=["text", "empty", "bytes"])
def test_a_damaged_identity_is_named_and_kept(tmp_path: Path, left: bytes) -> None:
    profiles = Profiles(tmp_path)
    profiles.create("a")
    path = tmp_path / "profiles" / "a" / "profile.id"
    path.write_bytes(left)
    with pytest.raises(KnownFault) as caught:
        profiles.open("a")
    assert caught.value.params["path"] == str(path)
    assert path.read_bytes() == left
    said, remedy = Translator("en").error(caught.value.code, caught.value.params)
    assert said == f"The file {path} names this profile and is damaged."
    assert "delete it" in remedy


def test_many_processes_agree_on_the_identity_of_a_new_profile(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from desktop_host.profiles.store import Profiles\n"
        "print(Profiles(pathlib.Path(sys.argv[1])).open('a').uuid)\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({child.communicate()[0] for child in children}) == 1


def test_a_home_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(KnownFault) as caught:
        Profiles(blocked).open("default")
    assert caught.value.code == "database_error"
