"""TensorFloat-32: the flags are set while the step runs and put back, and its proof reads them."""

import pytest
import torch

from workloads import MLP, NotInEffect, Unsuitable
from workloads.optimizations import Compile, Float32Precision
from workloads.optimizations.tf32 import _read

CPU, GPU = torch.device("cpu"), torch.device("cuda")
TF32, IEEE = Float32Precision("tf32"), Float32Precision("ieee")


@pytest.mark.parametrize("precision", [TF32, IEEE], ids=str)
def test_flags_hold_while_the_step_runs(precision):
    """And are what they were before afterwards, also after an error."""
    before = _read()
    with pytest.raises(ValueError, match="inside"), precision.active():
        assert _read() == (precision.precision, precision.precision)
        assert (
            precision.proof(None) == f"fp32_precision of products and convolutions read back as {precision.precision}"
        )
        raise ValueError("inside")
    assert _read() == before


def test_proof_fails_where_the_flags_are_off():
    """Plain torch uses TensorFloat-32 in convolutions only, so neither precision is in effect."""
    for precision in (TF32, IEEE):
        with pytest.raises(NotInEffect, match=r"fp32_precision reads back as (none|ieee) for products"):
            precision.proof(None)


def test_unsuitable_where_there_are_no_such_units(monkeypatch):
    """On a CPU, and on a GPU before Ampere."""
    assert "needs a CUDA GPU" in TF32.unsuitable(MLP(), CPU)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert "compute capability 8.0, this GPU has 7.5" in TF32.unsuitable(MLP(), GPU)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert TF32.unsuitable(MLP(), GPU) is None


def test_stacks():
    """One precision at a time, and no templates that read the older flags."""
    assert "choose one" in TF32.clash(IEEE)
    assert "older allow_tf32 flags" in TF32.clash(Compile("max-autotune"))
    assert TF32.clash(Compile()) is None
    assert TF32.baseline() == (IEEE,)


def test_other_precisions_are_refused():
    """By name."""
    with pytest.raises(Unsuitable, match="got 'bf16'"):
        Float32Precision("bf16")
