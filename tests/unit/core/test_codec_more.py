"""What later features put into the journal comes back from it."""

from __future__ import annotations

import json

from desktop_host.core.asks import Advice, ApproveTool, FillForm, Refuse
from desktop_host.core.codec import decode, encode
from desktop_host.core.events import ToolProgress, UserSaid
from desktop_host.core.messages import assistant, user
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, freeze


def test_icons_prompts_rounds_and_locks_come_back_as_they_were():
    icon = freeze({"src": "data:image/png;base64,eA==", "sizes": ["16x16"]})
    for value in (
        ToolSpec("s", "t", icons=(icon,)),
        UserSaid("x", prelude=(user("a"), assistant("b")), source="prompt:s.p"),
        ApproveTool("a", "s", "c", "srv", "t", EMPTY, locked=("key",)),
        ApproveTool("a", "s", "c", "srv", "t", EMPTY, advice=Advice("ask", "odd", "m")),
        FillForm("a", "s", "c", "srv", "m", EMPTY, round=3),
        Refuse(stop=True),
        ToolProgress("c", 1, 2, "m", 4.5),
    ):
        assert decode(json.loads(json.dumps(encode(value)))) == value


def test_what_an_older_host_wrote_still_opens():
    old = {"$": "UserSaid", "text": "x", "attachments": [], "blocks": []}
    assert decode(old) == UserSaid("x")
