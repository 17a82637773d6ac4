"""Global state: every setting is restored, and a change that stays is named."""

import pytest
import torch

from perfgate.errors import StateLeak
from perfgate.measure.state import SETTINGS, guarded_state

CPU = torch.device("cpu")
CHANGES = {
    "cudnn.benchmark": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "cudnn.deterministic": lambda: setattr(torch.backends.cudnn, "deterministic", True),
    "cudnn.enabled": lambda: setattr(torch.backends.cudnn, "enabled", False),
    "matmul TF32": lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
    "cudnn TF32": lambda: setattr(torch.backends.cudnn.conv, "fp32_precision", "ieee"),
    "float32 matmul precision": lambda: torch.set_float32_matmul_precision("medium"),
    "deterministic algorithms": lambda: torch.use_deterministic_algorithms(True),
    "CPU autocast": lambda: torch.set_autocast_enabled("cpu", True),
    "CUDA autocast": lambda: torch.set_autocast_enabled("cuda", True),
    "default dtype": lambda: torch.set_default_dtype(torch.float64),
    "threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "grad mode": lambda: torch.set_grad_enabled(False),
    "anomaly detection": lambda: torch.autograd.set_detect_anomaly(True),
    "flash attention": lambda: torch.backends.cuda.enable_flash_sdp(False),
    "mem_efficient attention": lambda: torch.backends.cuda.enable_mem_efficient_sdp(False),
    "cudnn attention": lambda: torch.backends.cuda.enable_cudnn_sdp(False),
    "math attention": lambda: torch.backends.cuda.enable_math_sdp(False),
    "float16 reduced precision": lambda: setattr(
        torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", False
    ),
    "bfloat16 reduced precision": lambda: setattr(
        torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", False
    ),
}


def test_every_setting_is_tried_here():
    """And none is left out of the guard unnoticed."""
    assert SETTINGS.keys() == CHANGES.keys()


@pytest.mark.parametrize("name", SETTINGS)
def test_each_leak_is_named_and_undone(name):
    """So that the next benchmark starts clean."""
    read = SETTINGS[name][0]
    before = read()
    with pytest.raises(StateLeak, match=name), guarded_state(CPU):
        CHANGES[name]()
        assert read() != before
    assert read() == before


def test_an_exception_is_not_hidden_by_a_leak():
    """The state is restored all the same."""
    with pytest.raises(ValueError, match="first"), guarded_state(CPU):
        torch.backends.cudnn.benchmark = True
        raise ValueError("first")
    assert not torch.backends.cudnn.benchmark


def test_random_seeds_are_restored():
    """Changing them is no leak."""
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    with guarded_state(CPU):
        torch.manual_seed(99)
        torch.rand(5)
    assert torch.rand(1) == expected


def test_a_session_on_the_cpu_does_not_start_cuda(monkeypatch):
    """Loaders would start their workers otherwise from then on; on a GPU its own seed is kept, and no other."""
    asked = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_rng_state", asked.append)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: asked.append(device))
    with guarded_state(CPU):
        pass
    assert asked == []
    gpu = torch.device("cuda", 1)
    with guarded_state(gpu):
        pass
    assert asked == [gpu, gpu]
