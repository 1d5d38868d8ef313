"""Chat pages on a host in memory, for the tests of the chat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pytestqt.qtbot import QtBot

from desktop_host.engine.host import Host, HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.chat import ChatPage
from tests.fakes.fake_host import FakeHost, opener

Make = Callable[[FakeHost], ChatPage]


@contextmanager
def chat_pages(qtbot: QtBot) -> Iterator[Make]:
    """Gives what opens a page on a host; branches open in it. Closes all hosts afterwards."""
    bridges: list[Bridge] = []

    def build(host: FakeHost) -> ChatPage:
        theme.apply("light", 100)
        bridge = Bridge(opener(host), HostSpec())
        bridges.append(bridge)
        page = ChatPage(bridge)
        page.wanted.connect(page.open_session)
        qtbot.addWidget(page)
        page.resize(900, 700)
        page.show()
        page.activateWindow()
        qtbot.waitUntil(page.isActiveWindow, timeout=30_000)
        with qtbot.waitSignal(bridge.ready, timeout=30_000):
            bridge.start()
        qtbot.waitUntil(lambda: page.chat.choices.models_known, timeout=30_000)
        page.open_session(None)
        page.chat.choices.pick_model("script:demo")
        page.focus_composer()
        return page

    yield build
    for bridge in bridges:
        with qtbot.waitSignal(bridge.closed, timeout=30_000):
            bridge.close()


def on_host(page: ChatPage, act: Callable[[], object]) -> None:
    """Do something on the host's loop."""

    async def run(_h: Host) -> None:
        act()

    page.chat.bridge.call(run).result(5)
