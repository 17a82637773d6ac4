"""``perfgate compare``: saved files of perfgate and of plain pytest-benchmark, judged anywhere."""

import json
import os
import statistics
import subprocess
import sys

import pytest

from perfgate import cli
from perfgate.results.document import dumps, to_document
from tests.conftest import MACHINE, around, count, record, replaced, run, stock_of

NAME = "benches/test_a.py::test_a"
WIGGLE = (1.0, 1.002, 0.998, 1.001, 0.999, 1.003, 0.997, 1.0)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder without settings."""
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def compare(capsys):
    """Runs ``perfgate compare``: the exit code and what was printed."""

    def compared(*words):
        code = cli.main(["compare", *map(str, words)])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return compared


def save(file, middle=0.01, operators=10, **fields):
    """A run of perfgate with one benchmark."""
    made = run(record(NAME, around(middle), count("operators", operators, mm=operators)), **fields)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(dumps(to_document(made, stock_of(made))))
    return file


def save_plain(file, *middles, data=True, name=NAME):
    """A file as pytest-benchmark writes it, with a benchmark per middle."""
    benchmarks = []
    for number, middle in enumerate(middles):
        times = [middle * each for each in WIGGLE]
        q1, median, q3 = statistics.quantiles(times, n=4)
        stats = {"min": min(times), "max": max(times), "median": median, "q1": q1, "q3": q3}
        benchmarks.append(
            {
                "group": None,
                "name": f"test_a[{number}]",
                "fullname": f"{name}[{number}]",
                "stats": {**stats, **({"data": times} if data else {})},
            }
        )
    document = {"machine_info": {"node": "x"}, "commit_info": {"id": "f" * 40}, "benchmarks": benchmarks}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**document, "datetime": "2026-01-01T00:00:00", "version": "5.2"}), encoding="utf-8")
    return file


def test_two_files(here, compare):
    """One run against one shows no small change, which is said; the files are named."""
    code, printed = compare(save(here / "a.json"), save(here / "b.json"))
    assert code == 0
    assert "a.json -> " in printed
    assert "would have been seen" in printed
    assert "PASS 1 unsure" in printed


def test_a_count_that_grew_is_a_regression(here, compare):
    """However few runs there are."""
    code, printed = compare(save(here / "a.json"), save(here / "b.json", operators=11))
    assert code == 1
    assert "operators 10 -> 11" in printed
    assert "FAIL 1 slower" in printed


def folders(here, change=1.0):
    """Six runs on each side; the second side takes ``change`` times as long."""
    for number in range(6):
        save(here / "A" / f"{number}.json", 0.01 * WIGGLE[number], stamp=f"2026010{number + 1}T000000000Z")
        save(here / "B" / f"{number}.json", 0.01 * change * WIGGLE[-number], stamp=f"2026011{number}T000000000Z")
    return here / "A", here / "B"


@pytest.mark.parametrize(("change", "code"), [(1.0, 0), (1.5, 1)])
def test_two_folders(here, compare, change, code):
    """All of A against all of B."""
    found, printed = compare(*folders(here, change))
    assert found == code
    assert "6 runs in" in printed


def test_files_of_two_folders(here, compare):
    """As a shell gives them for two patterns; the folder named first is base."""
    one, two = folders(here, 1.5)
    assert compare(*sorted(one.iterdir()), *sorted(two.iterdir()))[0] == 1
    assert compare(*sorted(two.iterdir()), *sorted(one.iterdir()))[0] == 0


def test_patterns(here, compare):
    """Where no shell has replaced them."""
    folders(here, 1.5)
    assert compare("A/*.json", "B/*.json")[0] == 1


def test_a_ledger_in_a_folder_is_no_run(here, compare):
    """It lies beside the runs of a machine."""
    one, two = folders(here)
    (one / "ledger.json").write_text("{}", encoding="utf-8")
    assert compare(one, two)[0] == 0


def test_files_of_three_folders(here, compare):
    """Nobody can tell which is base."""
    files = [save(here / name / "a.json") for name in "ABC"]
    code, printed = compare(*files)
    assert code == 2
    assert "3 of 3 folders" in printed


def test_a_single_file(here, compare):
    """Two sides are needed."""
    code, printed = compare(save(here / "a.json"))
    assert code == 2
    assert "two files" in printed


def test_three_files_of_one_folder(here, compare):
    """They are of one side."""
    assert compare(*(save(here / f"{name}.json") for name in "abc"))[0] == 2


@pytest.mark.parametrize("name", ["none.json", "none/*.json", "empty", "", "x" * 300])
def test_what_is_not_there_is_named(here, compare, name):
    """A file, a pattern, a folder without runs."""
    (here / "empty").mkdir()
    code, printed = compare(save(here / "A" / "a.json"), name)
    assert code == 2
    assert "no such file" in printed
    assert name[:200] in printed


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"benchmarks": 3}', '{"benchmarks": [3]}', '{"benchmarks": [{}]}', '{"perfgate": {}}'],
)
def test_what_is_no_run_is_named(here, compare, content):
    """Exit 2."""
    (here / "b.json").write_text(content, encoding="utf-8")
    code, printed = compare(save(here / "a.json"), here / "b.json")
    assert code == 2
    assert "b.json" in printed


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_number_that_json_has_not_is_refused(here, compare, number):
    """In files of either kind."""
    file = save_plain(here / "b.json", 0.01)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"median": 0.01', f'"median": {number}'), encoding="utf-8")
    assert file.read_text(encoding="utf-8") != text
    assert compare(save_plain(here / "a.json", 0.01), file)[0] == 2


@pytest.mark.parametrize(
    ("key", "value"), [("q1", "fast"), ("q1", None), ("q3", []), ("min", "0"), ("max", None), ("median", True)]
)
def test_a_statistic_that_is_no_number_is_refused(here, compare, key, value):
    """By its name."""
    file = save_plain(here / "b.json", 0.01, data=False)
    document = json.loads(file.read_text(encoding="utf-8"))
    document["benchmarks"][0]["stats"][key] = value
    file.write_text(json.dumps(document), encoding="utf-8")
    code, printed = compare(save_plain(here / "a.json", 0.01), file)
    assert code == 2
    assert key in printed


@pytest.mark.parametrize("name", [[], {}, 3, None])
def test_a_name_that_is_no_text_is_no_traceback(here, compare, name):
    """Refused or read as text."""
    file = save_plain(here / "b.json", 0.01)
    document = json.loads(file.read_text(encoding="utf-8"))
    document["benchmarks"][0]["fullname"] = name
    file.write_text(json.dumps(document), encoding="utf-8")
    assert compare(save_plain(here / "a.json", 0.01), file)[0] in (0, 2, 3)


def test_another_machine_is_not_judged(here, compare):
    """Exit 3, and what differs."""
    other = replaced(MACHINE, slug="other", hard={**MACHINE.hard, "cpu": "othercpu"})
    code, printed = compare(save(here / "a.json"), save(here / "b.json", machine=other))
    assert code == 3
    assert "differs: cpu" in printed


def test_plain_files_with_raw_data(here, compare):
    """Times only, and nobody knows the machine."""
    code, printed = compare(save_plain(here / "a.json", 0.01, 0.02), save_plain(here / "b.json", 0.01, 0.02))
    assert code == 0
    assert "plain pytest-benchmark files" in printed
    assert "five-number summaries" not in printed


def test_plain_files_without_raw_data(here, compare):
    """Their summaries, which is said."""
    files = [save_plain(here / name, 0.01, 0.02, data=False) for name in ("a.json", "b.json")]
    code, printed = compare(*files)
    assert code in (0, 3)
    assert "five-number summaries" in printed


def test_a_plain_regression_in_many_files(here, compare):
    """Twice the time of every run before."""
    for number in range(6):
        save_plain(here / "A" / f"{number}.json", 0.01 * WIGGLE[number])
        save_plain(here / "B" / f"{number}.json", 0.02 * WIGGLE[-number])
    code, printed = compare("A", "B")
    assert code == 1
    assert "slower" in printed


def test_a_plain_file_against_one_of_perfgate(here, compare):
    """One machine is known, the other is not."""
    code, printed = compare(save(here / "a.json"), save_plain(here / "b.json", 0.01))
    assert code == 3
    assert "machine is unknown" in printed


def test_what_pytest_benchmark_saves_is_read(here, compare):
    """By itself, without perfgate's plugin."""
    (here / "test_it.py").write_text("def test_it(benchmark):\n    benchmark(sum, range(100))\n", encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_benchmark.plugin", "--benchmark-max-time=0.01"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run([*words, "--benchmark-json=a.json"], check=True, env=environment, capture_output=True)
    code, printed = compare("a.json", "a.json")
    assert code in (0, 3)
    assert "plain pytest-benchmark files" in printed


def test_a_benchmark_that_is_gone(here, compare):
    """Named; a failure when strict."""
    one, two = save_plain(here / "a.json", 0.01, 0.02), save_plain(here / "b.json", 0.01)
    code, printed = compare(one, two)
    assert code == 0
    assert "1 gone" in printed
    assert compare(one, two, "--strict")[0] == 1


def test_files_without_benchmarks_do_not_pass(here, compare):
    """Nothing was compared."""
    assert compare(save_plain(here / "a.json"), save_plain(here / "b.json"))[0] == 3


def test_json_on_standard_output_is_nothing_else(here, capsys):
    """With both sides' files."""
    code = cli.main(["compare", str(save(here / "a.json")), str(save(here / "b.json", operators=11)), "--json", "-"])
    document = json.loads(capsys.readouterr().out)
    assert code == document["exit_code"] == 1
    assert document["base"] == [str(here / "a.json")]
    assert document["counts"] == {"slower": 1}


def test_files_for_machines(here, compare):
    """Written beside the report."""
    files = save(here / "a.json"), save(here / "b.json")
    assert compare(*files, "--json", here / "out.json", "--junit", here / "out.xml")[0] == 0
    assert json.loads((here / "out.json").read_text(encoding="utf-8"))["verdicts"][0]["verdict"] == "unsure"
    assert "testsuite" in (here / "out.xml").read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written(here, compare):
    """Named, with the reason."""
    code, printed = compare(save(here / "a.json"), save(here / "b.json"), "--json", here / "none" / "x.json")
    assert code == 2
    assert "cannot write" in printed


def test_a_wrong_setting_is_named(here, compare):
    """Of the project that it is run in."""
    (here / "pyproject.toml").write_text("[tool.perfgate]\nthreshhold = 1\n", encoding="utf-8")
    code, printed = compare(save(here / "a.json"), save(here / "b.json"))
    assert code == 2
    assert "threshhold" in printed
