"""The house as it is meant: who may import whom, how large a module may grow, what a room says of itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "desktop_host"
MODULES = sorted(PACKAGE.rglob("*.py"))
SHIPPED = sorted(p for p in (ROOT / "resources").rglob("*.py"))
ROOMS = sorted(p for p in PACKAGE.iterdir() if p.is_dir() and (p / "__init__.py").exists())


def test_imports_point_down():
    from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == EXIT_STATUS_SUCCESS


@pytest.mark.parametrize("module", [*MODULES, *SHIPPED], ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_has_one_owner_and_so_at_most_300_lines(module):
    assert len(module.read_text("utf-8").splitlines()) <= 300


@pytest.mark.parametrize("room", ROOMS, ids=lambda p: p.name)
def test_a_room_says_its_purpose(room):
    doc = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8")))
    assert doc and doc.splitlines()[0].endswith((".", ":"))


@pytest.mark.parametrize("module", sorted((PACKAGE / "ui" / "viewmodels").glob("*.py")), ids=lambda p: p.name)
def test_view_models_know_no_widgets(module):
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        assert not [n for n in names if n.startswith(("PySide6.QtWidgets", "PySide6.QtGui"))]


@pytest.mark.parametrize("module", sorted((PACKAGE / "core").glob("*.py")), ids=lambda p: p.name)
def test_the_core_needs_the_standard_library_only(module):
    allowed = {*sys.stdlib_module_names, "desktop_host"}
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            assert {a.name.split(".")[0] for a in node.names} <= allowed
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.module.split(".")[0] in allowed


@pytest.mark.parametrize("module", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_name_refuses_to_say_what_it_is(module):
    assert module.stem not in {"utils", "helpers", "common", "base", "misc"}
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef):
            assert not node.name.endswith(("Manager", "Service", "Helper"))


def test_every_language_has_every_text_and_the_compiled_files_are_fresh():
    done = subprocess.run(
        [sys.executable, str(ROOT / "packaging" / "compile_locale.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_list_of_hazards_is_fresh():
    done = subprocess.run(
        [sys.executable, str(ROOT / "packaging" / "hazards.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_error_code_has_words_and_a_remedy_in_both_languages():
    from desktop_host.core.errors import EXIT_CODES
    from desktop_host.i18n import Translator

    for language in ("en", "zh_CN"):
        texts = Translator(language)
        codes = [c for codes in EXIT_CODES.values() for c in codes]
        missing = [f"{p}.{c}" for c in codes for p in ("error", "remedy") if not texts.has(f"{p}.{c}")]
        assert not missing, (language, missing)


def test_the_start_imports_no_vendor():
    """Starting the program, up to the face, brings none of the heavy libraries."""
    code = (
        "import sys, desktop_host.__main__, desktop_host.app.run, desktop_host.ui.face, desktop_host.cli.arguments;"
        "heavy = {'mcp', 'anthropic', 'openai', 'keyring', 'httpx2', 'watchdog', 'jsonschema', 'pydantic'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_opening_the_command_line_imports_no_vendor():
    code = (
        "import sys, desktop_host.cli.main, desktop_host.app.compose;"
        "print(sorted({'mcp', 'anthropic', 'openai', 'keyring', 'httpx2', 'watchdog'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_qt_counts_references_right():
    """PySide6 6.12 on Python below 3.12 drops a reference on None per void call and so kills the process."""
    from PySide6.QtCore import QObject

    thing = QObject()
    before = sys.getrefcount(None)
    for _ in range(500):
        thing.setObjectName("a")
    assert abs(sys.getrefcount(None) - before) < 250
