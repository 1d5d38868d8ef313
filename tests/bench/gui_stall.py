"""How long the window's thread stands still while four servers answer 1 MB each and a model streams 200 tokens/s.

    python tests/bench/gui_stall.py      prints one JSON line: gaps of a 5 ms heartbeat, empty window and ours.

Both are measured in one process, one after the other, the SDKs imported before.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEventLoop, Qt, QTimer
from PySide6.QtWidgets import QApplication, QMainWindow, QTextBrowser

from desktop_host import i18n
from desktop_host.app.run import opener
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.sessions import SessionOptions
from desktop_host.engine.host import HeadlessPolicy, HostSpec, UserInput
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.window import MainWindow
from desktop_host.ui.widgets.workspace import Workspace
from desktop_host.ui.window_state import WindowState

RAW = Path(__file__).resolve().parents[1] / "fakes" / "servers" / "raw.py"
BEAT_MS = 5
SECONDS = 4.0
RATE = 200


class Heartbeat:
    """A timer that notes how late it is."""

    def __init__(self) -> None:
        self.gaps: list[float] = []
        self._last = time.perf_counter()
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start(BEAT_MS)

    def _beat(self) -> None:
        now = time.perf_counter()
        self.gaps.append((now - self._last) * 1000)
        self._last = now

    def stop(self) -> dict[str, float]:
        """The figures, in milliseconds."""
        self._timer.stop()
        gaps = sorted(self.gaps)
        return {
            "beats": len(gaps),
            "median": round(gaps[len(gaps) // 2], 2),
            "p99": round(gaps[int(len(gaps) * 0.99)], 2),
            "max": round(gaps[-1], 2),
        }


def spin(ms: float) -> None:
    """Run Qt's loop for a while."""
    loop = QEventLoop()
    QTimer.singleShot(int(ms), loop.quit)
    loop.exec()


def finished(bridge: Bridge, make: Any) -> Any:
    """Run a coroutine of the host and Qt's loop until it is done."""
    loop, out = QEventLoop(), []
    future = bridge.call(make)
    timer = QTimer()
    timer.timeout.connect(lambda: future.done() and loop.quit())
    timer.start(2)
    loop.exec()
    out.append(future.result())
    return out[0]


def main() -> None:
    """Measure and print."""
    app = QApplication(sys.argv[:1])
    i18n.install("en")
    theme.apply("light", 100)
    folder = Path(tempfile.mkdtemp(prefix="gui-stall-"))
    words: list[dict[str, Any]] = []
    for i in range(int(RATE * SECONDS)):
        words += [{"text": f"word{i} " if i % 12 else f"\n\n**part** {i} "}, {"delay_ms": 1000 // RATE}]
    calls = [{"call": {"tool": f"r{i}.big", "arguments": {"n": 1_000_000}}} for i in range(4)]
    warm = [[{"call": {"tool": "r0.echo", "arguments": {"m": "x"}}}], [{"text": "```python\nx = 1\n```\n"}]]
    (folder / "stream.json").write_text(json.dumps([*warm, words]))
    (folder / "big.json").write_text(json.dumps([*warm, *([calls] * 4), [{"text": "done"}]]))
    servers = {f"r{i}": {"command": sys.executable, "args": [str(RAW)]} for i in range(4)}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    empty = QMainWindow()
    empty.setCentralWidget(QTextBrowser())
    empty.show()
    spin(300)
    beat = Heartbeat()
    spin(SECONDS * 1000)
    bare = beat.stop()
    empty.close()

    window = MainWindow(WindowState(folder / "home", "default"))
    window.show()
    bridge = Bridge(opener, HostSpec(folder / "home", "default", HeadlessPolicy(), (folder / "mcp.json",), False))
    workspace = Workspace(window, bridge, bridge.start)
    ready = QEventLoop()
    bridge.ready.connect(ready.quit)
    bridge.start()
    ready.exec()
    rules = (Rule(Effect.ALLOW, "*"),)

    async def session(host: Any, name: str) -> str:
        made = await host.new_session(SessionOptions(model=f"script:{folder / name}", rules=rules))
        await (await host.submit(made, UserInput("warm up"))).done
        return str(made)

    streaming = finished(bridge, lambda host: session(host, "stream.json"))
    calling = finished(bridge, lambda host: session(host, "big.json"))
    workspace.show_chat(streaming)
    spin(1500)

    async def both(host: Any) -> None:
        first = await host.submit(streaming, UserInput("stream"))
        second = await host.submit(calling, UserInput("call"))
        await first.done
        await second.done

    beat = Heartbeat()
    finished(bridge, both)
    ours = beat.stop()
    closed = QEventLoop()
    bridge.closed.connect(closed.quit)
    bridge.close()
    closed.exec()
    window.deleteLater()
    app.processEvents()
    print(json.dumps({"empty": bare, "ours": ours}))


if __name__ == "__main__":
    main()
