"""The gate of a pytest session: what it expects, accepts and tells machines, and which runs are its history."""

import json
import subprocess
import xml.etree.ElementTree as ET

import pytest

from tests.conftest import edit, fewer_operators, saved_runs

COMPARE = ("benches", "--benchmark-compare")
ENTRY = """
[[accepted]]
benchmark = "benches/test_tiny.py::test_plain"
metric = "operators"
from_commit = "{commit}"
reason = "a check was added on purpose"
limit = {limit}
expires = {expires}
"""


def git(project, *words):
    """Run git in the project; its output."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(project.path), *identity, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(project, message):
    """Commit everything but saved runs; the commit's id."""
    git(project, "add", "--all", "--", ".", ":(exclude)results")
    git(project, "commit", "--quiet", "--allow-empty", f"--message={message}")
    return git(project, "rev-parse", "HEAD")


@pytest.fixture
def regressed(project):
    """A project with one benchmark in git, whose second commit has one operator more than the saved run of the first."""
    git(project, "init", "--quiet", "--initial-branch=main")
    commit(project, "base")
    project.runpytest("benches", "-k", "test_plain")
    edit(saved_runs(project)[0], fewer_operators)
    project.second = commit(project, "head")
    return project


def accept(project, *, limit=0.5, expires="2999-12-31", of=None):
    """Write accepted.toml."""
    text = ENTRY.format(commit=(of or project.second)[:12], limit=limit, expires=expires)
    (project.path / "results" / "accepted.toml").write_text(text, encoding="utf-8")


def test_a_gpu_that_is_expected_and_missing_fails_before_measuring(project):
    """A runner whose GPU went missing must not be green."""
    result = project.runpytest("benches", "--perfgate-expect=gpu", "--perfgate-device=cpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*expect gpu*CPU*nvidia-smi*"])
    assert not saved_runs(project)


def test_what_is_expected_is_checked_whatever_is_saved(project):
    """Also where nothing would be written."""
    result = project.runpytest("benches", "--perfgate-expect=gpu", "--perfgate-device=cpu", "--perfgate-no-save")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
def test_a_comparison_that_would_run_nothing_is_refused(project, option):
    """It looks like a gate and judges nothing."""
    assert project.runpytest(*COMPARE, option).ret == pytest.ExitCode.USAGE_ERROR


def test_verdicts_for_machines(regressed):
    """Word, metric, change, limit and exit code; and as properties of the failed case in JUnit."""
    result = regressed.runpytest(*COMPARE, "-k", "test_plain", "--perfgate-json=out.json", "--junitxml=out.xml")
    assert result.ret == 1
    document = json.loads((regressed.path / "out.json").read_text(encoding="utf-8"))
    (verdict,) = document["verdicts"]
    assert (verdict["verdict"], verdict["metric"], verdict["limit"]) == ("slower", "operators", 0.0)
    assert verdict["worse_by"]["ratio"] > 1
    assert (document["exit_code"], document["counts"]) == (1, {"slower": 1})
    cases = ET.parse(regressed.path / "out.xml").iter("testcase")
    properties = {each.get("name"): each.get("value") for case in cases for each in case.iter("property")}
    assert properties["perfgate.verdict"] == "slower"
    assert "perfgate.samples_per_second" in properties


@pytest.mark.parametrize("option", ["--perfgate-json=out.json", "--perfgate-accept"])
def test_options_of_a_comparison_need_one(project, option):
    """Or somebody would wait for a file that never comes."""
    result = project.runpytest("benches", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*needs --benchmark-compare*"])


def test_a_folder_that_is_missing_is_said_before_measuring(project):
    """Not after an hour."""
    result = project.runpytest(*COMPARE, "--perfgate-json=nowhere/out.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no such folder*"])


def test_an_accepted_regression_is_green_and_the_new_level(regressed):
    """It says by which entry; the next run is compared with the new level, without the entry."""
    accept(regressed)
    result = regressed.runpytest(*COMPARE, "-k", "test_plain")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*accepted up to 50.0% until 2999-12-31: a check*", "PASS 1 same"])
    (regressed.path / "results" / "accepted.toml").unlink()
    assert regressed.runpytest(*COMPARE, "-k", "test_plain").ret == 0


def test_an_entry_written_after_the_red_run_speaks(regressed):
    """The natural order: red first, accepted then. The red run is no base."""
    assert regressed.runpytest(*COMPARE, "-k", "test_plain").ret == 1
    accept(regressed)
    assert regressed.runpytest(*COMPARE, "-k", "test_plain").ret == 0


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"expires": "2020-01-01"}, "*the entry expired on 2020-01-01*"),
        ({"limit": 0.0001}, "*more than the limit*"),
        ({"of": "0123456789abcdef"}, "*git cannot tell*"),
    ],
)
def test_an_entry_that_does_not_apply_says_why(regressed, entry, why):
    """And the regression stays one."""
    accept(regressed, **entry)
    result = regressed.runpytest(*COMPARE, "-k", "test_plain")
    assert result.ret == 1
    result.stdout.fnmatch_lines([why])


def test_a_broken_list_of_accepted_is_said_before_measuring(regressed):
    """With the field that is wrong."""
    accept(regressed, limit='"much"')
    result = regressed.runpytest(*COMPARE, "-k", "test_plain")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*accepted.toml*limit has the wrong type*"])


def test_what_to_do_is_said(regressed):
    """The command that looks closer, and the way to accept."""
    result = regressed.runpytest(*COMPARE, "-k", "test_plain")
    result.stdout.fnmatch_lines(["look closer: perfgate ab * -- -k 'test_plain'", "*accepted.toml*"])


def test_runs_of_other_branches_are_no_history(regressed):
    """Unless there are no others, which is said."""
    git(regressed, "switch", "--quiet", "--orphan", "other")
    git(regressed, "checkout", "--quiet", "main", "--", ".")
    commit(regressed, "unrelated")
    lonely = regressed.runpytest(*COMPARE, "-k", "test_plain", "--perfgate-accept")
    lonely.stdout.fnmatch_lines(["*runs of other commits have to do*"])
    assert lonely.ret == 1
    regressed.runpytest(*COMPARE, "-k", "test_plain").stdout.fnmatch_lines(["*1 runs of commits*left out*", "PASS*"])


def test_other_branches_are_no_history_at_all_when_strict(regressed):
    """Nothing is judged then, which fails."""
    git(regressed, "switch", "--quiet", "--orphan", "other")
    git(regressed, "checkout", "--quiet", "main", "--", ".")
    commit(regressed, "unrelated")
    result = regressed.runpytest(*COMPARE, "-k", "test_plain", "--perfgate-strict")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAIL 1 unjudged"])


def test_a_session_that_ends_early_without_a_reason_is_not_complete(project):
    """Whoever ended it: what did not run is named, and the run is nobody's baseline."""
    (project.path / "benches" / "test_tiny.py").write_text(
        """
import pytest
from workloads import MLP

def test_first(measure):
    measure(MLP(batch_size=4, width=8, image_size=4).train_step())

def test_second(measure):
    measure(MLP(batch_size=4, width=8, image_size=4).train_step())
    pytest.exit("enough", returncode=0)
""",
        encoding="utf-8",
    )
    result = project.runpytest("benches")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*test_second*not run: the session ended before*"])
    (saved,) = saved_runs(project)
    assert json.loads(saved.read_text(encoding="utf-8"))["perfgate"]["status"] == "interrupted"


def test_files_that_cannot_be_collected_make_a_part_of_the_suite(project):
    """Or their benchmarks would be missing from what counts as the whole."""
    (project.path / "benches" / "test_broken.py").write_text("import nothing_of_this_name", encoding="utf-8")
    project.runpytest("benches", "--continue-on-collection-errors", "-k", "test_plain")
    (saved,) = saved_runs(project)
    assert json.loads(saved.read_text(encoding="utf-8"))["perfgate"]["scope"]["full"] is False


def test_a_gpu_is_expected_of_workers_too(project):
    """Before any starts, also where nothing is compared."""
    result = project.runpytest("benches", "-n1", "--perfgate-expect=gpu", "--perfgate-device=cpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*expect gpu*"])


def test_an_odd_note_costs_nothing(project):
    """What JSON does not have is kept as text."""
    (project.path / "benches" / "test_tiny.py").write_text(
        """
def test_noted(benchmark):
    benchmark.extra_info |= {"ratio": float("nan"), (1, 2): {3}}
    benchmark(sum, [1, 2])
""",
        encoding="utf-8",
    )
    assert project.runpytest("benches", "--perfgate-results=results").ret == 0
    (saved,) = saved_runs(project)
    noted = json.loads(saved.read_text(encoding="utf-8"))["benchmarks"][0]["extra_info"]
    assert noted == {"ratio": "nan", "(1, 2)": "{3}"}


def test_only_collecting_says_nothing_about_a_comparison(project):
    """It is no gate."""
    assert project.runpytest(*COMPARE, "--collect-only").ret == 0
