"""What a child process is given: the login shell's PATH, a scrubbed environment, a command that exists."""

from __future__ import annotations

import asyncio
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from desktop_host.core.errors import KnownFault
from desktop_host.servers.orphans import PidFile, end_group

__all__ = ["PidFile", "child_environment", "login_path", "resolve_command"]

SHELL_SECONDS = 5.0
"""Longest time that a login shell is given to tell its PATH."""

_MARK = "__desktop_host_path__"
_cache: dict[tuple[str, str, str], str] = {}
_cache_lock = threading.Lock()

_PASSED = """
HOME LOGNAME SHELL TERM USER
LANG LANGUAGE TZ TMPDIR XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME
DISPLAY WAYLAND_DISPLAY XAUTHORITY
HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS
DESKTOP_HOST_SERVES
"""
_PASSED_ON_WINDOWS = """
APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATHEXT PROCESSOR_ARCHITECTURE SYSTEMDRIVE SYSTEMROOT
TEMP TMP USERNAME USERPROFILE PROGRAMFILES PROGRAMFILES(X86) PROGRAMDATA COMSPEC WINDIR
"""
_KEPT = frozenset(_PASSED.split())
_KEPT_WINDOWS = frozenset(_PASSED_ON_WINDOWS.split())
_LOADER = re.compile(r"(LD_LIBRARY_PATH|LD_PRELOAD|DYLD_.*|_PYI_.*|_MEIPASS.*|PYTHONHOME|PYTHONPATH|QT_PLUGIN_PATH)")
"""What a frozen host sets for its own loader; poison for every other program."""


async def login_path(environ: Mapping[str, str] | None = None) -> str:
    """The PATH that a terminal of this person has, for a host that was started from a dock without it.

    Asks `$SHELL -lic` (5 s at most, once per shell, home and PATH; then cached). Entries that only the
    host's own PATH has (an activated virtual environment) come first, then the shell's in its order, then
    the usual places of nvm, fnm, mise, Homebrew and the like that exist and were missing. The shell runs in
    a thread: the loop is never blocked. Never raises: a shell that hangs or fails leaves the other two.
    """
    taken = dict(os.environ if environ is None else environ)
    return await asyncio.to_thread(_login_path, taken)


def _login_path(environ: dict[str, str]) -> str:
    current = environ.get("PATH", "")
    key = (environ.get("SHELL", ""), environ.get("HOME", ""), current)
    with _cache_lock:  # Servers start side by side; one shell answers them all.
        if key not in _cache:
            told = "" if sys.platform == "win32" else _ask_shell(environ)
            _cache[key] = _merge(current, told, _usual_places(environ))
        return _cache[key]


def _ask_shell(environ: dict[str, str]) -> str:
    shell = environ.get("SHELL") or ("/bin/zsh" if sys.platform == "darwin" else "/bin/sh")
    env = {k: v for k, v in environ.items() if not _LOADER.fullmatch(k)}
    env |= {"TERM": "dumb", "DISABLE_AUTO_UPDATE": "true", "ZSH_TMUX_AUTOSTARTED": "true"}
    script = f"echo {_MARK}; printenv PATH; echo {_MARK}"  # The one form that sh, zsh, fish and nu all read.
    try:
        process = subprocess.Popen(
            [shell, "-l", "-i", "-c", script],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Without a terminal of its own it cannot be stopped by job control.
        )
    except OSError:
        return ""
    assert process.stdout is not None
    with process.stdout as out:
        said = _read_until_told(out.fileno(), time.monotonic() + SHELL_SECONDS)
        try:
            process.wait(0.5 if said.count(_MARK) >= 2 else 0)
        except subprocess.TimeoutExpired:
            end_group(process.pid, signal.SIGKILL)
            process.wait()
    parts = said.split(_MARK)
    return parts[1].strip() if len(parts) >= 3 else ""


def _read_until_told(fd: int, deadline: float) -> str:
    """Read until the second mark, not until the end: a job that an rc file left behind may hold the pipe open."""
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while said.count(_MARK.encode()) < 2:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                break
            chunk = os.read(fd, 65536)
            if not chunk:
                break
            said += chunk
    return said.decode(errors="surrogateescape")


def _merge(current: str, told: str, places: Iterable[str]) -> str:
    shell = [p for p in told.split(os.pathsep) if os.path.isabs(p)]
    mine = [p for p in current.split(os.pathsep) if os.path.isabs(p)]
    ordered = [*(p for p in mine if p not in shell), *shell, *places]
    return os.pathsep.join(dict.fromkeys(ordered))


def _usual_places(environ: Mapping[str, str]) -> list[str]:
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    places = [
        Path("/opt/homebrew/bin"),
        Path("/usr/local/bin"),
        Path("/home/linuxbrew/.linuxbrew/bin"),
        home / ".local/bin",
        home / ".local/share/mise/shims",
        home / ".asdf/shims",
        home / ".volta/bin",
        home / ".local/share/fnm/aliases/default/bin",
        home / "Library/Application Support/fnm/aliases/default/bin",
        home / ".bun/bin",
        home / ".deno/bin",
        home / ".cargo/bin",
        home / ".pyenv/shims",
    ]
    if appdata := environ.get("APPDATA"):
        places.append(Path(appdata) / "npm")
    nvm = _nvm_bin(Path(environ.get("NVM_DIR") or home / ".nvm"))
    return [str(p) for p in [*([nvm] if nvm else []), *places] if p.is_dir()]


def _nvm_bin(root: Path) -> Path | None:
    """The bin folder of nvm's default version where it names one, else of the newest; never the oldest."""
    found: dict[tuple[int, ...], Path] = {}
    try:
        for folder in (root / "versions/node").iterdir():
            if match := re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)", folder.name):
                found[tuple(int(n) for n in match.groups())] = folder / "bin"
        wanted = (root / "alias/default").read_text().strip().removeprefix("v") if found else ""
    except OSError:
        wanted = ""
    if re.fullmatch(r"\d+(\.\d+){0,2}", wanted):
        prefix = tuple(int(n) for n in wanted.split("."))
        matching = [version for version in found if version[: len(prefix)] == prefix]
        if matching:
            return found[max(matching)]
    return found[max(found)] if found else None


def child_environment(extra: Mapping[str, str], path: str, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a server: an allow-list, then `path`, then what the person configured.

    Kept from the host: HOME, LOGNAME, SHELL, TERM, USER; the language (LANG, LC_*, TZ); TMPDIR and the XDG
    folders; the display (a browser server opens a window); the proxies and certificate files, since behind a
    company's proxy neither `npx` nor any server could reach the network without them. Nothing else: no API
    key, no agent socket, no loader variable (`LD_LIBRARY_PATH`, `_PYI_*`) of a frozen host. Who wants more
    for a server writes `"NAME": "${NAME}"` into its `env`.
    """
    source = os.environ if environ is None else environ
    windows = sys.platform == "win32"
    out: dict[str, str] = {}
    for name, value in source.items():
        kept = name in _KEPT or name.startswith("LC_") or (windows and name.upper() in _KEPT_WINDOWS)
        if kept and not value.startswith("()"):  # An exported bash function is code.
            out[name] = value
    out["PATH"] = path
    for name, value in extra.items():
        same = next((k for k in out if windows and k.upper() == name.upper()), name)
        out.pop(same, None)
        out[name] = value
    return out


def resolve_command(command: str, path: str, cwd: str | None = None) -> str:
    """The absolute path of what would be started; nothing is rewritten (`uvx` stays `uvx`).

    A command with a folder in it is taken relative to `cwd`; any other is looked up in `path`.

    Raises:
        KnownFault: `server_failed` with `reason` `command_not_found`, `path_not_found`,
            `command_not_executable` or `cwd_not_found`, and `command`, `path`, `cwd`.
    """

    def fault(reason: str, message: str) -> KnownFault:
        return KnownFault("server_failed", message, reason=reason, command=command, path=path, cwd=cwd)

    if cwd is not None and not os.path.isdir(cwd):
        raise fault("cwd_not_found", f"the working folder {cwd!r} does not exist")
    if not command.strip():
        raise fault("command_not_found", "the command is empty")
    wanted = os.path.expanduser(command)
    if os.sep in wanted or (os.altsep and os.altsep in wanted):
        wanted = os.path.join(os.path.abspath(cwd or os.curdir), wanted)
        found = shutil.which(wanted, path=path)
        if found is None and os.path.isfile(wanted):
            raise fault("command_not_executable", f"{wanted!r} is not executable")
        if found is None:
            raise fault("path_not_found", f"there is no program at {wanted!r}")
    else:
        found = shutil.which(wanted, path=path)
    if found is None:
        raise fault("command_not_found", f"no program {command!r} was found in PATH")
    return os.path.abspath(found)
