"""Shares of a machine: each worker of ``-n N`` has one GPU, or one set of cores that no other worker uses.

A worker learns its number from ``PERFGATE_SHARE=number/count``, which a worker that replaces a crashed one inherits.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.errors import SettingsError

if TYPE_CHECKING:
    import torch

VARIABLE = "PERFGATE_SHARE"
WORKERS = "PERFGATE_WORKERS"
CONFINED = "PERFGATE_ONE_GPU"
"""Set where the process sees its own GPU only."""
LOCKED = "PERFGATE_LOCKED"
"""Set where a controller has locked the devices of all its workers, so that none waits for another suite's."""
TOPOLOGY = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class Share:
    """One of ``count`` equal parts of a machine."""

    number: int
    count: int

    def __str__(self) -> str:
        """As in the environment."""
        return f"{self.number}/{self.count}"

    def of_cores(self, usable: Collection[int], topology: Path = TOPOLOGY) -> list[int]:
        """Its cores: as many as every other share has. Two threads of one core are never divided.

        Raises:
            SettingsError: where there are fewer cores than shares.
        """
        cores = sorted(physical_cores(usable, topology))
        each = len(cores) // self.count
        if not each:
            raise SettingsError(
                f"-n {self.count}: each worker needs a core of its own, and there are {len(cores)}: "
                f"-n {len(cores)} is the most here"
            )
        return sorted(core for group in cores[self.number * each : (self.number + 1) * each] for core in group)

    def of_gpus(self, visible: str | None, found: int) -> str:
        """Its GPU, as a value of ``CUDA_VISIBLE_DEVICES``; ``visible`` is that variable's value before.

        Raises:
            SettingsError: where there are fewer GPUs than shares.
        """
        if self.count > found:
            raise SettingsError(
                f"-n {self.count}: each worker needs a GPU of its own, and torch sees {found}: -n {found} is the most "
                "here; or measure on the CPU with --perfgate-device cpu"
            )
        names = [name.strip() for name in visible.split(",")] if visible else [str(each) for each in range(found)]
        return names[self.number]


def share_of(environment: Mapping[str, str]) -> Share | None:
    """This process's share; ``None`` where it has the whole machine."""
    number, slash, count = environment.get(VARIABLE, "").partition("/")
    return Share(int(number), int(count)) if slash and number.isdigit() and count.isdigit() else None


def physical_cores(usable: Collection[int], topology: Path = TOPOLOGY) -> set[tuple[int, ...]]:
    """Usable cores, those that are threads of one physical core together; each alone where nothing tells."""
    return {tuple(sorted(_siblings(core, topology) & set(usable))) for core in usable}


def _siblings(core: int, topology: Path) -> set[int]:
    try:
        text = (topology / f"cpu{core}" / "topology" / "thread_siblings_list").read_text(encoding="ascii").strip()
        return {core, *_numbers(text)}
    except (OSError, ValueError):
        return {core}


def _numbers(text: str) -> Iterator[int]:
    """``0,4-5`` as numbers."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def usable_cores() -> list[int]:
    """Numbers of the cores that this process may run on; without affinity, all there are."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def core_names() -> list[str]:
    """Names of the cores that this process may run on, for locks."""
    return [f"core-{each}" for each in usable_cores()]


def take_cores(share: Share) -> None:
    """Confine this process, with all its threads, to its share of the cores, and compute with one thread fewer.

    Raises:
        SettingsError: where there are fewer cores than shares.
    """
    cores = share.of_cores(usable_cores())
    if share.count == 1:
        return
    for thread in _threads():
        with contextlib.suppress(ProcessLookupError, AttributeError):  # it has ended; no affinity on this system
            os.sched_setaffinity(thread, cores)
    os.environ["OMP_NUM_THREADS"] = str(max(1, len(cores) - 1))


def _threads() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/task")]
    except OSError:
        return [0]


def check(share: Share, device: str) -> None:
    """Whether the machine can be shared so.

    Raises:
        SettingsError: where there are fewer devices than shares.
    """
    if device == "cpu":
        share.of_cores(usable_cores())
        return
    import torch

    share.of_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"), torch.cuda.device_count())


def environment_of(share: Share, device: str) -> dict[str, str]:
    """What a worker's environment must have from its start: its number, and its only GPU where ``device`` is one.

    Raises:
        SettingsError: where there are fewer GPUs than shares.
    """
    found = {VARIABLE: str(share)}
    if share.count > 1:  # one worker measures as none does
        found[WORKERS] = str(share.count)
    if device == "cuda" and share.count > 1:
        import torch

        own = share.of_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"), torch.cuda.device_count())
        found |= {"CUDA_VISIBLE_DEVICES": own, CONFINED: "1"}
    return found


def take(share: Share, device: str) -> None:
    """Confine this process to its share: of the cores, or its one GPU.

    ``device`` is ``auto``, ``cpu`` or ``cuda``. A single worker has the whole machine, as without ``-n``. A GPU that
    the environment did not set apart from the start can only be made the current one: whoever asked whether there are
    GPUs had CUDA look, and it does not look again.

    Raises:
        SettingsError: where there are fewer devices than shares.
    """
    import torch

    found = 0 if device == "cpu" else torch.cuda.device_count()
    if not found:
        take_cores(share)
        if share.count > 1:
            torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    elif share.count > 1 and os.environ.get(CONFINED) != "1":
        share.of_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"), found)
        torch.cuda.set_device(share.number)


def gpu_uuids(device: torch.device | None) -> list[str]:
    """The UUID of a CUDA device, or of all that this process sees."""
    import torch

    devices = range(torch.cuda.device_count()) if device is None else [device]
    return [str(torch.cuda.get_device_properties(each).uuid) for each in devices]
