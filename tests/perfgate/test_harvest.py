"""What a session has measured, told and heard as events."""

import dataclasses
import json

import pytest

from perfgate.errors import UnreadableRun, UnsavableRun
from perfgate.harvest import Harvest
from perfgate.verdict.verdicts import Verdict, unjudged
from tests.conftest import PROCESS, count, record, replaced, times

A, B = "benches/test_a.py::test_a", "benches/test_a.py::test_b"
CANARY = replaced(PROCESS, canary={"matmul": 0.002})


@pytest.fixture
def events():
    """What the sink of the fixture :func:`harvest` was told."""
    return []


@pytest.fixture
def harvest(events):
    """An empty one."""
    return Harvest(sink=events.append, key="one")


def heard(events):
    """Another harvest that heard the same words, as JSON."""
    other = Harvest()
    for event in events:
        other.hear(json.loads(json.dumps(event)), "a test")
    return other


def failed(name=A, code="failed-in-call"):
    """The outcome of a test that failed."""
    return Verdict(id=name, word="failed", code=code, reason="because")


def test_what_is_told_can_be_heard(harvest, events):
    """A journal, a worker and a session say the same."""
    harvest.start(A)
    harvest.measured_by(PROCESS)
    harvest.take(record(A), None)
    harvest.start(B)
    harvest.give_up(failed(B))
    other = heard(events)
    assert other.records == harvest.records == (record(A),)
    assert other.processes == {"one": PROCESS}
    assert other.outcomes == {B: failed(B)}
    assert other.starts == {}


def test_what_is_heard_is_passed_on(harvest, events):
    """A controller's journal has what its workers measured."""
    told = {"event": "start", "id": A}
    harvest.hear(told, "a worker")
    assert events == [told]
    harvest.hear(told, "the journal", told=False)
    assert events == [told]
    assert harvest.starts == {A: 2}


def test_a_process_is_told_once(harvest, events):
    """Before its first record."""
    harvest.measured_by(PROCESS)
    harvest.measured_by(CANARY)
    assert [event["event"] for event in events] == ["process"]
    assert harvest.processes == {"one": PROCESS}


def test_nothing_is_entered_that_could_not_be_kept():
    """Or the run would have what the journal has not."""

    def full(_):
        raise UnsavableRun("full")

    harvest = Harvest(sink=full)
    for act in (
        lambda: harvest.start(A),
        lambda: harvest.measured_by(PROCESS),
        lambda: harvest.take(record(), None),
        lambda: harvest.give_up(failed()),
        lambda: harvest.hear({"event": "start", "id": A}, "a worker"),
    ):
        with pytest.raises(UnsavableRun):
            act()
    assert harvest.empty
    assert not harvest.starts
    assert not harvest.processes


def test_samples_stand_at_the_place_of_their_process():
    """As if each process had an inner list; what is counted is the same in all and stands first."""
    harvest = Harvest()
    measured = record(A, times(0.5, 0.6), count("operators", 7))
    for key, name in (("one", B), ("two", A)):
        harvest.hear({"event": "process", "key": key, "process": dataclasses.asdict(PROCESS)}, "a test")
        event = {
            "event": "record",
            "key": key,
            "record": dataclasses.asdict(replaced(measured, id=name)),
            "stock": None,
        }
        harvest.hear(json.loads(json.dumps(event)), "a test")
    second = next(each for each in harvest.records if each.id == A)
    first = next(each for each in harvest.records if each.id == B)
    assert second.measurement("wall_seconds").samples == ((), (0.5, 0.6))
    assert first.measurement("wall_seconds").samples == ((0.5, 0.6), ())
    assert second.measurement("operators").samples == ((7,),)
    assert second.measurement("wall_seconds").values == (0.5, 0.6)


def test_samples_of_a_single_process_stay_as_they_are(harvest):
    """Nothing to place."""
    harvest.measured_by(PROCESS)
    harvest.take(record(), None)
    assert harvest.records[0].measurement("wall_seconds").samples == record().measurements[0].samples


def test_a_failed_teardown_removes_the_record(harvest, events):
    """What failed afterwards has no number."""
    harvest.take(record(A), {"fullname": A})
    harvest.give_up(failed(A, "failed-in-teardown"))
    assert harvest.records == ()
    assert harvest.stock == []
    assert heard([events[-1]]).outcomes == {A: failed(A, "failed-in-teardown")}


def test_a_record_replaces_an_earlier_failure(harvest):
    """It was tried again."""
    harvest.give_up(failed())
    harvest.take(record(), None)
    assert harvest.outcomes == {}
    assert len(harvest.records) == 1


def test_begin_again_retries_what_failed_and_keeps_what_killed(harvest):
    """A hang would only hang again."""
    names = {"hung": "hung", "crashed": "crashed", "twice": "died-twice", "memory": "out-of-memory", "left": "not-run"}
    for name, code in names.items():
        harvest.give_up(unjudged(name, code, "because"))
    harvest.give_up(failed("failed"))
    harvest.give_up(Verdict(id="skipped", word="skipped", code="skipped", reason="because"))
    harvest.begin_again()
    assert set(harvest.outcomes) == {"hung", "crashed", "twice"}


def test_begin_again_gives_up_on_what_the_session_died_in_twice(harvest, events):
    """It is said how to find out more, and in the journal, too."""
    harvest.start(A)
    harvest.begin_again()
    assert not harvest.outcomes
    harvest.start(A)
    harvest.begin_again()
    outcome = harvest.outcomes[A]
    assert (outcome.word, outcome.code) == ("unjudged", "died-twice")
    assert "-n 1" in outcome.reason
    assert events[-1]["code"] == "died-twice"


def test_what_was_measured_in_between_is_not_to_blame(harvest):
    """Only begun and never ended counts."""
    harvest.start(A)
    harvest.take(record(A), None)
    harvest.start(A)
    harvest.begin_again()
    assert not harvest.outcomes


def test_an_interruption_clears_the_blame(harvest, events):
    """Who presses Ctrl-C twice in the same long benchmark has not seen it die."""
    for _ in range(3):
        harvest.start(A)
        harvest.stopped()
        harvest.begin_again()
    assert not harvest.outcomes
    assert heard(events).starts == {}


@pytest.mark.parametrize(
    "event",
    [
        {"event": "record", "key": "one", "record": {}, "stock": None},
        {"event": "outcome", "id": A, "word": "slower", "code": "x", "reason": "y"},
        {"event": "start"},
        {"event": "_finish"},
        7,
    ],
)
def test_what_is_no_event_is_refused_and_not_passed_on(harvest, events, event):
    """It is not put into the journal."""
    with pytest.raises(UnreadableRun, match="a worker"):
        harvest.hear(event, "a worker")
    assert events == []


def test_a_record_with_values_that_no_time_has_is_refused_and_not_passed_on(harvest, events):
    """Its shape is right and its values are not."""
    wrong = dataclasses.asdict(record(A, times(-1.0)))
    event = json.loads(json.dumps({"event": "record", "key": "one", "record": wrong, "stock": None}))
    with pytest.raises(UnreadableRun):
        harvest.hear(event, "a worker")
    assert events == []
    assert harvest.empty


def test_fields_of_a_later_process_are_ignored(harvest):
    """A journal of a later minor version."""
    told = {**dataclasses.asdict(PROCESS), "more": 1}
    harvest.hear({"event": "process", "key": "two", "process": told}, "the journal")
    assert harvest.processes == {"two": PROCESS}
