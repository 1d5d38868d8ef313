"""The verb `knowledge`: hands over to the bundled server, which is a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

from desktop_host.cli.context import folder
from desktop_host.core.errors import UserFault
from desktop_host.core.places import shipped


def command(ns: Namespace) -> list[str]:
    """The words that start the bundled server. With `--home` its index lies there too.

    Raises:
        UserFault: `usage`, both ways to serve were asked for.
    """
    words = [sys.executable, "-X", "utf8", str(shipped("resources", "servers", "knowledge")), ns.action]
    if ns.action == "key":
        return words
    if ns.home is not None:
        words += ["--cache", str(Path(ns.home).expanduser().absolute() / "profiles" / ns.profile / "knowledge")]
    if ns.action == "serve":
        if ns.stdio and ns.http:
            raise UserFault("usage", "--stdio and --http exclude each other", reason="contradiction",
                            options="--stdio, --http")  # fmt: skip
        words += ["--http", ns.http] if ns.http else ["--stdio"]
        for pattern in ns.tools:
            words += ["--tools", pattern]
        for option in ("chain", "tenants"):
            if (name := getattr(ns, option)) is not None:
                words += [f"--{option}", str(Path(name).expanduser().absolute())]
        words += ["--tenant", ns.tenant] if ns.tenant else []
        words += ["--semantic"] if ns.semantic else []
    elif ns.json:
        words.append("--json")
    if ns.action == "index":
        return [*words, "--", str(folder(ns.directory, "DIR"))]
    for name in ns.folder:
        words += ["--folder", str(folder(name, "--folder"))]
    if ns.action == "search":
        words += [*(("--top-k", str(ns.top_k)) if ns.top_k is not None else ()), "--", ns.text]
    return words


def serve(ns: Namespace) -> int:
    """Become the bundled server; where a process cannot be replaced, wait for it."""
    words = command(ns)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execv(words[0], words)
    return subprocess.call(words)
