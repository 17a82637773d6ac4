"""A second look at candidates: fresh processes that measure as the session did."""

import dataclasses
import sys
from types import SimpleNamespace

import pytest

from perfgate import recheck
from perfgate.recheck import command, measure_again, with_fresh
from tests.conftest import PROCESS, around, count, record, replaced, run, saved_runs


def option(**fields):
    """pytest's parsed options."""
    defaults = {
        "perfgate_device": "auto",
        "inifilename": None,
        "perfgate_data": None,
        "plugins": [],
        "override_ini": None,
    }
    return SimpleNamespace(**{**defaults, **fields})


def test_the_command_measures_the_files_in_the_project(tmp_path):
    """With this interpreter, sorted, going on after a file that cannot be collected."""
    words = command(option(), tmp_path, {"b.py", "a.py"})
    assert words[:5] == [sys.executable, "-m", "pytest", "a.py", "b.py"]
    assert f"--rootdir={tmp_path}" in words
    assert "--continue-on-collection-errors" in words
    assert "--perfgate-device=auto" in words
    assert "--perfgate-describe" in words


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"perfgate_device": "cpu"}, ["--perfgate-device=cpu"]),
        ({"inifilename": "/x/other.toml"}, ["-c", "/x/other.toml"]),
        ({"plugins": ["my.plugin", "no:randomly"]}, ["-p", "my.plugin", "-p", "no:randomly"]),
        ({"override_ini": ["a=b", "c=d"]}, ["-o", "a=b", "-o", "c=d"]),
    ],
)
def test_the_command_passes_on_what_decides_a_measurement(tmp_path, fields, expected):
    """As the session was given it."""
    words = " ".join(command(option(**fields), tmp_path, {"a.py"}))
    assert " ".join(expected) in words


def test_relative_paths_are_of_the_sessions_folder(tmp_path, monkeypatch):
    """The fresh process starts in the project's root."""
    monkeypatch.chdir(tmp_path)
    data = (tmp_path / "data").relative_to(tmp_path)
    words = command(option(perfgate_data=data, inifilename="x.toml"), tmp_path / "root", {"a.py"})
    assert f"--perfgate-data={tmp_path / 'data'}" in words
    assert words[words.index("-c") + 1] == str(tmp_path / "x.toml")


def test_the_options_of_the_stock_fixture_are_passed_on(pytester):
    """A plain benchmark is measured by them: without the collector here and with it there is no comparison."""
    given = ["--benchmark-disable-gc", "--benchmark-min-rounds=7", "--benchmark-warmup=on", "--benchmark-max-time=0.5"]
    config = pytester.parseconfig(*given)
    words = " ".join(command(config.option, pytester.path, {"a.py"}))
    assert "--benchmark-disable-gc" in words
    assert "--benchmark-min-rounds=7" in words
    assert "--benchmark-max-time=0.5" in words
    assert "--benchmark-min-time=0.000005" in words


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["--size=9", "a.py"], ["--size=9"]),
        (["--size", "9", "a.py", "-q"], ["--size", "9"]),
        (["a.py::test_x", "--slow"], ["--slow"]),
        (["-k", "two", "-x", "-p", "my.plugin"], []),
        (["--benchmark-compare", "--benchmark-max-time=1", "--perfgate-save", "--cov=x", "--junitxml", "x.xml"], []),
        (["--tb", "short", "--maxfail=1", "--co", "a.py"], []),
        (["--size", "9", "--tb", "short", "--deep", "yes"], ["--size", "9", "--deep", "yes"]),
    ],
)
def test_options_of_the_project_are_passed_on(tmp_path, given, passed):
    """Nobody else knows them; what pytest or a plugin knows is given by name or not wanted."""
    with_paths = option(file_or_dir=["a.py", "a.py::test_x"])
    plain = command(with_paths, tmp_path, {"a.py"})
    assert command(with_paths, tmp_path, {"a.py"}, given) == [*plain, *passed]


def fresh(*records):
    """A run of a fresh process."""
    return run(*records, processes=(replaced(PROCESS, started="later"),))


def test_fresh_samples_stand_beside_the_runs_own():
    """One tuple per process, with the processes."""
    one = run(record("a", around(0.01)))
    merged = with_fresh(one, [fresh(record("a", around(0.02))), fresh(record("a", around(0.03)))])
    (found,) = merged.records
    samples = found.measurement("wall_seconds").samples
    assert [sorted(each)[4] for each in samples] == [0.01, 0.02, 0.03]
    assert [each.started for each in merged.processes] == [PROCESS.started, "later", "later"]


def test_what_a_fresh_process_did_not_measure_is_empty_there():
    """So that each tuple stays beside its process."""
    one = run(record("a", around(0.01)), record("b", around(0.01)))
    merged = with_fresh(one, [fresh(record("b", around(0.02))), fresh(record("a", around(0.03)))])
    by_name = {each.id: each.measurement("wall_seconds").samples for each in merged.records}
    assert [len(each) for each in by_name["a"]] == [8, 0, 8]
    assert [len(each) for each in by_name["b"]] == [8, 8, 0]


def test_what_was_not_measured_again_stays_as_it_is():
    """It has samples of the first process only."""
    one = run(record("a", around(0.01)), record("b", around(0.01)))
    merged = with_fresh(one, [fresh(record("a", around(0.02)))])
    assert merged.records[1] is one.records[1]


def test_counts_are_not_merged():
    """They are the same in every process, or the run's own count."""
    one = run(record("a", around(0.01), count("operators", 3)))
    merged = with_fresh(one, [fresh(record("a", around(0.02), count("operators", 3)))])
    assert merged.records[0].measurement("operators").samples == ((3,),)


def test_a_metric_that_a_fresh_process_lacks_is_empty_there():
    """Energy, where the meter was away."""
    energy = around(2.0, metric="energy_joules")
    merged = with_fresh(run(record("a", around(0.01), energy)), [fresh(record("a", around(0.02)))])
    assert [len(each) for each in merged.records[0].measurement("energy_joules").samples] == [8, 0]


def test_without_fresh_runs_it_is_the_same_run():
    """Nothing to merge."""
    one = run(record("a", around(0.01)))
    assert with_fresh(one, []) is one


BENCH = """
import os
import pytest

def test_quick(benchmark):
    benchmark(sum, range(10))

def test_broken(measure):
    assert not os.environ.get("BROKEN"), "no such thing"
    from workloads import MLP
    measure(MLP(batch_size=4, width=8, image_size=4).train_step())
"""


def test_a_real_fresh_process(project, monkeypatch):
    """It measures what it is asked to, and says what it could not."""
    (project.path / "benches" / "test_tiny.py").write_text(BENCH, encoding="utf-8")
    monkeypatch.setattr(recheck, "FRESH_PROCESSES", 1)
    config = project.parseconfig()
    words = command(config.option, project.path, {"benches/test_tiny.py"})
    words += ["-p", "perfgate.plugin", "-o", "addopts="]
    said = []
    names = ["benches/test_tiny.py::test_broken"]
    runs, problems = measure_again(words, project.path, names, run(), said.append)
    assert problems == []
    (found,) = runs
    assert [each.id for each in found.records] == names
    assert found.processes[0].canary
    assert said == ["measuring 1 again in a fresh process (1 of 1)"]
    assert saved_runs(project) == []
    monkeypatch.setenv("BROKEN", "1")
    runs, problems = measure_again(words, project.path, names, run(), said.append)
    assert runs == []
    assert len(problems) == 1
    assert "no such thing" in problems[0]


def test_a_process_that_cannot_start_is_a_problem(tmp_path, monkeypatch):
    """Said once, however many there are; the run is judged without."""
    words = [sys.executable, "-c", "import sys; sys.exit('no torch here')"]
    runs, problems = measure_again(words, tmp_path, ["a"], run(), lambda _: None)
    assert runs == []
    assert len(problems) == 1
    assert "no torch here" in problems[0]


def test_the_sessions_own_options_in_the_environment_are_not_given_twice(tmp_path, monkeypatch):
    """They were parsed, and are passed on by name."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--benchmark-compare")
    code = "import os, sys; sys.exit('found' if 'PYTEST_ADDOPTS' in os.environ else 'absent')"
    _, problems = measure_again([sys.executable, "-c", code], tmp_path, ["a"], run(), lambda _: None)
    assert "absent" in problems[0]


def test_dataclasses_of_the_run_are_not_shared():
    """The run that was given is not changed."""
    one = run(record("a", around(0.01)))
    before = dataclasses.asdict(one)
    with_fresh(one, [fresh(record("a", around(0.02)))])
    assert dataclasses.asdict(one) == before
