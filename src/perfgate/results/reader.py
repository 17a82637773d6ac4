"""The one reader of files that come from outside: bytes that are few enough, then UTF-8 text, then strict JSON."""

from __future__ import annotations

import codecs
import errno
import json
import math
import os
import stat
from pathlib import Path
from typing import Any

from perfgate.errors import (
    BadNumber,
    EmptyFile,
    FileTooLarge,
    LeftByGit,
    MissingFile,
    NestedTooDeeply,
    NoPermission,
    NotAFile,
    NotJson,
    NotText,
    RepeatedKey,
    SettingsError,
    UnreadableRun,
)

SIZE_LIMIT_BYTES = 64 * 2**20  # a run of 60 benchmarks has about 0.1 MB
SIZE_LIMIT_VARIABLE = "PERFGATE_SIZE_LIMIT"
MOST_DIGITS = 20  # of an integer: a 64-bit count has no more, and longer ones are slow to convert or overflow a float
SIGNATURES = {
    codecs.BOM_UTF32_LE: "UTF-32 (little-endian)",  # before UTF-16: its mark begins with the same two bytes
    codecs.BOM_UTF32_BE: "UTF-32 (big-endian)",
    codecs.BOM_UTF16_LE: "UTF-16 (little-endian)",
    codecs.BOM_UTF16_BE: "UTF-16 (big-endian)",
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a ZIP archive, as torch.save writes",
    b"\x80": "a pickle",
}
"""How files begin that are no UTF-8, which is never unpacked or unpickled but only named."""


def size_limit() -> int:
    """Bytes that a file from outside may have; ``PERFGATE_SIZE_LIMIT`` sets it.

    Raises:
        SettingsError: where the variable is no number above 0.
    """
    wish = os.environ.get(SIZE_LIMIT_VARIABLE, "")
    if not wish:
        return SIZE_LIMIT_BYTES
    if not (wish.isascii() and wish.isdigit() and len(wish) < MOST_DIGITS and int(wish) > 0):
        raise SettingsError(f"{SIZE_LIMIT_VARIABLE}={wish!r:.40}: a number of bytes is expected, such as 67108864")
    return int(wish)


def read_text(file: Path) -> str:
    """The text of a file that comes from outside.

    Raises:
        UnreadableRun: one of the kinds below it, where it is no regular file, too large, empty, or not UTF-8.
        SettingsError: where ``PERFGATE_SIZE_LIMIT`` is no number.
    """
    return decode(read_bytes(file), str(file))


def read_bytes(file: Path) -> bytes:
    """The content of a file that comes from outside; its size is looked at before it is read.

    Raises:
        UnreadableRun: one of the kinds below it, where it is no regular file, or too large.
        SettingsError: where ``PERFGATE_SIZE_LIMIT`` is no number.
    """
    limit = size_limit()
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO must not block
    except (OSError, ValueError) as error:
        raise _unopened(file, error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotAFile(f"{file}: not a regular file: only those are read; move it away")
        if status.st_size > limit:
            raise _too_large(file, status.st_size, limit)
        with open(descriptor, "rb", closefd=False) as stream:
            content = stream.read(limit + 1)  # it may grow while it is read
    except OSError as error:
        raise UnreadableRun(f"{file}: {error.strerror} while reading: copy it from where it is whole") from error
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise _too_large(file, len(content), limit)
    return content


def decode(content: bytes, source: str) -> str:
    """UTF-8 as text, without the mark that some editors put in front.

    Raises:
        EmptyFile: where there is nothing but white space.
        NotText: naming what was found instead.
    """
    if not content.strip():
        raise EmptyFile(f"{source}: the file is empty ({len(content)} bytes): remove it, or restore it from git")
    found = next((name for mark, name in SIGNATURES.items() if content.startswith(mark)), None)
    if found is None and b"\0" in content:
        found = "bytes of value 0 (UTF-16 without a mark?)"
    if found:
        raise NotText(f"{source}: not UTF-8 text: found {found}; only UTF-8 is read")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotText(
            f"{source}: not UTF-8 text: {error.reason} at byte {error.start}; save it as UTF-8, or restore it from git"
        ) from error


def refuse_git_leftovers(text: str, source: str) -> None:
    """Recognise what git leaves in a file's place.

    Raises:
        LeftByGit: with the command that helps.
    """
    if text.startswith("version https://git-lfs"):
        raise LeftByGit(f"{source}: a pointer that git-lfs left there, not the file: run git lfs pull")
    if text.startswith("<<<<<<<") or "\n<<<<<<< " in text:
        raise LeftByGit(f"{source}: an unresolved merge that git left there: resolve the merge, or take one side whole")


def loads(text: str, source: str) -> Any:
    """Strict JSON: no key twice, no NaN, no infinities (``1e999`` neither), no endless integers.

    Raises:
        NotJson: for anything else, naming the field where it is a number; ``LeftByGit`` where git left it.
    """
    refuse_git_leftovers(text, source)
    bad: list[_Refused] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise RepeatedKey(f"{source}: not valid JSON: the key {twice!r:.100} appears twice in one object: keep one")
        return result

    def refuse(why: str) -> _Refused:
        bad.append(_Refused(why))
        return bad[-1]

    def real(digits: str) -> float | _Refused:
        value = float(digits)
        return value if math.isfinite(value) else refuse(f"{digits:.40} is not finite")

    def integer(digits: str) -> int | _Refused:
        return int(digits) if len(digits) <= MOST_DIGITS else refuse(f"an integer of {len(digits):,} digits")

    def constant(word: str) -> _Refused:
        return refuse(f"{word} is not a number that JSON has")

    try:
        document = json.loads(
            text, object_pairs_hook=unique, parse_constant=constant, parse_float=real, parse_int=integer
        )
    except RecursionError as error:
        raise NestedTooDeeply(f"{source}: nested too deeply: no run is; restore it from git") from error
    except ValueError as error:
        raise NotJson(f"{source}: not valid JSON: {error}: was it cut off? restore it from git") from error
    if bad:
        raise BadNumber(f"{source}: not valid JSON: field {_path_of(bad[0], document)}: {bad[0].why}")
    return document


class _Refused:
    """What stands in the document for a number that is none, until its place is known."""

    def __init__(self, why: str) -> None:
        self.why = why


def _path_of(wanted: _Refused, document: Any) -> str:
    """Where in the document it is, such as ``records[0].seconds``."""
    rest: list[tuple[str, Any]] = [("", document)]
    while rest:
        path, value = rest.pop()
        if value is wanted:
            return path.removeprefix(".")
        if isinstance(value, dict):
            rest += [(f"{path}.{key:.100}", each) for key, each in value.items()]
        elif isinstance(value, list):
            rest += [(f"{path}[{number}]", each) for number, each in enumerate(value)]
    return "(unknown)"


def _too_large(file: Path, size: int, limit: int) -> FileTooLarge:
    return FileTooLarge(
        f"{file}: {size:,} bytes, more than the limit of {limit:,}: where it is meant to be read, set "
        f"{SIZE_LIMIT_VARIABLE}={size}"
    )


def _unopened(file: Path, error: OSError | ValueError) -> UnreadableRun:
    """Why a file could not even be opened."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EACCES, errno.EPERM):
        return no_permission(file)
    if number == errno.ENOENT:
        return MissingFile(f"{file}: No such file")
    if number == errno.ELOOP:
        return NotAFile(f"{file}: is a link: only regular files are read; put the file itself there")
    if number == errno.ENXIO:
        return NotAFile(f"{file}: not a regular file but a socket or a device: move it away")
    return UnreadableRun(f"{file}: {error.strerror if isinstance(error, OSError) else error}: is the name right?")


def no_permission(path: Path) -> NoPermission:
    """That ``path`` may not be read, with owner and mode of what refuses: itself, or the folder that hides it."""
    for each in (path, *path.parents):
        try:
            status = each.lstat()
        except OSError:
            continue
        mode = stat.S_IMODE(status.st_mode)
        what = "it" if each == path else str(each)
        return NoPermission(
            f"{path}: permission denied: {what} belongs to {_owner(status.st_uid)} with mode {mode:04o}, and this is "
            f"{_owner(os.geteuid())}: chmod u+r, or run as its owner"
        )
    return NoPermission(f"{path}: permission denied")


def _owner(user: int) -> str:
    """A user's name, or the number where it has none."""
    import pwd  # absent on Windows, where this is never reached

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
