"""`${keyring:NAME}`, `${VAR}`, `${VAR:-default}` and `${env:VAR}` in a launch, expanded at the last moment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from desktop_host.core.admin import SecretStore
from desktop_host.core.auth import SECRET_FIELDS, Auth
from desktop_host.core.errors import UserFault
from desktop_host.core.server_values import looks_secret
from desktop_host.core.servers import Launch, ServerConfig, Stdio
from desktop_host.core.values import FrozenDict

SHORTEST_SECRET = 4
"""Values shorter than this are not redacted: hiding every "1" of a log hides the log."""

_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


async def expand(text: str, secrets: SecretStore, env: Mapping[str, str], *, where: str = "") -> str:
    """Return `text` with its placeholders filled.

    `${keyring:NAME}` is a secret of the vault; `${VAR}` and `${env:VAR}` are variables of the host;
    `${VAR:-default}` takes the default where the variable is unset or empty (as in a shell; it may hold
    placeholders itself). `$${` writes a plain `${`. What was filled in is not read for placeholders again.

    Raises:
        UserFault: `bad_config` with `reason` (`missing_variable`, `missing_secret`, `unknown_placeholder`),
            `variable` and `where`.
        KnownFault: `vault_unavailable` or `vault_locked`.
    """
    return await _Expansion(secrets, env).fill(text, where)


async def expand_launch(launch: Launch, secrets: SecretStore, env: Mapping[str, str]) -> tuple[Launch, frozenset[str]]:
    """A launch ready to be used, and the secret values in it (for redaction; never log the launch itself).

    Secret are: whatever came from the vault, and the values of variables and headers whose names say so,
    plain or from the environment.

    Raises:
        UserFault: as `expand`; also `reason` `line_break` (in a header) and `nul_character` (anywhere).
        KnownFault: `vault_unavailable` or `vault_locked`.
    """
    at = _Expansion(secrets, env)
    if isinstance(launch, Stdio):
        done: Launch = replace(
            launch,
            command=await at.fill(launch.command, "command"),
            args=tuple([await at.fill(arg, f"args[{n}]") for n, arg in enumerate(launch.args)]),
            env=await at.fill_map(launch.env, "env"),
            cwd=None if launch.cwd is None else _from_home(await at.fill(launch.cwd, "cwd")),
        )
    else:
        done = replace(
            launch,
            url=await at.fill(launch.url, "url"),
            headers=await at.fill_map(launch.headers, "headers"),
            auth=await at.fill_auth(launch.auth),
        )
    return done, frozenset(at.secret_values)


def _from_home(path: str) -> str:
    return os.path.expanduser(path)


class _Expansion:
    """One expansion: fetches each secret once and remembers which values must never be shown."""

    def __init__(self, secrets: SecretStore, env: Mapping[str, str]) -> None:
        self._secrets = secrets
        self._env = env
        self._fetched: dict[str, str | None] = {}
        self.secret_values: set[str] = set()

    async def fill_map(self, values: FrozenDict, where: str) -> FrozenDict:
        out: dict[str, str] = {}
        for name, value in values.items():
            place = f"{where}.{name}"
            out[name] = await self.fill(str(value), place)
            if where == "headers" and re.search(r"[\r\n]", out[name]):
                raise _fault("line_break", name, place, f"{place} holds a line break")
            if looks_secret(name):
                self._hide(out[name])
                self._hide(out[name].partition(" ")[2].strip())  # The token of "Bearer token".
        return FrozenDict(out)

    async def fill_auth(self, auth: Auth) -> Auth:
        out: dict[str, Any] = {}
        for f in fields(auth):
            value = getattr(auth, f.name)
            if isinstance(value, str) and value:
                out[f.name] = await self.fill(value, f"auth.{f.name}")
                if f.name in SECRET_FIELDS:
                    self._hide(out[f.name])
        return replace(auth, **out)

    async def fill(self, text: str, where: str) -> str:
        out: list[str] = []
        at = 0
        while True:
            start = text.find("${", at)
            end = -1 if start < 0 else _closing(text, start + 2)
            if end < 0:
                out.append(text[at:])
                break
            if start > at and text[start - 1] == "$":
                out.append(text[at:start] + "{")
                at = start + 2
                continue
            out.append(text[at:start])
            out.append(await self._value(text[start + 2 : end], where))
            at = end + 1
        done = "".join(out)
        if "\0" in done:
            raise _fault("nul_character", "", where, f"{where or 'the text'} holds a NUL character")
        return done

    async def _value(self, inner: str, where: str) -> str:
        if inner.startswith("keyring:"):
            return await self._secret(inner.removeprefix("keyring:").strip(), where)
        match = _VARIABLE.fullmatch(inner)
        if match is None:
            raise _fault("unknown_placeholder", inner, where, f"${{{inner}}} is no placeholder that the host knows")
        name, default = match[1], match[2]
        value = self._env.get(name)
        if default is not None and not value:
            return await self.fill(default, where)
        if value is None:
            raise _fault("missing_variable", name, where, f"the variable {name} is not set")
        if looks_secret(name):
            self._hide(value)
        return value

    async def _secret(self, name: str, where: str) -> str:
        if name not in self._fetched:
            self._fetched[name] = await self._secrets.get(name) if name else None
        value = self._fetched[name]
        if value is None:
            raise _fault("missing_secret", name, where, f"the vault has no secret named {name!r}")
        self._hide(value)
        return value

    def _hide(self, value: str) -> None:
        if len(value) >= SHORTEST_SECRET:
            self.secret_values.add(value)


def _closing(text: str, at: int) -> int:
    """Where the brace closes that was opened before `at`; -1 where it does not."""
    depth = 1
    while at < len(text):
        if text.startswith("${", at):
            depth += 1
            at += 1
        elif text[at] == "}":
            depth -= 1
            if not depth:
                return at
        at += 1
    return -1


def _fault(reason: str, variable: str, where: str, message: str) -> UserFault:
    place = f" (needed by {where})" if where else ""
    return UserFault("bad_config", message + place, reason=reason, variable=variable, where=where)


def own_secrets(config: ServerConfig) -> tuple[str, ...]:
    """The vault's names that were made for this server alone: `${keyring:<its name>/…}`."""
    launch = config.launch
    if isinstance(launch, Stdio):
        values = [*launch.args, *launch.env.values()]
    else:
        values = [launch.url, *launch.headers.values()]
    found = re.findall(r"\$\{keyring:([^}]+)\}", "\n".join(str(v) for v in values))
    return tuple(n for n in dict.fromkeys(found) if n.startswith(f"{config.name}/"))
