"""Who works when: the same benchmarks in all processes, set up one after the other, their rounds in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perfgate.pairs.side import Side
from perfgate.turns import BLOCK


def take_turns(sides: Sequence[Side], names: Sequence[str], progress: Callable[[str], None]) -> None:
    """Measure the benchmarks ``names`` in that order, in every side that has them; ends early where a side dies.

    ``sides`` have collected and wait. A benchmark that one side lacks is measured by the other alone. ``progress`` is
    called before each benchmark.
    """
    for side in sides:
        mine = set(side.ids)
        side.go(ids=[name for name in names if name in mine])
    for name in names:
        if any(side.death for side in sides):
            return
        progress(name)
        _measure([side for side in sides if side.at("start", name)])
    for side in sides:
        side.finish()


def _measure(sides: Sequence[Side]) -> None:
    """One benchmark, from the start of it to the start of the next."""
    for side in sides:
        side.go()
        if side.death:
            return
    agreeing = [side for side in sides if side.at("agree")]
    rounds = max((rounded(side.wished_rounds) for side in agreeing), default=0)
    for side in agreeing:
        side.go(rounds=rounds)
    for number in range(rounds):
        for side in order(agreeing, number):
            if side.at("round"):  # one whose round raised is further on
                side.go()
            if side.death:
                return
    for side in agreeing:
        while not (side.death or side.at("start") or side.at("finish")):
            side.go(rounds=rounds)  # the rest of it, and what else it measures: that has no partner


def rounded(rounds: int) -> int:
    """The next multiple of four; a single round of a smoke run stays one."""
    return rounds if rounds == 1 else -(-rounds // BLOCK) * BLOCK


def order(sides: Sequence[Side], number: int) -> Sequence[Side]:
    """First to last in round ``number``: A B, B A, B A, A B.

    Twins change places every round, so that only within four rounds each side is first once with either order of twins.
    """
    return sides if number % BLOCK in (0, 3) else sides[::-1]
