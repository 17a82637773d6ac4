"""The plan of a session: what would run, what would not and why, and for how long; nothing is measured or saved."""

import pytest

from perfgate.plan import Estimate, Plan, Planned
from perfgate.report.plan import lines
from tests.conftest import edit, saved_runs

SUITE = """
import pytest
from workloads import MLP
from workloads.optimizations import AMP, CudnnBenchmark

TINY = MLP(batch_size=4, width=8, image_size=4)

class Explosive(MLP):
    def model(self):
        raise AssertionError("a plan builds nothing")

@pytest.mark.benchmark(group="tiny")
@pytest.mark.parametrize("number", [1, 2])
def test_runs(measure, number, tmp_path):
    measure(Explosive().train_step(AMP()), against=TINY.train_step())
    raise AssertionError("a plan stops here")

@pytest.mark.benchmark(group="tiny")
def test_unsuitable(measure):
    measure(TINY.train_step(), against=TINY.train_step(CudnnBenchmark()))

@pytest.mark.gpu
def test_gpu(measure): ...

@pytest.mark.skip(reason="not today")
def test_skipped(measure): ...

def test_broken(measure):
    raise ValueError("no such file")

def test_empty(measure): ...

def test_plain_fixture(benchmark):
    raise AssertionError("a plan does not run it")

def test_other():
    raise AssertionError("a plan does not run it")
"""


def planned(name="a", group="g", state="run", **fields):
    """One benchmark of a plan."""
    return Planned(name=name, group=group, state=state, **fields)


def shown(*benchmarks, others=0, columns=80, verbose=False):
    """The lines of a plan as one text."""
    return "\n".join(lines(Plan(benchmarks=benchmarks, others=others), columns=columns, verbose=verbose))


@pytest.fixture
def suite(project):
    """Benchmarks of every kind, in place of the tiny ones."""
    (project.path / "benches" / "test_tiny.py").write_text(SUITE, encoding="utf-8")
    return project


def test_known_times_are_added():
    """Of what runs only."""
    plan = Plan(benchmarks=[planned(seconds=2.0), planned(seconds=3.0), planned(state="skip", seconds=9.0)])
    estimate = plan.estimate(plan.benchmarks)
    assert (estimate.seconds, estimate.guessed) == (5.0, 0)


def test_unknown_times_count_as_the_median_of_the_known_ones():
    """Of the whole session, also in a group where none is known."""
    plan = Plan(benchmarks=[*(planned(seconds=each) for each in (1.0, 2.0, 9.0)), planned(group="new")])
    (_, known), (_, new) = plan.groups()
    assert plan.estimate(new).seconds == 2.0
    assert plan.estimate(plan.benchmarks).seconds == 14.0
    assert [plan.estimate(each).guessed for each in (known, new)] == [0, 1]


def test_without_any_known_time_nothing_is_estimated():
    """A number would be made up."""
    assert Plan(benchmarks=[planned()]).estimate([planned()]).seconds is None
    assert "how long is unknown" in shown(planned())
    guessed = Plan(benchmarks=[planned(), planned()], budget_seconds=5.0)
    assert guessed.estimate(guessed.benchmarks) == Estimate(seconds=10.0, guessed=2)
    assert "guessed from the time budgets" in "\n".join(lines(guessed, columns=200, verbose=False))
    assert "no benchmark is selected" in "\n".join(lines(Plan(benchmarks=[]), columns=200, verbose=False))
    assert "unknown" in shown(planned()).splitlines()[1]


def test_skips_are_counted_by_reason():
    """The most frequent first."""
    text = shown(
        planned(state="skip", reason="needs a GPU"),
        *[planned(state="skip", reason="needs two GPUs")] * 2,
        planned(state="broken", reason="ValueError: x"),
    )
    assert text.index("    2  needs two GPUs") < text.index("    1  needs a GPU")
    assert text.index("fail before they measure:") < text.index("    1  ValueError: x")
    assert text.endswith("PLAN 0 of 4 benchmarks would run")


def test_it_fits_its_columns():
    """Reasons and totals are wrapped, long groups cut."""
    text = shown(
        planned(group="g" * 60, seconds=100.0),
        planned(group="g" * 60),
        planned(state="skip", reason="this and that " * 20),
        others=3,
    )
    assert max(map(len, text.splitlines())) < 80
    assert "and 3 tests that are none" in " ".join(text.split())
    assert "3 min 20 s" in text


def test_verbose_names_each():
    """With what is known of it."""
    text = shown(planned("bench.py::test_a", seconds=4.0), planned("bench.py::test_b", state="skip"), verbose=True)
    assert [line.split() for line in text.splitlines() if "bench.py" in line] == [
        ["run", "4", "s", "bench.py::test_a"],
        ["skip", "bench.py::test_b"],
    ]


def test_a_plan_asks_each_benchmark_and_measures_none(suite):
    """Its own parameters, marks and skips are the real ones; nothing is built, saved, or locked."""
    result = suite.runpytest("benches", "--perfgate-plan", "--perfgate-device=cpu", "-W", "error")
    result.stdout.fnmatch_lines(
        [
            "group *run *skip *about",
            "tiny * 2 * 1 *",
            "(no group) * 1 * 4 *",
            "skipped:",
            "    1  cudnn.benchmark needs a CUDA GPU*",
            "    1  needs a CUDA GPU; this run has none",
            "    1  not today",
            "fail before they measure:",
            "    1  ValueError: no such file",
            "    1  the test ended without a measure(step)",
            "listed only:",
            "PLAN 3 of 8 benchmarks would run, and 1 tests that are none, in about*",
        ]
    )
    assert result.ret == 0
    assert "AssertionError" not in result.stdout.str()
    assert not (suite.path / "results").exists()


def test_the_estimate_comes_from_this_machines_saved_runs(project):
    """Whether or not a comparison is asked for."""
    project.runpytest("benches").assert_outcomes(passed=2)
    before = saved_runs(project)

    def took(document):
        for each in document["perfgate"]["records"]:
            each["seconds"] = 90.0

    edit(before[0], took)
    for options in ((), ("--benchmark-compare",), (f"--benchmark-compare={before[0]}",)):
        result = project.runpytest("benches", "--perfgate-plan", *options)
        result.stdout.fnmatch_lines(["PLAN 2 of 2 benchmarks would run, in about 3 min 0 s"])
        assert result.ret == 0
    assert saved_runs(project) == before


def test_a_selection_is_planned_as_selected(suite):
    """With -k and -m."""
    result = suite.runpytest("benches", "--perfgate-plan", "-k", "runs", "-v")
    result.stdout.fnmatch_lines(["  run *test_tiny.py::test_runs?1?", "PLAN 2 of 2 benchmarks*"])


@pytest.mark.parametrize(
    "other",
    [
        ("-n", "2"),
        ("--perfgate-smoke",),
        ("--perfgate-resume",),
        ("--collect-only",),
        ("--benchmark-disable",),
        ("--benchmark-save=x",),
        ("--benchmark-compare", "--perfgate-json=x.json"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_beside_a_plan_is_refused(suite, other):
    """With a sentence, before anything runs."""
    result = suite.runpytest("benches", "--perfgate-plan", *other)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--perfgate-plan with *leave out*"])


def test_a_file_that_cannot_be_collected_is_still_an_error(suite):
    """A plan of a part would look like the whole."""
    (suite.path / "benches" / "test_bad.py").write_text("import no_such_module\n", encoding="utf-8")
    assert suite.runpytest("benches", "--perfgate-plan").ret == pytest.ExitCode.INTERRUPTED
