from __future__ import annotations

import asyncio
import json
import logging
import stat
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.backends.chainer
import keyring.backends.fail
import keyring.backends.null
import pytest

from desktop_host.core.errors import KnownFault
from desktop_host.profiles.encrypted_file import EncryptedFile
from desktop_host.profiles.keychain import Keychain
from desktop_host.profiles.vault import Vault, open_vault
from tests.fakes.memory_keyring import MemoryKeyring

SECRET = "sk-test-0123456789abcdef"


class PlaintextKeyring(MemoryKeyring):
    pass


class Asker:
    """A person who is asked for a passphrase."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self) -> str | None:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def ring() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    fake = MemoryKeyring()
    keyring.set_keyring(fake)
    yield fake
    fake.answers.set()
    keyring.set_keyring(before)


@pytest.fixture
def no_ring() -> Iterator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(keyring.backends.fail.Keyring())
    yield
    keyring.set_keyring(before)


async def refused(vault: Vault) -> KnownFault:
    with pytest.raises(KnownFault) as caught:
        await vault.put("k", SECRET)
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + str(caught.value.params)
    assert await vault.names() == ()
    return caught.value


async def test_a_secret_lies_under_the_profiles_own_service(ring: MemoryKeyring, tmp_path: Path) -> None:
    vault = await open_vault("uuid-1", tmp_path, environ={})
    await vault.put("k", SECRET)
    assert ring.kept == {("desktop-host/uuid-1", "k"): SECRET}
    assert SECRET not in (tmp_path / "secrets.json").read_text()
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600
    assert vault.describe()["store"] == "keyring"


async def test_the_first_secret_is_kept_only_after_a_proof(ring: MemoryKeyring, tmp_path: Path) -> None:
    """Hazard O134."""
    ring.forgets = True
    fault = await refused(await open_vault("u", tmp_path, environ={}))
    assert (fault.code, fault.params["reason"]) == ("vault_unavailable", "does_not_keep")


async def test_without_a_keyring_the_person_is_told_what_to_do(no_ring: None, tmp_path: Path) -> None:
    """Hazard O134."""
    vault = await open_vault("u", tmp_path, environ={})
    assert await vault.get("anthropic") is None, "what was never kept needs no store"
    fault = await refused(vault)
    assert (fault.code, fault.params["reason"]) == ("vault_unavailable", "no_keyring")
    probe = await vault.probe()
    assert (probe["ok"], probe["store"], probe["remedy"]) == (False, "none", "remedy.vault_unavailable.no_keyring")
    assert not (tmp_path / "secrets.json").exists()


@pytest.mark.parametrize(
    ("backend", "reason"), [(keyring.backends.null.Keyring, "null"), (PlaintextKeyring, "plaintext")]
)
async def test_a_backend_that_forgets_or_keeps_plaintext_is_refused(
    ring: MemoryKeyring, tmp_path: Path, backend: type, reason: str
) -> None:
    """Hazards O136, O139."""
    keyring.set_keyring(backend())
    fault = await refused(await open_vault("u", tmp_path, environ={}))
    assert (fault.code, fault.params["reason"]) == ("vault_unavailable", reason)
    assert backend.__name__ in fault.params["backend"]


async def test_of_a_chain_only_sound_backends_are_used(
    ring: MemoryKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = PlaintextKeyring()
    chain = keyring.backends.chainer.ChainerBackend()
    monkeypatch.setattr(type(chain), "backends", [plain, ring], raising=False)
    keyring.set_keyring(chain)
    vault = await open_vault("u", tmp_path, environ={})
    await vault.put("k", SECRET)
    assert list(ring.kept.values()) == [SECRET]
    assert plain.kept == {}


async def test_a_locked_keyring_is_to_be_unlocked_not_gone_around(ring: MemoryKeyring, tmp_path: Path) -> None:
    ask = Asker("passphrase")
    vault = await open_vault("u", tmp_path, passphrase=ask, environ={})
    ring.locked = True
    fault = await refused(vault)
    assert (fault.code, fault.params["reason"], ask.asked) == ("vault_locked", "locked", 0)
    ring.locked = False
    await vault.put("k", SECRET)
    ring.locked = True
    assert await vault.get("k") == SECRET, "values are remembered for the session"
    fresh = await open_vault("u", tmp_path, environ={})
    with pytest.raises(KnownFault) as caught:
        await fresh.get("k")
    assert caught.value.code == "vault_locked"


async def test_a_keyring_that_does_not_answer_costs_the_limit_once(ring: MemoryKeyring, tmp_path: Path) -> None:
    vault = await open_vault("u", tmp_path, environ={})
    await vault.put("k", SECRET)
    fresh = await open_vault("u", tmp_path, environ={}, limit_s=1.0)
    ring.answers.clear()
    results = await asyncio.gather(*(fresh.get("k") for _ in range(3)), return_exceptions=True)
    assert [getattr(r, "code", None) for r in results] == ["vault_locked"] * 3
    assert {r.params["reason"] for r in results if isinstance(r, KnownFault)} == {"timeout"}
    ring.answers.set()
    assert await fresh.get("k") == SECRET


async def test_the_loop_runs_on_while_the_keyring_hangs(ring: MemoryKeyring, tmp_path: Path) -> None:
    vault = await open_vault("u", tmp_path, environ={}, limit_s=1.0)
    ring.answers.clear()
    hanging = asyncio.create_task(vault.probe())
    ticks = 0
    while not hanging.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks >= 10
    assert hanging.result()["remedy"] == "remedy.vault_locked.timeout"


def test_a_program_ends_while_its_keyring_hangs(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys, pathlib, keyring\n"
        "from tests.fakes.memory_keyring import MemoryKeyring\n"
        "from desktop_host.profiles.vault import open_vault\n"
        "fake = MemoryKeyring(); fake.answers.clear(); keyring.set_keyring(fake)\n"
        "async def main():\n"
        "    vault = await open_vault('u', pathlib.Path(sys.argv[1]), environ={}, limit_s=0.1)\n"
        "    print((await vault.probe())['remedy'])\n"
        "asyncio.run(main())\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=20, cwd=root
    )  # fmt: skip
    assert done.stdout.strip() == "remedy.vault_locked.timeout", done.stderr


async def test_whatever_a_backend_raises_is_a_fault_without_the_secret(ring: MemoryKeyring, tmp_path: Path) -> None:
    """Hazard O137; D-Bus errors are no keyring errors."""
    ring.breaks = RuntimeError(f"bad value {SECRET}")
    fault = await refused(await open_vault("u", tmp_path, environ={}))
    assert (fault.code, fault.params["reason"]) == ("vault_unavailable", "failed")


async def test_a_change_by_another_process_is_seen(ring: MemoryKeyring, tmp_path: Path) -> None:
    one, two = await open_vault("u", tmp_path, environ={}), await open_vault("u", tmp_path, environ={})
    await one.put("k", "first")
    assert await two.get("k") == "first"
    await one.put("k", "second")
    assert await two.get("k") == "second"
    await one.delete("k")
    assert await two.get("k") is None


async def test_long_secrets_are_kept_in_parts_where_the_keyring_is_short(ring: MemoryKeyring) -> None:
    """Windows takes 1280 characters a credential."""
    chain = Keychain("s", part_chars=100)
    assert await chain.put("k", "x" * 250) == 3
    assert ring.longest == 100
    assert await chain.get("k", 3) == "x" * 250
    assert await chain.delete("k", 3)
    assert ring.kept == {}


async def test_a_shorter_value_leaves_no_parts_of_the_longer(ring: MemoryKeyring, tmp_path: Path) -> None:
    vault = Vault(Keychain("s", part_chars=40), tmp_path, None, {}, None)
    await vault.put("k", "x" * 250)
    await vault.put("k", "y" * 41)
    assert sorted(map(len, ring.kept.values())) == [1, 40]
    await vault.delete("k")
    assert ring.kept == {}


async def test_the_encrypted_file_needs_its_passphrase_again(no_ring: None, tmp_path: Path) -> None:
    """Hazard O136: never plaintext."""
    ask = Asker("correct horse")
    vault = await open_vault("u", tmp_path, passphrase=ask, environ={})
    await vault.put("k", SECRET)
    assert ask.asked == 1
    raw = (tmp_path / "vault.enc").read_text()
    assert SECRET not in raw
    assert "correct horse" not in raw
    assert stat.S_IMODE((tmp_path / "vault.enc").stat().st_mode) == 0o600
    assert vault.describe()["store"] == "encrypted_file"
    again = await open_vault("u", tmp_path, passphrase=Asker("wrong", "correct horse"), environ={})
    with pytest.raises(KnownFault) as caught:
        await again.get("k")
    assert (caught.value.code, caught.value.params["reason"]) == ("vault_locked", "wrong_passphrase")
    assert await again.get("k") == SECRET
    for silent in (None, Asker(None)):
        shut = await open_vault("u", tmp_path, passphrase=silent, environ={})
        with pytest.raises(KnownFault) as caught:
            await shut.get("k")
        assert (caught.value.code, caught.value.params["reason"]) == ("vault_locked", "no_passphrase")


async def test_many_who_ask_at_once_ask_the_person_once(no_ring: None, tmp_path: Path) -> None:
    first = await open_vault("u", tmp_path, passphrase=Asker("p"), environ={})
    for name in "abc":
        await first.put(name, SECRET)
    ask = Asker("p")
    vault = await open_vault("u", tmp_path, passphrase=ask, environ={})
    assert await asyncio.gather(*(vault.get(n) for n in "abc")) == [SECRET] * 3
    assert ask.asked == 1


async def test_the_passphrase_may_come_from_a_file_that_is_named(no_ring: None, tmp_path: Path) -> None:
    """Decision 23."""
    words = tmp_path / "words"
    words.write_text("correct horse\n")
    environ = {"DESKTOP_HOST_PASSPHRASE_FILE": str(words)}
    folder = tmp_path / "p"
    folder.mkdir()
    await (await open_vault("u", folder, environ=environ)).put("k", SECRET)
    words.write_bytes(b"\xef\xbb\xbfcorrect horse\r\nmore\r\n")
    assert await (await open_vault("u", folder, environ=environ)).get("k") == SECRET
    words.unlink()
    with pytest.raises(KnownFault) as caught:
        await (await open_vault("u", folder, environ=environ)).get("k")
    assert (caught.value.code, caught.value.params["reason"]) == ("vault_locked", "passphrase_file")


async def test_a_named_passphrase_file_is_taken_where_the_keyring_stays_locked(
    ring: MemoryKeyring, tmp_path: Path
) -> None:
    words = tmp_path / "words"
    words.write_text("correct horse")
    ring.locked = True
    vault = await open_vault("u", tmp_path, environ={"DESKTOP_HOST_PASSPHRASE_FILE": str(words)})
    await vault.put("k", SECRET)
    assert vault.describe()["store"] == "encrypted_file"


async def test_each_secret_is_found_where_it_was_kept(ring: MemoryKeyring, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text("p")
    environ = {"DESKTOP_HOST_PASSPHRASE_FILE": str(words)}
    await (await open_vault("u", tmp_path, environ=environ)).put("in the ring", "1" * 20)
    ring.locked = True
    await (await open_vault("u", tmp_path, environ=environ)).put("in the file", "2" * 20)
    ring.locked = False
    vault = await open_vault("u", tmp_path, environ=environ)
    assert await vault.get("in the ring") == "1" * 20
    assert await vault.get("in the file") == "2" * 20
    await vault.put("in the file", "3" * 20)
    assert "3" * 20 in ring.kept.values()
    fresh = await open_vault("u", tmp_path, environ={})
    assert await fresh.get("in the file") == "3" * 20
    for name in await vault.names():
        await vault.delete(name)
    assert (await vault.names(), ring.kept) == ((), {})


async def test_a_store_that_cannot_be_reached_keeps_the_name(ring: MemoryKeyring, tmp_path: Path) -> None:
    vault = await open_vault("u", tmp_path, environ={})
    await vault.put("k", SECRET)
    ring.locked = True
    with pytest.raises(KnownFault):
        await vault.delete("k")
    assert await vault.names() == ("k",)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d | {"data": d["data"][:-8] + "AAAAAAA="}, lambda d: d | {"head": d["head"] | {"n": 1 << 40}},
        lambda d: d | {"head": d["head"] | {"n": "x"}}, lambda d: {}, lambda d: [], lambda d: d | {"nonce": "!"},
        lambda d: d | {"head": d["head"] | {"format": 2}}, lambda d: d | {"head": d["head"] | {"r": 10**9}},
    ],
)  # fmt: skip
def test_a_damaged_or_hostile_file_is_a_fault_and_stays(tmp_path: Path, damage: object) -> None:
    file = EncryptedFile(tmp_path)
    file.unlock("p")
    file.change(lambda secrets: secrets.update({"k": SECRET}))
    damaged = json.dumps(damage(json.loads(file.path.read_text())))  # type: ignore[operator]
    file.path.write_text(damaged)
    with pytest.raises(KnownFault) as caught:
        EncryptedFile(tmp_path).unlock("p")
    assert caught.value.code in ("vault_unavailable", "vault_locked")
    with pytest.raises(KnownFault):
        file.change(lambda secrets: secrets.clear())
    assert file.path.read_text() == damaged


async def test_a_damaged_index_is_a_fault_and_stays(ring: MemoryKeyring, tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    for text in ("{", "[]", '{"names": {"k": 1}}'):
        path.write_text(text)
        vault = await open_vault("u", tmp_path, environ={})
        with pytest.raises(KnownFault) as caught:
            await vault.names()
        assert caught.value.params["reason"] == "bad_index"
        assert path.read_text() == text


async def test_every_value_that_passes_is_told_and_none_is_logged(
    ring: MemoryKeyring, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Hazard O137."""
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    vault = await open_vault("u", tmp_path, environ={}, seen=seen.append)
    await vault.put("k", SECRET)
    fresh = await open_vault("u", tmp_path, environ={}, seen=seen.append)
    await fresh.get("k")
    assert seen == [SECRET, SECRET]
    assert SECRET[:8] not in caplog.text
    for thing in (vault, fresh, vault._keychain, EncryptedFile(tmp_path)):
        assert SECRET not in repr(thing)
