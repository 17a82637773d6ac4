"""The reader of results files: exactly what was saved comes back, and nothing that was not valid passes."""

import json
import random

import pytest

from perfgate.errors import UnreadableRun
from perfgate.results.document import BLOCK, dumps, parse, to_document
from tests.conftest import count, record, run, stock_of, times

RUN = run(
    record("benches/test_a.py::test_a", times(*[0.01] * 6), count("operators", 3, **{"aten::mm(float32)": 3})),
    record("benches/test_a.py::test_b"),
)
DOCUMENT = to_document(RUN, stock_of(RUN))
TEXT = dumps(DOCUMENT).decode()


def changed(change):
    """The text of a valid document after ``change``."""
    document = json.loads(TEXT)
    change(document)
    return json.dumps(document)


def refused(text, said):
    """Reading fails with a message that contains ``said``."""
    with pytest.raises(UnreadableRun) as raised:
        parse(text, "run.json")
    assert said in str(raised.value)
    assert "run.json" in str(raised.value)


def test_a_run_comes_back_as_it_was():
    """Field by field."""
    assert parse(TEXT, "") == RUN


def test_unknown_fields_are_ignored():
    """A later version may add some."""
    assert parse(changed(lambda d: d["perfgate"].update(extra=1)), "") == RUN


def test_nan_is_never_written():
    """JSON has no such number."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps(to_document(run(record("a", times(float("nan")))), {}))


@pytest.mark.parametrize("field", [key for key in BLOCK if key != "schema"])
def test_each_missing_field_is_named(field):
    """Not a KeyError."""
    refused(changed(lambda d: d["perfgate"].pop(field)), f"field perfgate.{field}: missing")


@pytest.mark.parametrize("value", ["text", True, None, [], {}])
def test_a_wrong_type_is_named_with_its_path(value):
    """True is no number, either."""

    def change(document):
        document["perfgate"]["records"][0]["seconds"] = value

    refused(changed(change), "field perfgate.records[0].seconds: number expected")


def test_duplicate_benchmarks_are_refused():
    """The last one would win."""
    refused(changed(lambda d: d["perfgate"]["records"].append(d["perfgate"]["records"][0])), "appears twice")


def test_one_name_in_two_forms_is_one_name():
    """macOS writes the names of files in another form than everybody else."""

    def change(document):
        document["perfgate"]["records"][0]["id"] = "benches/test_\u00e9.py"
        document["perfgate"]["records"][1]["id"] = "benches/test_e\u0301.py"

    refused(changed(change), "appears twice, as perfgate.records[0] and perfgate.records[1], written")


@pytest.mark.parametrize("slug", ["../x", "/etc", "", ".hidden", "a/b", "x" * 65, "é"])
def test_a_machine_that_no_folder_can_have_is_refused(slug):
    """The slug in a file is looked up as a folder."""
    refused(
        changed(lambda d: d["perfgate"]["machine"].update(slug=slug)), "field perfgate.machine.slug: a machine's name"
    )


@pytest.mark.parametrize("commit", ["", "--upload-pack=x", "a" * 39, "A" * 40, "HEAD"])
def test_a_commit_that_is_none_is_refused(commit):
    """It is given to git."""
    refused(changed(lambda d: d["perfgate"]["commit"].update(id=commit)), "field perfgate.commit.id: 40 or 64 hex")


def test_samples_of_processes_that_nobody_tells_about_are_refused():
    """A run of one process cannot have samples of two."""

    def more(document):
        document["perfgate"]["records"][0]["measurements"][0]["samples"].append([0.01])

    refused(changed(more), "has samples of 2 processes")


def test_a_newer_schema_asks_for_an_update():
    """It is not guessed at."""
    refused(changed(lambda d: d["perfgate"].update(schema=999)), "written by a newer perfgate")


@pytest.mark.parametrize(("name", "factor"), [("min", 2), ("median", 0.5), ("max", 3)])
def test_statistics_that_disagree_with_the_samples_are_refused(name, factor):
    """Somebody edited one of the two."""

    def change(document):
        document["benchmarks"][0]["stats"][name] *= factor

    refused(changed(change), "but the raw samples give")


@pytest.mark.parametrize("data", [[], [0.0], [-0.01]])
def test_times_that_cannot_be_are_refused(data):
    """No sample, zero, negative."""

    def change(document):
        document["benchmarks"][0]["stats"]["data"] = data

    refused(changed(change), "more than 0")


def test_deep_nesting_is_refused():
    """Not a RecursionError."""
    refused("[" * 200_000, "nested too deeply")


def test_a_long_integer_is_refused():
    """Python itself refuses to convert it."""
    refused('{"a": ' + "1" * 5000 + "}", "not valid JSON")


def test_a_git_lfs_pointer_is_recognised():
    """With the command that gets the file."""
    refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "run git lfs pull")


@pytest.mark.parametrize("part", range(20))
def test_truncated_anywhere_is_refused(part):
    """At every twentieth of its length."""
    refused(TEXT[: len(TEXT) * part // 20], "")


def test_flipped_bytes_are_refused_or_valid():
    """Never another exception."""
    generator = random.Random(0)
    for _ in range(500):
        content = bytearray(TEXT.encode())
        content[generator.randrange(len(content))] = generator.randrange(128)
        try:
            parse(content.decode(), "run.json")
        except UnreadableRun:
            continue
