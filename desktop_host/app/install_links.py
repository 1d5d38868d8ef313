r"""Registers the host for `desktop-host://` links, `.mcpb` and `.dxt` files, for this user alone.

Linux: a desktop entry, an icon, a MIME type and the user's `mimeapps.list` (freedesktop.org specifications Desktop
Entry, Shared MIME-info, MIME applications). Windows (not run): keys below `HKEY_CURRENT_USER\Software\Classes`.
macOS takes links of an app bundle only: there it is not possible.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.install_links import LinkState
from desktop_host.core.places import shipped

ENTRY = "desktop-host.desktop"
MIME = "application/x-mcp-bundle"
TYPES = ("x-scheme-handler/desktop-host", MIME)
REFRESH_S = 10.0
"""Time limit of each of the desktop's own tools."""
_XML = f"""<?xml version="1.0" encoding="UTF-8"?>
<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">
  <mime-type type="{MIME}">
    <comment>MCP server bundle</comment>
    <comment xml:lang="zh_CN">MCP 服务器捆绑包</comment>
    <sub-class-of type="application/zip"/>
    <glob pattern="*.mcpb"/>
    <glob pattern="*.dxt"/>
  </mime-type>
</mime-info>
"""
_CLASSES = r"Software\Classes"


class DesktopLinks:
    """The `InstallLinks` of this user.

    Args:
        options: words that lead to the profile that is open (`--home`, `--profile`), before the link.
        environ: where the user's folders are named.
        platform: as `sys.platform`.
    """

    def __init__(
        self, options: tuple[str, ...] = (), environ: Mapping[str, str] | None = None, platform: str = sys.platform
    ) -> None:
        env = os.environ if environ is None else environ
        home = Path(env.get("HOME") or Path.home())
        self._data = Path(env.get("XDG_DATA_HOME") or home / ".local/share")
        self._config = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
        self._platform, self._words = platform, (*program(), *options)
        self._turn = asyncio.Lock()

    async def state(self) -> LinkState:
        return await asyncio.to_thread(self._state)

    async def put(self, on: bool) -> LinkState:
        async with self._turn:
            try:
                await asyncio.to_thread(self._put, on)
            except OSError as error:
                told = f"the desktop's entry cannot be written: {error.strerror} ({error.filename})"
                raise KnownFault("permission", told, reason="links", file=str(error.filename or "")) from error
        return await self.state()

    # ---- inside
    @property
    def _entry(self) -> Path:
        return self._data / "applications" / ENTRY

    def _state(self) -> LinkState:
        words = quoted(self._words)
        if self._platform == "win32":
            return LinkState(True, _windows_on(), rf"HKEY_CURRENT_USER\{_CLASSES}\desktop-host", words)
        if not self._platform.startswith("linux"):
            return LinkState(False, False, program=words)
        try:
            on = f"Exec={words} %u" in self._entry.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            on = False
        return LinkState(True, on and self._is_default(), str(self._entry), words)

    def _put(self, on: bool) -> None:
        if self._platform == "win32":
            _windows_put(self._words, on)
        elif self._platform.startswith("linux"):
            self._files(on)
            self._defaults(on)
            self._refresh()
        else:
            raise UserFault("usage", f"{self._platform} gives links to app bundles only", reason="no_links")

    def _files(self, on: bool) -> None:
        files = {
            self._entry: (
                "[Desktop Entry]\nType=Application\nVersion=1.4\nName=Desktop Host\nGenericName=MCP Host\n"
                "Comment=Talk to a model that works with your tools\nComment[zh_CN]=与使用你的工具的模型对话\n"
                f"Exec={quoted(self._words)} %u\nIcon=desktop-host\nTerminal=false\nCategories=Utility;\n"
                f"StartupWMClass=desktop-host\nMimeType={';'.join(TYPES)};\n"
            ).encode(),
            self._data / "mime/packages/desktop-host.xml": _XML.encode(),
            self._data / "icons/hicolor/scalable/apps/desktop-host.svg": shipped(
                "resources", "icons", "app.svg"
            ).read_bytes(),
        }
        for path, body in files.items():
            if on:
                _write(path, body)
            else:
                path.unlink(missing_ok=True)

    def _defaults(self, on: bool) -> None:
        """Name us as the default in `mimeapps.list`, or take our name out; everything else in it stays as it is."""
        path = self._config / "mimeapps.list"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        kept, section = [], ""
        for line in lines:
            section = line.strip() if line.strip().startswith("[") else section
            key, _, value = line.partition("=")
            if section == "[Default Applications]" and key.strip() in TYPES:
                others = [v for v in value.split(";") if v.strip() and v.strip() != ENTRY]
                line = f"{key.strip()}={';'.join(([ENTRY] if on else []) + others)}"
                if not on and not others:
                    continue
            kept.append(line)
        have = {x.partition("=")[0] for x in kept if ENTRY in x}
        missing = [f"{kind}={ENTRY}" for kind in TYPES if kind not in have] if on else []
        if missing:
            if "[Default Applications]" not in (x.strip() for x in kept):
                kept.append("[Default Applications]")
            at = next(n for n, x in enumerate(kept) if x.strip() == "[Default Applications]") + 1
            kept[at:at] = missing
        if kept != lines:
            _write(path, ("\n".join(kept) + "\n").encode())

    def _is_default(self) -> bool:
        try:
            lines = (self._config / "mimeapps.list").read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return False
        return any(line.replace(" ", "").startswith(f"{TYPES[0]}={ENTRY}") for line in lines)

    def _refresh(self) -> None:
        """Let the desktop's tools read it now, where there are any; without them it does so by itself."""
        for words in (
            ("update-desktop-database", str(self._data / "applications")),
            ("update-mime-database", str(self._data / "mime")),
            ("gtk-update-icon-cache", "-q", "-t", str(self._data / "icons/hicolor")),
        ):
            if (tool := shutil.which(words[0])) is not None:
                try:
                    subprocess.run((tool, *words[1:]), capture_output=True, timeout=REFRESH_S, check=False)
                except (OSError, subprocess.TimeoutExpired):
                    continue


def program() -> tuple[str, ...]:
    """The words that start this program again, by absolute paths."""
    if getattr(sys, "frozen", False):
        return (sys.executable,)
    own = Path(sys.argv[0]).absolute()
    if own.name.startswith("desktop-host") and os.access(own, os.X_OK) and own.is_file():
        return (str(own),)
    beside = Path(sys.executable).parent / ("desktop-host.exe" if sys.platform == "win32" else "desktop-host")
    return (str(beside),) if beside.is_file() else (sys.executable, "-m", "desktop_host")


def quoted(words: tuple[str, ...]) -> str:
    """Words of an `Exec` line: quoted where need be, and no `%` taken for a field code (Desktop Entry, 7)."""
    out = []
    for word in words:
        word = word.replace("%", "%%")
        if not word or any(c in word for c in " \t\n\"'\\><~|&;$*?#()`"):
            inner = "".join(f"\\{c}" if c in '"`$\\' else c for c in word)
            word = f'"{inner}"'.replace("\\", "\\\\")  # Once more, for the file's own escapes.
        out.append(word)
    return " ".join(out)


def _write(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    draft.write_bytes(body)
    draft.replace(path)


def _windows_on() -> bool:
    """Windows, not run."""
    if sys.platform != "win32":
        return False
    import winreg

    try:
        winreg.CloseKey(winreg.OpenKey(winreg.HKEY_CURRENT_USER, rf"{_CLASSES}\desktop-host\shell\open\command"))
    except OSError:
        return False
    return True


def _windows_put(words: tuple[str, ...], on: bool) -> None:
    """Windows, not run."""
    if sys.platform != "win32":
        return
    import contextlib
    import winreg

    run = subprocess.list2cmdline(words) + ' "%1"'
    keys = {
        rf"{_CLASSES}\desktop-host": {"": "URL:Desktop Host", "URL Protocol": ""},
        rf"{_CLASSES}\desktop-host\shell\open\command": {"": run},
        rf"{_CLASSES}\desktop-host.bundle": {"": "MCP server bundle"},
        rf"{_CLASSES}\desktop-host.bundle\shell\open\command": {"": run},
        rf"{_CLASSES}\.mcpb": {"": "desktop-host.bundle"},
        rf"{_CLASSES}\.dxt": {"": "desktop-host.bundle"},
    }
    if on:
        for name, values in keys.items():
            with winreg.CreateKey(winreg.HKEY_CURRENT_USER, name) as key:
                for value, text in values.items():
                    winreg.SetValueEx(key, value, 0, winreg.REG_SZ, text)
        return
    for name in reversed(keys):
        for below in (rf"{name}\shell\open", rf"{name}\shell", name):
            with contextlib.suppress(OSError):
                winreg.DeleteKey(winreg.HKEY_CURRENT_USER, below)
