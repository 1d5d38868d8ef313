"""Message keys and codes to text, in English and Chinese.

Keys stand in `resources/locale/<language>/*.po` (one file per room, so that they can be written side by
side); `packaging/compile_locale.py` joins them into the `desktop_host.mo` that is read here.
"""

from __future__ import annotations

import gettext
import locale
import os
import re
from collections.abc import Iterable
from string import Formatter
from typing import Any

from desktop_host.core.diagnosis import Finding
from desktop_host.core.errors import HostError
from desktop_host.core.places import shipped
from desktop_host.core.servers import FailureReport

LANGUAGES = ("en", "zh_CN")


def pick_language(wanted: str = "system") -> str:
    """`en` or `zh_CN` for a setting; `system` follows the environment."""
    if wanted in LANGUAGES:
        return wanted
    spoken = next((os.environ[k] for k in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(k)), "")
    if not spoken:
        spoken = locale.getlocale()[0] or ""
    return "zh_CN" if spoken.lower().startswith(("zh", "chinese")) else "en"


class _Figure(float):
    """A number for people: no exponent, no tail of zeros."""

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if spec else f"{self:.6f}".rstrip("0").rstrip(".")


class _Parts(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        return _Figure(value) if type(value) is float else value

    def __missing__(self, key: str) -> str:
        return "{" + key + "}"


class Translator:
    """The texts of one language."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else "en"
        path = shipped("resources", "locale", self.language, "desktop_host.mo")
        with path.open("rb") as file:
            self._catalog = gettext.GNUTranslations(file)

    def has(self, key: str) -> bool:
        """Whether there is a text for `key`."""
        return self._catalog.gettext(key) != key

    def text(self, key: str, **params: Any) -> str:
        """The text of `key`; `{name}` parts are filled from `params`. An unknown key is shown as it is."""
        return self._catalog.gettext(key).format_map(_Parts(params))

    def plural(self, key: str, n: int, **params: Any) -> str:
        """The text of `key` for `n` things."""
        return self._catalog.ngettext(key, key + ".many", n).format_map(_Parts(params, n=n))

    def error(self, code: str, params: dict[str, Any], message: str = "") -> tuple[str, str]:
        """What happened and what to do, for an error code. Falls back to `message` for an unknown code.

        A text for the code and its `reason` or `kind` (`error.<code>.<reason>`) goes before the code's own, what
        befell a server (`what`, a key `failure.*`) before both, and
        a remedy that the error names by its key before all others. In these texts `[…]` is left out where a `{name}` in
        it was not given; `[a|b]` takes the first part that can be filled. What was `wanted` instead may be a key
        (`wanted.…`) itself. Where the text is not English, the words of another program at its end stand quoted in a
        line of their own.
        """
        told = {**params, "message": message or params.get("message") or code}
        wanted = str(told.get("wanted") or "")
        if wanted.startswith("wanted.") and self.has(wanted):
            told["wanted"] = self._catalog.gettext(wanted).format_map(_Parts(params))
        reason = params.get("reason") or params.get("kind")
        what = str(params.get("what") or "")
        text = self._first(
            (what if what.startswith("failure.") else "", f"error.{code}.{reason}", f"error.{code}"), told, apart=True
        )
        named = str(params.get("remedy") or "")
        keys = (named if named.startswith("remedy.") else "", f"remedy.{code}.{reason}", f"remedy.{code}")
        return text or message or code, self._first(keys, told)

    def finding(self, found: Finding) -> tuple[str, str, str]:
        """What was looked at, what was found there, and what to do about it."""
        kind, _, name = found.check.partition(":")
        title = self.text(f"doctor.{kind}", name=name)
        params = dict(found.params)
        if isinstance(params.get("state"), str):
            params["state"] = self.text(f"server.state.{params['state']}")
        if found.say.startswith("error:"):
            named = params | ({"remedy": found.remedy} if found.remedy else {})
            what, remedy = self.error(found.say.partition(":")[2], named, str(params.get("message", "")))
            what = what.replace("\n", "")
        else:
            what, remedy = self._first((found.say,), params) if found.say else "", ""
        if found.remedy and self.has(found.remedy):
            remedy = self._first((found.remedy,), params)
        return title, what, "" if found.ok else remedy

    def failure(self, report: FailureReport) -> tuple[str, str]:
        """Why a server does not work, in a sentence, and its likely cause with the mend."""
        what, remedy = self.error(
            report.code, {**report.params, "what": report.what, "remedy": report.remedy}, report.message
        )
        if not self.has(report.what) and not {"reason", "kind"} & set(report.params):
            what = report.message  # The text of a code alone leaves out what the report knows.
        return what, remedy

    def switched(self, reason: str) -> str:
        """Why another model answers: a word of a route, or the code of what befell the one before."""
        return self._first((f"switch.{reason}", f"route.reason.{reason}"), {}) or reason

    def _first(self, keys: Iterable[str], params: dict[str, Any], *, apart: bool = False) -> str:
        """The text of the first key that there is; empty where there is none."""
        key = next((key for key in keys if key and self.has(key)), None)
        if key is None:
            return ""
        text, quoted = _fitted(self._catalog.gettext(key), params), ""
        if apart and ("{file}" in text or "{path}" in text):
            params = {**params, "message": _without_place(str(params["message"]), params)}
        if apart and self.language != "en" and (found := _AT_END.search(text)) is not None:
            foreign = str(params.get(found[1] or found[2]) or "").strip()
            if foreign and not _CJK.search(foreign):
                text, quoted = f"{text[: found.start()]}。", f"\n“{foreign}”"
        return text.format_map(_Parts(params)) + quoted


_AT_END = re.compile(r"(?:[:：] ?\{(message|detail)\}|[（(]\{(message|detail)\}[）)])[。.]?$")
"""Where a text lets another program speak."""
_CJK = re.compile("[\u3400-\u9fff]")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")


def _without_place(message: str, params: dict[str, Any]) -> str:
    """What is left of `FILE:LINE:COLUMN: what is wrong` where the text names the place itself."""
    place = str(params.get("file") or params.get("path") or "")
    found = re.match(r"(?::\d+)*: ", message[len(place) :]) if place and message.startswith(place) else None
    return message if found is None else message[len(place) + found.end() :]


def _fitted(text: str, params: dict[str, Any]) -> str:
    """`text` without the optional parts that cannot be filled."""
    while found := _OPTIONAL.search(text):
        kept = ""
        for part in found[1].split("|"):
            names = [name for _, name, _, _ in Formatter().parse(part) if name]
            if all(params.get(name) not in (None, "") for name in names):
                kept = part
                break
        text = text[: found.start()] + kept + text[found.end() :]
    return text


_current: Translator | None = None
_told: str | None = None


def install(language: str = "system") -> Translator:
    """Make a language the current one of this process."""
    global _current
    _current = Translator(pick_language(language))
    return _current


def tell(language: str | None) -> None:
    """The language that this run was told to speak (`--lang`), whatever is set; None: what is set holds again."""
    global _told
    _told = language


def spoken(wanted: str) -> str:
    """The language of this run where `wanted` is what is set."""
    return _told or wanted


def current() -> Translator:
    """The current translator; the system's language if none was installed."""
    return _current or install()


def tr(key: str, **params: Any) -> str:
    """The text of `key` in the current language."""
    return current().text(key, **params)


def trn(key: str, n: int, **params: Any) -> str:
    """The text of `key` for `n` things in the current language."""
    return current().plural(key, n, **params)


def error_text(error: HostError) -> tuple[str, str]:
    """What happened and what to do, in the current language."""
    return current().error(error.code, error.params, error.message)


def finding_text(found: Finding) -> tuple[str, str, str]:
    """Title, finding and remedy of a check, in the current language."""
    return current().finding(found)
