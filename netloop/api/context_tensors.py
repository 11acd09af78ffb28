"""The inputs and outputs of an execution context: their profile, shapes and addresses."""

import math
import operator
from collections.abc import Sequence
from threading import get_ident
from typing import Any, Generic, TypeVar

import numpy as np

from netloop.api.allocators import IOutputAllocator
from netloop.api.engine_tensors import EngineTensors
from netloop.api.enums import ErrorCodeTRT
from netloop.api.observers import IErrorRecorder, report_error
from netloop.api.transfers import HostTransfers, moved_axis, transfers
from netloop.model.check import require_valid
from netloop.model.graph import ITensor, TypeTable, check_instance
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.pointwise import IActivationLayer, ICastLayer, IIdentityLayer, IUnaryLayer
from netloop.model.layers.rearrange import Rearrangement
from netloop.model.nest import LayerStep
from netloop.model.network import INetworkDefinition
from netloop.process.cuda_runtime import address_finding
from netloop.process.host_memory import BadAddress
from netloop.values.checked_attributes import CheckedAttributes, WithStatement
from netloop.values.diagnostics import (
    ExecutionError,
    Finding,
    InputError,
    NetloopError,
    NetworkError,
    did_you_mean,
    reason,
)
from netloop.values.dims import Dims
from netloop.values.types import UNKNOWN, Array, TensorType, agree, numpy_type
from netloop.values.unpicklable import OF_AN_ENGINE, Unpicklable

E = TypeVar("E", bound=EngineTensors)
"""The class of an engine, which itself creates contexts: ICudaEngine."""

ALIGNMENT = 256
"""The alignment in bytes that output allocators are asked for."""


class ContextTensors(Generic[E], Unpicklable, WithStatement, CheckedAttributes):
    """The part of an execution context that says on which shapes and addresses it runs."""

    UNPICKLABLE = OF_AN_ENGINE

    error_recorder: IErrorRecorder | None

    def __init__(self, engine: E) -> None:
        _check_addresses(engine.network)
        self._engine = engine
        self._shapes: dict[str, Dims] = {}
        self._addresses: dict[str, int] = {}
        self._allocators: dict[str, IOutputAllocator] = {}
        self._profile = 0
        self._runner: int | None = None
        """The thread that runs the context now."""

    @property
    def engine(self) -> E:
        """The engine that the context runs."""
        return self._engine

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
        if self._runs_elsewhere:
            return self._refuse_thread("runs, and its shapes cannot be set,")
        if self._output(name) is not None:
            return self._refuse(f"{name!r} is an output, whose shape follows from those of the inputs: set these")
        if tensor is None or tensor.declared is None:
            return self._refuse_name("input", name, [tensor.name for tensor in self._engine.network.inputs])
        if not agree(tuple(wanted), tensor.declared.shape) or any(length < 0 for length in wanted):
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
            type_ = TypeTable(self._types()).of(output)
        except InputError as error:
            self._refuse(str(error))
            return declared
        return declared if isinstance(type_, Finding) else Dims(type_.shape)

    def get_tensor_strides(self, name: str) -> Dims:
        """The stride of each axis in elements; the layout is row-major, unless the format is HWC."""
        shape = self._moved(name, self.get_tensor_shape(name))
        strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
        return Dims([*strides[:-3], strides[-1], *strides[-3:-1]] if self._is_hwc(name) else strides)

    def get_max_output_size(self, name: str) -> int:
        """The largest size of an output in bytes; -1 if it is not known."""
        output, shape = self._output(name), self.get_tensor_shape(name)
        if output is not None and UNKNOWN in self._engine.get_tensor_shape(name) and not self._missing():
            shape = self._largest_shape(_as_large(output)) or shape
        itemsize = numpy_type(self._engine.get_tensor_dtype(name)).itemsize
        return -1 if UNKNOWN in shape else math.prod(shape) * itemsize

    def _largest_shape(self, tensor: ITensor) -> Sequence[int]:
        """The largest shape that a layer says its output can have, by those of its inputs; empty if it does not."""
        layer, table = tensor.producer, TypeTable(self._types())
        types = [] if layer is None else [table.of(source) for source in layer.inputs if source is not None]
        fixed = [type_ for type_ in types if isinstance(type_, TensorType) and type_.is_fixed]
        shapes = () if layer is None or len(fixed) < len(types) else layer.largest_shapes(*fixed)
        return shapes[tensor.position] if shapes else ()

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
        if self._runs_elsewhere:
            return self._refuse_thread("runs, and its addresses cannot be set,")
        if self._engine.find_tensor(name) is None:
            return self._refuse_name("input or output", name, self._engine.tensor_names)
        self._addresses[name] = checked_address(memory)
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

    # ------------------------------------------------------------------ reading and writing

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
            self._addresses[name] = checked_address(address or 0)
            if not address and array.nbytes:
                what = f"the output allocator of {name!r} returned {address} for {array.nbytes} bytes"
                raise InputError(Finding("NL606", what, fix="return the address of memory that is large enough"))
            allocator.notify_shape(name, Dims(shape))
        if not self._addresses.get(name) and array.nbytes:
            raise InputError(_unset(name, "address", "set_tensor_address"))
        _write_to(run, name, self._addresses.get(name, 0), array)

    def _input(self, name: str) -> ITensor | None:
        tensor = self._engine.find_tensor(name)
        return tensor if tensor is not None and tensor.is_network_input else None

    def _output(self, name: str) -> ITensor | None:
        tensor = self._engine.find_tensor(name)
        return tensor if tensor is not None and not tensor.is_network_input else None

    @property
    def _runs_elsewhere(self) -> bool:
        return self._runner not in (None, get_ident())

    def _refuse_thread(self, what: str) -> bool:
        fix = "create a context of the engine for each thread: they share programs and weights"
        return self._refuse(str(Finding("NL680", f"the context {what} in another thread", "", reason("NL680"), fix)))

    def _refuse_name(self, kind: str, name: Any, known: Sequence[str]) -> bool:
        hint = did_you_mean(str(name), known)
        return self._refuse(f"there is no {kind} {name!r}" + (hint and f"; {hint}"))

    def _refuse(self, what: str) -> bool:
        self._engine.log_error(what)
        own = None if self.error_recorder is self._engine.error_recorder else self.error_recorder
        return report_error(None, own, ErrorCodeTRT.FAILED_EXECUTION, what)


AS_LARGE = (
    IActivationLayer,
    ICastLayer,
    IIdentityLayer,
    IUnaryLayer,
    Rearrangement,
)
"""The layers whose output has as many elements as their first input."""


def _as_large(tensor: ITensor) -> ITensor:
    """The tensor that layers of ``AS_LARGE`` made another one of."""
    while isinstance(tensor.producer, AS_LARGE) and tensor.producer.inputs[0] is not None:
        tensor = tensor.producer.inputs[0]
    return tensor


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


def checked_address(memory: int) -> int:
    """Return an address as an int.

    Raises:
        TypeError: it is not an int.
        ValueError: it has more than 64 bits, or is negative.
    """
    try:
        number = operator.index(memory)
    except TypeError:
        kind = type(memory).__name__
        what = f"an address is an int, such as array.ctypes.data or tensor.data_ptr(), not {kind}"
        raise TypeError(what) from None
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{number} is not an address")
    return number
