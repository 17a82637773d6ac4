"""2:4 sparsity: do sparse tensor cores beat dense ones, both in half precision?

An A100 gained 1.38x on a Linear; on Hopper nothing is promised (pytorch#153825 reports it slower than dense).
"""

import pytest

from workloads import MLP, ViTB16
from workloads.optimizations import PureHalf, SemiStructured

pytestmark = [pytest.mark.benchmark(group="2:4 semi-structured"), pytest.mark.gpu]

WORKLOADS = [
    MLP(batch_size=4096, width=4096),
    MLP(batch_size=4096, width=8192),
    ViTB16(),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
@pytest.mark.parametrize("half", [PureHalf("bfloat16"), PureHalf("float16")], ids=str)
def test_inference(measure, workload, half):
    """Two of every four weights left out, against the same weights dense."""
    measure(workload.inference_step(half, SemiStructured()), against=workload.inference_step(half))
