"""Ask the person for the passphrase of the encrypted file: a form of the host's own, answered like any other."""

from __future__ import annotations

import uuid

from desktop_host.core.asks import Filled, FillForm
from desktop_host.core.host_tools import ALIAS
from desktop_host.core.values import freeze
from desktop_host.engine.inbox import Inbox
from desktop_host.i18n import tr


async def ask_passphrase(inbox: Inbox) -> str | None:
    """The passphrase, or None where the person declines. It is never journaled: the ask belongs to no session."""
    schema = {
        "type": "object",
        "properties": {
            "passphrase": {
                "type": "string", "title": tr("app.passphrase"), "format": "password", "minLength": 8,
            }
        },
        "required": ["passphrase"],
    }  # fmt: skip
    form = FillForm(uuid.uuid4().hex, None, None, ALIAS, tr("app.passphrase_why"), freeze(schema))
    answer = await inbox.ask(form)
    return str(answer.values.get("passphrase") or "") or None if isinstance(answer, Filled) else None
