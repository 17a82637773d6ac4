"""On a real GPU: sessions in which a benchmark breaks the device's process, or runs out of its memory.

Not run by ``make test``: ``tox run -e gpu`` does, on a machine that has one.
"""

import json

import pytest

from perfgate.results.store import read
from tests.conftest import saved_runs

pytestmark = pytest.mark.gpu

SUITE = """
import pytest, torch
from workloads import MLP
TINY = MLP(batch_size=4, width=8, image_size=4)

def test_before(measure):
    measure(TINY.train_step())

def test_breaks(measure):
    torch.ones(2, device="cuda")[torch.tensor([5], device="cuda")].sum().item()

def test_between(measure):
    measure(TINY.train_step())

def test_greedy(measure):
    torch.empty(2**50, dtype=torch.uint8, device="cuda")

def test_after(measure):
    measure(TINY.train_step())
"""


@pytest.fixture
def session(project):
    """Runs the suite in processes of their own, on the GPU; the code of each benchmark."""
    (project.path / "benches" / "test_tiny.py").write_text(SUITE, encoding="utf-8")

    def run(*words):
        result = project.runpytest_subprocess(
            "benches", "--perfgate-device=cuda", "--benchmark-compare", "--perfgate-json=out.json", *words
        )
        found = json.loads((project.path / "out.json").read_text(encoding="utf-8"))["verdicts"]
        return result, {each["id"].rpartition("test_")[2]: each for each in found}

    return run


def test_what_breaks_its_process_costs_itself_only(session, project):
    """With a worker: an error that stays in the process, and memory that ran out; everything else is measured."""
    result, found = session("-n", "1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert (found["breaks"]["verdict"], found["breaks"]["code"]) == ("unjudged", "cuda-error")
    assert "device-side assert" in found["breaks"]["reason"]
    assert (found["greedy"]["verdict"], found["greedy"]["code"]) == ("unjudged", "out-of-memory")
    (file,) = saved_runs(project)
    run = read(file)
    assert [each.id.rpartition("test_")[2] for each in run.records] == ["before", "between", "after"]
    assert "gpu" in run.machine.hard


def test_without_a_worker_the_session_ends_there_and_says_why(session, project):
    """Everything that was measured is kept."""
    result, found = session()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert found["breaks"]["code"] == "cuda-error"
    assert {found[name]["code"] for name in ("between", "greedy", "after")} == {"not-run"}
    (file,) = saved_runs(project)
    assert [each.id.rpartition("test_")[2] for each in read(file).records] == ["before"]
