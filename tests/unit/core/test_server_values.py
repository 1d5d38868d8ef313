"""What a profile gives its servers: lines of variables and headers, and what of them is refused."""

from __future__ import annotations

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.server_values import ServerValues, origin_of
from desktop_host.core.settings import Settings, put


def test_a_variable_goes_to_all_servers_or_to_the_named_ones_and_the_named_line_wins():
    values = ServerValues(env="# who we are\nTENANT=acme\nfiles, notes: TENANT=acme-files\nnotes: KEY=${keyring:k}\n")
    assert values.variables_for("other") == {"TENANT": "acme"}
    assert values.variables_for("files") == {"TENANT": "acme-files"}
    assert values.variables_for("notes") == {"TENANT": "acme-files", "KEY": "${keyring:k}"}


def test_a_header_goes_to_its_own_origin_only():
    values = ServerValues(headers="https://mcp.example.com X-Tenant: acme\nhttp://127.0.0.1:8010/ X-Key: ${keyring:k}")
    assert values.headers_for("https://MCP.example.com:443/mcp?x=1") == {"X-Tenant": "acme"}
    assert values.headers_for("http://127.0.0.1:8010/mcp") == {"X-Key": "${keyring:k}"}
    for other in (
        "http://mcp.example.com/mcp", "https://mcp.example.com:8443/mcp", "https://mcp.example.com.evil.test/",
        "https://evil.test/?https://mcp.example.com", "https://mcp.example.com@evil.test/", "http://127.0.0.1:8011/",
        "ftp://mcp.example.com", "not a url", "https://[broken",
    ):  # fmt: skip
        assert values.headers_for(other) == {}, other


@pytest.mark.parametrize(
    ("key", "text", "line"),
    [
        ("servers.env", "A=1\nno variable", 2),
        ("servers.env", "BAD NAME=1", 1),
        ("servers.env", "UP_PER!: A=1", 1),
        ("servers.env", "files: API_TOKEN=plain-text-token", 1),
        ("servers.env", "TENANT=${keyring:t}", 1),
        ("servers.env", "API_KEY=${keyring:t}", 1),
        ("servers.headers", "X-Tenant: acme", 1),
        ("servers.headers", "files X-Tenant: acme", 1),
        ("servers.headers", "https://a.example/path X-Tenant: acme", 1),
        ("servers.headers", "https://name:word@a.example X-Tenant: acme", 1),
        ("servers.headers", "https://a.example Authorization: Bearer plain", 1),
        ("servers.headers", "\n\nhttps://a.example Host: b.example", 3),
        ("servers.headers", "https://a.example Mcp-Session-Id: 1", 1),
        ("servers.headers", "https://a.example Bad Name: 1", 1),
    ],
)
def test_a_line_that_does_not_fit_is_refused_with_its_number_and_what_would_be_right(key, text, line):
    with pytest.raises(UserFault) as caught:
        put(Settings(), key, text)
    assert caught.value.code == "bad_settings"
    assert (caught.value.params["key"], caught.value.params["line"]) == (key, line)
    assert caught.value.params["wanted"]


def test_origins_are_compared_in_one_form():
    assert origin_of("HTTPS://Example.com") == origin_of("https://example.com:443/a/b") == "https://example.com:443"
    assert origin_of("http://[::1]:8010/mcp") == "http://::1:8010"
