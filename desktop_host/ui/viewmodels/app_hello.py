"""What a page of a server is told when it begins: who the host is, what it can do, and around what it stands.

MCP Apps 2026-01-26, "Host Context in McpUiInitializeResult" and "Host Capabilities".
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QTimeZone

import desktop_host
from desktop_host.core.apps import PROTOCOL, AppPage
from desktop_host.core.values import thaw
from desktop_host.i18n import current

LOWEST, HIGHEST = 48, 640
"""How high a page may make itself, in pixels."""


def hello(page: AppPage, call_id: str, looks: dict[str, Any], width: int) -> dict[str, Any]:
    """The result of `ui/initialize`.

    Args:
        page: the page.
        call_id: of the call in whose card it stands.
        looks: the part of the context that the theme decides.
        width: of its place, in pixels; 0 where it is not known yet.
    """
    text: dict[str, Any] = {"text": {}, "structuredContent": {}}
    context: dict[str, Any] = {
        **looks, **room(width), "displayMode": "inline", "availableDisplayModes": ["inline"],
        "locale": current().language.replace("_", "-"), "platform": "desktop",
        "timeZone": bytes(QTimeZone.systemTimeZoneId().data()).decode("ascii", "replace"),
        "userAgent": f"desktop-host/{desktop_host.__version__}",
        "deviceCapabilities": {"touch": False, "hover": True},
    }  # fmt: skip
    if page.spec is not None:
        tool = {
            "name": page.spec.name, "title": page.spec.title, "description": page.spec.description,
            "inputSchema": thaw(page.spec.input_schema),
        }  # fmt: skip
        context["toolInfo"] = {"id": call_id, "tool": {k: v for k, v in tool.items() if v}}
    return {
        "protocolVersion": PROTOCOL,
        "hostInfo": {"name": "desktop-host", "version": desktop_host.__version__},
        "hostCapabilities": {
            "openLinks": {}, "serverTools": {}, "serverResources": {}, "logging": {}, "message": {"text": {}},
            "updateModelContext": text, "sandbox": {"permissions": {}, "csp": thaw(page.csp)},
        },
        "hostContext": context,
    }  # fmt: skip


def room(width: int) -> dict[str, Any]:
    """The place of a page: as wide as its card, as high as it wants within a limit."""
    across: dict[str, int] = {"width": width} if width > 0 else {}
    return {"containerDimensions": {**across, "maxHeight": HIGHEST}}
