"""What a machine does to a benchmark: memory, workers, devices, descriptors, disks. Recognised by name and text.

Neither torch nor NVML is imported: names of types, error numbers and texts are theirs. A benchmark's own failure is
not recognised; a fault is, also where another exception was raised while it was handled.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfgate import remedies
from perfgate.raised import Seen, chain_of

SPEAKING = {"RuntimeError", "OSError", "NVMLError"}
"""Types whose text is the machine's word; what an assertion quotes is not."""
COMPILERS = ("torch._inductor", "torch._functorch", "triton")
"""Where code is compiled: an error from there is about the files of compiled code."""
DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
UNUSABLE = DISK_FULL | {errno.EROFS, errno.EACCES}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why the machine, and not the benchmark, gave no number."""

    code: str
    """A short stable word for machines."""
    reason: str
    """One sentence: what happened, and what to do about it."""
    poisons: bool
    """Whether the process must be replaced before the next benchmark."""
    ends_session: bool
    """Whether no benchmark can be measured any more."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How a fault is recognised, and what is said about it."""

    code: str
    explain: Callable[[Seen], str]
    names: Collection[str] = ()
    numbers: Collection[int] = ()
    pattern: str = r"(?!)"  # matches nothing
    poisons: bool = False
    ends_session: bool = False

    def fits(self, seen: Seen) -> bool:
        """Whether ``seen`` is this fault."""
        if not seen.names.isdisjoint(self.names) or seen.number in self.numbers:
            return True
        return not seen.names.isdisjoint(SPEAKING) and bool(re.search(self.pattern, seen.text))


RULES = (  # the most telling first: a worker that "exited unexpectedly" did so because of a bus error
    Rule(
        code="device-lost",
        names={"NVMLError_GpuIsLost"},
        pattern=r"GPU is lost|fallen off the bus|Xid\W+79\b|uncorrectable ECC error|no CUDA-capable device is detected",
        explain=remedies.lost,
        poisons=True,
        ends_session=True,
    ),
    Rule(
        code="out-of-memory",
        names={"OutOfMemoryError"},
        pattern=r"CUDA out of memory|CUDA (?:driver )?error: out of memory|(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED",
        explain=remedies.gpu_memory,
        poisons=True,
    ),
    Rule(code="fork-after-cuda", pattern=r"Cannot re-initialize CUDA in forked subprocess", explain=remedies.forked),
    Rule(
        code="cuda-error",
        names={"AcceleratorError"},
        pattern=r"^(?:CUDA (?:driver )?error|cuDNN error): ",
        explain=remedies.cuda_error,
        poisons=True,
    ),
    Rule(
        code="open-files",
        numbers={errno.EMFILE, errno.ENFILE},
        pattern=r"Too many open files|received 0 items of ancdata",  # the latter: descriptors lost between processes
        explain=remedies.open_files,
    ),
    Rule(
        code="shared-memory",
        pattern=r"unable to (?:allocate|open|resize|mmap).*(?:shared memory|/torch_)|DataLoader.*Bus error",
        explain=remedies.shared_memory,
    ),
    Rule(
        code="out-of-memory",
        names={"MemoryError"},
        numbers={errno.ENOMEM},
        pattern=r"DefaultCPUAllocator: (?:can't allocate|not enough) memory|std::bad_alloc",
        explain=remedies.host_memory,
        poisons=True,
    ),
    Rule(code="disk-full", numbers=DISK_FULL, pattern=r"No space left on device", explain=remedies.disk_full),
    Rule(
        code="processes",
        numbers={errno.EAGAIN},
        pattern=r"can't start new thread|Resource temporarily unavailable",
        explain=remedies.processes,
    ),
    Rule(code="loader-hung", pattern=r"DataLoader timed out after", explain=remedies.loader_hung),
    Rule(
        code="loader-died",
        pattern=r"DataLoader worker .*killed by signal|Pin memory thread exited unexpectedly",
        explain=remedies.loader_died,
    ),
    Rule(code="loader-died", pattern=r"DataLoader worker .*exited unexpectedly", explain=remedies.loader_died),
)


def recognise(error: BaseException) -> Fault | None:
    """The fault that made ``error``, the most telling one of its chain; ``None`` where the benchmark itself failed."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return None
    chain = list(chain_of(error))
    lost = next((each for each in chain if getattr(each.error, "code", None) == "device-lost"), None)
    if lost:
        return Fault(code="device-lost", reason=lost.text or remedies.lost(lost), poisons=True, ends_session=True)
    cache = _cache_fault(chain)
    if cache:
        return Fault(code="compile-cache", reason=cache, poisons=False, ends_session=False)
    for rule in RULES:
        for seen in chain:
            if rule.fits(seen):
                reason = rule.explain(seen)
                return Fault(code=rule.code, reason=reason, poisons=rule.poisons, ends_session=rule.ends_session)
    return None


def cache_folder() -> Path:
    """Where torch keeps compiled code."""
    return Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR") or tempfile.gettempdir()).absolute()


def _cache_fault(chain: Sequence[Seen]) -> str | None:
    """An error of the file system below the folder of compiled code, or while code was being compiled."""
    folder = cache_folder()
    chosen = "TORCHINDUCTOR_CACHE_DIR" in os.environ
    modules = {str(frame.f_globals.get("__name__")) for each in chain for frame in each.frames}
    compiling = any(name.startswith(COMPILERS) for name in modules)
    for each in chain:
        if each.number is None:
            continue
        name = getattr(each.error, "filename", None)
        below = chosen and isinstance(name, str) and Path(name).is_relative_to(folder)
        if below or (compiling and each.number in UNUSABLE):
            problem = os.strerror(each.number).lower()
            return (
                f"the folder of compiled code, {folder}, cannot be used ({problem}): "
                "free some space, or name another in TORCHINDUCTOR_CACHE_DIR"
            )
    return None
