"""What a window remembers for itself: its place, and its looks so that the first paint is right.

The settings file of the profile stays the truth; this is read before the host is open. Holds no secret.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings


class WindowState:
    """An INI file below `home`, or the platform's own place.

    Args:
        home: the folder below which all is kept; None: the platform's.
        profile: name of the profile.
    """

    def __init__(self, home: Path | None, profile: str) -> None:
        if home is None:
            scope = QSettings.Scope.UserScope
            self._file = QSettings(QSettings.Format.IniFormat, scope, "desktop-host", f"window-{profile}")
        else:
            self._file = QSettings(str(home / f"window-{profile}.ini"), QSettings.Format.IniFormat)

    def text(self, key: str, default: str = "") -> str:
        """A remembered text."""
        return str(self._file.value(key, default))

    def number(self, key: str, default: int) -> int:
        """A remembered whole number."""
        try:
            return int(str(self._file.value(key, default)))
        except ValueError:
            return default

    def flag(self, key: str) -> bool:
        """A remembered yes or no."""
        return str(self._file.value(key, "false")).lower() == "true"

    def data(self, key: str) -> QByteArray:
        """Remembered bytes; empty where there are none."""
        value = self._file.value(key)
        return value if isinstance(value, QByteArray) else QByteArray()

    def keep(self, key: str, value: str | int | bool | QByteArray) -> None:
        """Remember; written when the window closes or Qt finds time."""
        if isinstance(value, bool):
            value = "true" if value else "false"
        self._file.setValue(key, value)

    def save(self) -> None:
        """Write now."""
        self._file.sync()
