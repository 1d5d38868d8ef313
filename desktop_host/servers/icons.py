"""The pictures that servers give themselves, their tools, resources and prompts: chosen, loaded in limits, kept.

They come from outside (2025-11-25 and later, `Icon`): only `data:` addresses, and https ones of the server's own
host, are looked at. Nothing of the person's goes along: no header, no token, no cookie. What the bytes hold is the
window's business, which draws them without trusting them.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import httpx2

from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.core.values import FrozenDict
from desktop_host.servers.http import is_loopback, plain_transport
from desktop_host.servers.keeper import Keeper
from desktop_host.servers.translate import icons

LARGEST = 262_144
"""Bytes of a picture."""
LOAD_S = 5.0
KEPT = 200
"""Pictures in memory, for all servers of a profile."""
WANTED = 48
"""Pixels a side that suit the window best."""
_DATA = re.compile(r"(?is)data:image/[\w.+-]+((?:;[\w.=+-]+)*),(.*)")


class Icons:
    """Loads pictures and keeps the newest."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], asyncio.Task[bytes | None]] = OrderedDict()

    async def of(
        self, config: ServerConfig, keepers: Iterable[Keeper], kind: str, item: str, dark: bool
    ) -> bytes | None:
        """The bytes of the picture, None where there is none to be had.

        Args:
            config: the server.
            keepers: its connections, in whatever state.
            kind: `server`, `tool`, `resource` or `prompt`; all but the first fall back to the server's picture.
            item: name of the tool or prompt, or the resource's address.
            dark: whether it will stand on a dark ground.
        """
        for src in _candidates(tuple(keepers), kind, item, dark):
            key = (config.name, src)
            task = self._kept.get(key)
            if task is None:
                task = self._kept[key] = asyncio.create_task(_loaded(config, src))
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)[1].cancel()
            self._kept.move_to_end(key)
            if (data := await asyncio.shield(task)) is not None:
                return data
        return None

    def forget(self, name: str) -> None:
        """The server was removed, or started anew."""
        for key in [k for k in self._kept if k[0] == name]:
            self._kept.pop(key).cancel()

    async def close(self) -> None:
        """End what is still being loaded."""
        tasks = set(self._kept.values())
        for task in tasks:
            task.cancel()
        self._kept.clear()
        if tasks:
            await asyncio.wait(tasks)


def _candidates(keepers: tuple[Keeper, ...], kind: str, item: str, dark: bool) -> list[str]:
    """Addresses, best first."""
    own: tuple[FrozenDict, ...] = ()
    for keeper in keepers:
        match kind:
            case "tool":
                own = next((t.icons for t in keeper.tools if t.name == item), ())
            case "resource":
                own = next((r.icons for r in keeper.resources if r.uri == item), ())
            case "prompt":
                own = next((p.icons for p in keeper.prompts if p.name == item), ())
        if own:
            break
    of_server = next((i for k in keepers if (i := icons(k.status().server))), ())
    return [str(i["src"]) for group in (own, of_server) for i in sorted(group, key=lambda i: _distance(i, dark))][:4]


def _distance(icon: FrozenDict, dark: bool) -> tuple[int, float]:
    """How far an icon is from what is wanted: the theme first, then the size."""
    theme = icon.get("theme")
    wrong = 0 if theme == ("dark" if dark else "light") else 1 if theme is None else 2
    sizes: Any = icon.get("sizes")
    text = " ".join(str(s) for s in sizes) if isinstance(sizes, tuple) else str(sizes or "")
    found = [int(n) for n in re.findall(r"\b(\d{1,4})x\d", text)]
    if "any" in text or not found:
        return wrong, 0.5
    return wrong, min(abs(n - WANTED) + (1000 if n < 16 else 0) for n in found)


async def _loaded(config: ServerConfig, src: str) -> bytes | None:
    if found := _DATA.match(src):
        return _decoded(found)
    if not _is_own(config, src):
        return None
    try:
        transport = await asyncio.to_thread(plain_transport, src)
        async with (
            asyncio.timeout(LOAD_S),
            httpx2.AsyncClient(transport=transport, trust_env=False) as client,
            client.stream("GET", src, headers={"Accept": "image/*"}) as answer,
        ):
            data = b""
            async for chunk in answer.aiter_bytes():
                data += chunk
                if len(data) > LARGEST:
                    return None
            return data if answer.status_code == 200 else None
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError):
        return None  # A picture is never worth a word.


def _decoded(found: re.Match[str]) -> bytes | None:
    body = found[2]
    if len(body) > LARGEST * 2:
        return None
    try:
        data = base64.b64decode(body, validate=False) if ";base64" in found[1].lower() else unquote_to_bytes(body)
    except (binascii.Error, ValueError):
        return None
    return data if len(data) <= LARGEST else None


def _is_own(config: ServerConfig, src: str) -> bool:
    """Whether an address is https at the server's own host (within this machine http will do)."""
    if isinstance(config.launch, Stdio):
        return False
    try:
        at, home = urlsplit(src), urlsplit(config.launch.url)
        same = (at.hostname or "") == (home.hostname or "?") and at.port == home.port and not at.username
    except ValueError:
        return False
    return same and (at.scheme == "https" or (at.scheme == "http" and is_loopback(at.hostname or "")))


__all__ = ["Icons"]
