"""Execution contexts, which run an engine on the shapes and addresses that a script sets."""

from __future__ import annotations

import operator
import time
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from netloop.api.allocators import IOutputAllocator
from netloop.api.debug_tensors import DebugTensors
from netloop.api.engine_config import IRuntimeConfig
from netloop.api.engine_tensors import EngineTensors
from netloop.api.enums import ErrorCodeTRT, ProfilingVerbosity
from netloop.api.logger import ILogger
from netloop.api.observers import IDebugListener, IErrorRecorder, IProfiler, report_error
from netloop.api.transfers import HostTransfers, moved_axis, transfers
from netloop.model.check import require_valid
from netloop.model.device_errors import DEVICE_ERRORS, device_finding
from netloop.model.graph.attributes import check_instance
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.nest import LayerStep
from netloop.model.network import INetworkDefinition
from netloop.process.cuda_runtime import address_finding
from netloop.process.host_memory import BadAddress
from netloop.values.checked_attributes import CheckedAttributes, WithStatement, none_or
from netloop.values.diagnostics import (
    ExecutionError,
    Finding,
    InputError,
    NetloopError,
    NetworkError,
    did_you_mean,
    plain,
    reason,
)
from netloop.values.dims import Dims
from netloop.values.types import UNKNOWN, Array, TensorType, agree, numpy_type
from netloop.values.unpicklable import OF_AN_ENGINE, Unpicklable

E = TypeVar("E", bound=EngineTensors)
"""The class of an engine, which itself creates contexts: ICudaEngine."""

ALIGNMENT = 256
"""The alignment in bytes that output allocators are asked for."""


class IExecutionContext(Generic[E], Unpicklable, WithStatement, CheckedAttributes):
    """The shapes and addresses of the inputs and outputs of an engine, for a run on them.

    Each address may be one of host memory, such as ``array.ctypes.data`` of a numpy array, or of memory of a GPU, such
    as ``tensor.data_ptr()``, pinned or managed memory: CUDA knows which. All inputs are read before the first
    output is written, so an input and an output may share memory. A method that fails logs an error and returns False;
    an address without memory is such an error.

    A program on a GPU reads inputs in its memory where they are, from addresses that are multiples of 16, and outputs
    are copied once, on the stream of the run. Other inputs are copied on that stream first. Pageable memory of the host
    is read and written by the host, which waits for the stream before.
    """

    UNPICKLABLE = OF_AN_ENGINE

    name: str = ""
    debug_sync: bool = False
    device_memory: int = 0
    enqueue_emits_profile: bool = True
    error_recorder: IErrorRecorder | None = None
    nvtx_verbosity: ProfilingVerbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
    persistent_cache_limit: int = 0
    profiler: IProfiler | None = None
    temporary_allocator: Any = None
    unfused_tensors_debug_state: bool = False

    CHECKS = {"error_recorder": none_or(IErrorRecorder), "profiler": none_or(IProfiler)}

    def __init__(self, engine: E, config: IRuntimeConfig | None = None) -> None:
        _check_addresses(engine.network)
        self._engine = engine
        self._config = config or IRuntimeConfig()
        self._shapes: dict[str, Dims] = {}
        self._addresses: dict[str, int] = {}
        self._allocators: dict[str, IOutputAllocator] = {}
        self._debug_tensors = DebugTensors(engine.network.marks.debug)
        self._consumed = 0
        self._profile = 0

    def __repr__(self) -> str:
        shapes = ", ".join(f"{plain(name)} {tuple(shape)}" for name, shape in self._shapes.items())
        return f"<IExecutionContext of {self._engine!r}{shapes and f', with {shapes}'}>"

    @property
    def engine(self) -> E:
        """The engine that the context runs."""
        return self._engine

    def get_runtime_config(self) -> IRuntimeConfig:
        """The settings that the context was created with."""
        return self._config

    # ------------------------------------------------------------------ profiles

    @property
    def active_optimization_profile(self) -> int:
        """The index of the active optimization profile."""
        return self._profile

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        """Select an optimization profile, and forget the shapes that were set; False if there is no such profile."""
        if not 0 <= profile_index < self._engine.num_optimization_profiles:
            return self._refuse(f"there is no optimization profile {profile_index}")
        self._profile = profile_index
        self._shapes.clear()
        return True

    # ------------------------------------------------------------------ shapes

    def set_input_shape(self, name: str, shape: Sequence[int]) -> bool:
        """Set the shape of an input; False, with an error in the log, if the input cannot have it.

        Raises:
            RuntimeError: the shape has more axes than a tensor can have.
        """
        try:
            wanted = Dims(shape)
        except ValueError as error:
            raise RuntimeError(str(error)) from None
        tensor = self._input(name)
        if tensor is None or tensor.declared is None:
            return self._refuse_name("input", name, [tensor.name for tensor in self._engine.network.inputs])
        if not agree(wanted, tensor.declared.shape) or any(length < 0 for length in wanted):
            return self._refuse(f"input {name!r} is {tensor.declared}, and cannot have the shape {wanted}")
        limits = self._engine.profile_of(self._profile).shapes().get(name)
        if limits is not None and not limits.holds(wanted):
            return self._refuse(f"the shape {wanted} of {name!r} is outside its profile, {limits.min} to {limits.max}")
        self._shapes[name] = wanted
        return True

    @property
    def all_binding_shapes_specified(self) -> bool:
        """Whether the shapes of all inputs are known."""
        return not any(UNKNOWN in self.get_tensor_shape(tensor.name) for tensor in self._engine.network.inputs)

    @property
    def all_shape_inputs_specified(self) -> bool:
        """Whether the inputs whose values decide shapes have addresses. From TensorRT 10."""
        return all(self._addresses.get(tensor.name) for tensor in self._engine.host_inputs)

    def infer_shapes(self) -> list[str]:
        """Check the shapes that were set; return the inputs whose shape, or shape-deciding value, is not set.

        If none is missing, outputs marked for shapes are written to their addresses where they follow from shapes.

        Raises:
            RuntimeError: the shapes are inconsistent, or an assertion about them fails.
        """
        missing = self._missing()
        if not missing:
            try:
                self._check_values()
                types = TypeTable(self._types())
                self._check_shapes(types)
                self._write_shape_outputs(types)
            except NetloopError as error:
                raise RuntimeError(str(error)) from error
        return missing

    def _write_shape_outputs(self, types: TypeTable) -> None:
        for tensor in self._engine.network.marks.shapes:
            value, address = types[tensor].value, self._addresses.get(tensor.name)
            if value is not None and address:
                with transfers(0) as run:
                    _write_to(run, tensor.name, address, value)
                run.synchronize()

    def _check_shapes(self, types: TypeTable) -> None:
        for step in require_valid(self._engine.network, types).block.steps:
            layer = step.layer if isinstance(step, LayerStep) else None
            if isinstance(layer, IAssertionLayer):
                conditions = (types[tensor].value for tensor in layer.inputs if tensor is not None)
                if not all(layer.holds(condition) for condition in conditions if condition is not None):
                    raise ExecutionError(layer.failure())

    def get_tensor_shape(self, name: str) -> Dims:
        """The shape of an input or output as far as it is known, with -1 for each unknown length."""
        declared = self._engine.get_tensor_shape(name)
        if name in self._shapes:
            return Dims(self._shapes[name])
        output = self._output(name)
        if output is None or UNKNOWN not in declared or self._missing():
            return declared
        try:
            known = TypeTable(self._types()).of(output)
        except InputError as error:
            self._refuse(str(error))
            return declared
        return declared if isinstance(known, Finding) else Dims(known.shape)

    def get_tensor_strides(self, name: str) -> Dims:
        """The stride of each axis in elements; the layout is row-major, unless the format is HWC."""
        shape = self._moved(name, self.get_tensor_shape(name))
        strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
        return Dims([*strides[:-3], strides[-1], *strides[-3:-1]] if self._is_hwc(name) else strides)

    def get_max_output_size(self, name: str) -> int:
        """The size of an output in bytes; -1 if its shape is not fully known."""
        shape, itemsize = self.get_tensor_shape(name), numpy_type(self._engine.get_tensor_dtype(name)).itemsize
        return -1 if UNKNOWN in shape else int(np.prod(shape)) * itemsize

    def _missing(self) -> list[str]:
        shapeless = [tensor.name for tensor in self._engine.network.inputs if UNKNOWN in self._input_shape(tensor)]
        return shapeless + [tensor.name for tensor in self._engine.host_inputs if not self._addresses.get(tensor.name)]

    def _input_shape(self, tensor: ITensor) -> Dims:
        return self._shapes.get(tensor.name) or tensor.shape

    def _types(self) -> dict[ITensor, TensorType]:
        types: dict[ITensor, TensorType] = {}
        for tensor in self._engine.network.inputs:
            declared = tensor.type.with_shape(self._input_shape(tensor))
            valued = tensor in self._engine.host_inputs
            types[tensor] = TensorType.of(self._value(tensor)) if valued else declared
        return types

    # ------------------------------------------------------------------ addresses

    def set_tensor_address(self, name: str, memory: int) -> bool:
        """Set the address of an input or output, in memory of the host or of a GPU; a run looks at it."""
        if self._engine.find_tensor(name) is None:
            return self._refuse_name("input or output", name, self._engine.tensor_names)
        self._addresses[name] = _address(memory)
        return True

    def get_tensor_address(self, name: str) -> int:
        """The address of an input or output; 0 if it is not set."""
        return self._addresses.get(name, 0)

    def set_output_allocator(self, name: str, output_allocator: IOutputAllocator) -> bool:
        """Set the allocator that a run asks for an output's memory when its size is known."""
        check_instance("output_allocator", output_allocator, IOutputAllocator)
        if self._output(name) is None:
            return self._refuse_name("output", name, [tensor.name for tensor in self._engine.network.outputs])
        self._allocators[name] = output_allocator
        return True

    def get_output_allocator(self, name: str) -> IOutputAllocator | None:
        """The allocator of an output, or None."""
        return self._allocators.get(name)

    # ------------------------------------------------------------------ running

    def execute_v2(self, bindings: Sequence[int]) -> bool:
        """Run on these addresses, in the order of the engine's inputs and outputs, and wait for the end of the run.

        Returns:
            Whether the run succeeded. On a GPU it comes after the work of the default stream.
        """
        names = self._engine.tensor_names
        if len(bindings) != len(names):
            return self._refuse(
                f"the engine has {len(names)} inputs and outputs, and was given {len(bindings)} addresses"
            )
        self._addresses.update(zip(names, map(_address, bindings), strict=True))
        return self._run(0, waits=True)

    def execute_async_v3(self, stream_handle: int) -> bool:
        """Run on the addresses that were set, in the order of a CUDA stream.

        On a GPU, the program starts after the work that is on the stream, and what is enqueued next starts after its
        outputs are at their addresses. The host waits only until XLA has enqueued the program. That takes as long as
        the run where the host decides how it goes on: loops of unknown length and conditionals, assertions,
        data-dependent shapes, shape inputs, plugins, enabled debug tensors, a profiler, and addresses in pageable
        memory of the host. Inputs, outputs and weights must stay until the stream has passed the run, as in TensorRT.
        A run cannot be captured in a CUDA graph.

        Without a GPU, the run has ended when the method returns, and the stream has no effect.

        Args:
            stream_handle: the handle of the stream, such as ``torch.cuda.current_stream().cuda_stream``; 0 for the
                default stream.

        Returns:
            Whether the run, or all of it that the host waited for, succeeded.
        """
        return self._run(int(stream_handle))

    def _run(self, stream: int, waits: bool = False) -> bool:
        begin = time.perf_counter()
        try:
            with self._transfers(stream) as run:
                outputs = self._outputs(run, stream)
                arrays = run.computed(outputs, self._as_at_address)
                if self._consumed:
                    run.record(self._consumed)
                for name, array in arrays.items():
                    self._write(run, name, array, np.shape(outputs[name]), stream)
            if waits or self.profiler is not None:
                run.synchronize()
        except (NetloopError, MemoryError) as error:
            return self._refuse(str(error))
        except DEVICE_ERRORS as error:
            return self._refuse(str(device_finding(error)))
        if self.profiler is not None:
            self.profiler.report_layer_time(self._engine.name, (time.perf_counter() - begin) * 1e3)
        return True

    def _transfers(self, stream: int) -> HostTransfers:
        return transfers(stream, self._engine)

    def _outputs(self, run: HostTransfers, stream: int) -> dict[str, Any]:
        tensors = list(self._debug_tensors.enabled)
        if self.unfused_tensors_debug_state and self._engine.network.marks.unfused:
            tensors += self._engine.unfused_tensors
        if not tensors or self._debug_tensors.listener is None:
            return self._engine.executable(self._arrays(run))
        return self._engine.watch(
            self._arrays(run), tensors, lambda tensor, _, value: self._debug_tensors.report(tensor, value, stream, run)
        )

    def report_to_profiler(self) -> bool:
        """Whether there is a profiler; every run is reported to it when it ends."""
        return self.profiler is not None

    def _arrays(self, run: HostTransfers) -> dict[str, Any]:
        self._check_values()
        donated = self._engine.executable.donated
        return {tensor.name: self._read(run, tensor, tensor.name in donated) for tensor in self._engine.network.inputs}

    def _check_values(self) -> None:
        """Check that the values of shape inputs are within the active profile.

        Raises:
            InputError: a value is not.
        """
        if not self._engine.shape_inputs:
            return
        ranges = self._engine.profile_of(self._profile).values()
        for tensor in self._engine.shape_inputs:
            limits = ranges.get(tensor.name)
            if limits is not None and not limits.holds(values := self._value(tensor).reshape(-1).tolist()):
                what = f"the value {values} of {tensor.name!r} is outside its profile, {limits.min} to {limits.max}"
                raise InputError(Finding("NL606", what, at=tensor))

    def _value(self, tensor: ITensor) -> Array:
        """The value of an input that decides shapes, which the host reads."""
        with transfers(0) as run:
            return np.asarray(self._read(run, tensor))

    def _read(self, run: HostTransfers, tensor: ITensor, donated: bool = False) -> Any:
        name, shape = tensor.name, self._input_shape(tensor)
        if UNKNOWN in shape:
            raise InputError(_unset(name, "shape", "set_input_shape"))
        if not self._addresses.get(name) and 0 not in shape:
            raise InputError(_unset(name, "address", "set_tensor_address"))
        try:
            moved = self._moved(name, tuple(shape))
            array = run.read(self._addresses.get(name, 0), tensor.type.dtype, moved, donated)
        except BadAddress as error:
            raise _bad(name, error) from None
        return moved_axis(array, -1, -3) if self._is_hwc(name) else array

    def _is_hwc(self, name: str) -> bool:
        return name in self._engine.hwc_tensors

    def _moved(self, name: str, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of a tensor at its address, where its axes may have another order."""
        return (*shape[:-3], *shape[-2:], shape[-3]) if self._is_hwc(name) else tuple(shape)

    def _as_at_address(self, name: str, array: Any) -> Any:
        return moved_axis(array, -3, -1) if self._is_hwc(name) else array

    def _write(self, run: HostTransfers, name: str, array: Any, shape: tuple[int, ...], stream: int) -> None:
        allocator = self._allocators.get(name)
        if allocator is not None:
            before = self._addresses.get(name, 0)
            address = allocator.reallocate_output_async(name, before, array.nbytes, ALIGNMENT, stream)
            self._addresses[name] = _address(address or 0)
            allocator.notify_shape(name, Dims(shape))
        if not self._addresses.get(name) and array.nbytes:
            raise InputError(_unset(name, "address", "set_tensor_address"))
        _write_to(run, name, self._addresses.get(name, 0), array)

    # ------------------------------------------------------------------ debug tensors

    def set_debug_listener(self, listener: IDebugListener) -> bool:
        """Set the listener that receives the values of enabled debug tensors; True.

        Without a listener, debug tensors do not slow a run down. With one, every loop around an enabled debug tensor
        runs one iteration at a time.
        """
        none_or(IDebugListener)("listener", listener)
        self._debug_tensors.listener = listener
        return True

    def get_debug_listener(self) -> IDebugListener | None:
        """The listener that receives debug tensors, or None."""
        return self._debug_tensors.listener

    def set_tensor_debug_state(self, name: str, flag: bool) -> bool:
        """Enable or disable a debug tensor; False, with an error in the log, if no tensor of the name was marked."""
        return self._debug_tensors.set(name, flag) or self._refuse(f"there is no debug tensor {name!r}")

    def set_all_tensors_debug_state(self, flag: bool) -> bool:
        """Enable or disable all debug tensors; True."""
        self._debug_tensors.set_all(flag)
        return True

    def get_debug_state(self, name: str) -> bool:
        """Whether a debug tensor is enabled."""
        return self._debug_tensors.get(name)

    # ------------------------------------------------------------------ streams and device memory, without effect

    def set_aux_streams(self, aux_streams: Sequence[int]) -> None:
        """Do nothing: there are no streams."""

    def set_device_memory(self, memory: int, size: int) -> None:
        """Do nothing: XLA manages memory."""

    def update_device_memory_size_for_shapes(self) -> int:
        """The memory in bytes that the engine's latest program needs; XLA allocates it."""
        return self._engine.scratch_size

    def set_communicator(self, communicator: Any) -> bool:
        """True for a network of one rank, which needs no communicator; False, with an error, for one of several.

        JAX communicates itself: ``netloop.shard`` runs such a network on a mesh of devices.
        """
        ranks = max((layer.num_ranks for layer in self._engine.network.layers), default=1)
        if communicator is not None and ranks > 1:
            what = f"the network has layers of {ranks} ranks, which a communicator does not join here"
            fix = f"call netloop.shard(network, mesh) with a mesh of {ranks} devices"
            return self._refuse(str(Finding("NL616", what, "", reason("NL616"), fix)))
        self._engine.log(ILogger.INFO, "no effect in netloop, because the network has one rank: set_communicator")
        return True

    def set_input_consumed_event(self, event: int) -> bool:
        """Set the CUDA event that a run records on its stream after the inputs have been read; 0 for none. True.

        Without a GPU, the inputs have been read when the run returns, and nothing is recorded.
        """
        self._consumed = int(event or 0)
        return True

    def get_input_consumed_event(self) -> int:
        """The event that was set; 0 if there is none."""
        return self._consumed

    def _input(self, name: str) -> ITensor | None:
        tensor = self._engine.find_tensor(name)
        return tensor if tensor is not None and tensor.is_network_input else None

    def _output(self, name: str) -> ITensor | None:
        tensor = self._engine.find_tensor(name)
        return tensor if tensor is not None and not tensor.is_network_input else None

    def _refuse_name(self, kind: str, name: Any, known: Sequence[str]) -> bool:
        hint = did_you_mean(str(name), known)
        return self._refuse(f"there is no {kind} {name!r}" + (hint and f"; {hint}"))

    def _refuse(self, what: str) -> bool:
        self._engine.log_error(what)
        return report_error(None, self.error_recorder, ErrorCodeTRT.FAILED_EXECUTION, what)


def _check_addresses(network: INetworkDefinition) -> None:
    """Check that all inputs and outputs are tensors of numbers, which have addresses.

    Raises:
        NetworkError: one is a sequence or an optional value, or of strings.
    """
    findings = [
        Finding(
            "NL611",
            f"{tensor.name!r} is {tensor.type}",
            why=reason("NL611"),
            fix="call the engine with a dict",
            at=tensor,
        )
        for tensor in (*network.inputs, *network.outputs)
        if not tensor.type.is_tensor or tensor.type.is_string
    ]
    if findings:
        raise NetworkError(*findings)


def _write_to(run: HostTransfers, name: str, address: int, array: Any) -> None:
    try:
        run.write(address, array)
    except BadAddress as error:
        raise _bad(name, error) from None


def _bad(name: str, error: BadAddress) -> InputError:
    return InputError(address_finding(error, f"the address of {name!r}"))


def _unset(name: str, what: str, method: str) -> Finding:
    return Finding("NL606", f"the {what} of {name!r} is not set", fix=f"call {method}({name!r}, ...) first")


def _address(memory: int) -> int:
    try:
        number = operator.index(memory)
    except TypeError:
        kind = type(memory).__name__
        what = f"an address is an int, such as array.ctypes.data or tensor.data_ptr(), not {kind}"
        raise TypeError(what) from None
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{number} is not an address")
    return number
