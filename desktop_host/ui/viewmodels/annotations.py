"""What a server says of its content (MCP `annotations`), in words."""

from __future__ import annotations

from datetime import datetime

from desktop_host.core.values import EMPTY, FrozenDict
from desktop_host.i18n import tr

_WHO = {frozenset({"user"}): "user", frozenset({"assistant"}): "model", frozenset({"user", "assistant"}): "both"}


def annotation_words(notes: FrozenDict | None) -> tuple[str, ...]:
    """For whom it is, how much it matters (0 to 1), when it last changed. What is not said in MCP's way is left out."""
    said = notes or EMPTY
    words = []
    audience = said.get("audience")
    if isinstance(audience, (tuple, list)):
        who = _WHO.get(frozenset(one for one in audience if isinstance(one, str)))
        words += [tr(f"content.audience.{who}")] if who else []
    priority = said.get("priority")
    if isinstance(priority, (int, float)) and not isinstance(priority, bool):
        words.append(tr("content.priority", n=f"{priority:g}"))
    if isinstance(changed := said.get("lastModified"), str):
        try:
            moment = datetime.fromisoformat(changed)
        except ValueError:
            return tuple(words)
        words.append(tr("content.last_modified", time=moment.astimezone().strftime("%Y-%m-%d %H:%M")))
    return tuple(words)
