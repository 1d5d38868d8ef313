"""What stands in the window: the view-models, the pages (made when first shown) and what commands do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QWidget

from desktop_host import i18n
from desktop_host.core import events as ev
from desktop_host.core.errors import HostError
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.viewmodels.models import Models
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.viewmodels.sessions import Sessions
from desktop_host.ui.viewmodels.settings import Permissions, ProfileSettings
from desktop_host.ui.widgets.arrivals import receive
from desktop_host.ui.widgets.bindings import bind_commands, tell_failed
from desktop_host.ui.widgets.chat import ChatPage
from desktop_host.ui.widgets.chat_reach import foot_height, into_chat
from desktop_host.ui.widgets.diagnostics_room import DiagnosticsRoom
from desktop_host.ui.widgets.first_run import FirstRun
from desktop_host.ui.widgets.gateway_room import GatewayRoom
from desktop_host.ui.widgets.inspector_place import InspectorPlace
from desktop_host.ui.widgets.new_draft import remember
from desktop_host.ui.widgets.not_open import not_open
from desktop_host.ui.widgets.server_art import art
from desktop_host.ui.widgets.servers_page import ServersPage
from desktop_host.ui.widgets.session_acts import SessionActs
from desktop_host.ui.widgets.settings_page import SettingsPage
from desktop_host.ui.widgets.skills_room import SkillsRoom
from desktop_host.ui.widgets.usage_room import UsageRoom
from desktop_host.ui.widgets.window import MainWindow


class Workspace(QObject):
    """Fills a window with a profile.

    Args:
        window: the frame.
        bridge: the host, not started yet.
        retry: asked when the person wants to open the host again after a failure, maybe with a passphrase.
        first: the conversation to begin with.
    """

    failed = Signal(object)
    language_changed = Signal(str)
    """Another language was set (`system`, `en`, `zh_CN`); the texts are installed already."""

    def __init__(self, window: MainWindow, bridge: Bridge, retry: Callable[..., None], first: str = "") -> None:
        super().__init__(window)
        if not window.built:
            window.build()
        self.window, self.bridge = window, bridge
        self._retry, self._first = retry, first
        self.sessions = Sessions(bridge, self)
        self.servers = Servers(bridge, self)
        self.settings = ProfileSettings(bridge, self)
        self.permissions = Permissions(bridge, self)
        self.models = Models(bridge, self)
        self.acts = SessionActs(window, self.sessions)
        self.session = ""
        """The conversation that is shown; empty: a new one."""
        self.page = "chats"
        self._pages: dict[str, QWidget] = {}
        self.inspector = InspectorPlace(self)
        self.skills = SkillsRoom(self)
        self.usage = UsageRoom(self)
        self.gateway = GatewayRoom(self)
        self.diagnostics = DiagnosticsRoom(self)
        self._greeted, self._language = False, i18n.current().language
        self._open_error: HostError | None = None
        bind_commands(self)
        for model in (self.sessions, self.servers, self.settings, self.permissions, self.models):
            model.failed.connect(self._toast_error)
        bridge.failed_call.connect(self._toast_error)
        bridge.ready.connect(self._ready)
        bridge.failed.connect(self._not_open)
        bridge.batch.connect(self._on_batch)
        self.sessions.deleted.connect(self._deleted)
        self.settings.changed.connect(self._setting_changed)
        art().follow(bridge)
        self.servers.gave_up.connect(lambda name: tell_failed(self, name))
        self.servers.to_chat.connect(lambda text, files: into_chat(self, text, files))
        window.rebuilt.connect(self._refill)
        self._fill()

    # ---- going places

    def show_chat(self, session: str | None = None, text: str = "") -> None:
        """Open a conversation, or (None) a new one, maybe with a first text to send."""
        chat = self.chat
        if self.session != (session or "") or session is None:
            chat.open_session(session)
            self._session_changed(session or "")
        self.go("chats", chat)
        if text:
            chat.put_text(text)
        chat.focus_composer()

    @property
    def chat(self) -> ChatPage:
        """The chat page."""
        found = self._pages.get("chats")
        if not isinstance(found, ChatPage):
            found = ChatPage(self.bridge, self.window.stack)
            found.session_changed.connect(self._session_changed)
            found.needs_model.connect(self.show_models)
            found.skills.opened.connect(self.skills.show)
            remember(found, self.window)
            self.usage.attach(found)
            self._pages["chats"] = found
        return found

    @property
    def servers_page(self) -> ServersPage:
        """The servers page."""
        found = self._pages.get("servers")
        if not isinstance(found, ServersPage):
            found = ServersPage(self.bridge, self.servers, self.window.toasts.say)
            self._pages["servers"] = found
        return found

    @property
    def settings_page(self) -> SettingsPage:
        """The settings page."""
        found = self._pages.get("settings")
        if not isinstance(found, SettingsPage):
            found = SettingsPage(self.settings, self.models, self.permissions, self.show_first_run)
            self.gateway.attach(found)
            self.diagnostics.attach(found)
            self._pages["settings"] = found
        return found

    def show_servers(self, name: str = "", tab: str = "") -> None:
        """The list of servers, or one of them, maybe at a tab of its page."""
        self.go("servers", self.servers_page)
        self.servers_page.show_list() if not name else self.servers_page.show_server(name, tab)

    def add_server(self, text: str = "") -> None:
        """The page that takes a pasted server."""
        self.go("servers", self.servers_page)
        self.servers_page.show_add(text)

    def show_settings(self, tab: str = "general") -> None:
        """The settings: `general`, `models`, `costs`, `permissions`, `gateway` or `diagnostics`."""
        self.go("settings", self.settings_page)
        self.settings_page.show_tab(tab)

    def show_models(self) -> None:
        """Models and keys."""
        self.show_settings("models")

    def show_first_run(self) -> None:
        """The first three steps, again if wanted."""
        old = self._pages.pop("first_run", None)
        made = FirstRun(self.models, self.servers, self.settings)
        made.done.connect(self._first_run_done)
        self._pages["first_run"] = made
        self.go("first_run", made)
        if old is not None:
            self.window.stack.removeWidget(old)
            old.deleteLater()

    def receive(self, arguments: list[str]) -> None:
        """A second start came with these arguments: go where they point, start nothing."""
        receive(self, arguments)

    def search(self) -> None:
        """Put the caret into the search field of the conversations."""
        if self.window.sidebar.folded:
            self.window.commands.run("view.sidebar")
        self.window.sidebar.begin_search()

    def back_to_chat(self) -> None:
        """The conversation as it was left."""
        self.go("chats", self.chat)
        self.chat.focus_composer()

    # ---- what happens

    def _fill(self) -> None:
        sidebar = self.window.sidebar
        sidebar.attach(self.sessions)
        sidebar.opened.connect(self.show_chat)
        sidebar.wanted.connect(self.acts.do)
        sidebar.choose(self.session)
        sidebar.show_page(self.page)

    def _refill(self) -> None:
        page, self._pages = self.page, {}
        self._fill()
        self._listen()
        self.sessions.refresh()
        if self._open_error is not None:
            self._not_open(self._open_error)
        elif self._greeted:
            match page:
                case "servers":
                    self.show_servers()
                case "settings":
                    self.show_settings()
                case "skills":
                    self.skills.show()
                case "usage":
                    self.usage.show()
                case "first_run":
                    self.show_first_run()
                case _:
                    self.chat.open_session(self.session or None)
                    self.go("chats", self.chat)

    def go(self, name: str, page: QWidget) -> None:
        """Show a page; `name` is its entry at the left."""
        self.page = name
        self.window.show_widget(page)
        self.inspector.place()
        self.window.toasts.keep_clear(lambda: foot_height(self))
        if name != "chats":
            page.setFocus(Qt.FocusReason.OtherFocusReason)
        self.window.sidebar.show_page(name)

    def _session_changed(self, session: str) -> None:
        if session != self.session:
            self.session = session
            self.sessions.refresh()
        self.window.commands.say("session", bool(session))
        self.window.sidebar.choose(session)

    def _deleted(self, session: str) -> None:
        self.window.toasts.say(tr("sessions.deleted"), "check")
        if session == self.session:
            self.chat.open_session(None)
            self._session_changed("")

    def _ready(self, _host: object) -> None:
        self._open_error = None
        self.window.commands.say("ready", True)
        for model in (self.sessions, self.servers, self.permissions, self.models):
            model.refresh()
        self.settings.refresh()
        self._listen()

    def _listen(self) -> None:
        # The chat page shows questions of no chat, too, whatever page is open.
        QTimer.singleShot(0, self, lambda: self.chat)

    def _not_open(self, error: HostError) -> None:
        self._open_error = error
        self.window.show_widget(not_open(error, self._retry, self.window.close))

    def _greet(self) -> None:
        self._greeted = True
        if not self.settings.value("general.onboarded"):
            self.show_first_run()
        elif self.page == "chats":
            self.show_chat(self._first or self.session or None)

    def _first_run_done(self, text: str) -> None:
        self.settings.set("general.onboarded", True)
        self.show_chat(None, text)

    def _setting_changed(self, key: str) -> None:
        look, scale = str(self.settings.value("general.theme")), int(self.settings.value("general.font_scale"))
        if (look, scale) != (theme.wanted, theme.scale):
            theme.apply(look, scale)
        language = str(self.settings.value("general.language"))
        keep = self.window.state.keep
        keep("theme", look)
        keep("scale", scale)
        keep("language", language)
        if key == "general.language":
            i18n.tell(None)  # A person's choice in the window is newer than the word of the command line.
        language = i18n.spoken(language)
        if i18n.pick_language(language) != self._language:
            self._language = i18n.install(language).language
            self.language_changed.emit(language)
            self.window.build()
        if not self._greeted and self.settings.loaded:
            self._greet()

    def _on_batch(self, batch: tuple[ev.Stamped, ...]) -> None:
        for stamped in batch:
            match stamped.event:
                case ev.AskRaised() if stamped.session and not self._in_view(stamped.session):
                    session = stamped.session
                    self.window.toasts.say(
                        tr("sessions.toast.waiting"), "info",
                        (tr("sessions.toast.show"), partial(self.show_chat, session)),
                    )  # fmt: skip

    def _in_view(self, session: str) -> bool:
        return self.page == "chats" and session == self.session

    def _toast_error(self, error: HostError) -> None:
        self.window.toasts.fail(error)
