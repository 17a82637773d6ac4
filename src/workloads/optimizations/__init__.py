"""The techniques, one file each, and their catalogue of instances by slug."""

from workloads.optimizations.accumulation import GradientAccumulation
from workloads.optimizations.amp import AMP
from workloads.optimizations.attention import Attention
from workloads.optimizations.channels_last import ChannelsLast
from workloads.optimizations.checkpointing import Checkpointing
from workloads.optimizations.compilation import Compile
from workloads.optimizations.cuda_graph import CudaGraph
from workloads.optimizations.cudnn import CudnnBenchmark, CudnnDeterministic, OwnPlans
from workloads.optimizations.dataloading import NonBlocking, PersistentWorkers, PinMemory, Prefetch, Workers
from workloads.optimizations.device_augmentation import DeviceAugmentation
from workloads.optimizations.export import AOTInductor, Export
from workloads.optimizations.fusion import Fusion
from workloads.optimizations.gpu_decode import GpuDecode
from workloads.optimizations.grad_mode import GradMode
from workloads.optimizations.habits import CopyEachStep, EmptyCache, PerSample, ReadLoss
from workloads.optimizations.half_precision import PureHalf
from workloads.optimizations.in_place import InPlace, OutOfPlace
from workloads.optimizations.semi_structured import SemiStructured
from workloads.optimizations.stream_prefetcher import Prefetcher
from workloads.optimizations.structured_pruning import ChannelMasks, ChannelPruning
from workloads.optimizations.tf32 import Float32Precision
from workloads.optimizations.threads import Threads
from workloads.optimizations.torchscript import TorchScript
from workloads.optimizations.unstructured_pruning import L1Pruning, RandomPruning
from workloads.optimizations.update import Update
from workloads.workload import Optimization

CATALOGUE: dict[str, Optimization] = {
    str(each): each
    for each in (
        AMP("bfloat16"),
        AMP("float16"),
        ChannelsLast(),
        Compile(),
        *(Compile(mode) for mode in ("lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")),
        Compile(fullgraph=True),
        Compile(dynamic=True),
        CudaGraph(),
        CudnnBenchmark(),
        CudnnDeterministic(),
        Float32Precision("tf32"),
        Float32Precision("ieee"),
        PureHalf("bfloat16"),
        PureHalf("float16"),
        Fusion(),
        *(GradMode(mode) for mode in ("grad", "no-grad", "inference")),
        InPlace(),
        OutOfPlace(),
        TorchScript("trace"),
        TorchScript("script"),
        Export(),
        AOTInductor(),
        SemiStructured(),
        *(Attention(backend) for backend in ("math", "flash", "memory-efficient", "cudnn")),
        *(Workers(count) for count in (2, 4, 8)),
        PinMemory(),
        PersistentWorkers(),
        Prefetch(4),
        NonBlocking(),
        Prefetcher(),
        DeviceAugmentation(),
        GpuDecode(),
        *(pruning(amount) for pruning in (L1Pruning, RandomPruning) for amount in (0.3, 0.5, 0.9)),
        *(L1Pruning(amount, "global") for amount in (0.3, 0.5, 0.9)),
        L1Pruning(0.5, layers="linear"),
        L1Pruning(0.5, "global", "all"),
        *(ChannelPruning(amount) for amount in (0.3, 0.5, 0.7)),
        *(ChannelMasks(amount) for amount in (0.3, 0.5, 0.7)),
        *(Update(implementation) for implementation in ("for-loop", "foreach", "fused")),
        *(Update(implementation, "adamw") for implementation in ("for-loop", "foreach", "fused")),
        *(GradientAccumulation(steps) for steps in (2, 4, 8)),
        Checkpointing(),
        *(Threads(count) for count in (1, 2, 4, 8)),
        PerSample(),
        ReadLoss(),
        EmptyCache(),
        CopyEachStep(),
        OwnPlans(),
    )
}
"""Every technique the suite knows, by the name used at the command line."""

__all__ = [
    "AMP",
    "CATALOGUE",
    "AOTInductor",
    "Attention",
    "ChannelMasks",
    "ChannelPruning",
    "ChannelsLast",
    "Checkpointing",
    "Compile",
    "CopyEachStep",
    "CudaGraph",
    "CudnnBenchmark",
    "CudnnDeterministic",
    "DeviceAugmentation",
    "EmptyCache",
    "Export",
    "Float32Precision",
    "Fusion",
    "GpuDecode",
    "GradMode",
    "GradientAccumulation",
    "InPlace",
    "L1Pruning",
    "NonBlocking",
    "OutOfPlace",
    "OwnPlans",
    "PerSample",
    "PersistentWorkers",
    "PinMemory",
    "Prefetch",
    "Prefetcher",
    "PureHalf",
    "RandomPruning",
    "ReadLoss",
    "SemiStructured",
    "Threads",
    "TorchScript",
    "Update",
    "Workers",
]
