"""The verb `knowledge`: hands over to the bundled server, which is a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace

from desktop_host.core.errors import UserFault
from desktop_host.core.places import shipped


def command(ns: Namespace) -> list[str]:
    """The words that start the bundled server.

    Raises:
        UserFault: `usage`, both ways to serve were asked for.
    """
    words = [sys.executable, str(shipped("resources", "servers", "knowledge")), ns.action]
    match ns.action:
        case "serve":
            if ns.stdio and ns.http:
                raise UserFault("usage", "--stdio and --http exclude each other", reason="contradiction",
                                options="--stdio, --http")  # fmt: skip
            words += ["--http", ns.http] if ns.http else ["--stdio"]
            for folder in ns.folder:
                words += ["--folder", folder]
        case "index":
            words.append(ns.folder)
        case "search":
            words.append(ns.text)
    return words


def serve(ns: Namespace) -> int:
    """Become the bundled server; where a process cannot be replaced, wait for it."""
    words = command(ns)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execv(words[0], words)
    return subprocess.call(words)
