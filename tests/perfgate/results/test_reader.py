"""The one reader of files from outside: what it refuses has a name of its own, a place and a remedy."""

import os
import pwd
import socket

import pytest

from perfgate import errors
from perfgate.errors import (
    BadNumber,
    EmptyFile,
    FileTooLarge,
    MissingFile,
    NoPermission,
    NotAFile,
    NotText,
    RepeatedKey,
    SettingsError,
    UnreadableRun,
)
from perfgate.results.reader import MOST_DIGITS, loads, read_bytes, read_text


@pytest.fixture
def file(tmp_path):
    """A path for a file."""
    return tmp_path / "run.json"


def test_each_kind_has_a_code_of_its_own():
    """Machines tell them apart, and the tree in the docstring has them all."""
    kinds = {UnreadableRun, *UnreadableRun.__subclasses__(), *errors.NotJson.__subclasses__()}
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert all(f"── {kind.__name__} " in errors.__doc__ for kind in kinds)


def test_a_file_that_is_not_there(file):
    """Is told from one that is wrong."""
    with pytest.raises(MissingFile, match=r"run\.json: No such file"):
        read_text(file)


@pytest.mark.parametrize("content", [b"", b" \n\t\n", b"\n"])
def test_an_empty_file(file, content):
    """With its size."""
    file.write_bytes(content)
    with pytest.raises(EmptyFile, match=rf"the file is empty \({len(content)} bytes\)"):
        read_text(file)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"a": 1}'.encode("utf-16"), "UTF-16"),
        (b"\xfe\xff" + '{"a": 1}'.encode("utf-16-be"), "UTF-16 (big-endian)"),
        ('{"a": 1}'.encode("utf-32"), "UTF-32 (little-endian)"),
        ('{"a": 1}'.encode("utf-16-le"), "bytes of value 0"),
        ('{"ä": 1}'.encode("latin-1"), "invalid continuation byte at byte 2"),
        (b"\x1f\x8b\x08\x00", "a gzip archive"),
        (b"PK\x03\x04rest", "a ZIP archive"),
        (b"\x80\x04K\x01.", "a pickle"),
    ],
)
def test_what_is_no_utf_8_is_named(file, content, found):
    """So that nobody has to guess what wrote it."""
    file.write_bytes(content)
    with pytest.raises(NotText) as raised:
        read_text(file)
    assert found in str(raised.value)


def test_the_size_limit_can_be_set(file, monkeypatch):
    """The message says with what; a file of exactly that size is read."""
    file.write_bytes(b"x" * 101)
    monkeypatch.setenv("PERFGATE_SIZE_LIMIT", "100")
    with pytest.raises(FileTooLarge, match=r"101 bytes, more than the limit of 100: .*PERFGATE_SIZE_LIMIT=101"):
        read_bytes(file)
    monkeypatch.setenv("PERFGATE_SIZE_LIMIT", "101")
    assert read_bytes(file) == b"x" * 101


def test_a_file_that_grows_while_it_is_read(file, monkeypatch):
    """Its size was looked at before."""
    file.write_bytes(b"x" * 101)
    monkeypatch.setenv("PERFGATE_SIZE_LIMIT", "100")
    real, size = os.fstat, 6  # the place of the size

    def shrunk(descriptor):
        found = list(real(descriptor)[:10])
        return os.stat_result([*found[:size], 7, *found[size + 1 :]])

    monkeypatch.setattr(os, "fstat", shrunk)
    with pytest.raises(FileTooLarge):
        read_bytes(file)


@pytest.mark.parametrize("wish", ["much", "-1", "0", "1e6", "64 MB", "9" * 5000, "٣"])
def test_a_size_limit_that_is_none(file, monkeypatch, wish):
    """It is not guessed at."""
    monkeypatch.setenv("PERFGATE_SIZE_LIMIT", wish)
    with pytest.raises(SettingsError, match="PERFGATE_SIZE_LIMIT"):
        read_bytes(file)


def test_a_file_that_may_not_be_read(file, monkeypatch):
    """Whose it is, its mode, and who asks."""
    file.write_bytes(b"{}")
    file.chmod(0)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # root may read everything
    me = pwd.getpwuid(os.geteuid()).pw_name
    with pytest.raises(NoPermission, match=rf"it belongs to {me} with mode 0000, and this is {me}"):
        read_bytes(file)


def test_a_file_in_a_folder_that_may_not_be_entered(tmp_path, monkeypatch):
    """The folder is named: the file itself cannot be looked at."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NoPermission, match=r"closed belongs to \w+ with mode 0700"):
        read_bytes(folder / "run.json")


def test_an_error_while_reading(file, monkeypatch):
    """A broken disk is no traceback."""
    file.write_bytes(b"{}")

    def fail(descriptor):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched, pytest.raises(UnreadableRun, match="Input/output error while reading"):
        patched.setattr(os, "fstat", fail)
        read_bytes(file)


def test_a_socket(tmp_path, monkeypatch):
    """It cannot even be opened."""
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("run.json")
        with pytest.raises(NotAFile, match="socket"):
            read_bytes(tmp_path / "run.json")


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_a_name_that_no_file_can_have(tmp_path, name):
    """From a command line, say."""
    with pytest.raises(UnreadableRun, match="is the name right"):
        read_bytes(tmp_path / name)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, "9" * 21])
def test_a_number_that_is_none_is_found(number):
    """With its place, however deep."""
    with pytest.raises(BadNumber, match=r"run\.json: .*field a\.b\[1\]\.c: "):
        loads(f'{{"x": [1], "a": {{"b": [0, {{"c": {number}}}]}}}}', "run.json")


def test_a_long_count_is_read():
    """All that 64 bits can hold."""
    assert loads(f"[{2**64 - 1}]", "") == [2**64 - 1]
    assert len(str(-(2**63))) == MOST_DIGITS
    assert loads(f"[{-(2**63)}]", "") == [-(2**63)]


def test_a_repeated_key_is_named():
    """However deep."""
    with pytest.raises(RepeatedKey, match="'b' appears twice"):
        loads('{"a": [{"b": 1, "c": 2, "b": 1}]}', "run.json")
