"""The program: `desktop-host`, `python -m desktop_host`."""

from __future__ import annotations

import os
import sys


def _open_streams() -> None:
    """Put the null device where a standard stream is closed, lest a database get its number and be written into."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the program's whole life


def main() -> int:
    """Run what the command line says; returns the exit code."""
    if getattr(sys, "frozen", False) and sys.argv[1:2] == ["-m"]:
        # A frozen program is its own interpreter: our own child processes are started as `app -m module`.
        import runpy

        module = sys.argv[2]
        sys.argv = sys.argv[2:]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return 0
    _open_streams()
    try:
        from desktop_host.app.run import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:  # while it still starts; later each face ends in order by itself
        return 130


if __name__ == "__main__":
    sys.exit(main())
