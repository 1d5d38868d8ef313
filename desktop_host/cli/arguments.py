"""The words of the command line to a namespace: common options anywhere, one small parser for the verb asked for.

Only the parser of the verb that was named is built, so opening the window costs nothing. Options may stand
before or after the words they belong to; after `--` everything is a word.
"""

from __future__ import annotations

import argparse
import difflib
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any, NoReturn

from desktop_host import __version__
from desktop_host.cli.verbs import GROUPS, VERBS
from desktop_host.core.errors import UserFault
from desktop_host.i18n import install, tr

LEVELS = ("debug", "info", "warning", "error")
_DEFAULTS: dict[str, Any] = {"home": None, "profile": "default", "lang": None, "json": False, "log_level": None}
_TAKES_VALUE = ("--home", "--profile", "--lang", "--log-level")
_HELP = ("-h", "--help")
_NEGATIVE = re.compile(r"-\d+(\.\d+)?")


class _Help(argparse.HelpFormatter):
    """The words around a verb's options, in the person's language."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, prefix if prefix is not None else tr("cli.help.usage_word") + " ")


class _Parser(ArgumentParser):
    """A parser whose complaints are `usage` faults and whose option texts come from the locale."""

    def error(self, message: str) -> NoReturn:
        raise UserFault("usage", message, verb=self.prog.partition(" ")[2], usage=self.format_usage().strip(),
                        **_complaint(message))  # fmt: skip

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        action = super().add_argument(*names, **settings)
        if action.help is None and action.dest != "help":
            action.help = tr(f"cli.option.{action.dest}").replace("%", "%%")
        return action


_COMPLAINTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (reason, re.compile(pattern))
    for reason, pattern in (
        ("missing_words", r"the following arguments are required: (?P<names>.+)"),
        ("unknown_words", r"unrecognized arguments: (?P<words>.+)"),
        ("no_option_value", r"argument (?P<option>\S+): expected (?:one|at least one) argument"),
        ("bad_choice", r"argument (?P<option>.+?): invalid choice: (?P<value>.+) \(choose from (?P<choices>.+)\)"),
        ("bad_number", r"argument (?P<option>.+?): invalid positive number value: (?P<value>.+)"),
        ("bad_pair", r"argument (?P<option>.+?): (?P<value>.+) is not KEY=VALUE"),
        ("contradiction", r"argument (?P<options>.+): not allowed with argument (?P<other>.+)"),
    )
)
"""What `argparse` complains of, to the reason that has a text in each language."""


def _complaint(message: str) -> dict[str, Any]:
    """The reason of one of `argparse`'s complaints and its parts; empty for one that has no text here."""
    for reason, pattern in _COMPLAINTS:
        if found := pattern.fullmatch(message):
            parts = {name: value.replace("'", "") for name, value in found.groupdict().items()}
            return {"reason": reason, **parts}
    return {}


def parse(argv: Sequence[str]) -> Namespace:
    """Read the words of a command line (without the program's name).

    The namespace has `verb` (None: open the window), `action` (None where the verb has none), the common
    options `home, profile, lang, json, log_level`, and what the verb itself takes.

    Raises:
        UserFault: `usage`.
        SystemExit: 0, after `--help` or `--version` was printed.
    """
    _speak(argv)
    common, words, rest = _verb(list(argv))
    parser = _Parser(
        prog=" ".join(["desktop-host", *words]), allow_abbrev=False, add_help=bool(words), formatter_class=_Help
    )
    parser._positionals.title, parser._optionals.title = tr("cli.help.words"), tr("cli.help.options")
    parser.add_argument("--home", metavar="DIR", default=argparse.SUPPRESS)
    parser.add_argument("--profile", metavar="NAME", default=argparse.SUPPRESS)
    parser.add_argument("--lang", choices=("en", "zh_CN"), default=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS)
    parser.add_argument(
        "--log-level", type=str.lower, choices=LEVELS, metavar="LEVEL", default=argparse.SUPPRESS, dest="log_level"
    )
    if words:
        parser.description = tr("cli.verb." + ".".join(words))
        VERBS[words](parser)
    command: list[str] | None = None
    if words == ("servers", "add") and "--" in rest:
        at = rest.index("--")
        rest, command = rest[:at], rest[at + 1 :]
    ns = parser.parse_args(_options_first(parser, [*common, *rest]))
    for name, value in _DEFAULTS.items():
        if not hasattr(ns, name):
            setattr(ns, name, value)
    ns.verb = words[0] if words else None
    ns.action = words[1] if len(words) > 1 else None
    if words == ("servers", "add"):
        ns.command = command
    return ns


def _speak(argv: Sequence[str]) -> None:
    """Let help and complaints about the words themselves come in the language asked for."""
    for at, word in enumerate(argv):
        if word == "--":
            return
        if word == "--lang" and at + 1 < len(argv):
            install(argv[at + 1])
        elif word.startswith("--lang="):
            install(word.partition("=")[2])


def _verb(argv: list[str]) -> tuple[list[str], tuple[str, ...], list[str]]:
    """Split into the common options that came first, the words of the verb, and the rest."""
    common: list[str] = []
    words: tuple[str, ...] = ()
    at = 0
    while at < len(argv):
        word = argv[at]
        if word in _TAKES_VALUE:
            common += argv[at : at + 2]
            at += 2
        elif word == "--json" or word.startswith(tuple(f"{option}=" for option in _TAKES_VALUE)):
            common.append(word)
            at += 1
        elif word in _HELP:
            print(_overview(words[0] if words else None))
            raise SystemExit(0)
        elif word == "--version" and not words:
            print(f"desktop-host {__version__}")
            raise SystemExit(0)
        elif word.startswith("-"):
            if words:
                raise _incomplete(words[0])
            raise UserFault("usage", f"unknown option {word}", reason="unknown_option", option=word)
        else:
            words = (*words, word)
            at += 1
            if words in VERBS:
                return common, words, argv[at:]
            if words[0] not in GROUPS or len(words) == 2:
                raise _unknown(words)
    if words:
        raise _incomplete(words[0])
    return common, (), []


def _incomplete(group: str) -> UserFault:
    actions = ", ".join(GROUPS[group])
    return UserFault("usage", f"{group} needs one of: {actions}", reason="incomplete_verb", verb=group, choices=actions)


def _unknown(words: tuple[str, ...]) -> UserFault:
    choices = list(GROUPS[words[0]]) if len(words) == 2 else list(dict.fromkeys(verb[0] for verb in VERBS))
    verb = " ".join(words)
    close = difflib.get_close_matches(words[-1], choices, 1)
    if close:
        nearest = " ".join([*words[:-1], close[0]])
        return UserFault(
            "usage", f"there is no verb {verb!r}; nearest: {nearest}", reason="unknown_verb", verb=verb, nearest=nearest
        )
    listed = ", ".join(choices)
    return UserFault(
        "usage", f"there is no verb {verb!r}; there are: {listed}", reason="unknown_verb", verb=verb, choices=listed
    )


def _options_first(parser: ArgumentParser, tokens: list[str]) -> list[str]:
    """Put options before words, and join each with its value, so that any order and any value can be read."""
    known = parser._option_string_actions
    options: list[str] = []
    words: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token == "--":
            words += tokens[at:]
            break
        if not token.startswith("-") or token == "-" or (_NEGATIVE.fullmatch(token) and token not in known):
            words.append(token)
            continue
        action = known.get(token)
        if action is not None and action.nargs is None and at < len(tokens) and tokens[at] not in known:
            options.append(f"{token}={tokens[at]}")
            at += 1
        else:
            options.append(token)
    return [*options, "--", *words] if words else options


def _overview(group: str | None) -> str:
    """What `--help` says above the single verbs."""
    shown = [verb for verb in VERBS if group in (None, verb[0])]
    width = max(18, *(len(" ".join(verb)) for verb in shown)) + 2
    lines = [tr("cli.help.usage", verb=f"{group} " if group else ""), ""]
    lines += [f"  {' '.join(verb):<{width}}{tr('cli.verb.' + '.'.join(verb))}" for verb in shown]
    lines += ["", tr("cli.help.common")]
    for option, dest in (
        ("--home DIR", "home"), ("--profile NAME", "profile"), ("--lang en|zh_CN", "lang"), ("--json", "json"),
        ("--log-level LEVEL", "log_level"), ("--version", "version"),
    ):  # fmt: skip
        lines.append(f"  {option:<{width}}{tr('cli.option.' + dest)}")
    return "\n".join(lines)
