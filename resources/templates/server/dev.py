"""Restart on save: runs server.py over stdio and ends when a file of this folder changes; the host starts it anew.

Desktop Host restarts a server that ended (after a short wait), so that its tool bench shows the new version by
itself. While server.py cannot be loaded, a stand-in says why, and saving the mended file ends it like any other.
For use without this, point the server's command at server.py.
"""

import os
import sys
import threading
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOOK_S = 0.5


def stamps() -> dict[str, int]:
    """When each source file was changed."""
    found = {}
    for file in HERE.glob("*.py"):
        try:
            found[file.name] = file.stat().st_mtime_ns
        except OSError:
            continue  # Being saved right now; the next look sees it.
    return found


def watch() -> None:
    """End the process when a file has changed and stayed the same for a moment."""
    seen = stamps()
    while True:
        time.sleep(LOOK_S)
        now = stamps()
        if now != seen:
            time.sleep(LOOK_S)
            if stamps() == now:
                print("a file changed: ending, to be started anew", file=sys.stderr, flush=True)
                os._exit(75)  # Not sys.exit: this is not the main thread.


def stand_in(why: str) -> None:
    """Serve one tool, which tells why there are no others."""
    from mcp.server.mcpserver import MCPServer

    broken = MCPServer("broken", instructions=f"server.py could not be loaded: {why}")

    @broken.tool(title="Why the server does not start")
    def why_it_does_not_start() -> str:
        """Tell why server.py could not be loaded."""
        return why

    broken.run("stdio")


if __name__ == "__main__":
    threading.Thread(target=watch, daemon=True).start()
    try:
        import server
    except Exception as error:
        traceback.print_exc()
        stand_in("".join(traceback.format_exception_only(error)).strip())
    else:
        server.server.run("stdio")
