"""Pinned stacks: of the catalogue, without a clash, for one kind of device."""

import dataclasses

import pytest
import torch

from workloads import MLP, ResNet18, Unsuitable
from workloads.stacks import BEST, best_stack
from workloads.workload import clashes

CPU = torch.device("cpu")


@pytest.mark.parametrize("stack", BEST, ids=str)
def test_its_techniques_can_be_stacked(stack):
    """All of the catalogue, for this kind of step, and none excludes another."""
    assert stack.techniques
    assert all(stack.kind in each.kinds for each in stack.optimizations)
    assert clashes(stack.optimizations) is None


def test_every_stack_has_its_own_name():
    """The benchmarks' ids."""
    assert len(set(map(str, BEST))) == len(BEST)


@pytest.mark.parametrize("stack", BEST, ids=str)
def test_the_step_is_for_the_device_it_was_found_on(stack):
    """Another device's benchmark would measure what nobody claims."""
    other = torch.device("cuda" if stack.device_type == "cpu" else "cpu")
    assert f"this stack is for {stack.device_type}" in stack.step().unsuitable(other)


@pytest.mark.parametrize("stack", BEST, ids=str)
def test_the_twin_is_plain(stack):
    """Of the same kind and workload."""
    step, plain = stack.step(), stack.plain()
    assert (step.kind, step.workload) == (plain.kind, plain.workload)
    assert {str(each) for each in step.optimizations} == set(stack.techniques)
    assert not plain.optimizations


def test_a_technique_that_is_gone():
    """Is named, with what to do."""
    with pytest.raises(Unsuitable, match="no optimization is called turbo; climb the ladder again"):
        _ = dataclasses.replace(BEST[0], techniques=("turbo",)).optimizations


def test_a_stack_is_found_whatever_the_batch_size():
    """And the data."""
    first = BEST[0]
    workload = dataclasses.replace(first.workload, batch_size=first.workload.batch_size + 1, data="digits")
    assert best_stack(workload, first.device_type, first.kind) == first.optimizations


@pytest.mark.parametrize("workload", [MLP(width=7), ResNet18(classes=3)], ids=str)
def test_a_workload_without_one(workload):
    """Says how to find it."""
    with pytest.raises(Unsuitable, match=f"python -m workloads ladder --workload {workload.name} --kind train"):
        best_stack(workload, "cpu", "train")
