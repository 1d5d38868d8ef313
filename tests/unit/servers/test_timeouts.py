"""A server's own time limits: what is written is kept apart from what is not."""

from __future__ import annotations

import pytest

from desktop_host.core.servers import Timeouts
from desktop_host.servers.entries import from_json, to_json
from desktop_host.servers.wiring import idle_s


@pytest.mark.parametrize("seconds", [120, 5, None])
def test_a_limit_that_was_set_is_kept_even_where_it_is_the_usual_one(seconds: float | None) -> None:
    """120 s of a server's own must hold where the profile's setting says 1 s."""
    own = {} if seconds is None else {"desktopHost": {"timeouts": {"call": seconds}}}
    config = from_json("web", {"url": "https://a.example/mcp", **own})
    assert config.timeouts.call_s == seconds
    assert idle_s(config.timeouts) == (120 if seconds is None else seconds)
    written = to_json(config)
    assert written.get("desktopHost", {}).get("timeouts", {}) == ({} if seconds is None else {"call": seconds})
    assert from_json("web", written).timeouts == config.timeouts


def test_nothing_set_is_the_profiles_limit() -> None:
    assert Timeouts() == Timeouts(call_s=None)
