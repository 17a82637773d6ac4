"""One suite per device: an exclusive lock for each GPU and each core that is measured on.

The kernel gives a lock back when its holder ends, however it does, so nothing can be stale. All users of a machine look
in the same folder: ``$PERFGATE_LOCKS`` or ``/tmp/perfgate-locks``. A service has no ``XDG_RUNTIME_DIR`` where a shell
has one, and would not see the shell's locks there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from perfgate.errors import DeviceBusy
from perfgate.results.exclusive import lock

FOLDER = "/tmp/perfgate-locks"  # noqa: S108 - shared by all users on purpose: sticky, and files are never followed
GLANCE_SECONDS = 1.0


def hold(devices: Iterable[str], wait_seconds: float = 0.0, say: Callable[[str], object] = lambda _: None) -> ExitStack:
    """Lock the devices, in one order for all; closing the result lets go of them.

    ``wait_seconds`` is how long to wait for somebody else to finish; ``say`` is told once whom for.

    Raises:
        DeviceBusy: where another suite measures on one of them, with who it is.
    """
    with ExitStack() as held:
        for device in sorted(set(devices)):
            held.enter_context(contextlib.closing(_Lock(device, wait_seconds, say)))
        return held.pop_all()


class _Lock:
    """One device's lock, held from the making to :meth:`close`."""

    def __init__(self, device: str, wait_seconds: float, say: Callable[[str], object]) -> None:
        self._descriptor = _open(_folder() / (re.sub(r"[^A-Za-z0-9._-]", "-", device) + ".lock"))
        try:
            self._wait(device, wait_seconds, say)
        except BaseException:
            self.close()
            raise
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.close)  # a loader's worker that lives on must not hold it
        with contextlib.suppress(OSError):  # the disk is full: others will not know who it is
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, _myself(), 0)

    def _wait(self, device: str, wait_seconds: float, say: Callable[[str], object]) -> None:
        deadline = time.monotonic() + wait_seconds
        told = False
        while not lock(self._descriptor):
            holder = _holder(self._descriptor)
            if time.monotonic() >= deadline:
                raise DeviceBusy(
                    f"{device} is being measured on by {holder}: two suites would disturb each other; wait for it with "
                    "--perfgate-wait SECONDS, in perfgate ab with --wait SECONDS"
                )
            if not told:
                say(f"waiting for {device}, which is being measured on by {holder}")
                told = True
            time.sleep(min(GLANCE_SECONDS, max(0.0, deadline - time.monotonic())))

    def close(self) -> None:
        """Let go; in a forked child, of the copy only."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _folder() -> Path:
    folder = Path(os.environ.get("PERFGATE_LOCKS") or FOLDER)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):  # another user's, who has opened it to all already
            if str(folder) == FOLDER:
                folder.chmod(0o1777)
    except OSError as error:
        raise _unusable(folder, error) from error
    return folder


def _open(file: Path) -> int:
    """The lock file, which any user may open; the kernel refuses to create what is there already and another's."""
    try:
        with contextlib.suppress(FileNotFoundError):
            return _regular(os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), file)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, 0o666)
    except OSError as error:
        raise _unusable(file, error) from error
    return descriptor


def _regular(descriptor: int, file: Path) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DeviceBusy(f"{file} is no regular file: remove it, or name another folder in PERFGATE_LOCKS")
    return descriptor


def _myself() -> bytes:
    """For those who wait: no arguments and no paths, which may hold what is nobody's business."""
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return json.dumps({"pid": os.getpid(), "command": f"perfgate in {Path.cwd().name}", "since": since}).encode()


def _holder(descriptor: int) -> str:
    try:
        told = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {int(told['pid'])} ({str(told['command'])[:80]!r}) since {str(told['since'])[:30]}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _unusable(path: Path, error: OSError) -> DeviceBusy:
    return DeviceBusy(
        f"cannot lock with {path}: {error.strerror}: devices cannot be kept for one suite; name a folder that can be "
        "written in PERFGATE_LOCKS"
    )
