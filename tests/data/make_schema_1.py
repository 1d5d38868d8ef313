"""Wrote `tests/data/schema_1`, with the code of schema 1. Kept as the record of what is in it; not run again.

python tests/data/make_schema_1.py FOLDER
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from pathlib import Path

from desktop_host.core import events as ev
from desktop_host.core.asks import ApproveTool, FillForm, OpenUrl, ReviewSampling
from desktop_host.core.exchange import SamplingRequest
from desktop_host.core.messages import (
    Audio,
    EmbeddedResource,
    Image,
    Message,
    Native,
    Outcome,
    ResourceLink,
    Role,
    Text,
    Thinking,
    ToolCall,
    user,
)
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.sessions import SessionOptions, TurnStatus, TurnStop
from desktop_host.core.skills import SkillPin
from desktop_host.core.values import FrozenDict
from desktop_host.profiles.settings_file import SettingsFile
from desktop_host.profiles.store import Profiles
from desktop_host.profiles.vault import open_vault
from desktop_host.storage import open_storage

ARGS = FrozenDict({"path": "/tmp/文件", "list": (1, 2.5, None, True)})
NATIVE = Native("anthropic", "https://api.anthropic.com", "m", FrozenDict({"content": (FrozenDict({"type": "text"}),)}))
CALL = ToolCall("c1", "files__read", ARGS)
EVENTS: tuple[ev.Event, ...] = (
    ev.SessionOpened("anthropic/m", "Old chat"),
    ev.UserSaid("你好, read it", (ev.Attachment("a.png", "image/png", 3),), (Image("AAAA", "image/png"),)),
    ev.TurnStarted(),
    ev.SkillsChosen((SkillPin("notes", "1.0.0", "d" * 64, "keyword"),), "skill text"),
    ev.RouteChanged("anthropic/m", "local", "overloaded"),
    ev.RetryScheduled(1, 2.0, "rate_limited", "slow down", 1_700_000_002.0),
    ev.AssistantSaid(Message(Role.ASSISTANT, (Thinking("hm"), Text("I read"), CALL), NATIVE), "m"),
    ev.ToolRequested("c1", "files", "read", "files__read", ARGS, Effect.ASK, "profile", "Read"),
    ev.AskRaised(ApproveTool("a1", "old", "c1", "files", "read", ARGS, tool_digest="d")),
    ev.AskSettled("a1", "allow", "person"),
    ev.AskRaised(FillForm("a2", "old", "c1", "files", "Which?", FrozenDict({"type": "object"}))),
    ev.AskRaised(OpenUrl("a3", None, None, "files", "Log in", "https://example.com")),
    ev.AskRaised(ReviewSampling("a4", "old", "c1", "files", SamplingRequest((user("hi"),), max_tokens=5), "local")),
    ev.ToolStarted("c1"),
    ev.ToolSettled(
        "c1", Outcome.OK,
        (
            Text("big " * 6000), Image("QUJD" * 5000, "image/png"), Audio("AAAA", "audio/wav"),
            ResourceLink("file:///x", "x", size=3), EmbeddedResource("file:///y", "text/plain", "text"),
        ),
        FrozenDict({"rows": (FrozenDict({"a": None}),)}), 12.5,
    ),
    ev.UsageRecorded("m", "chat", 10, 20, 1, 2, 3, 0.125),
    ev.Notice("tool_quarantined", FrozenDict({"tool": "files.bad"})),
    ev.ToolsChanged(("files.new",), (), ("files.read",), True),
    ev.SessionRenamed("Alte Unterhaltung"),
    ev.AssistantSaid(Message(Role.ASSISTANT, (Text("Done, 完成"),)), "m", True),
    ev.TurnEnded(TurnStatus.FAILED, TurnStop.ERROR, "Done", FrozenDict({"code": "network", "message": "gone"})),
)  # fmt: skip


async def main(home: Path) -> None:
    profile = Profiles(home).open("old")
    async with open_storage(profile.path, now=lambda: 1_700_000_000.0) as storage:
        history, ledger = storage.history, storage.ledger
        options = SessionOptions(model="local", roots=("/tmp",), rules=(Rule(Effect.DENY, "a.*"),), budget_usd=1.5)
        await history.create("old", "Alte Unterhaltung", options)
        await history.append([ev.Stamped(n + 1, 1_700_000_000.0 + n, "old", 1, e) for n, e in enumerate(EVENTS)])
        await history.put_state("old", "prefix", {"system": "s", "tools": [1, 2]})
        await history.create("cut", "Cut off", SessionOptions())
        await history.append([
            ev.Stamped(1, 1_700_000_100.0, "cut", 1, ev.UserSaid("never answered")),
            ev.Stamped(2, 1_700_000_100.0, "cut", 1, ev.TurnStarted()),
        ])  # fmt: skip
        await history.save_draft("cut", 1, "half a re", "thou")
        await history.lease("cut")
        await history.put_blob(b"loose blob")
        await ledger.grant(Rule(Effect.ALLOW, "files.read", tool_digest="d", origin="person"))
        await ledger.remember_tool("files.read", "d", "Reads")
        sqlite3.connect(profile.path / "host.db").close()
    settings = await SettingsFile.open(profile.path / "settings.toml")
    await settings.set("general.language", "zh_CN")
    words = home / "words"
    words.write_text("old passphrase")
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    vault = await open_vault(profile.uuid, profile.path, environ={"DESKTOP_HOST_PASSPHRASE_FILE": str(words)})
    await vault.put("openai", "sk-old")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
