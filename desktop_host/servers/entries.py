"""One server's entry in `{"mcpServers": …}`: the shape that all hosts share, plus `desktopHost` for ours."""

from __future__ import annotations

import codecs
import shlex
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import urlsplit

from desktop_host.core.errors import UserFault
from desktop_host.core.servers import (
    LOG_LEVELS,
    Http,
    Launch,
    Protocol,
    SamplingPolicy,
    ServerConfig,
    ServerScope,
    Sse,
    Stdio,
    Timeouts,
)
from desktop_host.core.tools import ALIAS
from desktop_host.core.values import EMPTY, FrozenDict, freeze, thaw
from desktop_host.servers.auth_entries import auth_from_json, auth_to_json

OURS = "desktopHost"
"""The key of an entry below which everything stands that only this host knows."""

_SHARED = frozenset({"type", "command", "args", "env", "cwd", "url", "headers", "disabled", OURS})
_OWN = frozenset(
    {"title", "enabled", "protocol", "scope", "trusted", "disabledTools", "sampling", "timeouts", "encoding", "auth"}
    | {"encodingErrors", "enabledTools", "logLevel"}
)
_HTTP = frozenset({"http", "streamable-http", "streamablehttp", "streamable_http"})
_SAMPLING = {
    "mode": "mode",
    "max_tokens": "maxTokens",
    "daily_tokens": "dailyTokens",
    "daily_usd": "dailyUsd",
    "per_minute": "perMinute",
}
_TIMEOUTS = {"connect_s": "connect", "call_s": "call", "call_max_s": "callMax"}
_WANTED = {
    "object": "an object", "text": "a text", "list": "a list of texts", "flag": "true or false", "number": "a number",
}  # fmt: skip
_ENUM = TypeVar("_ENUM", bound=StrEnum)


def to_json(config: ServerConfig) -> dict[str, Any]:
    """The entry of a server. What is as by default is left out; `extra` is written back as it was read."""
    out: dict[str, Any] = {}
    own: dict[str, Any] = {}
    match config.launch:
        case Stdio() as launch:
            out |= {"command": launch.command, "args": list(launch.args)}
            if launch.env:
                out["env"] = thaw(launch.env)
            if launch.cwd is not None:
                out["cwd"] = launch.cwd
            if launch.encoding != "utf-8":
                own["encoding"] = launch.encoding
            if launch.encoding_errors != "replace":
                own["encodingErrors"] = launch.encoding_errors
        case Http() | Sse() as launch:
            out |= {"type": config.transport, "url": launch.url}
            if launch.headers:
                out["headers"] = thaw(launch.headers)
            if (auth := auth_to_json(launch.auth)) is not None:
                own["auth"] = auth
    if config.title is not None:
        own["title"] = config.title
    if not config.enabled:
        own["enabled"] = False
    if config.protocol is not Protocol.AUTO:
        own["protocol"] = config.protocol.value
    if config.scope is not ServerScope.PROFILE:
        own["scope"] = config.scope.value
    if config.trusted:
        own["trusted"] = True
    if config.disabled_tools:
        own["disabledTools"] = list(config.disabled_tools)
    if config.enabled_tools is not None:
        own["enabledTools"] = list(config.enabled_tools)
    if config.log_level != "info":
        own["logLevel"] = config.log_level
    for key, part, names in (
        ("sampling", config.sampling, _SAMPLING),
        ("timeouts", config.timeouts, _TIMEOUTS),
    ):
        plain = type(part)()
        changed = {theirs: getattr(part, f) for f, theirs in names.items() if getattr(part, f) != getattr(plain, f)}
        if changed:
            own[key] = changed
    extra = thaw(config.extra)
    own |= extra.pop(OURS, {})
    out |= extra
    if own:
        out[OURS] = own
    return out


def from_json(name: str, data: Any) -> ServerConfig:
    """Read the entry of a server.

    Numbers and booleans in `args`, `env` and `headers` become text, and null there means unset. `args` may be
    one string. A URL without `type` is SSE where its path ends in `/sse`, else Streamable HTTP. A list of
    disabled or enabled tools that is empty, null or absent disables nothing. Unknown keys are kept in `extra`.

    Raises:
        UserFault: `bad_config` with `server`, `key` and `reason`.
    """
    at = _Entry(name)
    if not ALIAS.fullmatch(name) or name == "host":
        raise at.fault("bad_name", "", f"{name!r} is no server name: use a-z, 0-9 and -, 32 characters at most")
    entry = at.mapping(data, "")
    own = at.mapping(entry.get(OURS), OURS)
    launch = at.launch(entry, own)
    extra = {k: v for k, v in entry.items() if k not in _SHARED}
    if unknown := {k: v for k, v in own.items() if k not in _OWN}:
        extra[OURS] = unknown
    scope = at.choice(own.get("scope"), ServerScope, ServerScope.PROFILE, f"{OURS}.scope")
    if scope is ServerScope.CALL and isinstance(launch, Stdio):
        raise at.fault("scope_needs_http", f"{OURS}.scope", "a connection per call is for HTTP servers only")
    return ServerConfig(
        name=name,
        launch=launch,
        title=at.text(own.get("title"), f"{OURS}.title"),
        enabled=at.flag(own.get("enabled"), not at.flag(entry.get("disabled"), False, "disabled"), f"{OURS}.enabled"),
        protocol=at.choice(own.get("protocol"), Protocol, Protocol.AUTO, f"{OURS}.protocol"),
        scope=scope,
        trusted=at.flag(own.get("trusted"), False, f"{OURS}.trusted"),
        disabled_tools=at.texts(own.get("disabledTools"), f"{OURS}.disabledTools"),
        enabled_tools=at.texts(own.get("enabledTools"), f"{OURS}.enabledTools") or None,
        log_level=at.level(own.get("logLevel")),
        sampling=at.sampling(own.get("sampling")),
        timeouts=at.timeouts(own.get("timeouts")),
        extra=freeze(extra),
    )


class _Entry:
    """Checks the values of one entry; an error names server and key."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fault(self, reason: str, key: str, message: str, **params: Any) -> UserFault:
        place = f"server {self.name!r}" + (f", {key}" if key else "")
        return UserFault("bad_config", f"{place}: {message}", server=self.name, key=key, reason=reason, **params)

    def wrong(self, key: str, wanted: str) -> UserFault:
        return self.fault(f"{wanted}_expected", key, f"{_WANTED[wanted]} was expected")

    def none_of(self, key: str, choices: str) -> UserFault:
        return self.fault("bad_choice", key, f"use one of {choices}", choices=choices)

    def launch(self, entry: Mapping[str, Any], own: Mapping[str, Any]) -> Launch:
        kind = (self.text(entry.get("type"), "type") or "").lower()
        command, url = self.text(entry.get("command"), "command"), self.text(entry.get("url"), "url")
        if kind not in {"", "stdio", "sse", *_HTTP}:
            raise self.none_of("type", "stdio, http, sse")
        if not kind and command and url:
            raise self.fault("ambiguous", "type", "has both a command and a url; say which by type")
        if kind == "stdio" or (not kind and command):
            if not (command or "").strip():
                raise self.fault("no_command_or_url", "command", "a command is missing")
            return Stdio(
                command=command or "",
                args=self.texts(entry.get("args"), "args"),
                env=self.texts_by_name(entry.get("env"), "env"),
                cwd=self.text(entry.get("cwd"), "cwd") or None,
                encoding=self.encoding(own.get("encoding")),
                encoding_errors=self.encoding_errors(own.get("encodingErrors")),
            )
        if not url:
            key = "url" if kind else "command"
            raise self.fault("no_command_or_url", key, "a command or a url is missing")
        if "${" not in url and urlsplit(url).scheme.lower() not in ("http", "https"):
            raise self.fault("bad_url", "url", "the url must begin with http:// or https://")
        headers = self.texts_by_name(entry.get("headers"), "headers")
        sse = kind == "sse" or (not kind and url.partition("?")[0].rstrip("/").endswith("/sse"))
        auth = auth_from_json(self, own.get("auth"))
        return Sse(url, headers, auth) if sse else Http(url, headers, auth)

    def mapping(self, value: Any, key: str) -> Mapping[str, Any]:
        if value is None and key:
            return EMPTY
        if not isinstance(value, Mapping):
            raise self.wrong(key, "object")
        return value

    def text(self, value: Any, key: str) -> str | None:
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, "text")
        return value

    def flag(self, value: Any, default: bool, key: str) -> bool:
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(key, "flag")
        return value

    def number(self, value: Any, default: float | None, key: str, least: float = 0) -> Any:
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < least:
            raise self.wrong(key, "number")
        return value

    def plain(self, value: Any, key: str) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, (bool, int, float)):
            return str(value).lower() if isinstance(value, bool) else str(value)
        raise self.wrong(key, "text")

    def texts(self, value: Any, key: str) -> tuple[str, ...]:
        if value is None:
            return ()
        if isinstance(value, str):
            try:
                return tuple(shlex.split(value))
            except ValueError as error:
                raise self.fault("bad_quotes", key, f"the quotes do not match ({error})") from None
        if not isinstance(value, (list, tuple)):
            raise self.wrong(key, "list")
        return tuple(self.plain(item, f"{key}[{n}]") for n, item in enumerate(value))

    def texts_by_name(self, value: Any, key: str) -> FrozenDict:
        items = self.mapping(value, key).items()
        return FrozenDict({k: self.plain(v, f"{key}.{k}") for k, v in items if v is not None})

    def choice(self, value: Any, kind: type[_ENUM], default: _ENUM, key: str) -> _ENUM:
        if value is None:
            return default
        found = next((member for member in kind if member.value == value), None)
        if found is None:
            raise self.none_of(key, ", ".join(m.value for m in kind))
        return found

    def level(self, value: Any) -> str:
        word = self.text(value, f"{OURS}.logLevel") or "info"
        if word not in LOG_LEVELS:
            raise self.none_of(f"{OURS}.logLevel", ", ".join(LOG_LEVELS))
        return word

    def encoding(self, value: Any) -> str:
        name = self.text(value, f"{OURS}.encoding") or "utf-8"
        try:
            codecs.lookup(name)
        except LookupError:
            raise self.fault("bad_encoding", f"{OURS}.encoding", f"there is no encoding {name!r}") from None
        return name

    def encoding_errors(self, value: Any) -> str:
        word = self.text(value, f"{OURS}.encodingErrors") or "replace"
        if word not in ("strict", "ignore", "replace"):
            raise self.none_of(f"{OURS}.encodingErrors", "strict, ignore, replace")
        return word

    def sampling(self, value: Any) -> SamplingPolicy:
        data, plain = self.mapping(value, f"{OURS}.sampling"), SamplingPolicy()
        mode = self.text(data.get("mode"), f"{OURS}.sampling.mode") or plain.mode
        if mode not in ("off", "ask", "allow"):
            raise self.none_of(f"{OURS}.sampling.mode", "off, ask, allow")
        numbers = self.numbers(data, plain, {k: v for k, v in _SAMPLING.items() if k != "mode"}, "sampling")
        return SamplingPolicy(mode=mode, **{k: int(v) for k, v in numbers.items()})

    def timeouts(self, value: Any) -> Timeouts:
        data = self.mapping(value, f"{OURS}.timeouts")
        return Timeouts(**self.numbers(data, Timeouts(), _TIMEOUTS, "timeouts", least=0.001))

    def numbers(
        self, data: Mapping[str, Any], plain: Any, names: Mapping[str, str], key: str, least: float = 0
    ) -> dict[str, Any]:
        known = {f.name for f in fields(plain)}
        return {
            f: self.number(data.get(theirs), getattr(plain, f), f"{OURS}.{key}.{theirs}", least)
            for f, theirs in names.items()
            if f in known
        }
