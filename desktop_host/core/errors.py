"""The error tree.

`HostError` carries a `code`, `params` and whether trying again may help. The code is the key of the
text a person reads (`error.<code>` and `remedy.<code>` in the locale) and decides the exit code of the
command line. Three branches say whose fault it is: `UserFault` (change what you asked), `KnownFault`
(the world failed; often worth a retry), `PeerFault` (a server or model broke its contract). Everything
else that is raised is a bug and goes to the crash hook.
"""

from __future__ import annotations

from typing import Any, ClassVar

_FAMILIES: dict[int, str] = {
    1: """tool_failed tool_timed_out stream_truncated context_overflow too_large content_filter bad_tool_schema
       bad_history unknown_model unsupported_param protocol_error session_busy max_steps turn_timeout
       script_exhausted script_expectation database_error thinking_binding bug""",
    2: "usage bad_config bad_settings bad_skill bad_bundle bad_archive not_found",
    3: "decision_needed",
    4: "budget_spent quota_spent price_unknown",
    5: """auth billing permission rate_limited overloaded network tls proxy server_failed server_lost
       connect_timeout model_missing vault_unavailable vault_locked disk_full storage_unavailable""",
    130: "interrupted",
}

EXIT_CODES: dict[int, frozenset[str]] = {status: frozenset(codes.split()) for status, codes in _FAMILIES.items()}
"""Exit code of the command line to the error codes that give it."""


class HostError(Exception):
    """A failure that the host can name.

    Args:
        code: one of the codes of `EXIT_CODES`.
        message: one English sentence for logs and `--json`; the interface localises by `code` and `params`.
        params: what the localised sentence needs, JSON values only, never a secret.
    """

    default_code: ClassVar[str] = "bug"
    retryable: bool = False

    def __init__(self, code: str = "", message: str = "", *, retryable: bool | None = None, **params: Any) -> None:
        self.code = code or self.default_code
        self.params: dict[str, Any] = params
        self.message = message or self.code.replace("_", " ")
        if retryable is not None:
            self.retryable = retryable
        super().__init__(self.message)

    @property
    def exit_code(self) -> int:
        """The exit code of the command line for this error."""
        return exit_code(self.code)


class UserFault(HostError):
    """What was asked for cannot be done as asked."""

    default_code = "usage"


class KnownFault(HostError):
    """The world failed in a way we know: network, disk, a server that died."""

    default_code = "network"


class PeerFault(HostError):
    """A server or a model broke its contract."""

    default_code = "protocol_error"


class ModelFault(KnownFault):
    """A model request failed.

    `visible` tells whether text of this request was already shown: then it is never retried by itself.
    """

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        visible: bool = False,
        **params: Any,
    ) -> None:
        super().__init__(code, message, retryable=retryable, **params)
        self.retry_after_s = retry_after_s
        self.visible = visible


def exit_code(code: str) -> int:
    """Map an error code to the exit code of the command line; unknown codes exit 1."""
    for status, codes in EXIT_CODES.items():
        if code in codes:
            return status
    return 1
