"""The verb `servers`: configure, start and look into MCP servers."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from desktop_host.cli.context import Run, Verb
from desktop_host.cli.render import clipped
from desktop_host.cli.server_add import add
from desktop_host.cli.server_import import found, level, links, taken_over
from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.servers import FailureReport, LogLine, ServerConfig, ServerState, ServerStatus, ServerTest
from desktop_host.core.values import canonical, thaw
from desktop_host.i18n import Translator, current, tr


def failure_object(report: FailureReport | None, language: Translator | None = None) -> dict[str, Any] | None:
    """Why a server does not work, as `--json` has it (English)."""
    if report is None:
        return None
    _, remedy = (language or Translator("en")).failure(report)
    out = {
        "code": report.code, "message": report.message, "remedy": remedy, "command": list(report.command),
        "path": report.path, "exit_code": report.exit_code, "stderr": list(report.stderr),
    }  # fmt: skip
    if report.cwd is not None:
        out["cwd"] = report.cwd
    if report.bad_stdout is not None:
        out["bad_stdout"] = report.bad_stdout
    return out


def status_object(status: ServerStatus) -> dict[str, Any]:
    """One line of `servers list --json`."""
    return {
        "name": status.name, "state": status.state.value, "enabled": status.enabled, "transport": status.transport,
        "era": status.era, "tools": status.tools, "error": failure_object(status.error),
    }  # fmt: skip


def _cells(status: ServerStatus) -> list[str]:
    return [
        status.name, tr(f"cli.state.{status.state.value}"), status.transport, status.era or "", str(status.tools),
        clipped(current().failure(status.error)[0] if status.error else status.target, 80),
    ]  # fmt: skip


def told(run: Run, name: str) -> None:
    """Show one server as it stands."""
    status = run.host.servers.status(name)
    run.out.item(status_object(status), "  ".join(cell for cell in _cells(status) if cell))


def config_of(run: Run, name: str) -> ServerConfig:
    """A configured server.

    Raises:
        UserFault: `not_found`, naming the servers there are.
    """
    configs = run.host.servers.configs()
    for config in configs:
        if config.name == name:
            return config
    there_are = ", ".join(c.name for c in configs)
    raise UserFault("not_found", f"there is no server {name!r}" + (f"; there are: {there_are}" if configs else ""),
                    reason="server", name=name, choices=there_are)  # fmt: skip


def failure_of(name: str, report: FailureReport | None) -> KnownFault:
    """The fault behind a server that does not run."""
    if report is None:
        return KnownFault("server_failed", f"{name} is not ready", server=name)
    return KnownFault(
        report.code, report.message, **{
            **report.params, "server": name, "remedy": report.remedy, "command": list(report.command),
            "path": report.path, "exit_code": report.exit_code, "stderr": list(report.stderr), "what": report.what,
        },
    )  # fmt: skip


def explain(run: Run, report: FailureReport) -> None:
    """For people: the evidence behind a failure."""
    facts = failure_object(report, current()) or {}
    lines = [
        ("command", " ".join(report.command)), ("path", report.path), ("cwd", report.cwd or ""),
        ("exit_code", "" if report.exit_code is None else str(report.exit_code)),
        ("bad_stdout", report.bad_stdout or ""), ("stderr", "\n    ".join(report.stderr)),
    ]  # fmt: skip
    for label, value in lines:
        if value:
            run.out.note(f"  {tr(f'cli.servers.{label}')}: {value}")
    if facts.get("remedy"):
        run.out.note(f"  {facts['remedy']}")


async def running(run: Run, name: str) -> ServerStatus:
    """Start a server unless it runs.

    Raises:
        HostError: it is not configured, or why it does not start.
    """
    config_of(run, name)
    status = run.host.servers.status(name)
    if status.state is not ServerState.READY:
        status = await run.host.servers.start(name)
    if status.state is not ServerState.READY:
        raise failure_of(name, status.error)
    return status


async def _list(run: Run) -> int:
    statuses = run.host.servers.statuses()
    for status in statuses:
        run.out.item(status_object(status))
    run.out.table([_cells(status) for status in statuses])
    if not statuses:
        run.out.note(tr("cli.servers.none"))
    return 0


async def _remove(run: Run) -> int:
    config_of(run, run.ns.name)
    if any(bundle.alias == run.ns.name for bundle in await run.host.bundles.installed()):
        revoked = await run.host.bundles.remove(run.ns.name)
    else:
        revoked = await run.host.servers.remove(run.ns.name)
    left = {} if revoked else {"revoked": False}
    run.out.item({"name": run.ns.name, "removed": True, **left}, tr("cli.servers.removed", name=run.ns.name))
    if not revoked:
        run.out.note(tr("server.removed.not_revoked", name=run.ns.name))
    return 0


async def _switch(run: Run) -> int:
    config_of(run, run.ns.name)
    await run.host.servers.enable(run.ns.name, run.ns.action == "enable")
    told(run, run.ns.name)
    return 0


async def _start(run: Run) -> int:
    """Start a server and say how it stands; it lives as long as this run does."""
    await running(run, run.ns.name)
    told(run, run.ns.name)
    return 0


async def _restart(run: Run) -> int:
    config_of(run, run.ns.name)
    status = await run.host.servers.restart(run.ns.name)
    if status.state is not ServerState.READY:
        raise failure_of(run.ns.name, status.error)
    told(run, run.ns.name)
    return 0


async def _stop(run: Run) -> int:
    config_of(run, run.ns.name)
    await run.host.servers.stop(run.ns.name)
    told(run, run.ns.name)
    return 0


async def _import(run: Run) -> int:
    configs = await taken_over(run)
    for config in configs:
        told(run, config.name)
    if not configs:
        run.out.note(tr("cli.servers.none"))
    return 0


async def _export(run: Run) -> int:
    exported = thaw(run.host.servers.export())
    run.out.item(exported, json.dumps(exported, ensure_ascii=False, indent=2))
    return 0


def test_object(test: ServerTest) -> dict[str, Any]:
    """The object of `servers test --json`."""
    return {
        "name": test.name, "ok": test.ok, "era": test.era, "server": thaw(test.server),
        "capabilities": thaw(test.capabilities), "tools": test.tools, "resources": test.resources,
        "prompts": test.prompts, "connect_ms": _ms(test.connect_ms), "list_ms": _ms(test.list_ms),
        "error": failure_object(test.error),
    }  # fmt: skip


def _ms(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


async def _test(run: Run) -> int:
    test = await run.host.servers.test(config_of(run, run.ns.name))
    if test.ok:
        text = tr(
            "cli.servers.test_ok", name=test.name, era=test.era or "?", server=test.server.get("name", "?"),
            version=test.server.get("version", ""), tools=test.tools, resources=test.resources,
            prompts=test.prompts, connect=_ms(test.connect_ms), list=_ms(test.list_ms),
            capabilities=", ".join(sorted(test.capabilities)) or "-",
        )  # fmt: skip
        run.out.item(test_object(test), text)
        return 0
    run.out.item(test_object(test))
    fault = failure_of(test.name, test.error)
    if not run.out.json:
        said = current().failure(test.error)[0] if test.error else fault.message
        run.out.note(tr("cli.servers.test_failed", name=test.name, message=said.replace("\n", "\n  ")))
        if test.error is not None:
            explain(run, test.error)
    return fault.exit_code


def _clock(t: float) -> str:
    return datetime.fromtimestamp(t).astimezone().strftime("%H:%M:%S.%f")[:-3]


async def _logs(run: Run) -> int:
    """The newest lines of a server's log: of this run, else of the file that earlier runs wrote."""
    config_of(run, run.ns.name)
    lines = run.host.servers.logs(run.ns.name)
    if not lines:
        lines = await asyncio.to_thread(_kept_lines, run.host.folder / "logs" / f"{run.ns.name}.log")
    for line in lines:
        run.out.item(
            {"t": line.t, "source": line.source, "level": line.level, "text": line.text},
            f"{_clock(line.t)} {line.source}{f' {line.level}' if line.level else ''}: {line.text}",
        )
    if not lines:
        run.out.note(tr("cli.servers.no_logs", name=run.ns.name))
    return 0


_KEPT = re.compile(r"(\d+\.\d+) (\w+)(?: \[(\w+)\])? (.*)")
"""A line of a server's log file: seconds since the epoch, source, level, text."""


def _kept_lines(path: Path) -> tuple[LogLine, ...]:
    try:
        text = path.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    found = (_KEPT.fullmatch(line) for line in text.splitlines()[-1000:])
    return tuple(LogLine(float(m[1]), m[2], m[4], m[3]) for m in found if m)


async def _trace(run: Run) -> int:
    """What goes over the wire; a server that does not run yet is started to see it."""
    config_of(run, run.ns.name)
    status = run.host.servers.status(run.ns.name)
    if status.state is not ServerState.READY:
        status = await run.host.servers.start(run.ns.name)
    for frame in run.host.servers.trace(run.ns.name):
        arrow = "→" if frame.direction == "out" else "←"
        run.out.item(
            {"t": frame.t, "direction": frame.direction, "message": frame.message},
            f"{_clock(frame.t)} {arrow} {canonical(frame.message)}",
        )
    if status.state is not ServerState.READY:
        raise failure_of(run.ns.name, status.error)
    return 0


VERBS: dict[tuple[str, str | None], Verb] = {
    ("servers", "list"): _list,
    ("servers", "add"): add,
    ("servers", "remove"): _remove,
    ("servers", "enable"): _switch,
    ("servers", "disable"): _switch,
    ("servers", "start"): _start,
    ("servers", "stop"): _stop,
    ("servers", "restart"): _restart,
    ("servers", "import"): _import,
    ("servers", "found"): found,
    ("servers", "level"): level,
    ("servers", "links"): links,
    ("servers", "export"): _export,
    ("servers", "test"): _test,
    ("servers", "logs"): _logs,
    ("servers", "trace"): _trace,
}
