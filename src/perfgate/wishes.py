"""What the command line asks of a session, and the contradictions in it that are refused."""

from __future__ import annotations

import re
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
    resume: bool
    """Whether to go on with a run that was killed."""
    wait_seconds: float
    """How long to wait for a device that another suite uses."""
    limit_seconds: float | None
    """What a benchmark may take; ``None`` to decide by what it took before."""
    workers: int
    """Measuring processes side by side (``-n``); 0 where this one measures."""
    plan: bool = False
    """Whether to tell what would be done, and do none of it."""
    describe: bool = False
    """Whether a process that takes turns reads the canary also where nothing uses ``measure``."""


def from_options(option: Any, root: Path, results: str) -> Wishes:
    """The wishes in pytest's parsed options, pytest-benchmark's among them; ``results`` is the folder in the settings.

    Raises:
        SettingsError: for a command line that looks like a gate and would judge nothing.
    """
    in_turns = option.perfgate_turns is not None  # a measuring process of another command, which saves and judges
    compare = option.benchmark_compare if option.benchmark_compare != [] and not in_turns else False
    if option.perfgate_plan:
        _refuse_beside_plan(option, in_turns=in_turns)
    if not in_turns:
        _refuse_contradictions(option, compare)
    measures = not (in_turns or option.perfgate_smoke or option.benchmark_disable or option.benchmark_skip)
    measures = measures and not option.perfgate_plan
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
        resume=option.perfgate_resume,
        wait_seconds=option.perfgate_wait,
        limit_seconds=option.perfgate_limit,
        workers=0 if in_turns else workers_of(option),
        plan=option.perfgate_plan,
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
    if option.perfgate_resume and (option.perfgate_no_save or option.perfgate_smoke or option.benchmark_disable):
        raise SettingsError("--perfgate-resume goes on with a run that is saved in the end: leave out the other option")
    if workers_of(option) and option.benchmark_only:
        raise SettingsError(
            "--benchmark-only with -n: pytest-benchmark refuses it; name the folder of benchmarks instead"
        )
    if compare:
        _refuse_judging_nothing(option)


def _refuse_beside_plan(option: Any, *, in_turns: bool) -> None:
    if in_turns:
        raise SettingsError("--perfgate-plan is for pytest itself: a command that measures in turns takes no plan")
    for name, why in (
        ("perfgate_smoke", "the times known are not of smoke runs"),
        ("perfgate_resume", "it goes on with measuring"),
        ("perfgate_json", "there are no verdicts to write"),
        ("benchmark_save", "nothing is saved"),
        ("benchmark_disable", "nothing would be measured anyway"),
        ("benchmark_skip", "nothing would be measured anyway"),
        ("collectonly", "it does not ask the benchmarks"),
        ("setuponly", "it does not ask the benchmarks"),
        ("setupplan", "it does not ask the benchmarks"),
    ):
        if getattr(option, name, False):
            flag = "--collect-only" if name == "collectonly" else "--" + name.replace("_", "-")
            raise SettingsError(f"--perfgate-plan with {flag}: {why}; leave out one of them")
    if workers_of(option):
        raise SettingsError("--perfgate-plan with -n: times with workers side by side are not known; leave out -n")


def _refuse_judging_nothing(option: Any) -> None:
    if getattr(option, "dist", "no") == "each":
        raise SettingsError("--benchmark-compare with --dist each would measure everything in every worker: use -n N")
    for name in ("benchmark_disable", "benchmark_skip", "perfgate_smoke", "setuponly", "setupplan"):
        if getattr(option, name, False):
            flag = "--" + name.replace("_", "-")
            raise SettingsError(f"--benchmark-compare with {flag} would judge nothing: leave out one of them")


def workers_of(option: Any) -> int:
    """The number of xdist workers asked for; 0 for none."""
    if getattr(option, "dist", "no") == "no":
        return 0
    specs = [re.match(r"(\d+)\*", str(spec)) for spec in getattr(option, "tx", None) or []]
    return sum(int(found[1]) if found else 1 for found in specs)
