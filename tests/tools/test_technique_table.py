"""The table of techniques: every figure in it is one of the run."""

import pytest

from perfgate.results.document import dumps, to_document
from tests.conftest import count, record, run, stock_of, times
from tools import technique_table

PAIRED = {"metric": "speedup", "better": "higher", "kind": "paired"}


def variant(*more, **fields):
    """Twice as fast as its twin, in half its memory."""
    measurements = (
        times(0.02, 0.02, 0.03),
        times(*[2.0] * 8, **PAIRED),
        count("plain_peak_bytes", 2**21),
        count("peak_bytes", 2**20),
        *more,
    )
    defaults = {"step": "mlp-b4/train/amp-bf16", "samples_per_round": 8, "evidence": {"same result": "0.1 %"}}
    return record("benches/test_a.py::test_a", *measurements, **{**defaults, **fields})


def cells(*records):
    """Title of a column -> its cells."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in technique_table.table(records)]
    head, rule, *rows = lines
    assert set(rule) == {"---"}
    return {title: [row[number] for row in rows] for number, title in enumerate(head)}


def test_figures():
    """Throughput is of the median round; the twin's is less by the speedup."""
    found = cells(variant())
    assert found["technique"] == ["mlp-b4 train amp-bf16"]
    assert found["speedup [95 %]"][0].startswith("2.00x")
    assert found["samples/s"] == ["200 -> 400"]
    assert found["peak memory"] == ["2.00 MiB -> 1.00 MiB"]
    assert found["counted, against its twin"] == ["nothing"]
    assert found["same result"] == ["0.1 %"]


def test_energy_only_where_it_was_measured():
    """A column without a value is left out."""
    assert "energy per sample" not in cells(variant())
    joules = [times(value, metric=f"{side}energy_joules_per_sample") for side, value in (("plain_", 0.25), ("", 0.1))]
    assert cells(variant(*joules), variant())["energy per sample"] == ["250 mJ -> 100 mJ", ""]


@pytest.mark.parametrize(
    ("key", "said"),
    [("aten::mm(float32)", "flops 3.00 G -> 1.50 M; operators 5 -> 4"), ("mm", "flops 3.00 G -> 1.50 M")],
)
def test_counts_that_differ(key, said):
    """Operators only where a mode that knows their types watched: a profiler counts others."""
    counts = [
        count("flops", 1.5e6),
        count("plain_flops", 3e9),
        count("operators", 4, **{key: 4}),
        count("plain_operators", 5),
        count("parameters", 7),
        count("plain_parameters", 7),
    ]
    assert cells(variant(*counts))["counted, against its twin"] == [said]


def test_a_direction_nobody_expected_has_a_star():
    """One that was expected has none."""
    ratios = cells(variant(expected="slower"), variant(expected="faster"))["speedup [95 %]"]
    assert [ratio.endswith("*") for ratio in ratios] == [True, False]


def test_a_saved_run(tmp_path, capsys):
    """Group by group, with its machine; what has no twin is left out."""
    made = run(variant(group="amp"), record("benches/test_b.py::test_b", group="plain"))
    file = tmp_path / "run.json"
    file.write_bytes(dumps(to_document(made, stock_of(made))))
    technique_table.main(file)
    out = capsys.readouterr().out
    assert out.startswith("testcpu, 2, x86_64, torch 2.15.0, python 3.11.7\n")
    assert "**amp**" in out
    assert "**plain**" not in out
