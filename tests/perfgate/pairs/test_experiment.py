"""Pairs of processes: everything is measured that can be, whatever dies in between."""

import dataclasses
import json
import os
import sys
from pathlib import Path

import pytest

import perfgate
from perfgate.errors import ComparisonError
from perfgate.pairs.experiment import MOST_RESTARTS, Experiment
from perfgate.pairs.side import Launch
from tests.conftest import PROCESS, record

CHILD = """
import json, os, sys
from perfgate.turns import Taken
turns = Taken(int(sys.argv[-1].removeprefix("--perfgate-turns=")))
plan = json.loads(os.environ["PLAN"])
def note(what):
    with open("log.jsonl", "a") as log:
        log.write(json.dumps([os.environ["SIDE"], os.getpid(), what]) + "\\n")
note("begin")
if plan.get("never"):
    sys.exit("no such option")
ids = turns.collected(plan["ids"], plan.get("problems", {}), plan.get("machine", {"slug": "m"}))
note(ids)
if plan.get("early"):
    os._exit(7)
for name in ids:
    turns.start(name)
    if name in plan.get("dies", ()):
        os._exit(7)
    for _ in range(turns.agree(1)):
        turns.before_round()
    turns.after_rounds()
    if name in plan.get("crowded", ()):
        reason = "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"
        turns.tell("outcome", {"id": name, "word": "failed", "code": "failed-in-call", "reason": reason})
        continue
    turns.tell("about", {"process": json.loads(os.environ["PROCESS"])})
    turns.tell("record", {**json.loads(os.environ["RECORD"]), "id": name})
turns.tell("modules", {"own": plan.get("modules", {}), "installed": {}})
turns.finish()
note("end")
"""


class FakeStarter:
    """Starts scripted processes of one side, each by the next of its plans; the last one serves for all further."""

    def __init__(self, name, folder, *plans):
        """``plans``: what each process in turn does."""
        self.name, self._folder, self._plans, self.launches = name, folder, list(plans), 0

    def launch(self, number):
        """The next process."""
        plan = self._plans[min(self.launches, len(self._plans) - 1)]
        self.launches += 1
        return Launch(
            name=self.name,
            command=[sys.executable, "-c", CHILD],
            folder=self._folder,
            environment={
                **os.environ,
                "PYTHONPATH": str(Path(perfgate.__file__).parents[1]),
                "PLAN": json.dumps(plan),
                "SIDE": self.name,
                "RECORD": json.dumps(dataclasses.asdict(record())),
                "PROCESS": json.dumps(dataclasses.asdict(PROCESS)),
            },
            log=self._folder / f"{self.name}.log",
            limit_seconds=30.0,
        )


NAMES = [f"t.py::{letter}" for letter in "abcdef"]
FINE = {"ids": NAMES}


@pytest.fixture
def make(tmp_path):
    """An experiment of scripted processes; what it says is in ``said``."""

    def experiment(base, head, *, alternating=True, prove=lambda side: None):
        said = []
        made = Experiment(
            starters=[FakeStarter("base", tmp_path, *base), FakeStarter("head", tmp_path, *head)],
            prove=prove,
            say=said.append,
            tick=lambda name: None,
            expect=lambda side, names: said.append(f"{len(names)} expected"),
            alternating=alternating,
        )
        return made, said

    return experiment


@pytest.fixture
def log(tmp_path):
    """What the processes wrote down: (side, process, what), in order."""

    def read():
        return [tuple(json.loads(line)) for line in (tmp_path / "log.jsonl").read_text().splitlines()]

    return read


def orders(lines):
    """The benchmarks each process was told to run, in order."""
    return [what for _, _, what in lines if isinstance(what, list)]


def test_a_pair_has_the_records_of_both(make):
    """Of all benchmarks, with the canary of each process."""
    experiment, _ = make([FINE], [FINE])
    pair = experiment.pair(0)
    assert set(pair.base) == set(pair.head) == set(NAMES)
    assert set(pair.canaries) == {"base", "head"}
    assert experiment.working_seconds > 0


def test_only_some_benchmarks(make):
    """As in the second stage."""
    experiment, _ = make([FINE], [FINE])
    pair = experiment.pair(0, {"t.py::b", "t.py::e"})
    assert set(pair.base) == set(pair.head) == {"t.py::b", "t.py::e"}


def test_both_sides_run_the_same_order_and_each_pair_another(make, log):
    """An order of its own, so that neighbours change; always the same for the same pair."""
    experiment, _ = make([FINE], [FINE])
    experiment.pair(0)
    experiment.pair(1)
    first, also_first, second, also_second = orders(log())
    assert first == also_first != second == also_second
    assert sorted(first) == sorted(second) == NAMES
    again, _ = make([FINE], [FINE])
    again.pair(0)
    assert orders(log())[-1] == first


def test_the_side_that_starts_first_changes(make, log):
    """Base in even pairs, head in odd ones."""
    experiment, _ = make([FINE], [FINE])
    for number in range(4):
        experiment.pair(number)
    assert [side for side, _, what in log() if what == "begin"] == ["base", "head", "head", "base"] * 2


def test_how_long_it_takes_is_told_once(make):
    """By the first process that has collected."""
    experiment, said = make([FINE], [FINE])
    experiment.pair(0)
    experiment.pair(1)
    assert said == ["6 expected"]


def test_after_a_death_the_rest_is_measured(make):
    """In new processes, without the benchmark that one did not survive."""
    experiment, said = make([FINE], [{**FINE, "dies": ["t.py::c"]}])
    pair = experiment.pair(0)
    assert set(pair.head) == set(NAMES) - {"t.py::c"}
    assert set(pair.base) >= set(pair.head)
    assert experiment.heard["head"].deaths["t.py::c"].code == "crashed"
    assert any("head died at t.py::c" in each for each in said)


def test_what_was_measured_before_a_death_is_not_measured_again(make, log):
    """By either side."""
    experiment, _ = make([FINE], [{**FINE, "dies": ["t.py::c"]}])
    experiment.pair(0)
    first, _, again, _ = orders(log())
    assert set(again) == set(first[first.index("t.py::c") + 1 :])


def test_a_benchmark_that_killed_is_given_up_in_later_pairs(make, log):
    """Nobody waits for the same crash in every pair."""
    experiment, _ = make([FINE], [{**FINE, "dies": ["t.py::c"]}])
    experiment.pair(0)
    before = len(orders(log()))
    pair = experiment.pair(1)
    assert set(pair.base) == set(pair.head) == set(NAMES) - {"t.py::c"}
    assert len(orders(log())) == before + 2


def test_one_more_death_in_base(make):
    """Each side loses its own, both lose both."""
    experiment, _ = make([{**FINE, "dies": ["t.py::a"]}], [{**FINE, "dies": ["t.py::c"]}])
    pair = experiment.pair(0)
    assert {"t.py::b", "t.py::d", "t.py::e", "t.py::f"} <= set(pair.base) & set(pair.head)


def test_where_everything_dies_it_ends(make):
    """After so many restarts; what is left has no record."""
    names = [f"t.py::{number}" for number in range(9)]
    experiment, _ = make([{"ids": names}], [{"ids": names, "dies": names}])
    pair = experiment.pair(0)
    assert pair.head == {}
    assert len(experiment.heard["head"].deaths) == 1 + MOST_RESTARTS
    assert experiment.starters[1].launches == 1 + MOST_RESTARTS


def test_a_death_between_benchmarks_names_something(make):
    """A line of progress that names nothing helps nobody; the benchmarks are measured by the next process."""
    experiment, said = make([FINE], [{**FINE, "early": True}, FINE])
    assert len(experiment.pair(0).common) == 6
    assert not any("died at ;" in each for each in said)


def test_without_memory_for_both_they_are_measured_one_after_the_other(make, log):
    """From this pair on, and what they said in between is forgotten."""
    crowded = {**FINE, "crowded": ["t.py::d"]}
    experiment, said = make([FINE], [crowded, FINE])
    pair = experiment.pair(0)
    assert "t.py::d" in pair.base
    assert "t.py::d" in pair.head
    assert experiment.alone == {"t.py::d"}
    assert experiment.heard["head"].outcomes == {}
    assert any("1 benchmarks do not fit into memory together" in each for each in said)
    experiment.pair(1)
    later = log()[-12:]
    assert [what for _, _, what in later if isinstance(what, list)][-2:] == [["t.py::d"], ["t.py::d"]]
    assert [what for _, _, what in later][-6:] == ["begin", ["t.py::d"], "end"] * 2


def test_what_does_not_fit_alone_either_is_given_up(make):
    """With its reason."""
    experiment, _ = make([FINE], [{**FINE, "crowded": ["t.py::d"]}])
    pair = experiment.pair(0)
    assert "t.py::d" not in pair.head
    assert "out of memory" in experiment.heard["head"].outcomes["t.py::d"]["reason"]
    assert len(pair.common) == 5


def test_one_after_the_other(make, log):
    """The first process has ended when the second begins."""
    experiment, _ = make([FINE], [FINE], alternating=False)
    pair = experiment.pair(1)
    assert set(pair.base) == set(pair.head) == set(NAMES)
    assert [(side, what) for side, _, what in log() if isinstance(what, str)] == [
        ("head", "begin"),
        ("head", "end"),
        ("base", "begin"),
        ("base", "end"),
    ]
    first, second = orders(log())
    assert first == second


def test_one_after_the_other_with_a_death(make):
    """The other side is not measured again for it."""
    experiment, _ = make([FINE], [{**FINE, "dies": ["t.py::c"]}], alternating=False)
    pair = experiment.pair(0)
    assert set(pair.head) == set(NAMES) - {"t.py::c"}
    assert experiment.starters[0].launches == 1


def test_a_benchmark_of_one_side_only(make):
    """Both are known, and each is measured where it is."""
    experiment, _ = make([{"ids": NAMES[:2]}], [{"ids": NAMES[1:3]}])
    pair = experiment.pair(0)
    assert (set(pair.base), set(pair.head)) == (set(NAMES[:2]), set(NAMES[1:3]))
    assert pair.common == [NAMES[1]]
    assert experiment.known == NAMES[:3]


def test_files_that_cannot_be_collected_are_heard_of(make):
    """With the reason."""
    experiment, _ = make([FINE], [{**FINE, "problems": {"u.py": "SyntaxError: x"}}])
    experiment.pair(0)
    assert experiment.heard["head"].problems == {"u.py": "SyntaxError: x"}


@pytest.mark.parametrize("side", ["base", "head"])
def test_a_process_that_cannot_start_ends_it_all(make, side):
    """With what it said last."""
    plans = {"base": [FINE], "head": [FINE], side: [{"never": True}]}
    experiment, _ = make(plans["base"], plans["head"])
    with pytest.raises(ComparisonError, match=rf"nothing could be measured: {side} ended[\s\S]*no such option"):
        experiment.pair(0)


def test_a_process_that_cannot_start_again_does_not_throw_away_what_was_measured(make):
    """A restart that fails is a death like any other."""
    experiment, _ = make([FINE], [{**FINE, "dies": ["t.py::c"]}, {"never": True}])
    pair = experiment.pair(0)
    assert set(pair.base) & set(pair.head)


def test_every_process_is_proved(make):
    """Once per process, after it ended."""
    proved = []
    experiment, _ = make([FINE], [FINE], prove=lambda side: proved.append((side.launch.name, len(side.records))))
    experiment.pair(0)
    experiment.pair(1)
    assert proved == [("base", 6), ("head", 6), ("head", 6), ("base", 6)]


def test_a_wrong_import_ends_it_all(make):
    """Nothing of it may be judged."""

    def prove(side):
        raise ComparisonError("head imported base's code")

    experiment, _ = make([FINE], [FINE], prove=prove)
    with pytest.raises(ComparisonError, match="imported"):
        experiment.pair(0)


def test_different_machines_are_not_compared(make):
    """Two interpreters may see different devices."""
    plans = [[{**FINE, "machine": {"slug": "m", "hard": {"device": device}}}] for device in ("cpu", "cuda")]
    experiment, _ = make(*plans)
    with pytest.raises(ComparisonError, match=r"not see the same machine: .*cpu.*cuda"):
        experiment.pair(0)


def test_soft_differences_of_machines_are_compared(make):
    """And a side without ``measure`` tells of no machine."""
    machine = {"slug": "m", "hard": {"device": "cpu"}}
    experiment, _ = make([{**FINE, "machine": {**machine, "soft": {"torch": "1"}}}], [{**FINE, "machine": machine}])
    assert len(experiment.pair(0).common) == 6
    experiment, _ = make([{**FINE, "machine": {}}], [{**FINE, "machine": machine}])
    assert len(experiment.pair(0).common) == 6


def test_deaths_are_counted(make):
    """Also those between benchmarks."""
    experiment, _ = make([FINE], [{**FINE, "early": True}, {**FINE, "dies": ["t.py::c"]}, FINE])
    assert experiment.deaths == 0
    experiment.pair(0)
    assert experiment.deaths == 2


def test_what_was_loaded_is_kept_of_all_pairs(make):
    """A benchmark may be measured in some of them only."""
    plans = [{**FINE, "modules": {"a": "/x/a.py"}}, {**FINE, "modules": {"b": "/x/b.py"}}]
    experiment, _ = make([FINE], plans)
    experiment.pair(0)
    experiment.pair(1)
    assert experiment.heard["head"].loaded == {"a": "/x/a.py", "b": "/x/b.py"}
    assert experiment.heard["base"].loaded == {}
    assert experiment.heard["base"].own is None
