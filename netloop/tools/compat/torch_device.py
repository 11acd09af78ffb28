"""PyTorch's device ``cuda`` on host memory: what a script is asked to put on a GPU stays where it is.

Streams and events are those of the other stand-ins, and all work is done when the call that asks for it returns.

Source: https://docs.pytorch.org/docs/stable/cuda.html
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

from netloop.process.stream_captures import CAPTURES
from netloop.tools.compat.device import ATTRIBUTES, free_and_total
from netloop.tools.compat.memory import DEVICE
from netloop.tools.compat.torch_placement import DeviceTensors
from netloop.tools.compat.torch_streams import CurrentStream, HostEvent, HostGraph, HostStream, listed, written_again

NAME = "host memory, by netloop"
CAPABILITY = (ATTRIBUTES[75], ATTRIBUTES[76])

# fmt: off
ANSWERS = {
    "is_available":                True,
    "is_initialized":              True,
    "is_bf16_supported":           True,
    "graph_pool_handle":           (0, 0),
    "device_count":                1,
    "current_device":              0,
    "get_device_name":             NAME,
    "get_device_capability":       CAPABILITY,
    "device":                      nullcontext(),
    "device_of":                   nullcontext(),
    "synchronize":                 None,
    "set_device":                  None,
    "init":                        None,
    "empty_cache":                 None,
    "ipc_collect":                 None,
    "reset_peak_memory_stats":     None,
    "memory_allocated":            0,
    "max_memory_allocated":        0,
    "memory_reserved":             0,
    "max_memory_reserved":         0,
}
# fmt: on
"""The results of functions of ``torch.cuda``, whatever their arguments."""

RECENT = 64
"""The number of copies that are kept alive."""


def _returning(result: Any) -> Callable[..., Any]:
    """A new function: PyTorch's compiler refuses one that has two names."""
    return lambda *_, **__: result


def _returning_itself() -> Callable[..., Any]:
    return lambda value, *_, **__: value


def put_on_host(torch: Any) -> None:
    """Make PyTorch take the device ``cuda`` for the host, in this thread, until the process ends."""
    if torch in ON_HOST:
        return
    ON_HOST.append(torch)
    current, cuda = CurrentStream(), torch.cuda
    torch.Tensor.cuda = lambda tensor, *_, **__: tensor.to("cuda")
    torch.Tensor.pin_memory = _returning_itself()
    torch.Tensor.contiguous = _keeping_copies(getattr(torch.Tensor, "contiguous", None))
    torch.Tensor.nonzero = _without_a_guard(torch, getattr(torch.Tensor, "nonzero", None))
    for name, result in ANSWERS.items():
        setattr(cuda, name, _returning(result))
    cuda.manual_seed = cuda.manual_seed_all = lambda seed: torch.default_generator.manual_seed(seed) and None
    cuda.get_rng_state = lambda *_: torch.get_rng_state()
    cuda.set_rng_state = lambda state, *_: torch.set_rng_state(state)
    cuda.get_device_properties = lambda *_: device_properties()
    cuda.nvtx = SimpleNamespace(range_push=_returning(0), range_pop=_returning(0), mark=_returning(None))
    cuda.Stream, cuda.Event, cuda.stream = HostStream, HostEvent, current.using
    cuda.CUDAGraph, cuda.graph = HostGraph, current.capturing
    cuda.is_current_stream_capturing = lambda: current.stream.cuda_stream in CAPTURES
    cuda.current_stream, cuda.default_stream = current.get, lambda *_: HostStream(handle=0)
    cuda.mem_get_info = lambda *_: free_and_total()
    cuda._lazy_init = _returning(None)
    if hasattr(torch, "backends"):
        torch.backends.cudnn.is_acceptable = _returning(False)  # weights of LSTMs stay as they are
    DEVICE.is_shared = True
    create_on_host(torch)
    on_host(torch, current).__enter__()


ON_HOST: list[Any] = []
"""The modules of PyTorch that were put on the host, once each."""

LIBRARIES: list[Any] = []
"""The libraries of operators with which PyTorch creates tensors: they last as long as these objects."""


def create_on_host(torch: Any) -> None:
    """Let PyTorch's operators create tensors of the device ``cuda`` on the host.

    All others follow these two. Unlike a mode, this also holds in other threads, and inside of operators in Python,
    which run without the modes of their callers.
    """
    if not hasattr(torch, "library"):
        return
    library, operators = torch.library.Library("aten", "IMPL"), torch.ops.aten

    def empty(size: Any, *, dtype: Any = None, layout: Any = None, memory_format: Any = None, **device: Any) -> Any:
        named = {"dtype": dtype, "layout": layout, "memory_format": memory_format}
        return operators.empty.memory_format(size, device="cpu", **named)

    def empty_strided(size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, **device: Any) -> Any:
        return operators.empty_strided.default(size, stride, device="cpu", dtype=dtype, layout=layout)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*overriding a previously registered kernel", category=UserWarning)
        library.impl("empty.memory_format", empty, "CUDA")
        library.impl("empty_strided", empty_strided, "CUDA")
    LIBRARIES.append(library)


def device_properties() -> SimpleNamespace:
    """The properties of the device that scripts read."""
    major, minor = CAPABILITY
    _, total = free_and_total()
    return SimpleNamespace(
        name=NAME, major=major, minor=minor, total_memory=total, multi_processor_count=1, warp_size=ATTRIBUTES[10]
    )  # fmt: skip


def _keeping_copies(contiguous: Callable[..., Any] | None) -> Callable[..., Any]:
    """The method ``contiguous``, whose latest copies stay alive.

    Scripts pass ``x.contiguous().data_ptr()`` to a context. On a GPU the allocator of PyTorch keeps that memory until
    work that was enqueued later asks for some; the host frees it at once.
    """
    recent = deque[Any](maxlen=RECENT)

    def kept(tensor: Any, *arguments: Any, **named: Any) -> Any:
        assert contiguous is not None
        copy = contiguous(tensor, *arguments, **named)
        if copy is not tensor:
            recent.append(copy)
        return copy

    return kept


def _without_a_guard(torch: Any, nonzero: Callable[..., Any] | None) -> Callable[..., Any]:
    """A form of ``nonzero``, which makes the tensor's device CUDA's present one; only the operator does not.

    Tensors without elements, of which PyTorch's tracers know the shapes, say that they are on the device everywhere.
    """

    def call(tensor: Any, *, as_tuple: bool = False, **named: Any) -> Any:
        assert nonzero is not None
        if named or getattr(tensor, "fake_mode", None) is None:
            return nonzero(tensor, as_tuple=as_tuple, **named)
        return (torch.ops.aten.nonzero_numpy if as_tuple else torch.ops.aten.nonzero)(tensor)

    return call


def on_host(torch: Any, current: CurrentStream) -> Any:
    """A mode of PyTorch in which its functions read ``cuda`` as ``cpu``, and tensors know where they were put."""
    placement, function_of_nonzero = DeviceTensors(torch), getattr(torch, "nonzero", None)
    nonzero = _without_a_guard(torch, function_of_nonzero)
    speak_of_devices = (torch.device, torch._C._nn._parse_to)  # and Module.to passes on what that returns

    def moved(value: Any) -> Any:
        is_device = isinstance(value, torch.device | str) and str(value).partition(":")[0] == "cuda"
        return torch.device("cpu") if is_device else value

    class OnHost(importlib.import_module("torch.overrides").TorchFunctionMode):
        def __torch_function__(
            self,
            function: Callable[..., Any],
            types: Sequence[type],
            args: Sequence[Any] = (),
            kwargs: Mapping[str, Any] | None = None,
        ) -> Any:
            if function in speak_of_devices:
                return function(*args, **(kwargs or {}))
            answer = placement.answer(function, args)
            if answer is not None:
                return answer
            named = {name: moved(value) for name, value in (kwargs or {}).items() if name != "pin_memory"}
            called = nonzero if function is function_of_nonzero else function
            call = partial(called, *map(moved, args), **named)
            result = placement.place(function, args, kwargs or {}, call())
            capture = CAPTURES.get(current.stream.cuda_stream)
            if capture is not None and any(isinstance(part, torch.Tensor) for part in listed(result)):
                capture.append(partial(written_again, listed(result), call))
            return result

    return OnHost()


class TorchFinder:
    """Finds PyTorch as all others do, and puts it on the host when it has been imported."""

    def __init__(self) -> None:
        self._is_asking = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The specification of PyTorch's module; None for every other."""
        if name != "torch" or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = find_spec(name)
        finally:
            self._is_asking = False
        if spec is not None and spec.loader is not None:
            _after(spec.loader, put_on_host)
        return spec


def _after(loader: Any, change: Callable[[Any], None]) -> None:
    """Call a function with a module that a loader has executed."""
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        change(module)

    loader.exec_module = exec_module


def install() -> None:
    """Put PyTorch on the host, now or when it is imported."""
    if "torch" in sys.modules:
        put_on_host(sys.modules["torch"])
    elif not any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchFinder())
