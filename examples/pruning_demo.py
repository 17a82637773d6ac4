"""Prune a trained ResNet-18: what is gone of each layer, inference time, and accuracy before, after and fine-tuned.

python examples/pruning_demo.py        # about a minute on a CPU
"""

import argparse

import torch

from workloads import ResNet18
from workloads.optimizations import ChannelPruning, L1Pruning
from workloads.timing import side_by_side
from workloads.training import accuracy, fit, prepare


def gone(model, dense):
    """Name of each convolution -> share of its weights in ``dense`` that are zero, or no longer there, in ``model``."""
    layers = {name: module for name, module in dense.named_modules() if isinstance(module, torch.nn.Conv2d)}
    return {
        name: 1 - int(model.get_submodule(name).weight.count_nonzero()) / layer.weight.numel()
        for name, layer in layers.items()
    }


def parameters(model):
    """How many numbers the model consists of, zeros included."""
    return sum(each.numel() for each in model.parameters())


def trained(workload, parts, epochs, learning_rate):
    """Train, and give the accuracy after the last epoch."""
    for epoch in fit(workload, parts, epochs=epochs, learning_rate=learning_rate, progress=lambda batches, *_: batches):
        print(f"  epoch {epoch.number}: loss {epoch.loss:.3f}, accuracy {epoch.accuracy:.1%}")
    return accuracy(workload, parts)


def speedup(workload, device, technique):
    """Of a forward pass of one batch over the dense model, measured side by side."""
    pruned, dense = workload.inference_step(technique), workload.inference_step()
    for step in (dense, pruned):
        step.build(device)
    return side_by_side(pruned, dense, device, 2.0)


def main(arguments=None):
    """Train, prune in two ways, fine-tune."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--amount", type=float, default=0.5, help="share that is pruned")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--image-size", type=int, default=32)
    chosen = parser.parse_args(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    workload = ResNet18(data="digits", batch_size=chosen.batch_size, image_size=chosen.image_size)
    dense = prepare(workload, (), device=device)
    before = trained(workload, dense, chosen.epochs, 0.05)
    weights = ("unstructured", L1Pruning(chosen.amount), "zeros")
    channels = ("structured", ChannelPruning(chosen.amount), "removed")
    for title, technique, word in (weights, channels):
        print(f"{title}, {chosen.amount:.0%}")
        pruned = prepare(workload, (technique,), device=device, weights=dense.model.state_dict())
        after, faster = accuracy(workload, pruned), speedup(workload, device, technique)
        for name, share in gone(pruned.model, dense.model).items():
            print(f"  {name:<24} {tuple(pruned.model.get_submodule(name).weight.shape)!s:<20} {share:6.1%} {word}")
        print(f"  parameters {parameters(dense.model):,} -> {parameters(pruned.model):,}")
        tuned = trained(workload, pruned, 1, 0.01)
        print(f"  accuracy {before:.1%} -> {after:.1%} -> {tuned:.1%} fine-tuned; inference {faster}")


if __name__ == "__main__":
    main()
