"""The project that the other tools measure: ten real steps, and a package whose delays slow some of them.

Small steps on a CPU, slowed by a busy loop; larger ones on a GPU, slowed by a kernel that spins for a number of cycles.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

SETTINGS = """
[tool.perfgate]
subject = "src/planted"
warmup_seconds = 0.2
timed_seconds = 0.25
"""
BENCH = """
import time
import pytest
import torch
from planted import DELAYS
from workloads import MLP, ResNet18Cifar, Transformer

ON_GPU = torch.cuda.is_available()
LARGER = 128 if ON_GPU else 1  # milliseconds there, too
STEPS = {
    "mlp": lambda: MLP(batch_size=64 * LARGER).train_step(),
    "mlp-inference": lambda: MLP(batch_size=256 * LARGER).inference_step(),
    "transformer": lambda: Transformer(batch_size=LARGER).train_step(),
    "transformer-inference": lambda: Transformer(batch_size=2 * LARGER).inference_step(),
    "resnet": lambda: ResNet18Cifar(batch_size=2 * LARGER).inference_step(),
}
CASES = [f"{name}/{number}" for name in STEPS for number in (1, 2)]

def spinning_on_the_host(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

def cycles_per_second(cycles=100_000_000):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(cycles)  # brings the clock up
    start.record()
    torch.cuda._sleep(cycles)
    end.record()
    torch.cuda.synchronize()
    return cycles * 1e3 / start.elapsed_time(end)

@pytest.mark.parametrize("case", CASES)
def test_step(measure, case):
    step, delay = STEPS[case.partition("/")[0]](), DELAYS.get(case, 0.0)
    plain = step.run
    cycles = round(delay * cycles_per_second()) if ON_GPU and delay else 0

    def run():
        plain()
        torch.cuda._sleep(cycles) if cycles else spinning_on_the_host(delay)

    if delay:
        step.run = run
    measure(step)
"""


def git(folder: Path, *arguments: str) -> None:
    """Run git in ``folder``, as nobody in particular."""
    identity = ["-c", "user.name=evidence", "-c", "user.email=evidence@localhost"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)  # noqa: S603, S607


def make_project(folder: Path, delays: dict[str, float]) -> None:
    """Two commits: ``base`` without delays, ``head`` with them."""
    for name, content in (
        ("pyproject.toml", SETTINGS),
        ("benches/test_evidence.py", BENCH),
        ("src/planted/__init__.py", "DELAYS = {}\n"),
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=base")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=base")
    git(folder, "switch", "--quiet", "--create=head")
    (folder / "src/planted/__init__.py").write_text(f"DELAYS = {delays!r}\n", encoding="utf-8")
    git(folder, "commit", "--quiet", "--all", "--allow-empty", "--message=head")
