"""How much do two processes that run the same code differ, and what makes them differ less?

Takes pairs of fresh processes, both with one ResNet-18 training step, and prints the standard deviation of the log
ratio of their medians: with and without huge pages for malloc, rounds one process after the other and alternating
(A B B A). Identical code: every difference is noise. Run it on a quiet machine:

    python tools/pair_noise.py --pairs 8

One pair takes about 12 s on two cores, so the table of 4 x 8 pairs takes about 6 minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from perfgate.launch import HUGE_PAGES, quiet_environment

WARMUP_ROUNDS = 5
BEYOND = 0.03  # the change a gate should see


def work() -> None:
    """The child: reads numbers of rounds from standard input, answers with their seconds."""
    import torch

    from perfgate.measure.clock import clock_for, time_round
    from workloads import ResNet18

    step = ResNet18().train_step()
    device = torch.device("cpu")
    step.build(device)
    clock = clock_for(device)
    target = clock.target(step.run)
    for line in sys.stdin:
        print(json.dumps([time_round(clock, target).wall_seconds for _ in range(int(line))]), flush=True)


class Child:
    """One measuring process that works only when asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """``process`` runs :func:`work`."""
        self._process = process

    def take(self, rounds: int) -> list[float]:
        """Seconds of that many rounds, taken now.

        Raises:
            RuntimeError: where the process died.
        """
        reading, writing = self._process.stdout, self._process.stdin
        if reading is None or writing is None:
            raise RuntimeError("the measuring process has no pipes")
        print(rounds, file=writing, flush=True)
        answer = reading.readline()
        if not answer:
            raise RuntimeError(f"the measuring process died with exit code {self._process.wait()}")
        return [float(each) for each in json.loads(answer)]


@contextmanager
def child(*, huge_pages: bool) -> Iterator[Child]:
    """A fresh process, with or without huge pages for malloc."""
    environment = quiet_environment(os.environ)
    if not huge_pages:
        environment["GLIBC_TUNABLES"] = environment["GLIBC_TUNABLES"].replace(HUGE_PAGES, "").strip(":")
    with subprocess.Popen(  # noqa: S603 - this very file
        [sys.executable, __file__, "--work"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        yield Child(process)
        if process.stdin:
            process.stdin.close()


def log_ratio(rounds: int, *, huge_pages: bool, alternating: bool) -> float:
    """The log ratio of one pair: 0 without noise."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(child(huge_pages=huge_pages)) for _ in range(2))
        first.take(WARMUP_ROUNDS)
        second.take(WARMUP_ROUNDS)
        if not alternating:
            return math.log(statistics.median(first.take(rounds)) / statistics.median(second.take(rounds)))
        ratios = []
        for number in range(rounds):
            order = (first, second) if number % 2 == 0 else (second, first)
            seconds = {each: each.take(1)[0] for each in order}
            ratios.append(math.log(seconds[first] / seconds[second]))
        return statistics.median(ratios)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=8, help="pairs of processes per row (default 8)")
    parser.add_argument("--rounds", type=int, default=30, help="rounds of each process (default 30)")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work()
        return
    print(f"{arguments.pairs} pairs of processes, {arguments.rounds} rounds each, resnet18-cifar-tv-b32 training step")
    print("huge pages  rounds       standard deviation  mean    beyond 3 %")
    for huge_pages in (False, True):
        for alternating in (False, True):
            ratios = [
                log_ratio(arguments.rounds, huge_pages=huge_pages, alternating=alternating)
                for _ in range(arguments.pairs)
            ]
            beyond = sum(abs(ratio) > BEYOND for ratio in ratios)
            deviation = math.sqrt(sum(ratio**2 for ratio in ratios) / len(ratios))  # about 0, the known truth
            print(
                f"{'on' if huge_pages else 'off':<10}  {'alternating' if alternating else 'in turn':<11}  "
                f"{deviation:>16.1%}    {statistics.mean(ratios):>+5.1%}  {beyond:>5} of {len(ratios)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
