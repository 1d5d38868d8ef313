"""Draw every page of the window in every look, with a small host in memory: `python packaging/screenshots.py DIR`.

    python packaging/screenshots.py DIR [--only PAGE] [--look LOOK] [--quick]

Each page is drawn in light and dark, English and Chinese, narrow (720) and wide (1280), at 200 % type, and once very
wide (1920). `--quick`: light English wide, and dark Chinese narrow only. Each picture is named as it
is written. PAGE and LOOK are parts of a picture's name
(`chat-tools`, `_720_200`).
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from PySide6.QtCore import QCoreApplication, QEvent, QPoint
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtWidgets import QApplication

from desktop_host import i18n
from desktop_host.core.diagnosis import Finding
from desktop_host.core.servers import Http, ServerConfig, Stdio
from desktop_host.core.settings import Endpoint, put
from desktop_host.core.values import FrozenDict
from desktop_host.diagnostics.findings import ill, well
from desktop_host.engine.host import Host, HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.gateway_tab import GatewayTab
from desktop_host.ui.widgets.server_detail import TABS
from desktop_host.ui.widgets.skill_detail import TABS as SKILL_TABS
from desktop_host.ui.widgets.tool_card import ToolCard
from desktop_host.ui.widgets.user_message import UserMessage
from desktop_host.ui.widgets.window import MainWindow
from desktop_host.ui.widgets.workspace import Workspace
from desktop_host.ui.window_state import WindowState
from tests.fakes.chat_scenes import SCENES, stage_scenes
from tests.fakes.fixed_diagnostics import FixedDiagnostics
from tests.fakes.shell_host import ShellHost
from tests.fakes.skill_library import parcels, stock, travelled
from tests.fakes.usage_ledger import TODAY, Ledger, row

PARCELS = (Path("/home/ada/Downloads/release-notes.zip"), Path("/home/ada/Downloads/photo.zip"))
PASTE = """{"mcpServers": {"github": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"],
  "env": {"GITHUB_TOKEN": "ghp_example", "LOG_LEVEL": "info"}}}}"""


def wait(app: QApplication, until: Callable[[], bool], seconds: float = 10.0) -> None:
    """Process events until a condition holds."""
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise TimeoutError("the page did not settle")
        QApplication.processEvents()
        time.sleep(0.005)


def settle(seconds: float = 0.15) -> None:
    """Process events for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.005)


class StageHost(ShellHost):
    """The host of the pictures: with use, limits and findings of the doctor."""

    def __init__(self, *, onboarded: bool) -> None:
        super().__init__(onboarded=onboarded)
        self.ledger = Ledger()
        days = (TODAY - datetime.timedelta(days=n) for n in range(29, -1, -1))
        self.ledger.rows["day"] = tuple(
            row(day=day.isoformat(), input=40_000 + 9000 * (n % 7), cost_usd=0.2 + 0.3 * ((n * 5) % 4))
            for n, day in enumerate(days)
        )
        found = (
            well("home", "path", path="/home/ada/.local/share/desktop-host"),
            ill("model", "model_no_key", "model_no_key", place="anthropic/c", act="models", model="anthropic/c"),
            Finding(
                "server:broken", False, "doctor.say.server_crashes",
                FrozenDict({"state": "failed", "restarts": 5, "exit_code": 1, "line": "Cannot find module 'zod'"}),
                "doctor.remedy.server", "broken", "server:broken",
            ),
        )  # fmt: skip
        self.diagnostics = FixedDiagnostics({one.check: one for one in found})

    async def standings(self, session: str | None = None) -> tuple[FrozenDict, ...]:
        common = {"key": "k", "reserved_usd": 0.0}
        day = {"scope": "day", "spent_usd": 4.2, "limit_usd": 5.0, "calls": 50, "limit_calls": 50}
        month = {"scope": "month", "spent_usd": 9.0, "limit_usd": None, "calls": 90, "limit_calls": None}
        return FrozenDict(common | day), FrozenDict(common | month)


class Stage:
    """A window over a host in memory."""

    def __init__(self, app: QApplication, home: Path, *, fresh: bool, language: str, look: str, scale: int) -> None:
        i18n.install(language)
        theme.apply(look, scale)
        self.app = app
        self.host = StageHost(onboarded=not fresh)
        settings = self.host.settings
        for key, value in (("language", language), ("theme", look), ("font_scale", scale)):
            settings.now = put(settings.now, f"general.{key}", value)
        if not fresh:
            self._furnish()
        self.bridge = Bridge(self._open, HostSpec(home))
        self.window = MainWindow(WindowState(home, "shots"))
        self.workspace = Workspace(self.window, self.bridge, lambda: None)
        self.window.show()
        self.bridge.start()
        wait(app, lambda: not self.workspace.sessions.reading and self.workspace.settings.loaded)
        settle()

    def _furnish(self) -> None:
        host = self.host
        host.populate()
        stage_scenes(host, host.keep)
        stock(host.library)
        parcels(host.library, *PARCELS)
        travelled(host)
        host.models.weights.add("qwen2.5-coder-0.5b")
        endpoint = Endpoint("Ollama", "compat", "http://localhost:11434/v1", ("llama3.2",))
        host.settings.now = replace(host.settings.now, endpoints=(endpoint,))

    @asynccontextmanager
    async def _open(self, _spec: HostSpec) -> AsyncIterator[Host]:
        host = self.host
        if host.settings.now.general.onboarded:
            for config in (
                ServerConfig(
                    "files", Stdio("npx", ("-y", "@modelcontextprotocol/server-filesystem", "/home/ada/Documents"))
                ),
                ServerConfig("weather", Http("https://weather.example.com/mcp")),
                ServerConfig("broken", Stdio("broken", ("--root", "/home/ada"))),
                ServerConfig(
                    "notes",
                    Stdio("uvx", ("notes-server",), FrozenDict({"NOTES_KEY": "${keyring:notes}"})),
                    enabled=False,
                ),
            ):
                await host.servers.add(config)
                if config.enabled:
                    await host.servers.start(config.name)
            await host.secrets.put("anthropic", "sk-ant-not-a-key")
            host.sharing.visited()
        yield host

    def close(self) -> None:
        """Close the host and the window."""
        done: list[int] = []
        self.bridge.closed.connect(lambda: done.append(1))
        self.bridge.close()
        wait(self.app, lambda: bool(done))
        self.window.hide()
        self.window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        self.app.processEvents()


def pages() -> dict[str, tuple[bool, Callable[[Workspace], None]]]:
    """Page to (first day, how to get there)."""

    def tab(name: str) -> Callable[[Workspace], None]:
        def go(w: Workspace) -> None:
            w.show_servers("files")
            detail = w.servers_page.detail
            assert detail is not None
            content = detail.show_tab(name)
            if name == "tools":
                settle()
                content.rows[0].fold.click()  # type: ignore[attr-defined]

        return go

    def step(number: int) -> Callable[[Workspace], None]:
        def go(w: Workspace) -> None:
            w.show_first_run()
            page = w._pages["first_run"]
            for _ in range(number):
                page.next.click()  # type: ignore[attr-defined]

        return go

    found: dict[str, tuple[bool, Callable[[Workspace], None]]] = {
        "chat-empty": (False, lambda w: w.show_chat(None)),
        "chat": (False, lambda w: w.show_chat("c1")),
        "servers": (False, lambda w: w.show_servers()),
        "servers-empty": (True, lambda w: w.show_servers()),
        "server-broken": (False, lambda w: w.show_servers("broken")),
        "add-server": (False, lambda w: w.add_server(PASTE)),
        "settings": (False, lambda w: w.show_settings("general")),
        "models": (False, lambda w: w.show_settings("models")),
        "permissions": (False, lambda w: w.show_settings("permissions")),
        "gateway": (False, _gateway),
        "gateway-below": (False, lambda w: _gateway(w, below=True)),
        "palette": (False, lambda w: w.window.commands.run("view.palette")),
        "toasts": (False, _toasts),
    }
    found |= {f"chat-{name}": (False, partial(_scene, name)) for name in SCENES}
    found |= {
        "chat-no-model": (True, _no_model),
        "chat-slash": (False, partial(_offers, "/")),
        "chat-at": (False, partial(_offers, "@")),
    }
    found |= {f"skill-{name}": (False, partial(_skill, name)) for name in SKILL_TABS}
    found |= {
        "skills": (False, lambda w: w.skills.show()),
        "skills-empty": (True, lambda w: w.skills.show()),
        "skills-troubled": (False, _troubled),
        "skills-test": (False, _try_sentence),
        "skills-install": (False, lambda w: w.skills.install(PARCELS)),
        "skills-places": (False, _places),
        "skills-chat": (False, _skilled_chat),
    }
    for settings_tab in ("costs", "diagnostics"):
        found[settings_tab] = (False, partial(_settings, settings_tab))
    found |= {
        "usage": (False, lambda w: w.window.commands.run("go.usage")),
        "profiles": (False, lambda w: w.window.commands.run("go.profiles")),
        "inspector": (False, partial(_inspector, "tools")),
        "search": (False, partial(_search, "notes")),
        "search-none": (False, partial(_search, "zzzz")),
        "rename": (False, _rename),
        "queue": (False, _queue),
        "model-menu": (False, _model_menu),
        "tools-menu": (False, _tools_menu),
    }
    found |= {f"server-{name}": (False, tab(name)) for name in TABS}
    found |= {f"first-run-{n + 1}": (True, step(n)) for n in range(3)}
    return found


def _gateway(w: Workspace, below: bool = False) -> None:
    """Switched on, with a fresh key, after visits."""
    w.show_settings("gateway")
    tab = w.settings_page.findChild(GatewayTab)
    app = QApplication.instance()
    assert tab is not None
    assert isinstance(app, QApplication)
    wait(app, lambda: w.gateway.model.known)
    tab.switch.click()
    wait(app, lambda: w.gateway.model.state.on)
    if below:
        settle()
        tab.verticalScrollBar().setValue(tab.verticalScrollBar().maximum())


def _settings(tab: str, w: Workspace) -> None:
    w.show_settings(tab)
    settle(0.6)


def _inspector(scene: str, w: Workspace) -> None:
    w.show_chat(scene)
    w.window.commands.run("view.inspector")


def _search(text: str, w: Workspace) -> None:
    w.show_chat(None)
    w.window.sidebar.search.setText(text)
    settle(0.5)


def _rename(w: Workspace) -> None:
    w.show_chat("form")
    settle(0.3)
    w.window.activateWindow()
    w.window.commands.run("chat.rename")


def _queue(w: Workspace) -> None:
    w.show_chat("streaming")
    settle(0.3)
    for text in (
        "Then a day in Kyoto, 京都一日",
        "And what does it cost in all, trains and entrance fees and all the rest?",
    ):
        w.chat.composer.put(text)
        w.chat.composer.send_button.click()
        settle(0.3)


def _model_menu(w: Workspace) -> None:
    w.show_chat(None)
    w.chat.composer.model_button.open_menu()


def _tools_menu(w: Workspace) -> None:
    w.show_chat(None)
    w.chat.composer.servers_button.open_menu()


def _scene(name: str, w: Workspace) -> None:
    w.show_chat(name)
    settle(0.4)
    for one in w.chat.view.rows.values():
        if isinstance(one, ToolCard) and name == "tools" and not one.fold_button.isChecked():
            one.fold_button.click()


def _no_model(w: Workspace) -> None:
    w.show_chat(None)
    w.chat.chat.choices.pick_model("local/qwen2.5-coder-0.5b")


def _offers(sign: str, w: Workspace) -> None:
    w.show_chat(None)
    w.chat.composer.put("")
    w.window.activateWindow()
    w.chat.focus_composer()
    w.chat.composer.put(sign)


def _skill(tab: str, w: Workspace) -> None:
    w.skills.show("travel-planner", tab)
    detail = w.skills.page.detail
    assert detail is not None
    content = detail.show_tab(tab)
    if tab == "triggers":
        content.tester.put("帮我规划去成都的旅行")  # type: ignore[attr-defined]


def _troubled(w: Workspace) -> None:
    w.skills.show()
    w.skills.page.list.filters["troubled"].click()


def _try_sentence(w: Workspace) -> None:
    w.skills.show()
    page = w.skills.page.list
    page.filters["all"].click()
    page.test_button.click()
    assert page.tester is not None
    page.tester.put("Write a report on my trip")


def _skilled_chat(w: Workspace) -> None:
    w.show_chat("c2")
    settle(0.3)
    row = next(r for r in w.chat.view.rows.values() if isinstance(r, UserMessage))
    if not row.skills.chips["travel-planner"].isChecked():
        row.skills.chips["travel-planner"].click()
    w.chat.composer.put("Make it a slower trip, and write a report on the costs")


def _places(w: Workspace) -> None:
    w.skills.page.show_places()
    w.go("skills", w.skills.page)


def _toasts(w: Workspace) -> None:
    from desktop_host.core.errors import KnownFault

    w.show_chat(None)
    w.window.toasts.say(i18n.tr("sessions.toast.waiting"), "info", (i18n.tr("sessions.toast.show"), lambda: None))
    w.window.toasts.fail(KnownFault("network", "connect failed", host="api.example.com"))


def picture(window: MainWindow) -> QPixmap:
    """The window with the menu that is open over it."""
    shot = window.grab()
    menu = QApplication.activePopupWidget()
    if menu is not None:
        painter = QPainter(shot)
        painter.drawPixmap(menu.mapToGlobal(QPoint()) - window.mapToGlobal(QPoint()), menu.grab())
        painter.end()
    return shot


def tidy(stage: Stage) -> None:
    """Close what a page left open over the others."""
    menu = QApplication.activePopupWidget()
    if menu is not None:
        menu.close()
    stage.window.toasts.clear()
    stage.window.sidebar.search.clear()
    if stage.window.palette_.isVisible():
        stage.window.palette_.close_palette()
    if stage.workspace.inspector.wanted:
        stage.window.commands.run("view.inspector")


def looks(quick: bool) -> Iterator[tuple[str, str, int, int]]:
    """`(look, language, width, scale)`."""
    if quick:
        yield ("light", "en", 1280, 100)
        yield ("dark", "zh_CN", 720, 100)
        return
    for look in ("light", "dark"):
        for language in ("en", "zh_CN"):
            for width in (720, 1280):
                yield (look, language, width, 100)
        yield (look, "en", 1280, 200)
        yield (look, "zh_CN", 720, 200)
    yield ("light", "en", 1920, 100)
    yield ("high_contrast", "en", 1280, 100)


def main() -> int:
    """Draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--look", default="")
    parser.add_argument("--quick", action="store_true")
    ns = parser.parse_args()
    ns.folder.mkdir(parents=True, exist_ok=True)
    app = QApplication.instance() or QApplication(["screenshots"])
    assert isinstance(app, QApplication)
    home = ns.folder / ".home"
    begun, count = time.monotonic(), 0
    for look, language, width, scale in looks(ns.quick):
        if ns.look not in f"_{look}_{language}_{width}_{scale}":
            continue
        for fresh in (False, True):
            wanted = {n: go for n, (first, go) in pages().items() if first is fresh and ns.only in n}
            if not wanted:
                continue
            stage = Stage(app, home, fresh=fresh, language=language, look=look, scale=scale)
            for name, go in wanted.items():
                stage.window.resize(width, 800)
                go(stage.workspace)
                settle(0.6)
                path = ns.folder / f"{name}_{look}_{language}_{width}_{scale}.png"
                picture(stage.window).save(str(path))
                count += 1
                print(f"{time.monotonic() - begun:6.1f} s  {count:4}  {path.name}", flush=True)
                tidy(stage)
            stage.close()
    print(f"pictures in {ns.folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
