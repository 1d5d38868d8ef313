"""Checks of the network: proxies, certificates, the addresses of models, the ports that must be free."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from desktop_host.core.diagnosis import Finding, Reach
from desktop_host.core.servers import ServerConfig
from desktop_host.core.settings import Network
from desktop_host.core.telemetry import TelemetryState
from desktop_host.diagnostics.findings import faulty, ill, well
from desktop_host.diagnostics.redaction import Redactor

CONNECT_S = 4.0
"""How long a proxy may take to accept a connection."""
_OUT_OF_TIME = re.compile(r"not yet valid|has expired|certificate expired", re.I)
_PORTS = {"http": 80, "https": 443, "socks4": 1080, "socks5": 1080, "socks5h": 1080}


async def proxy(network: Network, environ: Mapping[str, str]) -> Finding:
    """The proxies in use can be read, and accept connections."""
    names = [n for n in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") for n in (n, n.lower()) if environ.get(n)]
    used = {name: environ[name] for name in names}
    if network.proxy:
        used["network.proxy"] = network.proxy
    if not used:
        return well("proxy", "no_proxy")
    shown = ", ".join(f"{name}={Redactor()(url)}" for name, url in used.items())
    for name, url in used.items():
        act = "settings" if name == "network.proxy" else ""
        if not is_proxy(url):
            return ill("proxy", "proxy_unreadable", "proxy", place=name, act=act, name=name, url=Redactor()(url))
        problem = await _refusal(url)
        if problem:
            return ill(
                "proxy", "proxy_refuses", "proxy_refuses", place=name, act=act, name=name, url=Redactor()(url),
                detail=problem,
            )  # fmt: skip
    return well("proxy", "proxies", proxies=shown)


def is_proxy(url: str) -> bool:
    """Whether this can be used as a proxy's address."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        return parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


async def _refusal(url: str) -> str:
    """Why a proxy takes no connection; empty where it does."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or _PORTS[parts.scheme])
        writer.close()
        await writer.wait_closed()
    except TimeoutError:
        return f"> {CONNECT_S:g} s"
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)
    return ""


async def certificates(network: Network, environ: Mapping[str, str]) -> Finding:
    """The extra certificates can be read."""
    path = network.ca_file or environ.get("SSL_CERT_FILE", "")
    if not path:
        return well("ca_file", "ca_system")
    try:
        await asyncio.to_thread(ssl.create_default_context, cafile=path)
    except OSError as error:
        act = "settings" if network.ca_file else ""
        detail = error.strerror or str(error)
        return ill("ca_file", "ca_unreadable", "ca_file", place=path, act=act, path=path, detail=detail)
    return well("ca_file", "path", path=path)


def addresses(found: tuple[Reach, ...]) -> Finding:
    """The addresses of models that are set up answer, and take the key they are given."""
    if not found:
        return well("addresses", "no_address")
    bad = next((one for one in found if one.fault is not None), None)
    if bad is not None and bad.fault is not None:
        detail = str(bad.fault.params.get("detail", bad.fault.message))
        if bad.fault.code == "tls" and _OUT_OF_TIME.search(detail):
            return ill("addresses", "out_of_time", "out_of_time", place=bad.url, name=bad.name, detail=detail)
        return faulty("addresses", bad.fault, place=bad.url, act="models")
    return well("addresses", "addresses", names=", ".join(one.name for one in found))


async def ports(configs: Iterable[ServerConfig], redirect_port: int) -> Finding:
    """The ports that a browser comes back to after signing in are free, and this machine can be listened on."""
    wanted = {redirect_port: "oauth.redirect_port"} if redirect_port else {}
    for config in configs:
        port = getattr(getattr(config.launch, "auth", None), "redirect_port", 0)
        if port and config.enabled:
            wanted[port] = config.name
    for port, name in wanted.items():
        if not await asyncio.to_thread(_free, port):
            act = "settings" if name == "oauth.redirect_port" else f"server:{name}"
            return ill("port", "port_taken", "port", place=name, act=act, port=port, name=name)
    if not await asyncio.to_thread(_free, 0):
        return ill("port", "no_port", "no_port")
    return well("port", "ports", ports=", ".join(map(str, wanted))) if wanted else well("port", "any_port")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        if os.name != "nt":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


async def telemetry(state: TelemetryState) -> Finding:
    """The collector takes what is sent to it, where one is wanted."""
    told = await state.telemetry()
    if not told["on"]:
        return well("telemetry", "telemetry_off")
    if not told["installed"]:
        return ill("telemetry", "telemetry_missing", "telemetry_extra", place="telemetry.on", act="settings")
    shown = {name: told[name] for name in ("endpoint", "sent", "lost")}
    if told["error"]:
        return ill(
            "telemetry", "telemetry_lost", "telemetry", place=str(told["endpoint"]), act="settings",
            detail=told["error"], **shown,
        )  # fmt: skip
    return well("telemetry", "telemetry", **shown)
