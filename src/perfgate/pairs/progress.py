"""What a long comparison tells while it runs."""

from __future__ import annotations


class Progress:
    """Hears everything and shows nothing; to be overridden."""

    def expected(self, benchmarks: int, pairs: int, seconds: float | None) -> None:
        """So many benchmarks in so many pairs; ``seconds`` of the first stage, ``None`` where nobody knows yet."""

    def begins(self, name: str) -> None:
        """A side begins a benchmark."""

    def pair_done(self, number: int, pairs: int, seconds: float) -> None:
        """The pair ``number`` (from 1) of the first stage is done, ``seconds`` after the first began."""

    def second_stage(self, candidates: int, pairs: int) -> None:
        """So many benchmarks may have changed, and are measured again in so many pairs."""

    def fresh_pair_done(self, number: int, pairs: int) -> None:
        """The pair ``number`` (from 1) of the second stage is done."""

    def note(self, text: str) -> None:
        """Something happened that one should know."""
