"""From the first benchmark to the saved run, and from a journal to the rest of its run."""

import pytest

from perfgate.errors import SettingsError, UnsavableRun
from perfgate.harvest import Harvest
from perfgate.keeping import Keeping, digest_of, recover
from perfgate.results.journal import read_journal, unfinished
from perfgate.results.store import Store, read
from perfgate.verdict.verdicts import unjudged
from tests.conftest import MACHINE, PROCESS, record, replaced, run, stock_of
from tests.perfgate.results.test_journal import SESSION

A, B = "benches/test_a.py::test_a", "benches/test_a.py::test_b"
START = {"event": "start", "id": A}


@pytest.fixture
def folder(tmp_path):
    """The folder of a machine."""
    return tmp_path / MACHINE.slug


def stock(name=A):
    """pytest-benchmark's document of a record."""
    return stock_of(run(record(name)))["benchmarks"][0]


def killed(folder, *names, session=SESSION):
    """The journal of a session that had measured ``names`` when it was killed in the middle of another one."""
    keeping = Keeping(folder, lambda: session)
    harvest = Harvest(sink=keeping.keep)
    for name in names:
        harvest.start(name)
        harvest.measured_by(PROCESS)
        harvest.take(record(name), stock(name))
    harvest.start("killed")
    keeping.close()
    return unfinished(folder)[0]


def test_a_session_that_keeps_nothing_leaves_nothing(folder):
    """No file before the first event."""
    keeping = Keeping(folder, lambda: SESSION)
    keeping.finish(None)
    keeping.close()
    assert not folder.exists()


def test_the_journal_is_announced_once_there_is_one(folder):
    """Whoever asks early or late."""
    said = []
    keeping = Keeping(folder, lambda: SESSION)
    keeping.announce_to(said.append)
    assert said == []
    keeping.keep(START)
    (file,) = folder.iterdir()
    keeping.announce_to(said.append)
    assert said == [file, file]
    keeping.close()


def test_a_finished_session_leaves_no_journal(folder, tmp_path):
    """Its run is saved."""
    keeping = Keeping(folder, lambda: SESSION)
    keeping.keep(START)
    keeping.finish(tmp_path / "run.json")
    assert list(folder.iterdir()) == []


def test_resuming_hears_what_was_measured_and_goes_on_in_the_same_journal(folder):
    """One run, one file."""
    file = killed(folder, A)
    keeping, harvest = Keeping(folder, lambda: SESSION), Harvest()
    harvest.sink = keeping.keep
    assert keeping.resume(harvest).file == file
    assert [each.id for each in harvest.records] == [A]
    assert harvest.starts == {"killed": 1}
    harvest.start(B)
    assert list(folder.iterdir()) == [file]
    assert read_journal(file).events[-1] == {"event": "start", "id": B}
    keeping.close()


def test_resuming_takes_the_newest(folder):
    """Older ones are for perfgate recover."""
    old = killed(folder, A)
    new = killed(folder, B, session=replaced(SESSION, stamp="20270101T000000000Z"))
    keeping = Keeping(folder, lambda: SESSION)
    assert keeping.resume(Harvest()).file == new
    keeping.close()
    assert old.is_file()


def test_nothing_to_resume_is_a_usage_error(folder):
    """With the remedy."""
    with pytest.raises(SettingsError, match=r"no unfinished run of this machine.*leave the option out"):
        Keeping(folder, lambda: SESSION).resume(Harvest())


@pytest.mark.parametrize(
    "now",
    [
        replaced(SESSION, code="another"),
        replaced(SESSION, machine=replaced(MACHINE, hard={"cpu": "another"})),
    ],
    ids=["code", "machine"],
)
def test_a_run_has_one_code_and_one_machine(folder, now):
    """Resuming elsewhere is refused with both remedies, and the journal stays as it was."""
    file = killed(folder, A)
    before = file.read_bytes()
    with pytest.raises(SettingsError, match=r"of other code.*go back to it, or.*perfgate recover"):
        Keeping(folder, lambda: now).resume(Harvest())
    assert file.read_bytes() == before


def test_other_software_on_the_same_machine_is_no_other_machine(folder):
    """Soft fields are told and not decided by."""
    killed(folder, A)
    now = replaced(SESSION, machine=replaced(MACHINE, soft={"torch": "3"}))
    keeping = Keeping(folder, lambda: now)
    keeping.resume(Harvest())
    keeping.close()


def interrupted(folder, content="{}"):
    """A session that was interrupted: it saved what it had, and its journal stays."""
    keeping = Keeping(folder, lambda: SESSION)
    keeping.keep(START)
    saved = folder / "interrupted.json"
    saved.write_text(content, encoding="utf-8")
    keeping.interrupt(saved)
    keeping.close()
    return saved


@pytest.mark.parametrize("changed", [False, True])
def test_the_interrupted_run_is_removed_once_all_of_it_is_saved_unless_somebody_changed_it(folder, changed):
    """It would be there twice; what somebody edited is theirs."""
    saved = interrupted(folder)
    if changed:
        saved.write_text("{ }", encoding="utf-8")
    keeping = Keeping(folder, lambda: SESSION)
    keeping.resume(Harvest())
    complete = folder / "complete.json"
    complete.write_text("{}", encoding="utf-8")
    keeping.finish(complete)
    assert set(folder.iterdir()) == ({complete, saved} if changed else {complete})


def test_the_interrupted_run_stays_where_nothing_else_was_saved(folder):
    """Its numbers are nowhere else."""
    saved = interrupted(folder)
    keeping = Keeping(folder, lambda: SESSION)
    keeping.resume(Harvest())
    keeping.finish(None)
    assert saved.is_file()


def test_only_files_of_the_machine_are_ever_removed(folder, tmp_path):
    """Whatever a journal says."""
    outside = tmp_path / "precious.json"
    outside.write_text("{}", encoding="utf-8")
    keeping = Keeping(folder, lambda: SESSION)
    keeping.keep({"event": "saved", "file": "../precious.json", "digest": digest_of(outside)})
    keeping.close()
    keeping = Keeping(folder, lambda: SESSION)
    keeping.resume(Harvest())
    keeping.finish(tmp_path / "complete.json")
    assert outside.is_file()


def test_recovering_saves_an_interrupted_run(folder, tmp_path):
    """With the stamp, the commit and the label of the session that was killed; the journal is gone."""
    said = recover(Store(tmp_path), killed(folder, A, B))
    (file,) = folder.iterdir()
    found = read(file)
    assert f"2 benchmarks saved as {file.name}, marked as interrupted" in said
    assert found.status == "interrupted"
    assert (found.stamp, found.commit, found.label) == (SESSION.stamp, SESSION.commit, SESSION.label)
    assert found.records == (record(A), record(B))
    assert found.processes == (PROCESS,)


def test_recovering_where_nothing_was_measured_only_removes(folder, tmp_path):
    """There is no run to make."""
    assert "nothing had been measured; removed" in recover(Store(tmp_path), killed(folder))
    assert list(folder.iterdir()) == []


def test_recovering_what_was_saved_already_saves_nothing_twice(folder, tmp_path):
    """An interrupted session saved its run itself."""
    keeping = Keeping(folder, lambda: SESSION)
    harvest = Harvest(sink=keeping.keep)
    harvest.measured_by(PROCESS)
    harvest.take(record(A), stock())
    saved = Store(tmp_path).save(run(), stock_of(run()))
    keeping.interrupt(saved)
    keeping.close()
    assert f"was saved as {saved.name}; removed" in recover(Store(tmp_path), unfinished(folder)[0])
    assert list(folder.iterdir()) == [saved]


def test_recovering_saves_where_the_saved_file_is_gone_or_more_was_measured_since(folder, tmp_path):
    """The journal is the truth."""
    saved = interrupted(folder)
    saved.unlink()
    keeping = Keeping(folder, lambda: SESSION)
    harvest = Harvest(sink=keeping.keep)
    keeping.resume(harvest)
    harvest.measured_by(PROCESS)
    harvest.take(record(A), stock())
    keeping.close()
    assert "1 benchmarks saved" in recover(Store(tmp_path), unfinished(folder)[0])


def test_a_journal_stays_where_its_run_cannot_be_saved(folder, tmp_path, monkeypatch):
    """Nothing is lost to a full disk."""
    file = killed(folder, A)

    def full(*_):
        raise UnsavableRun("full")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", full)
        with pytest.raises(UnsavableRun):
            recover(Store(tmp_path), file)
    assert unfinished(folder) == [file]


def test_recovering_tells_of_lines_that_were_torn(folder, tmp_path):
    """All whole lines are used."""
    file = killed(folder, A)
    with file.open("ab") as stream:
        stream.write(b'{"event":"rec')
    said = recover(Store(tmp_path), file)
    assert "1 benchmarks saved" in said
    assert "half written when the session ended" in said


def test_outcomes_without_a_number_are_no_run(folder, tmp_path):
    """A journal of hangs alone."""
    keeping = Keeping(folder, lambda: SESSION)
    Harvest(sink=keeping.keep).give_up(unjudged(A, "hung", "because"))
    keeping.close()
    assert "nothing had been measured" in recover(Store(tmp_path), unfinished(folder)[0])
