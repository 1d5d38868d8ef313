"""Where a sign-in may lead: outwards from the server, never further inside the network."""

from __future__ import annotations

import pytest

from desktop_host.core.auth import EnterpriseManaged
from desktop_host.core.errors import KnownFault
from desktop_host.servers.oauth_web import Web, merged, plain, web_for

PUBLIC, PRIVATE, HERE = "https://93.184.215.14/mcp", "https://10.1.2.3/mcp", "http://127.0.0.1:9/mcp"
INSIDE = (
    "https://127.0.0.1/x", "https://localhost/x", "https://[::1]/x", "https://0.0.0.0/x", "https://[::ffff:127.0.0.1]/",
    "http://127.0.0.1:631/x", "https://10.0.0.1/x", "https://192.168.1.1/x", "https://172.16.0.9/x",
    "https://100.64.0.1/x", "https://[fd00::1]/x", "https://[fe80::1]/x", "https://[::ffff:10.0.0.1]/x",
    "https://[64:ff9b::a00:1]/x", "https://[2002:a00:1::]/x", "https://169.254.169.254/x",
)  # fmt: skip


async def reason(web: Web, url: str) -> str:
    try:
        await web.allow(url)
    except KnownFault as fault:
        return str(fault.params["reason"])
    return ""


@pytest.mark.parametrize("url", INSIDE)
async def test_a_server_of_the_internet_cannot_lead_inside(url: str) -> None:
    assert await reason(Web(PUBLIC), url) == "inner_address"


@pytest.mark.parametrize(
    ("home", "url", "said"),
    [
        (PUBLIC, "https://93.184.215.14/x", ""),
        (PUBLIC, "https://1.1.1.1/x", ""),
        (PRIVATE, "https://192.168.1.1/x", ""),
        (PRIVATE, "https://1.1.1.1/x", ""),
        (PRIVATE, "https://127.0.0.1/x", "inner_address"),
        (PRIVATE, "https://169.254.169.254/x", "inner_address"),
        (HERE, "http://127.0.0.1:8/x", ""),
        (HERE, "https://10.0.0.1/x", ""),
        (HERE, "https://169.254.169.254/x", "inner_address"),
        (HERE, "http://10.0.0.1/x", "insecure"),
        (HERE, "http://login.example/x", "insecure"),
        (PUBLIC, "https://a@1.1.1.1/x", "bad_address"),
        (PUBLIC, "https://1.1.1.1:99999/x", "bad_address"),
        (PUBLIC, "https:///x", "bad_address"),
        (PUBLIC, "file:///etc/passwd", "bad_address"),
        (PUBLIC, "javascript:alert(1)", "bad_address"),
        (PUBLIC, "https://name-that-nobody-has.invalid/x", ""),
    ],
)
async def test_a_sign_in_goes_outwards_or_stays_level(home: str, url: str, said: str) -> None:
    """A name that means nothing here may mean something to a proxy; without one the request fails by itself."""
    assert await reason(Web(home), url) == said


async def test_addresses_of_the_person_are_not_judged() -> None:
    auth = EnterpriseManaged("c", "s", "https://10.9.9.9", "https://10.8.8.8/token", "d", "t")
    web = web_for(PUBLIC, auth)
    assert [await reason(web, f"https://10.{n}/x") for n in ("9.9.9", "8.8.8", "7.7.7")] == ["", "", "inner_address"]


def test_an_endpoints_query_is_kept_behind_ours_and_its_fragment_dropped() -> None:
    endpoint = "https://as.example/authorize?p=1&state=theirs#frag"
    made = merged(endpoint, f"{endpoint}?state=ours&scope=a+b")
    assert made == "https://as.example/authorize?p=1&state=ours&scope=a+b"


def test_a_strangers_words_are_one_printable_line() -> None:
    assert plain("a\x1b[2J\r\n\u202eb" + "c" * 999, 12) == "a [2J bccccc"
