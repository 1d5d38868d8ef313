"""What each command of `ui.actions` does in a workspace, and what the palette lists."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from desktop_host.i18n import tr
from desktop_host.ui.widgets.palette import Entry

if TYPE_CHECKING:
    from desktop_host.ui.widgets.workspace import Workspace

SCALE_STEP = 10
LOOKS = ("light", "dark", "high_contrast", "system")


def bind_commands(w: Workspace) -> None:
    """Give every command its meaning."""
    acts, settings = w.acts, w.settings

    def with_session(act: Callable[[str], object]) -> None:
        if w.session:
            act(w.session)

    def scale(by: int) -> None:
        now = int(settings.value("general.font_scale"))
        settings.set("general.font_scale", max(80, min(200, now + by)))

    meanings: dict[str, Callable[[], object]] = {
        "chat.new": lambda: w.show_chat(None),
        "chat.search": w.search,
        "chat.rename": lambda: with_session(acts.rename),
        "chat.pin": lambda: with_session(acts.toggle_pin),
        "chat.delete": lambda: with_session(acts.ask_delete),
        "chat.window": lambda: with_session(lambda s: acts.do("window", s)),
        "chat.move": lambda: with_session(lambda s: acts.do("move", s)),
        "chat.compact": lambda: with_session(acts.summarise),
        "chat.export_md": lambda: with_session(lambda s: acts.export(s, "md")),
        "chat.export_html": lambda: with_session(lambda s: acts.export(s, "html")),
        "chat.import": lambda: acts.choose_import(w.show_chat),
        "chat.export_json": lambda: with_session(lambda s: acts.export(s, "json")),
        "go.chats": w.back_to_chat,
        "go.servers": w.show_servers,
        "servers.add": w.add_server,
        "go.skills": w.skills.show,
        "skills.install": w.skills.install,
        "go.usage": w.usage.show,
        "go.settings": w.show_settings,
        "go.models": w.show_models,
        "go.permissions": lambda: w.show_settings("permissions"),
        "go.diagnostics": w.diagnostics.show,
        "go.first_run": w.show_first_run,
        "view.palette": lambda: w.window.palette_.open(palette_entries(w)),
        "view.inspector": w.inspector.toggle,
        "view.larger": lambda: scale(SCALE_STEP),
        "view.smaller": lambda: scale(-SCALE_STEP),
        "view.normal": lambda: settings.set("general.font_scale", 100),
        "view.english": lambda: settings.set("general.language", "en"),
        "view.chinese": lambda: settings.set("general.language", "zh_CN"),
    }
    meanings |= {f"view.{look}": partial(settings.set, "general.theme", look) for look in LOOKS}
    for command, act in meanings.items():
        w.window.commands.bind(command, act)


def palette_entries(w: Workspace) -> tuple[Entry, ...]:
    """Commands that can be used now, then conversations, then servers."""
    commands = w.window.commands
    entries = []
    for command in commands.usable():
        if command.id != "view.palette":
            action = commands.action(command.id)
            key = action.shortcut().toString()
            entries.append(Entry(action.text(), command.icon or "tool", partial(commands.run, command.id), key))
    entries += [Entry(title, "chat", partial(w.show_chat, s), tr("nav.chats")) for s, title in w.sessions.titles()]
    entries += [
        Entry(s.name, "servers", partial(w.show_servers, s.name), tr("nav.servers")) for s in w.servers.statuses()
    ]
    entries += [Entry(s.name, "skills", partial(w.skills.show, s.name), tr("nav.skills")) for s in w.skills.model.rows]
    return tuple(entries)


def tell_failed(workspace: Workspace, name: str) -> None:
    """A server was given up: say so, with the way to its page, unless the servers are in view."""
    if workspace.page != "servers":
        workspace.window.toasts.say(
            tr("servers.toast.failed", name=name), "warning",
            (tr("servers.toast.show"), lambda: workspace.show_servers(name)),
        )  # fmt: skip
