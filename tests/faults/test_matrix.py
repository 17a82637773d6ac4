"""Every fault of the matrix is a test named by its id, or is listed in tests/FAULTS.md with the reason why not."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
FAULTS = {"IN": 37, "NM": 18, "ST": 14, "PR": 16, "RS": 12, "GP": 24, "EN": 15}
"""How many there are of baseline files, names, saving, processes, resources, GPUs and environments."""
IDS = {f"{kind}-{number:02}" for kind, count in FAULTS.items() for number in range(1, count + 1)}
ROW = re.compile(r"^\| ([A-Z]{2}-\d\d) \| .{10,} \|$", re.MULTILINE)


def with_a_test():
    """Ids in names of test functions."""
    for file in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            found = isinstance(node, ast.FunctionDef) and re.match(r"test_([a-z]{2})_(\d\d)_", node.name)
            if found:
                yield f"{found[1].upper()}-{found[2]}"


def listed():
    """Ids with a reason."""
    return ROW.findall((TESTS / "FAULTS.md").read_text(encoding="utf-8"))


def test_every_fault_is_tested_or_listed():
    """None is forgotten."""
    assert IDS - set(with_a_test()) - set(listed()) == set()


def test_no_fault_is_both_or_unknown():
    """The list is true."""
    assert set(with_a_test()) & set(listed()) == set()
    assert (set(with_a_test()) | set(listed())) - IDS == set()
    assert len(listed()) == len(set(listed()))
