"""Checks of what the profile works with: programs, servers, tools that models refuse, chats that ended badly."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from desktop_host.core.admin import ServerAdmin
from desktop_host.core.diagnosis import Finding
from desktop_host.core.errors import HostError
from desktop_host.core.events import Notice, TurnEnded
from desktop_host.core.ports import History
from desktop_host.core.servers import ServerState, ServerStatus, Stdio
from desktop_host.core.sessions import SessionRow, TurnStatus
from desktop_host.core.values import FrozenDict
from desktop_host.diagnostics.findings import ill, well

PROGRAMS = ("node", "npx", "uv", "uvx", "git", "docker")
NODE_PROGRAMS = frozenset({"node", "npx", "npm", "pnpm", "pnpx", "yarn", "bunx"})
NODE_LEAST = 18
"""Oldest major version of Node.js that the MCP SDK for it runs on."""
LATELY_S = 86_400.0
"""How old a failed turn may be to count."""
CHATS = 20
EVENTS = 400
"""Numbers of events before a chat's last that are read: its end is among them."""
_REFUSED = frozenset({"task_required", "header_bad"})
"""Problems of a tool for which no model gets it; all others were repaired."""
LOOPS = 2
"""Restarts in a row from which a server that starts once more is told of."""
_BROKEN = (ServerState.FAILED, ServerState.WAITING, ServerState.NEEDS_AUTH)


async def programs(servers: ServerAdmin, path: str) -> Finding:
    """The programs that enabled servers are started by are in the PATH that servers get."""

    def look() -> Finding:
        found = ", ".join(p for p in PROGRAMS if shutil.which(p, path=path))
        # What Node.js brings is the business of the check `node`.
        wanted = sorted((command, name) for name, command in _local(servers) if _base(command) not in NODE_PROGRAMS)
        missing = [one for one in wanted if not shutil.which(os.path.expanduser(one[0]), path=path)]
        if missing:
            names = ", ".join(sorted({command for command, _ in missing}))
            return ill(
                "programs", "program_missing", "programs", place=path, act=f"server:{missing[0][1]}", missing=names,
                path=path,
            )  # fmt: skip
        return well("programs", "programs", found=found) if found else well("programs", "no_programs")

    return await asyncio.to_thread(look)


async def node(servers: ServerAdmin, path: str) -> Finding:
    """Node.js is there and new enough, where a server wants it."""
    wanted = next((name for name, command in _local(servers) if _base(command) in NODE_PROGRAMS), None)
    found = await asyncio.to_thread(_node_version, path)
    if found is None:
        if wanted is None:
            return well("node", "node_unused")
        return ill("node", "node_missing", "node", place=path, act=f"server:{wanted}", server=wanted)
    if wanted is not None and found[0] < NODE_LEAST:
        return ill(
            "node", "node_old", "node", place=found[1], act=f"server:{wanted}", version=found[1], least=NODE_LEAST
        )
    return well("node", "node", version=found[1])


def _node_version(path: str) -> tuple[int, str] | None:
    program = shutil.which("node", path=path)
    if program is None:
        return None
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"v?(\d+)[\w.-]*", said.strip())
    return (int(match[1]), match[0]) if match else None


def _local(servers: ServerAdmin) -> list[tuple[str, str]]:
    """`(server, command)` of the enabled servers that are started here."""
    return [(c.name, c.launch.command) for c in servers.configs() if c.enabled and isinstance(c.launch, Stdio)]


def _base(command: str) -> str:
    return command.replace("\\", "/").rpartition("/")[2].removesuffix(".cmd").removesuffix(".exe")


def server(status: ServerStatus) -> Finding:
    """One server as it stands, with the reason where it does not work."""
    check = f"server:{status.name}"
    params: dict[str, Any] = {"state": status.state.value, "restarts": status.restarts}
    looping = status.restarts >= LOOPS and status.state is not ServerState.READY
    if status.state not in _BROKEN and not looping:
        return Finding(check, True, "doctor.say.server", FrozenDict(params))
    error = status.error
    if error is None:
        return Finding(
            check, False, "doctor.say.server", FrozenDict(params), "doctor.remedy.server", status.name, check
        )
    params |= {**error.params, "what": error.what}
    params |= {"message": error.message, "server": status.name, "exit_code": error.exit_code}
    params["line"] = next((line for line in reversed(error.stderr) if line.strip()), "")[:200]
    say = f"error:{error.code}"
    if status.restarts:
        say = "doctor.say.server_crashes"
    elif error.exit_code is not None:
        say = "doctor.say.server_exit"
    return Finding(check, False, say, FrozenDict(params), error.remedy or "doctor.remedy.server", status.name, check)


class Chats:
    """What went wrong in chats lately, by code: read once for all checks of a round."""

    def __init__(self, history: History, now: float) -> None:
        self._history, self._now = history, now
        self.reading: asyncio.Task[dict[str, tuple[SessionRow, FrozenDict]]] | None = None

    async def about(self, check: str, codes: tuple[str, ...], tools: Mapping[str, str] | None = None) -> Finding:
        """The newest chat that ended with one of these codes; `tools` (name to problem) counts as well.

        Raises:
            HostError: the journal cannot be read.
        """
        if tools:
            first = sorted(tools)[0]
            return ill(
                check, "tools_refused", check, place=first, act=f"server:{first.partition('.')[0]}",
                tools=", ".join(sorted(tools)[:5]), count=len(tools), problem=tools[first],
            )  # fmt: skip
        if self.reading is None:
            self.reading = asyncio.ensure_future(self._look())
        found = await asyncio.shield(self.reading)
        hit = next((found[code] for code in codes if code in found), None)
        if hit is None:
            return well(check, "no_trouble")
        row, error = hit
        return ill(
            check, f"trouble_{check}", check, place=row.title, act=f"chat:{row.session}", title=row.title,
            detail=str(error.get("message", "")), model=str((error.get("params") or {}).get("model", "")),
        )  # fmt: skip

    async def _look(self) -> dict[str, tuple[SessionRow, FrozenDict]]:
        out: dict[str, tuple[SessionRow, FrozenDict]] = {}
        rows = await self._history.rows(limit=CHATS)
        for row in sorted(rows, key=lambda r: -r.updated):
            if self._now - row.updated > LATELY_S:
                continue
            last = await self._history.last_seq(row.session)
            events = [s.event for s in await self._history.read(row.session, max(0, last - EVENTS))]
            ended = next((e for e in reversed(events) if isinstance(e, TurnEnded)), None)
            if row.last_turn is TurnStatus.FAILED and ended is not None and ended.error:
                out.setdefault(str(ended.error.get("code")), (row, ended.error))
            for event in events:
                if isinstance(event, Notice) and event.code == "tool_quarantined":
                    refused = f"{event.params.get('server')}.{event.params.get('tool')}: {event.params.get('detail')}"
                    out.setdefault("bad_tool_schema", (row, FrozenDict({"message": refused})))
        return out


def refused_tools(servers: ServerAdmin) -> dict[str, str]:
    """`server.tool` to the problem, of tools that no model can have as they are."""
    out: dict[str, str] = {}
    for status in servers.statuses():
        if status.enabled and status.state is ServerState.READY:
            try:
                tools = servers.tools(status.name)
            except HostError:
                continue
            out |= {t.full_name: t.problem for t in tools if t.problem and _REFUSED & set(t.problem.split())}
    return out
