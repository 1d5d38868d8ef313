"""What went wrong, said so that it can be mended."""

from __future__ import annotations

import pytest

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.servers import Http, LogLine, ServerConfig, Stdio
from desktop_host.i18n import Translator
from desktop_host.servers.failure import Evidence, fault, main_leaf, report
from desktop_host.servers.records import MASK, Redactor

LOCAL = ServerConfig("s", Stdio("npx"))
REMOTE = ServerConfig("s", Http("https://example.com/mcp"))


def said(*lines: str) -> list[LogLine]:
    return [LogLine(10.0, "stderr", x) for x in lines]


@pytest.mark.parametrize(
    ("error", "seen", "lines", "remedy"),
    [
        (EOFError(), Evidence(exit_code=1), ["ModuleNotFoundError: No module named 'x'"], "missing_module"),
        (EOFError(), Evidence(exit_code=1), ["'Server' object has no attribute 'list_resources'"], "old_sdk"),
        (EOFError(), Evidence(exit_code=1), ["npm error code E404"], "no_package"),
        (EOFError(), Evidence(exit_code=1), ["Error: listen EADDRINUSE: address already in use"], "port_taken"),
        (EOFError(), Evidence(exit_code=1), ["Error: API key is required"], "no_key"),
        (EOFError(), Evidence(exit_code=0), [], "exited_at_once"),
        (EOFError(), Evidence(exit_code=3), ["boom"], "read_log"),
        (EOFError(), Evidence(bad_stdout="Welcome!"), [], "prints_to_stdout"),
        (TimeoutError(), Evidence(timed_out=True), [], "timeout"),
        (
            KnownFault("server_failed", reason="command_not_found", command="/opt/x/npx"),
            Evidence(),
            [],
            "install_node",
        ),
        (UserFault("bad_config", variable="X", reason="missing_variable"), Evidence(), [], "configuration"),
        (KnownFault("vault_locked"), Evidence(), [], "vault"),
    ],
)
def test_the_likely_cause_is_named_and_has_a_text(
    error: BaseException, seen: Evidence, lines: list[str], remedy: str
) -> None:
    """Hazards B31, B32."""
    made = report(
        LOCAL, ExceptionGroup("x", [error]) if isinstance(error, Exception) else error, seen, said(*lines), Redactor()
    )
    assert made.remedy == f"remedy.server.{remedy}"
    for language in ("en", "zh_CN"):
        assert Translator(language).has(made.remedy), made.remedy


@pytest.mark.parametrize(
    ("status", "code", "remedy"), [(401, "auth", "auth"), (403, "auth", "auth"), (404, "server_failed", "wrong_url")]
)
def test_an_http_status_decides(status: int, code: str, remedy: str) -> None:
    made = report(REMOTE, OSError("x"), Evidence(http_status=status), [], Redactor())
    assert (made.code, made.remedy) == (code, f"remedy.server.{remedy}")


def test_the_report_holds_the_last_twenty_lines_and_no_secret() -> None:
    lines = [LogLine(1.0, "host", "no word of the server's"), *said(*(f"line {n} k3y-value" for n in range(30)))]
    seen = Evidence(command=("/bin/x", "k3y-value"), path="/bin", exit_code=2, bad_stdout="k3y-value")
    made = report(LOCAL, EOFError("k3y-value"), seen, lines, Redactor({"k3y-value"}))
    assert (len(made.stderr), made.stderr[-1], made.bad_stdout) == (20, f"line 29 {MASK}", MASK)
    assert "k3y-value" not in str(made)
    assert "k3y-value" not in str(fault(made, "s").params)


def test_our_own_faults_are_found_in_nested_groups() -> None:
    inner = KnownFault("tls")
    assert main_leaf(ExceptionGroup("a", [ValueError(), ExceptionGroup("b", [inner])])) is inner


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://user:${keyring:web/url}@example.com/mcp", "example.com"),
        ("https://${USER}:${keyring:a/b}@${HOST}:8443/mcp", "${HOST}:8443"),
        ("https://example.com/${keyring:a/b}", "example.com"),
    ],
)
def test_the_host_is_named_and_never_who_signs_in_there(url: str, host: str) -> None:
    made = report(ServerConfig("s", Http(url)), OSError("connection refused"), Evidence(), [], Redactor())
    assert made.params["address"] == host
