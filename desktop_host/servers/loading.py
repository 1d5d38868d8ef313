"""The MCP SDK off the start path: its users in this room are imported when the first server starts, in a thread."""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType

_loaded: dict[str, ModuleType] = {}
"""Modules whose import has finished; `sys.modules` would show them half made while a thread imports them."""


async def sdk(part: str = "negotiation") -> ModuleType:
    """A module of this room that imports the MCP SDK (1 s and more the first time): imported in a thread."""
    if part not in _loaded:
        _loaded[part] = await asyncio.to_thread(importlib.import_module, f"desktop_host.servers.{part}")
    return _loaded[part]
