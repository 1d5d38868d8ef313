from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

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
