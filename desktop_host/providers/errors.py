"""What a vendor's refusal means: status, type, code and text to one of our error codes.

The order of the rules matters and follows what was seen in public: a refusal for want of money comes as
429 from one vendor and as 400 from another, an overload comes inside a stream with status 200.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Any
from urllib.parse import urlsplit

from desktop_host.core.errors import ModelFault

_KEYS = re.compile(r"\b(?:sk|pk|gsk|xai|AIza)[-_A-Za-z0-9]{12,}|(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,}")
_CONTEXT = re.compile(
    r"prompt is too long|context[_ ](?:length|size)|maximum context|context window|exceed context limit"
    r"|input is too long|too many tokens|n_ctx|exceeds? the (?:available )?context|reduce the length"
    r"|request too large for|input token count",
    re.I,
)
_HISTORY = re.compile(
    r"tool_use.*tool_result|tool_result.*tool_use|tool_call_ids? did not have|must be a response to a prece+d"
    r"|without its required|must be non-empty|reasoning_content|thought_signature|no tool output found",
    re.I | re.S,
)
_TOOL = re.compile(
    r"^tools\.\d+|tools\[\d+\]|input_schema|invalid_function_parameters|invalid schema for function"
    r"|tool names must be unique|function_declarations|grammar|array_above_max_length",
    re.I,
)
_PARAM = re.compile(
    r"unsupported (?:parameter|value)|not supported (?:with|for) this model|does not support|is not supported"
    r"|extra inputs are not permitted|unrecognized request argument|unknown (?:name|field|parameter)"
    r"|reasoning_effort|stream_options|block_binding|unexpected keyword",
    re.I,
)
_BILLING_CODES = frozenset(
    {
        "insufficient_quota", "billing_hard_limit_reached", "enforced_spend_limit_reached",
        "contract_spend_limit_reached", "billing_not_active", "billing_error",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Where:
    """Whom we were talking to; goes into every error."""

    provider: str
    """Name a person knows: `Anthropic`, `OpenAI` or the host of the address."""
    model: str
    base_url: str
    secret: str = ""
    """The key in use, only so that it can be taken out of texts."""

    @property
    def host(self) -> str:
        """Host and port of the address."""
        return urlsplit(self.base_url).netloc

    def params(self) -> dict[str, Any]:
        """What each error says of the place."""
        return {"provider": self.provider, "model": self.model, "host": self.host}

    def clean(self, text: object, limit: int = 600) -> str:
        """A vendor's words without keys, cut to `limit` characters."""
        said = str(text)
        if len(self.secret) >= 4:
            said = said.replace(self.secret, "***")
        said = _KEYS.sub("***", said)
        return said if len(said) <= limit else said[: limit - 1] + "…"


def _facts(body: Any) -> tuple[str, str, str, str]:
    """`(message, type, code, param)` of an error body in any of the shapes seen."""
    if isinstance(body, (list, tuple)) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        return (str(body) if body is not None else "", "", "", "")
    inner = body.get("error", body)
    if not isinstance(inner, Mapping):
        return (str(inner), str(body.get("type") or ""), str(body.get("code") or ""), "")
    detail = inner.get("details")
    code = inner.get("code") or (detail.get("error_code") if isinstance(detail, Mapping) else None)
    message = inner.get("message") or body.get("message") or body.get("detail") or ""
    kind = inner.get("type") or inner.get("status") or ""
    return (str(message), str(kind), str(code or ""), str(inner.get("param") or ""))


def _code(status: int | None, text: str, kind: str, code: str, param: str) -> tuple[str, bool]:
    """Our code and whether trying again may help."""
    low = text.lower()
    if kind == "overloaded_error" or status == 529 or "overloaded" in low:
        return "overloaded", True
    if (
        kind in _BILLING_CODES
        or code in _BILLING_CODES
        or status == 402
        or "credit balance is too low" in low
        or "spend limit" in low
    ):
        return "billing", False
    if status == 401 or kind == "authentication_error" or code == "invalid_api_key":
        return "auth", False
    if status == 429 or kind in ("rate_limit_error", "RESOURCE_EXHAUSTED") or code.startswith("rate_limit"):
        return ("context_overflow", False) if "request too large for" in low else ("rate_limited", True)
    if code in ("context_length_exceeded", "exceed_context_size_error") or kind == "exceed_context_size_error":
        return "context_overflow", False
    if _CONTEXT.search(text) and status in (400, 413, 422, 500, None):
        return "context_overflow", False
    if status == 413 or kind == "request_too_large":
        return "too_large", False
    if "block_binding" in low:
        return "unsupported_param", False
    if "bound to a different conversation" in low or ("thinking" in low and re.search("signature|cannot be mod", low)):
        return "thinking_binding", False
    if (
        code == "model_not_found"
        or (status == 404 and "model" in low and "<html" not in low)
        or (kind == "not_found_error" and low.startswith("model"))
    ):
        return "unknown_model", False
    if code in ("content_filter", "content_policy_violation", "bio_policy", "invalid_prompt"):
        return "content_filter", False
    if "content management policy" in low:
        return "content_filter", False
    if _HISTORY.search(text):
        return "bad_history", False
    if _TOOL.search(text) or code in ("invalid_function_parameters", "array_above_max_length"):
        return "bad_tool_schema", False
    if re.match(r"tools\b", param):
        return "bad_tool_schema", False
    if status == 403 or kind == "permission_error" or code == "organization_on_hold":
        return "permission", False
    if status == 407:
        return "proxy", False
    if (status or 0) >= 500 or kind in ("api_error", "server_error", "timeout_error") or code == "server_error":
        return "overloaded", True
    if status == 408:
        return "network", True
    if _PARAM.search(text) or code in ("unsupported_parameter", "unsupported_value", "unknown_parameter"):
        return "unsupported_param", False
    return "protocol_error", False


def classify(
    where: Where,
    body: Any,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    visible: bool = False,
) -> ModelFault:
    """The fault behind an error body, from a status or from within a stream (`status` None)."""
    text, kind, vendor_code, param = _facts(body)
    code, retryable = _code(status, text, kind, vendor_code, param)
    params = where.params()
    for key, value in (("status", status), ("type", kind), ("vendor_code", vendor_code), ("param", param)):
        if value:
            params[key] = value
    given = headers or {}
    request_id = given.get("request-id") or given.get("x-request-id")
    if request_id:
        params["request_id"] = request_id
    if status is not None and 300 <= status < 400:
        target = urlsplit(given.get("location", "")).netloc
        params |= {"reason": "redirect", "target": target}
        text = f"the address redirects to {target or 'another place'}; redirects are not followed"
    elif code == "protocol_error" and (_is_page(text) or status in (404, 405)):
        params["reason"] = "not_an_api"
        said = "a web page came back" if _is_page(text) else text or "there is nothing"
        text = f"{said} (HTTP {status}) where an API was expected" if status else f"{said} where an API was expected"
    wait = retry_after(given)
    if retryable and wait is not None:
        params["wait_s"] = ceil(min(wait, 1e9))
    said = where.clean(text or f"HTTP {status}" if status else text or "the model reported an error")
    params["detail"] = said
    return ModelFault(
        code, said, retryable=retryable, retry_after_s=wait, visible=visible,
        **params,
    )  # fmt: skip


def _is_page(text: str) -> bool:
    start = text.lstrip()[:200].lower()
    return start.startswith(("<!doctype", "<html")) or "<html" in start


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the headers say (`retry-after-ms`, `retry-after` as number or date)."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if not value:
            continue
        try:
            return max(0.0, float(value) * scale)
        except ValueError:
            pass
        try:
            at = parsedate_to_datetime(value)
            sent = parsedate_to_datetime(headers["date"]) if headers.get("date") else datetime.now(UTC)
            return max(0.0, (at - sent).total_seconds())
        except (TypeError, ValueError):
            continue
    return None


def truncated(where: Where, *, visible: bool, detail: str = "the stream ended before the answer did") -> ModelFault:
    """The fault of an answer that was cut off."""
    return ModelFault(
        "stream_truncated", detail, retryable=not visible, visible=visible,
        detail=detail, **where.params(),
    )  # fmt: skip


def protocol(where: Where, reason: str, detail: str, *, visible: bool = False) -> ModelFault:
    """The fault of an address that does not speak the protocol."""
    said = where.clean(detail)
    return ModelFault("protocol_error", said, visible=visible, reason=reason, detail=said, **where.params())


def chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and what caused it, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def from_exception(where: Where, error: Exception, *, streaming: bool = False) -> ModelFault:
    """The fault behind an exception of an SDK or of the transport; `streaming` once an answer had begun."""
    if isinstance(error, ModelFault):
        return error
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    if isinstance(status, int):
        return classify(
            where, getattr(error, "body", None), status=status, headers=getattr(response, "headers", None),
        )  # fmt: skip
    links = list(chain(error))
    names = [type(link).__name__ for link in links]
    detail = where.clean(next((str(link) for link in reversed(links) if str(link)), names[0]))
    params = where.params()

    def fault(code: str, reason: str, said: str, retryable: bool = False) -> ModelFault:
        return ModelFault(code, said, retryable=retryable, reason=reason, detail=detail, **params)

    if any(isinstance(link, ssl.SSLCertVerificationError) for link in links):
        return fault("tls", "certificate", f"the certificate of {where.host} is not trusted: {detail}")
    if any(isinstance(link, ssl.SSLError) for link in links):
        return fault("tls", "handshake", detail)
    if any(isinstance(link, ImportError) for link in links):
        return fault("proxy", "socks", detail)
    if "ProxyError" in names:
        return fault("proxy", "refused", detail)
    if "UnsupportedProtocol" in names or "InvalidURL" in names or "LocalProtocolError" in names:
        return fault("protocol_error", "bad_address", detail)
    if "RemoteProtocolError" in names or "ReadError" in names:
        said = f"the connection to {where.host} broke off"
        return fault("stream_truncated" if streaming else "network", "cut", said, True)
    if any("Timeout" in name for name in names):
        return fault("network", "timeout", f"{where.host} did not answer in time", True)
    if any(isinstance(link, ConnectionRefusedError) for link in links):
        return fault("network", "refused", f"nothing answers at {where.host}", True)
    if any(isinstance(link, OSError) for link in links) or any(
        name.endswith(("ConnectError", "TransportError", "NetworkError", "WriteError")) for name in names
    ):
        return fault("network", "unreachable", detail, True)
    raise error
