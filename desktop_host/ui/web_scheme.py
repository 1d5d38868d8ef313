"""The web engine of the extra `[web]`: whether pages of servers can be shown here, and what must come before them."""

from __future__ import annotations

import importlib.util
import os
from functools import cache

SCHEME = "mcp-app"
"""The addresses of servers' pages."""


@cache
def available() -> bool:
    """Whether pages can be shown; looks only, and imports nothing.

    The web engine has no sandbox for root and refuses to run without one: there, pages stay text.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return False
    if importlib.util.find_spec("PySide6") is None:
        return False
    parts = ("QtWebEngineCore", "QtWebEngineWidgets", "QtWebChannel")
    return all(importlib.util.find_spec(f"PySide6.{part}") is not None for part in parts)


def share_contexts() -> None:
    """Before the application object is made: the engine may be imported later on."""
    if available():
        from PySide6.QtCore import QCoreApplication, Qt

        QCoreApplication.setAttribute(Qt.ApplicationAttribute.AA_ShareOpenGLContexts)


@cache
def register() -> None:
    """Before the first page is made: its addresses are an origin each, encrypted as far as a page can tell."""
    from PySide6.QtWebEngineCore import QWebEngineUrlScheme

    scheme = QWebEngineUrlScheme(SCHEME.encode())
    scheme.setSyntax(QWebEngineUrlScheme.Syntax.Host)
    scheme.setFlags(QWebEngineUrlScheme.Flag.SecureScheme | QWebEngineUrlScheme.Flag.CorsEnabled)
    QWebEngineUrlScheme.registerScheme(scheme)
