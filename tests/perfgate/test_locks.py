"""One suite per device: who holds it is told, and a dead holder holds nothing."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from perfgate import locks
from perfgate.errors import DeviceBusy
from perfgate.results import exclusive

HOLDER = """
import sys
from perfgate.locks import hold
held = hold(sys.argv[1:])
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder of locks of this test alone."""
    monkeypatch.setenv("PERFGATE_LOCKS", str(tmp_path / "locks"))
    return tmp_path / "locks"


@pytest.fixture
def holder(tmp_path):
    """Starts a process that holds devices, in a folder of its own, and ends it."""
    started = []
    (tmp_path / "project").mkdir()

    def start(*devices):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, *devices],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=tmp_path / "project",
        )
        started.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for each in started:
        each.kill()
        each.communicate()


def is_free(*devices):
    """Whether they can be locked just now."""
    try:
        locks.hold(devices).close()
    except DeviceBusy:
        return False
    return True


def test_a_device_is_held_until_it_is_let_go(folder):
    """By this process as by another."""
    held = locks.hold(["core-0"])
    assert not is_free("core-0")
    assert is_free("core-1")
    held.close()
    assert is_free("core-0")


def test_who_holds_it_is_told(holder):
    """Process, what it does and since when, with the remedy."""
    process = holder("core-0")
    with pytest.raises(DeviceBusy) as caught:
        locks.hold(["core-0"])
    told = rf"core-0 .* process {process.pid} \('perfgate in project'\) since \d{{4}}-\d\d-\d\d \d\d:\d\d UTC.*--perfgate-wait"
    assert re.search(told, str(caught.value))


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b'{"pid": "x"}', b'{"pid": 1}', b"{" * 5000])
def test_a_holder_that_says_nonsense_is_another_process(folder, content):
    """Anybody can write to the file."""
    held = locks.hold(["core-0"])
    (folder / "core-0.lock").write_bytes(content)
    with pytest.raises(DeviceBusy, match="another process"):
        locks.hold(["core-0"])
    held.close()


def test_no_path_and_no_argument_is_told_to_other_users(folder, tmp_path, monkeypatch):
    """Both may hold what is nobody's business."""
    (tmp_path / "secret" / "project").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "secret" / "project")
    monkeypatch.setattr(sys, "argv", ["pytest", "--token=hunter2"])
    with locks.hold(["core-0"]):
        text = (folder / "core-0.lock").read_text(encoding="utf-8")
    assert "project" in text
    assert not re.search(r"secret|hunter2|/", text)
    assert set(json.loads(text)) == {"pid", "command", "since"}


def test_waiting_takes_over_when_the_holder_ends(holder, monkeypatch):
    """Whom for is said once."""
    process = holder("core-0")
    said = []
    monkeypatch.setattr(locks, "GLANCE_SECONDS", 0.05)

    def end(text):
        said.append(text)
        process.stdin.write(b"\n")
        process.stdin.flush()

    locks.hold(["core-0"], 100.0, end).close()
    assert len(said) == 1
    assert f"waiting for core-0, which is being measured on by process {process.pid}" in said[0]


def test_waiting_ends_with_the_holder_named(holder):
    """Not for ever."""
    process = holder("core-0")
    with pytest.raises(DeviceBusy, match=f"process {process.pid} "):
        locks.hold(["core-0"], 0.01)


def test_a_killed_holder_holds_nothing(holder):
    """The kernel gives the lock back: nothing is stale."""
    process = holder("core-0")
    process.kill()
    process.wait()
    assert is_free("core-0")


def test_a_forked_child_that_lives_on_holds_nothing():
    """Nor lets it go while the parent holds it."""
    held = locks.hold(["core-0"])
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(writing, b"!")
        time.sleep(60)
        os._exit(0)
    try:
        os.read(reading, 1)
        assert not is_free("core-0")
        held.close()
        assert is_free("core-0")
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(reading)
        os.close(writing)


def test_a_started_program_that_lives_on_holds_nothing():
    """Descriptors are closed in it."""
    held = locks.hold(["core-0"])
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False) as process:
        process.stdout.readline()
        held.close()
        assert is_free("core-0")
        process.communicate(b"\n")


def test_several_devices_are_held_all_or_none(holder):
    """Whoever fails lets go of what it had."""
    holder("core-1")
    assert not is_free("core-0", "core-1", "core-2")
    assert is_free("core-0", "core-2")
    held = locks.hold(["core-2", "core-0", "core-0"])
    assert not is_free("core-0")
    assert not is_free("core-2")
    held.close()


def test_a_link_in_a_locks_place_is_not_followed(folder, tmp_path):
    """Whoever plants it must not make us empty another file."""
    precious = tmp_path / "precious"
    precious.write_text("content", encoding="utf-8")
    folder.mkdir()
    (folder / "core-0.lock").symlink_to(precious)
    with pytest.raises(DeviceBusy, match="PERFGATE_LOCKS"):
        locks.hold(["core-0"])
    assert precious.read_text(encoding="utf-8") == "content"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_refused(folder, make):
    """And nobody waits for a pipe."""
    folder.mkdir()
    make(folder / "core-0.lock")
    with pytest.raises(DeviceBusy, match="PERFGATE_LOCKS"):
        locks.hold(["core-0"])


def test_a_folder_that_cannot_be_used_is_told(folder):
    """With the remedy."""
    folder.write_text("", encoding="utf-8")
    with pytest.raises(DeviceBusy, match="name a folder that can be written in PERFGATE_LOCKS"):
        locks.hold(["core-0"])


def test_a_device_of_any_name_is_a_file_in_the_folder(folder):
    """Slashes and dots lead nowhere."""
    with locks.hold(["gpu-MIG-GPU-1/2/../../x"]):
        (file,) = folder.iterdir()
        assert file.parent == folder
        assert file.is_file()


def test_lock_files_are_for_all_users(folder):
    """Whoever was first, and whatever their umask."""
    before = os.umask(0o077)
    try:
        locks.hold(["core-0"]).close()
    finally:
        os.umask(before)
    assert (folder / "core-0.lock").stat().st_mode & 0o777 == 0o666


def test_without_locks_on_this_system_suites_run_all_the_same(monkeypatch):
    """Windows has no flock."""
    monkeypatch.setattr(exclusive, "fcntl", None)
    with locks.hold(["core-0"]):
        assert is_free("core-0")
