"""Rows ST-01 to ST-13 but for locks, journal and git: saving on full and broken disks, killed, and many at once."""

import errno
import json
import os
import random
import secrets
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import perfgate
from perfgate.errors import UnsavableRun
from perfgate.results.baseline import find
from perfgate.results.store import NAME, Store, read
from tests.conftest import MACHINE, run, saved_runs, stock_of

FIXTURE = Path(__file__).parent.parent / "perfgate" / "results" / "schema-1.json"
RUN = run()
STOCK = stock_of(RUN)
CALLS = ("open", "write", "fsync", "link")
BROKEN = (errno.EIO, errno.EDQUOT, errno.EROFS, errno.EACCES)
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
KILLS, WRITERS, SAVES = 20, 6, 20
CHILD = """
import json, os, sys
from pathlib import Path
from perfgate.results.store import Store, read

fixture, root, count, special = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
run, stock = read(fixture), json.loads(fixture.read_text())
if special == "no links":
    def link(*_, **__):
        raise PermissionError(1, "Operation not permitted")
    os.link = link
if special.isdigit():
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(special), int(special)))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(count):
    try:
        print(Store(root).save(run, stock).name, flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
"""


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return Store(tmp_path / "results")


def child(root, count, special="-"):
    """A process that saves ``count`` runs once it is told to."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(FIXTURE), str(root), str(count), special],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(perfgate.__file__).parent.parent)},
    )
    assert process.stdout.readline() == "ready\n"
    return process


def start(*processes):
    """Let them save, all at once."""
    for each in processes:
        each.stdin.write("\n")
        each.stdin.flush()


def broken(monkeypatch, name, number, *, at=None):
    """Make a function of ``os`` fail at its ``at``-th call, or at each; the calls that were made."""
    calls, real = [], getattr(os, name)

    def fail(*arguments, **keywords):
        calls.append(arguments)
        if at is None or len(calls) == at:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **keywords)

    monkeypatch.setattr(os, name, fail)
    return calls


def contents(folder):
    """Every file in the folder, and what is in it."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def in_pieces(monkeypatch, size):
    """``os.write`` that writes no more than so many bytes at once, as it may."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, bytes(content[:size])))


@pytest.mark.parametrize("name", CALLS)
def test_st_01_a_full_disk_at_every_call(store, monkeypatch, name):
    """Old files are untouched, no new name, no temporary file; the message says what to free and how to go on."""
    folder = store.save(RUN, STOCK).parent
    before, failures = contents(folder), 0
    for at in range(1, 100):
        with monkeypatch.context() as patched:
            in_pieces(patched, 500)
            broken(patched, name, errno.ENOSPC, at=at)
            said = ""
            try:
                store.save(RUN, STOCK)
            except UnsavableRun as error:
                said = str(error)
        if not said:
            break
        assert "the results are kept in the journal: free 1 MB, then `perfgate recover`" in said
        failures += 1
        assert contents(folder) == before
    assert failures >= {"open": 2, "write": 3, "fsync": 2, "link": 1}[name]  # file and folder; three pieces


def test_st_01_megabytes_are_rounded_up(store, monkeypatch):
    """As many as will do."""
    store.probe(MACHINE.slug)
    broken(monkeypatch, "write", errno.ENOSPC)
    with pytest.raises(UnsavableRun, match="free 3 MB, then"):
        store.save(RUN, {**STOCK, "filling": "x" * 2_500_000})


@pytest.mark.parametrize("limit", [0, 1000])
def test_st_01_a_limit_of_the_system(store, limit):
    """The kernel itself refuses; part of the content was written."""
    folder = store.save(RUN, STOCK).parent
    before = contents(folder)
    process = child(store.root, 1, str(limit))
    said, _ = process.communicate("\n")
    assert said.startswith("UnsavableRun: ")
    assert "File too large" in said
    assert contents(folder) == before


@pytest.mark.parametrize("number", BROKEN, ids=errno.errorcode.get)
@pytest.mark.parametrize("name", CALLS)
def test_st_02_tried_at_the_start(store, monkeypatch, name, number):
    """All that a save needs is tried; nothing is left behind, and the folder is named."""
    store.probe(MACHINE.slug)
    with monkeypatch.context() as patched:
        broken(patched, name, number)
        with pytest.raises(UnsavableRun, match=rf"{MACHINE.slug}: {os.strerror(number)}: .*--perfgate-results"):
            store.probe(MACHINE.slug)
    assert not contents(store.root / MACHINE.slug)


def test_st_02_nothing_is_measured_first(project, monkeypatch):
    """An hour is not lost to a folder that cannot be written."""
    broken(monkeypatch, "link", errno.EROFS)
    result = project.runpytest("benches", "-k", "plain")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cannot save runs in *Read-only file system: make it writable*"])
    assert not saved_runs(project)


def test_st_02_a_good_folder_is_left_as_it_was(store):
    """Beside what was there."""
    folder = store.save(RUN, STOCK).parent
    before = contents(folder)
    store.probe(MACHINE.slug)
    assert contents(folder) == before


def test_st_03_killed_at_any_moment(tmp_path):
    """Every file that has a run's name is a whole run."""
    generator, machine = random.Random(0), read(FIXTURE).machine.slug
    store = Store(tmp_path / "results")
    for _ in range(KILLS):
        process = child(store.root, 1_000_000)
        start(process)
        process.stdout.readline()  # at least one was saved
        time.sleep(generator.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    files = list(store.files(machine))
    assert len(files) >= KILLS
    assert all(read(file).records for file in files)
    assert not find(store, read(FIXTURE).machine).problems


def test_st_04_the_order_that_survives_a_power_loss(store, monkeypatch):
    """Content, fsync of the file, its name, fsync of the folder."""
    store.probe(MACHINE.slug)
    steps = []

    def recorded(name, what):
        real = getattr(os, name)

        def call(*arguments, **keywords):
            steps.append(what(*arguments))
            return real(*arguments, **keywords)

        monkeypatch.setattr(os, name, call)

    recorded("write", lambda *_: "write")
    recorded("fsync", lambda each: "fsync folder" if stat.S_ISDIR(os.fstat(each).st_mode) else "fsync file")
    recorded("link", lambda *_: "link")
    store.save(RUN, STOCK)
    assert steps == ["write", "fsync file", "link", "fsync folder"]


@pytest.mark.parametrize("special", ["-", "no links"])
def test_st_05_six_writers_at_once(tmp_path, special):
    """All under one stamp and commit: each save has its file, and each file is whole."""
    writers = [child(tmp_path / "results", SAVES, special) for _ in range(WRITERS)]
    start(*writers)
    said = [line for each in writers for line in each.communicate()[0].splitlines()]
    files = list(Store(tmp_path / "results").files(MACHINE.slug))
    assert sorted(said) == sorted(file.name for file in files)
    assert len(files) == WRITERS * SAVES
    assert all(read(file).label == "before the tests of schema 2" for file in files)


@pytest.mark.parametrize("number", NO_LINKS, ids=errno.errorcode.get)
def test_st_08_without_hard_links(store, monkeypatch, number):
    """The run is saved all the same, and the probe does not mind."""
    broken(monkeypatch, "link", number)
    store.probe(MACHINE.slug)
    file = store.save(RUN, STOCK)
    assert read(file).records == RUN.records
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_st_08_without_hard_links_nothing_is_overwritten(store, monkeypatch):
    """A name that is taken stays as it is."""
    broken(monkeypatch, "link", errno.EPERM)
    names(monkeypatch, "aaaa")
    first = store.save(RUN, STOCK)
    before = contents(first.parent)
    names(monkeypatch, "aaaa", "bbbb")
    second = store.save(RUN, {**STOCK, "second": True})
    assert second.name == first.name.replace("-aaaa.", "-bbbb.")
    assert first.read_bytes() == before[first.name]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.get)
def test_st_08_without_hard_links_a_failure_leaves_nothing(store, monkeypatch, number):
    """Nor the empty file that took the name."""
    folder = store.save(RUN, STOCK).parent
    before = contents(folder)
    broken(monkeypatch, "link", errno.EPERM)
    broken(monkeypatch, "replace", number)
    with pytest.raises(UnsavableRun):
        store.save(RUN, STOCK)
    assert contents(folder) == before


def test_st_08_without_syncing_of_folders(store, monkeypatch):
    """Some file systems cannot do that, and need not."""
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store.probe(MACHINE.slug)
    assert read(store.save(RUN, STOCK)).records == RUN.records


def names(monkeypatch, *tokens):
    """The random parts of the next runs' names."""
    left, real = iter(tokens), secrets.token_hex
    monkeypatch.setattr(secrets, "token_hex", lambda size: next(left) if size == 2 else real(size))


def test_st_09_another_device_than_tmp(store, monkeypatch, tmp_path):
    """The unfinished file lies where it will be: nothing crosses a device."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    folder = store.root / MACHINE.slug
    folder.mkdir(parents=True)
    real, seen = os.open, []

    def opened(path, flags, *rest, **keywords):
        seen.append((Path(path), flags))
        return real(path, flags, *rest, **keywords)

    monkeypatch.setattr(os, "open", opened)
    store.save(RUN, STOCK)
    assert [path.parent for path, flags in seen if flags & os.O_CREAT] == [folder]


def test_st_10_left_over_temporary_files(store):
    """Readers pass them over, whatever is in them."""
    file = store.save(RUN, STOCK)
    (file.parent / ".tmp-0123456789abcdef").write_bytes(file.read_bytes())
    (file.parent / f".tmp-{file.name}").write_bytes(b"half a r")
    other = store.root / "other-machine"
    other.mkdir()
    (other / ".tmp-1").write_bytes(b"")
    assert list(store.files(MACHINE.slug)) == [file]
    assert store.machines() == [MACHINE.slug]
    found = find(store, MACHINE)
    assert (len(found.runs), found.problems) == (1, ())


def test_st_12_under_the_name_of_an_existing_run(store, monkeypatch):
    """Another name is found; the first file is never touched. A label is no name."""
    names(monkeypatch, "aaaa")
    first = store.save(RUN, STOCK)
    before = first.read_bytes()
    names(monkeypatch, "aaaa", "aaaa", "bbbb")
    second = store.save(run(label="../../etc/passwd"), {**STOCK, "second": True})
    assert [NAME.fullmatch(each.name) is not None for each in (first, second)] == [True, True]
    assert second == first.with_name(first.name.replace("-aaaa.", "-bbbb."))
    assert first.read_bytes() == before
    assert json.loads(second.read_bytes())["second"] is True


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o644), (0o027, 0o640)], ids=oct)
@pytest.mark.parametrize("links", [True, False])
def test_st_13_modes_follow_the_umask(store, monkeypatch, mask, mode, links):
    """A saved run is for reading: 0644 less what the user takes off. The umask itself is never touched."""
    if not links:
        broken(monkeypatch, "link", errno.EPERM)
    before = os.umask(mask)
    with monkeypatch.context() as patched:
        touched = broken(patched, "umask", errno.EPERM)
        file = store.save(RUN, STOCK)
    assert os.umask(before) == mask
    assert file.stat().st_mode & 0o777 == mode
    assert not touched
