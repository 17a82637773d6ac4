"""Reports: what people read, in any terminal, with any text in it."""

import pytest

from perfgate.report import numbers, text
from perfgate.report.announcement import announce
from perfgate.report.junit import failed_cases
from perfgate.report.summary import figures, one_line
from perfgate.report.table import bar, split_name
from perfgate.report.terminal import Report, also_changed, render
from perfgate.results.baseline import Baseline
from perfgate.verdict.estimate import Estimate
from perfgate.verdict.verdicts import Verdict
from perfgate.wishes import Wishes
from tests.conftest import MACHINE, PROCESS, count, record, replaced, run, times

SPEEDUP = times(*[1.25] * 6, metric="speedup", better="higher", kind="paired")
AMP = record(
    "benches/test_amp.py::test_train_step[amp-bf16-mlp-b128]",
    times(*[0.0123] * 6),
    SPEEDUP,
    count("peak_bytes", 25 * 2**20),
    step="mlp-b128/train/amp-bf16",
    group="amp",
    expected="faster",
)


def report(*verdicts, **fields):
    """A report of one benchmark."""
    defaults = {
        "run": run(AMP),
        "baseline": Baseline(runs=(run(replaced(AMP, measurements=(times(*[0.01] * 6),))),)),
        "verdicts": verdicts or (Verdict(id=AMP.id, word="same", code="same", reason=""),),
        "compared": True,
        "strict": False,
        "smoke": False,
        "saved": "results/m/x.json",
    }
    return Report(**{**defaults, **fields})


def rendered(a_report, columns=80):
    """The text without trailing spaces."""
    return "\n".join(line.rstrip() for line in render(a_report, columns=columns, colour=False).splitlines())


def test_a_row_has_speedup_time_change_memory_and_verdict():
    """In one line of 80 columns."""
    line = next(line for line in rendered(report()).splitlines() if "amp-bf16" in line)
    assert line.split() == ["amp-bf16", "1.25x", "[1.25,", "1.25]", "12.3", "ms", "+23.0", "%", "25.0", "MiB", "same"]


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_every_width_is_kept(columns):
    """No line is longer than the terminal, and all figures are there."""
    shown = rendered(report(), columns)
    assert max(map(len, shown.splitlines())) <= columns
    assert "1.25x" in shown
    assert "25.0 MiB" in shown
    assert shown.isascii()


def test_a_wide_terminal_has_bars():
    """One character per sixteenth of a factor of four."""
    assert ">>>" in rendered(report(), 120)
    assert bar(4.0) == ">" * 16
    assert bar(0.5) == "<" * 8
    assert bar(1.0) == ""


def test_the_verdict_line_comes_last():
    """One line that answers."""
    slower = Verdict(id=AMP.id, word="slower", code="slower", reason="wall_seconds changed by +23.0% (limit 10%)")
    lines = rendered(report(slower)).splitlines()
    assert lines[-1] == "FAIL 1 slower"
    assert any("limit 10%" in line for line in lines)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "PASS 1 same"),
        ({"compared": False, "verdicts": ()}, "NOT COMPARED 1 measured; add --benchmark-compare"),
        ({"run": None, "verdicts": ()}, "NOTHING MEASURED"),
        ({"smoke": True, "verdicts": (), "saved": ""}, "PASS 1 measured"),
        ({"baseline": Baseline(absence="none")}, "NOT JUDGED 1 same; this run is the baseline of the next"),
    ],
)
def test_what_was_not_compared_does_not_pass(fields, line):
    """The first word says what happened."""
    verdicts = fields.pop("verdicts", None)
    made = replaced(report(**fields), verdicts=verdicts) if verdicts is not None else report(**fields)
    assert line in rendered(made)


def test_a_smoke_run_shows_no_times():
    """One cold round says nothing."""
    shown = rendered(report(smoke=True))
    assert "12.3 ms" not in shown
    assert "1.25x" not in shown


def test_against_expectation_is_marked_and_explained():
    """And stays green."""
    slow = replaced(AMP, measurements=(times(*[0.01] * 6), replaced(SPEEDUP, samples=((0.8,) * 6,))))
    shown = rendered(report(run=run(slow)))
    assert "same*" in shown
    assert "* against expectation: mlp-b128 train amp-bf16: 0.80x [0.80, 0.80], expected faster" in shown.replace(
        "\n", " "
    )
    assert shown.endswith("PASS 1 same")


def test_equal_reasons_are_said_once():
    """With their number."""
    verdicts = [Verdict(id=str(n), word="skipped", code="skipped", reason="needs a CUDA GPU") for n in range(34)]
    assert "skipped 34 benchmarks: needs a CUDA GPU" in rendered(report(*verdicts))


def test_what_else_changed_is_said():
    """Versions, tunables and threads."""
    now = run(machine=replaced(MACHINE, soft={"torch": "2.16"}), processes=(replaced(PROCESS, threads=2),))
    assert list(also_changed(now, run())) == [
        "python 3.11.7 -> unset",
        "threads 1 -> 2",
        "torch 2.15.0 -> 2.16",
    ]


def test_huge_pages_off_prints_the_line_that_turns_them_on():
    """On a CPU."""
    off = run(AMP, processes=(replaced(PROCESS, tunables={"huge_pages": "off"}),))
    assert "perfgate exec pytest" in rendered(report(run=off))
    assert "perfgate exec pytest" not in rendered(report())


@pytest.mark.parametrize("evil", ["\x1b]0;title\x07", "\x1b[2J", "[red]", "a\nb", "\u202egnp", "x" * 500, "", "\ud800"])
def test_hostile_names_stay_text(evil):
    """No escape reaches the terminal, no markup is obeyed, nothing breaks the line."""
    shown = rendered(report(run=run(replaced(AMP, step=evil, group=evil))))
    assert not set(shown) & set("\x1b\x07\u202e\ud800")
    assert text.name("[red]") == r"\[red]"
    assert text.name("") == "(empty)"
    assert len(text.name("x" * 500)) == 120


def test_names_split_into_heading_and_technique():
    """A node id stays as it is."""
    assert split_name(AMP) == ("mlp-b128 train", "amp-bf16")
    assert split_name(replaced(AMP, step="b/test_x.py::test/a/b")) == ("", "b/test_x.py::test/a/b")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.234, "1.23 s"), (0.01234, "12.3 ms"), (0.000999, "999 us"), (2e-8, "20.0 ns"), (1234.5, "1234 s"), (None, "-")],
)
def test_seconds(value, shown):
    """Three significant digits."""
    assert numbers.seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(512, "512 B"), (2048, "2.00 KiB"), (139.4 * 2**20, "139 MiB"), (3 * 2**30, "3.00 GiB")]
)
def test_sizes(value, shown):
    """Binary units."""
    assert numbers.size(value) == shown


def test_other_numbers():
    """Changes, factors, durations."""
    assert numbers.change(1.0523) == "+5.2 %"
    assert numbers.change(None) == "-"
    assert numbers.factor(Estimate(1.24, 1.2, 1.29)) == "1.24x [1.20, 1.29]"
    assert numbers.factor(Estimate(35.2, 34.0, 36.0)) == "35.2x [34.0, 36.0]"
    assert numbers.duration(200.4) == "3 min 20 s"
    assert numbers.duration(7) == "7 s"
    assert numbers.significant(0) == "0"


def test_a_benchmark_in_a_line():
    """For ``pytest -v``."""
    assert one_line(AMP, smoke=False) == "1.25x [1.25, 1.25] 12.3 ms"
    assert one_line(AMP, smoke=True) == "CHECKED"
    assert one_line(record(), smoke=False) == "10.0 ms"


def test_figures_for_pytest_benchmarks_extra_info():
    """Throughput among them."""
    assert figures(replaced(AMP, samples_per_round=128)) == {
        "samples_per_second": pytest.approx(128 / 0.0123),
        "speedup": 1.25,
        "peak_bytes": 25 * 2**20,
    }


def test_failed_cases_carry_the_reason_without_a_traceback():
    """One per verdict."""
    case, teardown = failed_cases(
        [Verdict(id="benches/test_a.py::test_a", word="slower", code="slower", reason="by 9 %")]
    )
    assert case.failed
    assert teardown.passed
    assert ("perfgate.verdict", "slower") in teardown.user_properties
    assert case.longrepr == "slower: by 9 %"
    assert case.nodeid == "benches/test_a.py::test_a::slower"


def test_the_announcement_names_baseline_and_time(tmp_path):
    """Before anything is measured."""
    wishes = Wishes(
        root=tmp_path,
        results=tmp_path,
        compare=True,
        save=True,
        label="",
        smoke=False,
        strict=False,
        accept=False,
        device="auto",
        expect=None,
        json=None,
        resume=False,
        wait_seconds=0.0,
        limit_seconds=None,
        workers=0,
    )
    old = run(replaced(AMP, seconds=200.0), source="/x/results/m/20260101T000000000Z-a.json")
    older = run(replaced(AMP, seconds=9.0), source="/x/results/m/20250101T000000000Z-b.json")
    lines = list(announce(wishes, Baseline(runs=(old, older), problems=("y.json: empty",)), "m", [AMP.id, "new"]))
    assert lines[0] == "perfgate: 2 benchmarks on m"
    assert "passed over: y.json: empty" in lines[1]
    assert "20260101T000000000Z-a.json (commit aaaaaaaaaaaa): 1 benchmarks" in lines[2]
    assert lines[3] == "perfgate: the history is 2 runs of this machine"
    assert lines[4] == "perfgate: measuring those 1 took 3 min 20 s"
    absent = list(announce(replaced(wishes, save=False), Baseline(absence="no saved run"), "m", [AMP.id]))
    assert absent[1:] == [
        "perfgate: no saved run",
        "perfgate: nothing will be judged. Make a baseline: pytest benches/",
    ]
