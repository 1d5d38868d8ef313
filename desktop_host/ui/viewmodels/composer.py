"""What `/` and `@` offer while a message is typed: prompts, skills and resources, with the arguments they need."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_host.core.errors import HostError
from desktop_host.core.events import LibraryChanged, ServerChanged, Stamped
from desktop_host.core.messages import Audio, ContentBlock, EmbeddedResource, Image, Message, ResourceLink, Role, Text
from desktop_host.core.servers import PromptArgument, PromptSpec, ResourceSpec
from desktop_host.core.uri_template import expand, variables
from desktop_host.core.values import FrozenDict
from desktop_host.engine.host import Host, InputFile, UserInput
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.viewmodels.choices import Choices

log = logging.getLogger(__name__)

TRIGGER = re.compile(r"(?:^(?P<slash>/)|(?:^|(?<=\s))(?P<at>@))(?P<word>[^\s/@]*(?:/[^\s@]*)?)$")
"""`/` at the very start, `@` at the start of a word, both with what was typed after it, at the caret."""
MOST = 60
"""Rows of a list; typing narrows it."""
COMPLETE_MS = 180


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that can be put into a message."""

    kind: str
    """`prompt`, `skill`, `resource` or `template`."""
    name: str
    title: str
    detail: str
    server: str = ""
    ref: str = ""
    """What completion is asked by: the prompt's name or the template's URI."""
    arguments: tuple[PromptArgument, ...] = ()

    @property
    def words(self) -> str:
        """What typing is compared with."""
        return f"{self.name} {self.title} {self.server}".casefold()


@dataclass(frozen=True, slots=True)
class ResourceFile(InputFile):
    """A resource that goes with a message; it is read when the message is sent, under its own address."""

    server: str = ""
    uri: str = ""


def message(text: str, files: tuple[InputFile, ...]) -> UserInput:
    """What is sent: files as they are, resources by their addresses."""
    resources = tuple((f.server, f.uri) for f in files if isinstance(f, ResourceFile))
    return UserInput(text, tuple(f for f in files if not isinstance(f, ResourceFile)), resources)


@dataclass(frozen=True, slots=True)
class Filled:
    """What a prompt or resource gave, for the composer: the person sees it before it is sent."""

    text: str = ""
    files: tuple[InputFile, ...] = ()


class Offers(QObject):
    """The offers of the open chat; read when first wanted, again after a server's lists changed."""

    changed = Signal()
    filled = Signal(object)
    """`Filled`."""
    completed = Signal(str, object)
    """`(argument, tuple[str, ...])`."""
    failed = Signal(object)

    def __init__(self, bridge: Bridge, choices: Choices, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._choices = choices
        self._offers: dict[str, tuple[Offer, ...]] = {}
        self.reading: set[str] = set()
        """`/` or `@`: being read."""
        self._asked: tuple[Offer, str, str, dict[str, str]] | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(COMPLETE_MS)
        self._timer.timeout.connect(self._ask_completion)
        bridge.batch.connect(self._take)
        self._asked_of: dict[str, list[str]] = {}
        """Servers whose offers are known, or being read."""
        choices.servers_changed.connect(self._other_servers)

    def matching(self, sign: str, typed: str) -> tuple[Offer, ...]:
        """What fits, best first; asks the servers when nothing is known yet (`changed` follows)."""
        if sign not in self._offers:
            self._read(sign)
            return ()
        return ranked(self._offers[sign], typed)

    def _read(self, sign: str) -> None:
        if sign in self.reading:
            return
        self.reading.add(sign)
        aliases = self._asked_of[sign] = self._aliases()
        titles = {s.alias: s.title for s in self._choices.servers}

        def done(found: tuple[Offer, ...]) -> None:
            self.reading.discard(sign)
            if aliases == self._aliases():
                self._offers[sign] = found
            self.changed.emit()

        def failed(error: HostError) -> None:
            self.reading.discard(sign)
            self.failed.emit(error)

        read = _prompts_and_skills if sign == "/" else _resources
        self._bridge.then(lambda h: read(h, aliases, titles), done, failed, self)

    def _aliases(self) -> list[str]:
        return [s.alias for s in self._choices.servers if s.on and s.state == "ready"]

    def _other_servers(self) -> None:
        """Other servers offer other things, also to somebody who has typed the sign already."""
        self._offers.clear()
        now = self._aliases()
        if any(asked != now for asked in self._asked_of.values()):
            self.changed.emit()

    def _take(self, events: tuple[Stamped, ...]) -> None:
        if any(isinstance(s.event, ServerChanged | LibraryChanged) for s in events):
            self._offers.clear()

    # ---- arguments

    def complete(self, offer: Offer, argument: str, typed: str, others: dict[str, str]) -> None:
        """Ask the server what an argument could be, once typing pauses; `completed` follows where it says."""
        self._asked = (offer, argument, typed, others)
        self._timer.start()

    def _ask_completion(self) -> None:
        if self._asked is None:
            return
        offer, argument, typed, others = self._asked
        known = FrozenDict({k: v for k, v in others.items() if v})

        async def ask(host: Host) -> tuple[str, ...]:
            servers: Any = host.servers
            return tuple((await servers.complete(offer.server, offer.ref, argument, typed, known)).values)

        self._bridge.then(ask, lambda found: self.completed.emit(argument, found), self.failed.emit, self)

    # ---- taking one

    def fill(self, offer: Offer, values: dict[str, str], failed: Callable[[HostError], None]) -> None:
        """Get what a prompt gives for these arguments, or attach a resource; `filled` follows."""
        if offer.kind != "prompt":
            uri = expand(offer.ref, values) if offer.kind == "template" else offer.ref
            name = offer.title if offer.kind == "resource" else uri
            self.filled.emit(Filled(files=(ResourceFile(name, "text/uri-list", b"", offer.server, uri),)))
            return
        given = FrozenDict({k: v for k, v in values.items() if v})

        async def get(host: Host) -> Filled:
            return from_prompt(await host.servers.get_prompt(offer.server, offer.name, given))

        self._bridge.then(get, self.filled.emit, failed, self)


async def _prompts_and_skills(host: Host, aliases: list[str], titles: dict[str, str]) -> tuple[Offer, ...]:
    found = []
    for alias in aliases:
        try:
            prompts = await host.servers.prompts(alias)
        except HostError:
            log.warning("no prompts of %s", alias, exc_info=True)
            continue
        found += [_prompt(p, titles.get(alias, alias)) for p in prompts]
    try:
        skills: Any = host.skills
    except RuntimeError:  # put together without a library
        return tuple(found)
    for row in await skills.skills():
        if row.state in ("ok", "warning"):
            found.append(Offer("skill", row.name, row.label or row.name, row.description, ref=row.name))
    return tuple(found)


async def _resources(host: Host, aliases: list[str], titles: dict[str, str]) -> tuple[Offer, ...]:
    found = []
    for alias in aliases:
        try:
            resources = await host.servers.resources(alias)
        except HostError:
            log.warning("no resources of %s", alias, exc_info=True)
            continue
        found += [_resource(r, titles.get(alias, alias)) for r in resources]
    return tuple(found)


def _prompt(p: PromptSpec, server: str) -> Offer:
    detail = f"{server}  ·  {p.description}" if p.description else server
    return Offer("prompt", p.name, p.title or p.name, detail, p.server, p.name, p.arguments)


def _resource(r: ResourceSpec, server: str) -> Offer:
    detail = f"{server}  ·  {r.uri}"
    if not r.template:
        return Offer("resource", r.name, r.title or r.name, detail, r.server, r.uri)
    holes = tuple(PromptArgument(name, required=True) for name in variables(r.uri))
    return Offer("template", r.name, r.title or r.name, detail, r.server, r.uri, holes)


def ranked(offers: tuple[Offer, ...], typed: str) -> tuple[Offer, ...]:
    """Names that begin so, then words that begin so, then any that hold it; in the servers' order otherwise."""
    query = typed.casefold()
    if not query:
        return offers[:MOST]
    scored = []
    for at, offer in enumerate(offers):
        name = offer.name.casefold()
        rank = 0 if name.startswith(query) else 1 if f" {query}" in f" {offer.words}" else 2
        if query in offer.words or query in offer.detail.casefold():
            scored.append((rank, at, offer))
    return tuple(offer for _, _, offer in sorted(scored, key=lambda s: s[:2]))[:MOST]


def from_prompt(messages: tuple[Message, ...]) -> Filled:
    """A prompt's messages as one text and files. A conversation of several roles names who speaks."""
    files: list[InputFile] = []
    parts: list[str] = []
    several = any(m.role is Role.ASSISTANT for m in messages)
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Text):
                who = "Assistant: " if message.role is Role.ASSISTANT else "User: "
                parts.append(f"{who}{block.text}" if several else block.text)
            elif isinstance(block, ResourceLink):
                parts.append(f"{block.title or block.name}: {block.uri}")
            else:
                files.append(_file(block, ""))
    return Filled("\n\n".join(parts), tuple(files))


def _file(block: ContentBlock, title: str) -> InputFile:
    match block:
        case Text(text=text):
            return InputFile(title or "text.txt", "text/plain", text.encode())
        case Image(data=data, mime_type=mime) | Audio(data=data, mime_type=mime):
            name = title or f"attachment.{mime.rpartition('/')[2]}"
            return InputFile(name, mime, base64.b64decode(data))
        case EmbeddedResource(uri=uri, text=str(text)):
            return InputFile(_name(uri), block.mime_type or "text/plain", text.encode())
        case EmbeddedResource(uri=uri):
            return InputFile(
                _name(uri), block.mime_type or "application/octet-stream", base64.b64decode(block.blob or "")
            )
        case ResourceLink(uri=uri):
            return InputFile(title or block.name, "text/uri-list", uri.encode())
    raise TypeError(f"no file of a {type(block).__name__}")


def _name(uri: str) -> str:
    return uri.rstrip("/").rpartition("/")[2] or uri
