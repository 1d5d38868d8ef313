"""Do 500 turns stay flat? Time per turn and memory of one session, on the real engine and the real database.

    python tests/bench/long_session.py [--turns 500]

Prints one JSON line: milliseconds of processor time of a turn and MiB of memory, early and late in the session.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from desktop_host.core.messages import Message, Role, StopReason, Text, ToolResult  # noqa: E402
from desktop_host.core.models import Completed, ModelRequest, Purpose, TextDelta, Usage  # noqa: E402
from desktop_host.core.tokens import of_request  # noqa: E402
from desktop_host.storage import open_storage  # noqa: E402
from tests.fakes.list_model import call  # noqa: E402
from tests.fakes.rig import Rig  # noqa: E402

WINDOW = 32_000


class Chatty:
    """A call and an answer each turn; counts its input as a vendor would."""

    async def stream(self, request: ModelRequest) -> Any:
        text = "It is as the tool says, and here are some more words about it. " * 5
        if request.purpose is Purpose.SUMMARY:
            blocks: tuple[Any, ...] = (Text("The person asks the same thing again and again."),)
        elif any(isinstance(b, ToolResult) for b in request.messages[-1].blocks):
            blocks = (Text(text),)
            yield TextDelta(text)
        else:
            blocks = (call("kb.search", f"c{request.step_index}", q="x"),)
        stop = StopReason.END if isinstance(blocks[0], Text) else StopReason.TOOLS
        tokens = of_request(request.messages, request.system, request.tools)
        yield Completed(Message(Role.ASSISTANT, blocks), Usage(tokens, 80, cost_usd=0.001), stop, "chatty")


async def measure(turns: int) -> dict[str, Any]:
    """Run the session and return its figures."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_storage(Path(folder)) as storage:
            rig = Rig([], storage=storage)
            rig.models.models["list"] = Chatty()
            rig.models.windows["list"] = WINDOW
            rig.tools.add("kb.search", "a passage of the manual " * 100)
            session = await rig.session()
            took, memory = [], []
            tracemalloc.start()
            for number in range(turns):
                began = time.process_time()
                result = await rig.say(session, f"question {number}: what does the manual say about this?")
                if result.error is not None:
                    raise RuntimeError(str(result.error))
                took.append((time.process_time() - began) * 1000)
                rig.events.clear()
                if number % 10 == 9:
                    gc.collect()
                    memory.append(tracemalloc.get_traced_memory()[0] / 2**20)
            tracemalloc.stop()
            summaries = sum(s.event.type == "compacted" for s in await storage.history.read(session))
            await rig.close()
    part = max(1, turns // 5)
    # Peaks of the saw-tooth between two summaries are compared, not single points of it.
    early, late = memory[part // 10 : 2 * part // 10 + 1], memory[-(part // 10) - 1 :]
    return {
        "turns": turns, "summaries": summaries,
        "turn_ms_early": round(statistics.median(took[part : 2 * part]), 2),
        "turn_ms_late": round(statistics.median(took[-part:]), 2),
        "memory_mib_early": round(max(early), 2), "memory_mib_late": round(max(late), 2),
    }  # fmt: skip


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=500)
    figures = asyncio.run(measure(parser.parse_args().turns))
    print(json.dumps(figures))
    flat = figures["turn_ms_late"] <= 1.5 * figures["turn_ms_early"]
    return int(not flat or figures["memory_mib_late"] > 1.5 * figures["memory_mib_early"] + 1)


if __name__ == "__main__":
    raise SystemExit(main())
