"""The program: `desktop-host`, `python -m desktop_host`."""

from __future__ import annotations

import atexit
import os
import signal
import sys

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
    atexit.register(_deaf)
    code = 130
    try:
        # While it still starts; later each face ends in order by itself.
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        from desktop_host.app.run import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        pass
    except RuntimeError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 wraps one that comes while a class is made
            raise
    _settle(code)
    return code


def _settle(code: int) -> None:
    """What was done stands: a signal that comes while threads are waited for ends it at once, with this exit code."""

    def leave(*_: object) -> None:
        os._exit(code)

    for number in _SIGNALS:
        signal.signal(number, leave)


def _deaf() -> None:
    """The last moments: the interpreter puts back what signals do by default, except where they are ignored."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
