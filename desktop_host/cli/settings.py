"""The verbs `settings` and `doctor`: what is set, what may be set, and whether all is well."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from desktop_host.cli.context import Rescue, Run, Verb
from desktop_host.cli.output import Output, error_object
from desktop_host.core import settings as core
from desktop_host.core.errors import HostError
from desktop_host.engine.host import HostSpec
from desktop_host.i18n import Translator, current, error_text, finding_text, tr


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


async def _get(run: Run) -> int:
    settings = run.host.settings.current()
    if run.ns.key is not None:
        value = core.get(settings, run.ns.key)
        run.out.item({"key": run.ns.key, "value": value}, _shown(value))
        return 0
    for spec in core.schema():
        value = core.get(settings, spec.key)
        run.out.item({"key": spec.key, "value": value}, f"{spec.key} = {_shown(value)}")
    for key, values in (("endpoints", settings.endpoints), ("rules", settings.rules)):
        listed = [asdict(value) for value in values]
        run.out.item({"key": key, "value": listed}, f"{key} = {_shown(listed)}")
    return 0


async def _set(run: Run) -> int:
    key = run.ns.key
    settings = await run.host.settings.set(key, run.ns.value)
    value = core.get(settings, key)
    run.out.item({"key": key, "value": value}, f"{key} = {_shown(value)}")
    return 0


async def _schema(run: Run) -> int:
    for spec in core.schema():
        allowed = ", ".join(spec.choices) or ("{:g} - {:g}".format(*spec.range) if spec.range else spec.type.__name__)
        label = f"settings.{spec.key}"
        run.out.item(
            {
                "key": spec.key, "type": spec.type.__name__, "default": spec.default, "widget": spec.widget,
                "choices": list(spec.choices), "range": list(spec.range) if spec.range else None,
                "label": _english(label),
            },
            f"{spec.key} ({allowed}) = {_shown(spec.default)}"
            + (f"  {tr(label)}" if current().has(label) else ""),
        )  # fmt: skip
    return 0


def _english(key: str) -> str | None:
    language = Translator("en")
    return language.text(key) if language.has(key) else None


PLACE_CHARS = 200
"""A longer place (a PATH) is left to the report."""


async def _doctor(run: Run) -> int:
    """Every health check; exit 1 if one is not well. `--report FILE` keeps what a person can send."""
    diagnostics, english = run.host.diagnostics, Translator("en")
    run.out.passing(tr("cli.doctor.running", count=len(diagnostics.checks())))
    findings = await diagnostics.run()
    run.out.passed()
    for found in findings:
        title, what, remedy = finding_text(found)
        text = f"{'✓' if found.ok else '✗'} {title}" + (f": {what}" if what else "")
        if found.place and not found.ok and found.place not in what and len(found.place) < PLACE_CHARS:
            text += f"\n  {tr('diagnostics.place', place=found.place)}"
        _, detail, plain = english.finding(found)
        run.out.item(
            {"check": found.check, "ok": found.ok, "detail": detail, "remedy": plain or None},
            f"{text}\n  {remedy}" if remedy else text,
        )
    if run.ns.report is not None:
        parts = await diagnostics.report(findings)
        path = await diagnostics.save(_path(run.ns.report), parts)
        run.out.note(tr("cli.doctor.report", path=path, files=", ".join(part.name for part in parts)))
    return 0 if all(found.ok for found in findings) else 1


def _path(typed: str) -> Path:
    return Path(typed).expanduser()


async def not_opened(
    out: Output, error: HostError, spec: HostSpec, report: str | None = None, rescue: Rescue | None = None
) -> int:
    """What `doctor` says where the profile cannot be opened at all: that is the finding, and of that is the report."""
    what, remedy = error_text(error)
    plain = error_object(error)
    row = {"check": "profile", "ok": False, "detail": plain["message"], "remedy": plain["remedy"] or None}
    out.item(row, f"✗ {what}\n  {remedy}".rstrip())
    if report is not None and rescue is not None:
        path, names = await rescue(spec, error, _path(report))
        out.note(tr("cli.doctor.report", path=path, files=", ".join(names)))
    return 1


VERBS: dict[tuple[str, str | None], Verb] = {
    ("settings", "get"): _get,
    ("settings", "set"): _set,
    ("settings", "schema"): _schema,
    ("doctor", None): _doctor,
}
