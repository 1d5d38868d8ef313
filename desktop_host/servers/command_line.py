"""A pasted command line or URL as a server's entry, and what to call a server that has no name."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from desktop_host.core.errors import UserFault

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_DRIVE = re.compile(r"(?:^|[\s\"'=])[A-Za-z]:\\|\\\\\w")
_SHELL_VARIABLE = re.compile(r"\$([A-Z_][A-Z0-9_]*)")
_HOSTS = frozenset({"claude", "codex", "gemini", "qwen", "copilot"})
"""Programs of other hosts that add a server by `mcp add`."""
_OPERATORS = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"})
_LAUNCHERS = frozenset({"npx", "uvx", "bunx", "pipx", "pnpm", "yarn", "npm", "bun", "uv", "deno", "docker", "podman"})
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish", "cmd", "powershell", "pwsh"})
_INTERPRETERS = frozenset({"python", "python3", "node", "perl", "ruby", "php"})
_RUNS_CODE = re.compile(r"-[a-z]*c|/[ck]|-(command|encodedcommand|enc|e)|--(eval|command|init-command)", re.IGNORECASE)
_VALUED = frozenset({"-p", "--package", "--from", "--with", "-e", "--env", "-v", "--volume", "--name", "--network"})
_PLAIN_FOLDERS = frozenset({"", "/", ".", "..", "build", "dist", "src", "bin", "out", "lib"})


def split_words(text: str) -> list[str]:
    """Split as a shell would: quotes honoured, empty arguments kept; backslashes of Windows paths stay.

    Raises:
        UserFault: `bad_config`, a quote is not closed.
    """
    lexer = shlex.shlex(text.replace("\\\n", " ").replace("\\\r\n", " "), posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if _DRIVE.search(text):
        lexer.escape = ""
    try:
        return list(lexer)
    except ValueError:
        at = max(text.rfind('"'), text.rfind("'"), 0)
        raise UserFault(
            "bad_config", "a quote is not closed", reason="bad_quotes",
            line=text.count("\n", 0, at) + 1, column=at - text.rfind("\n", 0, at), excerpt=text[at : at + 1] + "…",
        ) from None  # fmt: skip


def entry_of_line(line: str) -> dict[str, Any]:
    """The entry for a command line such as `KEY=V npx -y pkg ~/x`; `$NAME` and `~/` become placeholders.

    Raises:
        UserFault: `bad_config`; `shell_syntax` where only a shell could run it; `loose_brace` for half a JSON text.
    """
    words = split_words(line.strip().removeprefix("$ "))
    if words[:1] == ["env"] and len(words) > 1 and _ASSIGNMENT.fullmatch(words[1]):
        words = words[1:]
    env: dict[str, str] = {}
    while words and (found := _ASSIGNMENT.fullmatch(words[0])):
        env[found[1]] = _shell_names(found[2])
        words = words[1:]
    if not words or not words[0]:
        raise UserFault("bad_config", "no command was found", reason="no_command", line=1, column=1)
    operator = next((w for w in words if w in _OPERATORS or w.endswith(";")), None)
    if operator is not None:
        raise UserFault(
            "bad_config", f"{operator!r} needs a shell; a server is started without one",
            reason="shell_syntax", line=1, column=line.find(operator) + 1, excerpt=operator,
        )  # fmt: skip
    if (at := _loose_brace(line)) is not None:
        raise UserFault(
            "bad_config", "a curly bracket has no partner: this is half of a JSON text, not a command line",
            reason="loose_brace", line=1, column=at + 1, excerpt=line[at],
        )  # fmt: skip
    if len(words) > 4 and words[0] in _HOSTS and words[1:3] == ["mcp", "add"]:
        return _told_to_another_host(words[3:])
    entry: dict[str, Any] = {"command": _shell_names(words[0]), "args": [_shell_names(w) for w in words[1:]]}
    return entry | ({"env": env} if env else {})


def _loose_brace(line: str) -> int | None:
    """Where a curly bracket stands without its partner; JSON arguments and `${NAME}` have theirs."""
    open_: list[int] = []
    for found in re.finditer(r"[{}]", line):
        if found[0] == "{":
            open_.append(found.start())
        elif open_:
            open_.pop()
        else:
            return found.start()
    return open_[0] if open_ else None


def _told_to_another_host(words: list[str]) -> dict[str, Any]:
    """`claude mcp add NAME --transport http URL` and its like, which READMEs print: the server that is meant."""
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    plain: list[str] = []
    kind = ""
    rest = iter(words)
    for word in rest:
        if len(plain) > 1 and not is_url(plain[1]):
            plain.append(word)
        elif word == "--":
            plain += rest
        elif word in ("-t", "--transport"):
            kind = next(rest, "")
        elif word in ("-e", "--env"):
            name, _, value = next(rest, "").partition("=")
            env[name] = _shell_names(value)
        elif word in ("-H", "--header"):
            name, _, value = next(rest, "").partition(":")
            headers[name.strip()] = _shell_names(value.strip())
        elif word in ("-s", "--scope"):
            next(rest, "")
        elif not word.startswith("-"):
            plain.append(word)
    if len(plain) < 2:
        raise UserFault("bad_config", "no command was found", reason="no_command", line=1, column=1)
    entry: dict[str, Any] = {"name": plain[0]}
    if is_url(plain[1]):
        entry |= {"url": plain[1], "headers": headers}
        return entry | ({"type": kind} if kind in ("http", "sse") else {})
    return entry | {"command": _shell_names(plain[1]), "args": [_shell_names(w) for w in plain[2:]], "env": env}


def _shell_names(word: str) -> str:
    word = "${HOME}" + word[1:] if word == "~" or word.startswith("~/") else word
    return _SHELL_VARIABLE.sub(r"${\1}", word)


def is_url(text: str) -> bool:
    """Whether the text is one http(s) URL."""
    return re.fullmatch(r"(?i)https?://\S+", text) is not None


def name_for(entry: dict[str, Any]) -> str:
    """A name for a server that came without one: its package, script, image or host."""
    url = entry.get("url")
    if isinstance(url, str):
        try:
            labels = [x for x in (urlsplit(url).hostname or "").split(".") if x not in ("www", "mcp", "api")]
        except ValueError:
            labels = []
        return labels[0] if labels and not labels[0].isdigit() else "remote"
    command, args = str(entry.get("command", "")), [str(a) for a in entry.get("args") or ()]
    base = program(command)
    subject = command
    if base in _LAUNCHERS | _INTERPRETERS or base.startswith("python"):
        if "-m" in args[:-1]:
            subject = args[args.index("-m") + 1].replace(".", "-")
        else:
            plain = [a for n, a in enumerate(args) if a and a[0] != "-" and (n == 0 or args[n - 1] not in _VALUED)]
            plain = [a for a in plain if a not in ("run", "exec", "dlx", "x", "tool", "--")]
            subject = plain[0] if plain else base
    return _short(subject)


def _short(subject: str) -> str:
    path = PurePosixPath(re.sub(r"\$\{[^}]*\}", "", subject).replace("\\", "/"))
    parts = [re.sub(r"\.(js|mjs|cjs|ts|py|exe|cmd|bat|sh)$", "", path.name), *reversed(path.parts[:-1])]
    if parts[0] in ("index", "main", "server", "__main__", "cli"):
        parts = [p for p in parts[1:] if p not in _PLAIN_FOLDERS] or parts
    name = re.sub(r"(?<=.)[@:][^@:]*$", "", parts[0]).lstrip("@")
    short = re.sub(r"^(mcp[-_])?server[-_]|^mcp[-_]|[-_]mcp([-_]server)?$|[-_]server$", "", name)
    return short or name or "server"


def program(command: str) -> str:
    """The bare name of a program: `/usr/bin/node` and `Node.EXE` are `node`."""
    return re.sub(r"\.(exe|cmd|bat|com)$", "", re.split(r"[\\/]", command)[-1].lower())


def fetches(command: str) -> bool:
    """Whether a program may download what it runs, so that a first start takes long."""
    return program(command) in _LAUNCHERS


def runs_shell(command: str, args: tuple[str, ...]) -> bool:
    """Whether the arguments are code: a shell with `-c` and the like, or an interpreter told to evaluate."""
    base = program(command)
    if base in ("env", "sudo", "nohup") and args:
        rest = [a for a in args if not _ASSIGNMENT.fullmatch(a) and not a.startswith("-")]
        return bool(rest) and runs_shell(rest[0], tuple(args[args.index(rest[0]) + 1 :]))
    if base in _SHELLS or base in _INTERPRETERS:
        return any(_RUNS_CODE.fullmatch(a) for a in args)
    return False


def split_needed(entry: dict[str, Any]) -> dict[str, Any] | None:
    """The entry with words that were given in one string taken apart; None where nothing is to be split.

    Splits `args` that are one string, a list of one string that is plainly several arguments, and a command
    that holds its arguments. Paths with spaces stay whole.
    """
    command, args = entry.get("command"), entry.get("args")
    if isinstance(args, str):
        return entry | {"args": split_words(args)}
    if not isinstance(command, str):
        return None
    if isinstance(args, list) and len(args) == 1 and isinstance(args[0], str) and " " in args[0].strip():
        lone = args[0].strip()
        if program(command) not in _SHELLS and (lone.startswith("-") or program(command) in _LAUNCHERS):
            return entry | {"args": split_words(lone)}
    if not args and " " in command.strip():
        words = split_words(command)
        whole = re.search(r"[\\/]", words[0]) and not all(re.match(r"[-/]", w) for w in words[1:])
        if len(words) > 1 and not whole:
            return entry | {"command": words[0], "args": words[1:]}
    return None
