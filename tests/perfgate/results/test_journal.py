"""The journal: whole lines on the disk before anything else happens, whatever dies or fills up meanwhile."""

import dataclasses
import errno
import json
import os
import subprocess
import sys
import time

import pytest

from perfgate.errors import UnreadableRun, UnsavableRun
from perfgate.results import exclusive
from perfgate.results.journal import SCHEMA, Journal, Session, check_event, parse_event, read_journal, unfinished
from tests.conftest import MACHINE, record, times

SESSION = Session(
    stamp="20260101T000000000Z",
    commit={"id": "a" * 40, "branch": "main", "dirty": "no"},
    machine=MACHINE,
    code="0123456789abcdef",
    label="before",
)
START = {"event": "start", "id": "a"}
OUTCOME = {"event": "outcome", "id": "a", "word": "failed", "code": "failed-in-call", "reason": "é and \ud800"}
HOLDER = """
import sys
import time
from pathlib import Path
from perfgate.results.journal import Journal
journal = Journal(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def journal(tmp_path):
    """A journal that has only begun."""
    made = Journal.create(tmp_path / "machine", SESSION)
    yield made
    made.close()


def left(journal, *events, after=b""):
    """What a session left that wrote these events and was killed."""
    for event in events:
        journal.append(event)
    journal.close()
    with journal.file.open("ab") as stream:
        stream.write(after)
    return journal.file


def test_what_is_appended_is_read(journal):
    """The session and its events, in order."""
    taken = json.loads(
        json.dumps({"event": "record", "key": "k", "record": dataclasses.asdict(record()), "stock": None})
    )
    found = read_journal(left(journal, START, taken, OUTCOME, {"event": "stopped"}))
    assert found.session == SESSION
    assert found.events == (START, taken, OUTCOME, {"event": "stopped"})
    assert found.problems == ()


def test_a_journal_is_named_after_its_session_and_no_run(journal):
    """Names sort by time; readers of runs pass it over."""
    assert journal.file.name.startswith("20260101T000000000Z-aaaaaaaaaaaa-")
    assert journal.file.suffix == ".journal"


def test_each_event_is_synced_before_the_next(journal, monkeypatch):
    """A power cut costs nothing that was appended."""
    calls = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda *given: calls.append("write") or write(*given))
    monkeypatch.setattr(os, "fsync", lambda *given: calls.append("fsync") or fsync(*given))
    journal.append(START)
    journal.append(OUTCOME)
    assert calls == ["write", "fsync"] * 2


@pytest.mark.parametrize("cut", [b'{"event":"start"', b'{"event":"start","id":"b"', b"\xff\xfe", b"{"])
def test_a_torn_last_line_is_told_and_costs_only_itself(journal, cut):
    """Whatever was half written."""
    found = read_journal(left(journal, START, after=cut))
    assert found.events == (START,)
    (problem,) = found.problems
    assert "line 3, left out: half written when the session ended" in problem


def test_a_line_cut_before_its_end_only_is_whole(journal):
    """Its newline is missing, and nothing else."""
    found = read_journal(left(journal, after=json.dumps(START).encode()))
    assert (found.events, found.problems) == ((START,), ())


@pytest.mark.parametrize(
    ("garbage", "said"),
    [
        (b"\0" * 100, "JSON"),
        (b"\xff\xfe\xfd", "JSON"),
        (b'{"event":"start","id":7}', "start.id"),
        (b'{"event":"unheard-of"}', "no event of a journal"),
        (b'{"event":"start"}', "id: missing"),
        (b'{"event":"start","id":"b","id":"c"}', "appears twice"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_garbage_in_the_middle_costs_only_its_line(journal, garbage, said):
    """What was appended before and after it is read, and the line is named."""
    file = left(journal, START, after=garbage + b"\n" + json.dumps(OUTCOME).encode() + b"\n")
    found = read_journal(file)
    assert found.events == (START, OUTCOME)
    (problem,) = found.problems
    assert "line 3, left out" in problem
    assert said in problem


def test_going_on_after_a_torn_line_loses_nothing(journal):
    """The next event begins a line of its own."""
    file = left(journal, START, after=b'{"event":"sta')
    again = Journal(file)
    again.append(OUTCOME)
    again.close()
    found = read_journal(file)
    assert found.events == (START, OUTCOME)
    assert len(found.problems) == 1


@pytest.mark.parametrize("first", [b"", b"garbage", json.dumps(START).encode()])
def test_a_journal_that_does_not_say_whose_it_is_cannot_be_read(tmp_path, first):
    """Its machine and commit are not known."""
    file = tmp_path / "a.journal"
    file.write_bytes(first + b"\n")
    with pytest.raises(UnreadableRun, match=r"a\.journal"):
        read_journal(file)


@pytest.mark.parametrize(
    ("field", "value"),
    [("stamp", "../../outside"), ("commit", {}), ("commit", {**SESSION.commit, "id": "../../outsi"}), ("code", None)],
)
def test_a_session_that_could_not_name_a_run_is_refused(journal, field, value):
    """Whoever planted it: a run would be saved under this name."""
    file = left(journal)
    document = json.loads(file.read_text(encoding="ascii"))
    file.write_text(json.dumps({**document, field: value}) + "\n", encoding="ascii")
    with pytest.raises(UnreadableRun, match=f"session.{field}"):
        read_journal(file)


def test_a_record_that_no_run_may_have_costs_only_its_line(journal):
    """All others can still be made a run."""
    wrong = {"event": "record", "key": "k", "record": dataclasses.asdict(record("a", times(-1.0))), "stock": None}
    found = read_journal(left(journal, START, wrong, OUTCOME))
    assert found.events == (START, OUTCOME)
    assert "wall_seconds of 'a'" in found.problems[0]


def test_a_journal_of_a_newer_schema_is_refused(journal):
    """With the remedy."""
    file = left(journal)
    document = json.loads(file.read_text(encoding="ascii"))
    file.write_text(json.dumps({**document, "schema": SCHEMA + 1}) + "\n", encoding="ascii")
    with pytest.raises(UnreadableRun, match="update, or remove it"):
        read_journal(file)


def test_fields_of_a_later_minor_version_are_ignored(journal):
    """In the session as in events."""
    file = left(journal, {**START, "more": 1})
    document = json.loads(file.read_text(encoding="ascii").splitlines()[0])
    lines = [json.dumps({**document, "more": 1}), json.dumps({**START, "more": 1})]
    file.write_text("\n".join(lines) + "\n", encoding="ascii")
    assert read_journal(file).session == SESSION


def test_unfinished_are_those_that_nobody_writes(journal):
    """Newest first; a living session's is left out, in this process or another."""
    folder = journal.file.parent
    (folder / "20270101T000000000Z-unknown-0000.journal").write_text("", encoding="ascii")
    (folder / "20250101T000000000Z-unknown-0000.journal").write_text("", encoding="ascii")
    (folder / "20250101T000000000Z-unknown-0000.json").write_text("", encoding="ascii")
    assert [file.name[:4] for file in unfinished(folder)] == ["2027", "2025"]
    journal.close()
    assert [file.name[:4] for file in unfinished(folder)] == ["2027", "2026", "2025"]


def test_where_nothing_was_ever_saved_nothing_is_unfinished(tmp_path):
    """There is no folder yet."""
    assert unfinished(tmp_path / "nowhere") == []


def test_the_journal_of_a_living_session_is_neither_taken_nor_listed_until_it_is_killed(journal):
    """The kernel gives the lock back."""
    file = left(journal, START)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        assert unfinished(file.parent) == []
        with pytest.raises(UnsavableRun, match="still running"):
            Journal(file)
        holder.kill()
    assert unfinished(file.parent) == [file]


def test_a_forked_child_does_not_hold_the_journal(journal):
    """A loader's worker that lives on must not make a dead session look alive."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(writing, b"!")
        time.sleep(60)
        os._exit(0)
    try:
        os.read(reading, 1)
        journal.close()
        assert unfinished(journal.file.parent) == [journal.file]
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_full_disk_leaves_whole_lines(journal, monkeypatch, call, number):
    """The event that could not be kept is said with the remedy; those before stay, and appending can go on."""
    journal.append(START)

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(UnsavableRun, match=f"{os.strerror(number)}.*--perfgate-resume.*perfgate recover"):
            journal.append(OUTCOME)
    journal.append({"event": "stopped"})
    found = read_journal(left(journal))
    assert (found.events, found.problems) == ((START, {"event": "stopped"}), ())


def test_a_disk_that_fills_up_within_a_line_leaves_whole_lines(journal, monkeypatch):
    """The part that was written is cut off again."""
    write = os.write
    room = [20, 5]

    def narrow(descriptor, data):
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[: room.pop(0)])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", narrow)
        with pytest.raises(UnsavableRun, match="No space left"):
            journal.append(OUTCOME)
    assert read_journal(left(journal)) == dataclasses.replace(read_journal(journal.file), events=(), problems=())


def test_a_torn_line_on_a_full_disk_is_an_error_that_tells(journal, monkeypatch):
    """Going on needs one byte."""
    file = left(journal, after=b"{")

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        with pytest.raises(UnsavableRun, match="No space left"):
            Journal(file)
    assert unfinished(file.parent) == [file]


def test_short_writes_are_completed(journal, monkeypatch):
    """A signal may cut one short."""
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
        journal.append(OUTCOME)
    assert read_journal(left(journal)).events == (OUTCOME,)


def test_a_value_that_json_does_not_have_is_never_written(journal):
    """NaN would make the line unreadable."""
    with pytest.raises(UnsavableRun, match="not JSON compliant"):
        journal.append({**OUTCOME, "reason": float("nan")})
    assert read_journal(left(journal)).events == ()


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    """With the remedy."""
    (tmp_path / "machine").write_text("", encoding="utf-8")
    with pytest.raises(UnsavableRun, match="cannot write the journal"):
        Journal.create(tmp_path / "machine", SESSION)


def test_a_link_in_the_journals_place_is_not_followed(tmp_path):
    """Whoever plants it must not make us write elsewhere."""
    (tmp_path / "a.journal").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsavableRun):
        Journal(tmp_path / "a.journal")
    assert not (tmp_path / "elsewhere").exists()


def test_a_removed_journal_is_gone(journal):
    """Its run is saved."""
    journal.remove()
    assert unfinished(journal.file.parent) == []
    assert not journal.file.exists()


@pytest.mark.parametrize("event", [None, [], "start", {"event": "fly"}, {"event": []}, {}])
def test_what_is_no_event_is_refused(event):
    """Naming where it came from."""
    with pytest.raises(UnreadableRun, match="a worker: no event of a journal"):
        check_event(event, "a worker")


def test_statistics_that_disagree_with_their_samples_are_refused():
    """As in a saved run."""
    stock = {"fullname": "a", "stats": {"min": 1.0, "max": 3.0, "median": 9.0, "data": [1.0, 2.0, 3.0]}}
    event = {"event": "record", "key": "k", "record": dataclasses.asdict(record()), "stock": stock}
    with pytest.raises(UnreadableRun, match="median"):
        parse_event(json.dumps(event), "a worker")


def test_without_locks_on_this_system_journals_are_written_all_the_same(tmp_path, monkeypatch):
    """Windows has no flock."""
    monkeypatch.setattr(exclusive, "fcntl", None)
    made = Journal.create(tmp_path, SESSION)
    assert unfinished(tmp_path) == [made.file]
    made.close()
