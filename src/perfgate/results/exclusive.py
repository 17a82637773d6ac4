"""An exclusive lock on an open file, which the kernel gives back when its holder ends, however it does."""

from __future__ import annotations

try:
    import fcntl
except ImportError:  # Windows has no flock: there nobody can tell who holds what
    fcntl = None  # type: ignore[assignment]


def lock(descriptor: int) -> bool:
    """Whether the open file is ours now; also ``True`` where the system or the file system has no locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
