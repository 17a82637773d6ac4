"""One spelling of a number: three significant digits with units, the interval beside the estimate."""

from __future__ import annotations

import math

from perfgate.verdict.estimate import Estimate

UNKNOWN = "-"


def significant(value: float, digits: int = 3) -> str:
    """``value`` with three significant digits and no exponent: 1.23, 12.3, 123, 1230."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}"


def seconds(value: float | None) -> str:
    """``0.0123`` as ``12.3 ms``."""
    if value is None:
        return UNKNOWN
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1:
            return f"{significant(value * factor)} {unit}"
    return f"{significant(value * 1e9)} ns"


def size(value: float | None) -> str:
    """Bytes with a binary unit, ``87.1 MiB``."""
    if value is None:
        return UNKNOWN
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(value) >= 1024**power:
            return f"{significant(value / 1024**power)} {unit}"
    return f"{value:.0f} B"


def change(ratio: float | None) -> str:
    """``1.05`` as ``+5.0 %``."""
    return UNKNOWN if ratio is None else f"{(ratio - 1) * 100:+.1f} %"


def percent(ratio: float) -> str:
    """``1.05`` as ``+5.0``, for intervals; sizes beyond a factor of ten as ``>+900``."""
    return ">+900" if ratio > 10 else f"{(ratio - 1) * 100:+.1f}"


def fraction(value: float) -> str:
    """``0.031`` as ``3.1 %``; what has no bound as ``none``."""
    return f"{value * 100:.1f} %" if math.isfinite(value) else "none"


def factor(estimate: Estimate | None) -> str:
    """A speedup with its interval: ``1.24x [1.22, 1.27]``."""
    if estimate is None:
        return UNKNOWN
    parts = (estimate.value, estimate.low, estimate.high)
    value, low, high = (f"{each:.2f}" if each < 10 else significant(each) for each in parts)
    return f"{value}x [{low}, {high}]"


def duration(total_seconds: float) -> str:
    """``200`` as ``3 min 20 s``."""
    minutes, rest = divmod(round(total_seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
