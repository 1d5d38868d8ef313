"""Pick a face: the window, or the command line. Kept light: nothing heavy comes before the first paint."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from desktop_host.app.tenants import Tenants
    from desktop_host.core.errors import HostError
    from desktop_host.core.host_calls import GatewaySpec
    from desktop_host.engine.host import Host, HostSpec


def run(argv: list[str]) -> int:
    """Do what the words say and return the exit code."""
    words, opened = split_opened(argv)
    if not words or _only_common(words):
        return _window(words, opened)
    return _command(argv)


def split_opened(argv: list[str]) -> tuple[list[str], list[str]]:
    """The words, and what the desktop asks to be opened: install links and bundles, which a window shows."""
    opened = [a for a in argv if a.startswith("desktop-host://") or a.lower().endswith((".mcpb", ".dxt"))]
    if any(a not in opened and not a.startswith("-") for a in argv[:1]):
        return argv, []  # A verb comes first: the file is its argument.
    return [a for a in argv if a not in opened], opened


def _only_common(argv: list[str]) -> bool:
    """Whether the words name no verb: then the window opens."""
    from desktop_host.cli.arguments import parse
    from desktop_host.core.errors import HostError

    try:
        return parse(argv).verb is None
    except HostError:
        return False  # the command line says what is wrong


def _window(argv: list[str], opened: list[str]) -> int:
    from desktop_host import i18n
    from desktop_host.cli.arguments import parse
    from desktop_host.ui.face import has_display, run_window

    ns = parse(argv)
    home = Path(ns.home).expanduser() if ns.home else None
    if has_display():
        i18n.tell(ns.lang)
        return run_window(
            lambda: opener, lambda: _spec(ns), home=home, profile=ns.profile, arguments=[*argv, *opened], lazy=True,
            profiles=lambda: _profiles(ns.home),
        )  # fmt: skip
    i18n.install(ns.lang or "system")
    if opened:  # What a desktop hands over is shown in full before anything of it starts: that takes a window.
        print(i18n.tr("app.opened_no_display", what=opened[0]), file=sys.stderr)
        return 2
    print(i18n.tr("app.no_display"), file=sys.stderr)
    return _command(argv if sys.stdin.isatty() else ["demo", *argv])


def _command(argv: list[str]) -> int:
    from desktop_host.cli.arguments import parse
    from desktop_host.cli.main import run as run_command
    from desktop_host.core.errors import HostError

    try:
        home = parse(argv).home
    except HostError:
        home = None
    return run_command(argv, opener, profiles=_profiles(home), demo=_demo, gateway=_gateway, rescue=_rescue)


def _spec(ns: Namespace) -> HostSpec:
    from desktop_host.engine.host import HostSpec

    return HostSpec(Path(ns.home).expanduser() if ns.home else None, ns.profile, autostart=True)


def opener(spec: HostSpec) -> AbstractAsyncContextManager[Host]:
    """Open a host; its rooms are imported now."""
    from desktop_host.app.compose import open_host

    return open_host(spec)


def _profiles(home: str | None) -> Tenants:
    from desktop_host.app.tenants import Tenants

    return Tenants(Path(home).expanduser() if home else None)


async def _gateway(host: Host, spec: GatewaySpec) -> None:
    from desktop_host.app.sharing import serve_gateway

    await serve_gateway(host, spec)


async def _rescue(spec: HostSpec, error: HostError, target: Path) -> tuple[Path, tuple[str, ...]]:
    from desktop_host.app.rescue import rescue

    return await rescue(spec, error, target)


def _demo(ns: Namespace) -> int:
    from desktop_host.app.demo import demo

    return demo(ns, opener)
