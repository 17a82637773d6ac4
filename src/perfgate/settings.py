"""``[tool.perfgate]`` in pyproject.toml: thresholds, budgets and the map of renamed benchmarks."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfgate.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What may be set; every field has a default that works without any file."""

    results: str = "results"
    """Folder of saved runs, relative to the project's root."""
    threshold: float = 0.20
    """Smallest change of a sampled or paired metric that counts, as a fraction.

    One saved run against one new one differs by 2-7 % on a shared machine with nothing changed (one standard
    deviation), so that a suite of 60 benchmarks needs about this much to stay green.
    """
    thresholds: Mapping[str, float] = field(default_factory=lambda: {"peak_bytes": 0.01})
    """Thresholds of single metrics, sampled or counted; a counted metric without one may not change at all."""
    groups: Mapping[str, float] = field(default_factory=dict)
    """Thresholds of sampled and paired metrics of whole groups of benchmarks, where nothing is set for the metric."""
    warmup_seconds: float = 3.0
    """Longest warm-up of each side of a benchmark after its first call."""
    timed_seconds: float = 4.0
    """What the timed rounds of a benchmark may take, plain twin included."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Old benchmark id -> new id, so that a rename keeps its history."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            SettingsError: naming the field and what it takes.
        """
        for key, value in [("threshold", self.threshold), *self.thresholds.items(), *self.groups.items()]:
            if not 0 <= value < 10:
                raise SettingsError(f"[tool.perfgate] {key} = {value}: a fraction is expected (0.05 is 5 %)")
        for key in ("warmup_seconds", "timed_seconds"):
            if not 0 < getattr(self, key) < math.inf:
                raise SettingsError(f"[tool.perfgate] {key} must be more than 0 seconds, got {getattr(self, key)}")

    def threshold_of(self, metric: str, group: str) -> float:
        """The fraction by which a sampled or paired ``metric`` of a benchmark in ``group`` may get worse."""
        return self.thresholds.get(metric, self.groups.get(group, self.threshold))

    def allowance_of(self, metric: str) -> float:
        """The fraction by which a counted ``metric`` may get worse: nothing, unless set."""
        return self.thresholds.get(metric, 0.0)


def load(root: Path) -> Settings:
    """Settings of the project at ``root``; defaults where it has none.

    Raises:
        SettingsError: where the file is not TOML, or a key or its type is unknown.
    """
    file = root / "pyproject.toml"
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: not readable as TOML: {error}") from error
    return from_table(document.get("tool", {}).get("perfgate", {}))


def from_table(table: Mapping[str, Any]) -> Settings:
    """Settings from the parsed table; see :func:`load`."""
    defaults = {each.name: getattr(Settings(), each.name) for each in dataclasses.fields(Settings)}
    for key, value in table.items():
        if key not in defaults:
            raise SettingsError(f"[tool.perfgate] has no setting {key!r}; it has: {', '.join(defaults)}")
        _check_type(key, value, defaults[key])
    thresholds = {**defaults["thresholds"], **table.get("thresholds", {})}
    return Settings(**{**table, "thresholds": thresholds})


def _check_type(key: str, value: Any, default: Any) -> None:
    wanted: type | tuple[type, ...] = (int, float) if isinstance(default, float) else type(default)
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise SettingsError(f"[tool.perfgate] {key}: expected {type(default).__name__}, got {value!r}")
    if isinstance(value, dict):
        inner: Any = "" if key == "renamed" else 0.0
        for name, each in value.items():
            _check_type(f"{key}.{name}", each, inner)
