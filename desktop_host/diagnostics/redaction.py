"""Take secrets out of text: those that the vault gave out, whole or begun, and what looks like one."""

from __future__ import annotations

import base64
import json
import re
import threading
from urllib.parse import quote

MARK = "[secret]"
_BEGUN = 8
"""So many first (or last) characters of a known secret are taken for it: a short form leaks too."""

# Every repeat below is bounded or follows a literal: a log line of a megabyte must stay cheap.
_WORD = r"[\w.~+/=-]"
_NAMED = (
    r"(?:[\w-]{0,40}(?:api[_-]?key|secret|password|passphrase|passwd|authorization|cookie)"
    r"|(?:access|refresh|id|auth|bearer|session|csrf)?[_-]?token)"
)
_VALUE = r"(?:\"[^\"\n]+\"|'[^'\n]+'|[^\s,;&\"'{}\[\]]+)"
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|\Z)", re.S), MARK),
    (re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|r8)[-_][\w-]{8,}"), MARK),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|ya29\.)[\w.-]{8,}"), MARK),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"), MARK),
    (re.compile(rf"\b(Bearer|Basic|Token)\s+{_WORD}{{6,}}", re.I), rf"\1 {MARK}"),
    (re.compile(r"(\b[a-z][\w+.-]{0,30}://)[^\s/@'\"]+@", re.I), rf"\1{MARK}@"),
    (re.compile(rf"(\b{_NAMED}\b[\"']?\s{{0,4}}[:=]\s{{0,4}})(?!Bearer |Basic |Token ){_VALUE}", re.I), rf"\1{MARK}"),
)


class Redactor:
    """Knows the secrets of this process. Threads may share it."""

    def __init__(self) -> None:
        self._forms: set[str] = set()
        self._begun: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self._turn = threading.Lock()

    def __repr__(self) -> str:
        return f"<Redactor of {len(self._forms)} forms>"

    def add(self, value: str) -> None:
        """Leave this value out from now on, also encoded, also its beginning and its end. Short ones are ignored."""
        values = [value, *(line for line in value.splitlines() if len(line) >= _BEGUN), *_leaves(value)]
        forms: set[str] = set()
        begun: set[str] = set()
        for one in values:
            text = one.strip()
            if len(text) < 4:
                continue
            data = text.encode("utf-8", "surrogatepass")
            forms |= {
                text,
                json.dumps(text)[1:-1],
                json.dumps(text, ensure_ascii=False)[1:-1],
                quote(text, safe="", errors="replace"),
            }
            forms |= {base64.b64encode(data).decode().rstrip("="), base64.urlsafe_b64encode(data).decode().rstrip("=")}
            if len(text) >= 2 * _BEGUN:
                begun.add(re.escape(text[:_BEGUN]) + _WORD + "*")
                forms.add(text[-_BEGUN:])
        with self._turn:
            if forms <= self._forms and begun <= self._begun:
                return
            self._forms |= forms
            self._begun |= begun
            # The longest first, so that nothing stays of a secret that contains another.
            whole = [re.escape(f) for f in sorted(self._forms, key=len, reverse=True)]
            self._known = re.compile("|".join([*whole, *sorted(self._begun)])) if whole else None

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        if self._known is not None:
            text = self._known.sub(MARK, text)
        for pattern, put in _PATTERNS:
            text = pattern.sub(put, text)
        return text


def _leaves(value: str) -> list[str]:
    """The texts inside a secret that is JSON (tokens of a login), long ones only."""
    if not value.lstrip().startswith(("{", "[")):
        return []
    try:
        todo = [json.loads(value)]
    except ValueError:
        return []
    found: list[str] = []
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            todo += item.values()
        elif isinstance(item, list):
            todo += item
        elif isinstance(item, str) and len(item) >= 2 * _BEGUN:
            found.append(item)
    return found
