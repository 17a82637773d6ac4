"""Train ResNet-18 as a baseline, then optimized, and compare throughput, peak memory and accuracy.

python examples/optimized_train.py                   # 1,797 digits, about a minute on a CPU
python examples/optimized_train.py --data cifar10    # where CIFAR-10 lies, see python -m workloads train --help
"""

import argparse

import torch

from workloads import ResNet18
from workloads.optimizations import AMP, ChannelsLast, Compile, NonBlocking, PersistentWorkers, PinMemory, Workers
from workloads.training import refusal, train


def stacks(compiled):
    """Name -> techniques; loader workers and AMP pay most, the rest depends on the device."""
    amp = AMP("float16" if torch.cuda.is_available() else "bfloat16")  # float16 needs a GPU, and a GradScaler
    loading = (Workers(2), PersistentWorkers(), PinMemory(), NonBlocking())
    yield "baseline", ()
    yield "AMP", (amp,)
    yield "AMP + workers", (*loading, amp)
    yield "AMP + workers + channels-last", (*loading, amp, ChannelsLast())
    if compiled:
        yield "the same, compiled", (*loading, amp, ChannelsLast(), Compile())


def suitable(workload, stack, device):
    """The techniques of the stack that this machine can use: pinned memory needs a GPU."""
    return tuple(each for each in stack if not refusal(workload, (each,), device))


def main(arguments=None):
    """Train each stack and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--compile", action="store_true")
    chosen = parser.parse_args(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    workload = ResNet18(data=chosen.data, batch_size=chosen.batch_size, image_size=chosen.image_size)
    settings = {"epochs": chosen.epochs, "learning_rate": 0.05, "progress": lambda batches, *_: batches}
    print(f"{'setup':<30} images/s  speedup  peak MiB  accuracy")
    baseline = None
    for name, stack in stacks(chosen.compile):
        *_, last = train(workload, suitable(workload, stack, device), device=device, **settings)
        baseline = baseline or last.samples_per_second
        speedup, mebibytes = last.samples_per_second / baseline, last.peak_bytes / 2**20
        print(f"{name:<30} {last.samples_per_second:8,.0f} {speedup:7.2f}x {mebibytes:9,.0f} {last.accuracy:9.1%}")


if __name__ == "__main__":
    main()
