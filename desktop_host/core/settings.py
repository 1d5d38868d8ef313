"""The settings of a profile, as data: page, command line and check are drawn from these fields.

A key is `section.field`. Each field's metadata gives the widget and its bounds; texts: `settings.<key>[.help]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, get_type_hints

from desktop_host.core.errors import UserFault
from desktop_host.core.routes import Route
from desktop_host.core.server_values import ServerValues
from desktop_host.core.settings_costs import Budgets, Cache, Price, Quotas, Routing, Trait
from desktop_host.core.settings_fields import choice as _choice
from desktop_host.core.settings_fields import flag as _flag
from desktop_host.core.settings_fields import lines as _lines
from desktop_host.core.settings_fields import number as _number
from desktop_host.core.settings_fields import text as _text
from desktop_host.core.settings_gateway import GatewaySettings
from desktop_host.core.settings_oauth import OAuthSettings
from desktop_host.core.settings_storage import Storage
from desktop_host.core.settings_telemetry import Telemetry
from desktop_host.core.values import FrozenDict

SCHEMA = 1
"""Number of the file's form; older files are upgraded step by step when opened."""


@dataclass(frozen=True, slots=True)
class General:
    """Language and looks."""

    language: str = _choice("system", "system", "en", "zh_CN")
    theme: str = _choice("system", "system", "light", "dark", "high_contrast")
    font_scale: int = _number(100, 80, 200)
    onboarded: bool = _flag(False)


@dataclass(frozen=True, slots=True)
class Model:
    """Which model answers, and how."""

    default: str = _text("local")
    """REF of the model of new chats."""
    effort: str = _choice("default", "default", "low", "medium", "high", "xhigh", "max")
    max_tokens: int = _number(0, 0, 1_000_000)
    """0: the model's own limit."""
    system: str = _lines("")
    """The person's own system text for new chats."""


@dataclass(frozen=True, slots=True)
class Tools:
    """How tools run."""

    permission: str = _choice("ask", "ask", "allow", "deny")
    """What the gate says where no rule speaks."""
    max_steps: int = _number(50, 1, 1000)
    result_chars: int = _number(60_000, 1_000, 1_000_000)
    """How much text of one result the model gets; the whole stays in the chat."""
    parallel: int = _number(8, 1, 64)
    search_share: int = _number(5, 0, 100)
    """Percent of the context that definitions may take before a search stands in for them; 0: always all."""
    roots: str = _lines("")
    """Folders that servers are told of in chats without their own, separated by `;` or lines."""
    call_timeout_s: int = _number(120, 1, 86_400)


@dataclass(frozen=True, slots=True)
class Sessions:
    """How long sessions stay in memory."""

    idle_minutes: int = _number(30, 1, 1440)
    turn_timeout_s: int = _number(0, 0, 86_400)
    """0: none."""


@dataclass(frozen=True, slots=True)
class Skills:
    """How skills wake and what they may take."""

    activation: str = _choice("auto", "auto", "suggest", "model")
    """`auto`: triggers choose; `suggest`: they only offer; `model`: the model picks from the catalogue."""
    matcher: str = _choice("lexical", "lexical", "semantic")
    """`semantic` needs the extra of that name; without it the lexical one stands in."""
    auto_score: int = _number(0, 0, 100)
    """Percent of similarity from which a skill wakes by itself; 0: what was measured for the matcher."""
    suggest_score: int = _number(0, 0, 100)
    """Percent from which it is offered; 0: what was measured for the matcher."""
    max_active: int = _number(3, 1, 10)
    """Skills that one message may wake."""
    catalogue_percent: int = _number(2, 0, 50)
    """How much of the model's context the list of skills may take."""
    agent_skill_instruction: str = _lines("")
    """What stands above the list of skills in the system text; empty: the built-in words."""
    agent_skill_template: str = _lines("")
    """One entry of that list, with `{name}`, `{description}`, `{version}` and `{dir}`; empty: the built-in one."""
    folders: str = _lines("")
    """More folders with skills, separated by `;` or lines."""
    trusted_projects: str = _lines("")
    """Project folders whose `.agents/skills` and `.claude/skills` count."""
    script_timeout_s: int = _number(120, 1, 3600)
    script_output_kb: int = _number(256, 1, 10_240)


@dataclass(frozen=True, slots=True)
class Network:
    """Certificates and proxies beyond the system's."""

    ca_file: str = _text("")
    proxy: str = _text("")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address that speaks a vendor's protocol. Its key is the vault's secret named by the base URL."""

    name: str
    wire: str
    """`compat`, `responses`, `anthropic` or `anthropic-compat`."""
    base_url: str
    models: tuple[str, ...] = ()
    """Model names typed by hand, beside those that the address lists."""


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """A rule of the profile as the file has it."""

    effect: str
    pattern: str
    arguments: str = ""
    tool_digest: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a profile."""

    general: General = General()
    model: Model = Model()
    tools: Tools = Tools()
    sessions: Sessions = Sessions()
    network: Network = Network()
    servers: ServerValues = field(default_factory=ServerValues)
    skills: Skills = Skills()
    budgets: Budgets = field(default_factory=Budgets)
    quotas: Quotas = field(default_factory=Quotas)
    cache: Cache = field(default_factory=Cache)
    routing: Routing = field(default_factory=Routing)
    oauth: OAuthSettings = field(default_factory=OAuthSettings)
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    storage: Storage = field(default_factory=Storage)
    telemetry: Telemetry = field(default_factory=Telemetry)
    endpoints: tuple[Endpoint, ...] = ()
    rules: tuple[PermissionRule, ...] = ()
    routes: tuple[Route, ...] = ()
    prices: tuple[Price, ...] = ()
    traits: tuple[Trait, ...] = ()


SECTIONS: dict[str, Any] = {n: kind for n, kind in get_type_hints(Settings).items() if is_dataclass(kind)}
"""The sections by name, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One settable key."""

    key: str
    type: type
    default: Any
    widget: str
    choices: tuple[str, ...] = ()
    range: tuple[float, float] | None = None
    check: Callable[[str], object] | None = None
    """Refuses text that is not fit, by `UserFault`."""


def schema() -> Iterator[Setting]:
    """All settable keys, in the order of the page."""
    for section, cls in SECTIONS.items():
        hints = get_type_hints(cls)
        for f in fields(cls):
            meta = f.metadata
            yield Setting(
                f"{section}.{f.name}", hints[f.name], f.default, meta["widget"],
                tuple(meta.get("choices", ())), meta.get("range"), meta.get("check"),
            )  # fmt: skip


_BY_KEY: dict[str, Setting] = {}


def setting(key: str) -> Setting:
    """The description of one key.

    Raises:
        UserFault: `bad_settings`, no such key.
    """
    if not _BY_KEY:
        _BY_KEY.update({s.key: s for s in schema()})
    try:
        return _BY_KEY[key]
    except KeyError:
        raise UserFault("bad_settings", f"there is no setting {key!r}", key=key, reason="unknown_key") from None


def get(settings: Settings, key: str) -> Any:
    """The value of one key.

    Raises:
        UserFault: `bad_settings`, no such key.
    """
    setting(key)
    section, name = key.split(".", 1)
    return getattr(getattr(settings, section), name)


def put(settings: Settings, key: str, value: Any) -> Settings:
    """Settings with one key set; text is converted to the key's type.

    Raises:
        UserFault: `bad_settings`, no such key or a value out of its range or choices.
    """
    spec = setting(key)
    section, name = key.split(".", 1)
    checked = check(spec, value)
    return replace(settings, **{section: replace(getattr(settings, section), **{name: checked})})


def not_used(problems: tuple[FrozenDict, ...]) -> UserFault | None:
    """What to tell a person of values in the file that are not used; None: all are."""
    if not problems:
        return None
    keys = ", ".join(str(problem["key"]) for problem in problems)
    return UserFault("bad_settings", f"not used: {keys}", reason="not_used", keys=keys)


def check(spec: Setting, value: Any) -> Any:
    """`value` converted to the type of `spec`.

    Raises:
        UserFault: `bad_settings` with what would be right.
    """

    def refuse(wanted: str, key: str, **params: Any) -> UserFault:
        return UserFault("bad_settings", f"{spec.key}: {value!r} is not {wanted}", key=spec.key, value=str(value),
                         wanted=f"wanted.{key}", reason="value", **params)  # fmt: skip

    if spec.type is bool:
        if isinstance(value, bool):
            return value
        if str(value).lower() in ("true", "1", "yes", "on"):
            return True
        if str(value).lower() in ("false", "0", "no", "off"):
            return False
        raise refuse("true or false", "flag")
    if spec.type is int:
        if isinstance(value, bool):
            raise refuse("a whole number", "whole")
        try:
            number = int(value)
        except (TypeError, ValueError):
            raise refuse("a whole number", "whole") from None
        low, high = spec.range or (number, number)
        if not low <= number <= high:
            raise refuse(f"a whole number from {int(low)} to {int(high)}", "whole_range", low=str(low), high=str(high))
        return number
    if spec.type is float:
        low, high = spec.range or (float("-inf"), float("inf"))
        try:
            decimal = float("nan") if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            decimal = float("nan")
        if not low <= decimal <= high:
            raise refuse(f"a number from {low:g} to {high:g}", "range", low=f"{low:g}", high=f"{high:g}")
        return decimal
    if not isinstance(value, str):
        raise refuse("text", "text")
    if spec.choices and value not in spec.choices:
        choices = ", ".join(spec.choices)
        raise refuse(f"one of {choices}", "choice", choices=choices)
    if spec.check is not None:
        spec.check(value)
    return value
