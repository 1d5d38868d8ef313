"""The child process that holds the embedded model; run as a file, it imports nothing of the host.

One line of JSON comes in on stdin: `model` (path), `context`, `threads`, `key`. One line goes out on stdout:
`{"address"}` once requests are taken, or `{"error", "kind"}`. The process ends when stdin ends, so it never
outlives its parent, whatever killed that.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import IO, Any


def _end_with_parent(stdin: IO[str]) -> None:
    stdin.read()
    os._exit(0)


def _serve(order: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = order["model"]
    params.n_ctx = order["context"]
    params.n_parallel = 1
    params.n_ctx_checkpoints = 0
    params.cache_ram_mib = 128  # what a title request pushes out of the slot comes back from here
    params.warmup = False
    params.fit_params = False
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = ""
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order["threads"]
    params.api_keys = [order["key"]]
    return xllamacpp.Server(params)


def main() -> int:
    """Load, say where, and stay until the parent is gone."""
    stdin = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the C++ side prints must not mix with the answer
    order = json.loads(stdin.readline())
    threading.Thread(target=_end_with_parent, args=(stdin,), daemon=True).start()
    with contextlib.suppress(OSError, AttributeError):
        os.nice(5)
    try:
        server = _serve(order)
        said: dict[str, str] = {"address": server.listening_address}
    except ImportError as error:
        said = {"error": str(error), "kind": "no_runtime"}
    except Exception as error:
        said = {"error": f"{type(error).__name__}: {error}", "kind": "start_failed"}
    answer.write(json.dumps(said) + "\n")
    answer.flush()
    if "error" in said:
        return 1
    threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
