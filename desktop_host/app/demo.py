"""The main job in one command: the real window, a real model, a real tool, a picture and a transcript.

Exits 0 only if the tool was really called and the model answered afterwards.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from argparse import Namespace
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from desktop_host import i18n
from desktop_host.core.errors import HostError, KnownFault
from desktop_host.core.events import Stamped, ToolRequested, ToolSettled, TurnEnded
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.models import ModelProgress
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.places import shipped
from desktop_host.core.sessions import SessionOptions, TurnStatus
from desktop_host.engine.host import HeadlessPolicy, HostSpec, Opener, UserInput
from desktop_host.i18n import tr

LIMIT_S = 600.0
"""Longest that the whole demo may take, the fetch of weights aside."""


class Demo:
    """One run."""

    def __init__(self, ns: Namespace) -> None:
        self._ref = ns.model or "local"
        self._picture = Path(ns.screenshot).expanduser() if ns.screenshot else None
        self._json = bool(ns.json)
        self._started = time.monotonic()
        self._events: list[Stamped] = []
        self._marks: dict[str, float] = {}
        self._news = asyncio.Event()

    def mark(self, key: str, **more: Any) -> None:
        """Note how long it took to come here."""
        self._marks[key] = time.monotonic() - self._started
        self.say(f"{self._marks[key]:7.2f} s  {tr(f'demo.{key}', **more)}")

    def say(self, line: str) -> None:
        """A line for the person."""
        print(line, file=sys.stderr if self._json else sys.stdout, flush=True)

    async def run(self, window: Any, workspace: Any, bridge: Any) -> int:
        """Drive the window through the main job.

        Raises:
            HostError: the host could not be opened, the weights not be fetched, or the turn failed.
        """
        bridge.batch.connect(self._take)
        await self._ready(bridge)
        self.mark("ready")
        await self._weights(bridge)
        options = SessionOptions(
            model=self._ref,
            servers=("knowledge",),
            rules=(Rule(Effect.ALLOW, "knowledge.*", origin="command-line"),),
        )
        session: str = await bridge.ask(lambda host: host.new_session(options))
        workspace.show_chat(session)
        question = tr("demo.question")
        self.say(f"\n> {question}\n")
        await bridge.ask(lambda host: host.submit(session, UserInput(question)))
        async with asyncio.timeout(LIMIT_S):
            while not any(isinstance(s.event, TurnEnded) for s in self._events):
                self._news.clear()
                await self._news.wait()
        await asyncio.sleep(0.3)  # let the last batch be painted before the picture is taken
        if self._picture is not None:
            saved = await asyncio.to_thread(_save, window.grab().toImage(), self._picture)
            if not saved:
                raise KnownFault("disk_full", f"the picture could not be saved as {self._picture}")
            self.say(tr("demo.picture", path=str(self._picture)))
        return self._verdict()

    async def _ready(self, bridge: Any) -> None:
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        bridge.ready.connect(lambda _host: _settle(opened))
        bridge.failed.connect(lambda error: _settle(opened, error))
        bridge.start()
        await opened

    async def _weights(self, bridge: Any) -> None:
        if not self._ref.startswith("local"):
            return
        entries = await bridge.ask(lambda host: host.models.entries())
        wanted = "local" if self._ref == "local" else self._ref
        entry = next((e for e in entries if e.ref == wanted or e.ref == f"local/{wanted}"), None)
        if entry is None or entry.reason != "no_weights":
            return
        shown = -1

        def report(p: ModelProgress) -> None:
            nonlocal shown
            percent = int(100 * p.done_bytes / p.total_bytes) if p.total_bytes else 0
            if percent // 10 != shown:
                shown = percent // 10
                print(tr("demo.fetching", percent=percent), file=sys.stderr, flush=True)

        await bridge.ask(lambda host: host.models.fetch(self._ref.partition("/")[2] or "local", report))
        self.mark("fetched")

    def _take(self, batch: tuple[Stamped, ...]) -> None:
        for stamped in batch:
            self._events.append(stamped)
            match stamped.event:
                case ToolRequested() as e:
                    arguments = json.dumps(e.arguments, ensure_ascii=False)
                    self.mark("called", tool=f"{e.server}.{e.tool}", arguments=arguments)
                case ToolSettled() as e:
                    text = " ".join(b.text for b in e.content if isinstance(b, Text))
                    self.mark("settled", outcome=e.outcome.value)
                    self.say(
                        "           " + (text[:300] + "…" if len(text) > 300 else text).replace("\n", "\n           ")
                    )
                case TurnEnded(text=text):
                    self.mark("answered")
                    self.say(f"\n{text}\n")
                case _:
                    pass
        self._news.set()

    def _verdict(self) -> int:
        end = next(s.event for s in self._events if isinstance(s.event, TurnEnded))
        settled = [s.event for s in self._events if isinstance(s.event, ToolSettled)]
        called = any(e.outcome is Outcome.OK for e in settled)
        ok = called and end.status is TurnStatus.DONE and bool(end.text.strip())
        if self._json:
            timings = {k: round(v, 3) for k, v in self._marks.items()}
            line = {"type": "demo", "ok": ok, "model": self._ref, "tool_called": called, "text": end.text}
            print(json.dumps(line | {"error": end.error, "timings_s": timings}, ensure_ascii=False), flush=True)
        else:
            self.say(tr("demo.ok") if ok else tr("demo.not_ok"))
        if end.error is not None:
            raise HostError(str(end.error["code"]), str(end.error["message"]), **dict(end.error["params"]))
        return 0 if ok else 1


def _settle(future: asyncio.Future[None], error: HostError | None = None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def _save(image: Any, path: Path) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    return bool(image.save(str(path)))


def demo(ns: Namespace, opener: Opener) -> int:
    """Run the demo; returns the exit code.

    Raises:
        HostError: what kept the main job from being done.
    """
    from desktop_host.ui.face import has_display

    if not has_display():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    with tempfile.TemporaryDirectory(prefix="desktop-host-demo-", ignore_cleanup_errors=True) as folder:
        home = Path(ns.home).expanduser() if ns.home else Path(folder) / "home"
        config = Path(folder) / "servers.json"
        config.write_text(json.dumps(_servers()), "utf-8")
        spec = HostSpec(home, ns.profile, HeadlessPolicy(), (config,), with_profile_servers=False)
        return _in_window(Demo(ns), spec, opener, ns.lang)


def _servers() -> dict[str, Any]:
    """The bundled knowledge server on its sample folder."""
    server = shipped("resources", "servers", "knowledge")
    args = [str(server), "serve", "--folder", str(server / "sample"), "--tools", "read"]
    return {"mcpServers": {"knowledge": {"command": sys.executable, "args": args}}}


def _in_window(run: Demo, spec: HostSpec, opener: Opener, lang: str | None) -> int:
    import qasync
    from PySide6.QtGui import QGuiApplication
    from PySide6.QtWidgets import QApplication

    from desktop_host.ui.bridge import Bridge
    from desktop_host.ui.theme import theme
    from desktop_host.ui.widgets.window import MainWindow
    from desktop_host.ui.widgets.workspace import Workspace
    from desktop_host.ui.window_state import WindowState

    app = QApplication.instance() or QApplication([sys.argv[0]])
    i18n.tell(lang)
    i18n.install(lang or "system")
    theme.apply("light", 100)
    window = MainWindow(WindowState(spec.home, spec.profile), spec.profile)
    window.show()
    run.mark("drawn" if QGuiApplication.platformName() == "offscreen" else "shown")
    bridge = Bridge(opener, spec)
    workspace = Workspace(window, bridge, bridge.start)
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)

    async def all_of_it() -> int:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(_closed, bridge)
            return await run.run(window, workspace, bridge)

    try:
        with loop:
            code: int = loop.run_until_complete(all_of_it())
            return code
    finally:
        asyncio.set_event_loop(None)
        window.hide()
        window.deleteLater()
        app.sendPostedEvents(None, 0)


async def _closed(bridge: Any) -> None:
    """Close the host and wait until its thread has ended."""
    if not bridge.running:
        return
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    bridge.closed.connect(lambda: _settle(done))
    bridge.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(15):
            await done
