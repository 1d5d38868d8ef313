"""Nothing of one profile can be reached from another: not by paths, keyring, environment, caches, search or logs.

Two profiles of one home plant a mark in everything they keep, both open at once; each test looks for the mark of one
from the side of the other. Hazards O136, O137.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.profiles.store import IDENTITY, Profiles
from desktop_host.profiles.vault import open_vault
from tests.fakes.model_server import ModelServer
from tests.fakes.wires import Say, reply
from tests.live import program
from tests.live.tenants_kit import PROBE, Tenant
from tests.live.test_keyring_secret_service import UNLOCKED, environment, needs_daemon

pytestmark = pytest.mark.live
NAMES = ("ada", "bob")
VENDORS = {"ANTHROPIC_API_KEY": "sk-ant-planted-000111", "OPENAI_API_KEY": "sk-planted-000222"}


class Model:
    """A model's address that all profiles use, on a loop of its own; counts who asked."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="model")
        self._thread.start()
        self.server = ModelServer()
        asyncio.run_coroutine_threadsafe(self.server.__aenter__(), self._loop).result(10)
        self.server.script(*(reply("compat", Say(f"answer {n}")) for n in range(100)))
        self.url = self.server.url

    @property
    def keys(self) -> list[str]:
        return [seen.headers.get("authorization", "") for seen in self.server.posts]

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.__aexit__(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class House:
    """Two profiles that are open, and the model that both use."""

    def __init__(self, room: Path) -> None:
        self.home, self.temporary = room / "home", room / "tmp"
        self.model = Model()
        probe = room / "probe.py"
        probe.write_text(PROBE)
        self.ada, self.bob = (Tenant(self.home, name) for name in NAMES)
        for tenant in self.both:
            tenant.open()
        for tenant in self.both:
            tenant.plant(self.model.url, probe)

    @property
    def both(self) -> tuple[Tenant, Tenant]:
        return self.ada, self.bob

    @property
    def pairs(self) -> tuple[tuple[Tenant, Tenant], ...]:
        """Who looks, and for whose."""
        return (self.ada, self.bob), (self.bob, self.ada)

    def close(self) -> None:
        for tenant in self.both:
            tenant.close()
        self.model.close()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    room = tmp_path_factory.mktemp("tenants")
    (room / "tmp").mkdir(mode=0o700)
    (room / "passphrase").write_text("correct horse\n")
    (room / "models").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(room / "tmp"))
        more = {"TMPDIR": room / "tmp", "DESKTOP_HOST_PASSPHRASE_FILE": room / "passphrase",
                "DESKTOP_HOST_MODELS": room / "models", "DBUS_SESSION_BUS_ADDRESS": "disabled:"}  # fmt: skip
        for name, value in (VENDORS | more).items():
            patch.setenv(name, str(value))
        import keyring
        from keyring.backends import fail

        before = keyring.get_keyring()
        keyring.set_keyring(fail.Keyring())  # another test of this run may have left one
        made = House(room)
        try:
            yield made
        finally:
            made.close()
            keyring.set_keyring(before)


def test_the_marks_are_there_to_be_found(house: House) -> None:
    """Else the tests below could not fail."""
    for tenant in house.both:
        found = tenant.holds(tenant.mark)
        kinds = ("settings.toml", "servers.json", "host.db", "logs/host.log", f"skills/{tenant.mark}-skill", "crash-")
        for kind in kinds:
            assert any(kind in path for path in found), (kind, found)
        assert any(path.startswith("blobs/") for path in found)


def test_no_file_of_a_profile_holds_anything_of_the_other(house: House) -> None:
    for mine, theirs in house.pairs:
        assert mine.holds(theirs.mark) == []
        assert mine.holds(theirs.session) == []


def test_files_and_folders_are_their_owners_alone(house: House) -> None:
    """Hazard O136."""
    loose = [
        (str(p), oct(p.lstat().st_mode))
        for p in (house.home / "profiles").rglob("*")
        # What the person put there themselves is as they put it.
        if p.lstat().st_mode & 0o077 and "skill" not in p.parts[-2] + p.name and not p.is_symlink()
    ]
    assert not loose, "\n".join(map(str, loose))
    assert not (house.home / "profiles").stat().st_mode & 0o077


def test_what_lies_in_the_common_folder_for_temporary_files_tells_nothing(house: House) -> None:
    """Hazard O136."""
    for path in house.temporary.rglob("*"):
        assert not path.lstat().st_mode & 0o077, path
        for tenant in house.both:
            assert tenant.name not in str(path.relative_to(house.temporary))
            if path.is_file():
                assert tenant.mark.encode() not in path.read_bytes()


def test_names_that_lead_elsewhere_are_no_names_of_profiles(house: House) -> None:
    profiles = Profiles(house.home)
    hostile = (
        "../profiles/ada", "..", ".", "ada/../bob", "ada/", "/etc", "ada\0", "", "C:ada", "ada\\logs", " ada", "ada ",
        "ada.", "~", "ada/logs", "．．", "con", "a" * 300, "ada\n",
    )  # fmt: skip
    before = sorted(p.name for p in profiles.folder.iterdir())
    for name in hostile:
        with pytest.raises(UserFault) as caught:
            profiles.open(name)
        assert caught.value.params["reason"] == "bad_profile_name", name
    for name in hostile[:4]:
        told = program.run(house.home, "--profile", name, "sessions", "list", code=2)
        assert [e["code"] for e in told] == ["usage"]
    assert sorted(p.name for p in profiles.folder.iterdir()) == before


def test_a_name_in_other_letters_makes_no_second_way_into_a_profile(house: House) -> None:
    profiles = Profiles(house.home)
    with pytest.raises(UserFault):
        profiles.create("ADA")
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    first, second = profiles.open(composed), profiles.open(decomposed)
    assert (first.path, first.uuid) == (second.path, second.uuid)
    first.close(), second.close()
    profiles.delete(composed)


def test_a_link_to_a_profile_is_none(house: House) -> None:
    profiles = Profiles(house.home)
    link = profiles.folder / "eve"
    link.symlink_to(house.ada.folder, target_is_directory=True)
    try:
        assert "eve" not in profiles.names()
        with pytest.raises(UserFault) as caught:
            profiles.open("eve")
        assert caught.value.params["reason"] == "profile_link"
        with pytest.raises(UserFault):
            profiles.delete("eve")
    finally:
        link.unlink()
    assert house.ada.folder.is_dir()


def test_a_copied_folder_does_not_get_into_the_keyring_of_the_original(house: House) -> None:
    """A copy has the original's identity, and the identity names the place in the keyring."""
    profiles = Profiles(house.home)
    copy = profiles.folder / "ada-backup"
    copy.mkdir(mode=0o700)
    for name in (IDENTITY, "secrets.json"):
        shutil.copy2(house.ada.folder / name, copy / name)
    try:
        with pytest.raises(UserFault) as caught:
            profiles.open("ada-backup")
        assert caught.value.params["reason"] == "profile_copied"
        profiles.open("ada").close()
        (copy / IDENTITY).unlink()
        fresh = profiles.open("ada-backup")
        assert fresh.uuid != (house.ada.folder / IDENTITY).read_text().strip()
        fresh.close()
    finally:
        shutil.rmtree(copy)


def test_a_link_within_a_profile_is_not_taken_along(house: House, tmp_path: Path) -> None:
    from desktop_host.profiles.archive import export_profile

    link = house.bob.folder / "skills" / "peek"
    link.symlink_to(house.ada.folder / "skills")
    try:
        archive = export_profile(Profiles(house.home), "bob", tmp_path / "bob.zip")
    finally:
        link.unlink()
    import zipfile

    with zipfile.ZipFile(archive) as bundle:
        assert not [n for n in bundle.namelist() if house.ada.mark in n or "peek" in n]
        assert not [n for n in bundle.namelist() if house.ada.mark.encode() in bundle.read(n)]
        assert [n for n in bundle.namelist() if house.bob.mark.encode() in bundle.read(n)]


def test_secrets_are_found_in_their_own_profile_only(house: House) -> None:
    """Hazards O136, O139. The encrypted file; the keyring is below."""
    for mine, theirs in house.pairs:
        names = mine.do(lambda h: h.secrets.names())
        assert {"tenant", "gateway", "oauth/remote", "probe/OWN"} <= set(names)
        for name in names:
            value = mine.do(lambda h, n=name: h.secrets.get(n))
            assert value and mine.mark in value and theirs.mark not in value
    house.ada.do(lambda h: h.secrets.put("only-here", f"{house.ada.secret}-only"))
    assert house.bob.do(lambda h: h.secrets.get("only-here")) is None
    assert house.bob.do(lambda h: h.secrets.delete("tenant")) is True
    try:
        assert house.ada.do(lambda h: h.secrets.get("tenant"))
    finally:
        house.bob.do(lambda h: h.secrets.put("tenant", f"{house.bob.secret}-tenant"))


async def test_an_encrypted_file_put_into_another_profile_opens_nothing(house: House, tmp_path: Path) -> None:
    """Not with another passphrase; and with the same one nothing of the right owner is replaced."""
    other = tmp_path / "words"
    other.write_text("another horse\n")
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("secrets.json", "vault.enc"):
        shutil.copy2(house.ada.folder / name, moved / name)
    vault = await open_vault("someone", moved, environ={"DESKTOP_HOST_PASSPHRASE_FILE": str(other)})
    from desktop_host.core.errors import KnownFault

    with pytest.raises(KnownFault) as caught:
        await vault.get("tenant")
    assert caught.value.code == "vault_locked"


def test_a_server_sees_its_own_profile_and_no_vendors_key(house: House) -> None:
    """A real process that tells its whole environment, both profiles at once."""
    with ThreadPoolExecutor(2) as pool:
        seen = dict(zip(NAMES, pool.map(lambda t: t.environment(), house.both), strict=True))
    for mine, theirs in house.pairs:
        env = seen[mine.name]["env"]
        assert env["TENANT"] == mine.mark
        assert env["TENANT_KEY"] == f"{mine.secret}-tenant"
        told = json.dumps(seen[mine.name])
        assert theirs.mark not in told and str(theirs.folder) not in told
        for name, value in VENDORS.items():
            assert name not in env and value not in told
        assert {n for n in env if n.startswith("DESKTOP_HOST")} <= {"DESKTOP_HOST_SERVER"}  # a mark of the process
        for secret in ("-gateway", "-oauth", "-own"):
            assert f"{mine.secret}{secret}" not in told


def test_an_answer_kept_for_one_is_not_given_to_the_other(house: House) -> None:
    """The same question to the same model: asked once a profile, with that profile's own key."""
    before = len(house.model.keys)
    first, again = house.ada.ask(house.model.url), house.ada.ask(house.model.url)
    assert first == again and len(house.model.keys) == before + 1
    theirs = house.bob.ask(house.model.url)
    assert theirs != first and len(house.model.keys) == before + 2
    ada, bob = house.model.keys[-2:]
    assert house.ada.mark in ada and house.bob.mark in bob
    for seen in house.model.server.posts:
        owner = "ada" if house.ada.mark in seen.headers["authorization"] else "bob"
        other = house.bob if owner == "ada" else house.ada
        assert other.mark.encode() not in seen.raw and other.session.encode() not in seen.raw
        assert other.mark not in json.dumps(seen.headers)


def test_chats_are_neither_listed_nor_found_nor_opened_from_the_other_side(house: House) -> None:
    for mine, theirs in house.pairs:
        assert [r.session for r in mine.do(lambda h, m=mine: h.history.search(m.mark))] == [mine.session]
        assert mine.do(lambda h, t=theirs: h.history.search(t.mark)) == ()
        assert theirs.session not in {r.session for r in mine.do(lambda h: h.history.rows())}
        for act in (
            lambda h, s=theirs.session: h.history.row(s),
            lambda h, s=theirs.session: h.transcript(s),
            lambda h, s=theirs.session: h.export(s, "json"),
            lambda h, s=theirs.session: h.delete(s),
            lambda h, s=theirs.session: h.history.state(s, "draft"),
            lambda h, b=theirs.blob: h.history.blob(b),
            lambda h, b=theirs.blob, n=theirs.name: h.history.blob(f"../../{n}/blobs/{b[:2]}/{b}"),
        ):
            with pytest.raises(UserFault) as caught:
                mine.do(act)
            assert caught.value.code == "not_found"
        assert mine.do(lambda h, m=mine: h.history.blob(m.blob))


def test_grants_skills_servers_usage_and_limits_are_counted_apart(house: House) -> None:
    for mine, theirs in house.pairs:
        grants = mine.do(lambda h: h.grants())
        assert [r.pattern for r in grants] == [f"{mine.mark}.*"]
        listed = {s.name for s in mine.do(lambda h: h.skills.skills())}
        assert f"{mine.mark}-skill" in listed and f"{theirs.mark}-skill" not in listed
        sessions = {row["session"] for row in mine.do(lambda h: h.ledger.usage("session"))}
        assert mine.session in sessions and theirs.session not in sessions

    def day(tenant: Tenant) -> int:
        rows = tenant.do(lambda h: h.standings())
        return next(int(row["calls"]) for row in rows if row["scope"] == "day")

    before = day(house.bob)
    house.ada.ask(house.model.url, "Another question altogether, once?")
    assert day(house.ada) > 0 and day(house.bob) == before
    used = day(house.ada)
    house.ada.do(lambda h: h.settings.set("quotas.free", used))
    try:
        assert house.ada.ask(house.model.url, "One too many?") == ""
        assert house.bob.ask(house.model.url, "One for me?").startswith("answer")
    finally:
        house.ada.do(lambda h: h.settings.set("quotas.free", 50))
    assert house.bob.do(lambda h: h.revoke(f"{house.ada.mark}.*")) is None
    assert house.ada.do(lambda h: h.grants())


def test_a_secret_of_one_is_taken_out_of_the_log_of_the_other(house: House) -> None:
    """Should it ever get there."""
    import logging

    async def careless(_host: Any) -> None:
        logging.getLogger("desktop_host.tenants").error("the other said %s", f"{house.ada.secret}-gatewa")

    house.bob.do(careless)
    program.until(lambda: "the other said" in (house.bob.folder / "logs" / "host.log").read_text())
    assert house.ada.mark not in (house.bob.folder / "logs" / "host.log").read_text()


def test_what_no_profile_can_be_found_for_is_written_into_none(house: House) -> None:
    """A thread of nobody's crashes and logs while both are open."""
    import logging

    def crash() -> None:
        logging.getLogger("desktop_host.tenants").error("nobodysline")
        raise RuntimeError("nobodyscrash")

    thread = threading.Thread(target=crash)
    thread.start()
    thread.join()
    (report,) = [p for p in (house.home / "logs").iterdir() if b"nobodyscrash" in p.read_bytes()]
    assert not report.stat().st_mode & 0o077
    for tenant in house.both:
        assert tenant.holds("nobodyscrash") == tenant.holds("nobodysline") == []


def test_a_sign_in_of_one_is_none_of_the_other(house: House) -> None:
    from desktop_host.core.auth import SignInDefaults
    from desktop_host.servers.records import Redactor
    from desktop_host.servers.sign_in import SignIn

    async def tokens(host: Any, folder: Path) -> Any:
        made = SignIn("remote", host.secrets, Redactor(), lambda: None, folder, SignInDefaults)
        return (await made.load("https://mcp.example.com/mcp")).tokens

    for mine, theirs in house.pairs:
        found = mine.do(lambda h, m=mine: tokens(h, m.folder / "locks"))
        assert mine.mark in json.dumps(found) and theirs.mark not in json.dumps(found)
    house.bob.do(lambda h: h.secrets.delete("oauth/remote"))
    assert house.bob.do(lambda h: tokens(h, house.bob.folder / "locks")) is None
    assert house.ada.do(lambda h: tokens(h, house.ada.folder / "locks"))
    house.bob.do(lambda h: h.secrets.put("oauth/remote", json.dumps({
        "url": "https://mcp.example.com/mcp", "tokens": {"access_token": f"{house.bob.secret}-oauth"},
    })))  # fmt: skip


def test_weights_are_all_that_is_shared(house: House) -> None:
    """The folder of models holds nothing that a profile wrote."""
    models = house.home.parent / "models"
    for path in models.rglob("*"):
        for tenant in house.both:
            assert tenant.name not in path.name
            assert not path.is_file() or tenant.mark.encode() not in path.read_bytes()
    beside = {p.name for p in house.home.iterdir()} - {"profiles", "logs"}
    assert beside == set()


def test_two_processes_of_two_profiles_at_once_see_their_own(house: House, tmp_path: Path) -> None:
    """The real program, beside the two hosts that are open here."""
    running = []
    for tenant in house.both:
        model = program.script(tmp_path / f"{tenant.name}.json", [{"delay_ms": 300}, {"text": f"hello {tenant.mark}"}])
        words = ("--profile", tenant.name, "chat", "--model", model, "--no-servers", f"hi from {tenant.mark}")
        running.append((tenant, program.start(house.home, *words)))
    for tenant, process in running:
        told, _ = process.communicate(timeout=60)
        assert process.returncode == 0 and tenant.mark in told
        assert all(t is tenant or t.mark not in told for t in house.both)
    for mine, theirs in house.pairs:
        listed = program.run(house.home, "--profile", mine.name, "sessions", "list")
        text = json.dumps(listed)
        assert mine.mark in text and theirs.mark not in text
        missing = program.run(house.home, "--profile", mine.name, "sessions", "export", theirs.session, code=2)
        assert missing[0]["code"] == "not_found"
        assert mine.holds(theirs.mark) == []


def test_a_key_of_one_gateway_opens_no_other(house: House) -> None:
    env = {"DESKTOP_HOST_PASSPHRASE_FILE": os.environ["DESKTOP_HOST_PASSPHRASE_FILE"]}
    import httpx2

    started = []
    try:
        urls: dict[str, str] = {}
        for tenant in house.both:
            process = subprocess.Popen(
                [sys.executable, "-m", "desktop_host", "--home", str(house.home), "--profile", tenant.name,
                 "serve", "--http", "127.0.0.1:0"],
                stderr=subprocess.PIPE, text=True, cwd=program.ROOT, env=program.environment(**env),
            )  # fmt: skip
            started.append(process)
            assert process.stderr is not None
            line = process.stderr.readline()
            urls[tenant.name] = next(word for word in line.split() if word.startswith("http://"))
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for mine, theirs in house.pairs:
            for key, refused in ((theirs, True), (mine, False)):
                answered = httpx2.post(
                    urls[mine.name], json=ping, trust_env=False,
                    headers={"Authorization": f"Bearer {key.secret}-gatewa",
                             "Accept": "application/json, text/event-stream"},
                )  # fmt: skip
                assert (answered.status_code == 401) == refused, (mine.name, key.name, answered.status_code)
    finally:
        for process in started:
            process.terminate()
            process.communicate(timeout=30)


def test_a_window_is_called_forward_by_a_start_of_its_own_profile_only(qapp: Any, house: House) -> None:
    from desktop_host.ui.single_instance import SingleInstance, instance_name

    places = [(house.home, "ada"), (house.home, "bob"), (house.home, "ADA"), (house.home.parent, "ada"), (None, "ada")]
    assert len({instance_name(home, name) for home, name in places}) == len(places)
    seats = {name: SingleInstance(house.home, name) for name in NAMES}
    heard: dict[str, list[Any]] = {name: [] for name in NAMES}
    try:
        for name, seat in seats.items():
            assert seat.claim([])
            seat.listen()
            seat.raised.connect(heard[name].append)
        caller = subprocess.Popen(
            [sys.executable, "-c", "import sys; from pathlib import Path; from PySide6.QtCore import QCoreApplication;"
             "from desktop_host.ui.single_instance import SingleInstance; app = QCoreApplication([]);"
             "sys.exit(0 if not SingleInstance(Path(sys.argv[1]), 'ada').claim(['--session', 'x']) else 1)",
             str(house.home)], cwd=program.ROOT, env=program.environment(TMPDIR=os.environ["TMPDIR"]),
        )  # fmt: skip

        def answered() -> bool:
            qapp.processEvents()
            return caller.poll() is not None

        program.until(answered)
        assert caller.returncode == 0
        assert heard == {"ada": [["--session", "x"]], "bob": []}
    finally:
        for seat in seats.values():
            seat.release()


KEYRING = """
import asyncio, json, sys
from pathlib import Path
from desktop_host.profiles.store import Profiles
from desktop_host.profiles.vault import open_vault, service

async def main():
    profiles = Profiles(Path(sys.argv[1]))
    opened = {name: profiles.open(name) for name in ("ada", "bob")}
    vaults = {n: await open_vault(p.uuid, p.path, environ={}) for n, p in opened.items()}
    for name, vault in vaults.items():
        await vault.put("token", f"{name}mark-token")
    await vaults["ada"].put("alone", "adamark-alone")
    fresh = {n: await open_vault(p.uuid, p.path, environ={}) for n, p in opened.items()}
    import keyring
    found = {
        "stores": {n: v.describe()["store"] for n, v in vaults.items()},
        "own": {n: await v.get("token") for n, v in fresh.items()},
        "others": await fresh["bob"].get("alone"),
        "raw": keyring.get_password(service(opened["bob"].uuid), "alone"),
        "there": keyring.get_password(service(opened["ada"].uuid), "alone"),
        "ids": len({p.uuid for p in opened.values()}),
    }
    for p in opened.values():
        p.close()
    profiles.delete("ada")
    again = await open_vault(opened["bob"].uuid, opened["bob"].path, environ={})
    found["after"] = await again.get("token")
    found["gone"] = keyring.get_password(service(opened["ada"].uuid), "alone")
    print(json.dumps(found))

asyncio.run(main())
"""


@needs_daemon
def test_two_profiles_have_two_places_in_the_real_keyring(tmp_path: Path) -> None:
    """Hazard O139: a Secret Service in a D-Bus session of the test's own."""
    (tmp_path / "child.py").write_text(KEYRING)
    done = subprocess.run(
        ["dbus-run-session", "--", "bash", "-c", UNLOCKED, "bash", sys.executable, str(tmp_path / "child.py"),
         str(tmp_path / "house")],
        capture_output=True, text=True, timeout=90, env=environment(tmp_path), cwd=program.ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["stores"] == {"ada": "keyring", "bob": "keyring"} and found["ids"] == 2
    assert found["own"] == {"ada": "adamark-token", "bob": "bobmark-token"}
    assert (found["others"], found["raw"], found["there"]) == (None, None, "adamark-alone")
    assert (found["after"], found["gone"]) == ("bobmark-token", None)
