"""`servers add`: words to a configuration, secrets from standard input to the vault."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from urllib.parse import urlsplit

from desktop_host.cli.context import Run, folder
from desktop_host.core.errors import UserFault
from desktop_host.core.servers import Http, Launch, Protocol, ServerConfig, ServerScope, Sse, Stdio
from desktop_host.core.tools import ALIAS
from desktop_host.core.values import FrozenDict
from desktop_host.i18n import tr

_REFERENCE = re.compile(r"\$\{keyring:([^}]+)\}")


async def add(run: Run) -> int:
    """Add a server to the profile; nothing is started."""
    from desktop_host.cli.servers import told

    ns = run.ns
    if any(config.name == ns.name for config in run.host.servers.configs()):
        raise UserFault("bad_config", f"a server of the name {ns.name!r} is there already", reason="name_taken",
                        server=ns.name)  # fmt: skip
    values: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for _option, key, value in ns.pairs or ():
        if value == "-":
            name = f"{ns.name}/{key}"
            secrets[name] = await run.stdin.secret(key)
            value = f"${{keyring:{name}}}"
        values[key] = value
    plain = _plain_secrets(run, ns, values)
    config = ServerConfig(
        name=ns.name, launch=_launch(ns, values), protocol=Protocol(ns.protocol), scope=ServerScope(ns.scope)
    )
    added = await run.host.servers.add(config, FrozenDict(secrets | plain))
    for name in plain:
        run.out.note(tr("cli.servers.secret_kept", name=name))
    told(run, added.name)
    return 0


def check_server(ns: Namespace) -> None:
    """Refuse words that do not fit together, before anything is read or kept.

    Raises:
        UserFault: `usage`, or `bad_config` for a name that no server may have.
    """
    if not ALIAS.fullmatch(ns.name) or ns.name == "host":
        raise UserFault(
            "bad_config", f"{ns.name!r} is no name for a server: 1 to 32 of a-z, 0-9 and -, and not host",
            reason="bad_name", server=ns.name,
        )  # fmt: skip
    options = {option for option, _key, _value in ns.pairs or ()}
    if ns.command:
        if ns.url is not None:
            raise UserFault("usage", f"both a URL ({ns.url}) and a command were given", reason="url_and_command")
        if "header" in options or ns.transport:
            raise UserFault("usage", "--header and --transport are for a URL, not for a command",
                            reason="not_for_command", options="--header, --transport")  # fmt: skip
        if ns.scope == "call":
            raise UserFault("usage", "--scope call is for Streamable HTTP", reason="scope_call")
        return
    if ns.url is None:
        raise UserFault("usage", "servers add needs a URL, or a command after --", reason="no_target")
    if not re.match(r"https?://[^/\s]+", ns.url):
        raise UserFault("usage", f"{ns.url!r} is no http(s) URL; a command stands after --", reason="not_a_url",
                        url=ns.url)  # fmt: skip
    if "env" in options or ns.cwd:
        raise UserFault("usage", "--env and --cwd are for a command, not for a URL", reason="not_for_url",
                        options="--env, --cwd")  # fmt: skip
    if ns.scope == "call" and _is_sse(ns):
        raise UserFault("usage", "--scope call is for Streamable HTTP", reason="scope_call")


def _launch(ns: Namespace, values: dict[str, str]) -> Launch:
    if ns.command:
        cwd = None if ns.cwd is None else str(folder(ns.cwd, "--cwd"))
        return Stdio(ns.command[0], tuple(ns.command[1:]), FrozenDict(values), cwd)
    return (Sse if _is_sse(ns) else Http)(ns.url, FrozenDict(values))


def _is_sse(ns: Namespace) -> bool:
    """By `--transport`; without it by the path, as in pasted configurations."""
    if ns.transport is not None:
        return bool(ns.transport == "sse")
    path: str = urlsplit(ns.url).path
    return path.rstrip("/").endswith("/sse")


def _plain_secrets(run: Run, ns: Namespace, values: dict[str, str]) -> dict[str, str]:
    """Move what looks like a secret out of `values`, the address and the arguments; returns it by the vault's name."""
    entry = {"command": ns.command[0], "args": ns.command[1:], "env": values} if ns.command else {
        "url": ns.url, "headers": values,
    }  # fmt: skip
    (found,) = run.host.servers.parse(json.dumps({"mcpServers": {ns.name: entry}}))
    launch, moved = found.config.launch, dict[str, str]()

    def hidden(value: str, reference: str) -> str:
        names = [n for n in _REFERENCE.findall(reference) if n in found.secrets] if reference != value else []
        moved.update({name: found.secrets[name] for name in names})
        return reference if names else value

    if isinstance(launch, Stdio):
        seen = launch.env
        if len(launch.args) == len(ns.command) - 1:
            pairs = zip(ns.command[1:], launch.args, strict=True)
            ns.command = [ns.command[0], *(hidden(plain, shown) for plain, shown in pairs)]
    else:
        seen = launch.headers
        ns.url = hidden(ns.url, launch.url)
    for key, value in values.items():
        values[key] = hidden(value, seen.get(key, value))
    return moved
