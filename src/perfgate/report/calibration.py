"""What a machine can tell apart, benchmark by benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from perfgate.report import numbers, text
from perfgate.verdict.calibration import Calibrated


def table(found: Sequence[Calibrated]) -> str:
    """One line per benchmark and metric, noisiest first, and how many cannot gate by time. Plain text."""
    lines = ["noise of a pair, of a process; smallest detectable change; limit"]
    for each in sorted(found, key=lambda one: -one.noise.pair_deviation):
        noise = each.noise
        visible = numbers.fraction(noise.detectable) if noise.detectable is not None else "none"
        parts = (numbers.fraction(noise.pair_deviation), numbers.fraction(noise.process_deviation), visible)
        columns = "".join(f"{part:>9}" for part in (*parts, numbers.fraction(each.threshold)))
        unfit = "" if each.fit else "  unfit to gate by time"
        lines.append(f"{columns}  {noise.metric} {text.plain(noise.id)}{unfit}")
    unfit_count = sum(not each.fit for each in found)
    lines.append(f"{unfit_count} of {len(found)} unfit to gate by time (detectable change above twice the limit)")
    return "\n".join(lines) + "\n"
