"""Why a server does not work: one report with all that is needed to mend it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from desktop_host.core.errors import HostError, KnownFault
from desktop_host.core.servers import FailureReport, LogLine, ServerConfig, Stdio
from desktop_host.servers.records import Redactor

STDERR_LINES = 20

_CLUES: tuple[tuple[str, str], ...] = (
    (r"has no attribute 'list_(resources|tools|prompts)'", "old_sdk"),
    (r"No module named|ModuleNotFoundError|Cannot find module|MODULE_NOT_FOUND|ERR_MODULE_NOT_FOUND", "missing_module"),
    (r"can't open file|No such file or directory|ENOENT", "missing_file"),
    (r"EACCES|Permission denied|PermissionError", "denied"),
    (r"EADDRINUSE|Address already in use", "port_taken"),
    (r"ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|registry\.|Could not resolve host", "no_network"),
    (r"E404|404 Not Found|No matching distribution|not found in the package registry", "no_package"),
    (r"EBADENGINE|Unsupported engine|SyntaxError: Unexpected token", "old_runtime"),
    (
        r"(?i)(api[_ -]?key|token|credential)s? (is |are )?(required|missing|not set)|Unauthorized|invalid api key",
        "no_key",
    ),
)
"""What servers say on standard error, and the key of the likely cause (`remedy.server.<key>`)."""

_LAUNCHERS = {
    "npx": "install_node",
    "node": "install_node",
    "npm": "install_node",
    "uvx": "install_uv",
    "uv": "install_uv",
    "docker": "install_docker",
    "bunx": "install_bun",
    "deno": "install_deno",
}


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The real errors inside nested exception groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def main_leaf(error: BaseException) -> BaseException:
    """The leaf that tells most: the first that is a failure of our own naming, else the first."""
    found = list(leaves(error))
    return next((e for e in found if isinstance(e, HostError)), found[0] if found else error)


@dataclass(slots=True)
class Evidence:
    """What was seen of one attempt to connect."""

    command: tuple[str, ...] = ()
    path: str = ""
    cwd: str | None = None
    exit_code: int | None = None
    bad_stdout: str | None = None
    http_status: int | None = None
    timed_out: bool = False
    started_at: float = 0.0


def report(
    config: ServerConfig,
    error: BaseException,
    seen: Evidence,
    lines: Iterable[LogLine],
    redact: Redactor,
) -> FailureReport:
    """Make the report of a failed attempt; secrets are masked in every part of it."""
    leaf = main_leaf(error)
    code, message = _name(config, leaf, seen)
    stderr = tuple(x.text for x in lines if x.source == "stderr" and x.t >= seen.started_at)[-STDERR_LINES:]
    made = FailureReport(
        code=code,
        message=redact(message),
        command=tuple(redact(c) for c in seen.command),
        path=seen.path,
        cwd=seen.cwd,
        exit_code=seen.exit_code,
        stderr=tuple(redact(x) for x in stderr),
        bad_stdout=redact(seen.bad_stdout) if seen.bad_stdout else None,
    )
    return replace(made, remedy=f"remedy.server.{_cause(config, leaf, seen, made)}")


def lost_text(name: str, exit_code: int | None) -> str:
    """How an open connection ended."""
    return f"{name} ended the connection" if exit_code is None else f"{name} ended with exit code {exit_code}"


def fault(made: FailureReport, name: str) -> KnownFault:
    """The report as an exception, for the verb that met it."""
    return KnownFault(
        made.code, made.message, retryable=made.code in {"server_lost", "network", "connect_timeout"},
        server=name, remedy=made.remedy, command=list(made.command), path=made.path, cwd=made.cwd,
        exit_code=made.exit_code, stderr=list(made.stderr), bad_stdout=made.bad_stdout,
    )  # fmt: skip


def _name(config: ServerConfig, leaf: BaseException, seen: Evidence) -> tuple[str, str]:
    name = config.name
    if isinstance(leaf, HostError):
        return leaf.code, leaf.message
    if seen.http_status in (401, 403):
        return "auth", f"{name}: the server answered {seen.http_status}; it wants other credentials"
    if seen.timed_out or isinstance(leaf, TimeoutError):
        return "connect_timeout", f"{name} did not finish its start within {config.timeouts.connect_s:g} s"
    if isinstance(config.launch, Stdio):
        if seen.exit_code is not None:
            return "server_failed", f"{name} ended with exit code {seen.exit_code} before it was ready"
        return "server_failed", f"{name} could not be started: {_text(leaf)}"
    text = _text(leaf)
    if re.search(r"(?i)certificate|ssl|tls", text):
        return "tls", f"{name}: {text}"
    if re.search(r"(?i)proxy", type(leaf).__name__):
        return "proxy", f"{name}: {text}"
    if re.search(r"Connect|Read|Write|Network|connection|resolve", text):
        return "network", f"{name}: {text}"
    return "server_failed", f"{name}: {text}"


def _text(error: BaseException) -> str:
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0][:300]}" if said else type(error).__name__


def _cause(config: ServerConfig, leaf: BaseException, seen: Evidence, made: FailureReport) -> str:
    if isinstance(leaf, HostError):
        if made.code == "auth" and "reason" in leaf.params:
            return f"sign_in.{leaf.params['reason']}"
        if leaf.params.get("reason") == "command_not_found":
            command = str(leaf.params.get("command", "")).replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".cmd")
            return _LAUNCHERS.get(command, "command_not_found")
        if reason := leaf.params.get("reason"):
            return {"cwd_not_found": "missing_file", "command_not_executable": "denied"}.get(
                str(reason), "configuration"
            )
        if leaf.code in ("vault_locked", "vault_unavailable"):
            return "vault"
        if leaf.code == "bad_config":
            return "configuration"
    if made.code in ("auth", "tls", "proxy"):
        return made.code
    if not isinstance(config.launch, Stdio):
        if seen.http_status == 404:
            return "wrong_url"
        return "timeout" if made.code == "connect_timeout" else "unreachable"
    said = "\n".join([*made.stderr, made.bad_stdout or ""])
    for pattern, key in _CLUES:
        if re.search(pattern, said):
            return key
    if made.bad_stdout and made.exit_code is None:
        return "prints_to_stdout"
    if made.code == "connect_timeout":
        return "timeout"
    return "exited_at_once" if made.exit_code == 0 else "read_log"
