"""The arguments of a tool call as a model wrote them: text to an object, or why it is none."""

from __future__ import annotations

import json
import re
from typing import Any

_QUOTE_TOKEN = re.compile(r'<\|"\|?>|<\|\\"\|?>')
"""A quotation mark as some models' own token, left in by servers that do not translate it."""
CUT_OFF = "the arguments were cut off at the output limit"


def parse(raw: str, *, lenient: bool = False) -> tuple[dict[str, Any], str | None]:
    """`(arguments, problem)`; nothing at all means no arguments.

    Args:
        raw: what the model wrote.
        lenient: also read the special tokens that some local servers leave in.
    """
    if not raw.strip():
        return {}, None
    value, problem = _load(raw)
    if lenient and _QUOTE_TOKEN.search(raw):
        if problem:
            value, problem = _load(_QUOTE_TOKEN.sub('"', raw))
        else:
            value = _unquoted(value)
    if problem:
        return {}, problem
    if value is None:
        return {}, None
    if isinstance(value, str):
        return parse(value, lenient=lenient)
    if not isinstance(value, dict):
        return {}, f"the arguments are a {type(value).__name__}, not an object: {raw[:200]}"
    return value, None


def is_complete(raw: str) -> bool:
    """Whether text is one whole JSON value."""
    return _load(raw)[1] is None


def _load(raw: str) -> tuple[Any, str | None]:
    try:
        return json.loads(raw, strict=False), None
    except (ValueError, RecursionError) as error:
        return None, f"the arguments are not JSON ({error}): {raw[:200]}"


def _unquoted(value: Any) -> Any:
    if isinstance(value, str):
        return _QUOTE_TOKEN.sub("", value)
    if isinstance(value, dict):
        return {k: _unquoted(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_unquoted(v) for v in value]
    return value
