"""A page of a server in a sandbox (extra `[web]`). Imported only where the web engine is installed.

Two pages: ours, which only passes messages on, and within it the server's, in an `iframe` with scripts and nothing
else: an origin of its own, no storage, no forms, no windows, no navigation. The engine's process runs in its own
sandbox; requests are let through by a list (the page's policy), and are checked once more here below it.
"""

from __future__ import annotations

import re
import secrets
from html import escape

from PySide6.QtCore import QBuffer, QByteArray, QFile, QIODevice, QObject, QUrl, Signal, Slot
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWebChannel import QWebChannel
from PySide6.QtWebEngineCore import (
    QWebEnginePage,
    QWebEnginePermission,
    QWebEngineProfile,
    QWebEngineSettings,
    QWebEngineUrlRequestInfo,
    QWebEngineUrlRequestInterceptor,
    QWebEngineUrlRequestJob,
    QWebEngineUrlSchemeHandler,
)
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from desktop_host.core.apps import AppPage
from desktop_host.ui.theme import theme
from desktop_host.ui.viewmodels.app_hello import LOWEST
from desktop_host.ui.viewmodels.app_session import AppSession
from desktop_host.ui.web_scheme import SCHEME, register

_SHELL = """<!doctype html><meta charset="utf-8"><style>html,body,iframe{margin:0;border:0;width:100%%;height:100%%}
body{overflow:hidden;background:transparent}iframe{display:block}</style>
<iframe id="view" sandbox="allow-scripts" src="%(view)s" referrerpolicy="no-referrer" allow=""></iframe>
<script nonce="%(nonce)s">%(channel)s</script><script nonce="%(nonce)s">
new QWebChannel(qt.webChannelTransport, function (channel) {
  const host = channel.objects.host, view = document.getElementById("view");
  window.addEventListener("message", function (event) {
    if (event.source !== view.contentWindow || typeof event.data !== "object") return;
    host.receive(JSON.stringify(event.data));
  });
  host.send.connect(function (text) { view.contentWindow.postMessage(JSON.parse(text), "*"); });
});</script>"""
_OFF = (
    "LocalStorageEnabled", "LocalContentCanAccessRemoteUrls", "LocalContentCanAccessFileUrls", "PluginsEnabled",
    "JavascriptCanOpenWindows", "JavascriptCanAccessClipboard", "JavascriptCanPaste", "HyperlinkAuditingEnabled",
    "ScreenCaptureEnabled", "FullScreenSupportEnabled", "DnsPrefetchEnabled", "PdfViewerEnabled",
    "NavigateOnDropEnabled", "AllowGeolocationOnInsecureOrigins", "AllowWindowActivationFromJavaScript",
)  # fmt: skip


_PROFILES: set[QWebEngineProfile] = set()


class _Channel(QObject):
    """What our own page sees of the host: a way in and a way out, for text."""

    send = Signal(str)

    def __init__(self, session: AppSession) -> None:
        super().__init__(session)
        self._session = session
        session.send.connect(self.send)

    @Slot(str)
    def receive(self, text: str) -> None:
        """A message of the page."""
        self._session.receive(text)


class _Served(QWebEngineUrlSchemeHandler):
    """Gives the two pages of one view."""

    def __init__(self, pages: dict[str, bytes], parent: QObject) -> None:
        super().__init__(parent)
        self._pages = pages

    def requestStarted(self, job: QWebEngineUrlRequestJob) -> None:
        found = self._pages.get(job.requestUrl().host())
        if found is None or job.requestMethod() != QByteArray(b"GET"):
            job.fail(QWebEngineUrlRequestJob.Error.RequestDenied)
            return
        buffer = QBuffer(job)
        buffer.setData(QByteArray(found))
        buffer.open(QIODevice.OpenModeFlag.ReadOnly)
        job.reply(QByteArray(b"text/html"), buffer)


class _Fence(QWebEngineUrlRequestInterceptor):
    """Below the page's own policy: whatever is not on the list is not asked for."""

    def __init__(self, page: AppPage, parent: QObject) -> None:
        super().__init__(parent)
        self._origins = [QUrl(o.replace("*.", "any.")) for o in page.origins]
        self._wild = ["*." in o for o in page.origins]

    def interceptRequest(self, info: QWebEngineUrlRequestInfo) -> None:
        url = info.requestUrl()
        if url.scheme() not in (SCHEME, "data", "blob") and not self._listed(url):
            info.block(True)

    def _listed(self, url: QUrl) -> bool:
        for allowed, wild in zip(self._origins, self._wild, strict=True):
            default = {"https": 443, "wss": 443}.get(url.scheme(), 0)
            same_port = url.port(default) == allowed.port(443)
            host = allowed.host().removeprefix("any.") if wild else allowed.host()
            fits = url.host().endswith("." + host) if wild else url.host() == host
            if allowed.scheme() == url.scheme() and same_port and fits:
                return True
        return False


class _Page(QWebEnginePage):
    """Goes nowhere, opens nothing, asks for nothing."""

    def __init__(self, profile: QWebEngineProfile, parent: QObject, hosts: tuple[str, str]) -> None:
        super().__init__(profile, parent)
        self._hosts = hosts
        self.permissionRequested.connect(self._refuse)

    def acceptNavigationRequest(self, url: QUrl | str, _kind: QWebEnginePage.NavigationType, isMainFrame: bool) -> bool:
        wanted = QUrl(url)
        return wanted.scheme() == SCHEME and wanted.host() == self._hosts[0 if isMainFrame else 1]

    def createWindow(self, _kind: QWebEnginePage.WebWindowType) -> QWebEnginePage | None:  # type: ignore[override]  # None: no window.
        return None

    def chooseFiles(self, *_: object) -> list[str]:
        return []

    def javaScriptConsoleMessage(self, *_: object) -> None:
        """What a page says to itself is not the host's business."""

    def _refuse(self, permission: QWebEnginePermission) -> None:
        permission.deny()


class AppFrame(QWebEngineView):
    """One page of a server, alive as long as this widget."""

    def __init__(self, session: AppSession, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session = session
        session.setParent(self)
        register()
        mark, nonce = secrets.token_hex(8), secrets.token_hex(16)
        shell, view = f"shell-{mark}", f"view-{mark}"
        page = session.page
        outer = _SHELL % {"view": f"{SCHEME}://{view}/", "nonce": nonce, "channel": _channel_script()}
        guard = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; frame-src {SCHEME}:"
        self._profile = profile = QWebEngineProfile()  # Off the record: nothing of a page is kept.
        _PROFILES.add(profile)
        pages = {shell: guarded(outer, guard).encode(), view: guarded(page.html, page.policy).encode()}
        self._served = _Served(pages, self._profile)
        self._profile.installUrlSchemeHandler(SCHEME.encode(), self._served)
        self._fence = _Fence(page, self._profile)
        self._profile.setUrlRequestInterceptor(self._fence)
        self._profile.downloadRequested.connect(lambda request: request.cancel())
        self._page = _Page(self._profile, self, (shell, view))
        self._page.destroyed.connect(lambda: _release(profile))
        self._page.setBackgroundColor(QColor(0, 0, 0, 0))
        for name in _OFF:
            self._page.settings().setAttribute(getattr(QWebEngineSettings.WebAttribute, name), False)
        self._channel = QWebChannel(self)
        self._channel.registerObject("host", _Channel(session))
        self._page.setWebChannel(self._channel)
        self.setPage(self._page)
        self.setAccessibleName(f"{page.server}: {page.tool}")
        self.setMinimumHeight(LOWEST)
        self.setFixedHeight(240)
        self.setContextMenuPolicy(self.contextMenuPolicy().NoContextMenu)
        session.resized.connect(self.setFixedHeight)
        theme.changed.connect(session.looks_changed)
        self.load(QUrl(f"{SCHEME}://{shell}/"))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The page is told how wide it is."""
        super().resizeEvent(event)
        self.session.resize(self.width())


def _release(profile: QWebEngineProfile) -> None:
    """A profile must outlive its page."""
    _PROFILES.discard(profile)
    if isValid(profile):
        profile.deleteLater()


def guarded(html: str, policy: str) -> str:
    """A page that holds its policy itself, before anything of it runs: headers of a scheme's own are not heeded."""
    rule = '<meta charset="utf-8">' + f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
    start = re.match(r"(?is)\s*(<!doctype[^>]*>)?", html)
    at = start.end() if start else 0
    return html[:at] + rule + html[at:]


def _channel_script() -> str:
    file = QFile(":/qtwebchannel/qwebchannel.js")
    file.open(QIODevice.OpenModeFlag.ReadOnly)
    return bytes(file.readAll().data()).decode().replace("</script", "<\\/script")


__all__ = ["AppFrame"]
