"""What other parts of the window do with the chat: put something into its message, keep off its composer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from desktop_host.engine.host import InputFile
from desktop_host.ui.theme import Space

if TYPE_CHECKING:
    from desktop_host.ui.widgets.workspace import Workspace


def into_chat(workspace: Workspace, text: str, files: tuple[InputFile, ...]) -> None:
    """Put text and files into the message that is being written, after what is there."""
    workspace.back_to_chat()
    composer = workspace.chat.composer
    composer.put("\n\n".join(t for t in (composer.text, text) if t), (*composer.files, *files))


def foot_height(workspace: Workspace) -> int:
    """Pixels at the lower edge that notices leave free: the composer's on the chat page."""
    if workspace.page != "chats":
        return Space.XL
    chat, composer = workspace.chat, workspace.chat.composer
    return chat.height() - composer.mapTo(chat, composer.rect().topLeft()).y() + Space.S
