"""The main job in one command, with the real embedded model and the bundled knowledge server."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.live.program import ROOT, environment


@pytest.mark.live
@pytest.mark.slow
def test_the_demo_answers_through_a_real_tool_call_of_the_real_model(tmp_path):
    """No network and no key: the weights are here already."""
    models = os.environ.get("DESKTOP_HOST_MODELS", "")
    if not models or not any(name.endswith(".gguf") for name in os.listdir(models)):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no weights (see packaging/test.sh)")
    picture = tmp_path / "window.png"
    done = subprocess.run(
        [sys.executable, "-m", "desktop_host", "demo", "--json", "--screenshot", str(picture)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(HF_HUB_OFFLINE="1", no_proxy="*"),
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    (line,) = [json.loads(text) for text in done.stdout.splitlines()]
    assert line["ok"]
    assert line["tool_called"]
    assert "7 years" in line["text"]
    assert picture.stat().st_size > 10_000
