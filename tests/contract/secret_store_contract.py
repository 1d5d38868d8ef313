"""What every `SecretStore` must do. `test_secret_store.py` runs it on the fake and on the real ones."""

from __future__ import annotations

import pytest

from desktop_host.core.admin import SecretStore
from desktop_host.core.errors import UserFault


class SecretStoreContract:
    async def test_a_secret_comes_back_and_is_listed_by_name_alone(self, vault: SecretStore) -> None:
        await vault.put("anthropic", "sk-ant-一二三")
        await vault.put("https://host:8443/v1", "two\nlines")
        assert await vault.get("anthropic") == "sk-ant-一二三"
        assert await vault.get("https://host:8443/v1") == "two\nlines"
        assert await vault.names() == ("anthropic", "https://host:8443/v1")

    async def test_what_is_not_there_is_none(self, vault: SecretStore) -> None:
        assert await vault.get("nothing") is None
        assert await vault.delete("nothing") is False
        assert await vault.names() == ()

    async def test_a_secret_is_replaced_and_deleted(self, vault: SecretStore) -> None:
        await vault.put("k", "one")
        await vault.put("k", "two")
        assert await vault.get("k") == "two"
        assert await vault.delete("k") is True
        assert await vault.get("k") is None
        assert await vault.names() == ()

    async def test_a_big_secret_is_kept_whole(self, vault: SecretStore) -> None:
        big = "0123456789" * 2000
        await vault.put("tokens", big)
        assert await vault.get("tokens") == big
        await vault.put("tokens", "short")
        assert await vault.get("tokens") == "short"

    async def test_names_and_values_that_no_store_takes_are_refused(self, vault: SecretStore) -> None:
        for name, value in (("", "v"), ("a\0b", "v"), ("a\nb", "v"), ("x" * 513, "v"), ("name", "")):
            with pytest.raises(UserFault) as caught:
                await vault.put(name, value)
            assert caught.value.code == "usage"

    async def test_the_probe_tells_the_store_and_leaves_nothing(self, vault: SecretStore) -> None:
        probe = await vault.probe()
        assert set(probe) == {"store", "ok", "detail", "remedy"}
        assert probe["ok"] is True
        assert probe["store"]
        assert await vault.names() == ()

    async def test_no_value_shows_in_its_representation(self, vault: SecretStore) -> None:
        """Hazard O137."""
        await vault.put("k", "visible-secret")
        await vault.get("k")
        assert "visible-secret" not in repr(vault) + str(vault)
