"""cuDNN's flags: set while the step runs, put back, and read by the proof."""

import pytest
import torch

from workloads import MLP, NotInEffect
from workloads.optimizations import CudnnBenchmark, CudnnDeterministic

FLAGS = [CudnnBenchmark(), CudnnDeterministic()]


@pytest.mark.parametrize("technique", FLAGS, ids=str)
def test_flag_holds_while_the_step_runs(technique):
    """And only then."""
    before = torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic
    with technique.active():
        assert getattr(torch.backends.cudnn, technique.flag)
    assert (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic) == before


@pytest.mark.parametrize("technique", FLAGS, ids=str)
def test_proof_reads_the_flag(technique, monkeypatch):
    """On a machine that has cuDNN."""
    monkeypatch.setattr(torch.backends.cudnn, "is_available", lambda: True)
    with technique.active():
        assert technique.proof(None) == f"cudnn.{technique.flag} read back as on"
    with pytest.raises(NotInEffect, match=f"{technique.flag} reads back as off"):
        technique.proof(None)


def test_both_can_be_stacked():
    """cuDNN then tries deterministic algorithms only; alone, determinism is expected to cost."""
    assert CudnnBenchmark().clash(CudnnDeterministic()) is None
    assert CudnnDeterministic().clash(CudnnBenchmark()) is None
    assert MLP().train_step(CudnnDeterministic()).expected_against(MLP().train_step()) == "slower"
