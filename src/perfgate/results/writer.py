"""Writing that happens whole or not at all: temporary file in the same folder, fsync, a new name, fsync the folder."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfgate.errors import UnsavableRun

TEMPORARY = ".tmp-"
"""How names of unfinished files begin, which every reader passes over."""
MODE = 0o644  # the kernel takes the umask off: reading it here would set it for all threads for a moment
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
"""What ``link`` says where the file system has no hard links (FAT, some FUSE and network file systems)."""
NO_FOLDER_SYNC = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}
"""What ``fsync`` of a folder says where the file system cannot do that."""
FULL = {errno.ENOSPC, errno.EDQUOT}
MEGABYTE = 1_000_000


def write_new(folder: Path, stem: str, content: bytes) -> Path:
    """A new file ``<stem>-<random 4>.json`` that holds ``content``; no other file is ever touched.

    Raises:
        OSError: where it could not be written; nothing is left behind then.
    """
    with temporary_file(folder, content) as temporary:
        while True:
            target = folder / f"{stem}-{secrets.token_hex(2)}.json"
            try:
                publish(temporary, target)
            except FileExistsError:
                continue
            break
    try:
        sync_folder(folder)
    except OSError:  # what may not be there after a power loss must not look saved
        _remove(target)
        raise
    return target


def try_out(folder: Path) -> None:
    """Everything that :func:`write_new` will need, without leaving anything behind.

    Raises:
        OSError: where it would fail.
    """
    with temporary_file(folder, b"probe") as temporary:
        target = _new_temporary(folder)
        publish(temporary, target)
        try:
            sync_folder(folder)
        finally:
            _remove(target)


def replace_file(file: Path, content: bytes) -> Path:
    """Write ``content`` to ``file``, which has its old content or the new one at any moment.

    Raises:
        UnsavableRun: where it could not be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with temporary_file(file.parent, content) as temporary:
            temporary.replace(file)
        sync_folder(file.parent)
    except OSError as error:
        raise unsavable(file.parent, error) from error
    return file


@contextmanager
def temporary_file(folder: Path, content: bytes) -> Iterator[Path]:
    """``content`` on disk in a file that is removed in the end, unless it was moved.

    Raises:
        OSError: where it could not be written.
    """
    path = _new_temporary(folder)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
    try:
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        yield path
    finally:
        _remove(path)


def publish(temporary: Path, target: Path) -> None:
    """Give a finished file its name, which must be new.

    Where there are no hard links, the name is taken first with an empty file of our own, which is then replaced: two
    writers cannot both take it.

    Raises:
        FileExistsError: where the name is taken; that file stays as it is.
        OSError: where it could not be done; the name is free then.
    """
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE))
        try:
            temporary.replace(target)
        except OSError:
            _remove(target)
            raise


def unsavable(folder: Path, error: OSError, *, size_bytes: int | None = None) -> UnsavableRun:
    """The error with its remedy; ``size_bytes`` of a whole run, whose results are in the journal then."""
    if error.errno in FULL:
        remedy = "free some space" if size_bytes is None else f"free {math.ceil(size_bytes / MEGABYTE)} MB"
    elif error.errno == errno.EFBIG:
        remedy = "allow larger files (ulimit -f)"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = "make it writable"
    else:
        remedy = "mend the disk"
    if size_bytes is not None:
        remedy = f"the results are kept in the journal: {remedy}, then `perfgate recover`"
    return UnsavableRun(
        f"cannot save runs in {folder}: {error.strerror or error}: {remedy}, or name another folder with "
        "--perfgate-results"
    )


def _new_temporary(folder: Path) -> Path:
    return folder / f"{TEMPORARY}{secrets.token_hex(8)}"


def _remove(path: Path) -> None:
    """Remove what may be there; the error that led here says more than one of removing."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make sure that new names in ``folder`` survive a loss of power.

    Raises:
        OSError: where the disk is broken; a file system that cannot do this is none.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_FOLDER_SYNC:
            raise
    finally:
        os.close(descriptor)
