"""The project that the other tools measure: ten small real steps, and a package whose delays slow some of them."""

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
from planted import DELAYS
from workloads import MLP, ResNet18Cifar, Transformer

STEPS = {
    "mlp": lambda: MLP(batch_size=64).train_step(),
    "mlp-inference": lambda: MLP(batch_size=256).inference_step(),
    "transformer": lambda: Transformer(batch_size=1).train_step(),
    "transformer-inference": lambda: Transformer(batch_size=2).inference_step(),
    "resnet": lambda: ResNet18Cifar(batch_size=2).inference_step(),
}
CASES = [f"{name}/{number}" for name in STEPS for number in (1, 2)]

@pytest.mark.parametrize("case", CASES)
def test_step(measure, case):
    step, delay = STEPS[case.partition("/")[0]](), DELAYS.get(case, 0.0)
    plain = step.run

    def run():
        plain()
        end = time.perf_counter() + delay
        while time.perf_counter() < end:
            pass

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
