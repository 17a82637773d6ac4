"""A CUDA GPU that is not there: its tensors are the CPU's, and say that they are elsewhere.

What it can tell is where a step's tensors are, in forward, backward and update: two that must be on one device and are
not raise here as on a GPU. It captures CUDA graphs, too: nothing happens in a capture, a replay runs the captured
kernels on the captured tensors, and what waits for the device or copies to or from the host is refused. It knows nothing
of streams' order, of time, of memory, and of kernels: the CPU computes every value. It sees the thread that entered it,
and no other; ``numpy.asarray`` of a tensor passes; and a host tensor without dimensions is allowed in every operator that
does not write to it, which CUDA allows in most.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from workloads.data import stored

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
BYTES = 8 * 2**30
MEMORY = (
    "allocated_bytes.all.peak",
    "allocated_bytes.all.current",
    "requested_bytes.all.current",
    "allocation.all.allocated",
)
BETWEEN_DEVICES = ("aten::copy_", "aten::_to_copy", "aten::lift_fresh", "aten::set_")
INDEXING = ("aten::index", "aten::_index_put", "aten::_unsafe_index")  # indices may lie on the host
READ_BY_HOST = (
    "aten::_local_scalar_dense",
    "aten::equal",
    "aten::is_nonzero",
    "aten::item",
    "aten::masked_select",
    "aten::nonzero",
    "aten::_unique2",
)
CAPTURING = "CUDA error: operation not permitted when stream is capturing"


def storage_of(tensor: Tensor) -> torch.UntypedStorage:
    """Where the values lie; views share it, and it lives as long as one of them."""
    with torch._C.DisableTorchFunction():
        return tensor.untyped_storage()


def is_there(tensor: Tensor) -> bool:
    """Whether it says that it is on the GPU."""
    return getattr(storage_of(tensor), "pretended", False)


def put(tensor: Tensor, *, there: bool = True) -> Tensor:
    """Say so from now on."""
    storage_of(tensor).pretended = there
    return tensor


def tensors_in(*trees: Any) -> list[Tensor]:
    """All tensors among arguments or results."""
    return [each for each in tree_leaves(trees) if isinstance(each, Tensor)]


class Graph:
    """The kernels of a capture."""

    capturing: Graph | None = None

    def __init__(self, *_: Any, **__: Any) -> None:
        """Empty."""
        self._calls: list[tuple[Any, Any, Any, Any]] = []
        self._before: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Remember what is called in the block, and undo what it did."""
        Graph.capturing = self
        try:
            yield
        finally:
            Graph.capturing = None
            for storage, before in self._before.values():
                storage.copy_(before)

    def add(self, func: Any, args: Any, kwargs: Any) -> Any:
        """One call."""
        name = func._schema.name
        given = tensors_in(args, kwargs)
        masked = name.startswith(INDEXING) and any(each.dtype == torch.bool for each in given[1:])
        if (
            masked
            or name in READ_BY_HOST
            or (name in BETWEEN_DEVICES and any(each.dim() and not is_there(each) for each in given))
        ):
            raise RuntimeError(f"{CAPTURING} ({name})")
        for each in given:
            storage = storage_of(each)
            self._before.setdefault(storage._cdata, (storage, storage.clone()))
        result = func(*args, **kwargs)
        self._calls.append((func, args, kwargs, result))
        return result

    def replay(self) -> None:
        """Run them again, where their results were."""
        with torch.no_grad():
            for func, args, kwargs, result in self._calls:
                for place, value in zip(tensors_in(result), tensors_in(func(*args, **kwargs)), strict=True):
                    if storage_of(place)._cdata != storage_of(value)._cdata:
                        place.detach().copy_(value)


class Kernels(TorchDispatchMode):
    """Below autograd: refuses what mixes devices, and says of results where they are."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Every operator, also in backward."""
        kwargs = kwargs or {}
        given = tensors_in(args, kwargs)
        if not any(map(is_there, given)):
            made_there = Tensors.making and Graph.capturing
            return Graph.capturing.add(func, args, kwargs) if made_there else func(*args, **kwargs)
        name = func._schema.name
        indexing = name.startswith(INDEXING) and is_there(args[0])
        if name not in BETWEEN_DEVICES:
            _check_together(name, tensors_in(args[0], args[2:]) if indexing else given)
        result = Graph.capturing.add(func, args, kwargs) if Graph.capturing else func(*args, **kwargs)
        if name != "aten::copy_":
            for each in tensors_in(result):
                put(each)
        return result


def _check_together(name: str, given: list[Tensor]) -> None:
    written = name.endswith("_") and not is_there(given[0])
    if written or any(each.dim() and not is_there(each) for each in given):
        where = [f"{GPU if is_there(each) else CPU}{tuple(each.shape)}" for each in given]
        raise RuntimeError(f"Expected all tensors to be on the same device, but {name} was given {where}")


class Tensors(TorchFunctionMode):
    """Above autograd: what Python asks tensors, and where it wants them."""

    making = False
    """Whether a tensor is being made on the GPU: a kernel of its own, which a capture holds."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Every function and attribute of torch."""
        kwargs = dict(kwargs or {})
        answer = self._answers().get(_asked(func))
        if answer:
            return answer(*args, **kwargs)
        if kwargs.get("device") is None:
            return func(*args, **kwargs)
        there = torch.device(kwargs.pop("device")).type == "cuda"
        if there and Graph.capturing and func in (torch.tensor, torch.as_tensor):
            raise RuntimeError(f"{CAPTURING} (a copy from the host)")
        Tensors.making = there
        try:
            made = func(*args, device=CPU, **kwargs)
        finally:
            Tensors.making = False
        given = {storage_of(each)._cdata for each in tensors_in(args)}
        for each in tensors_in(made):
            assert storage_of(each)._cdata not in given or is_there(each) == there, f"{func} moves its own argument"
            put(each, there=there)
        return made

    def _answers(self) -> dict[Any, Any]:
        return {
            "device": lambda tensor: GPU if is_there(tensor) else CPU,
            "is_cuda": is_there,
            "is_cpu": lambda tensor: not is_there(tensor),
            Tensor.get_device: lambda tensor: 0 if is_there(tensor) else -1,
            Tensor.cuda: lambda tensor, *_, **__: moved(tensor, there=True),
            Tensor.cpu: lambda tensor, **_: moved(tensor, there=False),
            Tensor.to: to,
            Tensor.numpy: numpy,
            Tensor.tolist: lambda tensor: moved(tensor, there=False).tolist(),
            Tensor.pin_memory: pinned,
            Tensor.is_pinned: lambda tensor, *_: getattr(storage_of(tensor), "pinned", False),
        }


def _asked(func: Any) -> Any:
    """The function, or the name of the attribute that is read."""
    return func.__self__.__name__ if getattr(func, "__name__", "") == "__get__" else func


def moved(tensor: Tensor, *, there: bool) -> Tensor:
    """A copy on the other device, or the tensor itself."""
    if there == is_there(tensor):
        return tensor
    if Graph.capturing:
        raise RuntimeError(f"{CAPTURING} (a copy between host and device)")
    with torch._C.DisableTorchFunction():
        copy = tensor.clone()
    return put(copy, there=there)


def to(tensor: Tensor, *args: Any, copy: bool = False, **kwargs: Any) -> Tensor:
    """As ``Tensor.to``, in all its forms."""
    if args and isinstance(args[0], Tensor):
        args = (GPU if is_there(args[0]) else CPU, args[0].dtype, *args[1:])
    device, dtype, _, memory_format = torch._C._nn._parse_to(*args, **kwargs)
    there = is_there(tensor) if device is None else device.type == "cuda"
    with torch._C.DisableTorchFunction():
        arguments = {
            "dtype": dtype or tensor.dtype,
            "memory_format": memory_format or torch.preserve_format,
            "copy": copy,
        }
        converted = tensor.to(CPU, **arguments)
    return moved(converted, there=there)


def numpy(tensor: Tensor, **kwargs: Any) -> Any:
    """As ``Tensor.numpy``, of host memory only."""
    if is_there(tensor):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")
    with torch._C.DisableTorchFunction():
        return tensor.numpy(**kwargs)


def pinned(tensor: Tensor, *_: Any) -> Tensor:
    """As ``Tensor.pin_memory``."""
    with torch._C.DisableTorchFunction():
        copy = tensor.clone()
    storage_of(copy).pinned = True
    return copy


def synchronize(*_: Any) -> None:
    """Nothing to wait for."""
    if Graph.capturing:
        raise RuntimeError(f"{CAPTURING} (a wait)")


class Stream:
    """Work on it is done at once."""

    numbers = iter(range(1, 10**9))

    def __init__(self, device: Any = None, **_: Any) -> None:
        """One more."""
        self.device, self.stream_id = GPU, next(self.numbers)

    def synchronize(self) -> None:
        """Nothing to wait for."""
        synchronize()

    def wait_stream(self, other: Stream) -> None:
        """Nothing to wait for."""

    def is_capturing(self) -> bool:
        """As torch's optimizers ask."""
        return Graph.capturing is not None


class Event:
    """Host time, since work is done at once."""

    def __init__(self, **_: Any) -> None:
        """Not recorded yet."""
        self._seconds = 0.0

    def record(self, stream: Stream) -> None:
        """Now."""
        self._seconds = time.perf_counter()

    def elapsed_time(self, later: Event) -> float:
        """Milliseconds."""
        return (later._seconds - self._seconds) * 1e3


class Autocast(torch.autocast):
    """The CPU's in place of CUDA's."""

    def __init__(self, device_type: str, *args: Any, **kwargs: Any) -> None:
        """For what is computed on the CPU after all."""
        super().__init__("cpu" if device_type == "cuda" else device_type, *args, **kwargs)


def _cuda() -> dict[str, Any]:
    """``torch.cuda``, as far as it is used."""
    default = Stream()
    current = [default]

    @contextmanager
    def stream(chosen: Stream) -> Iterator[None]:
        before, current[0] = current[0], chosen
        try:
            yield
        finally:
            current[0] = before

    @contextmanager
    def device(_: Any) -> Iterator[None]:
        yield

    quiet = (
        "_lazy_init",
        "init",
        "set_device",
        "empty_cache",
        "reset_peak_memory_stats",
        "manual_seed_all",
    )
    return {
        **{name: (lambda *_: None) for name in (*quiet, "set_rng_state")},  # dynamo wants each to be another
        "synchronize": synchronize,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda *_: True,
        "device": device,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_capability": lambda *_: (9, 0),
        "get_device_name": lambda *_: "Pretended",
        "get_device_properties": lambda *_: SimpleNamespace(uuid="77", name="Pretended", total_memory=BYTES),
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "memory_stats": lambda *_: dict.fromkeys(MEMORY, 0),
        "memory_snapshot": lambda *_: [],
        "max_memory_reserved": lambda *_: 0,
        "Event": Event,
        "Stream": Stream,
        "stream": stream,
        "current_stream": lambda *_: current[0],
        "default_stream": lambda *_: default,
        "CUDAGraph": Graph,
        "graph": lambda graph, *_, **__: graph.capture(),
        "is_current_stream_capturing": lambda: Graph.capturing is not None,
    }


@contextmanager
def pretended_gpu(patch: Any) -> Iterator[torch.device]:
    """A GPU in the block, for this thread; ``patch`` is pytest's monkeypatch."""
    for name, value in _cuda().items():
        patch.setattr(torch.cuda, name, value)
    patch.setattr(torch, "autocast", Autocast)
    patch.setattr(Tensor, "record_stream", lambda tensor, stream: None)  # which wants a stream of torch's own
    patch.setattr(torch.accelerator, "current_stream", torch.cuda.current_stream)
    patch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None, raising=False)
    stored._constants.cache_clear()  # by device: not the real one's, and not for it
    try:
        with Kernels(), Tensors():
            yield GPU
    finally:
        stored._constants.cache_clear()
