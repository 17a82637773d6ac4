"""Counted metrics: known work gives known counts, and the private interfaces behind them have not changed."""

import pytest
import torch
from torch import nn

from perfgate.errors import MeasurementError
from perfgate.measure import profiled
from perfgate.measure.counters import compile_counts, count_eager, count_uncompiled, scalar_reads
from perfgate.measure.memory import cuda_peak, forget_workspaces, host_peak, resident_bytes
from perfgate.measure.profiled import (
    MARK,
    Event,
    check_seen,
    count_device_work,
    count_operators,
    profile_step,
    span,
    transient_bytes,
)

CPU = torch.device("cpu")


def test_operators_by_name_and_dtypes():
    """Two products, one of them in bfloat16, and a synchronising ``item``."""
    a = torch.ones(4, 4)

    def step():
        (a @ a).sum().item()
        a.bfloat16() @ a.bfloat16()

    operators = count_eager(step).operators
    assert operators["aten::mm(float32)"] == 1
    assert operators["aten::mm(bfloat16)"] == 1
    assert operators["aten::_local_scalar_dense(float32)"] == 1
    assert scalar_reads(operators) == 1


@pytest.mark.parametrize(
    ("module", "shape", "flops"),
    [
        (nn.Linear(64, 32), (8, 64), 2 * 8 * 64 * 32),
        (nn.Conv2d(3, 16, 3, padding=1), (2, 3, 8, 8), 2 * 2 * 16 * 8 * 8 * 3 * 3 * 3),
    ],
)
def test_flops_as_computed_by_hand(module, shape, flops):
    """A multiply-add is two."""
    inputs = torch.ones(shape)
    with torch.no_grad():
        assert count_eager(lambda: module(inputs)).flops == flops


ATTENTION = 2 * 3 * 10 * 16 * 4 * 16 + 2 * 2 * 3 * 10 * 10 * 16  # 3 sequences of 10 tokens of width 16


@pytest.mark.parametrize(
    ("layer", "arguments", "operator", "flops"),
    [
        (nn.MultiheadAttention(16, 4, batch_first=True), 3, "aten::_native_multi_head_attention", ATTENTION),
        (
            nn.TransformerEncoderLayer(16, 4, dim_feedforward=24, batch_first=True),
            1,
            "aten::_transformer_encoder_layer_fwd",
            ATTENTION + 2 * 2 * 3 * 10 * 16 * 24,
        ),
    ],
    ids=["attention", "encoder layer"],
)
def test_flops_of_layers_that_are_one_operator_in_inference(layer, arguments, operator, flops):
    """Those of the products that it stands for."""
    layer.eval()
    inputs = [torch.ones(3, 10, 16)] * arguments
    with torch.no_grad():
        counts = count_eager(lambda: layer(*inputs))
    assert counts.operators[f"{operator}(float32)"] == 1
    assert counts.flops == counts.float32_flops == flops


def test_flops_of_nested_tensors_are_not_told():
    """Padding makes a nested tensor of them, which has no sizes to ask for; counting goes on."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, dim_feedforward=24, batch_first=True), 1).eval()
    padding = torch.tensor([[False] * 10, [False] * 9 + [True]])
    with torch.no_grad():
        counts = count_eager(lambda: encoder(torch.ones(2, 10, 16), src_key_padding_mask=padding))
    assert any("_transformer_encoder_layer_fwd" in name for name in counts.operators)
    assert counts.flops == 0


def test_operators_are_seen_while_flops_are_counted():
    """One pass for both: the FLOP counter does not hide or add operators."""
    layer, inputs = nn.Linear(4, 4), torch.ones(2, 4)
    counts = count_eager(lambda: layer(inputs).sum().backward())
    operators, flops = counts.operators, counts.flops
    assert operators["aten::addmm(float32)"] == 1
    assert flops == 2 * 2 * 4 * 4 * 2  # forward, and the gradient of the weight; the input needs none


def test_the_profiler_still_tells_allocations():
    """The canary of ``kineto_results``: known allocations give the known peak."""
    kept = []

    def step():
        kept.clear()
        first = torch.empty(1000, dtype=torch.uint8)
        second = torch.empty(5000, dtype=torch.uint8)
        del first
        kept.append(torch.empty(100, dtype=torch.uint8))
        del second

    events = profile_step(step, CPU)
    # the run frees the 100 bytes of the one before, then holds 6000 at most
    assert transient_bytes(events) == (6000 - 100, 3)


def test_peak_memory_is_resident_plus_transient():
    """Views share their storage, which counts once."""
    weight = torch.empty(10, 10)
    assert resident_bytes([weight, weight[0], weight.t()]) == 400
    events = profile_step(weight.clone, CPU)
    assert host_peak([weight], events).peak_bytes == 400 + 400


def test_peak_memory_on_a_gpu_is_the_allocators_own(monkeypatch):
    """What another model in the process holds does not count."""
    readings = iter(
        [
            {"requested_bytes.all.current": 5_000, "requested_bytes.all.peak": 9_000, "allocation.all.allocated": 7},
            {"requested_bytes.all.current": 5_000, "requested_bytes.all.peak": 5_600, "allocation.all.allocated": 10},
        ]
    )
    for name in ("empty_cache", "synchronize", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda _: next(readings))
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda _: 20_000)
    found = cuda_peak(lambda: None, lambda: [torch.empty(100)], torch.device("cuda", 0))
    assert (found.peak_bytes, found.allocations, found.reserved_bytes) == (400 + 600, 3, 20_000)


def host(name, start, end=None, call=0):
    """An event on the host."""
    return Event(name, "host", start, end if end is not None else start + 1, call=call)


def test_the_pools_of_captured_graphs_count_as_a_whole(monkeypatch):
    """Those of this device; memory that is no graph's does not, and a tensor in a pool does not count again."""
    gradient, beside = torch.empty(100), torch.empty(10)
    segments = [
        {"device": 0, "address": 1, "total_size": 5, "segment_pool_id": (0, 0)},
        {"device": 0, "address": gradient.data_ptr(), "total_size": 400, "segment_pool_id": (0, 1)},
        {"device": 0, "address": 9, "total_size": 300, "segment_pool_id": (0, 1)},
        {"device": 1, "address": beside.data_ptr(), "total_size": 900, "segment_pool_id": (0, 2)},
    ]
    stats = {"requested_bytes.all.current": 5, "requested_bytes.all.peak": 8, "allocation.all.allocated": 7}
    for name in ("empty_cache", "synchronize", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda _: stats)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda _: 0)

    def peak(*, graphs):
        return cuda_peak(lambda: None, lambda: [gradient, beside], torch.device("cuda", 0), graphs=graphs).peak_bytes

    assert peak(graphs=True) == 700 + 40 + 3
    assert peak(graphs=False) == 400 + 40 + 3


def test_workspaces_are_forgotten_on_a_gpu_only(monkeypatch):
    """By a call that torch does not document: this fails when it goes."""
    calls = []
    if torch.backends.cuda.is_built():
        assert callable(torch._C._cuda_clearCublasWorkspaces)
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: calls.append(1), raising=False)
    forget_workspaces(CPU)
    assert calls == []
    forget_workspaces(torch.device("cuda", 0))
    assert calls == [1]


def test_float32_work_is_seen_in_inference_mode():
    """Operators that autograd would take apart are dispatched whole there."""
    layers, images = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 5)), torch.ones(2, 3, 8, 8)

    def run():
        with torch.inference_mode():
            layers(images)

    counts = count_eager(run)
    assert counts.flops == counts.float32_flops == 2 * 2 * (4 * 36 * 27 + 144 * 5)
    assert not any("conv2d" in name or "linear" in name for name in counts.operators)


def test_device_work_is_counted_between_the_marks():
    """Launches and synchronisations that the host asked for there, and the copies that came of its calls, even later."""
    events = [
        host("cudaLaunchKernel", 5),
        host("cudaMemcpyAsync", 6, call=1),
        host(MARK, 10, 100),
        host("cudaLaunchKernelExC", 20),
        host("cuLaunchKernelEx", 30),
        host("cudaGraphLaunch", 35),
        host("cudaMemcpyAsync", 40, call=2),
        host("aten::copy_", 41, call=4),  # operators are numbered for themselves
        host("cudaMemcpyAsync", 42, call=3),
        host("cudaStreamSynchronize", 50),
        Event("Memcpy HtoD (Pageable -> Device)", "device", 12, 20, call=1),
        Event("Memcpy HtoD (Pageable -> Device)", "device", 45, 60, call=2),
        Event("Memcpy DtoH (Device -> Pageable)", "device", 110, 120, call=3),
        Event("Memcpy DtoH (Device -> Pageable)", "device", 111, 120, call=4),
        Event("void gemm<float>", "device", 60, 70, call=2),
        host("cudaDeviceSynchronize", 130),
    ]
    assert count_device_work(events) == {
        "kernel_launches": 3,
        "graph_launches": 1,
        "synchronisations": 1,
        "copies_to_device": 1,
        "copies_to_host": 1,
    }


def test_a_profile_is_checked_on_a_gpu_only(monkeypatch):
    """Here the GPU is one in name."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    assert profile_step(lambda: None, CPU)
    with pytest.raises(MeasurementError, match="no CUDA call"):
        profile_step(lambda: None, torch.device("cuda", 0))


def test_an_allocator_that_does_not_tell_what_was_asked_for(monkeypatch):
    """Then it is what it allocated."""
    readings = iter(
        {
            "requested_bytes.all.current": 0,
            "allocated_bytes.all.current": 10,
            "allocated_bytes.all.peak": peak,
            "allocation.all.allocated": 0,
        }
        for peak in (90, 30)
    )
    for name in ("empty_cache", "synchronize", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda _: next(readings))
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda _: 0)
    assert cuda_peak(lambda: None, list, torch.device("cuda", 0)).peak_bytes == 20


def test_cudnn_tries_nothing_while_operators_are_counted(monkeypatch):
    """Its plans would be found by whatever runs in this thread afterwards."""
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    seen = []
    count_uncompiled(lambda: seen.append(torch.backends.cudnn.benchmark))
    assert seen == [False]
    assert torch.backends.cudnn.benchmark


def test_the_profiler_is_attached_once_and_on_a_gpu_only(monkeypatch):
    """Before the first benchmark, so that launches cost all of them the same."""
    profiles = []
    monkeypatch.setattr(profiled, "profile_step", lambda run, device: profiles.append(device))
    gpu = torch.device("cuda", 7)
    for device in (CPU, gpu, gpu):
        profiled.attach(device)
    assert profiles == [gpu]


def test_a_profile_of_a_gpu_without_its_calls_is_no_count_of_zero():
    """A profiler that is kept out would make everything better."""
    check_seen([host(MARK, 0, 9), host("cudaDeviceSynchronize", 10)])
    with pytest.raises(MeasurementError, match="no CUDA call"):
        check_seen([host(MARK, 0, 9), host("aten::mm", 2)])


def test_names_of_compiled_graphs_lose_their_hash():
    """Or every torch version and every cache would look like another program."""
    events = [
        host(MARK, 0, 100),
        host("## Call CompiledFxGraph fabc ##", 10),
        host("## Call CompiledFxGraph fdef ##", 20),
        host("aten::mm", 30),
        host("autograd::engine::evaluate_function: MmBackward0", 40),
        host("Pregraph bytecode", 50),
    ]
    assert count_operators(events) == {"CompiledFxGraph": 2, "aten::mm": 1}


def test_a_profile_without_a_mark_is_an_error():
    """Nothing would be counted."""
    with pytest.raises(LookupError, match=MARK):
        span([])


def test_dynamo_still_has_its_counters():
    """The canary of the private interface: one compiled function is one graph, a break makes two."""
    torch.compiler.reset()

    @torch.compile(backend="eager")
    def broken(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    before = compile_counts()
    broken(torch.ones(2))
    found = compile_counts().since(before)
    torch.compiler.reset()
    assert (found.graphs, found.breaks) == (2, 1)
