"""What tests of several rooms start from."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.fakes.postgres_server import PostgresServer, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The real PostgreSQL, started once for all tests that ask for it."""
    try:
        context = running()
        server = context.__enter__()
    except LookupError as missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(missing))
    try:
        yield server
    finally:
        context.__exit__(None, None, None)
