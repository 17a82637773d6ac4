"""Batch sizes: the knee, the largest batch that fits, out of memory as an answer, the files."""

import csv

import pytest
import torch

from workloads import MLP, Unsuitable, capacity, memory, sweep
from workloads.capacity import LIMIT, PRECISION, LargestBatch, fits_on, is_out_of_memory, largest_batch, within_memory
from workloads.commands import plots
from workloads.sweep import Point, best_batch, knee, knee_or_not

CPU = torch.device("cpu")
CPU_MESSAGE = "[enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried ..."
SMALL = MLP(batch_size=4, width=8, image_size=4)


def points(rates):
    """One point per batch size and throughput."""
    return [Point(batch_size=size, step_seconds=size / rate, peak_bytes=1000 * size) for size, rate in rates.items()]


def sized(batch_size):
    """A training step of so many samples."""
    return MLP(batch_size=batch_size, width=8, image_size=4).train_step()


class TestKnee:
    """The smallest batch with 95 % of the best throughput."""

    def test_a_plateau_begins_at_its_knee(self):
        """What comes after it costs memory for nothing."""
        assert knee(points({16: 100, 32: 190, 64: 385, 128: 400, 256: 390})).batch_size == 64

    def test_where_throughput_still_rises_there_is_none(self):
        """Nothing smaller than the last is near, and what comes after it is not known; it is the best so far."""
        rising = points({64: 400, 16: 100, 32: 200})
        assert knee(rising) is None
        assert best_batch(rising).batch_size == 64

    @pytest.mark.parametrize(
        ("rates", "said"),
        [
            ({16: 100, 32: 200, 512: 400}, "still rising at 512"),
            ({16: 100, 32: 390, 512: 400}, "knee at 32"),
            ({16: 100}, "one size alone tells no knee"),
        ],
    )
    def test_in_words(self, rates, said):
        """As the tables and the picture say it."""
        assert knee_or_not(points(rates)) == said

    def test_the_order_does_not_matter(self):
        """Points may come in any."""
        assert knee(points({128: 400, 16: 399, 64: 380})).batch_size == 16


class TestLargestBatch:
    """Doubling, then bisection."""

    @pytest.mark.parametrize("capacity", [1, 2, 3, 7, 8, 9, 100, 1000])
    @pytest.mark.parametrize("start", [1, 8, 300])
    def test_it_is_found(self, capacity, start):
        """From below, and from above; small ones exactly."""
        found = largest_batch(lambda size: size <= capacity, start=start, limit=4096)
        assert capacity * (1 - 1 / PRECISION) <= found <= capacity

    def test_few_attempts(self):
        """Each builds a model: twice the logarithm, and no size twice."""
        tried = []
        largest_batch(lambda size: tried.append(size) or size <= 700, start=16)
        assert len(tried) == len(set(tried)) <= 2 * 10

    def test_a_large_batch_is_found_within_a_64th(self):
        """Each attempt there takes seconds, and the last samples change nothing."""
        tried = []
        found = largest_batch(lambda size: tried.append(size) or size <= 20_000, start=32, limit=10**6)
        assert 20_000 * (1 - 1 / PRECISION) <= found <= 20_000
        assert len(tried) <= 10 + 7

    def test_the_limit_ends_the_search(self):
        """Nothing above it is tried."""
        tried = []
        assert largest_batch(lambda size: tried.append(size) or True, start=48, limit=100) == 100
        assert max(tried) == 100

    def test_the_largest_size_has_32_bit_indices(self):
        """At the activations per sample of ResNet-18 on 32x32."""
        assert LIMIT * 2**16 <= 2**31 - 1

    def test_not_even_one(self):
        """Said, with what to do."""
        with pytest.raises(Unsuitable, match="not even one sample fits"):
            largest_batch(lambda size: False, start=64)


class TestOutOfMemory:
    """Told apart from other errors, and survived."""

    @pytest.mark.parametrize(
        "error",
        [
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
            RuntimeError(CPU_MESSAGE),
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            MemoryError(),
        ],
        ids=["cuda", "cpu", "cublas", "python"],
    )
    def test_it_is_an_answer(self, error):
        """None, instead of an error."""

        def fail():
            raise error

        assert is_out_of_memory(error)
        assert within_memory(fail, CPU) is None

    def test_other_errors_are_errors(self):
        """A wrong shape does not pass for a lack of memory."""

        def fail():
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

        with pytest.raises(RuntimeError, match="shapes"):
            within_memory(fail, CPU)

    def test_the_allocator_itself_is_recognised(self):
        """What torch really raises on this CPU."""
        assert within_memory(lambda: torch.empty(2**60, dtype=torch.uint8), CPU) is None

    def test_the_gpu_cache_is_emptied(self, monkeypatch):
        """After the error's traceback, which holds tensors, is gone."""
        emptied = []
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))

        def fail():
            raise torch.OutOfMemoryError("CUDA out of memory")

        within_memory(fail, torch.device("cuda"))
        assert emptied

    def test_a_step_that_does_not_fit(self, monkeypatch):
        """The search goes on with a smaller one."""
        build = capacity.TrainStep.build

        def limited(self, device):
            if self.samples > 5:
                raise torch.OutOfMemoryError("CUDA out of memory")
            build(self, device)

        monkeypatch.setattr(capacity.TrainStep, "build", limited)
        assert largest_batch(fits_on(sized, CPU), start=4) == 5


class TestLargestBatchStep:
    """The benchmark's step."""

    def test_it_needs_a_gpu(self):
        """Host memory swaps before it runs out."""
        assert "CUDA GPU" in LargestBatch(SMALL).unsuitable(CPU)

    @pytest.mark.parametrize(("fitting", "note"), [(700, None), (10**9, f"the limit of the search, {LIMIT}")])
    def test_its_figure(self, monkeypatch, fitting, note):
        """The size, and whether it is only the limit."""
        monkeypatch.setattr(capacity, "fits_on", lambda step_of, device: lambda size: size <= fitting)
        step = LargestBatch(SMALL)
        step.build(CPU)
        (figure,) = step.figures()
        assert (figure.name, figure.unit, figure.note) == ("largest_batch", "samples", note)
        assert min(fitting, LIMIT) * (1 - 1 / PRECISION) <= figure.values[0] <= min(fitting, LIMIT)

    def test_it_looks_for_its_own_stack(self):
        """With another batch size."""
        step = LargestBatch(SMALL)._of(12)
        assert step.samples == 12
        assert step.kind == "train"


class TestSweep:
    """Points of training steps."""

    def test_a_point_per_size(self):
        """In rising order, each size once, with throughput and memory."""
        found = sweep.sweep(sized, [8, 2, 8], CPU, budget_seconds=0.01)
        assert [each.batch_size for each in found] == [2, 8]
        assert all(each.samples_per_second == each.batch_size / each.step_seconds for each in found)
        assert all(each.peak_bytes > 2**20 for each in found)

    def test_it_ends_where_memory_does(self, monkeypatch):
        """With the sizes that fit."""

        def limited(step, device, budget_seconds):
            if step.samples > 8:
                raise RuntimeError(CPU_MESSAGE)
            return Point(batch_size=step.samples, step_seconds=1.0, peak_bytes=1)

        monkeypatch.setattr(sweep, "measure_point", limited)
        assert [each.batch_size for each in sweep.sweep(sized, [4, 8, 16, 32], CPU)] == [4, 8]
        with pytest.raises(Unsuitable, match="no batch of 16 samples fits"):
            sweep.sweep(sized, [16, 32], CPU)

    def test_a_step_that_cannot_be_used(self):
        """Says why."""
        with pytest.raises(Unsuitable, match="CUDA GPU"):
            sweep.sweep(lambda size: LargestBatch(SMALL), [4], CPU)

    def test_csv(self, tmp_path):
        """A line per size, the knee marked."""
        sweep.write_csv(points({16: 100, 32: 398, 64: 400}), tmp_path / "sizes.csv")
        rows = list(csv.DictReader((tmp_path / "sizes.csv").read_text().splitlines()))
        assert [row["batch_size"] for row in rows] == ["16", "32", "64"]
        assert [row["knee"] for row in rows] == ["0", "1", "0"]
        assert rows[0]["samples_per_second"] == "100"
        assert rows[0]["peak_bytes"] == "16000"

    def test_csv_without_a_knee(self, tmp_path):
        """No line is marked."""
        sweep.write_csv(points({16: 100, 32: 200}), tmp_path / "sizes.csv")
        rows = list(csv.DictReader((tmp_path / "sizes.csv").read_text().splitlines()))
        assert [row["knee"] for row in rows] == ["0", "0"]

    def test_png(self, tmp_path):
        """A picture, where matplotlib is installed."""
        pytest.importorskip("matplotlib")
        plots.plot_sweep(points({16: 100, 32: 398, 64: 400}), tmp_path / "sizes.png", "mlp on a CPU")
        assert (tmp_path / "sizes.png").read_bytes().startswith(b"\x89PNG")

    def test_without_matplotlib(self, monkeypatch, tmp_path):
        """What to install."""
        monkeypatch.setattr(plots.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(Unsuitable, match=r"pip install 'perfgate\[plots\]'"):
            plots.plot_sweep(points({16: 100}), tmp_path / "sizes.png", "")


class TestPeakMemory:
    """Read where the device keeps it."""

    def test_on_a_gpu_it_is_the_allocators(self, monkeypatch):
        """Started anew, then read."""
        said = []
        monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: said.append("reset"))
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 12345)
        memory.forget_peak(torch.device("cuda"))
        assert memory.peak_bytes(torch.device("cuda")) == 12345
        assert said == ["reset"]

    @pytest.mark.skipif(not memory.STATUS.exists(), reason="getrusage is all there is")
    def test_on_a_cpu_it_is_this_processs_own(self, monkeypatch):
        """getrusage gives the peak of whoever started the process, where that is more."""

        class Fat:
            ru_maxrss = 2**40

        monkeypatch.setattr(memory.resource, "getrusage", lambda who: Fat)
        assert 2**20 < memory.peak_bytes(CPU) < 2**40

    def test_where_there_is_no_status(self, monkeypatch, tmp_path):
        """Not on Linux: getrusage it is."""
        monkeypatch.setattr(memory, "STATUS", tmp_path / "status")
        assert memory.peak_bytes(CPU) > 2**20

    def test_a_kernel_that_does_not_let_it_start_anew(self, monkeypatch, tmp_path):
        """Is no error."""
        monkeypatch.setattr(memory, "FORGET", tmp_path / "absent" / "clear_refs")
        memory.forget_peak(CPU)
        assert memory.peak_bytes(CPU) > 2**20
