"""A SKILL.md as values: fields, triggers and every problem with its line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from desktop_host.core.skills import SkillProblem, SkillVersion, Triggers
from desktop_host.skills import yaml_text
from desktop_host.skills.frontmatter import Parts, take_apart
from desktop_host.skills.problems import problem
from desktop_host.skills.rules import check

OWN = "desktop-host-"
"""Prefix of our keys below `metadata`."""

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_SPLIT_OWN = re.compile(r"[;；\n]")
_SPLIT_WILD = re.compile(r"[;；,，、\n]")


@dataclass(frozen=True, slots=True)
class SkillDocument:
    """What one SKILL.md says. `skill.digest` is empty where the folder is not known."""

    skill: SkillVersion
    problems: tuple[SkillProblem, ...]
    body_line: int

    @property
    def loaded(self) -> bool:
        """Whether the host can use it."""
        return all(p.severity != "error" for p in self.problems)

    @property
    def ok(self) -> bool:
        """Whether the open format's strict rules accept it."""
        return not any(p.strict for p in self.problems)


def parse(raw: bytes, folder: str, file: str = "SKILL.md", version: str = "", digest: str = "") -> SkillDocument:
    """Read a SKILL.md. Never raises for what stands in it.

    Args:
        raw: the bytes of the file.
        folder: name of the folder it lies in.
        file: its own name, as found.
        version: the version that the layout on disk gives it; empty where the layout says nothing.
        digest: the digest of its folder.
    """
    problems: list[SkillProblem] = []

    def told(code: str, line: int, detail: str) -> None:
        problems.append(problem("empty-file" if code == "no-frontmatter" and not raw.strip() else code, line, detail))

    parts = take_apart(raw, told)
    meta = {str(k).strip().lower().replace("_", "-"): v for k, v in parts.meta.items()}
    nested = meta.get("metadata")
    extra = {str(k).lower().replace("_", "-"): v for k, v in nested.items()} if isinstance(nested, dict) else {}
    problems += check(parts, folder, file)
    label = _label(meta.get("name")) or folder
    description = one_line(_joined(meta.get("description")))
    said = one_line(_joined(extra.get("version") or meta.get("version")))
    if version and said and said != version:
        problems.append(problem("version-mismatch", _line(parts, "version"), said))
    numbers = _Numbers(parts, extra, problems)
    skill = SkillVersion(
        name=slug(label) or slug(folder) or "skill",
        version=version or said,
        digest=digest,
        description=description or first_paragraph(parts.body),
        body=parts.body,
        triggers=_triggers(meta, extra, numbers),
        priority=int(numbers.read("priority", -10, 10) or 0),
        allowed_tools=tools_of(meta.get("allowed-tools")),
        requires=tuple(slug(v) for v in _own(extra, "requires")),
        conflicts=tuple(slug(v) for v in _own(extra, "conflicts")),
        label=label,
        fallback=tuple(slug(v) for v in _own(extra, "fallback")),
        route=next(iter(_own(extra, "route")), None),
        servers=(*_own(extra, "servers"), *_wild_servers(meta.get("requires"))),
        license=one_line(_joined(meta.get("license"))),
        compatibility=one_line(_joined(meta.get("compatibility"))),
        argument_hint=one_line(_joined(meta.get("argument-hint"))),
        model_invocable=not _truth(meta.get("disable-model-invocation")),
        user_invocable=not _untruth(meta.get("user-invocable")),
    )
    problems.sort(key=lambda p: (p.severity != "error", p.line, p.code))
    return SkillDocument(skill, tuple(dict.fromkeys(problems)), parts.body_line)


def _triggers(meta: dict[str, Any], extra: dict[str, Any], numbers: _Numbers) -> Triggers:
    keywords = [*_own(extra, "keywords")]
    examples = [*_own(extra, "examples")]
    for source in (meta, extra):
        keywords += _values(source.get("triggers"), _SPLIT_WILD) + _values(source.get("keywords"), _SPLIT_WILD)
        when = one_line(_joined(source.get("when-to-use")))
        if when:
            examples.append(when)
    exclude = [*_own(extra, "exclude"), *(one_line(_joined(s.get("when-not-to-use"))) for s in (meta, extra))]
    return Triggers(_once(keywords), _once(examples), _once(exclude), numbers.read("threshold", 0, 1))


class _Numbers:
    """Reads numbers below `metadata` and tells those that are none."""

    def __init__(self, parts: Parts, extra: dict[str, Any], problems: list[SkillProblem]) -> None:
        self._parts, self._extra, self._problems = parts, extra, problems

    def read(self, key: str, low: float, high: float) -> float | None:
        value = self._extra.get(OWN + key)
        if value is None:
            return None
        try:
            number = float(str(value))
            if low <= number <= high:
                return number
        except ValueError:
            pass
        self._problems.append(problem("bad-number", _line(self._parts, "metadata"), f"{OWN}{key}: {value}"))
        return None


def _line(parts: Parts, key: str) -> int:
    return parts.block_line + yaml_text.key_line(parts.block, key) - 1 if parts.found else 1


def _own(extra: dict[str, Any], key: str) -> list[str]:
    return _values(extra.get(OWN + key), _SPLIT_OWN)


def _values(value: Any, split: re.Pattern[str]) -> list[str]:
    if not value or isinstance(value, dict):
        return []
    if isinstance(value, list):
        return [text for item in value if not isinstance(item, dict) and (text := one_line(_joined(item)))]
    return [text for part in split.split(str(value)) if (text := one_line(part))]


def _wild_servers(value: Any) -> list[str]:
    """`requires: {mcp: [name]}`, as a large public collection writes it."""
    return _values(value.get("mcp"), _SPLIT_WILD) if isinstance(value, dict) else []


def _once(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(v for v in dict.fromkeys(values) if v)


def _label(value: Any) -> str:
    return one_line(str(value)) if isinstance(value, str) else ""


def _joined(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(_joined(v) for v in value)
    if isinstance(value, dict):
        return " ".join(f"{k}: {_joined(v)}" for k, v in value.items())
    return str(value)


def one_line(text: str) -> str:
    """`text` with every run of white space made one space."""
    return " ".join(text.split()) if text else ""


def first_paragraph(body: str) -> str:
    """The first line of a body that is neither empty nor a heading; at most 300 characters."""
    line = next((ln.strip() for ln in body.split("\n") if ln.strip() and not ln.lstrip().startswith("#")), "")
    return line[:300]


def slug(label: str) -> str:
    """A skill's id from any name: lower case, letters and digits of any script, single hyphens, at most 64."""
    if len(label) <= 64 and _SLUG.fullmatch(label):
        return label
    text = unicodedata.normalize("NFKC", label).lower()
    return re.sub(r"-+", "-", "".join(c if c.isalnum() else "-" for c in text)).strip("-")[:64].strip("-")


def tools_of(value: Any) -> tuple[str, ...]:
    """`allowed-tools` in all three shapes found: separated by spaces, by commas, or a list."""
    if isinstance(value, list):
        return _once(one_line(_joined(v)) for v in value)
    if not isinstance(value, str):
        return ()
    return _once(m.strip(",") for m in re.findall(r"[^\s,(]*\([^)]*\)|[^\s,]+", value))


def _truth(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in ("true", "yes", "on", "1")


def _untruth(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in ("false", "no", "off", "0")
