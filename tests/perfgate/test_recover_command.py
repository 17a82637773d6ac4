"""``perfgate recover``: runs out of the journals of killed sessions."""

import pytest

from perfgate import cli
from perfgate.results.journal import Journal, unfinished
from perfgate.results.store import read
from tests.conftest import MACHINE, replaced
from tests.perfgate.results.test_journal import SESSION
from tests.perfgate.test_keeping import A, B, killed


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with settings that name the folder of runs."""
    (tmp_path / "pyproject.toml").write_text('[tool.perfgate]\nresults = "saved"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def recovered(capsys):
    """Runs ``perfgate recover``: the exit code and what was printed."""

    def command(*words):
        code = cli.main(["recover", *map(str, words)])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return command


def test_nothing_to_recover_is_fine(recovered, here):
    """Before anything was saved, and with an empty folder."""
    assert recovered() == (0, "perfgate: no session was killed: nothing to recover\n")
    (here / "saved").mkdir()
    assert recovered()[0] == 0


def test_each_journal_of_each_machine_becomes_a_run(recovered, here):
    """Also of machines that are not this one: numbers are not lost for that."""
    killed(here / "saved" / MACHINE.slug, A)
    other = replaced(SESSION, machine=replaced(MACHINE, slug="other"), stamp="20270101T000000000Z")
    killed(here / "saved" / "other", B, session=other)
    code, printed = recovered()
    assert (code, printed.count("marked as interrupted")) == (0, 2)
    found = [read(file) for file in sorted((here / "saved").glob("*/*"))]
    assert {(each.machine.slug, each.records[0].id) for each in found} == {(MACHINE.slug, A), ("other", B)}


def test_another_folder_of_runs(recovered, here):
    """As elsewhere, ``--results``."""
    killed(here / "elsewhere" / MACHINE.slug, A)
    assert recovered("--results", "elsewhere")[0] == 0
    assert len(list((here / "elsewhere").glob("*/*.json"))) == 1


def test_a_folder_that_is_not_there_is_a_usage_error(recovered):
    """A typing mistake must not look like nothing to recover."""
    code, printed = recovered("--results", "nowhere")
    assert code == 2
    assert "no such folder" in printed


def test_a_living_session_is_left_alone(recovered, here):
    """Its journal is locked."""
    file = killed(here / "saved" / MACHINE.slug, A)
    living = Journal(file)
    code, printed = recovered()
    living.close()
    assert (code, "nothing to recover" in printed) == (0, True)
    assert unfinished(file.parent) == [file]


def test_one_that_cannot_be_read_is_named_stays_and_does_not_keep_the_others(recovered, here):
    """The exit code says that something is left."""
    folder = here / "saved" / MACHINE.slug
    killed(folder, A)
    broken = folder / "20270101T000000000Z-unknown-0000.journal"
    broken.write_text("garbage\n", encoding="utf-8")
    code, printed = recovered()
    assert code == 2
    assert broken.name in printed
    assert "1 benchmarks saved" in printed
    assert unfinished(folder) == [broken]


def test_a_folder_of_results_that_is_a_link_elsewhere_is_refused(recovered, here, tmp_path_factory):
    """Nothing is written or removed there."""
    outside = tmp_path_factory.mktemp("outside")
    file = killed(outside, A)
    (here / "saved").mkdir()
    (here / "saved" / MACHINE.slug).symlink_to(outside)
    code, printed = recovered()
    assert code == 2
    assert "link" in printed
    assert list(outside.iterdir()) == [file]
