"""The knowledge server on board imports nothing of the host, so that it runs wherever Python and `mcp` are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "resources" / "servers" / "knowledge"


def code(file: Path) -> str:
    """A module without its own docstring."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return ast.unparse(ast.Module(tree.body[1:], []))


def test_the_knowledge_server_imports_nothing_of_the_host() -> None:
    found = [f.name for f in SERVER.glob("*.py") if re.search(r"^\s*(from|import) desktop_host", f.read_text(), re.M)]
    assert found == []


def test_its_line_is_the_gateways_line_so_that_a_mend_of_one_is_a_mend_of_both() -> None:
    """The price of standing alone: this one module is there twice."""
    assert code(SERVER / "knowledge_line.py") == code(ROOT / "desktop_host" / "servers" / "gateway_line.py")
