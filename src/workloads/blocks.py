"""The repeated parts of a model, found in its lists of layers."""

from collections.abc import Iterator

from torch import nn


def blocks_of(module: nn.Module) -> Iterator[nn.Module]:
    """The outermost composite members of ``nn.Sequential`` and ``nn.ModuleList``; none in a flat network."""
    lists = nn.Sequential, nn.ModuleList
    for child in module.children():
        if not isinstance(module, lists) or isinstance(child, lists):
            yield from blocks_of(child)
        elif next(child.children(), None) is not None:
            yield child
