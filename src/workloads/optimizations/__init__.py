"""The techniques, one file each, and their catalogue of instances by slug."""

from workloads.optimizations.amp import AMP
from workloads.optimizations.channels_last import ChannelsLast
from workloads.optimizations.compilation import Compile
from workloads.optimizations.cudnn import CudnnBenchmark
from workloads.optimizations.dataloading import NonBlocking, PersistentWorkers, PinMemory, Prefetch, Workers
from workloads.optimizations.structured_pruning import ChannelMasks, ChannelPruning
from workloads.optimizations.unstructured_pruning import L1Pruning
from workloads.workload import Optimization

CATALOGUE: dict[str, Optimization] = {
    str(each): each
    for each in (
        AMP("bfloat16"),
        AMP("float16"),
        ChannelsLast(),
        Compile(),
        Compile("reduce-overhead"),
        CudnnBenchmark(),
        *(Workers(count) for count in (2, 4, 8)),
        PinMemory(),
        PersistentWorkers(),
        Prefetch(4),
        NonBlocking(),
        *(L1Pruning(amount) for amount in (0.3, 0.5, 0.9)),
        *(ChannelPruning(amount) for amount in (0.3, 0.5, 0.7)),
        *(ChannelMasks(amount) for amount in (0.3, 0.5, 0.7)),
    )
}
"""Every technique the suite knows, by the name used at the command line."""

__all__ = [
    "AMP",
    "CATALOGUE",
    "ChannelMasks",
    "ChannelPruning",
    "ChannelsLast",
    "Compile",
    "CudnnBenchmark",
    "L1Pruning",
    "NonBlocking",
    "PersistentWorkers",
    "PinMemory",
    "Prefetch",
    "Workers",
]
