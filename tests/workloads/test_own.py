"""A user's own workloads: found, or refused with what is wrong; and the comparisons that each gives."""

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest
import torch
from torch import nn

from perfgate.measure.check import check_same_result
from workloads import MLP, Optimization, Unsuitable, Workload, comparisons, own
from workloads.optimizations import AMP, CATALOGUE, Compile, PersistentWorkers, Workers

MODULE = """
from dataclasses import dataclass
from workloads import MLP, Workload

@dataclass(frozen=True, kw_only=True)
class Tagger(MLP):
    name = "tagger"

@dataclass(frozen=True, kw_only=True)
class Sized(MLP):
    size: int

NET = Tagger(batch_size=4)
SAME = Tagger(batch_size=4)
OTHER = Sized(name="tagger", size=1, batch_size=4) if False else Tagger(batch_size=8)
NUMBER = 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current directory of one's own, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(own, "entry_points", lambda group: [])
    monkeypatch.delenv(own.VARIABLE, raising=False)
    known = set(sys.modules)
    (tmp_path / "our_models.py").write_text(MODULE, encoding="utf-8")
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_without_any_there_are_none(here):
    """Nothing asked for, nothing installed."""
    assert own.load() == ()


def test_the_variable_names_instances_and_classes(here, monkeypatch):
    """Separated by commas; a class is made with its defaults."""
    monkeypatch.setenv(own.VARIABLE, "our_models:NET, our_models:Tagger,")
    assert list(map(str, own.load())) == ["tagger-b4", "tagger-b128"]


def test_installed_packages_give_theirs(here, monkeypatch):
    """Through the group of entry points, and one that is also asked for comes once."""
    point = EntryPoint("net", "our_models:NET", own.GROUP)
    monkeypatch.setattr(own, "entry_points", lambda group: [point] if group == own.GROUP else [])
    monkeypatch.setenv(own.VARIABLE, "our_models:SAME")
    assert list(map(str, own.load())) == ["tagger-b4"]


def test_two_of_one_slug_are_refused(here, monkeypatch):
    """Their benchmarks would have one name."""
    text = f"{MODULE}\nclass Twin(Tagger): pass\nTWIN = Twin(batch_size=4)\n"
    (here / "our_models.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv(own.VARIABLE, "our_models:NET,our_models:TWIN")
    with pytest.raises(Unsuitable, match="2 different workloads are called tagger-b4: set the class variable 'name'"):
        own.load()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tagger", "'tagger' names no workload: write module:NAME"),
        (":NET", "names no workload"),
        ("our_models:", "names no workload"),
        ("no_such_models:NET", "no module is called no_such_models: looked in"),
        ("our_models.deeper:NET", "no module is called our_models.deeper"),
        ("our_models:NETT", "our_models has no NETT; there is NET, Tagger, Sized"),
        ("our_models:NUMBER", "our_models:NUMBER is a int, not a Workload: derive it from workloads.Workload"),
        ("our_models:dataclass", "is a function, not a Workload"),
        ("collections:OrderedDict", "is the class OrderedDict, not a Workload"),
        ("collections:NET", "collections has no NET and no workload at all"),
        ("our_models:Sized", "cannot be made .*size.*: give its fields defaults, or name an instance"),
    ],
)
def test_what_is_no_workload_is_refused(here, name, said):
    """With what was looked for and what to do."""
    with pytest.raises(Unsuitable, match=said):
        own.named(name)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import no_such_library", r"needs the module no_such_library, which is not installed \(.*broken.py:2\)"),
        ("1 / 0", r"importing broken raised ZeroDivisionError: division by zero \(.*broken.py:2\)"),
        ("raise SystemExit(3)", r"importing broken raised SystemExit: 3"),
        ("def f(:", "importing broken raised SyntaxError"),
        ("import our_models\nour_models.Tagger(batch_size=0)", "Unsuitable: tagger: batch_size must be at least 1"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named_with_the_line(here, code, said):
    """Its own error stays as the cause."""
    (here / "broken.py").write_text(f"# broken\n{code}\n", encoding="utf-8")
    with pytest.raises(Unsuitable, match=said) as found:
        own.named("broken:NET")
    assert found.value.__cause__ is not None


@dataclass(frozen=True)
class Fast(Optimization):
    """One setting of two."""

    name: ClassVar[str] = "speed"
    mode: str = "fast"

    def baseline(self):
        """The other one."""
        return (Fast("slow"),)


TINY = MLP(batch_size=4, width=8, image_size=4)


def stacks(technique):
    """The techniques on either side of each comparison of one."""
    return [(each.step.optimizations, each.against.optimizations) for each in comparisons(TINY, [technique])]


def test_a_technique_is_compared_with_the_plain_step():
    """On each kind of step it works in."""
    found = comparisons(TINY, [AMP()])
    assert [each.kind for each in found] == ["train", "inference"]
    assert stacks(AMP()) == [((AMP(),), ())] * 2


def test_a_technique_with_a_need_has_it_on_both_sides():
    """Workers that live on are compared with workers that do not; loaders load."""
    assert stacks(PersistentWorkers()) == [((Workers(2), PersistentWorkers()), (Workers(2),))]


def test_a_setting_takes_the_place_of_the_one_it_is_compared_with():
    """Two of one slot cannot be stacked; the one that names itself is a twin only."""
    assert stacks(Fast()) == [((Fast(),), (Fast("slow"),))] * 2
    assert comparisons(TINY, [Fast("slow")]) == []


def test_what_only_an_epoch_can_use_is_compared_on_an_epoch():
    """Anything else has a shorter step."""
    only = type("Only", (AMP,), {"kinds": frozenset({"epoch"})})()
    both = type("Both", (AMP,), {"kinds": frozenset({"epoch", "load"})})()
    assert [each.kind for each in comparisons(TINY, [only, both])] == ["load", "epoch"]
    assert comparisons(TINY, [only])[0].step.kind == "epoch"


def test_every_technique_of_the_catalogue_is_compared_or_a_twin():
    """None is left out by accident."""
    compared = {each.technique for each in comparisons(TINY)}
    twins = {twin for each in CATALOGUE.values() for twin in each.baseline()}
    assert set(CATALOGUE.values()) - compared <= twins


def test_ids_are_stable_readable_and_unique():
    """They name benchmarks."""
    ids = list(map(str, comparisons([TINY, MLP()])))
    assert "mlp-b4-imagesize4-width8 train amp-bf16" in ids
    assert len(ids) == len(set(ids))


class Dropping(nn.Module):
    """Drops by a function that no hook of a dropout module would show."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 3)

    def forward(self, inputs):
        return self.layer(nn.functional.dropout(inputs, 0.5, training=self.training))


@dataclass(frozen=True, kw_only=True)
class Dropout(Workload):
    """A model that is random in training, and no dataset."""

    name: ClassVar[str] = "dropout"

    def model(self):
        return Dropping()

    def batch(self):
        return torch.randn(32, 8), torch.arange(32) % 3


@pytest.mark.parametrize("technique", [AMP(), Compile()], ids=str)
def test_a_model_with_dropout_can_be_checked(technique):
    """Twins would drop different values, so nothing is dropped in the check, and everything stays in training."""
    step, plain = Dropout().train_step(technique), Dropout().train_step()
    if step.unsuitable(torch.device("cpu")):
        pytest.skip(step.unsuitable(torch.device("cpu")))
    step.build(torch.device("cpu"))
    plain.build(torch.device("cpu"))
    assert "cosine" in check_same_result(step.outcome(), plain.reference_outcome(step), step.tolerance)
    assert all(each.training for each in step.parts.model.modules())
    step.release()


def test_a_workload_without_samples_has_nothing_to_load():
    """A batch is enough for everything else."""
    assert "has no dataset()" in Dropout().loading_step().unsuitable(torch.device("cpu"))
