"""The window's tests run without a screen, in a known look and language."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtWidgets import QApplication

from desktop_host import i18n

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from tests.ui.window_kit import Window


@pytest.fixture(scope="session")
def qapp_args() -> list[str]:
    """Fusion looks the same everywhere."""
    return ["desktop-host-tests", "-style", "fusion"]


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """Tests read English unless they say otherwise."""
    i18n.install("en")
    yield
    i18n.install("en")


@pytest.fixture(autouse=True)
def _no_window_left(qapp: QApplication) -> Iterator[None]:
    """Each test closes its windows; what was to be deleted later is deleted now."""
    yield
    for widget in QApplication.topLevelWidgets():
        widget.close()
        widget.deleteLater()
    qapp.sendPostedEvents(None, 52)  # QEvent.DeferredDelete
    qapp.processEvents()


@pytest.fixture
def real_window(qtbot: QtBot, tmp_path: Path) -> Iterator[Window]:
    """The window over a real host of an empty home."""
    from tests.ui.window_kit import Window

    opened = Window(qtbot, tmp_path / "home")
    yield opened
    opened.close()
