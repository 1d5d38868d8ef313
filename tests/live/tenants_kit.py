"""Two profiles at work: each plants its own mark wherever a profile keeps anything."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from desktop_host.app.compose import open_host
from desktop_host.core.permissions import Effect, Life, Rule
from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.values import EMPTY, FrozenDict
from desktop_host.engine.host import HeadlessPolicy, Host, HostSpec, UserInput

T = TypeVar("T")
QUESTION = "What is two plus two?"
PROBE = """
import json, os, sys
def out(o): sys.stdout.write(json.dumps(o) + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    m = json.loads(line); i, method = m.get("id"), m.get("method")
    if method == "initialize":
        out({"jsonrpc": "2.0", "id": i, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "probe", "version": "1"}}})
    elif method == "tools/list":
        out({"jsonrpc": "2.0", "id": i, "result": {"tools": [{"name": "env", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        seen = {"env": {k: v[::-1] for k, v in os.environ.items()}, "cwd": os.getcwd(), "argv": sys.argv}
        out({"jsonrpc": "2.0", "id": i, "result": {"content": [{"type": "text", "text": json.dumps(seen)}]}})
    elif i is not None:
        out({"jsonrpc": "2.0", "id": i, "error": {"code": -32601, "message": "no"}})
"""


class Tenant:
    """A profile's host on a loop and a thread of its own, as a window holds it."""

    def __init__(self, home: Path, name: str) -> None:
        self.home, self.name = home, name
        self.mark = f"{name}mark"
        """Stands in everything that this profile keeps."""
        self.secret = f"{self.mark}-secret-0123456789"
        self.folder = home / "profiles" / name
        self.session = ""
        self.blob = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"host {name}")
        self._closing: Any = None

    def open(self) -> None:
        """Open the host; `close` ends it."""
        self._thread.start()
        self._closing = open_host(HostSpec(self.home, self.name, headless=HeadlessPolicy()))
        self.host: Host = asyncio.run_coroutine_threadsafe(self._closing.__aenter__(), self._loop).result(60)

    def do(self, act: Callable[[Host], Awaitable[T]]) -> T:
        """Run something on the host's loop."""

        async def run() -> T:
            return await act(self.host)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(60)

    def close(self) -> None:
        """Close the host and its loop."""
        asyncio.run_coroutine_threadsafe(self._closing.__aexit__(None, None, None), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    def plant(self, model_url: str, probe: Path) -> None:
        """Leave the mark in all that a profile keeps."""

        async def work(host: Host) -> None:
            await host.settings.set("model.system", f"You serve {self.mark}.")
            await host.settings.set("quotas.tier", "free")
            await host.settings.set("servers.env", f"TENANT={self.mark}\nprobe: TENANT_KEY=${{keyring:tenant}}")
            for name in ("tenant", "gateway", f"{model_url}/v1"):
                await host.secrets.put(name, f"{self.secret}-{name[:6]}")
            record = {"url": "https://mcp.example.com/mcp", "tokens": {"access_token": f"{self.secret}-oauth"}}
            await host.secrets.put("oauth/remote", json.dumps(record))
            await host.servers.add(
                ServerConfig("probe", Stdio(sys.executable, (str(probe), self.mark))),
                FrozenDict({"probe/OWN": f"{self.secret}-own"}),
            )
            await host.ledger.grant(Rule(Effect.ALLOW, f"{self.mark}.*", life=Life.PROFILE))
            skill = self.folder / "skills" / f"{self.mark}-skill"
            skill.mkdir()
            (skill / "SKILL.md").write_text(f"---\nname: {skill.name}\ndescription: Of {self.mark}\n---\n{self.mark}\n")
            await host.skills.rescan()
            self.session = await host.new_session(SessionOptions(model=f"compat:{model_url}/v1#m-1", skills=()))
            await (await host.submit(self.session, UserInput(f"I am {self.mark}."))).done
            self.blob = await host.history.put_blob(self.mark.encode() * 10_000)
            await host.history.put_state(self.session, "draft", f"{self.mark} {self.blob}")
            logging.getLogger("desktop_host.tenants").warning("%s was here", self.mark)
            asyncio.get_running_loop().call_exception_handler(
                {"message": "planted", "exception": RuntimeError(f"{self.mark} crashed")}
            )

        self.do(work)

    def ask(self, model_url: str, text: str = QUESTION) -> str:
        """A question in a chat of its own; returns the answer."""

        async def work(host: Host) -> str:
            session = await host.new_session(SessionOptions(
                model=f"compat:{model_url}/v1#m-1", system="Same.", servers=(), skills=(),
            ))  # fmt: skip
            return (await (await host.submit(session, UserInput(text))).done).text

        return self.do(work)

    def environment(self) -> dict[str, Any]:
        """What the profile's server sees of the world."""

        async def work(host: Host) -> str:
            outcome = await host.servers.call_tool("probe", "env", EMPTY, lambda _p: None)
            return str(getattr(outcome.content[0], "text", ""))

        seen: dict[str, Any] = json.loads(self.do(work))
        # Told backwards: the host masks what a server says of its secrets, and here they are wanted.
        return {**seen, "env": {name: value[::-1] for name, value in seen["env"].items()}}

    def holds(self, text: str) -> list[str]:
        """The files of this profile (and names of files) in which a text stands."""
        found = []
        for path in self.folder.rglob("*"):
            inside = path.is_file() and text.encode() in path.read_bytes()
            if inside or text in path.name:
                found.append(str(path.relative_to(self.folder)))
        return sorted(found)
