"""MCP Apps (SEP-1865): which tools have a page, who may call them, what a page may load."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict

EXTENSION = "io.modelcontextprotocol/ui"
MIME = "text/html;profile=mcp-app"
PROTOCOL = "2026-01-26"
"""The revision of the protocol between page and host."""
LARGEST = 8_000_000
"""Characters of a page."""
CALLS = "app-"
"""How the ids of calls begin that a page makes, and not the model."""
_SOURCE = re.compile(r"(?:https|wss)://(?:\*\.)?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::\d{1,5})?")
"""What a page may ask to load from: encrypted origins by name, with at most one wildcard in front."""
_LISTS = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")


@dataclass(frozen=True, slots=True)
class AppPage:
    """A page of a server, ready to be shown in a sandbox."""

    server: str
    tool: str
    uri: str
    html: str
    policy: str
    """The value of its `Content-Security-Policy` header."""
    origins: tuple[str, ...] = ()
    """Every address outside that the policy lets through."""
    border: bool | None = None
    """Whether it wants an edge and a background of the host's; None: the host decides."""
    csp: FrozenDict = EMPTY
    """What of `ui.csp` was granted, by its own keys."""
    spec: ToolSpec | None = None
    """The tool."""


def page_of(spec: ToolSpec) -> str | None:
    """The `ui://` address of a tool's page."""
    ui = _ui(spec)
    uri = ui.get("resourceUri") or (spec.meta or EMPTY).get("ui/resourceUri")
    return uri if isinstance(uri, str) and uri.startswith("ui://") and len(uri) < 2000 else None


def for_model(spec: ToolSpec) -> bool:
    """Whether the model may see a tool."""
    return _visible(spec, "model")


def for_app(spec: ToolSpec) -> bool:
    """Whether a page of the same server may call a tool."""
    return _visible(spec, "app")


def granted(meta: Any) -> FrozenDict:
    """What a page may load from, by the keys of `ui.csp` in its resource's `_meta`.

    What is asked for in another form than an encrypted origin is left out.
    """
    ui = meta.get("ui") if isinstance(meta, FrozenDict) else None
    asked = ui.get("csp") if isinstance(ui, FrozenDict) else None
    lists: dict[str, tuple[str, ...]] = {}
    for key in _LISTS:
        found = asked.get(key) if isinstance(asked, FrozenDict) else None
        texts = [x for x in found if isinstance(x, str)] if isinstance(found, tuple) else []
        if good := tuple(x for x in texts[:50] if _SOURCE.fullmatch(x)):
            lists[key] = good
    return FrozenDict(lists)


def bordered(meta: Any) -> bool | None:
    """What a page says of an edge around it; None where it leaves that to the host."""
    ui = meta.get("ui") if isinstance(meta, FrozenDict) else None
    wish = ui.get("prefersBorder") if isinstance(ui, FrozenDict) else None
    return wish if isinstance(wish, bool) else None


def policy(meta: Any) -> tuple[str, tuple[str, ...]]:
    """The content security policy of a page, from its resource's `_meta`, and the origins that it lets through.

    What is not asked for is shut.
    """
    lists = granted(meta)
    connected, loaded, framed, based = (lists.get(key, ()) for key in _LISTS)

    def line(name: str, own: str, more: Iterable[str]) -> str:
        return " ".join([name, *(x for x in (own,) if x), *more]) if own or more else f"{name} 'none'"

    rules = [
        "default-src 'none'", "object-src 'none'", "form-action 'none'", "worker-src blob:",
        line("script-src", "'self' 'unsafe-inline' blob:", loaded), line("style-src", "'self' 'unsafe-inline'", loaded),
        line("img-src", "'self' data: blob:", loaded), line("font-src", "'self' data:", loaded),
        line("media-src", "'self' data: blob:", loaded), line("connect-src", "", connected),
        line("frame-src", "", framed), line("base-uri", "", based),
    ]  # fmt: skip
    return "; ".join(rules), tuple(dict.fromkeys((*loaded, *connected, *framed)))


def _ui(spec: ToolSpec) -> FrozenDict:
    ui = (spec.meta or EMPTY).get("ui")
    return ui if isinstance(ui, FrozenDict) else EMPTY


def _visible(spec: ToolSpec, who: str) -> bool:
    seen = _ui(spec).get("visibility")
    return who in seen if isinstance(seen, tuple) else True
