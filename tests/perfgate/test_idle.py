"""Limits that apply to nothing are named, and only those."""

import re

import pytest

from perfgate import scope, settings
from perfgate.idle import Suite, idle_limits
from tests.conftest import SETTINGS

NAME = "benches/test_compile.py::test_train_step[mlp]"
METRICS = {"wall_seconds", "peak_bytes", "warm_compile_seconds"}
SUITE = Suite(names={NAME}, groups={"data loading", "amp"}, metrics=METRICS)


def found(tmp_path, table, *args, deselected=0):
    """The sentences for settings of ``table``."""
    asked = scope.of(args or ["benches"], tmp_path, tmp_path, deselected=deselected)
    return list(idle_limits(settings.from_table(table), SUITE, asked))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"groups": {"data-loading": 0.1}}, r"groups\] 'data-loading' fits nothing .* did you mean 'data loading'"),
        ({"groups": {"folding": 0.1}}, r"groups\] 'folding' fits nothing that was measured, .* nowhere$"),
        ({"benchmarks": {"benches/test_compile": 0.1}}, r"benchmarks\] 'benches/test_compile' fits nothing"),
        ({"benchmarks": {f"{NAME[:-1]}-b4]": 0.1}}, r"did you mean 'benches/test_compile\.py::test_train_step\[mlp\]'"),
        ({"thresholds": {"wall_second": 0.1}}, r"thresholds\] 'wall_second' .* did you mean 'wall_seconds'"),
        ({"groups": {"amp": {"peak-bytes": 0.1}}}, r"groups\.'amp'\] 'peak-bytes' .* did you mean 'peak_bytes'"),
        ({"benchmarks": {NAME: {"peak_byte": 0.1}}}, r"benchmarks\.'benches/.*'\] 'peak_byte' .* did you mean"),
    ],
)
def test_a_name_that_fits_nothing_is_said(tmp_path, table, said):
    """With the nearest there is."""
    (sentence,) = found(tmp_path, table)
    assert re.search(said, sentence)


@pytest.mark.parametrize(
    "table",
    [
        {"groups": {"amp": {"threshold": 0.1, "alpha": 0.01, "wall_seconds": 0.1}}},
        {"benchmarks": {"benches/test_compile.py": 0.1, "benches": 0.1, NAME.partition("[")[0]: 0.1}},
        {"thresholds": {"compile_seconds": 0.1, "energy_joules": 0.1}},  # another machine's, or another session's
    ],
)
def test_what_applies_is_not_said(tmp_path, table):
    """Nor a metric that only other machines have."""
    assert not found(tmp_path, table)


def test_a_part_of_the_suite_tells_nothing_about_the_rest(tmp_path):
    """Neither one file nor a selection; what lies inside of the file is certain."""
    table = {"groups": {"folding": 0.1}, "benchmarks": {"benches/test_amp.py": 0.1}}
    assert not found(tmp_path, table, "benches/test_compile.py")
    assert len(found(tmp_path, table, deselected=1)) == 1
    assert (
        len(found(tmp_path, {"benchmarks": {"benches/test_compile.py::test_x": 0.1}}, "benches/test_compile.py")) == 1
    )


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_session_says_it(project, workers):
    """In its report, whoever measured."""
    limits = "[tool.perfgate.groups]\ntinny = 0.1\ntiny = 9.0\n[tool.perfgate.thresholds]\npeak_byte = 0.5\n"
    project.makepyprojecttoml(SETTINGS + limits)
    result = project.runpytest_subprocess("benches", *workers)
    said = " ".join(result.stdout.str().split())
    assert "'tinny' fits nothing that was measured, so its limit applies nowhere; did you mean 'tiny'?" in said
    assert "did you mean 'peak_bytes'?" in said
    assert said.count("applies nowhere") == 2
