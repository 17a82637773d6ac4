"""The store: nothing is overwritten, nothing is half written, nothing strange is read."""

import errno
import multiprocessing
import os

import pytest

from perfgate.errors import ResultsError, StrayLink, UnreadableRun, UnsavableRun
from perfgate.results import store as stores
from perfgate.results.store import Store, read
from tests.conftest import MACHINE, record, replaced, run, stock_of, times

RUN = run()
STOCK = stock_of(RUN)


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return Store(tmp_path / "results")


def test_saved_and_read(store):
    """Under the machine, named by time and commit."""
    file = store.save(RUN, STOCK)
    assert file.parent.name == MACHINE.slug
    assert file.name.startswith("20260101T000000000Z-aaaaaaaaaaaa-")
    loaded = read(file)
    assert replaced(loaded, source="", digest="") == RUN
    assert len(loaded.digest) == 64


def test_newest_first_by_name_without_opening(store):
    """Any other file in the folder is passed over."""
    for hour in (1, 3, 2):
        store.save(replaced(RUN, stamp=f"2026010{hour}T000000000Z"), STOCK)
    (store.root / MACHINE.slug / "notes.json").write_text("x", encoding="utf-8")
    (store.root / MACHINE.slug / ".tmp-1").write_text("x", encoding="utf-8")
    assert [file.name[:8] for file in store.files(MACHINE.slug)] == ["20260103", "20260102", "20260101"]
    assert store.machines() == [MACHINE.slug]


def _save_many(root, barrier):
    barrier.wait()
    for _ in range(5):
        Store(root).save(RUN, STOCK)


def test_many_writers_lose_nothing(store):
    """All under the same stamp and commit."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    writers = [context.Process(target=_save_many, args=(store.root, barrier)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    files = list(store.files(MACHINE.slug))
    assert len(files) == 20
    assert all(read(file).records == RUN.records for file in files)


@pytest.mark.parametrize("call", ["fsync", "link"])
@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "free 1 MB, then `perfgate recover`"), (errno.EROFS, "make it writable")]
)
def test_a_failed_write_leaves_nothing_behind(store, monkeypatch, call, number, said):
    """Old files stay, no temporary file remains, and the message has a remedy."""
    old = store.save(RUN, STOCK)

    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(stores.os, call, fail)
    with pytest.raises(UnsavableRun, match=said):
        store.save(RUN, STOCK)
    monkeypatch.undo()
    assert os.listdir(old.parent) == [old.name]
    assert read(old)


def test_a_value_that_is_not_finite_is_not_saved(store):
    """And the message says so."""
    with pytest.raises(UnsavableRun, match="no finite number"):
        store.save(run(record("a", times(float("inf")))), {})


@pytest.mark.parametrize("slug", ["../x", "/etc", "", ".hidden", "a/b", "x" * 65])
def test_a_machine_cannot_lead_out_of_the_folder(store, slug):
    """Names are an allow-list."""
    with pytest.raises(ResultsError, match="cannot name a machine's folder"):
        store.save(replaced(RUN, machine=replaced(MACHINE, slug=slug)), STOCK)


@pytest.mark.parametrize("planted", [".", MACHINE.slug])
def test_a_link_that_leads_elsewhere_is_refused(store, tmp_path, planted):
    """By whoever reads and whoever writes, with its target."""
    target = tmp_path / "elsewhere" / "deeper"
    target.mkdir(parents=True)
    link = store.root / planted if planted != "." else tmp_path / "project" / "results"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    found = store if planted != "." else Store(link)
    for use in (lambda: found.save(RUN, STOCK), lambda: found.probe(MACHINE.slug), lambda: found.files(MACHINE.slug)):
        with pytest.raises(StrayLink, match=f"{link} is a link to {target}"):
            use()
    assert not os.listdir(target)


def test_a_link_that_stays_inside_is_followed(store):
    """A machine that was renamed, say."""
    file = store.save(RUN, STOCK)
    (store.root / "old-name").symlink_to(MACHINE.slug)
    assert [each.name for each in store.files("old-name")] == [file.name]


def test_links_in_a_circle_are_refused(store):
    """They lead nowhere."""
    store.root.mkdir()
    (store.root / MACHINE.slug).symlink_to(MACHINE.slug)
    with pytest.raises(StrayLink, match="is a link"):
        store.files(MACHINE.slug)


def test_a_file_where_the_folder_belongs_is_refused(store):
    """It does not look like a folder without runs."""
    store.root.write_text("", encoding="utf-8")
    with pytest.raises(ResultsError, match="a folder of runs is expected"):
        store.machines()
    with pytest.raises(ResultsError, match="a folder of runs is expected"):
        store.files(MACHINE.slug)


@pytest.mark.parametrize("extra", [{(1, 2): 3}, {"a": float("nan")}])
def test_what_json_cannot_hold_is_no_traceback(store, extra):
    """Somebody's extra_info, after an hour of measuring."""
    with pytest.raises(UnsavableRun, match="extra_info"):
        store.save(RUN, {**STOCK, "extra_info": extra})


def test_only_regular_files_are_read(tmp_path):
    """A FIFO would block, a link may lead anywhere."""
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "fifo.json")
    (tmp_path / "target").write_text("{}", encoding="utf-8")
    (tmp_path / "link.json").symlink_to(tmp_path / "target")
    for name, said in (
        ("folder", "not a regular"),
        ("fifo", "not a regular"),
        ("link", "is a link"),
        ("no", "No such"),
    ):
        with pytest.raises(UnreadableRun, match=said):
            read(tmp_path / f"{name}.json")


def test_a_huge_file_is_not_read(tmp_path):
    """Its size is looked at first; this one is sparse."""
    with (tmp_path / "huge.json").open("wb") as stream:
        stream.truncate(2 * 2**30)
    with pytest.raises(UnreadableRun, match="more than the limit"):
        read(tmp_path / "huge.json")


def test_a_byte_order_mark_is_accepted(store):
    """Some editors add one."""
    file = store.save(RUN, STOCK)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read(file).records == RUN.records


def test_the_probe_leaves_no_file(store):
    """It only tries."""
    store.probe(MACHINE.slug)
    assert not os.listdir(store.root / MACHINE.slug)


def test_file_modes_follow_the_umask(store):
    """So that a group can share the folder."""
    before = os.umask(0o027)
    try:
        assert store.save(RUN, STOCK).stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)
