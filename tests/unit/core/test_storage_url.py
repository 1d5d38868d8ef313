"""Which addresses of a shared database may stand in the settings."""

from __future__ import annotations

import pytest

from desktop_host.core import settings as core
from desktop_host.core.errors import UserFault
from desktop_host.core.settings import Settings
from desktop_host.profiles.settings_form import read


@pytest.mark.parametrize(
    "url",
    [
        "",
        "${DATABASE_URL}",
        "${keyring:team/pg}",
        "postgresql://host/db",
        "postgres://me@host:5432/db?sslmode=verify-full&sslrootcert=/etc/ca.pem",
        "postgresql://me:${keyring:pg}@host/db",
        "postgresql://me:${env:PG_PASSWORD}@h1:5432,h2:5433/db?target_session_attrs=read-write",
        "postgresql://me@host/db?password=${keyring:pg}",
        "postgresql:///db?host=/var/run/postgresql",
    ],
)
def test_an_address_without_a_password_or_with_placeholders_may_stand_in_the_settings(url: str) -> None:
    assert core.put(Settings(), "storage.url", url).storage.url == url


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://me:hunter2@host/db", "password_in_clear"),
        ("postgresql://me:a/b@host/db", "password_in_clear"),
        ("postgresql://me:a@b@host/db", "password_in_clear"),
        ("postgresql://me:${PG}hunter2@host/db", "password_in_clear"),
        ("postgresql://me:${PG:-hunter2}@host/db", "password_in_clear"),
        ("postgresql://me@host/db?sslmode=require&password=hunter2", "password_in_clear"),
        ("postgresql://me@host/db?sslpassword=hunter2", "password_in_clear"),
        ("mysql://host/db", "storage_url"),
        ("host=h password=hunter2", "storage_url"),
    ],
)
def test_a_password_in_clear_is_refused_and_shown_nowhere(url: str, reason: str) -> None:
    """Hazard O136."""
    with pytest.raises(UserFault) as caught:
        core.put(Settings(), "storage.url", url)
    assert caught.value.params["reason"] == reason
    (problem,) = read({"storage": {"url": url}}).problems
    assert problem["key"] == "storage.url"
    told = f"{caught.value} {caught.value.params} {problem}"
    assert "hunter2" not in told and url not in told
