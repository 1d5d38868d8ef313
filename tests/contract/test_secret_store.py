from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import keyring
import keyring.backends.fail
import pytest

from desktop_host.core.admin import SecretStore
from desktop_host.profiles.vault import open_vault
from tests.contract.secret_store_contract import SecretStoreContract
from tests.fakes.memory_keyring import MemoryKeyring
from tests.fakes.memory_vault import MemoryVault


@pytest.fixture(params=["memory", "keyring", "encrypted file"])
async def vault(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SecretStore]:
    before = keyring.get_keyring()
    if request.param == "memory":
        yield MemoryVault()
        return

    async def passphrase() -> str:
        return "correct horse"

    keyring.set_keyring(MemoryKeyring() if request.param == "keyring" else keyring.backends.fail.Keyring())
    try:
        opened = await open_vault("6f0b", tmp_path, passphrase=passphrase, environ={})
        if request.param == "encrypted file":
            await opened.put("first", "opens the file")  # a probe asks nobody for the passphrase
            await opened.delete("first")
        yield opened
        for path in (tmp_path / "vault.enc", tmp_path / "secrets.json"):
            text = path.read_text() if path.exists() else ""
            assert "correct horse" not in text
            assert "sk-ant" not in text
        await opened.close()
    finally:
        keyring.set_keyring(before)


class TestSecretStore(SecretStoreContract):
    pass
