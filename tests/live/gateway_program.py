"""The gateway as a program, and the SDK's own client as the foreign host that uses it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ERAS = ["auto", "legacy"]


def env(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"], "HOME": str(home.parent), "LANG": "C.UTF-8",
        "DBUS_SESSION_BUS_ADDRESS": "/dev/null",
        "DESKTOP_HOST_PASSPHRASE_FILE": str(home.parent / "passphrase"),
    }  # fmt: skip


def words(home: Path, *argv: str) -> list[str]:
    return [sys.executable, "-m", "desktop_host", "--home", str(home), *argv]


async def program(home: Path, *argv: str, given: str = "") -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *words(home, *argv), env=env(home), stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(given.encode()), 60)
    assert process.returncode is not None
    return process.returncode, out.decode()


@asynccontextmanager
async def over_stdio(home: Path, mode: str, *argv: str, **callbacks: Any) -> AsyncIterator[Any]:
    from mcp import Client, StdioServerParameters

    line = words(home, "serve", "--stdio", *argv)
    parameters = StdioServerParameters(command=line[0], args=line[1:], env=env(home))
    async with Client(parameters, mode=mode, **callbacks) as client:  # type: ignore[arg-type]
        yield client


@asynccontextmanager
async def over_http(home: Path, *argv: str, at: str = "127.0.0.1:0") -> AsyncIterator[str]:
    line = words(home, "serve", "--http", at, *argv)
    process = await asyncio.create_subprocess_exec(*line, env=env(home), stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        told = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
        yield next(word for word in told.split() if word.startswith("http://"))
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 30) in (0, 130)


@asynccontextmanager
async def bearing(url: str, token: str, mode: str = "auto", **callbacks: Any) -> AsyncIterator[Any]:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, **callbacks) as client,  # type: ignore[arg-type]
    ):
        yield client
