"""Two keys of one gateway, in both eras at once: nothing of the other's servers is ever seen or run."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.servers.stage import HERE
from tests.live.gateway_program import ERAS, bearing, over_http, program

pytestmark = pytest.mark.live

REQUESTS = 1_000 if "DESKTOP_HOST_FULL" in os.environ else 200
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "shelf": ("shelf__find", {"word": "steep"}), "feat": ("feat__touch", {}),
}  # fmt: skip
READS = {"shelf": "gateway://shelf/shelf://all", "feat": "gateway://feat/feat://a"}
TOKENS = {"shelf": "token-of-the-shelf-1", "feat": "token-of-feat-2"}


async def test_mixed_requests_of_two_keys_leak_nothing(tmp_path: Path) -> None:
    profile = tmp_path / "home" / "profiles" / "default"
    profile.mkdir(parents=True)
    entries = {"shelf": "dual.py", "feat": "features.py"}
    servers = {name: {"command": sys.executable, "args": [str(HERE / script)]} for name, script in entries.items()}
    (profile / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    (tmp_path / "passphrase").write_text("correct horse\n")
    home = tmp_path / "home"
    for name, token in TOKENS.items():
        assert (await program(home, "secrets", "set", f"gateway-{name}", given=token))[0] == 0
    rng, done = random.Random(11), 0

    async def one(client: Any, own: str, other: str) -> str:
        from mcp import MCPError

        match rng.randrange(6):
            case 0:
                said = str(await client.list_tools(cache_mode="bypass"))
                assert f"{own}__" in said
            case 1:
                said = str(await client.list_resources(cache_mode="bypass"))
            case 2:
                said = str(await client.list_prompts(cache_mode="bypass"))
            case 3:
                made = await client.call_tool(*CALLS[other])
                assert made.is_error and "There is no tool" in made.content[0].text
                said = ""
            case 4:
                with pytest.raises(MCPError):
                    await client.read_resource(READS[other])
                said = ""
            case _:
                made = await client.call_tool(*CALLS[own])
                assert not made.is_error
                said = str(made)
        return said

    async with over_http(home, "--allow", "*", "--key", "shelf=shelf.*", "--key", "feat=feat.*") as url:

        async def worker(own: str, other: str, mode: str) -> None:
            nonlocal done
            async with bearing(url, TOKENS[own], mode) as client:
                for _ in range(REQUESTS // 4):
                    said = await one(client, own, other)
                    assert f"{other}__" not in said and f"gateway://{other}" not in said
                    done += 1

        both = (("shelf", "feat"), ("feat", "shelf"))
        await asyncio.gather(*(worker(own, other, mode) for own, other in both for mode in ERAS))
    assert done == REQUESTS
