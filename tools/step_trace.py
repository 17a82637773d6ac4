"""One step as torch's profiler sees it, small enough to be kept in git.

    python tools/step_trace.py tests/data/traces/resnet18-cifar-plain.json.gz --workload resnet18-cifar --batch-size 256
    python tools/step_trace.py OUT.json.gz --workload resnet18-cifar --optimizations channels-last,amp-bf16,cuda-graph

A Chrome trace, as chrome://tracing and Perfetto read it: the operators and CUDA calls of one warm step, the kernels and
copies that came of them, and on which machine. Left out are Python's frames, and what says where on the disk or in
memory something lay.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from workloads.commands import choices
from workloads.timing import synchronize

MARK = "traced-step"
WARMUP_STEPS = 5  # compile, tune, create optimizer state, capture
MOST_BYTES = 200_000  # two of them are test data, and git keeps every version
KEPT_ARGUMENTS = (
    "External id",
    "correlation",
    "stream",
    "device",
    "grid",
    "block",
    "bytes",
    "Input Dims",
    "Input type",
)
KEPT_FIELDS = ("ph", "cat", "name", "pid", "tid", "ts", "dur")
KINDS = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset")


def traced(step: Any, device: torch.device) -> dict[str, Any]:
    """The exported trace of one warm step."""
    step.build(device)
    with step.active():
        for _ in range(WARMUP_STEPS):
            step.run()
        synchronize(device)
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
        with profile(activities=activities, record_shapes=True) as profiler:
            step.run()  # the first under a profiler takes longer
            synchronize(device)
            with record_function(MARK):
                step.run()
            synchronize(device)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(file))
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def of_step(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What happened on the host inside the mark, and on the GPU because of it; times from the mark's start."""
    events = [each for each in events if each.get("cat") in KINDS]
    mark = next(each for each in events if each["name"] == MARK and each["cat"] == "user_annotation")
    start, end = mark["ts"], mark["ts"] + mark["dur"]
    inside = [each for each in events if not is_device(each) and start <= each["ts"] <= end]
    calls = {number(each) for each in inside if each["cat"].startswith("cuda_")}
    for each in sorted([*inside, *(x for x in events if is_device(x) and number(x) in calls)], key=lambda x: x["ts"]):
        kept = {name: each[name] for name in KEPT_FIELDS}
        kept["ts"] = round(each["ts"] - start, 3)
        kept["args"] = {name: each["args"][name] for name in KEPT_ARGUMENTS if name in each.get("args", {})}
        yield kept


def is_device(event: dict[str, Any]) -> bool:
    """Whether it happened on the GPU."""
    return event["cat"] in {"kernel", "gpu_memcpy", "gpu_memset"}


def number(event: dict[str, Any]) -> Any:
    """What a CUDA call and its work have in common."""
    return event.get("args", {}).get("correlation")


def main() -> None:
    """Trace, trim, write, and refuse what is too large for git."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("out", type=Path, help="file to write, .json.gz")
    choices.add_workload(parser, data="synthetic")
    choices.add_optimizations(parser)
    choices.add_device(parser)
    arguments = parser.parse_args()
    workload, device = choices.subject(arguments)
    step = workload.train_step(*choices.choose_optimizations(arguments.optimizations))
    found = traced(step, device)
    document = {
        "schemaVersion": found.get("schemaVersion", 1),
        "step": str(step),
        "torch": torch.__version__,
        "deviceProperties": [
            {name: each[name] for name in ("name", "totalGlobalMem", "computeMajor", "computeMinor", "numSms")}
            for each in found.get("deviceProperties", [])
        ],
        "traceEvents": list(of_step(found["traceEvents"])),
    }
    content = gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)
    if len(content) > MOST_BYTES:
        sys.exit(f"{len(content)} bytes are too many for git, {MOST_BYTES} are allowed: take a smaller model")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_bytes(content)
    print(f"{arguments.out}: {len(document['traceEvents'])} events of {step}, {len(content)} bytes")


if __name__ == "__main__":
    main()
