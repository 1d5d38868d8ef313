"""A person who signs in, with a browser that follows where it is sent; and the server that wants it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2

from desktop_host.core.auth import AUTOMATIC, Auth, SignInState
from desktop_host.core.exchange import ElicitReply, Origin, UrlRequest
from desktop_host.core.servers import Http, ServerConfig, ServerState, Timeouts
from tests.fakes.memory_vault import MemoryVault
from tests.fakes.servers.signed import Signed
from tests.fakes.servers.stage import OpenReviewer, Stage

LIMITS = Timeouts(connect_s=10, call_s=10, call_max_s=30)


class Person(OpenReviewer):
    """Opens what it is asked to open, like a browser; `action` is what it answers."""

    def __init__(self, action: str = "accept", slow_s: float = 0) -> None:
        super().__init__(ElicitReply(action))
        self.slow_s = slow_s

    async def elicit(self, origin: Origin, request: Any) -> ElicitReply:
        answer = await super().elicit(origin, request)
        assert isinstance(request, UrlRequest)
        if answer.action == "accept":
            await asyncio.sleep(self.slow_s)
            await browse(request.url)
        return answer


async def browse(url: str) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False) as browser:
        response = await browser.get(url)
        back = response.headers.get("location")
        return await browser.get(back) if back else response


def at(signed: Signed, auth: Auth = AUTOMATIC, **changes: Any) -> ServerConfig:
    return replace(ServerConfig("web", Http(signed.url, auth=auth), timeouts=LIMITS), **changes)


def record(vault: MemoryVault) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(vault._secrets["oauth/web"])
    return made


def all_files(folder: Path) -> str:
    return "".join(p.read_text(errors="replace") for p in folder.rglob("*") if p.is_file())


async def login(s: Stage) -> None:
    status = await s.servers.login("web")
    assert (status.state, status.sign_in) == (ServerState.READY, SignInState.SIGNED_IN), status.error
