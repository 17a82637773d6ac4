"""Thinning: only measured values stay, and what is known of them is as true as before."""

import json
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_benchmark.stats import Stats

from perfgate.errors import ResultsError, UnreadableRun
from perfgate.results import thinning
from perfgate.results.document import dumps, parse, to_document
from perfgate.results.ledger import Ledger
from perfgate.results.thinning import FEWEST, stock_statistics, thin, thin_text
from perfgate.settings import Settings
from perfgate.verdict.files import compare_files
from tests.conftest import PROCESS, count, record, replaced, run, times

VALUES = st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=200)
ODD = st.integers(FEWEST // 2, 30).map(lambda half: 2 * half + 1)


def stock_stats(data):
    """As pytest-benchmark writes them."""
    stats = Stats()
    for value in data:
        stats.update(value)
    return {**stats.as_dict(), "data": list(data), "iterations": 1}


def wave(number, middle=0.01):
    """So many times that differ."""
    return [middle * (1 + 0.05 * math.sin(index * 1.7) + 0.001 * index / number) for index in range(number)]


def document_of(*numbers, **fields):
    """A run with one benchmark per number of samples, as it is saved."""
    records = [
        record(f"benches/test_a.py::test_{place}", times(*wave(number)), count("operators", 3, mm=3))
        for place, number in enumerate(numbers)
    ]
    benchmarks = [
        {"fullname": each.id, "extra_info": {"peak_bytes": 1}, "stats": stock_stats(each.measurements[0].values)}
        for each in records
    ]
    return to_document(run(*records, **fields), {"benchmarks": benchmarks, "version": "5.2"})


def text_of(document):
    return dumps(document).decode()


@given(VALUES, ODD)
def test_ends_and_middle_are_exact(values, most):
    """And the median of the logarithms is too, since both values in the middle of an even list are kept."""
    kept = thin(values, most)
    assert (min(kept), max(kept)) == (min(values), max(values))
    assert statistics.median(kept) == statistics.median(values)
    assert statistics.median(map(math.log, kept)) == statistics.median(map(math.log, values))


@given(VALUES, ODD)
def test_only_measured_values_stay_in_their_order(values, most):
    """As many as asked for, or one fewer; a short list is left alone, so that a second time changes nothing."""
    kept = thin(values, most)
    rest = iter(values)
    assert all(any(value == other for other in rest) for value in kept)
    assert len(kept) == (len(values) if len(values) <= most else most - (len(values) + 1) % 2)
    assert thin(kept, most) == kept


def test_ranks_are_evenly_spaced():
    """Of 0..100, every fifth."""
    assert thin(range(101), 21) == list(range(0, 101, 5))
    assert thin(range(100), 7) == [0, 25, 49, 50, 74, 99]


@given(VALUES.filter(lambda values: len(values) > 1))
def test_stock_statistics_are_those_of_pytest_benchmark(data):
    """A canary: its definitions may change."""
    theirs, ours = stock_stats(data), stock_statistics(data)
    assert {*ours} == {*Stats.fields} - {"min", "max", "median"}
    for key, value in ours.items():
        assert value == theirs[key] or math.isclose(value, theirs[key], rel_tol=1e-9, abs_tol=1e-9 * max(data)), key


def test_a_thinned_document():
    """Medians are as before, what was left out is said, and all else is kept."""
    document = document_of(480, 21)
    new = json.loads(thin_text(text_of(document), "x", 21))
    old, thinned = parse(text_of(document), "x"), parse(text_of(new), "x")
    first, second = thinned.records
    values = first.measurement("wall_seconds").values
    assert len(values) == 20
    assert statistics.median(values) == statistics.median(old.records[0].measurement("wall_seconds").values)
    assert first.evidence["samples"] == "wall_seconds thinned from 480 to 20"
    assert first.flags == ()
    assert second == old.records[1]
    assert new["benchmarks"][1] == document["benchmarks"][1]
    assert replaced(thinned, records=()) == replaced(old, records=())


def test_statistics_of_all_samples_are_kept():
    """Beside those of the samples kept, also where a file is thinned twice."""
    document = document_of(480)
    before = document["benchmarks"][0]["stats"]
    once = thin_text(text_of(document), "x", 101).decode()
    for text in (once, thin_text(once, "x", 7).decode()):
        found = json.loads(text)["benchmarks"][0]
        assert found["extra_info"]["before_thinning"]["mean"] == before["mean"]
        assert found["extra_info"]["before_thinning"]["rounds"] == 480
        assert found["extra_info"]["peak_bytes"] == 1
        assert found["stats"]["rounds"] == len(found["stats"]["data"])
        assert [found["stats"][key] for key in ("min", "median", "max")] == [
            before[key] for key in ("min", "median", "max")
        ]


def test_twice_says_both():
    """Each time what was left out."""
    once = thin_text(text_of(document_of(481)), "x", 101).decode()
    twice = parse(thin_text(once, "x", 7).decode(), "x")
    said = "wall_seconds thinned from 481 to 101; wall_seconds thinned from 101 to 7"
    assert twice.records[0].evidence["samples"] == said


def test_nothing_to_do():
    """No list is longer."""
    assert thin_text(text_of(document_of(21)), "x", 21) is None


def test_a_file_that_would_grow_is_left_alone():
    """What is said of the samples left out takes more room than they did."""
    assert thin_text(text_of(document_of(9)), "x", 7) is None


def test_each_process_has_its_own_median():
    """Runs are compared by the medians of processes."""
    measurement = replaced(times(), samples=(tuple(wave(100)), (), tuple(wave(31, 0.02))))
    made = run(record("a", measurement), processes=(PROCESS,) * 3)
    stock = {"benchmarks": [{"fullname": "a", "stats": stock_stats(wave(100))}]}
    thinned = parse(thin_text(text_of(to_document(made, stock)), "x", 7).decode(), "x")
    found = thinned.records[0].measurement("wall_seconds").samples
    assert [len(each) for each in found] == [6, 0, 7]
    for now, before in zip(found, measurement.samples, strict=True):
        assert not before or statistics.median(now) == statistics.median(before)


def test_verdicts_stay(tmp_path):
    """A thinned run is judged as the whole one was, on either side."""

    def saved(name, number, document):
        file = tmp_path / f"{name}{number}.json"
        return parse(text_of(document), str(file))

    def side(name, middle, shorter):
        for number in range(6):
            made = document_of(60, stamp=f"2026010{number + 1}T000000000Z")
            data = wave(60, middle * (1 + 0.002 * number))
            made["perfgate"]["records"][0]["measurements"][0]["samples"] = [data]
            made["benchmarks"][0]["stats"] = stock_stats(data)
            yield saved(name, number, json.loads(thin_text(text_of(made), "x", 21)) if shorter else made)

    def judged(one_shorter, two_shorter):
        heads = list(side("b", 0.02, two_shorter))
        verdicts, _ = compare_files(list(side("a", 0.01, one_shorter)), heads, Settings(), Ledger())
        return [(each.word, each.code, each.change) for each in verdicts]

    whole = judged(False, False)
    assert whole[0][0] == "slower"
    assert judged(True, False) == judged(False, True) == judged(True, True) == whole


def test_counts_are_left_alone():
    """The first of them speaks for all."""
    measurement = replaced(count("operators", 3), samples=((5.0, *range(1, 40)),))
    made = thinning.thin_record({**to_document(run(record("a", measurement)), {})["perfgate"]["records"][0]}, 7)
    assert len(made["measurements"][0]["samples"][0]) == 40


def test_unknown_fields_survive():
    """Wherever they are."""
    document = document_of(100)
    extra = {"later": [1, {"deep": None}]}
    for place in (document, document["perfgate"], document["benchmarks"][0], document["benchmarks"][0]["stats"]):
        place.update(extra)
    document["perfgate"]["records"] = [{**each, **extra} for each in document["perfgate"]["records"]]
    new = json.loads(thin_text(text_of(document), "x", 21))
    for place in (
        new,
        new["perfgate"],
        new["benchmarks"][0],
        new["benchmarks"][0]["stats"],
        new["perfgate"]["records"][0],
    ):
        assert place["later"] == extra["later"]


def test_no_run():
    """Refused as by every reader."""
    with pytest.raises(UnreadableRun):
        thin_text("{}", "x", 21)


def test_an_older_schema_is_not_rewritten(monkeypatch):
    """It is read through a migration, and its fields are not this version's."""
    monkeypatch.setattr(thinning, "SCHEMA", 99)
    with pytest.raises(ResultsError, match="never rewritten"):
        thin_text(text_of(document_of(100)), "x", 21)
