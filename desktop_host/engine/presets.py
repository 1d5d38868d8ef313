"""Fixed arguments that name a secret: filled in at the last moment, for the person's own values only."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from desktop_host.core.admin import SecretStore
from desktop_host.core.errors import UserFault
from desktop_host.core.toolkit import ToolRule
from desktop_host.core.values import FrozenDict, canonical

_SECRET = re.compile(r"\$\{keyring:([^}]+)\}")


class Presets:
    """Expands `${keyring:NAME}` in fixed arguments.

    Args:
        secrets: the vault.
        learn: told which secrets went to which server, so that its trace hides them.
    """

    def __init__(self, secrets: SecretStore, learn: Callable[[str, frozenset[str]], None]) -> None:
        self._secrets, self._learn = secrets, learn

    async def expanded(self, full_name: str, arguments: FrozenDict, rule: ToolRule | None) -> FrozenDict:
        """The arguments with the secrets that the fixed ones name; the model's own are never read for any.

        Raises:
            UserFault: `bad_config`, the vault lacks a secret.
            KnownFault: `vault_unavailable`, `vault_locked`.
        """
        if rule is None or "${keyring:" not in canonical(rule.preset):
            return arguments
        seen: set[str] = set()
        filled = {k: await self._filled(v, full_name, seen) for k, v in rule.preset.items() if arguments.get(k) == v}
        self._learn(full_name.partition(".")[0], frozenset(seen))
        return FrozenDict({**arguments, **filled})

    async def _filled(self, value: Any, full_name: str, seen: set[str]) -> Any:
        if isinstance(value, tuple):
            return tuple([await self._filled(v, full_name, seen) for v in value])
        if isinstance(value, FrozenDict):
            return FrozenDict({k: await self._filled(v, full_name, seen) for k, v in value.items()})
        if not isinstance(value, str):
            return value
        for name in set(_SECRET.findall(value)):
            secret = await self._secrets.get(name)
            if secret is None:
                raise UserFault("bad_config", f"{full_name}: the vault has no secret named {name!r}",
                                reason="missing_secret", variable=name, where=full_name)  # fmt: skip
            seen.add(secret)
            value = value.replace(f"${{keyring:{name}}}", secret)
        return value
