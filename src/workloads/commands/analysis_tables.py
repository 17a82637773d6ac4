"""An analysis as tables."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from rich.text import Text

from workloads.analysis import Analysis
from workloads.analysis.roofline import Roofline
from workloads.analysis.scaling import ScalePoint, scales_by
from workloads.commands.grid import Grid
from workloads.workload import Workload

PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
AS_IT_IS = "as it is"
ABOVE = (
    "an operator above 100 %: reading alone can be faster than the copy, a small product faster than the large one; "
    "on a busy machine rounds also differ by chance"
)
NOT_RUN = "could not run"
MEANING = {
    "compute": "products and convolutions set the time",
    "memory": "moving data set the time",
    "launch": "far above both roofs: dispatching operators, launching kernels and waiting set the time",
    "input": "the loader needs longer for a batch than the step",
}


def tables(workload: Workload, found: Analysis) -> Iterator[Grid | Text]:
    """One after another, each with a title."""
    yield _size(found)
    yield _memory(found)
    yield _times(found)
    yield _roofline(found)
    yield Text(f"{found.roofline.bound}-bound: {MEANING[found.roofline.bound]}")
    yield from map(Text, above_peak(found.roofline))
    yield _operators(found)
    if any(median(each.shares) > 1 for each in found.operators):
        yield Text(ABOVE)
    yield _scaling(found)
    for each in found.scaling:
        if each.samples_per_second is None:
            yield Text(f"{_named(each)} {each.value:,}: {each.reason or NOT_RUN}")
    if "width" not in scales_by(workload):
        yield Text(f"{workload.name} has no width to scale")


def above_peak(found: Roofline) -> Iterator[str]:
    """What a share of more than the whole means, where there is one."""
    if found.compute_share > 1:
        yield (
            "MFU above 100 %: the machine was busier while its peak was measured than during the step, or a "
            "convolution took fewer FLOPs than are counted"
        )
    if found.memory_share > 1:
        yield "bytes above 100 %: caches served, or the machine was busier while its peak was measured"


def _size(found: Analysis) -> Grid:
    size = found.size
    rows = [
        (
            each.name,
            f"{each.parameters:,}",
            _bytes(each.parameter_bytes),
            _si(each.forward_flops),
            _si(each.train_flops),
        )
        for each in size.modules
        if each.parameters or each.train_flops
    ]
    own = size.parameters - sum(each.parameters for each in size.modules)
    if own:
        own_bytes = size.parameter_bytes - sum(each.parameter_bytes for each in size.modules)
        rows.append(("(the model's own)", f"{own:,}", _bytes(own_bytes), "", ""))
    total = (f"{size.parameters:,}", _bytes(size.parameter_bytes), _si(size.forward_flops), _si(size.train_flops))
    rows.append(("all", *total))
    per_sample = (_si(size.forward_flops / found.samples), _si(size.train_flops / found.samples))
    rows.append(("per sample", "", "", *per_sample))
    columns = ("module", "parameters", "bytes", "FLOPs forward", "FLOPs train")
    return Grid(title="Size, by module", columns=columns, rows=rows)


def _memory(found: Analysis) -> Grid:
    memory = found.memory
    rows = [
        (each.purpose, "" if each.whole_bytes is None else _bytes(each.whole_bytes), _bytes(each.at_peak_bytes))
        for each in memory.shares
    ]
    rows.append(("inside operators", "", _bytes(memory.workspace_bytes)))
    rows.append(("measured peak", "", _bytes(memory.measured_peak_bytes)))
    rows.append(("followed", "", f"{memory.agreement:.1%}"))
    return Grid(title="Memory of a step", columns=("purpose", "whole", "at the peak"), rows=rows)


def _times(found: Analysis) -> Grid:
    times = found.times
    rows = [(phase, _seconds(median(values))) for phase, values in times.phase_seconds.items()]
    step = median(times.step_seconds)
    rows.append(("whole step", _seconds(step)))
    rows.append(("data, one batch", _seconds(median(times.data_seconds)) if times.data_seconds else "no samples"))
    rows.append(("profiled step", f"{_seconds(median(times.profiled_seconds))} ({times.profiling_cost:.2f}x)"))
    rows.append(("samples per second", f"{found.samples / step:,.0f}"))
    title = f"Time, median of {len(times.step_seconds)} rounds"
    return Grid(title=title, columns=("part", "time"), rows=rows)


def _roofline(found: Analysis) -> Grid:
    roofline = found.roofline
    rates = found.peaks.flops_per_second
    rows = [
        (f"peak FLOP/s, {precision}", _si(rate), f"{_si(found.work.flops[precision])}FLOP a step")
        for precision, rate in rates.items()
    ]
    rows += [
        ("peak bytes/s", _si(found.peaks.bytes_per_second), "a large copy"),
        ("achieved FLOP/s", _si(roofline.flops_per_second), f"{roofline.compute_share:.1%} of peak (MFU)"),
        ("achieved bytes/s", _si(roofline.bytes_per_second), f"{roofline.memory_share:.1%} of peak"),
        ("traffic", _bytes(roofline.traffic_bytes), f"{found.work.operators:,} operators"),
        (
            "arithmetic intensity",
            f"{roofline.arithmetic_intensity:.3g}",
            f"FLOP/B; ridge point {roofline.ridge_point:.3g}",
        ),
    ]
    title = "Roofline, against peaks measured here"
    return Grid(title=title, columns=("", "value", ""), rows=rows, text=frozenset({0, 2}))


def _operators(found: Analysis) -> Grid:
    rows = [
        (each.kind, each.shape, f"{_si(each.rate)}{each.unit}", f"{median(each.shares):.0%}")
        for each in found.operators
    ]
    return Grid(
        title="Operators, each in turn with the peak's own work",
        columns=("kind", "shape", "rate", "of peak"),
        rows=rows,
    )


def _scaling(found: Analysis) -> Grid:
    own = ScalePoint(
        field=AS_IT_IS,
        value=found.samples,
        flops=found.work.total_flops,
        seconds=found.times.step_seconds,
        samples=found.samples,
    )
    rows = [_scale_row(each) for each in (own, *found.scaling)]
    return Grid(title="Scaling", columns=("changed", "to", "FLOPs", "time", "samples/s"), rows=rows)


def _scale_row(point: ScalePoint) -> tuple[str, ...]:
    name, value = _named(point), "" if point.field == AS_IT_IS else f"{point.value:,}"
    if point.samples_per_second is None:
        return name, value, "", "-", "-"
    return name, value, _si(point.flops), _seconds(median(point.seconds)), f"{point.samples_per_second:,.0f}"


def _named(point: ScalePoint) -> str:
    return point.field.replace("_", " ")


def _si(value: float) -> str:
    """With a decimal prefix, as rates and FLOPs are given; a space at the end or before it."""
    for size, prefix in PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "


def _bytes(value: float) -> str:
    return f"{value / 2**20:,.2f} MiB"


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"
