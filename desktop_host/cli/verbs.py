"""Every verb of the command line and what it takes, as data: `VERBS` maps its words to its arguments."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Any

from desktop_host.cli.verbs_health import HEALTH
from desktop_host.cli.verbs_money import MONEY
from desktop_host.cli.verbs_servers import SERVERS
from desktop_host.cli.verbs_skills import SKILLS
from desktop_host.core.server_ports import Clash
from desktop_host.core.servers import Protocol, ServerScope

EFFORTS = ("low", "medium", "high", "xhigh", "max")


class Pair(argparse.Action):
    """Gather `K=V` of several options in the order they were written, as `(option, K, V)`."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option: str | None = None,
    ) -> None:
        key, equals, value = str(values).partition("=")
        if not equals or not key:
            parser.error(f"argument {option}: {values!r} is not KEY=VALUE")
        pairs: list[tuple[str, str, str]] = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, [*pairs, ((option or "").lstrip("-"), key, value)])


def _positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise ValueError(text)
        return value

    number.__name__ = "positive number"
    return number


_count = _positive(int)
_amount = _positive(float)


def _nothing(_p: ArgumentParser) -> None:
    """A verb without arguments of its own."""


def _words(*names: str) -> Callable[[ArgumentParser], None]:
    """A verb that takes just these words."""

    def build(p: ArgumentParser) -> None:
        for name in names:
            p.add_argument(name, metavar=name.upper())

    return build


def _profile_export(p: ArgumentParser) -> None:
    p.add_argument("name", metavar="NAME")
    p.add_argument("--output", metavar="FILE")


def _profile_import(p: ArgumentParser) -> None:
    p.add_argument("file", metavar="FILE")
    p.add_argument("--name", metavar="NAME")


def _engine_options(p: ArgumentParser) -> None:
    p.add_argument("--model", metavar="REF")
    p.add_argument("--mcp-config", metavar="FILE", action="append", default=[])
    p.add_argument("--with-profile-servers", action="store_true")
    p.add_argument("--no-servers", action="store_true")
    p.add_argument("--skills", metavar="DIR", action="append", default=[])
    p.add_argument("--skill", metavar="NAME", action="append", default=[])
    p.add_argument("--no-skills", action="store_true")
    p.add_argument("--system", metavar="TEXT")
    p.add_argument("--allow", metavar="GLOB", action="append", default=[])
    p.add_argument("--deny", metavar="GLOB", action="append", default=[])
    p.add_argument("--allow-sampling", metavar="ALIAS", action="append", default=[])
    p.add_argument("--answers", metavar="FILE")
    p.add_argument("--root", metavar="DIR", action="append", default=[])
    p.add_argument("--effort", choices=EFFORTS, metavar="LEVEL")
    p.add_argument("--max-steps", type=_count, metavar="N")
    p.add_argument("--budget", type=_amount, metavar="USD")
    p.add_argument("--token-budget", type=_count, metavar="N")
    p.add_argument("--timeout", type=_amount, metavar="S")


def _chat(p: ArgumentParser) -> None:
    p.add_argument("prompt_word", metavar="PROMPT", nargs="?")
    p.add_argument("--prompt", metavar="TEXT", action="append", default=[])
    p.add_argument("--session", metavar="ID")
    p.add_argument("--attach", metavar="FILE", action="append", default=[])
    p.add_argument("--cached", action="store_true")
    _engine_options(p)


def _demo(p: ArgumentParser) -> None:
    p.add_argument("--model", metavar="REF")
    p.add_argument("--screenshot", metavar="FILE")


def _resume(p: ArgumentParser) -> None:
    p.add_argument("session", metavar="ID")
    _engine_options(p)


def _export(p: ArgumentParser) -> None:
    p.add_argument("session", metavar="ID")
    p.add_argument("--format", choices=("json", "md", "html"), default="json")


def _rename(p: ArgumentParser) -> None:
    p.add_argument("session", metavar="ID")
    p.add_argument("text", metavar="TEXT")


def _session(p: ArgumentParser) -> None:
    p.add_argument("session", metavar="ID")


def _add(p: ArgumentParser) -> None:
    p.add_argument("name", metavar="NAME")
    p.add_argument("url", metavar="URL | -- COMMAND ARG…", nargs="?")
    p.add_argument("--env", metavar="K=V", action=Pair, dest="pairs")
    p.add_argument("--header", metavar="K=V", action=Pair, dest="pairs")
    p.add_argument("--cwd", metavar="D")
    p.add_argument("--scope", choices=[scope.value for scope in ServerScope], default="profile")
    p.add_argument("--protocol", choices=[protocol.value for protocol in Protocol], default="auto")
    p.add_argument("--transport", choices=("http", "sse"))


def _server_import(p: ArgumentParser) -> None:
    p.add_argument("file", metavar="FILE | - | LINK", nargs="?")
    p.add_argument("--from", metavar="APP", dest="source_app")
    p.add_argument("--clash", choices=[clash.value for clash in Clash], default="rename")
    p.add_argument("--set", metavar="K=V", action=Pair, dest="values")


def _tools_list(p: ArgumentParser) -> None:
    p.add_argument("server", metavar="SERVER", nargs="?")


def _tools_call(p: ArgumentParser) -> None:
    p.add_argument("server", metavar="SERVER")
    p.add_argument("tool", metavar="TOOL")
    p.add_argument("--args", metavar="JSON", default="{}")


def _watch(p: ArgumentParser) -> None:
    p.add_argument("server", metavar="SERVER")
    p.add_argument("uri", metavar="URI")
    p.add_argument("--count", type=_count, metavar="N")
    p.add_argument("--timeout", type=_amount, metavar="S")


def _prompt_get(p: ArgumentParser) -> None:
    p.add_argument("server", metavar="SERVER")
    p.add_argument("name", metavar="NAME")
    p.add_argument("--args", metavar="JSON", default="{}")


def _settings_get(p: ArgumentParser) -> None:
    p.add_argument("key", metavar="KEY", nargs="?")


def _knowledge_serve(p: ArgumentParser) -> None:
    p.add_argument("--stdio", action="store_true")
    p.add_argument("--http", metavar="HOST:PORT")
    p.add_argument("--folder", metavar="DIR", action="append", default=[])
    p.add_argument("--tools", metavar="GLOB", action="append", default=[])
    p.add_argument("--chain", metavar="FILE")
    p.add_argument("--tenants", metavar="FILE")
    p.add_argument("--tenant", metavar="NAME")
    p.add_argument("--semantic", action="store_true")


def _knowledge_index(p: ArgumentParser) -> None:
    p.add_argument("directory", metavar="DIR")


def _knowledge_search(p: ArgumentParser) -> None:
    p.add_argument("text", metavar="TEXT")
    p.add_argument("--folder", metavar="DIR", action="append", default=[])
    p.add_argument("--top-k", type=_count, metavar="N")


def _serve(p: ArgumentParser) -> None:
    p.add_argument("--stdio", action="store_true")
    p.add_argument("--http", metavar="HOST:PORT")
    p.add_argument("--allow", metavar="GLOB", action="append", default=[])
    p.add_argument("--key", metavar="NAME=GLOB", action=Pair, dest="keys")


def _server_new(p: ArgumentParser) -> None:
    p.add_argument("name", metavar="NAME")
    p.add_argument("--in", metavar="DIR", default=".", dest="parent")


VERBS: dict[tuple[str, ...], Callable[[ArgumentParser], None]] = {
    ("chat",): _chat,
    ("demo",): _demo,
    ("sessions", "list"): _nothing,
    ("sessions", "show"): _session,
    ("sessions", "search"): _words("text"),
    ("sessions", "export"): _export,
    ("sessions", "import"): _words("file"),
    ("sessions", "resume"): _resume,
    ("sessions", "rename"): _rename,
    ("sessions", "delete"): _session,
    ("servers", "list"): _nothing,
    ("servers", "add"): _add,
    ("servers", "remove"): _words("name"),
    ("servers", "enable"): _words("name"),
    ("servers", "disable"): _words("name"),
    ("servers", "start"): _words("name"),
    ("servers", "stop"): _words("name"),
    ("servers", "restart"): _words("name"),
    ("servers", "login"): _words("name"),
    ("servers", "logout"): _words("name"),
    ("servers", "import"): _server_import,
    ("servers", "found"): _nothing,
    **SERVERS,
    ("servers", "export"): _nothing,
    ("servers", "test"): _words("name"),
    ("servers", "logs"): _words("name"),
    ("servers", "trace"): _words("name"),
    ("servers", "new"): _server_new,
    ("tools", "list"): _tools_list,
    ("tools", "call"): _tools_call,
    ("resources", "list"): _words("server"),
    ("resources", "read"): _words("server", "uri"),
    ("resources", "watch"): _watch,
    ("prompts", "list"): _words("server"),
    ("prompts", "get"): _prompt_get,
    ("skills", "list"): _nothing,
    ("skills", "show"): _words("name"),
    ("skills", "install"): _words("path"),
    ("skills", "remove"): _words("name"),
    ("skills", "match"): _words("text"),
    ("skills", "versions"): _words("name"),
    **SKILLS,
    ("models", "list"): _nothing,
    ("models", "get"): _words("name"),
    ("models", "remove"): _words("name"),
    **MONEY,
    ("profiles", "list"): _nothing,
    ("profiles", "create"): _words("name"),
    ("profiles", "delete"): _words("name"),
    ("profiles", "clone"): _words("name", "new"),
    ("profiles", "export"): _profile_export,
    ("profiles", "import"): _profile_import,
    ("secrets", "set"): _words("name"),
    ("secrets", "list"): _nothing,
    ("secrets", "delete"): _words("name"),
    ("secrets", "status"): _nothing,
    ("settings", "get"): _settings_get,
    ("settings", "set"): _words("key", "value"),
    ("settings", "schema"): _nothing,
    **HEALTH,
    ("serve",): _serve,
    ("knowledge", "serve"): _knowledge_serve,
    ("knowledge", "index"): _knowledge_index,
    ("knowledge", "search"): _knowledge_search,
    ("knowledge", "key"): _nothing,
}
"""The words of a verb to what builds its arguments."""

GROUPS: dict[str, tuple[str, ...]] = {}
"""Verbs that need an action, and their actions in the order of the help."""
for _verb in VERBS:
    if len(_verb) == 2:
        GROUPS[_verb[0]] = (*GROUPS.get(_verb[0], ()), _verb[1])
