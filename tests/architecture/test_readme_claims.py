"""What the README says is guarded, is: each test and each module it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TEST = re.compile(r"`(?:tests/)?((?:unit|contract|flows|ui|live|faults|bench|architecture)/[\w/]+\.py)::(test_\w+)`")
MODULE = re.compile(r"`((?:core|engine|servers|providers|skills|storage|profiles|diagnostics|ui|cli|app)/[\w/]+\.py)`")


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_every_test_and_module_that_the_readme_names_exists(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    missing = [path for path in MODULE.findall(text) if not (ROOT / "desktop_host" / path).is_file()]
    for path, test in TEST.findall(text):
        file = ROOT / "tests" / path
        if not file.is_file() or not re.search(rf"def {test}\(", file.read_text("utf-8")):
            missing.append(f"{path}::{test}")
    assert missing == []
