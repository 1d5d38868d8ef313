"""Profiles that earlier versions wrote, opened by today's code (`tests/data/schema_<n>`)."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from typing import Any, get_args

import pytest

from desktop_host.core import events as ev
from desktop_host.core.events import Stamped, UserSaid
from desktop_host.core.permissions import Effect
from desktop_host.core.sessions import TurnStatus
from desktop_host.core.transcript import Transcript, fold
from desktop_host.profiles.settings_file import SettingsFile
from desktop_host.profiles.store import Profiles
from desktop_host.profiles.vault import open_vault
from desktop_host.storage import open_storage

KINDS = 17
"""Kinds of events that schema 1 had."""
DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def written() -> dict[str, Any]:
    return runpy.run_path(str(DATA / "make_schema_1.py"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "profiles").mkdir()
    shutil.copytree(DATA / "schema_1", tmp_path / "profiles" / "old")
    return tmp_path


async def test_the_journal_of_schema_1_is_read_whole(home: Path, written: dict[str, Any]) -> None:
    async with open_storage(home / "profiles" / "old") as storage:
        history = storage.history
        kept = await history.read("old")
        assert tuple(s.event for s in kept) == written["EVENTS"]
        assert [s.seq for s in kept] == list(range(1, len(kept) + 1))
        kinds = {type(s.event) for s in kept}
        assert kinds <= {kind for kind in get_args(ev.Event) if kind.journaled} and len(kinds) == KINDS
        folded = Transcript()
        for stamped in kept:
            folded = fold(folded, stamped)
        assert folded.title == "Alte Unterhaltung"
        row = await history.row("old")
        assert (row.messages, row.last_turn) == (3, TurnStatus.FAILED)
        assert (await history.options("old")).budget_usd == 1.5
        assert await history.state("old", "prefix") == {"system": "s", "tools": [1, 2]}
        assert await history.open_turns() == ("cut",)
        assert await history.draft("cut") == (1, "half a re", "thou")
        assert [r.session for r in await history.search("完成")] == ["old"]
        assert await history.blob("90b2767d9ea6ec3db81dec64e145b0986631df95153ec823ffc537ee81a2bba5") == b"loose blob"
        (grant,) = await storage.ledger.grants()
        assert (grant.effect, grant.pattern, grant.tool_digest) == (Effect.ALLOW, "files.read", "d")
        assert await storage.ledger.known_tool("files.read") == ("d", "Reads")
        (used,) = await storage.ledger.usage("model")
        assert (used["model"], used["input"], used["cost_usd"]) == ("m", 10, 0.125)
        assert await storage.problem() is None
        await history.lease("cut")
        await history.append([Stamped(3, 2e9, "cut", 1, UserSaid("it goes on"))])


async def test_settings_identity_and_secrets_of_schema_1_are_read(home: Path) -> None:
    words = home / "words"
    words.write_text("old passphrase")
    profile = Profiles(home).open("old")
    assert profile.uuid == (DATA / "schema_1" / "profile.id").read_text()
    settings = await SettingsFile.open(profile.path / "settings.toml")
    assert (settings.current().general.language, settings.problems()) == ("zh_CN", ())
    vault = await open_vault(profile.uuid, profile.path, environ={"DESKTOP_HOST_PASSPHRASE_FILE": str(words)})
    assert await vault.get("openai") == "sk-old"
