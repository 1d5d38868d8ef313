"""Plain secrets in an entry are moved to the vault: the entry keeps a reference, the caller gets the value."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from desktop_host.core.auth import SECRET_FIELDS
from desktop_host.core.server_values import looks_secret
from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.core.values import FrozenDict

_VALUE = re.compile(
    r"(sk|pk|rk)[-_][A-Za-z0-9_-]{12,}|gh[a-z]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{12,}|xox[a-z]-[\w-]{10,}"
    r"|A(KIA|SIA)[0-9A-Z]{12,}|AIza[\w-]{20,}|ya29\.[\w-]{10,}|npm_[A-Za-z0-9]{20,}|pypi-[\w-]{20,}|hf_[A-Za-z0-9]{16,}"
    r"|dop_v1_\w{16,}|ntn_\w{16,}|lin_api_\w{16,}|figd_[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
)
_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):([^/\s@]+)@")
_SCHEME = re.compile(r"(?i)(bearer|basic|token|apikey)\s+(\S.*)", re.DOTALL)
_BLANK_FORM = re.compile(
    r"(?i)<.*>|\[.*\]|\{+.*\}+|x{3,}|\.{3}|…|\*+|(your|my|insert|enter|replace|add|put)[-_ ].*|changeme|todo"
)
_PLAIN = re.compile(r"(?i)true|false|yes|no|on|off|none|null|-?\d{1,7}(\.\d+)?")
_POINTER = re.compile(r"(?i)[-_](file|path|dir|url|uri)$|^(no|skip|disable)[-_]")
_PATH = re.compile(r"(~?/|\.{1,2}/|[A-Za-z]:\\).*")
_FLAG = re.compile(r"(--?[A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)
_HEADER_ARG = re.compile(r"([A-Za-z][\w-]*):\s*(\S.*)", re.DOTALL)
_QUERY = re.compile(r"(?<=[?&])([\w.-]+)=([^&#]*)")


class Hidden:
    """What was found in one server; `blank` tells that a form such as `<YOUR_KEY>` still wants its value."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.secrets: dict[str, str] = {}
        self.blank = False

    def reference(self, name: str, value: str) -> str:
        """Put a value aside and return `${keyring:alias/name}` for it; equal values share a name."""
        base = f"{self.alias}/{re.sub(r'[^A-Za-z0-9_.-]+', '_', name).strip('_') or 'secret'}"
        if _BLANK_FORM.fullmatch(value):
            self.blank = True
            return f"${{keyring:{base}}}"
        key, n = base, 2
        while self.secrets.get(key, value) != value:
            key, n = f"{base}-{n}", n + 1
        self.secrets[key] = value
        return f"${{keyring:{key}}}"

    def in_value(self, name: str, value: str) -> str:
        """The value of a variable or header, hidden where its name or its look says secret."""
        if not value.strip() or "${" in value:
            return value
        if scheme := _SCHEME.fullmatch(value):
            return value[: scheme.start(2)] + self.reference(name, scheme[2])
        pointer = _POINTER.search(name) or (re.search(r"(?i)credential|cookie", name) and _PATH.fullmatch(value))
        if looks_secret(name) and not pointer and not _PLAIN.fullmatch(value):
            return self.reference(name, value)
        return self.in_text(name, value)

    def in_text(self, name: str, text: str) -> str:
        """Any other text: only what looks like a secret whatever its name, and the password in a URL."""
        if "PRIVATE KEY" in text:
            return self.reference(name, text)
        text = _VALUE.sub(lambda m: self.reference(name, m[0]), text)
        return _URL_PASSWORD.sub(lambda m: f"{m[1]}:{m[2] if '${' in m[2] else self.reference(name, m[2])}@", text)

    def in_url(self, url: str) -> str:
        """An address: its password and the parameters whose names say secret."""

        def parameter(match: re.Match[str]) -> str:
            name, value = match[1], match[2]
            return f"{name}={self.in_value(name, value)}" if value else match[0]

        return _QUERY.sub(parameter, self.in_text("url", url))

    def in_args(self, args: tuple[str, ...]) -> tuple[str, ...]:
        """Arguments: `--api-key X`, `--token=X`, `--header "Authorization: Bearer X"`, `-e KEY=X`, known looks."""
        out: list[str] = []
        before = ""
        for arg in args:
            flag = _FLAG.fullmatch(arg)
            if flag and flag[2] is not None:
                arg = f"{flag[1]}={self._valued(flag[1], flag[2])}"
            elif before and not flag:
                arg = self._valued(before, arg)
            elif not flag:
                arg = self.in_url(arg) if "://" in arg else self.in_text("args", arg)
            before = flag[1] if flag and flag[2] is None else ""
            out.append(arg)
        return tuple(out)

    def _valued(self, flag: str, value: str) -> str:
        name = flag.lstrip("-")
        if pair := re.fullmatch(r"([A-Za-z_]\w*)=(.*)", value, re.DOTALL):  # docker run -e KEY=value
            return f"{pair[1]}={self.in_value(pair[1], pair[2])}"
        if header := _HEADER_ARG.fullmatch(value):
            hidden = self.in_value(header[1], header[2])
            if hidden != header[2]:
                return value[: header.start(2)] + hidden
        return self.in_url(value) if "://" in value else self.in_value(name, value)


def hide(config: ServerConfig) -> tuple[ServerConfig, Hidden]:
    """Return the config with references in place of plain secrets, and what was put aside."""
    found = Hidden(config.name)
    launch = config.launch
    if isinstance(launch, Stdio):
        env = FrozenDict({k: found.in_value(k, v) for k, v in launch.env.items()})
        launch = replace(launch, env=env, args=found.in_args(launch.args))
    else:
        headers = FrozenDict({k: found.in_value(k, v) for k, v in launch.headers.items()})
        plain = {f: v for f in SECRET_FIELDS if (v := getattr(launch.auth, f, "")) and "${" not in v}
        refs: dict[str, Any] = {f: found.reference(f, v) for f, v in plain.items()}
        auth = replace(launch.auth, **refs)
        launch = replace(launch, headers=headers, url=found.in_url(launch.url), auth=auth)
    return replace(config, launch=launch), found
