"""How many rounds: fixed before the first one, so that no result decides when to stop."""

from __future__ import annotations

FEWEST, FEWEST_WHEN_SLOW, MOST = 20, 10, 120
PATIENCE = 3.0  # the fewest rounds may overrun the time budget by this factor before the slow minimum counts


def rounds_for(round_seconds: float, budget_seconds: float) -> int:
    """An even number of rounds: what fits into the budget, 20 to 120, or down to 10 where 20 would take far too long.

    ``round_seconds`` is plain and variant together. Even, because pairs alternate their order (A B B A).
    """
    fitting = int(budget_seconds / round_seconds) if round_seconds > 0 else MOST
    fewest = FEWEST if FEWEST * round_seconds <= PATIENCE * budget_seconds else FEWEST_WHEN_SLOW
    rounds = min(max(fitting, fewest), MOST)
    return rounds + rounds % 2
