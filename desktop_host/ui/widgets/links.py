"""What a click on a link offers."""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QAction, QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from desktop_host.i18n import tr


def link_menu(url: QUrl, parent: QWidget) -> QMenu:
    """Show a link whole before anything opens; only web and mail addresses can be opened."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    text = url.toString()
    shown = QAction(text if len(text) <= 120 else f"{text[:100]}…{text[-19:]}", menu)
    shown.setEnabled(False)
    menu.addAction(shown)
    menu.addSeparator()
    if url.scheme() in ("http", "https", "mailto"):
        menu.addAction(tr("chat.link.open"), lambda: QDesktopServices.openUrl(url))
    menu.addAction(tr("chat.link.copy"), lambda: QGuiApplication.clipboard().setText(text))
    return menu
