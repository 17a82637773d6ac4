"""Saves that are disturbed: many at once, killed, and on a full disk; through perfgate and through pytest-benchmark."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import resource
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from pytest_benchmark.logger import Logger
from pytest_benchmark.storage.file import FileStorage
from pytest_benchmark.utils import get_current_time, get_machine_id

from fault_documents import example
from perfgate.errors import PerfgateError
from perfgate.results.document import dumps, to_document
from perfgate.results.store import Store, read
from perfgate.results.writer import TEMPORARY

Save = Callable[[Path], None]
SEED = 11
TRIALS = 5  # undisturbed saves, to know how long one takes
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to save the example into a folder."""

    name: str
    save: Save
    is_whole: Callable[[Path], bool]
    """Whether a file can be read again."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What is in a folder afterwards."""

    whole: int
    broken: int
    """Files with the name of a run that cannot be read."""
    temporary: int
    """Files that no reader takes for a run."""


def ways(label: str = "") -> tuple[Way, Way]:
    """Of perfgate and of stock. What they save is made now, before anything is disturbed; ``label`` names it."""
    run, stock = example(label)

    def save_ours(folder: Path) -> None:
        Store(folder).save(run, stock)

    def save_stock(folder: Path) -> None:
        """As its session does with --benchmark-save-data: a counter, then the label or ``<commit>_<time>``."""
        storage = FileStorage(str(folder), logger=Logger(Logger.QUIET), default_machine_id=get_machine_id())
        storage.save(stock, label or f"{run.commit['id']}_{get_current_time()}")

    return (
        Way(name="perfgate", save=save_ours, is_whole=_is_run),
        Way(name="stock", save=save_stock, is_whole=_is_json),
    )


def size_bytes() -> int:
    """Of the example in perfgate's file."""
    return len(dumps(to_document(*example())))


def _is_run(file: Path) -> bool:
    try:
        read(file)
    except PerfgateError:
        return False
    return True


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return True


def found(folder: Path, way: Way) -> Found:
    """Count the files below a folder."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    runs = [file for file in files if not file.name.startswith(TEMPORARY)]
    whole = sum(map(way.is_whole, runs))
    return Found(whole=whole, broken=len(runs) - whole, temporary=len(files) - len(runs))


def crowd(way: Way, writers: int, saves: int) -> tuple[Found, int]:
    """So many processes that save at once, again and again: what is there afterwards, and how many saves said no."""
    barrier = FORK.Barrier(writers)
    refused = FORK.Value("i", 0)
    with tempfile.TemporaryDirectory() as name:
        processes = [
            FORK.Process(target=_save_often, args=(way.save, Path(name), saves, barrier, refused))
            for _ in range(writers)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        return found(Path(name), way), refused.value


def _save_often(save: Save, folder: Path, saves: int, barrier: Barrier, refused: Any) -> None:
    barrier.wait()
    for _ in range(saves):
        try:
            save(folder)
        except Exception:  # noqa: BLE001 - whatever the other tool raises: the run is lost, but somebody was told
            with refused.get_lock():
                refused.value += 1


def kills(way: Way, number: int) -> tuple[Found, int]:
    """So many saves, each killed at a random moment: what is there afterwards, and how many had not finished."""
    generator = random.Random(SEED)  # noqa: S311
    killed = 0
    with tempfile.TemporaryDirectory() as name:
        usual_seconds = statistics.median(_seconds(way) for _ in range(TRIALS))
        for _ in range(number):
            with _saving(way, Path(name)) as process:
                time.sleep(generator.uniform(0, usual_seconds))
                os.kill(process, signal.SIGKILL)
                killed += os.WIFSIGNALED(os.waitpid(process, 0)[1])
        return found(Path(name), way), killed


def _seconds(way: Way) -> float:
    """What an undisturbed save takes in a process of its own."""
    with tempfile.TemporaryDirectory() as name, _saving(way, Path(name)) as process:
        started = time.perf_counter()
        os.waitpid(process, 0)
        return time.perf_counter() - started


@contextmanager
def _saving(way: Way, folder: Path) -> Iterator[int]:
    """A child process that begins to save now."""
    ready, write = os.pipe()
    process = os.fork()
    if process == 0:
        os.write(write, b"x")
        try:
            way.save(folder)
        finally:
            os._exit(0)
    os.read(ready, 1)
    os.close(ready)
    os.close(write)
    yield process


def full_disk(way: Way) -> tuple[Found, bool, bool]:
    """A save that may write half a document: what is there, whether it raised, whether the old file is as it was."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        way.save(folder)
        (old,) = (file for file in folder.rglob("*") if file.is_file())
        before = old.read_bytes()
        process = os.fork()
        if process == 0:
            os._exit(_save_half(way, folder))
        raised = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 1
        return found(folder, way), raised, old.read_bytes() == before


def _save_half(way: Way, folder: Path) -> int:
    """1 where saving raised. No file may grow beyond half a document; without the signal, writing fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    half = size_bytes() // 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (half, half))
    try:
        way.save(folder)
    except Exception:  # noqa: BLE001 - as above
        return 1
    return 0
