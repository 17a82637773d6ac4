"""Rows IN-01 to IN-37: baselines and result files that are absent, damaged, hostile or merely strange."""

import ast
import copy
import errno
import gzip
import json
import os
import pickle
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfgate.errors import (
    BadNumber,
    FileTooLarge,
    Inconsistent,
    LeftByGit,
    NestedTooDeeply,
    NewerSchema,
    NoPermission,
    NotAFile,
    NotARun,
    NotJson,
    NotText,
    PerfgateError,
    RepeatedBenchmark,
    RepeatedKey,
    SettingsError,
    UnreadableRun,
    WrongField,
)
from perfgate.results.baseline import Baseline, find
from perfgate.results.document import BLOCK, DIFFERENCES, dumps, parse, to_document
from perfgate.results.foreign import read_any
from perfgate.results.ledger import Ledger, read_ledger
from perfgate.results.reader import decode
from perfgate.results.record import SCHEMA, identity_hash
from perfgate.results.store import NAME, Store, read
from perfgate.settings import Settings
from perfgate.verdict.accepted import read_accepted
from perfgate.verdict.compare import compare
from perfgate.verdict.files import compare_files
from perfgate.verdict.verdicts import gone, is_failure
from tests.conftest import MACHINE, around, record, replaced, run, saved_runs, stock_of, times

SOURCE = Path(__file__).parent.parent.parent / "src"
FIXTURE = Path(__file__).parent.parent / "perfgate" / "results" / "schema-1.json"
ORIGINAL = json.loads(FIXTURE.read_text(encoding="utf-8"))
TEXT = json.dumps(ORIGINAL)
FREE = {"hard", "soft", "tunables", "subject", "readings", "evidence", "table", "canary"}
"""Maps of any keys: one that is missing is just not there."""
OPTIONAL = {"mean", "rounds"}  # statistics that are only checked where they are
SWAPS = ("text", True, None, [], {}, 7, 0, -1, 0.5, -0.5, [True], {"a": True}, [[]])
NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 5000)
OTHER_TYPES = {'"0.01"': "str", "true": "bool", "null": "NoneType", "[]": "list", "{}": "dict"}
RUNS = settings(max_examples=1000, deadline=None, derandomize=True, database=None)  # timings are noisy


def places(value, path=()):
    """Paths to everything inside ``value``; of a long list of numbers the first is enough."""
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = [*enumerate(value)][: 1 if value and not isinstance(value[0], dict | list) else None]
    else:
        inner = ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


PLACES = [place for place in places(ORIGINAL) if place[0] in {"perfgate", "benchmarks"}]


def at(document, place):
    """What is at that place."""
    for key in place:
        document = document[key]
    return document


def with_value(place, value):
    """The document with another value there."""
    document = copy.deepcopy(ORIGINAL)
    at(document, place[:-1])[place[-1]] = value
    return document


def written(place):
    """The place as messages write it."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place).removeprefix(".")


IS_NUMBER = [
    place
    for place in PLACES
    if isinstance(at(ORIGINAL, place), int | float) and not isinstance(at(ORIGINAL, place), bool)
]


def assert_valid(found):
    """Everything that the rest of perfgate takes for granted of a run that was read."""
    names = [unicodedata.normalize("NFC", each.id) for each in found.records]
    assert len(set(names)) == len(names)
    for each in found.records:
        assert each.samples_per_round >= 1
        assert each.seconds >= 0
        for measurement in each.measurements:
            assert len(measurement.samples) <= len(found.processes)
            assert all(type(value) in {int, float} for value in measurement.values)
            assert all(abs(value) < float("inf") for value in measurement.values)
            logs = measurement.kind == "paired" or (measurement.kind == "sampled" and measurement.better != "neither")
            is_time = measurement.unit == "s" and measurement.metric not in DIFFERENCES
            if logs or (is_time and measurement.kind != "counted"):
                assert all(value > 0 for value in measurement.values)
            if measurement.kind == "counted":
                assert all(value >= 0 for value in measurement.values)


def outcome(document_or_bytes):
    """The run, valid and of exactly those values; ``None`` where it was refused."""
    as_bytes = isinstance(document_or_bytes, bytes)
    content = document_or_bytes if as_bytes else json.dumps(document_or_bytes).encode()
    said = ""
    try:
        text = decode(content, "run.json")
        found = parse(text, "run.json")
    except UnreadableRun as error:
        said = str(error)
    if said:
        assert said.startswith("run.json: ")
        return None
    assert_valid(found)
    claimed = json.loads(text)
    again = json.loads(dumps(to_document(found, {})))["perfgate"]
    assert not differences(again, claimed["perfgate"])
    return found


def differences(value, claimed):
    """Where a value that was read is not the one that was written, types included; unknown fields are not read."""
    if isinstance(value, dict):
        return [each for key in value for each in differences(value[key], claimed[key])]
    if isinstance(value, list):
        pairs = zip(value, claimed, strict=True)
        return [each for one, other in pairs for each in differences(one, other)]
    return [] if (type(value), value) == (type(claimed), claimed) else [(value, claimed)]


def refused(document, kind, *said):
    """Reading fails with an error of that kind that says all that."""
    text = document if isinstance(document, str) else json.dumps(document)
    with pytest.raises(kind) as raised:
        parse(text, "run.json")
    assert type(raised.value) is kind
    for each in ("run.json", *said):
        assert each in str(raised.value)


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return Store(tmp_path / "results")


def save(store, day=1, name="a", **fields):
    """Save a run of one benchmark."""
    a_run = run(record(name), stamp=f"202601{day:02d}T000000000Z", **fields)
    return store.save(a_run, stock_of(a_run))


def verdicts(new, *old):
    """Verdicts of one record on others, of runs that are alike."""
    runs = tuple(run(each, stamp=f"2026010{9 - number}T000000000Z") for number, each in enumerate(old))
    return compare([run(new)], Baseline(runs=runs), Settings(), Ledger()).verdicts()


def test_in_01_no_results_folder(project):
    """Said before measuring, with the machine and the way to a baseline; nothing passes as compared."""
    result = project.runpytest(
        "benches", "--benchmark-compare", "-k", "plain", "--perfgate-strict", "--perfgate-no-save"
    )
    text = result.stdout.str()
    assert 0 < text.index("no saved run of this machine (") < text.index("test_tiny.py")
    result.stdout.fnmatch_lines(["*Make a baseline: pytest benches/*"])
    assert result.ret == 1


def test_in_02_none_for_this_machine(store):
    """The others are listed with the fields that differ, and nothing of theirs is compared."""
    save(store, machine=replaced(MACHINE, slug="gpu-box", hard={**MACHINE.hard, "gpu": "H200"}))
    found = find(store, MACHINE)
    assert "gpu-box (differs: gpu)" in found.absence
    (verdict,) = compare([run()], found, Settings(), Ledger()).verdicts()
    assert (verdict.word, verdict.reason) == ("unjudged", found.absence)


def test_in_03_an_empty_file(store):
    """Named with its size; nothing is compared and that fails; the file is untouched."""
    file = save(store)
    file.write_bytes(b"")
    found = find(store, MACHINE)
    assert f"{file}: the file is empty (0 bytes)" in found.problems[0]
    assert not found.runs
    (verdict,) = compare([run()], found, Settings(), Ledger()).verdicts()
    assert is_failure(verdict, strict=False)
    assert file.read_bytes() == b""


def test_in_04_truncated_at_each_twentieth_in_a_session(project):
    """The session says so and fails, without a traceback."""
    project.runpytest("benches", "-k", "plain")
    file = saved_runs(project)[0]
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    result = project.runpytest("benches", "--benchmark-compare", "-k", "plain")
    result.stdout.fnmatch_lines(["*passed over: *not valid JSON*restore it from git*"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert result.ret == 1


@pytest.mark.parametrize("part", range(20))
def test_in_04_truncated_at_each_twentieth(part):
    """Always refused."""
    content = TEXT.encode()
    assert outcome(content[: len(content) * part // 20]) is None


@RUNS
@given(st.data())
def test_in_05_random_byte_flips(data):
    """Refused, or valid and read as it is written: never another exception."""
    content = bytearray(TEXT.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    outcome(bytes(content))


@pytest.mark.parametrize(
    ("encoding", "found"),
    [("utf-16", "UTF-16 (little-endian)"), ("utf-16-be", "bytes of value 0"), ("latin-1", "invalid continuation byte")],
)
def test_in_06_another_encoding(encoding, found):
    """The message says which, as far as it can be told."""
    text = TEXT.replace("MLP", "é").replace("benches", "bénches")
    with pytest.raises(NotText) as raised:
        decode(text.encode(encoding), "run.json")
    assert found in str(raised.value)


def test_in_06_a_byte_order_mark():
    """Some editors put one in front of UTF-8, which changes nothing."""
    assert outcome(b"\xef\xbb\xbf" + TEXT.encode()) == outcome(TEXT.encode()) is not None


def test_in_07_a_huge_file(tmp_path, monkeypatch):
    """Refused by its size before a byte is read; the limit can be set. An archive is never unpacked."""
    huge, bomb = tmp_path / "huge.json", tmp_path / "bomb.json"
    with huge.open("wb") as stream:
        stream.truncate(2 * 2**30)
    bomb.write_bytes(gzip.compress(b"0" * 2**20))
    with pytest.raises(
        FileTooLarge, match=r"2,147,483,648 bytes, more than the limit of 67,108,864: .*PERFGATE_SIZE_LIMIT"
    ):
        read(huge)
    with pytest.raises(NotText, match="gzip"):
        read(bomb)


@pytest.mark.parametrize("reader", [read, read_any, lambda file: read_ledger(file.parent), read_accepted])
def test_in_07_every_file_is_read_by_the_same_reader(tmp_path, monkeypatch, reader):
    """Runs, plain files, the ledger and accepted.toml: too large is too large, and a pipe makes nobody wait."""
    file = tmp_path / "ledger.json"
    file.write_text(TEXT, encoding="utf-8")
    monkeypatch.setenv("PERFGATE_SIZE_LIMIT", "1000")
    with pytest.raises(PerfgateError, match=r"limit of 1,000: .*PERFGATE_SIZE_LIMIT"):
        reader(file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(PerfgateError, match="not a regular file"):
        reader(file)


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 200_000])
def test_in_08_and_09_in_accepted_toml(tmp_path, value):
    """TOML can be as long and as deep."""
    (tmp_path / "accepted.toml").write_text(f"accepted = {value}", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"accepted\.toml: not readable as TOML"):
        read_accepted(tmp_path / "accepted.toml")


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"perfgate":[', '[{"a":'])
def test_in_08_nested_deeply(opening):
    """Not a RecursionError."""
    refused(opening * 200_000, NestedTooDeeply, "nested too deeply")


@pytest.mark.parametrize("place", IS_NUMBER, ids=written)
def test_in_09_to_11_what_is_no_number(place):
    """Long integers, words of no number, infinities: refused at every number, and its field is named."""
    for number in NO_NUMBERS:
        text = json.dumps(with_value(place, "@@")).replace('"@@"', number)
        refused(text, BadNumber, f"field {written(place)}: ")


@pytest.mark.parametrize("digits", [5000, 400, 21])
def test_in_09_an_integer_of_many_digits(digits):
    """Python refuses to convert the first, the second overflows a float."""
    text = TEXT.replace('"samples_per_round": 128', '"samples_per_round": ' + "1" * digits, 1)
    refused(text, BadNumber, f"field perfgate.records[0].samples_per_round: an integer of {digits:,} digits")


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_in_10_words_that_are_no_numbers(word):
    """JSON has none of them."""
    text = json.dumps(with_value(("perfgate", "records", 0, "seconds"), float(word)))
    refused(text, BadNumber, f"field perfgate.records[0].seconds: {word} is not a number")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1e309"])
def test_in_11_a_number_that_is_infinite(number):
    """It is valid JSON, and no time."""
    text = json.dumps(with_value(("perfgate", "records", 0, "seconds"), "@@")).replace('"@@"', number)
    refused(text, BadNumber, f"field perfgate.records[0].seconds: {number} is not finite")


@pytest.mark.parametrize("metric", ["wall_seconds", "speedup", "first_call_seconds"])
@pytest.mark.parametrize("value", [0, 0.0, -0.0, -0.01, -1])
def test_in_12_a_time_that_is_none(metric, value):
    """In our samples and in pytest-benchmark's."""
    document = copy.deepcopy(ORIGINAL)
    (measurement,) = (each for each in document["perfgate"]["records"][0]["measurements"] if each["metric"] == metric)
    measurement["samples"][0][-1] = value
    refused(document, WrongField, "more than 0 expected", metric)
    refused(with_value(("benchmarks", 0, "stats", "data", 3), value), WrongField, "benchmarks[0].stats.data[3]")


def test_in_12_what_may_be_zero_or_negative():
    """Counts, and a difference of two times."""
    document = copy.deepcopy(ORIGINAL)
    for each in document["perfgate"]["records"][0]["measurements"]:
        if each["metric"] in {"operators", "compile_seconds"}:
            each["samples"] = [[0]]
    assert outcome(document).records[0].measurement("operators").values == (0,)
    assert outcome(ORIGINAL).records[0].measurement("compile_seconds").values[0] < 0


@pytest.mark.parametrize("place", IS_NUMBER, ids=written)
def test_in_13_another_type_for_a_number(place):
    """Named with what was found; true is an integer in Python, and no number here."""
    for other, name in OTHER_TYPES.items():
        text = json.dumps(with_value(place, "@@")).replace('"@@"', other)
        found = "nothing" if (place[-1], other) == ("schema", "null") else name
        refused(text, WrongField, f"field {written(place)}: ", f" expected, got {found}")


@pytest.mark.parametrize("place", PLACES, ids=written)
def test_in_13_other_types(place):
    """At every field: refused, or valid and not taken for anything else."""
    for value in SWAPS:
        outcome(with_value(place, value))


@pytest.mark.parametrize("place", PLACES, ids=written)
def test_in_14_a_missing_field(place):
    """Each in turn, named."""
    document = copy.deepcopy(ORIGINAL)
    del at(document, place[:-1])[place[-1]]
    if isinstance(place[-1], int) or place[-1] in OPTIONAL or FREE.intersection(place[:-1]):
        outcome(document)
    elif place == ("perfgate",):
        refused(document, NotARun, "no 'perfgate' block")
    else:
        refused(document, WrongField, f"field {written(place)}: ")


def test_in_14_every_field_of_the_schema_is_in_the_fixture():
    """Or the tests above would not reach it."""

    def fields(shape, path):
        if isinstance(shape, list):
            shape = shape[0]
        if isinstance(shape, dict):
            for key, inner in shape.items():
                yield (*path, key)
                yield from fields(inner, (*path, key))

    reached = {tuple(key for key in place if isinstance(key, str)) for place in PLACES}
    assert {path for path in fields(BLOCK, ("perfgate",)) if "*" not in path} <= reached


def test_in_15_unknown_fields():
    """Wherever a later version may add some, they change nothing."""
    document = copy.deepcopy(ORIGINAL)
    for place in [(), *PLACES]:
        value = at(document, place)
        if isinstance(value, dict) and (not place or place[-1] not in FREE):
            value["from_a_later_version"] = {"anything": [1, None, "ä"]}
    found, plain = parse(json.dumps(document), ""), parse(TEXT, "")
    assert {**found.commit, **found.scope, **plain.commit, **plain.scope}  # these two are kept as they are
    assert replaced(found, commit=plain.commit, scope=plain.scope) == plain


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("min", 0.0124, "min is 0.0124, but the raw samples give"),
        ("max", 1.0, "max is 1.0, but the raw samples give"),
        ("median", 0.0126, "median is 0.0126, but the raw samples give"),
        ("rounds", 7, "rounds is 7, but there are 8 raw samples"),
        ("mean", 0.5, "mean <= max does not hold"),
        ("mean", 0.001, "min <= mean does not hold"),
        ("data", [], "there must be one"),
    ],
)
def test_in_16_statistics_that_disagree(name, value, said):
    """With the inequality."""
    refused(with_value(("benchmarks", 0, "stats", name), value), Inconsistent, said)


def test_in_16_no_rounds():
    """Nothing was measured."""
    refused(with_value(("benchmarks", 0, "stats", "rounds"), 0), WrongField, "at least 1 expected, got 0")


@pytest.mark.parametrize(("low", "high"), [("min", "q1"), ("q1", "median"), ("median", "q3"), ("q3", "max")])
def test_in_16_a_summary_out_of_order(tmp_path, low, high):
    """Plain files without raw data have nothing else to check."""
    stats = {"min": 0.01, "q1": 0.02, "median": 0.03, "q3": 0.04, "max": 0.05}
    stats[low], stats[high] = stats[high], stats[low]
    file = tmp_path / "plain.json"
    file.write_text(json.dumps({"benchmarks": [{"fullname": "a", "stats": stats}]}), encoding="utf-8")
    with pytest.raises(Inconsistent, match=r"<= .* does not hold"):
        read_any(file)


def test_in_17_a_newer_schema(store):
    """It asks for an update and leaves the file alone."""
    file = save(store)
    document = json.loads(file.read_bytes())
    document["perfgate"] = {"schema": 999, "whatever": "a later version needs"}
    content = json.dumps(document).encode()
    file.write_bytes(content)
    with pytest.raises(NewerSchema, match=r"schema 999 was written by a newer perfgate than this .*: update"):
        read(file)
    assert find(store, MACHINE).unreadable
    assert file.read_bytes() == content


def test_in_18_the_fixture_of_each_schema():
    """Schema 1 stays readable."""
    assert outcome(ORIGINAL).records[0].id == "benches/test_amp.py::test_train_step[amp-bf16-mlp-b128]"


def test_in_18_an_older_schema(store, monkeypatch):
    """Read through its migration; the file stays as it is."""
    from perfgate.results.migrations import MIGRATIONS

    monkeypatch.setitem(MIGRATIONS, SCHEMA - 1, lambda block: {**block, "label": block["name"]})
    file = save(store)
    document = json.loads(file.read_bytes())
    block = document["perfgate"]
    block["schema"], block["name"] = SCHEMA - 1, block.pop("label") + "from before"
    content = json.dumps(document).encode()
    file.write_bytes(content)
    assert find(store, MACHINE).runs[0].label == "from before"
    assert file.read_bytes() == content


def test_in_19_a_plain_file(tmp_path):
    """Compared on time only; against one of a known machine it is unjudged."""
    file = tmp_path / "plain.json"
    data = around(0.01).values
    stats = {"min": min(data), "max": max(data), "median": 0.01, "data": data}
    file.write_text(json.dumps({"benchmarks": [{"fullname": "a", "stats": stats}]}), encoding="utf-8")
    plain = read_any(file)
    assert [each.metric for each in plain.records[0].measurements] == ["wall_seconds"]
    found, notes = compare_files([plain], [plain], Settings(), Ledger())
    assert [each.metric for each in found] == ["wall_seconds"]
    assert "only times are compared" in notes[0]
    found, _ = compare_files([plain], [run(record("a"))], Settings(), Ledger())
    assert [(each.word, each.code) for each in found] == [("unjudged", "other-machine")]


@pytest.mark.parametrize(("where", "field"), [(("perfgate", "records"), "id"), (("benchmarks",), "fullname")])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_in_20_one_name_twice(where, field, form):
    """Both are named; two ways to write one character are one name."""
    document = copy.deepcopy(ORIGINAL)
    entries = at(document, where)
    entries[0][field] = "benches/test_é.py::test"
    entries.append({**entries[0], field: unicodedata.normalize(form, entries[0][field])})
    refused(document, RepeatedBenchmark, "appears twice", f"{written(where)}[0]", f"{written(where)}[2]")


def test_in_21_one_key_twice():
    """The last one would win."""
    refused(TEXT.replace('"stamp": ', '"stamp": "x", "stamp": ', 1), RepeatedKey, "'stamp' appears twice")


def test_in_22_another_unit():
    """Milliseconds are no seconds."""
    milliseconds = replaced(around(10.0), unit="ms")
    (found,) = verdicts(record("a", milliseconds), record("a", around(0.01)))
    assert (found.word, found.code) == ("unjudged", "metric-differs")
    assert "unit ms, in the baseline s" in found.reason


def test_in_23_a_benchmark_that_is_gone(store):
    """What a full run of the baseline has is expected; a rename carries its history."""
    save(store, name="old")
    assert find(store, MACHINE).expected == {"old"}
    (missing,) = gone(find(store, MACHINE).expected)
    assert (missing.word, is_failure(missing, strict=True)) == ("gone", True)
    renamed = find(store, MACHINE, renamed={"old": "new"})
    assert renamed.expected == {"new"}
    assert renamed.history("new")


def test_in_24_a_benchmark_that_is_new():
    """Listed."""
    found = {each.id: each.word for each in compare_two("a", "b", old="a")}
    assert found["b"] == "new"


def test_in_25_nothing_in_common():
    """Fails always."""
    found = compare_two("b", "c", old="a")
    assert any(
        each.reason.startswith("0 of 2 benchmarks have a baseline") and is_failure(each, strict=False) for each in found
    )


def compare_two(*new, old):
    """Verdicts on a run of benchmarks of these names against one of ``old``."""
    head = run(*(record(name, around(0.01)) for name in new))
    return compare([head], Baseline(runs=(run(record(old, around(0.01))),)), Settings(), Ledger()).verdicts()


def test_in_26_other_parameters_under_one_name():
    """Their hash tells them apart."""
    small, large = (record("a", around(0.01), identity=identity_hash({"batch_size": size})) for size in (4, 8))
    assert [each.word for each in verdicts(large, small)] == ["new", "gone"]


@pytest.mark.parametrize(
    ("fields", "local", "strict"),
    [
        ({"commit": {"id": "b" * 40, "branch": "main", "dirty": "yes"}}, 2, 1),
        ({"status": "interrupted"}, 1, 1),
    ],
)
def test_in_27_a_dirty_or_interrupted_run(store, fields, local, strict):
    """A dirty one serves where nothing is strict, an interrupted one never."""
    save(store, 1)
    save(store, 2, **fields)
    assert len(find(store, MACHINE).runs) == local
    assert len(find(store, MACHINE, strict=True).runs) == strict


def test_in_29_a_date_in_the_future(store):
    """It serves, is said, and does not win over a later commit or another run of its own."""
    for day, stamp in ((1, "29990101T000000000Z"), (2, "20260102T000000000Z")):
        a_run = run(record("a", step=f"day {day}"), stamp=stamp)
        store.save(a_run, stock_of(a_run))
    found = find(store, MACHINE)
    assert [found.newest["a"][0].step, len(found.runs)] == ["day 2", 2]
    assert "dated in the future: 29990101T" in found.notes[0]


@pytest.mark.parametrize("stamp", ["2026-01-01T00:00:00", "20260101T000000000", "20260101", "", "yesterday"])
def test_in_29_a_date_without_a_time_zone(stamp):
    """Nobody can tell where it belongs."""
    refused(with_value(("perfgate", "stamp"), stamp), WrongField, "field perfgate.stamp: UTC time such as")


def test_in_30_one_round():
    """Unjudged, with the number that is needed."""
    (found,) = verdicts(record("a", times(0.01)), record("a", times(0.01)))
    assert found.word == "unjudged"
    assert "too few samples (1 < " in found.reason


@pytest.mark.parametrize("line", [0, 1, 100])
def test_in_31_merge_markers(line):
    """Recognised wherever they are."""
    lines = json.dumps(ORIGINAL, indent=1).splitlines()
    lines[line:line] = ["<<<<<<< HEAD", lines[line], "=======", lines[line], ">>>>>>> other"]
    refused("\n".join(lines), LeftByGit, "unresolved merge")


def test_in_32_a_git_lfs_pointer():
    """With the command that gets the file."""
    refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", LeftByGit, "run git lfs pull")


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda file: file.symlink_to("/dev/zero")])
def test_in_33_what_is_no_file(store, make):
    """Refused at once: a pipe would wait for ever, a device never ends."""
    file = save(store)
    file.unlink()
    make(file)
    with pytest.raises(NotAFile, match="regular file"):
        read(file)
    assert file.name in find(store, MACHINE).problems[0]


def test_in_34_a_file_that_may_not_be_read(store, monkeypatch):
    """With its owner and mode."""
    file = save(store)
    file.chmod(0)

    def refuse(*_, **__):  # root may read everything
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        found = find(store, MACHINE)
    assert f"it belongs to {file.owner()} with mode 0000" in found.problems[0]
    assert found.unreadable


def test_in_34_a_folder_that_may_not_be_read(store, monkeypatch):
    """It does not look like one without runs."""
    folder = save(store).parent

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(
        NoPermission, match=rf"{folder.name}: permission denied: it belongs to {folder.owner()} with mode 0"
    ):
        find(store, MACHINE)


def test_in_35_ten_thousand_files(store):
    """No more is opened than needed: all but the newest are empty, and nobody notices."""
    folder = save(store).parent
    for number in range(10_000):
        (folder / f"20250101T{number:09d}Z-{'a' * 12}-0000.json").touch()
    for day in range(2, 21):
        save(store, day)
    found = find(store, MACHINE, ancestors=frozenset({"a" * 40}))
    assert (len(found.runs), found.problems) == (20, ())


def test_in_36_names_have_no_counter(store):
    """9,999 and 10,000 saves of one moment are all newest; otherwise names sort by time."""
    for day in (9, 10, 11):
        save(store, day)
    names = [file.name for file in store.files(MACHINE.slug)]
    assert [name[6:8] for name in names] == ["11", "10", "09"]
    assert all(len(NAME.fullmatch(name)["stamp"]) == 19 for name in names)


class Hostile:
    """Runs a command where it is unpickled."""

    def __reduce__(self):
        """The command."""
        return os.mkdir, ("unpickled",)


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_in_37_a_pickle(tmp_path, monkeypatch, protocol):
    """It is no JSON, and nothing in it runs."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "run.json"
    file.write_bytes(pickle.dumps(Hostile(), protocol))
    with pytest.raises(NotJson if protocol == 0 else NotText):
        read_any(file)
    assert not (tmp_path / "unpickled").exists()


def test_in_37_nothing_that_we_load_can_run_code():
    """No pickle, no eval; tensors are loaded as tensors only."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}, file
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in {"eval", "exec"}, file
                assert called != "torch.load" or "weights_only=True" in ast.unparse(node), file


def test_in_the_fixture_is_valid():
    """Or the tests here would show nothing."""
    assert outcome(ORIGINAL) is not None
