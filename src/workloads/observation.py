"""What one step really did: what its layers produced, seen through hooks, and which operators were dispatched."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass
class Activations:
    """Dtypes of the outputs of convolution and linear layers, and how many lay in channels-last order."""

    dtypes: set[torch.dtype] = field(default_factory=set)
    channels_last: int = 0

    def see(self, module: nn.Module, inputs: Any, output: Any) -> None:
        """A forward hook."""
        if not isinstance(output, Tensor) or not isinstance(module, (nn.Conv2d, nn.Linear)):
            return
        self.dtypes.add(output.dtype)
        # a 1x1 image is contiguous in every order and proves nothing
        spatial = output.dim() == 4 and output.shape[1] > 1 and output.shape[2:].numel() > 1
        if spatial and output.is_contiguous(memory_format=torch.channels_last):
            self.channels_last += 1


@contextmanager
def observe_activations(model: nn.Module) -> Iterator[Activations]:
    """Watch every layer of ``model``; compiled code may run without calling the hooks."""
    activations = Activations()
    handles = [module.register_forward_hook(activations.see) for module in model.modules()]
    try:
        yield activations
    finally:
        for handle in handles:
            handle.remove()


class OperatorNames(TorchDispatchMode):
    """Names of the operators that an eager step dispatches; under a compiler it would see another program."""

    def __init__(self) -> None:
        """Starts with none."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the name and go on."""
        self.names.add(func.name())
        return func(*args, **(kwargs or {}))
