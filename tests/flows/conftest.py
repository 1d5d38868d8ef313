from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from desktop_host.app.run import opener
from desktop_host.cli.main import run
from tests.fakes.rig import Rig


@pytest.fixture
async def rig() -> AsyncIterator[Callable[..., Rig]]:
    """Make engines that are closed at the end."""
    made: list[Rig] = []

    def make(replies: list[list[Any]], **more: Any) -> Rig:
        made.append(Rig(replies, **more))
        return made[-1]

    yield make
    for one in made:
        await one.close()


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, list[dict[str, Any]]]]:
    """Runs words; returns the exit code and the objects on standard output."""

    def go(*words: str) -> tuple[int, list[dict[str, Any]]]:
        code = run(["--home", str(tmp_path / "home"), "--json", *words], opener)
        out = capsys.readouterr().out
        return code, [json.loads(line) for line in out.splitlines() if line.strip()]

    return go
