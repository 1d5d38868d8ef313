from __future__ import annotations

import pytest

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.servers import Http, Stdio
from desktop_host.core.values import FrozenDict
from desktop_host.servers.placeholders import expand, expand_launch


class Vault:
    """A vault in memory; counts how often each secret was asked for."""

    def __init__(self, **held: str) -> None:
        self.held = held
        self.asked: list[str] = []

    async def get(self, name: str) -> str | None:
        if name == "locked":
            raise KnownFault("vault_locked")
        self.asked.append(name)
        return self.held.get(name)

    async def put(self, name: str, value: str) -> None:
        self.held[name] = value

    async def delete(self, name: str) -> bool:
        return self.held.pop(name, None) is not None

    async def names(self) -> tuple[str, ...]:
        return tuple(self.held)

    async def probe(self) -> FrozenDict:
        return FrozenDict({"store": "memory", "ok": True})


ENV = {"HOME": "/home/ada", "EMPTY": "", "MY_TOKEN": "tok-123456"}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plain $HOME ${", "plain $HOME ${"),
        ("${HOME}/x/${env:HOME}", "/home/ada/x//home/ada"),
        ("Bearer ${MY_TOKEN}", "Bearer tok-123456"),
        ("${EMPTY}|${EMPTY:-d}|${NONE:-}|${NONE:-a b}", "|d||a b"),
        ("${env:NONE:-${HOME}}", "/home/ada"),
        ("${NONE:-${OTHER:-${HOME}/x}}", "/home/ada/x"),
        ("${keyring:a/K}!", "s3cret!"),
        ("$${HOME} costs $5", "${HOME} costs $5"),
        ("${keyring:tricky}", "${HOME}"),
    ],
)
async def test_placeholders_are_filled_once(text: str, filled: str) -> None:
    """Hazard A7."""
    assert await expand(text, Vault(**{"a/K": "s3cret", "tricky": "${HOME}"}), ENV) == filled


@pytest.mark.parametrize(
    ("text", "reason", "variable"),
    [
        ("Bearer ${NONE}", "missing_variable", "NONE"),
        ("${env:NONE}", "missing_variable", "NONE"),
        ("${keyring:none}", "missing_secret", "none"),
        ("${input:id}", "unknown_placeholder", "input:id"),
        ("${a b}", "unknown_placeholder", "a b"),
        ("${}", "unknown_placeholder", ""),
    ],
)
async def test_what_is_missing_is_named_with_its_place(text: str, reason: str, variable: str) -> None:
    """Hazard A7."""
    launch = Http("http://127.0.0.1:9/mcp", FrozenDict({"Authorization": text}))
    with pytest.raises(UserFault) as failed:
        await expand_launch(launch, Vault(), ENV)
    assert failed.value.code == "bad_config"
    assert failed.value.params == {"reason": reason, "variable": variable, "where": "headers.Authorization"}
    assert "headers.Authorization" in failed.value.message


async def test_every_part_of_a_launch_is_expanded_and_each_secret_fetched_once() -> None:
    vault = Vault(key="topsecret")
    launch, secret = await expand_launch(
        Stdio(
            "${HOME}/bin/x", ("--k=${keyring:key}", ""), FrozenDict({"A": "${keyring:key}", "B": "${MY_TOKEN}"}), "~/w"
        ),
        vault,
        ENV,
    )
    assert isinstance(launch, Stdio)
    assert launch.command == "/home/ada/bin/x"
    assert launch.args == ("--k=topsecret", "")
    assert launch.env == {"A": "topsecret", "B": "tok-123456"}
    assert launch.cwd is not None
    assert launch.cwd.startswith("/")
    assert secret == {"topsecret", "tok-123456"}
    assert vault.asked == ["key"]


async def test_plain_secrets_by_name_are_told_for_redaction_and_harmless_values_are_not() -> None:
    """Hazard O137."""
    _, secret = await expand_launch(
        Http("https://x/mcp", FrozenDict({"Authorization": "Bearer abc.def", "Accept": "text/plain", "X-Token": "1"})),
        Vault(),
        ENV,
    )
    assert secret == {"Bearer abc.def", "abc.def"}


async def test_a_locked_vault_is_not_mistaken_for_a_missing_secret() -> None:
    with pytest.raises(KnownFault, match="vault locked"):
        await expand("${keyring:locked}", Vault(), ENV)


@pytest.mark.parametrize(("value", "reason"), [("a\r\nX-Evil: 1", "line_break"), ("a\0b", "nul_character")])
async def test_a_secret_that_would_break_the_header_is_refused_without_showing_it(value: str, reason: str) -> None:
    """Hazard O137."""
    with pytest.raises(UserFault) as failed:
        await expand_launch(Http("https://x", FrozenDict({"X-Key": "${keyring:k}"})), Vault(k=value), ENV)
    assert failed.value.params["reason"] == reason
    assert value not in repr((failed.value.message, failed.value.params))
