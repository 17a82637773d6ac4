"""The beginning of measuring: the process's share of the machine, its locks, and what watches it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from perfgate import shares
from perfgate.errors import PerfgateError
from perfgate.limits import SHM_BYTES, shortages
from perfgate.stash import TERMINAL, is_worker, say
from perfgate.watch import Watch

if TYPE_CHECKING:
    from perfgate.gate import Gate


def open_session(config: pytest.Config, gate: Gate, benchmarks: Sequence[pytest.Item]) -> None:
    """Make this process fit to measure ``benchmarks``.

    Raises:
        UsageError: where another suite measures on its devices, or there are none for it. In a worker, which has
            nobody to tell this to, every benchmark fails with it instead.
    """
    if config.option.perfgate_turns is not None:
        _take_share(gate)  # its controller has the locks
        return
    if config.option.benchmark_disable or not _is_wanted(gate, benchmarks):
        return
    distributed = is_worker(config)
    if distributed:
        stock = config._benchmarksession  # type: ignore[attr-defined]
        stock.disabled = stock.xdist_warning = stock.xdist_benchmark_found = False
    try:
        _take_share(gate)
        if not gate.wishes.smoke and shares.LOCKED not in os.environ:
            several = any(item.get_closest_marker("multigpu") for item in benchmarks)
            gate.occupy(all_gpus=several, say=lambda text: say(config, text))
    except PerfgateError as error:
        if not distributed:
            raise pytest.UsageError(str(error)) from error
        gate.lost = f"{error.code}: {error}"
        return
    _watch(config, gate)
    loads = any(item.get_closest_marker("loader") for item in benchmarks)
    for text in () if distributed else shortages(SHM_BYTES if loads else 0):
        say(config, text)
    gate.open = True


def _is_wanted(gate: Gate, benchmarks: Sequence[pytest.Item]) -> bool:
    """Whether anybody asked this plugin: other projects' suites run as they always did."""
    own = any("measure" in item.fixturenames for item in benchmarks)  # type: ignore[attr-defined]
    return own or bool(gate.wishes.compare) or gate.wishes.save


def _take_share(gate: Gate) -> None:
    share = shares.share_of(os.environ)
    if share and not gate.wishes.smoke:
        shares.take(share, gate.wishes.device)
        gate.share = share


def _watch(config: pytest.Config, gate: Gate) -> None:
    worker = config.pluginmanager.get_plugin("perfgate-worker")
    if worker and worker.stack:
        worker.watch_crashes()
        gate.resources.watch = Watch(worker.stack, terminal=None)
    elif not worker:
        gate.resources.watch_over(config.stash[TERMINAL])
    if gate.keeping and gate.resources.watch:
        gate.keeping.announce_to(gate.resources.watch.journal)
