"""Addresses of resource templates (RFC 6570, levels 1 to 3): which variables they have, and how they are filled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]+)\}")
_SHAPE = {
    "": ("", ",", False), "+": ("", ",", False), "#": ("#", ",", False), ".": (".", ".", False),
    "/": ("/", "/", False), ";": (";", ";", True), "?": ("?", "&", True), "&": ("&", "&", True),
}  # fmt: skip
_RESERVED = ":/?#[]@!$&'()*+,;="


def variables(template: str) -> tuple[str, ...]:
    """The names of the variables, in order, each once."""
    found = (_name(part) for match in _EXPRESSION.finditer(template) for part in match[2].split(","))
    return tuple(dict.fromkeys(found))


def expand(template: str, values: Mapping[str, str]) -> str:
    """The address for these values. A variable without a value leaves its part out."""

    def fill(match: re.Match[str]) -> str:
        operator = match[1]
        first, joint, named = _SHAPE[operator]
        safe = _RESERVED if operator in ("+", "#") else ""
        parts: list[str] = []
        for part in match[2].split(","):
            name = _name(part)
            value = values.get(name)
            if value is None or value == "":
                continue
            if (cut := re.search(r":(\d+)$", part)) is not None:
                value = value[: int(cut[1])]
            if part.endswith("*") and operator == "/":
                text = "/".join(quote(v, safe="") for v in value.split("/"))
            else:
                text = quote(value, safe=safe)
            parts.append(f"{name}={text}" if named else text)
        return first + joint.join(parts) if parts else ""

    return _EXPRESSION.sub(fill, template)


def _name(part: str) -> str:
    return re.sub(r"(\*|:\d+)$", "", part).strip()
