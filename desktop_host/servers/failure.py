"""Why a server does not work: one report with all that is needed to mend it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from desktop_host.core.errors import HostError, KnownFault
from desktop_host.core.servers import FailureReport, LogLine, ServerConfig, Sse, Stdio
from desktop_host.core.values import FrozenDict
from desktop_host.servers.records import Redactor
from desktop_host.servers.sign_in import wants_sign_in

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

WHATS = frozenset({
    "command_not_found", "path_not_found", "command_not_executable", "cwd_not_found", "ended", "hung_up",
    "unreachable", "no_list",
})  # fmt: skip
"""What of our own faults has a text here (`failure.<what>`)."""

_FIXES = {
    "timeout": "more_time", "wrong_url": "edit", "command_not_found": "edit", "missing_program": "edit",
    "missing_folder": "edit", "missing_file": "edit", "configuration": "edit", "no_key": "edit", "no_package": "edit",
    "missing_module": "edit", "old_sdk": "edit", "old_runtime": "node", "tls": "edit",
    "not_mcp": "edit", "proxy": "edit",
}  # fmt: skip
"""What mends a cause; where nothing is named, starting it again is worth a try."""

_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
_HTTP = re.compile(r"\w+: (?:.{0,80}?\bHTTP |\w+ \w+ ')(\d{3})(?:\D|$)")
"""The status in what our own shield and the HTTP library say."""

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
    other_transport: bool = False
    """The address serves the HTTP transport that is not configured."""
    timed_out: bool = False


def report(
    config: ServerConfig,
    error: BaseException,
    seen: Evidence,
    lines: Iterable[LogLine],
    redact: Redactor,
) -> FailureReport:
    """Make the report of a failed attempt; secrets are masked in every part of it."""
    leaf = main_leaf(error)
    named = _name(config, leaf, seen)
    stderr = tuple(x.text for x in lines if x.source == "stderr")[-STDERR_LINES:]
    made = FailureReport(
        code=named.code,
        message=redact(named.message),
        command=tuple(redact(c) for c in seen.command),
        path=seen.path,
        cwd=seen.cwd,
        exit_code=seen.exit_code,
        stderr=tuple(redact(x) for x in stderr),
        bad_stdout=redact(seen.bad_stdout) if seen.bad_stdout else None,
        what=f"failure.{named.what}" if named.what else "",
        params=FrozenDict({k: redact(v) if isinstance(v, str) else v for k, v in named.params.items()}),
    )
    cause = _cause(config, leaf, seen, made)
    return replace(made, remedy=f"remedy.server.{cause}", fix=_fix(config, cause, named.what))


def lost(name: str, exit_code: int | None, why: str = "") -> KnownFault:
    """An open connection ended: by itself, or because a call found that `why`."""
    if why:
        return KnownFault("server_lost", why, server=name, what="unreachable", detail=why)
    if exit_code is None:
        return KnownFault("server_lost", f"{name} ended the connection", server=name, what="hung_up")
    message = f"{name} ended with exit code {exit_code}"
    return KnownFault("server_lost", message, server=name, what="ended", exit_code=exit_code)


def fault(made: FailureReport, name: str) -> KnownFault:
    """The report as an exception, for the verb that met it."""
    said = {
        **made.params, "server": name, "remedy": made.remedy, "command": list(made.command), "path": made.path,
        "cwd": made.cwd, "exit_code": made.exit_code, "stderr": list(made.stderr), "bad_stdout": made.bad_stdout,
        "what": made.what,
    }  # fmt: skip
    retryable = made.code in {"server_lost", "network", "connect_timeout"}
    return KnownFault(made.code, made.message, retryable=retryable, **said)


class _Named(NamedTuple):
    """What happened, in the code of the command line, in English, and as a key with what it names."""

    code: str
    message: str
    what: str
    params: dict[str, Any]


def _name(config: ServerConfig, leaf: BaseException, seen: Evidence) -> _Named:
    name = config.name
    if isinstance(leaf, HostError):
        plain = {k: v for k, v in leaf.params.items() if isinstance(v, (str, int, float))}
        what = str(plain.get("what") or plain.get("reason", ""))
        return _Named(leaf.code, leaf.message, what if what in WHATS else "", plain)
    if seen.http_status in (401, 403):
        told = f"{name}: the server answered {seen.http_status}; it wants other credentials"
        return _Named("auth", told, "refused", {"status": seen.http_status})
    if seen.timed_out or isinstance(leaf, TimeoutError):
        seconds = f"{config.timeouts.connect_s:g}"
        return _Named(
            "connect_timeout", f"{name} did not finish its start within {seconds} s", "timeout", {"seconds": seconds}
        )
    text = _text(leaf)
    if isinstance(config.launch, Stdio):
        if seen.exit_code is not None:
            told = f"{name} ended with exit code {seen.exit_code} before it was ready"
            return _Named("server_failed", told, "exited", {"exit_code": seen.exit_code})
        return _Named("server_failed", f"{name} could not be started: {text}", "not_started", {"detail": text})
    if _HTTP.match(text):
        code, what = "server_failed", "status"
    elif re.search(r"(?i)certificate|ssl|tls", text):
        code = what = "tls"
    elif re.search(r"(?i)proxy", type(leaf).__name__):
        code = what = "proxy"
    elif re.search(r"Connect|Read|Write|Network|connection|resolve", text):
        code, what = "network", "no_answer"
    else:
        code, what = "server_failed", "not_mcp" if seen.http_status is None else "status"
    facts: dict[str, Any] = {"detail": text.removeprefix("MCPError: "), "address": _address(config)}
    if what == "status":
        facts["status"] = status_of(leaf, seen)
    return _Named(code, f"{name}: {text}", what, facts)


def status_of(error: BaseException, seen: Evidence) -> int | None:
    """The HTTP status that ended an attempt, None where there was none."""
    found = _HTTP.match(_text(main_leaf(error)))
    return int(found[1]) if found else seen.http_status


def _address(config: ServerConfig) -> str:
    if isinstance(config.launch, Stdio):
        return ""
    # A placeholder may hold what divides an address (`${keyring:web/url}`): it stands aside while that is split.
    kept: list[str] = _PLACEHOLDER.findall(config.launch.url)
    bare = _PLACEHOLDER.sub("__placeholder__", config.launch.url)
    host = urlsplit(bare).netloc
    first = host.rpartition("@")[0].count("__placeholder__")
    host = host.rpartition("@")[2]
    for one in kept[first:]:
        host = host.replace("__placeholder__", one, 1)
    return host


def _text(error: BaseException) -> str:
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0][:300]}" if said else type(error).__name__


def _fix(config: ServerConfig, cause: str, what: str) -> str:
    """What one press can do about a cause."""
    if what == "command_not_executable":
        return "make_executable"
    if cause.startswith("install_"):
        return cause.removeprefix("install_")
    if cause == "auth" or cause.startswith("sign_in."):
        return "sign_in" if wants_sign_in(config.launch) else "edit"
    if cause == "wrong_transport":
        return "use_http" if isinstance(config.launch, Sse) else "use_sse"
    return _FIXES.get(cause, "restart")


def _cause(config: ServerConfig, leaf: BaseException, seen: Evidence, made: FailureReport) -> str:
    if isinstance(leaf, HostError):
        if made.code == "auth" and "reason" in leaf.params:
            return f"sign_in.{leaf.params['reason']}"
        if leaf.params.get("reason") == "command_not_found":
            command = str(leaf.params.get("command", "")).replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".cmd")
            return _LAUNCHERS.get(command, "command_not_found")
        if leaf.params.get("what") == "no_list":
            return "bad_list"
        if leaf.code in ("vault_locked", "vault_unavailable"):
            return "vault"
        if reason := leaf.params.get("reason"):
            return {
                "cwd_not_found": "missing_folder",
                "command_not_executable": "denied",
                "path_not_found": "missing_program",
            }.get(str(reason), "configuration")
        if leaf.code == "bad_config":
            return "configuration"
    if made.code in ("auth", "tls", "proxy"):
        return made.code
    if not isinstance(config.launch, Stdio):
        if seen.other_transport:
            return "wrong_transport"
        if made.code == "connect_timeout":
            return "timeout"
        if made.code == "network" or (made.code == "server_lost" and seen.http_status is None):
            return "unreachable"  # One that was lost has spoken MCP before: it is not a wrong address.
        return "wrong_url" if seen.http_status in (404, 405) else "http_error" if seen.http_status else "not_mcp"
    said = "\n".join([*made.stderr, made.bad_stdout or ""])
    for pattern, key in _CLUES:
        if re.search(pattern, said):
            return key
    if made.bad_stdout and made.exit_code is None:
        return "prints_to_stdout"
    if made.code == "connect_timeout":
        return "timeout"
    return "exited_at_once" if made.exit_code == 0 else "read_log"
