"""The plugin as its users meet it: every way in which a gate could pass without having judged."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from tests.conftest import edit, fewer_operators, saved_runs

COMPARE = ("benches", "--benchmark-compare")


def rewrite_bench(project, old, new):
    """Exchange ``old`` for ``new`` in the project's benchmarks."""
    file = project.path / "benches" / "test_tiny.py"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_a_run_is_saved_by_default_and_read_by_pytest_benchmark(project):
    """Saved without being asked, in pytest-benchmark's own format."""
    project.runpytest("benches").assert_outcomes(passed=2)
    (file,) = saved_runs(project)
    listed = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", "compare", str(file)], capture_output=True, text=True, check=True
    )
    assert "test_plain" in listed.stdout
    assert "test_amp" in listed.stdout


def test_the_saved_run_holds_what_the_schema_promises(project):
    """Processes, canary, tunables, threads, software, subject, and every metric of a variant."""
    project.runpytest("benches")
    block = json.loads(saved_runs(project)[0].read_text(encoding="utf-8"))["perfgate"]
    (process,) = block["processes"]
    assert set(process["canary"]) == {"matmul", "copy"}
    assert process["threads"] >= 1
    assert "huge_pages" in process["tunables"]
    assert process["subject"]["tree"]
    assert block["machine"]["soft"]["torch"]
    amp = next(each for each in block["records"] if "amp" in each["id"])
    metrics = {each["metric"] for each in amp["measurements"] if each["samples"]}
    assert metrics >= {"wall_seconds", "first_call_seconds", "speedup", "peak_bytes", "flops", "operators", "zeros"}
    assert amp["evidence"]["amp-bf16"] == "layers produced torch.bfloat16"
    assert "cosine" in amp["evidence"]["same result"]


def test_no_baseline_is_said_before_measuring(project):
    """The first line about the baseline comes before the first benchmark."""
    result = project.runpytest(*COMPARE)
    text = result.stdout.str()
    assert text.index("no saved run of this machine") < text.index("benches/test_tiny.py ..")
    result.stdout.fnmatch_lines(["*NOT JUDGED 2 unjudged*"])
    assert result.ret == 0


def test_no_baseline_fails_when_strict(project):
    """Strict means that unjudged is not good enough."""
    assert project.runpytest(*COMPARE, "--perfgate-strict").ret == 1


def test_the_second_run_is_judged(project):
    """Found by itself, and named before measuring."""
    project.runpytest("benches")
    (first,) = saved_runs(project)
    result = project.runpytest(*COMPARE)
    result.stdout.fnmatch_lines([f"*baseline {first.name}*", "*PASS 2 same*"])
    assert result.ret == 0


def test_a_regression_is_exit_1_without_a_traceback(project):
    """One operator more than in the baseline is certain, whatever the noise."""
    project.runpytest("benches")
    edit(saved_runs(project)[0], fewer_operators)
    result = project.runpytest(*COMPARE)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*slower*operators * -> *+1 *", "FAIL 2 slower"])
    assert "Traceback" not in result.stdout.str()


def test_a_regression_stays_one_until_it_is_accepted(project):
    """A second run of the same code is not green, unless the first was accepted."""
    project.runpytest("benches")
    edit(saved_runs(project)[0], fewer_operators)
    assert project.runpytest(*COMPARE).ret == 1
    assert project.runpytest(*COMPARE).ret == 1
    assert project.runpytest(*COMPARE, "--perfgate-accept").ret == 1
    assert project.runpytest(*COMPARE).ret == 0


def test_no_benchmark_to_compare_is_a_usage_error(project):
    """Wrong paths must not look like a clean comparison."""
    project.makepyfile(test_other="def test_other(): pass")
    result = project.runpytest("test_other.py", "--benchmark-compare")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no benchmark was collected*"])


def test_a_comparison_in_which_everything_is_skipped_fails(project):
    """It measured nothing, so it judged nothing."""
    (project.path / "benches" / "test_tiny.py").write_text(
        "import pytest\n@pytest.mark.gpu\ndef test_gpu(measure): ...\n", encoding="utf-8"
    )
    result = project.runpytest(*COMPARE, "--perfgate-device=cpu")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["NOTHING MEASURED 1 skipped"])


def test_a_benchmark_that_measures_nothing_fails(project):
    """It asks for the fixture and never calls it."""
    (project.path / "benches" / "test_tiny.py").write_text("def test_empty(measure): pass\n", encoding="utf-8")
    result = project.runpytest("benches", "-W", "ignore")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the test passed without measuring*"])


def test_a_skip_of_what_the_baseline_has_fails_when_strict(project):
    """A compiler or a GPU went missing."""
    project.runpytest("benches")
    rewrite_bench(project, "def test_plain(measure):", "def test_plain(measure):\n    pytest.skip('x')")
    assert project.runpytest(*COMPARE).ret == 0
    assert project.runpytest(*COMPARE, "--perfgate-strict").ret == 1


def test_another_clock_is_refused(project):
    """Speedups of processor time are not speedups."""
    result = project.runpytest("benches", "--benchmark-timer=time.process_time")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*only the wall clock*"])


def test_without_pytest_benchmark_the_plugin_stays_out_of_the_way(project):
    """In any other project's session."""
    project.makepyfile(test_other="def test_other(): pass")
    project.runpytest("test_other.py", "-p", "no:benchmark").assert_outcomes(passed=1)


def test_profiling_beside_measuring(project):
    """--benchmark-cprofile runs the hooks once more."""
    project.runpytest("benches", "--benchmark-cprofile=cumtime").assert_outcomes(passed=2)


def test_cuda_where_there_is_none_is_a_usage_error(project, monkeypatch):
    """Also in a smoke run."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = project.runpytest("benches", "--perfgate-smoke", "--perfgate-device=cuda")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*torch sees no CUDA GPU*"])


def test_a_regression_is_a_failed_case_in_junit(project):
    """Where other tools look."""
    project.runpytest("benches")
    edit(saved_runs(project)[0], fewer_operators)
    project.runpytest(*COMPARE, "--junitxml=junit.xml")
    suite = ET.parse(project.path / "junit.xml").getroot()[0]
    assert suite.get("failures") == "2"
    assert "operators" in suite.find(".//failure").get("message")


def test_a_folder_swallowed_by_the_option_is_a_usage_error(project):
    """pytest-benchmark would run nothing and pass."""
    result = project.runpytest("--benchmark-compare", "benches/")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*Write the paths first: pytest benches/ --benchmark-compare*"])


@pytest.mark.parametrize("flag", ["--benchmark-disable", "--benchmark-skip", "--perfgate-smoke"])
def test_comparing_without_measuring_is_a_usage_error(project, flag):
    """These flags measure nothing that could be judged."""
    result = project.runpytest(*COMPARE, flag)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--benchmark-compare with {flag} would judge nothing*"])


def test_comparing_with_each_worker_doing_everything_is_a_usage_error(project):
    """Each benchmark would have as many records as there are workers."""
    result = project.runpytest_subprocess(*COMPARE, "-p", "no:hypothesispytest", "--dist=each", "--tx=2*popen")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--dist each would measure everything in every worker*"])


def test_disabled_benchmarks_are_unjudged_not_green(project):
    """They run once, and the report says that nothing was measured."""
    result = project.runpytest("benches", "--benchmark-disable")
    result.stdout.fnmatch_lines(["*NOTHING MEASURED 2 unjudged*"])
    assert not saved_runs(project)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b'{"perfgate": {', "not valid JSON"),
        (b'{"perfgate": NaN}', "NaN is not a number"),
        (b'{"perfgate": 1e999}', "not finite"),
        (b'{"a": 1, "a": 2}', "appears twice"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"<<<<<<< HEAD\n", "resolve the merge"),
        (b"{}", "no 'perfgate' block"),
    ],
)
def test_an_unreadable_baseline_is_named_and_fails(project, content, said):
    """A broken baseline must not look like a clean comparison."""
    project.runpytest("benches")
    saved_runs(project)[0].write_bytes(content)
    result = project.runpytest(*COMPARE)
    assert said in result.stdout.str()
    assert result.ret == 1


def test_nan_and_duplicates_in_records_are_refused(project):
    """Values that would compare as false, and names of which the last would win."""
    project.runpytest("benches")
    file = saved_runs(project)[0]
    edit(file, lambda document: document["perfgate"]["records"].append(document["perfgate"]["records"][0]))
    result = project.runpytest(*COMPARE)
    assert "appears twice" in result.stdout.str()
    assert result.ret == 1


def test_runs_of_other_machines_are_listed_and_not_compared(project):
    """A green comparison with another GPU would mean nothing."""
    project.runpytest("benches")
    folder = saved_runs(project)[0].parent
    folder.rename(folder.with_name("other-gpu"))
    result = project.runpytest(*COMPARE)
    result.stdout.fnmatch_lines(["*runs of other machines are not compared: other-gpu*", "*NOT JUDGED*"])


def test_a_renamed_benchmark_is_gone_and_new(project):
    """It is not silently dropped from the comparison."""
    project.runpytest("benches")
    rewrite_bench(project, "test_amp", "test_half")
    result = project.runpytest(*COMPARE)
    result.stdout.fnmatch_lines(["*gone*test_amp*not run*", "*PASS 1 gone, 1 new, 1 same*"])
    assert result.ret == 0


def test_a_rename_in_the_settings_keeps_its_history(project):
    """Mapped, it is compared."""
    project.runpytest("benches")
    rewrite_bench(project, "test_amp", "test_half")
    settings = (project.path / "pyproject.toml").read_text(encoding="utf-8")
    old, new = "benches/test_tiny.py::test_amp", "benches/test_tiny.py::test_half"
    renamed = f'{settings}\n[tool.perfgate.renamed]\n"{old}" = "{new}"\n'
    (project.path / "pyproject.toml").write_text(renamed, encoding="utf-8")
    project.runpytest(*COMPARE).stdout.fnmatch_lines(["*PASS 2 same*"])


def test_changed_parameters_make_another_benchmark(project):
    """The same name with another batch size is not compared."""
    project.runpytest("benches")
    rewrite_bench(project, "batch_size=4", "batch_size=8")
    result = project.runpytest(*COMPARE)
    result.stdout.fnmatch_lines(["*its parameters changed*", "*2 gone, 2 new*"])


def test_nothing_in_common_fails_always(project):
    """A comparison of nothing is no comparison."""
    project.runpytest("benches")
    old = project.path / "benches" / "test_tiny.py"
    old.rename(old.with_name("test_other.py"))
    result = project.runpytest(*COMPARE)
    result.stdout.fnmatch_lines(["*0 of 2 benchmarks have a baseline*", "FAIL*"])
    assert result.ret == 1


def test_a_selection_does_not_make_the_rest_gone(project):
    """Deselected, or outside of the paths given."""
    project.runpytest("benches")
    result = project.runpytest(*COMPARE, "-k", "amp")
    result.stdout.fnmatch_lines(["*PASS 1 same*"])
    result = project.runpytest("benches/test_tiny.py::test_plain", "--benchmark-compare")
    result.stdout.fnmatch_lines(["*PASS 1 same*"])


def test_a_partial_run_does_not_hide_the_full_one_before(project):
    """The rest is compared with the newest run that has it."""
    project.runpytest("benches")
    project.runpytest("benches", "-k", "amp")
    project.runpytest(*COMPARE).stdout.fnmatch_lines(["*PASS 2 same*"])


def test_an_unknown_run_to_compare_with_is_a_usage_error(project):
    """It says what there is."""
    project.runpytest("benches")
    result = project.runpytest("benches", "--benchmark-compare=1999")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*one run of this machine * must begin so; found: none*"])


def test_a_users_own_limit_still_counts(project):
    """``--benchmark-compare-fail`` is an extra limit."""
    project.runpytest("benches")

    def faster_before(document):
        for bench, each in zip(document["benchmarks"], document["perfgate"]["records"], strict=True):
            measurement = next(m for m in each["measurements"] if m["metric"] == "wall_seconds")
            measurement["samples"] = [[value / 8 for value in measurement["samples"][0]]]
            stats = bench["stats"]
            stats["data"] = [value / 8 for value in stats["data"]]
            stats.update({key: stats[key] / 8 for key in ("min", "q1", "median", "q3", "max", "mean")})

    edit(saved_runs(project)[0], faster_before)
    result = project.runpytest(*COMPARE, "--benchmark-compare-fail=median:50%")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*PercentageRegressionCheck*"])
    assert project.runpytest("benches", "--benchmark-compare-fail=median:5%").ret == pytest.ExitCode.USAGE_ERROR


def test_a_wrong_result_fails_and_is_not_saved(project):
    """A fast wrong answer is no result."""
    (project.path / "benches" / "test_wrong.py").write_text(
        """
from dataclasses import dataclass
from workloads import MLP, Optimization

@dataclass(frozen=True)
class LargerGradients(Optimization):
    name = "larger-gradients"
    def apply(self, parts):
        backward = parts.backward
        parts.backward = lambda loss: backward(loss * 1.5)
    def proof(self, seen):
        return "always"

def test_wrong(measure):
    tiny = MLP(batch_size=4, width=8, image_size=4)
    measure(tiny.train_step(LargerGradients()), against=tiny.train_step())
""",
        encoding="utf-8",
    )
    result = project.runpytest("benches")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*wrong-result: parameters move 1.5000 times as far*"])
    assert "test_wrong" not in saved_runs(project)[0].read_text(encoding="utf-8")


def test_a_technique_that_is_not_in_effect_fails(project):
    """The proof is asked for."""
    (project.path / "benches" / "test_off.py").write_text(
        """
from dataclasses import dataclass
from workloads import MLP
from workloads.optimizations import AMP

@dataclass(frozen=True)
class Forgotten(AMP):
    def apply(self, parts):
        pass

def test_off(measure):
    tiny = MLP(batch_size=4, width=8, image_size=4)
    measure(tiny.train_step(Forgotten()), against=tiny.train_step())
""",
        encoding="utf-8",
    )
    result = project.runpytest("benches/test_off.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*not-in-effect: amp-bf16 is not in effect: expected torch.bfloat16*"])
    assert not saved_runs(project)


def test_a_leak_of_global_state_fails_the_leaking_benchmark(project):
    """And the next one starts clean."""
    (project.path / "benches" / "test_leak.py").write_text(
        """
import torch
from workloads import MLP
from workloads.steps import TrainStep

class Leaking(TrainStep):
    def run(self):
        torch.backends.cudnn.benchmark = True
        super().run()

def test_leak(measure):
    measure(Leaking(MLP(batch_size=4, width=8, image_size=4)))

def test_next(measure):
    assert not torch.backends.cudnn.benchmark
    measure(MLP(batch_size=4, width=8, image_size=4).train_step())
""",
        encoding="utf-8",
    )
    result = project.runpytest("benches/test_leak.py")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*state-leak: *cudnn.benchmark False -> True*"])


def test_what_only_trying_shows_is_skipped_with_its_reason(project):
    """A technique that finds this model not to its liking fails nobody; a broken workload does."""
    (project.path / "benches" / "test_fit.py").write_text(
        """
from dataclasses import dataclass
from workloads import MLP, Unsuitable
from workloads.optimizations import AMP

@dataclass(frozen=True)
class Picky(AMP):
    def apply(self, parts):
        raise Unsuitable("it wants a model with wings")

class Short(MLP):
    def batch(self):
        inputs, targets = super().batch()
        return inputs[1:], targets

TINY = dict(batch_size=4, width=8, image_size=4)

def test_picky(measure):
    measure(MLP(**TINY).train_step(Picky()), against=MLP(**TINY).train_step())

def test_short(measure):
    measure(Short(**TINY).train_step())
""",
        encoding="utf-8",
    )
    result = project.runpytest("benches/test_fit.py", "--perfgate-smoke")
    result.assert_outcomes(skipped=1, failed=1)
    for said in ("amp-bf16: it wants a model with wings", "batch() gave 3 inputs and 4 targets"):
        result.stdout.fnmatch_lines([f"*{said}*"])


def test_a_test_that_fails_after_measuring_is_not_saved(project):
    """pytest-benchmark would save its numbers."""
    (project.path / "benches" / "test_tiny.py").write_text(
        """
from workloads import MLP
def test_late(measure):
    measure(MLP(batch_size=4, width=8, image_size=4).train_step())
    assert False, "too late"
""",
        encoding="utf-8",
    )
    project.runpytest("benches").assert_outcomes(failed=1)
    assert not saved_runs(project)


def test_gpu_cases_skip_with_a_reason_on_a_cpu(project):
    """And the report lists them."""
    (project.path / "benches" / "test_gpu.py").write_text(
        "import pytest\n@pytest.mark.gpu\ndef test_gpu(measure): ...\n"
        "@pytest.mark.multigpu\ndef test_two(measure): ...\n",
        encoding="utf-8",
    )
    result = project.runpytest("benches", "--perfgate-device=cpu")
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(["*skipped*needs a CUDA GPU; this run has none*", "*needs two CUDA GPUs*"])


def test_an_unsuitable_technique_skips_with_its_remedy(project, monkeypatch):
    """Too few cores for the workers, no compiler for the code."""
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    (project.path / "benches" / "test_unsuitable.py").write_text(
        """
from workloads import MLP
from workloads.optimizations import Compile, Workers
TINY = MLP(batch_size=4, width=8, image_size=4)
def test_workers(measure):
    measure(TINY.loading_step(Workers(4096)), against=TINY.loading_step())
def test_compile(measure):
    measure(TINY.train_step(Compile()), against=TINY.train_step())
""",
        encoding="utf-8",
    )
    result = project.runpytest("benches/test_unsuitable.py", "--perfgate-device=cpu")
    result.assert_outcomes(skipped=2)
    text = " ".join(result.stdout.str().split())
    assert "4096 loader workers need 4096 usable cores" in text
    assert "install g++ or set CXX" in text


def test_a_smoke_run_checks_everything_and_saves_nothing(project):
    """One round, all proofs and counts."""
    result = project.runpytest("benches", "--perfgate-smoke", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_amp CHECKED*", "*PASS 2 measured*"])
    assert not saved_runs(project)


def test_a_saved_run_does_not_make_the_tree_dirty(project):
    """Or the second run of a clean checkout would be marked."""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(project.path)]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], check=True)
    (project.path / ".gitignore").write_text("__pycache__\n.*_cache\n.benchmarks\n.gitignore\n", encoding="utf-8")
    project.runpytest("benches")
    project.runpytest("benches")
    commits = [json.loads(file.read_text(encoding="utf-8"))["perfgate"]["commit"] for file in saved_runs(project)]
    assert [commit["dirty"] for commit in commits] == ["no", "no"]
    assert len(commits[0]["id"]) == 40


def test_without_git_the_commit_is_unknown(project):
    """Saving goes on."""
    project.runpytest("benches")
    block = json.loads(saved_runs(project)[0].read_text(encoding="utf-8"))["perfgate"]
    assert block["commit"] == {"id": "unknown", "branch": "unknown", "dirty": "unknown"}


def test_an_unwritable_results_folder_is_said_before_measuring(project):
    """An hour of measuring is not lost to it."""
    (project.path / "results").write_text("a file where the folder belongs", encoding="utf-8")
    result = project.runpytest("benches")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cannot save runs in*--perfgate-results*"])


def test_an_interrupted_run_is_no_baseline(project):
    """It holds the first benchmarks only."""
    file = project.path / "benches" / "test_tiny.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(f"{text}\ndef test_stop(measure):\n    raise KeyboardInterrupt\n", encoding="utf-8")
    project.runpytest_subprocess("benches")
    (saved,) = saved_runs(project)
    assert json.loads(saved.read_text(encoding="utf-8"))["perfgate"]["status"] == "interrupted"
    file.write_text(text, encoding="utf-8")
    project.runpytest(*COMPARE).stdout.fnmatch_lines(["*NOT JUDGED 2 unjudged*"])


def test_another_projects_benchmarks_are_gated_too(project):
    """A plain ``benchmark`` is judged by its times, and saved only when asked."""
    (project.path / "benches" / "test_tiny.py").write_text(
        "def test_sum(benchmark):\n    benchmark(sum, range(1000))\n", encoding="utf-8"
    )
    project.runpytest("benches").assert_outcomes(passed=1)
    assert not saved_runs(project)
    project.runpytest(*COMPARE).stdout.fnmatch_lines(["*NOT JUDGED*"])
    project.runpytest(*COMPARE).stdout.fnmatch_lines(["*PASS 1 same*"])


def test_an_unknown_setting_is_a_usage_error(project):
    """With the settings there are."""
    project.makepyprojecttoml("[tool.perfgate]\nthresold = 0.1\n")
    result = project.runpytest("benches")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no setting 'thresold'*threshold*"])


def test_an_unknown_option_value_is_a_usage_error(project):
    """argparse says which there are."""
    result = project.runpytest("benches", "--perfgate-device=tpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*invalid choice: 'tpu'*"])


def test_no_secret_of_the_environment_reaches_a_file(project, monkeypatch):
    """Only an allow-list of variables is recorded."""
    monkeypatch.setenv("GH_TOKEN", "hunter2-very-secret")
    project.runpytest("benches")
    text = saved_runs(project)[0].read_text(encoding="utf-8")
    assert "hunter2" not in text
    assert os.uname().nodename not in text or len(os.uname().nodename) < 4


def test_importing_the_plugin_imports_neither_torch_nor_numpy():
    """It is loaded by every pytest session of every project it is installed beside."""
    code = "import sys, perfgate.plugin; print([m for m in ('torch', 'numpy', 'pynvml', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_pytest_benchmark_still_has_what_is_used_of_it(pytestconfig):
    """The canary of the one private attribute."""
    session = pytestconfig._benchmarksession
    assert isinstance(session.benchmarks, list)
