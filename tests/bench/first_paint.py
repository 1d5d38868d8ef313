"""How long from exec to the first painted window, beside an empty PySide6 window in the same run.

    python tests/bench/first_paint.py [--rounds 7] [--limit 1.6]

Prints one JSON line and fails where the ratio of the best rounds is over the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

EMPTY = """
import sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMainWindow
class Window(QMainWindow):
    def paintEvent(self, event):
        super().paintEvent(event)
        QTimer.singleShot(0, QApplication.quit)
app = QApplication(sys.argv)
window = Window()
window.resize(1180, 780)
window.show()
app.exec()
"""

OURS = """
import os, sys, time
from pathlib import Path
from desktop_host.ui import face
from desktop_host.ui.widgets.window import MainWindow
plain = MainWindow.after_paint
def stamped(self, act):
    def done():
        os._exit(0)
    plain(self, done)
MainWindow.after_paint = stamped
face.run_window(lambda: None, lambda: None, home=Path(sys.argv[1]), lazy=True)
"""


def once(code: str, home: str) -> float:
    """Seconds of one start."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(ROOT)}
    if not environment.get("DISPLAY") and not environment.get("WAYLAND_DISPLAY"):
        environment["QT_QPA_PLATFORM"] = "offscreen"
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, home], check=True, env=environment, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit", type=float, default=1.6)
    ns = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        once(EMPTY, home), once(OURS, home)
        pairs = [(once(EMPTY, home), once(OURS, home)) for _ in range(ns.rounds)]
    empty, ours = min(e for e, _ in pairs), min(o for _, o in pairs)
    ratio = ours / empty
    figures = {
        "empty_ms": round(empty * 1000),
        "ours_ms": round(ours * 1000),
        "ratio": round(ratio, 2),
        "limit": ns.limit,
    }
    print(json.dumps(figures))
    return int(ratio > ns.limit)


if __name__ == "__main__":
    raise SystemExit(main())
