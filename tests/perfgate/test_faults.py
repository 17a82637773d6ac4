"""Faults of the machine are told from failures of the benchmark: by what torch, NVML and Python really say."""

import errno
import subprocess
import sys

import pytest
import torch

from perfgate import faults, limits
from perfgate.faults import RULES, recognise

FULL = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.72 GiB of which 1.06 GiB is "
    "free. Process 4711 has 100.00 GiB memory in use. Process 4712 has 37.50 GiB memory in use. Of the allocated "
    "memory 512.00 MiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated."
)
OLDER = (
    "CUDA out of memory. Tried to allocate 264.00 MiB (GPU 0; 2.00 GiB total capacity; 788.51 MiB already allocated; "
    "145.93 MiB free; 1.02 GiB reserved in total by PyTorch)"
)
REJECTED = (
    "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction "
    "limit. Requested size: 1.00 GiB"
)
ILLEGAL = "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be reported later.\n"
FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' "
    "start method"
)
SHM = "unable to allocate shared memory(shm) for file </torch_7_1_0>: No space left on device (28)"
BUS = "DataLoader worker (pid 13) is killed by signal: Bus error. It is possible that dataloader's workers are out of"


class NVMLError(Exception):
    """As pynvml names it."""


class NVMLError_GpuIsLost(NVMLError):
    """As pynvml names it."""


def lost(text):
    """An error that perfgate raised itself."""
    error = Exception(text)
    error.code = "device-lost"
    return error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (torch.OutOfMemoryError(FULL), "out-of-memory", "asked for 2.00 GiB; 1.06 GiB free of 139.72 GiB; other"),
        (torch.OutOfMemoryError(FULL), "out-of-memory", "100.00 GiB (pid 4711), 37.50 GiB (pid 4712)): stop"),
        (torch.OutOfMemoryError(OLDER), "out-of-memory", "asked for 264.00 MiB; 145.93 MiB free of 2.00 GiB)"),
        (torch.OutOfMemoryError(REJECTED), "out-of-memory", "asked for 1.00 GiB"),
        (torch.OutOfMemoryError(""), "out-of-memory", "out of GPU memory: make the batch smaller"),
        (RuntimeError("CUDA error: out of memory"), "out-of-memory", "out of GPU memory"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling x"), "out-of-memory", "GPU memory"),
        (torch.AcceleratorError(ILLEGAL), "cuda-error", "illegal memory access was encountered: the process is"),
        (RuntimeError("CUDA error: unspecified launch failure"), "cuda-error", "CUDA_LAUNCH_BLOCKING=1"),
        (RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), "cuda-error", "CUDNN_STATUS_EXECUTION_FAILED"),
        (NVMLError_GpuIsLost("GPU is lost"), "device-lost", "the GPU is lost (GPU is lost)"),
        (torch.AcceleratorError("CUDA error: GPU is lost"), "device-lost", "reset or reboot"),
        (RuntimeError("NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus."), "device-lost", "dmesg"),
        (torch.AcceleratorError("CUDA error: uncorrectable ECC error encountered"), "device-lost", "ECC"),
        (lost("the GPU answers no more: reboot"), "device-lost", "the GPU answers no more: reboot"),
        (RuntimeError(FORKED), "fork-after-cuda", "'forkserver' or 'spawn'"),
        (MemoryError(), "out-of-memory", "out of host memory"),
        (RuntimeError("std::bad_alloc"), "out-of-memory", "out of host memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "out-of-memory", "out of host memory"),
        (RuntimeError(SHM), "shared-memory", "docker run --shm-size=8g"),
        (RuntimeError(BUS), "shared-memory", "/dev/shm"),
        (RuntimeError("received 0 items of ancdata"), "open-files", "set_sharing_strategy('file_system')"),
        (OSError(errno.EMFILE, "Too many open files"), "open-files", "ulimit -n"),
        (RuntimeError("can't start new thread"), "processes", "ulimit -u"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "processes", "--pids-limit"),
        (RuntimeError("DataLoader timed out after 5 seconds"), "loader-hung", "gave nothing for 5 s"),
        (RuntimeError("DataLoader worker (pid(s) 7, 8) exited unexpectedly"), "loader-died", "(pid 7, 8) died"),
        (OSError(errno.ENOSPC, "No space left on device", "/x/y"), "disk-full", "at /x/y: free some"),
    ],
)
def test_texts_of_the_machine(error, code, said):
    """Each with its code, and a sentence that says what helps."""
    fault = recognise(error)
    assert fault.code == code
    assert said in fault.reason
    assert ": " in fault.reason
    assert "\n" not in fault.reason
    assert len(fault.reason) < 500


def repr_of(error):
    """A short id."""
    return f"{type(error).__name__}-{str(error)[:20]}"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("CUDA error: quoted in another error"),
        AssertionError(FULL),
        RuntimeError("shapes cannot be multiplied"),
        OSError(errno.ENOENT, "No such file or directory"),
        KeyboardInterrupt(),
        SystemExit(1),
        RuntimeError(
            "Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        ),
    ],
    ids=repr_of,
)
def test_failures_of_the_benchmark_are_not_faults(error):
    """Also where they quote one."""
    assert recognise(error) is None


def raised(act):
    """The exception that ``act`` raises."""
    with pytest.raises(BaseException) as caught:
        act()
    return caught.value


def test_the_cause_is_found_behind_other_exceptions():
    """Raised from it, or while it was handled."""

    def chained(*, explicit):
        try:
            raise torch.OutOfMemoryError(FULL)
        except RuntimeError as error:
            if explicit:
                raise ValueError("the step failed") from error
            raise ValueError("the step failed")  # noqa: B904

    assert recognise(raised(lambda: chained(explicit=True))).code == "out-of-memory"
    assert recognise(raised(lambda: chained(explicit=False))).code == "out-of-memory"


def test_what_was_handled_and_put_aside_is_no_fault():
    """``from None``, an assertion about something else, and Ctrl-C."""

    def judged(verdict, **suppressed):
        try:
            raise MemoryError
        except MemoryError:
            if suppressed:
                raise verdict from None
            raise verdict  # noqa: B904

    assert recognise(raised(lambda: judged(ValueError("wrong"), suppressed=True))) is None
    assert recognise(raised(lambda: judged(AssertionError("wrong")))) is None
    assert recognise(raised(lambda: judged(KeyboardInterrupt()))) is None


def test_what_torch_hides_from_its_tracebacks_counts():
    """Its compiler raises every error "from None"."""

    class TorchDynamoException(RuntimeError):
        pass

    def compiled():
        try:
            raise torch.OutOfMemoryError(FULL)
        except RuntimeError:
            raise TorchDynamoException("OutOfMemoryError") from None

    assert recognise(raised(compiled)).code == "out-of-memory"


def test_a_chain_that_closes_on_itself_ends():
    """Python allows it."""
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert recognise(first) is None


def test_a_bus_error_tells_more_than_an_unexpected_exit():
    """torch raises the one from the other."""
    error = RuntimeError("DataLoader worker (pid(s) 13) exited unexpectedly")
    error.__cause__ = RuntimeError(BUS)
    assert recognise(error).code == "shared-memory"


def test_only_a_worker_s_own_words_count_of_its_traceback():
    """Lines of code in it may quote anything."""
    text = (
        "Caught ValueError in DataLoader worker process 1.\nOriginal Traceback (most recent call last):\n"
        '  File "x.py", line 1, in f\n    raise ValueError("x") if "CUDA out of memory" else 0\nValueError: bad sample\n'
    )
    assert recognise(RuntimeError(text)) is None
    spoken = text.replace("ValueError", "RuntimeError").replace("bad sample", SHM)
    assert recognise(RuntimeError(spoken)).code == "shared-memory"


def test_an_error_number_of_a_worker_is_read_from_its_text():
    """torch keeps the type and loses the number."""
    text = (
        "Caught OSError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        "OSError: [Errno 24] Too many open files: '/x'\n"
    )
    assert recognise(OSError(text)).code == "open-files"


def test_the_folder_of_compiled_code(monkeypatch, tmp_path):
    """Below it, any error; elsewhere, a full disk while compiling."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    inside = OSError(errno.ENOENT, "No such file or directory", str(tmp_path / "ab" / "x.py"))
    assert recognise(inside).code == "compile-cache"
    assert recognise(OSError(errno.ENOENT, "No such file or directory", "/elsewhere")) is None
    namespace = {"__name__": "torch._inductor.codecache"}
    exec("def write(): raise OSError(28, 'No space left on device')", namespace)
    compiling = raised(namespace["write"])
    assert str(tmp_path) in recognise(compiling).reason
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    assert recognise(inside) is None
    assert recognise(compiling).code == "compile-cache"


def test_what_poisons_a_process_and_what_ends_a_session():
    """Memory and CUDA errors stay in the process; only a lost device stays in the machine."""
    assert {rule.code for rule in RULES if rule.poisons} == {"device-lost", "out-of-memory", "cuda-error"}
    assert {rule.code for rule in RULES if rule.ends_session} == {"device-lost"}
    assert recognise(lost("x")).ends_session


def test_the_control_group_s_limit_is_named(monkeypatch):
    """It is what the kernel enforces."""
    monkeypatch.setattr(limits, "memory_limit_bytes", lambda: 2 * 2**30)
    assert "this control group may use 2.00 GiB" in recognise(MemoryError()).reason
    monkeypatch.setattr(limits, "memory_limit_bytes", lambda: None)
    assert "control group" not in recognise(MemoryError()).reason


def test_neither_torch_nor_pytest_is_imported():
    """A machine without them has faults, too."""
    code = (
        "import sys, perfgate.faults, perfgate.limits;"
        "sys.exit(bool({'torch', 'pytest', 'numpy', 'pynvml'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_cache_folder_is_the_chosen_one(monkeypatch):
    """Or the temporary one."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/some/where")
    assert str(faults.cache_folder()) == "/some/where"
