"""Peak memory of what ran last: of CUDA's allocator on a GPU, of the whole process on a CPU."""

import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

import torch

FORGET = Path("/proc/self/clear_refs")
STATUS = Path("/proc/self/status")
FORGET_PEAK = "5"  # proc(5): reset the peak resident set to the present one


def forget_peak(device: torch.device) -> None:
    """Start the peak anew. Where the CPU's cannot be (not Linux), it stays that of the process since its start."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    with suppress(OSError):
        FORGET.write_text(FORGET_PEAK, encoding="ascii")


def peak_bytes(device: torch.device) -> int:
    """CUDA's peak allocation in bytes; on a CPU the peak resident set of the process, torch itself included."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    with suppress(OSError):  # where there is Linux's: getrusage(2) gives at least the peak of who started the process
        found = re.search(r"^VmHWM:\s+(\d+) kB", STATUS.read_text(encoding="ascii", errors="replace"), re.MULTILINE)
        if found:
            return 1024 * int(found[1])
    unit = 1 if sys.platform == "darwin" else 1024  # getrusage(2): kilobytes, but bytes on macOS
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
