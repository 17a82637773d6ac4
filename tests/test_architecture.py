"""The arrows between the parts and the budgets of their sizes hold, or the design has changed without saying so."""

import ast
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src"
FILES = sorted(ROOT.rglob("*.py"))
STARTING = ("faults", "limits", "interference", "locks", "monitor", "signals", "watch")
"""What is loaded before anything is known to be measured."""
FORBIDDEN = {
    "workloads": {"perfgate", "pytest", "pytest_benchmark"},
    "perfgate.results": {"torch", "pytest", "numpy", "workloads", "perfgate.measure", "perfgate.verdict"},
    "perfgate.verdict": {"torch", "pytest", "workloads", "perfgate.measure", "perfgate.report"},
    "perfgate.report": {"torch", "workloads", "perfgate.measure"},
    "perfgate.pairs": {"torch", "pytest", "workloads", "perfgate.measure", "perfgate.report", "perfgate.plugin"},
    "perfgate.commands": {"torch", "pytest", "workloads", "perfgate.measure", "perfgate.plugin"},
    **{f"perfgate.{name}": {"torch", "pytest", "numpy", "workloads", "perfgate.measure"} for name in STARTING},
    "perfgate.turns": {"torch", "pytest", "numpy", "workloads", "perfgate.pairs"},
    "perfgate.measure": {"pytest", "workloads", "perfgate.verdict", "perfgate.report", "perfgate.plugin"},
}
STANDARD_LIBRARY_ONLY = "perfgate.results"
OPTION_LISTS = {"add_options", "make_parser"}


def module_name(file):
    """Dotted name of a file below src."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(file, *, lazy=True):
    """Modules that a file imports, type-checking blocks left out; those inside functions only where ``lazy``."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    skipped = set()
    for node in ast.walk(tree):
        typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        if typing_only or (not lazy and isinstance(node, ast.FunctionDef)):
            skipped.update(id(child) for child in ast.walk(node))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def inside(name, package):
    """Whether a dotted name is a package or in it."""
    return name == package or name.startswith(f"{package}.")


@pytest.mark.parametrize("package", FORBIDDEN)
def test_arrows(package):
    """No part imports what the design keeps from it."""
    wrong = {
        (module_name(file), name)
        for file in FILES
        if inside(module_name(file), package)
        for name in imports(file)
        if any(inside(name, each) for each in FORBIDDEN[package])
    }
    assert wrong <= {("perfgate.report.junit", "pytest")}, wrong


def test_only_the_plugin_and_its_parts_know_pytest():
    """All of pytest is behind the plugin: what it keeps, begins, ends, and does with workers and turns."""
    knowing = {module_name(file) for file in FILES if any(inside(name, "pytest") for name in imports(file))}
    parts = {"plugin", "stash", "opening", "closing", "planning", "workers", "turn_hooks", "report.junit"}
    assert knowing == {f"perfgate.{part}" for part in parts}


def test_results_need_the_standard_library_only():
    """Saved runs are readable anywhere."""
    import sys

    allowed = {*sys.stdlib_module_names, "perfgate"}
    for file in FILES:
        if inside(module_name(file), STANDARD_LIBRARY_ONLY):
            assert {name.partition(".")[0] for name in imports(file)} <= allowed, file


def test_no_import_cycles():
    """Modules, with the imports they make when they are loaded, form no cycle."""
    names = {module_name(file) for file in FILES}
    graph = {module_name(file): {name for name in imports(file, lazy=False) if name in names} for file in FILES}
    done = set()

    def visit(name, path):
        assert name not in path, " -> ".join([*path, name])
        if name not in done:
            for target in graph[name] - {name}:
                if not inside(name, target):  # a package's __init__ is loaded first in any case
                    visit(target, [*path, name])
            done.add(name)

    for name in names:
        visit(name, [])


def functions():
    """Every function with its length in lines."""
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield f"{module_name(file)}.{node.name}", node.end_lineno - node.lineno + 1


def test_files_are_small():
    """Median at most 120 lines, none over 400."""
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert max(lengths.values()) <= 400, max(lengths, key=lengths.get)
    assert statistics.median(lengths.values()) <= 120


def test_functions_are_small():
    """Median at most 10 lines, nine of ten at most 35, none over 60; lists of options are exempt."""
    lengths = {name: length for name, length in functions() if name.rpartition(".")[2] not in OPTION_LISTS}
    assert max(lengths.values()) <= 60, max(lengths, key=lengths.get)
    assert statistics.median(lengths.values()) <= 10
    assert statistics.quantiles(lengths.values(), n=10)[-1] <= 35


def test_no_file_is_called_by_what_says_nothing():
    """No utils, common, helpers, manager."""
    assert not {file.stem for file in FILES} & {"utils", "common", "helpers", "manager"}
