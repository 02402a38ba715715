"""The rules of the house that no linter knows."""

import ast
import operator
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "operator" / "geogenius"
MODULES = sorted(PACKAGE.rglob("*.py"))
TEST_MODULES = sorted((ROOT / "tests").rglob("*.py"))

MODULE_LIMIT, TEST_MODULE_LIMIT, FUNCTION_LIMIT = 400, 600, 50

ALLOWED: dict[str, str] = {}
"""Exceptions, each with its reason: the debt, visible."""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_project_folder_operator_is_never_importable() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert Path(operator.__file__).is_relative_to(Path(sys.base_prefix))
    assert not [folder for folder in (ROOT / "tests").rglob("operator") if folder.is_dir()]


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_a_module_is_short_and_not_named_like_a_standard_one(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= MODULE_LIMIT, ALLOWED.get(named(module), "split it")
    assert module.stem not in sys.stdlib_module_names - {"__main__"}


@pytest.mark.parametrize("module", TEST_MODULES, ids=named)
def test_a_test_module_is_short(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= TEST_MODULE_LIMIT


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_a_function_fits_on_a_screen_without_its_docstring(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert lines_without_docstring(node) <= FUNCTION_LIMIT, f"{named(module)}:{node.lineno} {node.name}"


def lines_without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    documented = ast.get_docstring(node) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (node.end_lineno or 0) - node.lineno + 1 - docstring


def test_every_package_of_the_product_holds_code() -> None:
    empty = [named(path) for path in MODULES if not path.read_text().strip()]
    assert empty == []


def test_no_statement_of_sql_stands_in_python() -> None:
    words = ("SELECT ", "INSERT INTO ", "UPDATE ", "DELETE FROM ", "CREATE TABLE ")
    found = [
        f"{named(module)}:{node.lineno}"
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lstrip().startswith(words)
    ]
    assert found == []
