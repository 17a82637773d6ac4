"""The report of a comparison: every word in any terminal, with any text in it."""

import math
from typing import get_args

import pytest

from perfgate.report.comparison import Comparison, cells, render, seen, styled
from perfgate.report.reasons import reasons
from perfgate.verdict.estimate import Estimate
from perfgate.verdict.verdicts import Verdict, Word

WORDS = get_args(Word)
NAME = "benches/test_amp.py::test_train_step[amp-bf16-mlp-b128]"


def verdict(word="slower", name=NAME, **fields):
    """A verdict with all its figures."""
    defaults = {
        "code": word,
        "reason": f"the reason of {word}",
        "metric": "wall_seconds",
        "change": Estimate(1.23, 1.2, 1.26),
        "threshold": 0.03,
        "detectable": 0.041,
    }
    return Verdict(id=name, word=word, **{**defaults, **fields})


def comparison(*verdicts, **fields):
    """A comparison of them."""
    return Comparison(**{"title": "main -> working tree", "verdicts": verdicts, "strict": False, **fields})


def rendered(*verdicts, columns=120, **fields):
    """The text."""
    return render(comparison(*verdicts, **fields), columns=columns, colour=False)


def flat(text):
    """Without line breaks and repeated spaces."""
    return " ".join(text.split())


@pytest.mark.parametrize("columns", [40, 80, 109, 110, 120, 200])
@pytest.mark.parametrize("word", WORDS)
def test_every_word_fits_every_terminal(word, columns):
    """No line is longer, and the word and its count are there."""
    shown = rendered(verdict(word), columns=columns)
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= columns
    assert f"1 {word}" in flat(shown)


@pytest.mark.parametrize("word", ["slower", "unjudged", "failed", "unsure", "faster"])
def test_a_narrow_terminal_has_the_reasons_instead_of_rows(word):
    """They name metric, change, interval and limit themselves; an improvement is told, too."""
    dense = "".join(rendered(verdict(word), columns=40).split())
    for part in (NAME, word, f"thereasonof{word}"):
        assert part in dense


@pytest.mark.parametrize("word", ["slower", "unjudged", "failed", "unsure"])
def test_what_is_not_fine_loses_nothing(word):
    """Name, metric, change with interval, limit, what was visible, and the reason."""
    dense = "".join(rendered(verdict(word), columns=120).split())
    for part in (NAME, "wall_seconds", "+23.0%", "[+20.0,+26.0]", "3.0%", "4.1%", f"thereasonof{word}"):
        assert part in dense


@pytest.mark.parametrize("columns", [40, 120])
def test_a_verdict_without_figures(columns):
    """A crash has no change."""
    shown = rendered(verdict("unjudged", metric="", change=None, threshold=None, detectable=None), columns=columns)
    assert "the reason of unjudged" in flat(shown)
    assert shown.splitlines()[-1].startswith("NOT JUDGED 1 unjudged")


@pytest.mark.parametrize(
    ("words", "strict", "line"),
    [
        (["same"], False, "PASS 1 same"),
        (["slower", "same"], False, "FAIL 1 slower, 1 same"),
        (["unjudged", "same"], False, "NOT JUDGED 1 unjudged, 1 same"),
        (["gone", "same"], False, "PASS 1 gone, 1 same"),
        (["gone", "same"], True, "FAIL 1 gone, 1 same"),
        (["skipped"], False, "NOT JUDGED 1 skipped"),
        ([], False, "NOT JUDGED nothing compared"),
    ],
)
def test_the_last_line_answers(words, strict, line):
    """With the counts, worst first."""
    verdicts = [verdict(word, f"t.py::test_{number}") for number, word in enumerate(words)]
    assert rendered(*verdicts, strict=strict).splitlines()[-1].strip() == line


def test_identical_sides_pass():
    """Nothing was measured, which is said."""
    shown = rendered(identical=True)
    assert shown.splitlines()[-1] == "PASS nothing that runs differs; nothing was measured"


def test_the_worst_comes_first():
    """By word, then by size."""
    shown = rendered(
        verdict("faster", "t.py::a", change=Estimate(0.5, 0.4, 0.6)),
        verdict("slower", "t.py::b", change=Estimate(1.1, 1.0, 1.2)),
        verdict("slower", "t.py::c", change=Estimate(1.9, 1.8, 2.0)),
    )
    assert shown.index("t.py::c") < shown.index("t.py::b") < shown.index("t.py::a")


def test_many_changes_are_counted_not_listed():
    """After twenty."""
    shown = rendered(*(verdict("slower", f"t.py::test_{number}", reason="r") for number in range(25)))
    assert "and 5 more" in shown
    assert "FAIL 25 slower" in shown


def test_equal_reasons_are_said_once():
    """With their number."""
    shown = rendered(*(verdict("gone", f"t.py::{number}", reason="head has no such benchmark") for number in range(7)))
    assert shown.count("head has no such benchmark") == 1
    assert "gone 7 benchmarks" in shown


def test_notes_and_advice():
    """Advice only where something is not fine."""
    assert "do this" in rendered(verdict(), advice=["do this"], notes=["know that"])
    fine = rendered(verdict("same"), advice=["do this"], notes=["know that"])
    assert "do this" not in fine
    assert "know that" in fine


EVIL = ["[red]x[/red]", "[/]", "[bold", "[link=http://x]y[/link]", "\\[x]", "x\\", "[", "]"]


@pytest.mark.parametrize("columns", [40, 120])
@pytest.mark.parametrize("evil", EVIL)
def test_markup_in_names_is_text(evil, columns):
    """Shown as it is, and obeyed by nobody."""
    shown = render(
        comparison(
            verdict(name=f"t.py::test[{evil}]", reason=evil, metric=evil), title=evil, notes=[evil], advice=[evil]
        ),
        columns=columns,
        colour=False,
    )
    assert "".join(f"t.py::test[{evil}]".split()) in "".join(shown.split())
    assert shown.count(evil) >= 4


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x1b]0;x\x07", "\u202egnp", "a\nb", "\r", "\ud800", "\x9b31m", "\u200b"])
def test_control_characters_are_removed(evil):
    """Of names, metrics, reasons, title, notes and advice."""
    shown = rendered(
        verdict(name=evil, reason=evil, metric=evil),
        verdict("gone", evil, reason=evil),
        title=evil,
        notes=[evil],
        advice=[evil],
    )
    assert not set(shown) & set("\x1b\x07\u202e\r\ud800\x9b\u200b")


def test_an_empty_name_is_no_empty_line():
    """Verdicts on everything have none."""
    assert "(empty)" in rendered(verdict(name=""))


@pytest.mark.parametrize("columns", [40, 120])
def test_what_could_not_be_seen_at_all(columns):
    """No infinity in a report."""
    shown = rendered(verdict("unsure", detectable=math.inf), columns=columns)
    assert "inf" not in shown
    assert "none" in shown
    assert "none at all in" in flat(shown)


def test_what_could_be_seen_in_the_median_and_at_worst():
    """With the name of the worst."""
    (line,) = seen([verdict("same", f"t.py::{number}", detectable=number / 100) for number in (1, 2, 9)])
    assert "2.0 % in the median benchmark, 9.0 % in t.py::9" in line
    assert list(seen([verdict(detectable=None)])) == []


def test_the_cells_of_a_count_are_exact():
    """No interval, nothing uncertain."""
    worse, limit, visible = cells(verdict(change=Estimate(1.1, 1.1, 1.1), threshold=0.0, detectable=None))
    assert (worse, limit, visible) == ("+10.0 %", "0.0 %", "exact")


def test_an_endless_interval_has_an_end_on_paper():
    """Where the error is unknown."""
    worse, _, _ = cells(verdict(change=Estimate(1.1, math.exp(-100), math.exp(100))))
    assert worse == r"+10.0 % \[-100.0, >+900]"


@pytest.mark.parametrize("word", WORDS)
def test_without_colour_the_word_is_the_same(word):
    """Its meaning does not depend on it."""
    assert word in styled(verdict(word))
    assert "\x1b" not in rendered(verdict(word))
    assert "\x1b" in render(comparison(verdict(word)), columns=120, colour=True)


def test_reasons_of_what_is_fine_are_not_told():
    """But for those that somebody should know."""
    assert list(reasons([verdict("same"), verdict("faster"), verdict("new")])) == []
    assert len(list(reasons([verdict("same", code="accepted"), verdict("new", code="fails-in-base")]))) == 2


def test_many_unsure_benchmarks_are_one_line():
    """A first comparison of sixty would fill three screens; what was visible is said below."""
    few = flat(rendered(*[verdict("unsure", f"b{number}") for number in range(3)], columns=80))
    many = flat(rendered(*[verdict("unsure", f"b{number}") for number in range(4)], columns=80))
    assert few.count("the reason of unsure") == 1
    assert "the reason of unsure" not in many
    assert "unsure 4 benchmarks: too noisy to tell at 3.0 %" in many
    assert "4 unsure" in many
