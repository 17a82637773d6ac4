"""What the command line asks of a session, and the contradictions in it that are refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfgate.errors import SettingsError

STOCK_TIMER = "time.perf_counter"


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the command line asked for."""

    root: Path
    """The project's root."""
    results: Path
    compare: str | bool
    """``False``, ``True`` for this machine's last run, or the run to compare with."""
    save: bool
    label: str
    smoke: bool
    strict: bool
    accept: bool
    """Whether benchmarks that are slower in this run become the baseline all the same."""
    device: str
    """``auto``, ``cpu`` or ``cuda``."""
    expect: str | None
    """``gpu`` where a session without one is to fail."""
    json: Path | None
    """Where to write the verdicts for machines."""
    describe: bool = False
    """Whether a process that takes turns reads the canary also where nothing uses ``measure``."""


def from_options(option: Any, root: Path, results: str) -> Wishes:
    """The wishes in pytest's parsed options, pytest-benchmark's among them; ``results`` is the folder in the settings.

    Raises:
        SettingsError: for a command line that looks like a gate and would judge nothing.
    """
    in_turns = option.perfgate_turns is not None  # a measuring process of another command, which saves and judges
    compare = option.benchmark_compare if option.benchmark_compare != [] and not in_turns else False
    if in_turns:
        _refuse_workers(option)
    else:
        _refuse_contradictions(option, compare)
    measures = not (in_turns or option.perfgate_smoke or option.benchmark_disable or option.benchmark_skip)
    asked_to_save = bool(option.benchmark_save or option.benchmark_autosave)
    return Wishes(
        root=root,
        results=(option.perfgate_results or root / results).absolute(),
        compare=compare,
        save=measures and (asked_to_save or not option.perfgate_no_save),
        label=option.benchmark_save or "",
        smoke=option.perfgate_smoke,
        strict=option.perfgate_strict,
        accept=option.perfgate_accept,
        device=option.perfgate_device,
        expect=option.perfgate_expect,
        json=option.perfgate_json.absolute() if option.perfgate_json else None,
        describe=option.perfgate_describe,
    )


def _refuse_contradictions(option: Any, compare: str | bool) -> None:  # noqa: FBT001 - as pytest-benchmark has it
    if isinstance(compare, str) and (Path(compare).is_dir() or "::" in compare or compare.endswith(".py")):
        raise SettingsError(
            f"--benchmark-compare took {compare!r} as the run to compare with. "
            f"Write the paths first: pytest {compare} --benchmark-compare"
        )
    for given, why in (
        ("benchmark_compare_fail", "there is nothing to compare with"),
        ("perfgate_accept", "it accepts what the comparison finds slower"),
        ("perfgate_json", "it writes the verdicts of the comparison"),
    ):
        if getattr(option, given) and not compare:
            raise SettingsError(f"--{given.replace('_', '-')} needs --benchmark-compare: {why}")
    if option.perfgate_json and not option.perfgate_json.absolute().parent.is_dir():
        raise SettingsError(f"--perfgate-json {option.perfgate_json}: there is no such folder")
    if str(option.benchmark_timer) != STOCK_TIMER:
        raise SettingsError(
            f"--benchmark-timer={option.benchmark_timer}: only the wall clock ({STOCK_TIMER}) is judged"
        )
    if not compare:
        return
    _refuse_workers(option)
    for name in ("benchmark_disable", "benchmark_skip", "perfgate_smoke", "setuponly", "setupplan"):
        if getattr(option, name, False):
            flag = "--" + name.replace("_", "-")
            raise SettingsError(f"--benchmark-compare with {flag} would judge nothing: leave out one of them")


def _refuse_workers(option: Any) -> None:
    if getattr(option, "numprocesses", None) or getattr(option, "dist", "no") != "no":
        raise SettingsError("a comparison cannot be made with -n: workers would disturb each other; leave out -n")
