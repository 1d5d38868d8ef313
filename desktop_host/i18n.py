"""Message keys and codes to text, in English and Chinese.

Keys stand in `resources/locale/<language>/*.po` (one file per room, so that they can be written side by
side); `packaging/compile_locale.py` joins them into the `desktop_host.mo` that is read here.
"""

from __future__ import annotations

import gettext
import locale
import os
from typing import Any

from desktop_host.core.errors import HostError
from desktop_host.core.places import shipped

LANGUAGES = ("en", "zh_CN")


def pick_language(wanted: str = "system") -> str:
    """`en` or `zh_CN` for a setting; `system` follows the environment."""
    if wanted in LANGUAGES:
        return wanted
    spoken = next((os.environ[k] for k in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(k)), "")
    if not spoken:
        spoken = locale.getlocale()[0] or ""
    return "zh_CN" if spoken.lower().startswith(("zh", "chinese")) else "en"


class _Parts(dict[str, Any]):
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
        """What happened and what to do, for an error code. Falls back to `message` for an unknown code."""
        key = f"error.{code}"
        text = self.text(key, message=message, **{k: v for k, v in params.items() if k != "message"})
        remedy = f"remedy.{code}"
        return (
            text if self.has(key) else message or code,
            self.text(remedy, **params) if self.has(remedy) else "",
        )


_current: Translator | None = None


def install(language: str = "system") -> Translator:
    """Make a language the current one of this process."""
    global _current
    _current = Translator(pick_language(language))
    return _current


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
