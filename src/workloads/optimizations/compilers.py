"""Which compilers torch.compile needs here: looked for, and tried, before anything is measured."""

import functools
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

TIMEOUT_SECONDS = 20
REMEDY = "install g++ or set CXX"
PROGRAM = "#include <cmath>\nint main() { return std::isnan(0.0); }\n"


def missing_for_cpu() -> str | None:
    """Why code for the CPU cannot be compiled here, with the remedy; ``None`` where a C++ compiler works."""
    command = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")  # torch's choice
    program, *arguments = shlex.split(command) or [command]
    found = shutil.which(program)
    if found is None:
        return f"no C++ compiler ({command}) found: {REMEDY}"
    problem = _complaint(found, *arguments)
    return f"the C++ compiler ({command}) {problem}: {REMEDY}" if problem else None


def missing_for_gpu() -> str | None:
    """Why kernels for a GPU cannot be compiled here, with the remedy: triton, a C compiler and Python's headers."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed, and torch.compile writes GPU kernels in it: pip install triton"
    wanted = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    if wanted is None or shutil.which(wanted) is None:
        return f"no C compiler ({wanted or 'gcc'}) found, and triton needs one: install gcc or set CC"
    headers = sysconfig.get_paths()["include"]
    if not Path(headers, "Python.h").is_file():
        return f"no Python.h in {headers}, and triton compiles with it: install Python's headers (python3-dev)"
    return None


def missing_for_aot_gpu() -> str | None:
    """Why a library for a GPU cannot be built here: beside triton and a C compiler, it includes CUDA's headers."""
    from torch.utils.cpp_extension import CUDA_HOME

    if CUDA_HOME and Path(CUDA_HOME, "include", "cuda.h").is_file():
        return missing_for_gpu()
    return "AOTInductor needs CUDA's headers (cuda.h): install the CUDA toolkit and set CUDA_HOME"


@functools.cache  # asked for every benchmark, tried once per process
def _complaint(*words: str) -> str | None:
    """What is wrong with a compiler, which checks a program and writes nothing; ``None`` where it works."""
    try:
        done = subprocess.run(  # noqa: S603 - the compiler that the user chose, without a shell
            [*words, "-x", "c++", "-fsyntax-only", "-"],
            input=PROGRAM,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run ({error})"
    if not done.returncode:
        return None
    return f"does not compile ({next(iter(done.stderr.strip().splitlines()), f'exit code {done.returncode}')})"
