"""A server's state, failure and figures in words and tones."""

from __future__ import annotations

import time

from desktop_host.core.auth import SignInState
from desktop_host.core.servers import FailureReport, ServerConfig, ServerState, ServerStatus, Stdio
from desktop_host.core.transcript import ToolEntry
from desktop_host.i18n import current, tr, trn

TONES = {
    ServerState.READY: "success",
    ServerState.STARTING: "info",
    ServerState.STOPPING: "info",
    ServerState.WAITING: "warning",
    ServerState.NEEDS_AUTH: "warning",
    ServerState.FAILED: "danger",
    ServerState.STOPPED: "",
    ServerState.DISABLED: "",
}


def state_text(status: ServerStatus, busy: bool = False) -> str:
    """The state in a word."""
    if status.sign_in is SignInState.SIGNING_IN:
        return tr("server.state.signing_in")
    return tr("server.state.busy") if busy else tr(f"server.state.{status.state.value}")


def wants_sign_in(status: ServerStatus) -> bool:
    """Whether a person must sign in before the server can be used."""
    return status.enabled and (status.state is ServerState.NEEDS_AUTH or status.sign_in is SignInState.NEEDED)


def counts(status: ServerStatus) -> str:
    """What a running server offers."""
    parts = [trn("server.tools", status.tools)]
    if status.resources:
        parts.append(trn("server.resources", status.resources))
    if status.prompts:
        parts.append(trn("server.prompts", status.prompts))
    if status.tokens:
        parts.append(trn("tool.tokens", status.tokens))
    return " · ".join(parts)


def reason(report: FailureReport) -> str:
    """What happened, in a sentence."""
    return current().failure(report)[0]


def problem_text(entry: ToolEntry) -> str:
    """Why the host could not have a call done, and what may help."""
    key = f"chat.tool.problem.{entry.problem}"
    return tr(key if current().has(key) else "chat.tool.problem", server=entry.server, tool=entry.tool)


def cause(report: FailureReport) -> str:
    """The likely cause and its mend."""
    return current().failure(report)[1]


def duration(seconds: float) -> str:
    """A span of time, two units at most."""
    total = max(0, int(seconds))
    days, rest = divmod(total, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, secs = divmod(rest, 60)
    if days:
        return tr("time.days_hours", days=days, hours=hours)
    if hours:
        return tr("time.hours_minutes", hours=hours, minutes=minutes)
    if minutes:
        return tr("time.minutes_seconds", minutes=minutes, seconds=secs)
    return tr("time.seconds", seconds=secs)


def clock(t: float) -> str:
    """A time of day (local) with milliseconds."""
    return time.strftime("%H:%M:%S", time.localtime(t)) + f".{int(t * 1000) % 1000:03}"


def size(count: int) -> str:
    """A number of bytes as a person reads it (1024 to the next unit)."""
    value, units = float(count), ("B", "KB", "MB", "GB")
    for unit in units:
        if value < 1024 or unit == units[-1]:
            return f"{value:.0f} {unit}" if unit in ("B", "KB") else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def report_text(status: ServerStatus, report: FailureReport) -> str:
    """All of a failure as text to paste into an issue."""
    lines = [f"{status.name} ({status.transport}): {report.code}: {report.message}"]
    if report.command:
        lines.append("command: " + " ".join(report.command))
    for name, value in (("PATH", report.path), ("cwd", report.cwd), ("exit code", report.exit_code)):
        if value not in (None, ""):
            lines.append(f"{name}: {value}")
    if report.bad_stdout:
        lines.append(f"stdout: {report.bad_stdout}")
    return "\n".join([*lines, *(f"stderr: {line}" for line in report.stderr)])


def launch_lines(config: ServerConfig) -> tuple[tuple[str, str], ...]:
    """`(label, text)` of what would be started or connected to, whole."""
    launch = config.launch
    if isinstance(launch, Stdio):
        pairs = [(tr("server.command"), launch.command)]
        if launch.args:
            pairs.append((tr("server.args"), "\n".join(launch.args)))
        if launch.env:
            pairs.append((tr("server.env"), "\n".join(f"{k}={v}" for k, v in launch.env.items())))
        if launch.cwd:
            pairs.append((tr("server.cwd"), launch.cwd))
        return tuple(pairs)
    pairs = [(tr("server.url"), launch.url)]
    if launch.headers:
        pairs.append((tr("server.headers"), "\n".join(f"{k}: {v}" for k, v in launch.headers.items())))
    return tuple(pairs)
