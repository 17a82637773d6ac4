"""The instrument itself: what does a measured round cost beyond a bare loop around the same empty function?

One step here is 1,000 rounds, so that milliseconds in the table are microseconds per round.
"""

import time
from contextlib import nullcontext

import pytest
import torch

from perfgate.measure.clock import WallClock, time_round
from perfgate.measure.rounds import Interleaving, Side
from workloads.steps import Outcome
from workloads.workload import Tolerance

pytestmark = pytest.mark.benchmark(group="instrument")

ROUNDS = 1000


class BareLoop:
    """Two readings of the clock around an empty function, kept in a list."""

    samples, training, compiled, opaque, repeatable, tolerance = ROUNDS, False, False, False, True, Tolerance()

    def __init__(self):
        self.identity = {"step": type(self).__name__, "rounds": ROUNDS}

    def __str__(self):
        return f"{ROUNDS} empty rounds/loop/{type(self).__name__}"

    def expected_against(self, plain):
        return "slower"

    def unsuitable(self, device):
        return None

    def build(self, device):
        self.seconds = []

    def release(self):
        self.seconds = []

    def active(self):
        return nullcontext()

    def work(self):
        """Nothing."""

    def run(self):
        self.seconds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            self.work()
            self.seconds.append(time.perf_counter() - start)

    def run_uncompiled(self):
        self.run()

    def outcome(self):
        self.run()
        return Outcome("identical", {"rounds": torch.tensor(len(self.seconds))})

    def reference_outcome(self, variant):
        return self.outcome()

    def last_value(self):
        return None

    def resident_tensors(self):
        return ()

    def counts(self):
        return {}

    def figures(self):
        return ()

    def proof(self, counts):
        return {}


class InstrumentedLoop(BareLoop):
    """The same with everything that the instrument does around a round: hooks, technique's state, clock, record."""

    def run(self):
        empty = type("Empty", (BareLoop,), {"run": BareLoop.work})()
        side = Side(empty, WallClock())
        hooks = Interleaving(side, None)
        for _ in range(ROUNDS):
            hooks.before()
            timing = time_round(side.clock, side.target)
            side.timings.append(timing)
            hooks.after()
        self.seconds = [each.wall_seconds for each in side.timings]


def test_cost_of_a_round(measure):
    """1,000 instrumented rounds of an empty step, against a bare loop."""
    measure(InstrumentedLoop(), against=BareLoop())
