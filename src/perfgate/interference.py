"""What inside this process changes its timings: variables of its environment, and tracers. No torch.

Two lists of variables: with some, no number is worth anything, so measuring is refused; others are settings that a
run is compared by, and are recorded. Nothing else of the environment reaches a file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

REFUSED = {
    "CUDA_LAUNCH_BLOCKING": "every kernel is waited for",
    "CUDA_INJECTION64_PATH": "a profiler hooks every CUDA call",
    "MALLOC_CHECK_": "malloc checks every block",
    "MALLOC_PERTURB_": "malloc fills every block",
    "PYTHONDEVMODE": "Python checks every allocation",
    "PYTHONMALLOC": "Python's allocator is another",
    "PYTHONPROFILEIMPORTTIME": "every import is timed and printed",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "every tensor is a cudaMalloc",
    "TORCH_CUDA_SANITIZER": "every kernel is checked for races",
}
"""Variables under which nothing is measured, and what they do."""
RECORDED = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_MODULE_LOADING",
    "DEBUG",
    "GLIBC_TUNABLES",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "MALLOC_CONF",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_WAIT_POLICY",
    "PYTHONHASHSEED",
    "PYTHONOPTIMIZE",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCHDYNAMO_DISABLE",
    "TORCHDYNAMO_SUPPRESS_ERRORS",
    "TORCHINDUCTOR_FREEZING",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_COMPILE_DISABLE",
    "TORCH_LOGS",
)
"""Variables that go into a run, with their values where those are harmless."""
VALUE = re.compile(r"[A-Za-z0-9_.,:;=+\-{}]{0,120}")
"""What is stored as it is: settings of this form; neither paths nor sentences."""
OFF = {"", "0", "false", "no", "off"}
TOOLS = 6  # of sys.monitoring: https://docs.python.org/3/library/sys.monitoring.html


def refused(environment: Mapping[str, str]) -> list[str]:
    """A sentence with the remedy for each variable that makes measuring pointless."""
    return [
        f"{name} is set ({what}), so no time would be of the benchmark: unset it; --perfgate-smoke works with it"
        for name, what in REFUSED.items()
        if environment.get(name, "").lower() not in OFF
    ]


def recorded(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that go into a run; of a value that may hold a path or a secret, only that it is ``set``."""
    found = {name: environment[name] for name in RECORDED if name in environment}
    return {name: value if VALUE.fullmatch(value) and name != "DEBUG" else "set" for name, value in found.items()}


def tracers() -> list[str]:
    """Who watches every line or call of this process: a debugger, coverage, a profiler; ``[]`` where nobody does."""
    hooks = {"sys.settrace": sys.gettrace(), "sys.setprofile": sys.getprofile()}
    found = [f"{type(hook).__module__} ({name})" for name, hook in hooks.items() if hook is not None]
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    if monitoring is not None:
        found += [f"{tool} (sys.monitoring)" for tool in map(monitoring.get_tool, range(TOOLS)) if tool]
    return found


def tracing() -> str:
    """Why nothing can be timed under :func:`tracers`, with the remedy; empty where nobody traces."""
    found = ", ".join(tracers())
    remedy = "leave out --cov, the debugger or the profiler; --perfgate-smoke works with them"
    return (
        f"{found} watches every line of this process, so no time would be of the benchmark: {remedy}" if found else ""
    )
