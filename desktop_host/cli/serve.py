"""The verb `serve`: the profile's servers as one MCP server for other hosts, through this host's gate."""

from __future__ import annotations

import hashlib
import ipaddress
import os

from desktop_host.cli.context import Run, Verb
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.host_calls import Caller, GatewayKey, GatewaySpec
from desktop_host.i18n import tr

SERVES = "DESKTOP_HOST_SERVES"
"""Folders of the profiles that are being served further up."""
SECRET = "gateway"
"""Name of the bearer token in the vault; that of a key `NAME` is `gateway-NAME`."""


def address(text: str) -> tuple[str, int]:
    """HOST:PORT; without a host this computer alone can come.

    Raises:
        UserFault: `usage`.
    """
    host, _colon, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535 or (":" in host and not _is_v6(host)):
        raise UserFault("usage", f"--http: {text!r} is not HOST:PORT such as 127.0.0.1:8010", reason="bad_address",
                        option="--http", value=text)  # fmt: skip
    return host, int(port)


def _is_v6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


def callers(pairs: list[tuple[str, str, str]], allow: list[str]) -> tuple[Caller, ...]:
    """`main`, which sees every tool, and each key with the tools it sees."""
    seen: dict[str, list[str]] = {}
    for _option, name, pattern in pairs:
        seen.setdefault(name, []).append(pattern)
    if "main" in seen:
        raise UserFault("usage", "--key: main is the key of `secrets set gateway`", reason="bad_key", option="--key",
                        name="main")  # fmt: skip
    named = (Caller(name, tuple(patterns), tuple(allow)) for name, patterns in seen.items())
    return (Caller("main", allow=tuple(allow)), *named)


async def _keys(run: Run, found: tuple[Caller, ...]) -> tuple[GatewayKey, ...]:
    """The callers that have a token; each named one must."""
    keys = []
    for caller in found:
        name = SECRET if caller.name == "main" else f"{SECRET}-{caller.name}"
        token = await run.host.secrets.get(name)
        if token:
            keys.append(GatewayKey(caller, hashlib.sha256(token.encode()).hexdigest()))
        elif caller.name != "main" or len(found) == 1:
            raise UserFault("usage", f"there is no bearer token; set one: desktop-host secrets set {name}",
                            reason="no_token", name=name)  # fmt: skip
    if len({key.sha256 for key in keys}) != len(keys):
        raise UserFault("usage", "two keys of the gateway have the same token", reason="same_token")
    return tuple(keys)


async def serve(run: Run) -> int:
    """Serve until stopped, or until standard input ends."""
    ns = run.ns
    if bool(ns.stdio) == bool(ns.http):
        raise UserFault("usage", "serve needs --stdio or --http HOST:PORT", reason="serve_how")
    if run.gateway is None:
        raise HostError("bug", "this build has no gateway")
    _mark_served(str(run.host.folder))
    found = callers(ns.keys or [], ns.allow)
    if ns.stdio:
        if len(found) > 1:
            raise UserFault("usage", "--key is for --http", reason="contradiction", options="--key, --stdio")
        await run.gateway(run.host, GatewaySpec(stdio=found[0]))
        return 0
    host, port = address(ns.http)
    if not (host == "localhost" or (_is_ip(host) and ipaddress.ip_address(host).is_loopback)):
        run.out.note(tr("gateway.open_to_all", host=host))
    keys = await _keys(run, found)

    def ready(url: str) -> None:
        run.out.note(tr("gateway.serving", url=url))

    await run.gateway(run.host, GatewaySpec(address=(host, port), keys=keys, ready=ready))
    return 0


def _mark_served(profile: str) -> None:
    """Tell servers that are started from here whose they are: one that serves this profile would start itself anew.

    Raises:
        UserFault: `usage`, this process was started by a gateway of this very profile.
    """
    above = [p for p in os.environ.get(SERVES, "").split(os.pathsep) if p]
    if profile in above:
        raise UserFault("usage", f"the profile {profile} has its own gateway among its servers", reason="gateway_loop",
                        profile=profile)  # fmt: skip
    os.environ[SERVES] = os.pathsep.join([*above, profile])


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


VERBS: dict[tuple[str, str | None], Verb] = {("serve", None): serve}
