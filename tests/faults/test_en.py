"""Compilers and the environment: what is missing, what is set, who watches, where it runs."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

from perfgate import interference, launch, limits, repository
from perfgate.errors import StateLeak
from perfgate.measure import procedure
from perfgate.measure.counters import compile_counts
from perfgate.measure.state import guarded_state
from perfgate.results.document import dumps, to_document
from perfgate.results.record import identity_hash
from tests.conftest import around, record, run, saved_runs, stock_of
from workloads import MLP, NotInEffect
from workloads.optimizations import AMP, Compile, compilers

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
ROOT = Path(__file__).parent.parent.parent
TINY = MLP(batch_size=4, width=8, image_size=4)


@pytest.mark.parametrize(
    ("compiler", "said"),
    [
        ("/nonexistent", "no C++ compiler (/nonexistent) found"),
        ("/bin/false", "does not compile (exit code 1)"),
        ("/bin/true --version", ""),
        ("/etc/passwd", "no C++ compiler (/etc/passwd) found"),
    ],
)
def test_en_01_a_compiler_is_tried_before_measuring(monkeypatch, compiler, said):
    """One that is found and does not work is no compiler."""
    monkeypatch.setenv("CXX", compiler)
    reason = Compile().unsuitable(TINY, CPU)
    if said:
        assert said in reason
        assert reason.endswith("install g++ or set CXX")
    else:
        assert reason is None


def test_en_01_a_compiler_without_its_headers(monkeypatch, tmp_path):
    """Its first complaint is shown."""
    script = tmp_path / "g++"
    script.write_text("#!/bin/sh\necho 'cmath: No such file or directory' >&2\nexit 1\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    assert "(cmath: No such file or directory)" in compilers.missing_for_cpu()


def test_en_01_no_compiler_at_all_is_a_skip_and_never_a_number(project, monkeypatch):
    """In a whole session."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(shutil, "which", lambda *words, **options: None)
    (project.path / "benches" / "test_tiny.py").write_text(
        "from workloads import MLP\nfrom workloads.optimizations import Compile\n"
        "def test_compile(measure):\n    measure(MLP(batch_size=4).train_step(Compile()))\n",
        encoding="utf-8",
    )
    result = project.runpytest("benches")
    result.assert_outcomes(skipped=1)
    assert "no C++ compiler (g++) found: install g++ or set CXX" in " ".join(result.stdout.str().split())
    assert not saved_runs(project)


def test_en_02_triton_is_missing(monkeypatch):
    """On a GPU, kernels are written in it."""
    monkeypatch.setitem(sys.modules, "triton", None)
    assert Compile().unsuitable(TINY, CUDA).endswith("pip install triton")


def test_en_02_triton_needs_a_c_compiler(monkeypatch):
    """It calls one for its launchers."""
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("CC", "/nonexistent")
    assert "no C compiler (/nonexistent) found" in Compile().unsuitable(TINY, CUDA)
    monkeypatch.delenv("CC")
    monkeypatch.setattr(shutil, "which", lambda *words, **options: None)
    assert Compile().unsuitable(TINY, CUDA).endswith("install gcc or set CC")


SLOW_FIRST = """
import time
from workloads import MLP

def test_slow_first(measure):
    step = MLP(batch_size=4, width=8, image_size=4).train_step()
    calls = []
    run = step.run
    def compiling():
        calls.append(1)
        time.sleep(0.5 if len(calls) == 1 else 0)
        run()
    step.run = compiling
    measure(step)
"""


def test_en_03_what_the_first_call_takes_is_a_metric_of_its_own(project):
    """Compiling is never inside the timed rounds."""
    (project.path / "benches" / "test_tiny.py").write_text(SLOW_FIRST, encoding="utf-8")
    project.runpytest("benches").assert_outcomes(passed=1)
    (saved,) = json.loads(saved_runs(project)[0].read_text(encoding="utf-8"))["perfgate"]["records"]
    seconds = {each["metric"]: each["samples"][0] for each in saved["measurements"] if each["samples"]}
    assert min(seconds["first_call_seconds"]) >= 0.5
    assert max(seconds["wall_seconds"]) < 0.5


def test_en_04_a_recompilation_in_the_timed_rounds_fails(project, monkeypatch):
    """Its time is of the compiler."""
    counted = iter(range(100))
    monkeypatch.setattr(procedure, "compile_counts", lambda: type(compile_counts())(next(counted), 0))
    result = project.runpytest("benches", "-k", "plain")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*recompiled: 1 graphs were compiled inside the timed rounds*"])
    assert not saved_runs(project)


def test_en_05_a_silent_fallback_to_eager_is_not_in_effect():
    """``suppress_errors`` makes a broken compiler look like no speedup."""

    def broken(graph, inputs):
        raise RuntimeError("this backend compiles nothing")

    step = TINY.inference_step(Compile())
    step.build(CPU)
    try:
        model = step.parts.model
        model.forward = torch.compile(type(model).forward.__get__(model), backend=broken)
        before = compile_counts()
        with torch._dynamo.config.patch(suppress_errors=True):
            step.run()
        graphs = compile_counts().since(before).graphs
        with pytest.raises(NotInEffect, match="suppress_errors"):
            step.proof({"compiled_graphs": graphs})
    finally:
        step.release()


@pytest.mark.parametrize("name", interference.REFUSED)
def test_en_06_variables_under_which_no_time_is_worth_anything(name):
    """Each with what it does and the remedy; switched off, they do nothing."""
    (sentence,) = interference.refused({name: "1", "PATH": "/bin"})
    assert sentence.startswith(f"{name} is set ({interference.REFUSED[name]})")
    assert "unset it" in sentence
    assert not interference.refused({name: "0"})
    assert not interference.refused({})


def test_en_06_only_named_variables_are_stored_and_only_settings():
    """Neither paths of somebody's home nor sentences, whatever the name."""
    environment = {
        "OMP_NUM_THREADS": "4",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "LD_PRELOAD": "/home/somebody/lib.so",
        "DEBUG": "hunter2",
        "TORCH_LOGS": "a secret sentence",
        "GH_TOKEN": "hunter2",
        "HOME": "/home/somebody",
    }
    assert interference.recorded(environment) == {
        "OMP_NUM_THREADS": "4",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "LD_PRELOAD": "set",
        "DEBUG": "set",
        "TORCH_LOGS": "set",
    }


def test_en_06_a_variable_is_refused_or_recorded_and_not_both():
    """A run under a refused one does not exist."""
    assert not set(interference.REFUSED) & set(interference.RECORDED)


def test_en_07_no_secret_of_environment_or_command_line_is_in_any_file(project, monkeypatch):
    """Not in the run, nor in the verdicts, nor in JUnit."""
    for name in ("GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "TORCH_LOGS_TOKEN"):
        monkeypatch.setenv(name, "hunter2-very-secret")
    words = ("--benchmark-compare", "--perfgate-json=verdicts.json", "--junitxml=junit.xml")
    project.runpytest("benches", *words, "-o", "console_output_style=classic", "-k", "plain or hunter2_argument")
    written = [file for file in project.path.rglob("*") if file.is_file() and ".pytest_cache" not in file.parts]
    assert {"verdicts.json", "junit.xml"} <= {file.name for file in written}
    assert len(saved_runs(project)) == 1
    for file in written:
        assert b"hunter2" not in file.read_bytes(), file
    assert f"{Path.home()}/" not in saved_runs(project)[0].read_text(encoding="utf-8")


def test_en_08_a_tracer_is_named():
    """A debugger or coverage by line, a profiler by call."""
    before = sys.gettrace()
    if before is None:
        assert interference.tracing() == "" or interference.tracers()
    try:
        sys.settrace(lambda frame, event, argument: None)
        assert "sys.settrace" in interference.tracing()
        assert "--perfgate-smoke" in interference.tracing()
    finally:
        sys.settrace(before)


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring came with Python 3.12")
def test_en_08_a_tool_of_sys_monitoring_is_named():
    """As coverage uses it from Python 3.14 on."""
    sys.monitoring.use_tool_id(3, "watcher")
    try:
        assert "watcher (sys.monitoring)" in interference.tracers()
    finally:
        sys.monitoring.free_tool_id(3)


def test_en_09_a_leak_of_global_state_is_undone_and_named():
    """So that it fails the benchmark that leaks."""
    with pytest.raises(StateLeak, match="default dtype"), guarded_state(CPU):
        torch.set_default_dtype(torch.float64)
    assert torch.get_default_dtype() == torch.float32


def test_en_10_the_deprecated_pynvml_is_not_a_dependency():
    """Its name warns at ``import torch``; the maintained package is nvidia-ml-py."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [each for group in project["dependency-groups"].values() for each in group]
    names = [each.partition(">")[0] for each in [*project["project"]["dependencies"], *groups]]
    assert "nvidia-ml-py" in names
    assert "pynvml" not in names


BLOCKED = """
import sys
for name in ("torch", "torchvision", "pynvml"):
    sys.modules[name] = None
from perfgate.cli import main
"""


def python(code, *arguments, environment=None):
    """A finished Python process."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=environment,
    )


@pytest.fixture
def two_files(tmp_path, monkeypatch):
    """Two saved runs of one benchmark, in a folder without settings."""
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b.json"):
        made = run(record("benches/test_a.py::test_a[größe]", around(0.01)))
        (tmp_path / name).write_bytes(dumps(to_document(made, stock_of(made))))
    return tmp_path / "a.json", tmp_path / "b.json"


def test_en_11_without_torch_the_command_says_what_it_does():
    """Importing it needs no torch."""
    done = python(BLOCKED + "sys.exit(main(['--help']))")
    assert done.returncode == 0, done.stderr
    assert "compare" in done.stdout


def test_en_11_without_torch_saved_runs_are_compared(two_files):
    """On any machine."""
    done = python(BLOCKED + "sys.exit(main(['compare', *sys.argv[1:]]))", *two_files)
    assert done.returncode in (0, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert "1 " in done.stdout.splitlines()[-1]


VARIANTS = {
    "narrow": {"COLUMNS": "40"},
    "one column": {"COLUMNS": "1"},
    "dumb": {"TERM": "dumb", "COLUMNS": "40"},
    "no colour": {"NO_COLOR": "1"},
    "no UTF-8": {"LC_ALL": "C", "LANG": "C"},
    "no home": {"HOME": None},
    "home that cannot be written": {"HOME": "/proc"},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_en_12_saved_runs_are_compared_in_any_terminal(two_files, variant):
    """Same verdict, nothing that a terminal would have to interpret."""
    environment = {**os.environ, **VARIANTS[variant]}
    environment = {name: value for name, value in environment.items() if value is not None}
    code = "import sys; from perfgate.cli import main; sys.exit(main(['compare', *sys.argv[1:]]))"
    done = python(code, *two_files, environment=environment)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 3), done.stderr
    assert "\x1b" not in done.stdout
    if VARIANTS[variant].get("COLUMNS") == "40":
        assert max(map(len, done.stdout.splitlines())) <= 40


def test_en_12_a_session_without_a_home(project, monkeypatch):
    """Nothing is read or written there."""
    monkeypatch.setenv("HOME", "/proc")
    for name in ("XDG_CACHE_HOME", "PERFGATE_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "40")
    result = project.runpytest("benches", "-k", "plain")
    result.assert_outcomes(passed=1, deselected=1)
    assert len(saved_runs(project)) == 1


def git(folder, *words):
    """Run git as somebody."""
    somebody = ["-c", "user.name=n", "-c", "user.email=e@e", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", "-C", str(folder), *somebody, *words], check=True, capture_output=True)


@pytest.fixture
def upstream(tmp_path, monkeypatch):
    """A repository with two commits, and nothing around it."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for content in ("a", "b"):
        (folder / "file").write_text(content, encoding="utf-8")
        git(folder, "add", "file")
        git(folder, "commit", "-qm", content)
    return folder


UNKNOWN = {"id": "unknown", "branch": "unknown", "dirty": "unknown"}


def test_en_13_a_shallow_clone(upstream, tmp_path):
    """Its commit is known, its base may not be."""
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{upstream}", "shallow")
    found = repository.commit(tmp_path / "shallow", ignoring="results")
    assert len(found["id"]) == 40
    assert found["dirty"] == "no"
    assert len(repository.ancestors(tmp_path / "shallow")) == 1


def test_en_13_a_detached_head(upstream):
    """As continuous integration checks out."""
    git(upstream, "checkout", "-q", "--detach", "HEAD~1")
    found = repository.commit(upstream, ignoring="results")
    assert len(found["id"]) == 40
    assert found["branch"] == "HEAD"


def test_en_13_no_commit_yet(tmp_path, monkeypatch):
    """Right after ``git init``."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    git(tmp_path, "init", "-q")
    assert repository.commit(tmp_path, ignoring="results") == UNKNOWN


def test_en_13_a_submodule(upstream, tmp_path):
    """Its own commit, not that of what it lies in."""
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "submodule", "add", "-q", f"file://{upstream}", "inner")
    inner, there = (repository.commit(each, ignoring="results")["id"] for each in (outer / "inner", upstream))
    assert inner == there


def test_en_13_a_repository_of_somebody_else(upstream, monkeypatch):
    """Git refuses it (safe.directory), as in a container with a mounted checkout."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("HOME", "/nonexistent")
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    assert repository.commit(upstream, ignoring="results") == UNKNOWN
    assert repository.ancestors(upstream) is None


@pytest.mark.parametrize("kind", ["tarball", "no git"])
def test_en_13_without_a_repository_or_git_a_run_is_saved_all_the_same(project, monkeypatch, kind):
    """With an unknown commit."""
    if kind == "no git":
        monkeypatch.setenv("PATH", "/nonexistent")
    project.runpytest("benches", "-k", "plain").assert_outcomes(passed=1, deselected=1)
    (file,) = saved_runs(project)
    assert json.loads(file.read_text(encoding="utf-8"))["perfgate"]["commit"] == UNKNOWN


def test_en_14_another_platform(monkeypatch, tmp_path):
    """Neither affinity nor /proc nor control groups nor POSIX limits: unknown, and never an error."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "statvfs", raising=False)
    monkeypatch.setitem(sys.modules, "resource", None)
    assert launch.effective_cores() >= 1
    assert limits.effective_cores(tmp_path, tmp_path) >= 1
    assert limits.shared_memory(tmp_path) is None
    assert limits.open_files_limit() is None
    assert limits.memory_limit_bytes(tmp_path, tmp_path) is None
    assert set(limits.memory_readings(tmp_path).values()) == {"unknown"}
    assert limits.shortages(2**40, cgroups=tmp_path, proc=tmp_path) == []


def test_en_14_the_compiler_of_a_mac_is_clang(monkeypatch):
    """As torch has it."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(shutil, "which", lambda *words, **options: None)
    assert "clang++" in compilers.missing_for_cpu()


def test_en_15_neither_hash_seed_nor_earlier_random_numbers_matter():
    """Names, identities and weights are the same in every process."""
    step = TINY.train_step(AMP())
    code = (
        "import torch; torch.rand(7)\n"
        "from perfgate.results.record import identity_hash\n"
        "from workloads import MLP; from workloads.optimizations import AMP\n"
        "step = MLP(batch_size=4, width=8, image_size=4).train_step(AMP())\n"
        "step.build(torch.device('cpu'))\n"
        "total = sum(each.double().sum() for each in step.parts.model.parameters())\n"
        "print(step, identity_hash(step.identity), float(total))\n"
    )
    said = [python(code, environment={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")]
    assert said[0] == said[1]
    assert said[0].startswith(f"{step} {identity_hash(step.identity)} ")


def test_en_15_the_policy_of_the_garbage_collector_is_recorded(project):
    """It is off in timed rounds, and the run says so."""
    project.runpytest("benches", "-k", "plain")
    (process,) = json.loads(saved_runs(project)[0].read_text(encoding="utf-8"))["perfgate"]["processes"]
    assert process["tunables"]["garbage_collection"] == "off in timed rounds"
