"""CPU threads: how many cores one operator is spread over."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch

from workloads.cores import usable_cores
from workloads.workload import NotInEffect, Observation, Optimization, Unsuitable, Workload


@dataclass(frozen=True)
class Threads(Optimization):
    """``torch.set_num_threads`` while the step runs."""

    name: ClassVar[str] = "threads"
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html"
    count: int = 2

    def __post_init__(self) -> None:
        """Refuse less than one thread."""
        if self.count < 1:
            raise Unsuitable(f"threads: count must be at least 1, got {self.count}")

    def baseline(self) -> tuple[Optimization, ...]:
        """One thread."""
        return (Threads(1),)

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Only operators on a CPU use them, and more than there are cores take turns."""
        if device.type != "cpu":
            return "CPU threads change nothing on a GPU: use --perfgate-device cpu"
        cores = usable_cores()
        return (
            None if self.count <= cores else f"{self.count} threads need {self.count} usable cores, there are {cores}"
        )

    @contextmanager
    def active(self) -> Iterator[None]:
        """Set the number, and put back what it was."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.count)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def proof(self, seen: Observation) -> str:
        """Torch reads it back."""
        if torch.get_num_threads() != self.count:
            raise NotInEffect(f"torch.get_num_threads() is {torch.get_num_threads()}")
        return f"torch.get_num_threads() read back as {self.count}"
