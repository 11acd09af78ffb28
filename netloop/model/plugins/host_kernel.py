"""The execution of IPluginV3 plugins, at addresses that are valid for the host.

Where there is a GPU, their memory is managed: kernels that a plugin launches on the stream read the same addresses.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

import numpy as np

from netloop.model.plugins.enums import PluginCapabilityType
from netloop.model.plugins.expressions import DimsExprs, IDimensionExpr, IExprBuilder
from netloop.model.plugins.fields import DynamicPluginTensorDesc, PluginTensorDesc
from netloop.model.plugins.interfaces import (
    NO_ALIAS,
    IPluginResourceContext,
    IPluginV3,
    IPluginV3OneBuild,
    IPluginV3OneBuildV2,
    IPluginV3OneRuntime,
)
from netloop.model.plugins.kernel import MOST_REMEMBERED, Kernel, Key, Types, calling, ensure, key_of
from netloop.process.cuda_runtime import LEGACY, cuda_runtime, shared_array
from netloop.values.dims import Dims
from netloop.values.enums import DataType
from netloop.values.types import UNKNOWN, Array, TensorType, data_type, numpy_type

C = TypeVar("C")

PACKED = (DataType.INT4, DataType.FP4)
"""Types with two elements per byte in TensorRT, and one here."""


@dataclass(frozen=True)
class PluginOutput:
    """An output, as the plugin describes it.

    Attributes:
        type: its type; data-dependent lengths are -1.
        reserved: the shape for which memory is reserved.
        sizes: the axes with data-dependent lengths, each with the index of the output that is the length.
    """

    type: TensorType
    reserved: tuple[int, ...]
    sizes: dict[int, int]


@dataclass(frozen=True)
class _PreparedPlugin:
    """A plugin that is prepared to run with inputs of certain types."""

    runtime: IPluginV3OneRuntime
    outputs: Sequence[PluginOutput]
    input_desc: list[PluginTensorDesc]
    output_desc: list[PluginTensorDesc]
    workspace: Array


class HostKernel(Kernel):
    """Runs an IPluginV3, with a runtime attached for each set of input types; runs are serialized by a lock.

    Raises:
        LayerError: a part of the plugin is missing, or fails.
    """

    on_host = True

    def __init__(self, plugin: IPluginV3) -> None:
        super().__init__()
        self._name = type(plugin).__name__
        self._build = self._part(plugin, PluginCapabilityType.BUILD, IPluginV3OneBuild)
        self._runtime = self._part(plugin, PluginCapabilityType.RUNTIME, IPluginV3OneRuntime)
        self.num_outputs = self._build.num_outputs
        counted = type(self.num_outputs) is int and self.num_outputs > 0
        ensure(counted, f"num_outputs of {self._name} is {self.num_outputs!r}, but must be 1 or more")
        self._prepared_plugins: dict[Key, _PreparedPlugin] = {}
        self._lock = threading.RLock()

    def _part(self, plugin: IPluginV3, kind: PluginCapabilityType, cls: type[C]) -> C:
        with self._calling("get_capability_interface"):
            result = plugin.get_capability_interface(kind)
        ensure(
            isinstance(result, cls), f"the {kind.name} capability of {self._name} is {result!r}, not a {cls.__name__}"
        )
        return result

    def _calling(self, method: str) -> Any:
        return calling(f"{method} of {self._name}")

    # ------------------------------------------------------------------ types

    def find_types(self, inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> Types:
        """Return the types of the outputs, in which data-dependent lengths are unknown."""
        return tuple(output.type for output in self._outputs(inputs, shape_inputs))

    def _outputs(self, inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> list[PluginOutput]:
        types = [data_type(tensor_type.dtype) for tensor_type in inputs]
        is_packed = any(type_ in PACKED for type_ in types)
        ensure(not is_packed, f"an input of {self._name} has packed elements", "convert with add_cast")
        with self._calling("get_output_data_types"):
            returned = self._build.get_output_data_types(list(types))
        dtypes = self._counted("get_output_data_types", returned, DataType)
        shapes = [DimsExprs(map(_expression, tensor_type.shape)) for tensor_type in inputs]
        with self._calling("get_output_shapes"):
            values = [DimsExprs(map(_expression, _values(tensor_type))) for tensor_type in shape_inputs]
            returned = self._build.get_output_shapes(shapes, values, IExprBuilder())
        dims = self._counted("get_output_shapes", returned, list)
        outputs = [self._output(number, *entry) for number, entry in enumerate(zip(dtypes, dims, strict=True))]
        for output in outputs:
            self._require_scalars(output, outputs)
        self._require_support(inputs, outputs)
        return outputs

    def _counted(self, method: str, made: Any, cls: type[C]) -> Sequence[C]:
        right = isinstance(made, list | tuple) and all(isinstance(value, cls) for value in cast(Sequence[Any], made))
        ensure(right, f"{method} of {self._name} returned {made!r}, not a list with an element for each output")
        count = f"{len(made)} elements for {self.num_outputs} outputs"
        ensure(len(made) == self.num_outputs, f"{method} of {self._name} returned {count}")
        return made

    def _output(self, number: int, dtype: DataType, dims: Sequence[Any]) -> PluginOutput:
        ensure(dtype not in PACKED, f"output {number} of {self._name} has packed elements")
        count = f"{len(dims)} axes, and may have at most 8"
        ensure(len(dims) <= Dims.MAX_DIMS, f"output {number} of {self._name} has {count}")
        for axis, length in enumerate(dims):
            what = f"length {axis} of output {number} of {self._name} is {length!r}, not an IDimensionExpr"
            ensure(isinstance(length, IDimensionExpr), what, "make it with expr_builder")
            negative = length.value is not None and length.value < 0
            ensure(not negative, f"length {axis} of output {number} of {self._name} is {length.value}")
        lengths = (UNKNOWN if length.value is None or length.is_size_tensor() else length.value for length in dims)
        reserved = tuple(UNKNOWN if length.value is None else length.value for length in dims)
        sizes = {axis: length.size_output for axis, length in enumerate(dims) if length.size_output is not None}
        return PluginOutput(TensorType(numpy_type(dtype), tuple(lengths)), reserved, sizes)

    def _require_scalars(self, output: PluginOutput, outputs: Sequence[PluginOutput]) -> None:
        for number in output.sizes.values():
            tensor_type = outputs[number].type if 0 <= number < len(outputs) else None
            is_size = tensor_type is not None and tensor_type.is_index and tensor_type.rank == 0
            what = (
                f"{self._name} declares output {number} as a size, which is {tensor_type or 'not one of its outputs'}"
            )
            ensure(is_size, what, "a size is an int32 or int64 scalar")

    def _require_support(self, inputs: Sequence[TensorType], outputs: Sequence[PluginOutput]) -> None:
        types = [*inputs, *(output.type for output in outputs)]
        for position, type_ in enumerate(types):
            with self._calling("supports_format_combination"):
                taken = self._build.supports_format_combination(position, list(map(_dynamic, types)), len(inputs))
            role = f"input {position}" if position < len(inputs) else f"output {position - len(inputs)}"
            ensure(bool(taken), f"{self._name} does not support {role} as row-major {type_}", "convert with add_cast")

    # ------------------------------------------------------------------ runs

    def evaluate(self, inputs: Sequence[Array], shape_inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Compute the outputs by ``enqueue``, which works on copies of the inputs.

        Raises:
            LayerError: the plugin fails, or a data-dependent length is too large.
            ExecutionError: CUDA's runtime fails, or a kernel of the plugin did.
        """
        with self._lock:
            plugin = self._prepared_for(
                [TensorType.of(array) for array in inputs], [TensorType.of(array) for array in shape_inputs]
            )
            copies = [_copy(array) for array in inputs]
            arrays = [self._memory(number, output, copies) for number, output in enumerate(plugin.outputs)]
            described, workspace = (plugin.input_desc, plugin.output_desc), plugin.workspace.ctypes.data
            with self._calling("enqueue"):
                status: Any = plugin.runtime.enqueue(*described, _addresses(copies), _addresses(arrays), workspace, 0)
            ensure(not status, f"enqueue of {self._name} returned {status!r}")
            outputs = _computed(arrays)
            return tuple(self._cut(number, plugin.outputs, outputs) for number in range(len(outputs)))

    def _memory(self, number: int, output: PluginOutput, inputs: Sequence[Array]) -> Array:
        """The memory of an output: its own, or that of the input that the plugin changes in place."""
        with self._calling("get_aliased_input"):
            alias = self._build.get_aliased_input(number) if isinstance(self._build, IPluginV3OneBuildV2) else NO_ALIAS
        if alias == NO_ALIAS:
            return shared_array(output.reserved, output.type.dtype)
        fits = type(alias) is int and 0 <= alias < len(inputs)
        ensure(fits, f"get_aliased_input of {self._name} returned {alias!r}, which is none of {len(inputs)} inputs")
        result = inputs[alias]
        what = f"output {number} of {self._name} is {output.type}, and shares the memory of {TensorType.of(result)}"
        ensure((result.shape, result.dtype) == (output.reserved, output.type.dtype), what, "their types must be equal")
        return result

    def _prepared_for(self, inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> _PreparedPlugin:
        key = key_of(inputs, shape_inputs)
        if key not in self._prepared_plugins:
            plugin = self._prepare(inputs, self._outputs(inputs, shape_inputs))
            if len(self._prepared_plugins) >= MOST_REMEMBERED:
                self._prepared_plugins.clear()
            self._prepared_plugins[key] = plugin
        return self._prepared_plugins[key]

    def _prepare(self, inputs: Sequence[TensorType], outputs: Sequence[PluginOutput]) -> _PreparedPlugin:
        fixed = all(UNKNOWN not in output.reserved for output in outputs)
        ensure(fixed, f"get_output_shapes of {self._name} leaves a length unknown, though all inputs are known")
        dynamic = list(map(_dynamic, inputs)), [_dynamic(output.type, output.reserved) for output in outputs]
        descriptions = list(map(_description, inputs)), [_description(output.type) for output in outputs]
        with self._calling("configure_plugin"):
            self._build.configure_plugin(*dynamic)
        with self._calling("get_workspace_size"):
            workspace = shared_array((self._build.get_workspace_size(*dynamic),), np.uint8)
        with self._calling("get_valid_tactics"):
            tactic = next(iter(self._build.get_valid_tactics()), 0)
        runtime = self._attached()
        with self._calling("set_tactic"):
            runtime.set_tactic(tactic)
        with self._calling("on_shape_change"):
            runtime.on_shape_change(*descriptions)
        return _PreparedPlugin(runtime, outputs, *descriptions, workspace)

    def _attached(self) -> IPluginV3OneRuntime:
        with self._calling("attach_to_context"):
            result = self._runtime.attach_to_context(IPluginResourceContext())
        what = f"attach_to_context of {self._name} returned {result!r}, which is not an IPluginV3"
        ensure(isinstance(result, IPluginV3), what)
        return self._part(result, PluginCapabilityType.RUNTIME, IPluginV3OneRuntime)

    def _cut(self, number: int, outputs: Sequence[PluginOutput], made: Sequence[Array]) -> Array:
        """Cut an output to its data-dependent lengths."""
        output, array = outputs[number], made[number]
        shape = list(array.shape)
        for axis, size in output.sizes.items():
            length = int(made[size])
            what = f"output {size} of {self._name} is the length {length}, and memory is reserved for {shape[axis]}"
            ensure(0 <= length <= shape[axis], what)
            shape[axis] = length
        return array.reshape(-1)[: int(np.prod(shape, dtype=np.int64))].reshape(shape) if output.sizes else array

    def lower(self, inputs: Sequence[Any], shape_inputs: Sequence[Array]) -> NoReturn:
        """Never called: the plugin cannot be compiled."""
        raise AssertionError(f"{self._name} computes only on the host")


def _copy(array: Array) -> Array:
    copy = shared_array(array.shape, array.dtype)
    copy[...] = array
    return copy


def _computed(arrays: Sequence[Array]) -> Sequence[Array]:
    """The outputs when the kernels of a plugin have ended, in memory of the host alone where there is a GPU."""
    cuda = cuda_runtime()
    if cuda is None:
        return arrays
    cuda.synchronize(LEGACY)
    return [array.copy() for array in arrays]


def _addresses(arrays: Sequence[Array]) -> list[int]:
    return [array.ctypes.data for array in arrays]


def _expression(length: int) -> IDimensionExpr:
    return IDimensionExpr(None if length == UNKNOWN else length)


def _values(type: TensorType) -> list[int]:
    """The elements of a shape input, -1 for unknown ones."""
    ensure(type.is_fixed, f"a shape input is {type}, and its number of elements must be known")
    dims = type.ints()
    return [UNKNOWN] * type.volume if dims is None else dims


def _description(type: TensorType) -> PluginTensorDesc:
    return PluginTensorDesc(Dims(type.shape).fixed(), data_type(type.dtype))


def _dynamic(type: TensorType, reserved: tuple[int, ...] | None = None) -> DynamicPluginTensorDesc:
    dims = Dims(type.shape if reserved is None else reserved).fixed()
    return DynamicPluginTensorDesc(_description(type), dims, dims, dims)
