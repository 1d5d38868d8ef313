"""The command line face: words to a verb, the verb on an open host, its result to an exit code."""

from __future__ import annotations

import asyncio
import errno
import logging
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from importlib import import_module

from desktop_host import i18n
from desktop_host.cli.arguments import parse
from desktop_host.cli.context import INTERRUPTED, Rescue, Run, ServeGateway, Verb
from desktop_host.cli.output import Output, silence, utf8
from desktop_host.cli.profiles import profiles_verb
from desktop_host.cli.signals import ENDING, On
from desktop_host.core.errors import HostError
from desktop_host.core.profiles import ProfilesPort
from desktop_host.core.settings import not_used
from desktop_host.engine.host import HeadlessPolicy, HostSpec, Opener

_log = logging.getLogger(__name__)

_MODULES = {
    "chat": "chat", "sessions": "sessions", "servers": "servers", "tools": "tools", "resources": "tools",
    "prompts": "tools", "models": "models", "usage": "models", "route": "route", "secrets": "secrets",
    "settings": "settings",
    "doctor": "settings", "serve": "serve", "skills": "skills", "servers login": "signing", "servers logout": "signing",
    "servers new": "server_new", "skills served": "skills_served", "skills approve": "skills_served",
    "skills revoke": "skills_served",
}  # fmt: skip
"""Verb, or verb and action, to the module of this room that does it; imported when asked for."""

__all__ = ["parse", "run"]


def run(
    argv: list[str],
    opener: Opener,
    *,
    profiles: ProfilesPort | None = None,
    knowledge: Callable[[Namespace], int] | None = None,
    demo: Callable[[Namespace], int] | None = None,
    gateway: ServeGateway | None = None,
    rescue: Rescue | None = None,
) -> int:
    """Do what the command line says and return its exit code.

    Args:
        argv: the words without the program's name.
        opener: opens a host.
        profiles: where profiles are kept, for the verb `profiles`.
        knowledge: runs the bundled knowledge server; None: this room starts it.
        demo: the main job in one command.
        gateway: serves a host to other hosts.
        rescue: writes the report of a profile that cannot be opened.
    """
    utf8()
    try:
        ns = parse(argv)
    except HostError as error:
        words = argv[: argv.index("--")] if "--" in argv else argv
        return _failed(Output("--json" in words), error)
    out = Output(ns.json)
    i18n.install(ns.lang or "system")
    try:
        if ns.verb == "demo":
            if demo is None:
                raise HostError("bug", "this build has no demo")
            return demo(ns)
        if ns.verb == "knowledge":
            from desktop_host.cli.knowledge import serve

            return (knowledge or serve)(ns)
        with asyncio.Runner() as runner:
            if ns.verb == "profiles":
                return runner.run(profiles_verb(ns, out, profiles))
            return runner.run(_hosted(ns, out, opener, gateway, rescue))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        silence()
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return _crashed(out, error)
        silence()
        sys.stderr.write(f"desktop-host: {i18n.Translator(i18n.current().language).error('disk_full', {})[0]}\n")
        return 5
    except BaseExceptionGroup as group:
        return _grouped(out, group)
    except HostError as error:
        return _failed(out, error)
    except Exception as error:
        return _crashed(out, error)


async def _hosted(
    ns: Namespace, out: Output, opener: Opener, gateway: ServeGateway | None, rescue: Rescue | None
) -> int:
    """Open the host and do the verb on it."""
    task = asyncio.current_task()
    assert task is not None
    opened = False
    with On(ENDING, task.cancel):
        try:
            async with opener(host_spec(ns)) as host:
                opened = True
                if ns.lang is None:
                    i18n.install(host.settings.current().general.language)
                if ns.log_level is not None:
                    logging.getLogger("desktop_host").setLevel(ns.log_level.upper())
                if ns.verb != "doctor" and (unused := not_used(host.settings.problems())):
                    out.note("\n  ".join(i18n.error_text(unused)))
                return await _logged(verb_of(ns)(Run(ns, host, out, gateway=gateway)))
        except asyncio.CancelledError:
            return INTERRUPTED
        except HostError as error:
            if ns.verb != "doctor" or opened:
                raise
            from desktop_host.cli.settings import not_opened

            return await not_opened(out, error, host_spec(ns), ns.report, rescue)


async def _logged(work: Awaitable[int]) -> int:
    """Put a bug into the profile's log while that is still open."""
    try:
        return await work
    except (HostError, OSError, BaseExceptionGroup):
        raise
    except Exception as error:
        _log.exception("the command line failed")
        raise HostError("bug", f"{type(error).__name__}: {error}") from error


def host_spec(ns: Namespace) -> HostSpec:
    """What to open for a verb. Where nobody watches, what no policy covers is refused.

    Raises:
        UserFault: words that do not fit together, or an answers file that cannot be read.
    """
    from desktop_host.cli.options import check_prompts, expanded, read_answers
    from desktop_host.cli.server_add import check_server

    if ns.verb == "chat":
        check_prompts(ns)
    elif (ns.verb, ns.action) == ("servers", "add"):
        check_server(ns)
    if ns.verb is None or ns.action == "login":  # A person is there to answer.
        return HostSpec(expanded(ns.home), ns.profile)
    if not hasattr(ns, "mcp_config"):
        own = ns.verb in ("settings", "secrets")
        return HostSpec(expanded(ns.home), ns.profile, HeadlessPolicy(), own_record=own)
    return HostSpec(
        home=expanded(ns.home),
        profile=ns.profile,
        headless=HeadlessPolicy(read_answers(ns.answers) if ns.answers else (), frozenset(ns.allow_sampling)),
        mcp_config=tuple(path for name in ns.mcp_config if (path := expanded(name))),
        with_profile_servers=ns.with_profile_servers or not ns.mcp_config,
        skill_folders=tuple(path for name in ns.skills if (path := expanded(name))),
    )


def verb_of(ns: Namespace) -> Verb:
    """The function of a verb."""
    if ns.verb is None:
        from desktop_host.cli.interactive import converse

        return converse
    name = _MODULES.get(f"{ns.verb} {ns.action}") or _MODULES[ns.verb]
    module = import_module(f"desktop_host.cli.{name}")
    verb: Verb = module.VERBS[(ns.verb, ns.action)]
    return verb


def _failed(out: Output, error: HostError) -> int:
    try:
        out.error(error)
    except BrokenPipeError:
        silence()
    return error.exit_code


def _grouped(out: Output, group: BaseExceptionGroup[BaseException]) -> int:
    """The one thing that a person should hear of several failures: a named one before a bug."""
    leaves = list(_leaves(group))
    for error in leaves:
        if isinstance(error, HostError):
            return _failed(out, error)
    if any(isinstance(error, BrokenPipeError) for error in leaves):
        silence()
        return 1
    if all(isinstance(error, KeyboardInterrupt | asyncio.CancelledError) for error in leaves):
        return INTERRUPTED
    return _crashed(out, group)


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _crashed(out: Output, error: BaseException) -> int:
    _log.error("the command line failed", exc_info=error)
    return _failed(out, HostError("bug", f"{type(error).__name__}: {error}"))
