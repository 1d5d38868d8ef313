"""Pages of servers in the real web engine, as an ordinary user (it has no sandbox for root)."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop_host.ui import web_scheme

pytestmark = pytest.mark.live
CHILD = Path(__file__).parent / "app_child.py"
OTHER = "DESKTOP_HOST_TEST_WEB"
"""Words that run a Python with the extra `[web]` as an ordinary user, where this process is none."""


@pytest.fixture(scope="module")
def told() -> Any:
    words = shlex.split(os.environ.get(OTHER, "")) or ([sys.executable] if web_scheme.available() else [])
    if not words:
        pytest.skip("the extra [web] is not installed, or this is root; DESKTOP_HOST_TEST_WEB may name another way")
    env = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run([*words, str(CHILD)], env=env, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Release of profile" not in done.stderr, "a page must not outlive its profile"
    return json.loads(done.stdout.splitlines()[-1])


def test_a_page_gets_its_result_and_nothing_else(told: Any) -> None:
    page = told["shut"]["page"]
    assert (page["text"], page["origin"], page["channel"]) == ("the result", "null", "undefined")
    assert page["theme"] == "light" and page["width"] == 500
    denied = ("storage", "parent", "fetch", "data", "file", "code", "image", "frame", "window", "unknown")
    assert {key: page[key] for key in denied} == dict.fromkeys(denied, "no")
    assert told["shut"]["hits"] == [], "not one request left the page"
    assert told["shut"]["height"] == 333


def test_a_page_is_told_that_it_ends_and_given_the_time_it_asks_for_within_limits(told: Any) -> None:
    for page in (told["shut"], told["opened"]):
        assert page["farewell"] == [], "a page that ends asks for nothing any more"
        assert 0.02 < page["ended_s"] < 2


def test_what_its_policy_lets_through_it_reaches(told: Any) -> None:
    assert told["opened"]["page"]["fetch"] == "yes"
    assert told["opened"]["hits"] == ["/fetch"], "the fence alone is no reason why the other page reached nothing"


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_the_engine_runs_in_its_own_sandbox(told: Any) -> None:
    assert told["uid"] != 0
    assert told["engine"] and not any(p["unfenced"] for p in told["engine"])
    assert all(p["no_new_rights"] for p in told["engine"])
    inner = [p for p in told["engine"] if p["seccomp"] == 2]
    assert inner and all(p["own_users"] and p["own_pids"] for p in inner)


def test_a_page_is_used_in_the_real_window(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its call asks and stands in the chat, its words reach the model, each on the person's word alone."""
    words = shlex.split(os.environ.get(OTHER, "")) or ([sys.executable] if web_scheme.available() else [])
    if not words:
        pytest.skip("the extra [web] is not installed, or this is root; DESKTOP_HOST_TEST_WEB may name another way")
    test = Path(__file__).parents[1] / "ui/test_window_pages.py"
    env = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "DESKTOP_HOST_TEST_PAGES": "1"}
    command = [*words, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, env=env, cwd=root, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "1 passed" in done.stdout


def test_root_gets_no_pages() -> None:
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("this is an ordinary user")
    assert not web_scheme.available()
