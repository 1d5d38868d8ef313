"""Whatever a person may paste to say "this server": other hosts' JSON, a bare object, a command line, a URL."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from desktop_host.core.errors import UserFault
from desktop_host.core.servers import ImportedServer, ServerConfig, Stdio
from desktop_host.core.tools import ALIAS, alias_for
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.servers import jsonc
from desktop_host.servers.command_line import entry_of_line, is_url, name_for, runs_shell, split_needed
from desktop_host.servers.config_file import SERVERS
from desktop_host.servers.entries import OURS, from_json, to_json
from desktop_host.servers.hiding import hide

WARNINGS = (
    "shell_command", "env_runs_code", "split_arguments", "renamed", "unknown_keys", "duplicate_key", "needs_secret",
)  # fmt: skip
"""All codes that `ImportedServer.warnings` may hold."""

_MAPS = (SERVERS, "servers", "context_servers", "mcp_servers", "mcp")
_URLS = ("url", "serverUrl", "httpUrl", "server_url", "baseUrl")
_FENCE = re.compile(r"^[ \t]*```[\w+-]*[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_INPUT = re.compile(r"\$\{input:([^}]+)\}")
_RUNS_CODE = re.compile(
    r"NODE_OPTIONS|npm_config_node_options|PYTHON(STARTUP|PATH|HOME|BREAKPOINT|INSPECT)|LD_(PRELOAD|LIBRARY_PATH|AUDIT)"
    r"|DYLD_.*|BASH_ENV|ENV|PROMPT_COMMAND|PERL5(OPT|LIB)|RUBY(OPT|LIB)|(_JAVA|JAVA_TOOL|JDK_JAVA)_OPTIONS"
    r"|GIT_(SSH_COMMAND|EXEC_PATH|EXTERNAL_DIFF)|ZDOTDIR",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Found:
    """An entry as it was pasted."""

    name: str | None
    entry: dict[str, Any]
    at: int = 0
    inputs: dict[str, Any] | None = None
    repeated: bool = False


def parse(text: str, taken: Collection[str] = ()) -> tuple[ImportedServer, ...]:
    """Read anything that names servers; starts nothing and writes nothing.

    Understood: `{"mcpServers": …}` of most hosts, VS Code's `servers` with `inputs`, Zed's `context_servers`,
    a map of servers, one bare server, the inside of an object as READMEs print it, several such objects in
    sequence, each with comments, BOM and trailing commas; a fenced block; one command line or URL a line.
    Plain secrets are replaced by `${keyring:alias/NAME}` and handed back beside.

    Args:
        text: what was pasted.
        taken: aliases in use; a name that is taken gets `-2` and the warning `renamed`.

    Raises:
        UserFault: `bad_config` with `line`, `column` and `excerpt` (which shows no long value).
    """
    text = text.replace("\r\n", "\n")
    if fenced := _FENCE.findall(text):
        text = "\n".join(fenced)
    stripped = text.strip("\ufeff\u200b \t\n")
    if not stripped:
        raise UserFault("bad_config", "there is nothing to read", reason="empty", line=1, column=1)
    if re.match(r'[{\[]|//|/\*|"(?:[^"\\]|\\.)*"\s*:', stripped):
        return tuple(_imported(_in_json(text), set(taken), text))
    return tuple(_imported(_in_lines(text), set(taken), text))


def runs_code(variable: str) -> bool:
    """Whether an environment variable of this name makes a program run what it says."""
    return _RUNS_CODE.fullmatch(variable) is not None


def export(configs: Iterable[ServerConfig]) -> FrozenDict:
    """`{"mcpServers": …}` to give away: references stay, plain secrets become references, values go nowhere."""
    return FrozenDict({SERVERS: freeze({c.name: to_json(hide(c)[0]) for c in configs})})


def _in_lines(text: str) -> list[_Found]:
    found: list[_Found] = []
    pending, first = "", 1
    for number, line in enumerate(text.strip("\ufeff\u200b").split("\n"), 1):
        first = first if pending else number
        pending += line.strip()
        if pending.endswith("\\") and len(pending) > 1 and text.count("\n") >= number:
            pending = pending[:-1]
            continue
        if pending and not pending.startswith("#"):
            try:
                found.append(_Found(None, {"url": pending} if is_url(pending) else entry_of_line(pending)))
            except UserFault as error:
                raise _fault(error.message, **{"excerpt": pending[:1] + "…", **error.params, "line": first}) from None
        pending = ""
    if not found:
        raise _fault("there is nothing to read but comments", "empty", 1, 1, "")
    return found


def _in_json(text: str) -> list[_Found]:
    shift = 0
    try:
        if re.match(r'[\ufeff\s]*"', text):  # The inside of an object, as READMEs print it.
            shift = 1
            nodes = jsonc.read_all("{" + text.rstrip().rstrip(",") + "}")
        else:
            nodes = jsonc.read_all(text)
    except jsonc.JsonProblem as problem:
        where = problem.place
        column = where.column - (shift if where.line == 1 else 0)
        raise _fault(problem.message, problem.code, where.line, column, where.excerpt) from None
    found = [item for node in nodes for item in _servers_in(node, text)]
    if not found:
        where = jsonc.place(text, max(0, nodes[0].start - shift))
        raise _fault("no server was found in it", "no_servers", where.line, where.column, where.excerpt)
    for item in found:
        item.at = max(0, item.at - shift)
    return found


def _servers_in(node: jsonc.Node, text: str) -> Iterator[_Found]:
    value = node.value
    if isinstance(value, list):
        for entry in value:
            if isinstance(entry, dict) and _is_server(entry):
                yield _Found(None, dict(entry), node.start)
        return
    if not isinstance(value, dict):
        return
    if _is_server(value):
        yield _Found(None, dict(value), node.start)
        return
    maps = [(key, member) for key in _MAPS if (member := node.member(key)) is not None]
    inputs = {i["id"]: i for i in value.get("inputs") or () if isinstance(i, dict) and isinstance(i.get("id"), str)}
    for key, member in maps:
        if not isinstance(member.value, dict):
            where = jsonc.place(text, member.start)
            message = f"{key} must be an object"
            raise _fault(message, "object_expected", where.line, where.column, where.excerpt, key=key)
        inner = [k for k in _MAPS if isinstance(member.value.get(k), dict) and not _is_server(member.value[k])]
        if inner:  # VS Code's settings: {"mcp": {"servers": …, "inputs": …}}
            yield from _servers_in(member, text)
        else:
            yield from _entries(member, inputs)
    if not maps and any(isinstance(v, dict) and _is_server(v) for v in value.values()):
        yield from _entries(node, {}, lenient=True)


def _entries(node: jsonc.Node, inputs: dict[str, Any], *, lenient: bool = False) -> Iterator[_Found]:
    repeated = node.repeated
    last = {m.key: m for m in node.members}
    for key, member in last.items():
        entry = member.node.value
        if lenient and not (isinstance(entry, dict) and _is_server(entry)):
            continue
        yield _Found(key, entry, member.start, inputs, key in repeated)


def _is_server(entry: dict[str, Any]) -> bool:
    command = entry.get("command")
    if isinstance(command, dict):
        return isinstance(command.get("path"), str)
    return isinstance(command, (str, list)) or any(isinstance(entry.get(key), str) for key in _URLS)


def _imported(found: Iterable[_Found], taken: set[str], text: str) -> Iterator[ImportedServer]:
    for item in found:
        try:
            server = _one(item, frozenset(taken))
        except UserFault as error:
            if "line" in error.params:
                raise
            where = jsonc.place(text, item.at)
            raise _fault(error.message, **{
                **error.params, "line": where.line, "column": where.column, "excerpt": where.excerpt,
            }) from None  # fmt: skip
        taken.add(server.config.name)
        yield server


def _one(item: _Found, taken: frozenset[str]) -> ImportedServer:
    if not isinstance(item.entry, dict):
        raise UserFault(
            "bad_config", f"server {item.name!r}: an object was expected", reason="object_expected", server=item.name
        )
    warnings = ["duplicate_key"] if item.repeated else []
    entry = _ours(item.entry)
    if (split := split_needed(entry)) is not None:
        entry = split
        warnings.append("split_arguments")
    given = item.name if item.name is not None else entry.pop("name", None)
    given = given if isinstance(given, str) and given.strip() else None
    wanted = given or name_for(entry)
    fits = ALIAS.fullmatch(wanted) is not None and wanted != "host" and wanted not in taken
    alias = wanted if fits else alias_for(wanted, taken)
    if given and alias != given:
        warnings.append("renamed")
    wants: list[bool] = []
    config = from_json(alias, _filled(entry, alias, item.inputs or {}, wants))
    if given and not ALIAS.fullmatch(given) and config.title is None:
        config = replace(config, title=given)
    config, hidden = hide(config)
    if hidden.blank or wants:
        warnings.append("needs_secret")
    if isinstance(config.launch, Stdio):
        if runs_shell(config.launch.command, config.launch.args):
            warnings.append("shell_command")
        if any(_RUNS_CODE.fullmatch(name) for name in config.launch.env):
            warnings.append("env_runs_code")
    if config.extra:
        warnings.append("unknown_keys")
    return ImportedServer(config, FrozenDict(hidden.secrets), tuple(warnings))


def _ours(entry: dict[str, Any]) -> dict[str, Any]:
    """Other hosts' spellings in ours. What they approve by themselves (`autoApprove` and so on) is not adopted."""
    out = dict(entry)
    if isinstance(command := out.get("command"), dict):  # Zed
        out |= {"command": command.get("path"), "args": command.get("args", [])} | (
            {"env": command["env"]} if command.get("env") else {}
        )
    elif isinstance(command, list):  # opencode
        out |= {"command": command[0] if command else None, "args": [*command[1:], *(out.get("args") or ())]}
    if isinstance(out.get("environment"), dict):
        out["env"] = {**out.pop("environment"), **(out.get("env") or {})}
    kind = out.pop("transport", None) or out.pop("transportType", None)
    if isinstance(kind, str):
        out.setdefault("type", kind)
    for key in _URLS[1:]:
        if isinstance(out.get(key), str) and not out.get("command"):
            out["url"] = out.pop(key)
            if key == "httpUrl":
                out.setdefault("type", "http")
    if isinstance(out.get("type"), str):
        known = {"local": "stdio", "remote": "", "streamablehttp": "http"}
        plain = re.sub(r"[-_]", "", out["type"]).lower()
        out["type"] = known.get(plain, out["type"]) or None
    for key in ("enabled", "isActive"):
        if isinstance(out.get(key), bool):
            own = out.get(OURS)
            out[OURS] = {"enabled": out.pop(key), **(own if isinstance(own, dict) else {})}
    if out.get("source") == "custom":
        del out["source"]
    return out


def _filled(value: Any, alias: str, inputs: dict[str, Any], wants: list[bool]) -> Any:
    """`${input:id}` as the input's plain default, else as a name of the vault; `${userHome}` as `${HOME}`."""

    def fill(match: re.Match[str]) -> str:
        known = inputs.get(match[1], {})
        default = known.get("default")
        if isinstance(default, str) and default and not known.get("password"):
            return default
        wants.append(True)
        return f"${{keyring:{alias}/{re.sub(r'[^A-Za-z0-9_.-]+', '_', match[1])}}}"

    if isinstance(value, str):
        return _INPUT.sub(fill, value).replace("${userHome}", "${HOME}")
    if isinstance(value, dict):
        return {k: _filled(v, alias, inputs, wants) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(v, alias, inputs, wants) for v in value]
    return value


def _fault(message: str, reason: str, line: int, column: int, excerpt: str, **params: Any) -> UserFault:
    place = {"line": line, "column": column, "excerpt": excerpt}
    return UserFault("bad_config", message, **{**params, "reason": reason, **place})
