"""``[tool.perfgate]`` in pyproject.toml: thresholds, budgets and the map of renamed benchmarks."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfgate.errors import EmptyFile, SettingsError, UnreadableRun
from perfgate.results.reader import decode, read_bytes

ENDS = ("/", "::", "[")  # where the beginning of a node id may end


Table = Mapping[str, float]
"""A limit per metric; ``threshold`` stands for all sampled and paired ones, ``alpha`` is a probability."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What may be set; every field has a default that works without any file."""

    results: str = "results"
    """Folder of saved runs, relative to the project's root."""
    subject: str = "src/workloads"
    """Folder of the package under test, relative to the project's root: what differs between base and head."""
    threshold: float = 0.03
    """Smallest change of a sampled or paired metric that counts, as a fraction: less is not worth blocking for."""
    alpha: float = 0.05
    """Probability of at least one false alarm over a whole clean suite."""
    thresholds: Table = field(default_factory=lambda: {"peak_bytes": 0.01})
    """Thresholds of single metrics, sampled or counted; a counted metric without one may not change at all."""
    groups: Mapping[str, Table] = field(default_factory=dict)
    """The same for groups of benchmarks: a number for all sampled and paired metrics, or a table of metrics,
    ``threshold`` and ``alpha``."""
    benchmarks: Mapping[str, Table] = field(default_factory=dict)
    """The same for single benchmarks, by node id or the beginning of one that ends before ``/``, ``::`` or ``[``."""
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
        for where, table in self.tables():
            for key, value in table.items():
                _check_range(f"[tool.perfgate{where}] {key}", value, is_alpha=key == "alpha")
        for key in ("warmup_seconds", "timed_seconds"):
            if not 0 < getattr(self, key) < math.inf:
                raise SettingsError(f"[tool.perfgate] {key} must be more than 0 seconds, got {getattr(self, key)}")
        if Path(self.subject).is_absolute() or ".." in Path(self.subject).parts:
            raise SettingsError(f"[tool.perfgate] subject = {self.subject!r}: a folder inside the project is expected")

    def tables(self) -> Iterator[tuple[str, Table]]:
        """All limits: each table, and before it its place below ``[tool.perfgate]``, such as ``.groups.'amp'``."""
        yield "", {"threshold": self.threshold, "alpha": self.alpha}
        yield ".thresholds", self.thresholds
        for kind in ("groups", "benchmarks"):
            for name, table in getattr(self, kind).items():
                yield f".{kind}.{name!r}", table

    def threshold_of(self, metric: str, group: str, name: str = "") -> float:
        """The fraction by which a sampled or paired ``metric`` of the benchmark ``name`` in ``group`` may get worse.

        The most specific that is set: of the benchmark, of its group's metric, of the metric, of the group, of all.
        """
        mine, ours = self._of_benchmark(name), self.groups.get(group, {})
        choices = (
            mine.get(metric, mine.get("threshold")),
            ours.get(metric),
            self.thresholds.get(metric),
            ours.get("threshold"),
        )
        return next((each for each in choices if each is not None), self.threshold)

    def allowance_of(self, metric: str, group: str = "", name: str = "") -> float:
        """The fraction by which a counted ``metric`` may get worse: nothing, unless set."""
        for table in (self._of_benchmark(name), self.groups.get(group, {}), self.thresholds):
            if metric in table:
                return table[metric]
        return 0.0

    def alpha_of(self, group: str, name: str) -> float:
        """The probability of a false alarm."""
        return self._of_benchmark(name).get("alpha", self.groups.get(group, {}).get("alpha", self.alpha))

    def _of_benchmark(self, name: str) -> Table:
        """The table whose key fits ``name`` most closely."""
        fitting = [key for key in self.benchmarks if fits(key, name)]
        return self.benchmarks[max(fitting, key=len)] if fitting else {}


def fits(key: str, name: str) -> bool:
    """Whether ``key`` is the node id ``name``, or a beginning of it that ends where a part of it ends."""
    return name == key or name.startswith(tuple(key + end for end in ENDS))


def _check_range(where: str, value: float, *, is_alpha: bool) -> None:
    if is_alpha and not 0 < value < 1:
        raise SettingsError(f"{where} = {value}: a probability between 0 and 1 is expected")
    if not 0 <= value < 10:
        raise SettingsError(f"{where} = {value}: a fraction is expected (0.05 is 5 %)")


def load(root: Path) -> Settings:
    """Settings of the project at ``root``; defaults where it has none.

    Raises:
        SettingsError: where the file is not TOML, or a key or its type is unknown.
    """
    file = root / "pyproject.toml"
    try:
        document = tomllib.loads(decode(read_bytes(file.resolve()), str(file))) if file.is_file() else {}
    except EmptyFile:
        document = {}
    except (UnreadableRun, ValueError, RecursionError) as error:  # tomllib.TOMLDecodeError is a ValueError
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
    nested = {kind: _tables_of(kind, table.get(kind, {})) for kind in ("groups", "benchmarks")}
    return Settings(**{**table, "thresholds": thresholds, **nested})


def _tables_of(kind: str, given: Mapping[str, Any]) -> dict[str, Table]:
    """Limits per name; a bare number is its threshold."""
    tables: dict[str, Table] = {}
    for name, each in given.items():
        tables[name] = each if isinstance(each, dict) else {"threshold": each}
    for name, table in tables.items():
        for metric, value in table.items():
            _check_type(f"{kind}.{name}.{metric}", value, 0.0)
    return tables


def _check_type(key: str, value: Any, default: Any) -> None:
    wanted: Any = (int, float) if isinstance(default, float) else type(default)
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise SettingsError(f"[tool.perfgate] {key}: expected {type(default).__name__}, got {value!r}")
    inner: Any = {"renamed": "", "thresholds": 0.0}.get(key)
    if inner is not None:
        for name, each in value.items():
            _check_type(f"{key}.{name}", each, inner)
