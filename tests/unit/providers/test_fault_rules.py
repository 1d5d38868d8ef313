"""What a vendor's refusal means, over bodies seen in public."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from desktop_host.core.errors import EXIT_CODES
from desktop_host.i18n import Translator
from desktop_host.providers.errors import Where, classify, from_exception, retry_after

WHERE = Where("Anthropic", "m-1", "https://api.example.com", "sk-ant-api03-abcdefghijkl")


def a(message: str, kind: str = "invalid_request_error", **more: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message, **more}}


def o(message: str, code: str | None = None, kind: str = "invalid_request_error", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": code, **more}}


CASES: list[tuple[int | None, Any, str, bool]] = [
    (401, a("invalid x-api-key", "authentication_error"), "auth", False),
    (401, o("Incorrect API key provided", "invalid_api_key"), "auth", False),
    (402, a("Payment", "billing_error"), "billing", False),
    (400, a("Your credit balance is too low to access the API."), "billing", False),
    (400, a("You have reached your specified API usage spend limit."), "billing", False),
    (429, o("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), "billing", False),
    (429, a("Number of requests", "rate_limit_error"), "rate_limited", True),
    (429, o("Rate limit reached for gpt", "rate_limit_exceeded", "requests"), "rate_limited", True),
    (429, o("Request too large for gpt-5 on tokens per min", "rate_limit_exceeded"), "context_overflow", False),
    (529, a("Overloaded", "overloaded_error"), "overloaded", True),
    (None, a("Overloaded", "overloaded_error"), "overloaded", True),
    (500, a("Internal server error", "api_error"), "overloaded", True),
    (503, "upstream connect error", "overloaded", True),
    (400, a("prompt is too long: 210000 tokens > 200000 maximum"), "context_overflow", False),
    (
        400,
        o("This model's maximum context length is 8192 tokens.", "context_length_exceeded"),
        "context_overflow",
        False,
    ),
    (
        400,
        {
            "error": {
                "code": 400,
                "message": "request exceeds the available context size",
                "type": "exceed_context_size_error",
                "n_ctx": 4096,
            }
        },
        "context_overflow",
        False,
    ),
    (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count exceeds the maximum",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        "context_overflow",
        False,
    ),
    (413, "<html>413 Request Entity Too Large</html>", "too_large", False),
    (413, a("Request exceeds the maximum size", "request_too_large"), "too_large", False),
    (400, a("messages.1.content.0: Invalid `signature` in `thinking` block"), "thinking_binding", False),
    (400, a("messages.1: `thinking` or `redacted_thinking` blocks cannot be modified"), "thinking_binding", False),
    (404, a("model: claude-9", "not_found_error"), "unknown_model", False),
    (404, o("The model `x` does not exist", "model_not_found"), "unknown_model", False),
    (404, {"error": "model 'qwen9' not found"}, "unknown_model", False),
    (404, "<!DOCTYPE html><html>No such model page</html>", "protocol_error", False),
    (400, a("`tool_use` ids were found without `tool_result` blocks immediately after: x"), "bad_history", False),
    (
        400,
        o(
            "An assistant message with 'tool_calls' must be followed by tool messages. The following tool_call_ids did "
            "not have response messages: c"
        ),
        "bad_history",
        False,
    ),
    (
        400,
        o("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"),
        "bad_history",
        False,
    ),
    (400, a("tools.3.custom.input_schema: JSON schema is invalid."), "bad_tool_schema", False),
    (
        400,
        o(
            "Invalid schema for function 'x': object schema missing properties",
            "invalid_function_parameters",
            param="tools[0].function.parameters",
        ),
        "bad_tool_schema",
        False,
    ),
    (400, o("Invalid prompt: flagged", "invalid_prompt"), "content_filter", False),
    (403, a("Your key has no access", "permission_error"), "permission", False),
    (
        400,
        o("Unsupported parameter: 'temperature'", "unsupported_parameter", param="temperature"),
        "unsupported_param",
        False,
    ),
    (400, a("thinking.adaptive.block_binding: Extra inputs are not permitted"), "unsupported_param", False),
    (422, {"detail": "something odd"}, "protocol_error", False),
    (None, {"code": "server_error", "message": "The server had an error"}, "overloaded", True),
    (None, None, "protocol_error", False),
]


@pytest.mark.parametrize(("status", "body", "code", "retryable"), CASES, ids=range(len(CASES)))
def test_every_known_body_has_its_code(status, body, code, retryable):
    fault = classify(WHERE, body, status=status)
    assert (fault.code, fault.retryable) == (code, retryable)
    assert any(code in codes for codes in EXIT_CODES.values())
    assert fault.params["provider"] == "Anthropic"
    assert fault.params["model"] == "m-1"


def test_the_key_is_in_no_part_of_a_fault():
    body = o(f"Incorrect API key provided: {WHERE.secret}. Also sk-proj-aaaaaaaaaaaaaaaa and Bearer abcdefgh12345678.")
    fault = classify(WHERE, body, status=401)
    told = f"{fault} {fault.message} {fault.params} {fault!r}"
    for secret in (WHERE.secret, "sk-proj-aaaaaaaaaaaaaaaa", "abcdefgh12345678"):
        assert secret not in told


def test_request_id_and_delay_come_from_the_headers():
    """Hazard J107: `Retry-After` was ignored."""
    headers = {"request-id": "req_1", "retry-after": "17"}
    fault = classify(WHERE, a("x", "rate_limit_error"), status=429, headers=headers)
    assert fault.params["request_id"] == "req_1"
    assert fault.retry_after_s == fault.params["wait_s"] == 17
    assert Translator("en").error(fault.code, fault.params)[1].startswith("Wait 17 s")
    endless = classify(WHERE, a("x", "rate_limit_error"), status=429, headers={"retry-after": "inf"})
    assert endless.retry_after_s == float("inf"), "and no error of ours"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT", "date": "Mon, 30 Nov 2026 12:00:00 GMT"}, 30),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_delay_is_read_in_every_form(headers, seconds):
    assert retry_after(headers) == seconds


def test_a_redirect_is_a_wrong_address():
    fault = classify(WHERE, "", status=307, headers={"location": "https://evil.example/steal?x"})
    assert (fault.code, fault.params["reason"], fault.params["target"]) == (
        "protocol_error",
        "redirect",
        "evil.example",
    )


def test_causes_decide_over_wrappers():
    inner = ssl.SSLCertVerificationError("self-signed certificate")
    outer = ConnectionError("Connection error.")
    outer.__cause__ = inner
    assert from_exception(WHERE, outer).code == "tls"
    refused = RuntimeError("Connection error.")
    refused.__cause__ = ConnectionRefusedError(111, "refused")
    fault = from_exception(WHERE, refused)
    assert (fault.code, fault.params["reason"], fault.retryable) == ("network", "refused", True)
    assert from_exception(WHERE, TimeoutError()).params["reason"] == "timeout"
    assert from_exception(WHERE, ImportError("socksio")).code == "proxy"


def test_what_is_not_known_is_a_bug_and_comes_through():
    with pytest.raises(KeyError):
        from_exception(WHERE, KeyError("ours"))
