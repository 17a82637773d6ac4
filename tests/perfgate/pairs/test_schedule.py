"""Who works when: one at a time, in an order in which nobody is favoured."""

import pytest

from perfgate.pairs.schedule import order, rounded, take_turns
from perfgate.pairs.side import Death


class Scripted:
    """A side in memory: benchmarks with the rounds they wish for, some of which raise or kill."""

    working = None
    """Which of them works."""

    def __init__(self, label, rounds, log, *, raises=(), kills=(), again=()):
        """``raises`` and ``kills`` hold (benchmark, round); ``again`` benchmarks that measure twice."""
        self.label, self.ids, self.death = label, list(rounds), None
        self._rounds, self._log, self._again = rounds, log, again
        self._raises, self._kills = raises, kills
        self._life = self._live()
        self._now = next(self._life)

    def _live(self):
        answer = yield "collected", ""
        for name in answer["ids"]:
            yield "start", name
            for _ in range(2 if name in self._again else 1):
                agreed = (yield "agree", name)["rounds"]
                for number in range(agreed):
                    yield "round", name
                    if (name, number) in self._kills:
                        self.death = Death(name, "crashed", f"{self.label} crashed")
                        while True:
                            yield "dead", ""
                    if (name, number) in self._raises:
                        break
                else:
                    yield "after", name
        yield "finish", ""
        yield "ended", ""

    def at(self, place, name=""):
        """As of a side."""
        return self._now[0] == place and (not name or self._now[1] == name)

    @property
    def wished_rounds(self):
        """As of a side."""
        return self._rounds[self._now[1]]

    def go(self, **answer):
        """Works at once, and nobody else may meanwhile."""
        assert Scripted.working is None
        Scripted.working = self.label
        self._log.append((self.label, *self._now))
        self._now = self._life.send(answer)
        Scripted.working = None

    def finish(self):
        """As of a side."""
        if self.at("finish"):
            self.go()


def rounds_of(log, name):
    """Who took the rounds of a benchmark, in order."""
    return "".join(label for label, place, of in log if (place, of) == ("round", name))


def measured(log, label):
    """The benchmarks that a side began, in order."""
    return [name for who, place, name in log if (who, place) == (label, "start")]


@pytest.fixture
def log():
    """Who worked from where on."""
    return []


def test_rounds_alternate_in_both_orders(log):
    """A B, B A, B A, A B."""
    sides = [Scripted("A", {"x": 8}, log), Scripted("B", {"x": 8}, log)]
    take_turns(sides, ["x"], lambda _: None)
    assert rounds_of(log, "x") == "ABBABAABABBABAAB"


def test_each_side_is_first_equally_often():
    """With the plain twin before and after its variant, which changes every round."""
    firsts = [order("AB", number)[0] for number in range(4)]
    assert sorted(firsts[::2]) == sorted(firsts[1::2]) == ["A", "B"]


@pytest.mark.parametrize(("wished", "taken"), [(1, 1), (2, 4), (4, 4), (5, 8), (101, 104)])
def test_rounds_are_a_multiple_of_four(wished, taken):
    """But for the single one of a smoke run."""
    assert rounded(wished) == taken


def test_both_take_the_larger_number_of_rounds(log):
    """What one process finds too few is not enough for the pair."""
    sides = [Scripted("A", {"x": 3}, log), Scripted("B", {"x": 6}, log)]
    take_turns(sides, ["x"], lambda _: None)
    assert rounds_of(log, "x").count("A") == rounds_of(log, "x").count("B") == 8


def test_the_order_is_the_one_given(log):
    """On both sides, with progress before each."""
    sides = [Scripted(label, {"x": 1, "y": 1, "z": 1}, log) for label in "AB"]
    told = []
    take_turns(sides, ["z", "x"], told.append)
    assert told == measured(log, "A") == measured(log, "B") == ["z", "x"]


def test_one_sets_up_after_the_other(log):
    """And neither takes a round before both have."""
    sides = [Scripted(label, {"x": 1}, log) for label in "AB"]
    take_turns(sides, ["x"], lambda _: None)
    assert [(label, place) for label, place, _ in log if place in {"start", "agree", "round"}] == [
        ("A", "start"),
        ("B", "start"),
        ("A", "agree"),
        ("B", "agree"),
        ("A", "round"),
        ("B", "round"),
    ]


def test_what_one_side_lacks_the_other_measures_alone(log):
    """Before, between and after what both have."""
    sides = [Scripted("A", {"x": 4, "y": 4}, log), Scripted("B", {"y": 4, "z": 4}, log)]
    take_turns(sides, ["x", "y", "z"], lambda _: None)
    assert measured(log, "A") == ["x", "y"]
    assert measured(log, "B") == ["y", "z"]
    assert (rounds_of(log, "x"), rounds_of(log, "y"), rounds_of(log, "z")) == ("AAAA", "ABBABAAB", "BBBB")


def test_a_round_that_raises_stops_its_own_side_only(log):
    """The other finishes its rounds, and both go on to the next benchmark."""
    sides = [
        Scripted("A", {"x": 4, "y": 4}, log, raises={("x", 1)}),
        Scripted("B", {"x": 4, "y": 4}, log),
    ]
    take_turns(sides, ["x", "y"], lambda _: None)
    assert rounds_of(log, "x").count("A") == 2
    assert rounds_of(log, "x").count("B") == 4
    assert rounds_of(log, "y") == "ABBABAAB"
    assert all(side.at("ended") for side in sides)


def test_a_death_ends_the_session(log):
    """In the middle of a round; the other side takes no more of them."""
    sides = [
        Scripted("A", {"x": 8, "y": 8}, log),
        Scripted("B", {"x": 8, "y": 8}, log, kills={("x", 1)}),
    ]
    take_turns(sides, ["x", "y"], lambda _: None)
    assert rounds_of(log, "x") == "ABB"
    assert measured(log, "A") == ["x"]


def test_a_side_that_is_dead_already_gives_nobody_a_turn(log):
    """No benchmark is begun."""
    sides = [Scripted(label, {"x": 4}, log) for label in "AB"]
    sides[1].death = Death("", "crashed", "B crashed")
    take_turns(sides, ["x"], lambda _: None)
    assert measured(log, "A") == []


def test_one_side_alone(log):
    """A session of a single process has all the turns."""
    side = Scripted("A", {"x": 5}, log)
    take_turns([side], ["x"], lambda _: None)
    assert rounds_of(log, "x") == "A" * 8
    assert side.at("ended")


def test_everybody_is_let_go_in_the_end(log):
    """One after the other."""
    sides = [Scripted(label, {"x": 1}, log) for label in "AB"]
    take_turns(sides, ["x"], lambda _: None)
    assert log[-2:] == [("A", "finish", ""), ("B", "finish", "")]


def test_a_benchmark_that_measures_twice_does_not_lose_the_others(log):
    """pytest-benchmark refuses the second time, but only after the number of rounds was agreed on."""
    sides = [Scripted(label, {"x": 4, "y": 4}, log, again={"x"}) for label in "AB"]
    take_turns(sides, ["x", "y"], lambda _: None)
    assert measured(log, "A") == measured(log, "B") == ["x", "y"]
    assert all(side.at("ended") for side in sides)
