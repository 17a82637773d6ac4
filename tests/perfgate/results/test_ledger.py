"""The ledger of a machine's noise: written whole or not at all, and read with suspicion."""

import math
import os

import pytest

from perfgate.errors import NotAFile, RepeatedBenchmark, UnreadableRun, UnsavableRun
from perfgate.results.ledger import NAME, Ledger, Noise, read_ledger, write_ledger
from perfgate.verdict.noisy import Question, noise_known
from tests.conftest import edit


def noise(**fields):
    """What is known of one benchmark's time."""
    defaults = {
        "id": "benches/test_a.py::test_ä",
        "metric": "wall_seconds",
        "identity": "0" * 12,
        "pair_deviation": 0.01,
        "pair_degrees": 7,
        "process_deviation": 0.03,
        "process_degrees": 15,
        "detectable": 0.05,
    }
    return Noise(**{**defaults, **fields})


def ledger(*entries, stamp="20260101T000000000Z"):
    """A ledger of these entries."""
    return Ledger(stamp=stamp, soft={"torch": "2.15.0"}, entries={(each.id, each.metric): each for each in entries})


def test_what_is_written_is_read(tmp_path):
    """In a folder that is made for it."""
    written = ledger(noise(), noise(metric="speedup", detectable=None))
    file = write_ledger(tmp_path / "machine", written)
    assert file == tmp_path / "machine" / NAME
    assert read_ledger(tmp_path / "machine") == written


def test_without_a_calibration_nothing_is_known(tmp_path):
    """Neither folder nor file is needed."""
    assert read_ledger(tmp_path / "machine") == Ledger()
    assert read_ledger(tmp_path).entries == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"<<<<<<< HEAD\n", b"\xff\xfe", b'{"schema": NaN}'])
def test_what_is_no_ledger_is_refused(tmp_path, content):
    """With the file and, where it is no merge, the remedy."""
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(UnreadableRun, match=NAME):
        read_ledger(tmp_path)


def test_a_folder_in_its_place_is_refused(tmp_path):
    """With the remedy."""
    (tmp_path / NAME).mkdir()
    with pytest.raises(UnreadableRun, match="perfgate calibrate"):
        read_ledger(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", 3),
        ("metric", None),
        ("identity", 0),
        ("pair_deviation", "0.01"),
        ("pair_degrees", 7.5),
        ("process_deviation", None),
        ("process_degrees", True),
        ("detectable", "none"),
    ],
)
def test_a_wrong_type_is_named(tmp_path, field, value):
    """With the entry, and the remedy."""
    write_ledger(tmp_path, ledger(noise(id="a"), noise(id="b")))
    edit(tmp_path / NAME, lambda document: document["entries"][1].update({field: value}))
    with pytest.raises(UnreadableRun, match=rf"entries\[1\]\.{field}: .*perfgate calibrate"):
        read_ledger(tmp_path)


@pytest.mark.parametrize("field", ["pair_deviation", "pair_degrees", "process_deviation", "process_degrees"])
def test_a_negative_noise_is_refused(tmp_path, field):
    """Negative degrees of freedom would take away what the data say."""
    write_ledger(tmp_path, ledger(noise()))
    edit(tmp_path / NAME, lambda document: document["entries"][0].update({field: -1}))
    with pytest.raises(UnreadableRun, match=field):
        read_ledger(tmp_path)


@pytest.mark.parametrize("field", ["schema", "stamp", "soft", "entries"])
def test_a_missing_field_is_named(tmp_path, field):
    """Of the ledger."""
    write_ledger(tmp_path, ledger(noise()))
    edit(tmp_path / NAME, lambda document: document.pop(field))
    with pytest.raises(UnreadableRun, match=f"{field}: missing"):
        read_ledger(tmp_path)


def test_a_ledger_of_a_later_perfgate_is_refused(tmp_path):
    """Its fields may mean something else."""
    write_ledger(tmp_path, ledger(noise()))
    edit(tmp_path / NAME, lambda document: document.update(schema=99))
    with pytest.raises(UnreadableRun, match="schema"):
        read_ledger(tmp_path)


def test_a_noise_that_is_told_twice_is_refused(tmp_path):
    """The last one would win."""
    write_ledger(tmp_path, ledger(noise()))
    edit(tmp_path / NAME, lambda document: document["entries"].append(document["entries"][0]))
    with pytest.raises(RepeatedBenchmark, match=r"wall_seconds of 'benches.*appears twice.*perfgate calibrate"):
        read_ledger(tmp_path)


def test_a_link_in_its_place_is_refused(tmp_path):
    """It may lead anywhere."""
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(NotAFile, match="perfgate calibrate"):
        read_ledger(tmp_path)


def test_an_unknown_field_is_passed_over(tmp_path):
    """A later version may note more."""
    write_ledger(tmp_path, ledger(noise()))
    edit(tmp_path / NAME, lambda document: document["entries"][0].update(note="quiet night"))
    assert read_ledger(tmp_path) == ledger(noise())


def test_a_new_one_replaces_the_old_one_and_leaves_nothing_else(tmp_path):
    """No temporary files."""
    write_ledger(tmp_path, ledger(noise(), stamp="old"))
    write_ledger(tmp_path, ledger(stamp="new"))
    assert read_ledger(tmp_path).stamp == "new"
    assert [file.name for file in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_where_writing_fails_the_old_one_stays(tmp_path, monkeypatch, function):
    """A full disk costs the new one only."""
    write_ledger(tmp_path, ledger(stamp="old"))

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(UnsavableRun, match="free some space"):
        write_ledger(tmp_path, ledger(stamp="new"))
    monkeypatch.undo()
    assert read_ledger(tmp_path).stamp == "old"
    assert [file.name for file in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_what_json_cannot_hold_is_refused_by_name(tmp_path, value):
    """The old one stays."""
    write_ledger(tmp_path, ledger(stamp="old"))
    with pytest.raises(UnsavableRun):
        write_ledger(tmp_path, ledger(noise(detectable=value)))
    assert read_ledger(tmp_path).stamp == "old"


def question(**fields):
    """A question about the benchmark in the ledger."""
    defaults = {"id": noise().id, "group": "g", "metric": "wall_seconds", "better": "lower", "identity": "0" * 12}
    return Question(**{**defaults, **fields})


@pytest.mark.parametrize(("between", "variance", "degrees"), [("pair", 1e-4, 7.0), ("process", 9e-4, 15.0)])
def test_the_noise_is_known_between_pairs_and_between_processes(between, variance, degrees):
    """As a variance."""
    found = noise_known(ledger(noise()), [question()], between)
    assert found.value == pytest.approx([variance])
    assert found.degrees == pytest.approx([degrees])


@pytest.mark.parametrize("changed", [{"identity": "1" * 12}, {"metric": "speedup"}, {"id": "other"}])
def test_of_another_benchmark_nothing_is_known(changed):
    """Other parameters are another benchmark."""
    found = noise_known(ledger(noise()), [question(**changed), question()], "pair")
    assert found.degrees == pytest.approx([0.0, 7.0])
