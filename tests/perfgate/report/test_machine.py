"""Verdicts for machines: valid JSON and XML, whatever the names and the numbers."""

import json
import math
import xml.etree.ElementTree as ET
from typing import get_args

import pytest

from perfgate.report.machine import SCHEMA, as_json, as_junit, properties
from perfgate.verdict.estimate import Estimate
from perfgate.verdict.verdicts import Verdict, Word

WORDS = get_args(Word)


def verdict(word="slower", name="benches/test_a.py::test_a[x]", **fields):
    """A verdict with all its figures."""
    defaults = {"code": word, "reason": "by 23 %", "metric": "wall_seconds", "change": Estimate(1.23, 1.2, 1.26)}
    return Verdict(id=name, word=word, **{**defaults, "threshold": 0.03, "detectable": 0.04, **fields})


def refuse(word):
    """A number that JSON does not have."""
    raise AssertionError(word)


def document(*verdicts, **about):
    """The JSON, read back strictly."""
    return json.loads(as_json(verdicts, exit_code=1, about=about), parse_constant=refuse)


def junit(*verdicts, strict=False):
    """The XML, read back."""
    return ET.fromstring(as_junit(verdicts, strict=strict))


def test_everything_is_in_the_json():
    """With a schema, the exit code and what is told of the comparison."""
    found = document(verdict(), command="ab", base="main")
    (one,) = found.pop("verdicts")
    assert found == {"schema": SCHEMA, "exit_code": 1, "counts": {"slower": 1}, "command": "ab", "base": "main"}
    assert one == {
        "id": "benches/test_a.py::test_a[x]",
        "verdict": "slower",
        "code": "slower",
        "reason": "by 23 %",
        "metric": "wall_seconds",
        "worse_by": {"ratio": 1.23, "low": 1.2, "high": 1.26},
        "limit": 0.03,
        "detectable": 0.04,
    }


def test_what_is_unknown_is_null():
    """Not left out."""
    (one,) = document(verdict("unjudged", change=None, threshold=None, detectable=None))["verdicts"]
    assert (one["worse_by"], one["limit"], one["detectable"]) == (None, None, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"detectable": math.inf},
        {"detectable": math.nan},
        {"change": Estimate(1.0, 0.0, math.inf)},
        {"change": Estimate(math.nan, math.nan, math.nan)},
        {"threshold": math.inf},
    ],
)
def test_no_number_that_json_has_not(fields):
    """An endless interval is null at that end."""
    document(verdict(**fields))


def test_it_ends_in_a_newline_and_is_ascii():
    """For every tool."""
    text = as_json([verdict(name="t.py::test_\u00e4[\ud800]")], exit_code=1, about={})
    assert text.isascii()
    assert text.endswith("}\n")


@pytest.mark.parametrize("word", WORDS)
def test_every_word_in_junit(word):
    """One case; failures and what was not judged are told apart."""
    suite = junit(verdict(word))
    (case,) = suite.iter("testcase")
    told = [each.tag for each in case if each.tag != "properties"]
    expected = {"slower": ["failure"], "failed": ["failure"], "skipped": ["skipped"], "gone": ["skipped"]}
    assert told == {**expected, "unjudged": ["skipped"]}.get(word, [])
    assert suite.get("failures") == str(int(told == ["failure"]))
    assert suite.get("tests") == "1"


def test_strict_junit_fails_more():
    """As the exit code does."""
    suite = junit(verdict("gone"), verdict("unjudged"), verdict("same"), strict=True)
    assert suite.get("failures") == "2"
    assert len(list(suite.iter("failure"))) == 2


def test_the_case_is_named_as_pytest_would():
    """File and test."""
    (case,) = junit(verdict()).iter("testcase")
    assert (case.get("classname"), case.get("name")) == ("benches/test_a.py", "test_a[x]")


@pytest.mark.parametrize("name", ["", "benches/test_a.py", "::"])
def test_every_case_has_a_name(name):
    """Verdicts on files and on everything, too."""
    (case,) = junit(verdict(name=name)).iter("testcase")
    assert case.get("name")


def test_properties_hold_the_figures():
    """As text."""
    (case,) = junit(verdict()).iter("testcase")
    held = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert held["perfgate.verdict"] == "slower"
    assert held["perfgate.limit"] == "0.03"
    assert json.loads(held["perfgate.worse_by"]) == {"ratio": 1.23, "low": 1.2, "high": 1.26}
    assert held == dict(properties(verdict()))


def test_the_reason_is_the_message():
    """Of what failed."""
    (failure,) = junit(verdict()).iter("failure")
    assert failure.get("message") == "slower: by 23 %"


EVIL = [
    "\x00",
    "\x1b[2J",
    "\ud800",
    "<&>\"'",
    "]]>",
    "a\nb",
    "\ufffe",
    "\uffff",
    "[red]x[/red]",
    "\u202e",
    "\U0001f600",
]


@pytest.mark.parametrize("evil", EVIL)
def test_any_text_is_valid_xml(evil):
    """What XML cannot hold is left out; the bytes are what a file holds."""
    text = as_junit([verdict(name=f"t.py::test[{evil}]", reason=evil, metric=evil)], strict=False)
    (case,) = ET.fromstring(text.encode("utf-8")).iter("testcase")
    assert case.get("name").startswith("test[")


def test_the_declared_encoding_is_the_files():
    """Files are written in UTF-8 wherever they are made."""
    assert "utf-8" in as_junit([], strict=False).splitlines()[0].lower()


def test_nothing_at_all():
    """Is valid, too."""
    assert document()["verdicts"] == []
    assert junit().get("tests") == "0"
