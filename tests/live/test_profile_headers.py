"""One remote server, one address, two profiles: each with the tools and documents of its own tenant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop_host.core.places import shipped
from tests.fakes.model_server import ModelServer, answer
from tests.live import program

pytestmark = pytest.mark.live
KNOWLEDGE = shipped("resources", "servers", "knowledge")
TENANTS = {
    "ada": (("search_*", "list_*", "read_*"), "alder"),
    "bob": (("search_*", "query_*"), "birch"),
}
ON = {"ada": {"search_knowledge", "list_documents", "read_document"}, "bob": {"search_knowledge", "query_database"}}


class Shop:
    """The server with two tenants, and a home with a profile for each."""

    def __init__(self, room: Path) -> None:
        self.home, self.keys = room / "home", {}
        (room / "passphrase").write_text("correct horse\n")
        self.env = {"DESKTOP_HOST_PASSPHRASE_FILE": str(room / "passphrase")}
        entries: dict[str, Any] = {}
        for name, (tools, secret) in TENANTS.items():
            made = json.loads(subprocess.check_output([sys.executable, str(KNOWLEDGE), "key"], text=True))
            (room / name).mkdir()
            (room / name / "secret.md").write_text(f"# Secret\n\nThe password of the kettle is {secret}.\n")
            self.keys[name] = made["key"]
            entries[name] = {"key_sha256": made["key_sha256"], "folders": [name], "tools": tools}
        (room / "tenants.json").write_text(json.dumps({"tenants": entries}))
        self.server = subprocess.Popen(
            [sys.executable, str(KNOWLEDGE), "serve", "--http", "127.0.0.1:0", "--tenants", str(room / "tenants.json"),
             "--cache", str(room / "cache")], stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.server.stderr is not None
        self.url = self.server.stderr.readline().split()[-1]

    def run(self, name: str, *words: str, **more: Any) -> list[dict[str, Any]]:
        return program.run(self.home, "--profile", name, *words, **self.env, **more)

    def close(self) -> None:
        self.server.terminate()
        self.server.communicate(timeout=30)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_two_profiles_use_one_address_as_two_tenants(shop: Shop) -> None:
    """Hazard O136: the key stands in no file."""
    origin = shop.url.rsplit("/", 1)[0]
    for name in TENANTS:
        shop.run(name, "secrets", "set", "kb-key", given=shop.keys[name] + "\n")
        shop.run(name, "settings", "set", "servers.headers", f"{origin} X-API-Key: ${{keyring:kb-key}}")
        shop.run(name, "servers", "add", "kb", shop.url)
    for name, (_, secret) in TENANTS.items():
        other = next(s for n, (_, s) in TENANTS.items() if n != name)
        listed = {row["tool"] for row in shop.run(name, "tools", "list", "kb")}
        assert listed == ON[name]
        (found,) = shop.run(name, "tools", "call", "kb", "search_knowledge", "--args", '{"query": "password kettle"}')
        text = json.dumps(found)
        assert secret in text and other not in text
        kept = b"".join(p.read_bytes() for p in (shop.home / "profiles" / name).rglob("*") if p.is_file())
        assert all(key.encode() not in kept for key in shop.keys.values())
    program.run(shop.home, "profiles", "create", "eve")
    shop.run("eve", "servers", "add", "kb", shop.url)
    (refused,) = shop.run("eve", "servers", "test", "kb", code=None)
    assert refused["ok"] is False and refused["error"]["code"] == "auth"


async def test_a_header_goes_to_its_own_address_alone(tmp_path: Path) -> None:
    """The same server moved to another address gets nothing, nor does one that a redirect leads to."""
    import asyncio

    home = tmp_path / "home"
    (tmp_path / "passphrase").write_text("correct horse\n")
    env = {"DESKTOP_HOST_PASSPHRASE_FILE": str(tmp_path / "passphrase")}

    async def run(*words: str, given: str | None = None, code: int | None = 0) -> Any:
        return await asyncio.to_thread(program.run, home, *words, given=given, code=code, **env)

    async with ModelServer() as ours, ModelServer() as other:
        await run("secrets", "set", "tenant", given="tenant-secret-0123\n")
        await run("settings", "set", "servers.headers", f"{ours.url} X-Tenant-Key: ${{keyring:tenant}}")
        await run("servers", "add", "kb", f"{ours.url}/mcp")
        moved = answer({}, 307, ("location", f"{other.url}/mcp"))
        ours.script(*[moved] * 6)
        other.script(*[answer({"error": "no"}, 404)] * 20)
        await run("servers", "test", "kb", code=None)
        assert ours.posts and all(s.headers.get("x-tenant-key") == "tenant-secret-0123" for s in ours.posts)
        assert other.seen == []
        await run("servers", "add", "moved", f"{other.url}/mcp")
        await run("servers", "test", "moved", code=None)
        assert other.seen
        assert not [s for s in other.seen if "tenant" in json.dumps(s.headers) or b"tenant-secret" in s.raw]
    logs = b"".join(p.read_bytes() for p in home.rglob("*") if p.is_file())
    assert b"tenant-secret-0123" not in logs


def test_what_does_not_fit_is_refused_with_the_line_and_what_would_be_right(tmp_path: Path) -> None:
    (told,) = program.run(
        tmp_path, "settings", "set", "servers.headers", "https://a.example Authorization: Bearer plainsecret", code=2
    )
    assert told["code"] == "bad_settings" and "keyring" in told["remedy"] and told["params"]["line"] == 1
    assert "plainsecret" not in json.dumps(told)
    (told,) = program.run(tmp_path, "settings", "set", "servers.env", "TOKEN=${keyring:x}", code=2)
    assert "server" in told["remedy"] and told["params"]["reason"] == "secret_for_all"
    assert os.listdir(tmp_path / "profiles" / "default" / "logs")
