"""What a second start of the program hands to the window that is open already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from desktop_host.ui.widgets.workspace import Workspace

LINKS = ("http://", "https://", "desktop-host://", "{")
CHAT = "desktop-host://chat/"
"""The link of a conversation: its id follows."""
FILES = (".json", ".mcpb", ".dxt")


def receive(workspace: Workspace, arguments: list[str]) -> None:
    """Go where the arguments point; start nothing."""
    workspace.window.come_forward()
    if "--session" in arguments[:-1]:
        workspace.show_chat(arguments[arguments.index("--session") + 1])
        return
    for argument in arguments:
        if argument.startswith(CHAT):
            workspace.sessions.refresh()  # another process may have put it there
            workspace.show_chat(argument.removeprefix(CHAT))
        elif argument.startswith(LINKS):
            workspace.add_server(argument)
        elif argument.endswith(FILES) and (path := Path(argument)).is_file():
            workspace.go("servers", workspace.servers_page)
            workspace.servers_page.take(path)
