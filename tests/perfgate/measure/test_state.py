"""Global state: every setting is restored, and a change that stays is named."""

import pytest
import torch

from perfgate.errors import StateLeak
from perfgate.measure.state import SETTINGS, guarded_state

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
}


@pytest.mark.parametrize("name", SETTINGS)
def test_each_leak_is_named_and_undone(name):
    """So that the next benchmark starts clean."""
    read = SETTINGS[name][0]
    before = read()
    with pytest.raises(StateLeak, match=name), guarded_state():
        CHANGES[name]()
        assert read() != before
    assert read() == before


def test_an_exception_is_not_hidden_by_a_leak():
    """The state is restored all the same."""
    with pytest.raises(ValueError, match="first"), guarded_state():
        torch.backends.cudnn.benchmark = True
        raise ValueError("first")
    assert not torch.backends.cudnn.benchmark


def test_random_seeds_are_restored():
    """Changing them is no leak."""
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    with guarded_state():
        torch.manual_seed(99)
        torch.rand(5)
    assert torch.rand(1) == expected
