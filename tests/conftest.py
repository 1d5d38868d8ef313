"""What tests of several rooms start from."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.fakes.postgres_server import PostgresServer, running

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in the background has them ignore interrupts, and so would each program they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
