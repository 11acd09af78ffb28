"""Engines and contexts whose inputs and outputs have numbers, the bindings of TensorRT 7 and 8.

With several optimization profiles there is a binding for each input and output in each profile: those of the first
profile come first, and the names of later ones end in the number of their profile, as in TensorRT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

import netloop
from netloop.api.logger import ILogger
from netloop.api.transfers import HostTransfers
from netloop.tools.compat.versions import ten
from netloop.tools.compat.versions.implicit_batch import is_batched
from netloop.values.diagnostics import Finding
from netloop.values.dims import Dims
from netloop.values.enums import DataType, TensorFormat, TensorIOMode, TensorLocation
from netloop.values.types import UNKNOWN, Array, numpy_type

T = TypeVar("T")


class Binding(NamedTuple):
    """An input or output in an optimization profile."""

    name: str
    profile: int


class ICudaEngine(ten.ICudaEngine):
    """An engine of TensorRT 7 or 8, whose inputs and outputs have numbers."""

    def create_execution_context(self, *args: Any, **named: Any) -> Any:
        """Create a context, through which the engine runs on addresses."""
        return ten.as_version(super().create_execution_context(*args, **named), IExecutionContext)

    def create_execution_context_without_device_memory(self) -> Any:
        """Create a context."""
        return ten.as_version(super().create_execution_context_without_device_memory(), IExecutionContext)

    @property
    def num_bindings(self) -> int:
        """The number of inputs and outputs, times that of optimization profiles."""
        return self.num_io_tensors * self.num_optimization_profiles

    def __len__(self) -> int:
        return self.num_bindings

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> Any:
        """The name of a number, or the number of a name."""
        if isinstance(index, str):
            return self.get_binding_index(index)
        number = index + self.num_bindings if index < 0 else index
        if not 0 <= number < self.num_bindings:
            raise IndexError(f"the engine has {self.num_bindings} bindings, and no number {index}")
        return self.get_binding_name(number)

    def binding(self, index: int | str) -> Binding | None:
        """The binding of a number or name; None if there is none."""
        count = self.num_io_tensors
        number = self.get_binding_index(index) if isinstance(index, str) else int(index)
        known = 0 <= number < self.num_bindings
        return Binding(self.get_tensor_name(number % count), number // count) if known else None

    def get_binding_name(self, index: int) -> str | None:
        """The name of a binding; None if there is no such number."""
        binding = self.binding(index)
        return None if binding is None else _full_name(binding)

    def get_binding_index(self, name: str) -> int:
        """The number of a binding; -1 if there is none of this name."""
        full = (_full_name(Binding(own, profile)) for profile in self._profiles for own in self.tensor_names)
        return next((number for number, known in enumerate(full) if known == name), -1)

    @property
    def _profiles(self) -> range:
        return range(self.num_optimization_profiles)

    def binding_is_input(self, index: int | str) -> bool:
        """Whether a binding is an input."""
        return self._of(index, self.get_tensor_mode, TensorIOMode.NONE) is TensorIOMode.INPUT

    def get_binding_shape(self, index: int | str) -> Dims:
        """The shape of a binding, with -1 for each length that is not fixed; without the batch where it is implicit."""
        return self.without_batch(self._of(index, self.get_tensor_shape, Dims(())))

    def without_batch(self, shape: Dims) -> Dims:
        """A shape without the axis of the batch, if that is implicit."""
        return Dims(shape[1:]) if self.has_implicit_batch_dimension else shape

    def get_binding_dtype(self, index: int | str) -> DataType:
        """The element type of a binding."""
        return self._of(index, self.get_tensor_dtype, DataType.FLOAT)

    def get_binding_format(self, index: int) -> TensorFormat:
        """The layout of a binding at its address."""
        return self._of(index, self.get_tensor_format, TensorFormat.LINEAR)

    def get_binding_format_desc(self, index: int) -> str:
        """The layout of a binding, in words."""
        return self._of(index, self.get_tensor_format_desc, "")

    def get_binding_vectorized_dim(self, index: int) -> int:
        """-1: no axis is vectorized."""
        return self._of(index, self.get_tensor_vectorized_dim, -1)

    get_binding_components_per_element = get_binding_bytes_per_component = get_binding_vectorized_dim

    def get_location(self, index: int | str) -> TensorLocation:
        """HOST for an input whose value decides a shape, DEVICE for the rest."""
        return self._of(index, self.get_tensor_location, TensorLocation.DEVICE)

    def is_shape_binding(self, binding: int) -> bool:
        """Whether the value of an input decides a shape, or an output was marked for shapes."""
        return self._of(binding, self.is_shape_inference_io, False)

    def is_execution_binding(self, binding: int) -> bool:
        """Whether a binding is computed with, and not only a shape."""
        return not self.is_shape_binding(binding)

    def get_profile_shape(self, profile_index: int, binding: int | str) -> list[Dims]:
        """The minimum, optimum and maximum shape of an input in a profile."""
        shapes = self._of(binding, lambda name: self.get_tensor_profile_shape(name, profile_index), [])
        return [self.without_batch(shape) for shape in shapes]

    def get_profile_shape_input(self, profile_index: int, binding: int | str) -> list[list[int]]:
        """The minimum, optimum and maximum values of a shape input in a profile."""
        return self._of(binding, lambda name: self.get_tensor_profile_values(profile_index, name), [])

    def _of(self, index: int | str, ask: Any, otherwise: T) -> T:
        """A property of a binding; TensorRT's answer, and an error in the log, if there is no such binding."""
        binding = self.binding(index)
        if binding is None:
            self.log(ILogger.ERROR, f"the engine has {self.num_bindings} bindings, and no {index!r}")
            return otherwise
        return ask(binding.name)

    @property
    def has_implicit_batch_dimension(self) -> bool:
        """Whether shapes leave out the axis of the batch, whose length each run says."""
        return is_batched(self.network)

    @property
    def max_batch_size(self) -> int:
        """The largest batch of a run; 1 where the batch is an axis of the shapes."""
        if not self.has_implicit_batch_dimension:
            return 1
        ranges = (self.profile_of(0).shapes().get(tensor.name) for tensor in self.network.inputs)
        return next((int(limits.max[0]) for limits in ranges if limits is not None), 1)


def _full_name(binding: Binding) -> str:
    return f"{binding.name} [profile {binding.profile}]" if binding.profile else binding.name


class IExecutionContext(netloop.IExecutionContext[ICudaEngine]):
    """A context of TensorRT 7 or 8, which takes bindings by their numbers."""

    @property
    def active_optimization_profile(self) -> int:
        """The number of the optimization profile; setting it forgets the shapes that were set."""
        return self._profile

    @active_optimization_profile.setter
    def active_optimization_profile(self, index: int) -> None:
        self.set_optimization_profile_async(index, 0)

    # ------------------------------------------------------------------ running

    def execute_v2(self, bindings: Sequence[int]) -> bool:
        """Run on addresses of all bindings, of which those of the active profile count; whether the run succeeded."""
        return self._has_batch() and super().execute_v2(self._with_shape_values(self._of_profile(bindings)))

    def execute_async_v2(self, bindings: Sequence[int], stream_handle: int = 0, input_consumed: Any = None) -> bool:
        """Run on addresses of all bindings in the order of a CUDA stream; whether the run succeeded."""
        if not self._has_batch():
            return False
        addresses = self._with_shape_values(self._of_profile(bindings))
        names = self._engine.tensor_names
        if len(addresses) != len(names):
            return super().execute_v2(addresses)  # which refuses them
        if not all(self.set_tensor_address(name, address) for name, address in zip(names, addresses, strict=True)):
            return False
        self.set_input_consumed_event(int(input_consumed or 0))
        return self.execute_async_v3(stream_handle)

    def execute(self, batch_size: int = 1, bindings: Sequence[int] = ()) -> bool:
        """Run a batch on addresses of all bindings; whether the run succeeded."""
        return self._takes_batch(batch_size) and self.execute_v2(bindings)

    def execute_async(
        self, batch_size: int = 1, bindings: Sequence[int] = (), stream_handle: int = 0, input_consumed: Any = None
    ) -> bool:
        """Run a batch on addresses of all bindings in the order of a CUDA stream; whether the run succeeded."""
        return self._takes_batch(batch_size) and self.execute_async_v2(bindings, stream_handle, input_consumed)

    def _has_batch(self) -> bool:
        """Whether the length of the batch is known, where it is implicit; an error in the log if it is not."""
        if self._shapes or not self._engine.has_implicit_batch_dimension:
            return True
        what = "the network was created with an implicit batch, and its length is not set"
        explicit = "create the network with 1 << int(NetworkDefinitionCreationFlag.EXPLICIT_BATCH)"
        return self._refuse(str(Finding("NL606", what, fix=f"{explicit}, or call execute with a batch_size")))

    def _takes_batch(self, batch_size: int) -> bool:
        """Give the inputs the batch of a run, where it is implicit; whether they can have it."""
        if not self._engine.has_implicit_batch_dimension:
            return True  # the batch is an axis of the shapes, and TensorRT ignores the argument too
        if not 1 <= batch_size <= self._engine.max_batch_size:
            return self._refuse(f"the batch is {batch_size}, and may be 1 to {self._engine.max_batch_size}")
        inputs = self._engine.network.inputs
        return all(self.set_input_shape(tensor.name, (batch_size, *tensor.shape[1:])) for tensor in inputs)

    def _of_profile(self, bindings: Sequence[int]) -> list[int]:
        """The addresses of the active profile."""
        count, addresses = self._engine.num_io_tensors, [*bindings]
        if len(addresses) != self._engine.num_bindings or len(addresses) == count:
            return addresses
        return addresses[self._profile * count : (self._profile + 1) * count]

    def _with_shape_values(self, addresses: list[int]) -> list[int]:
        """The addresses, with those of the values that ``set_shape_input`` set, which count instead."""
        values = self._shape_values
        names = self._engine.tensor_names
        if len(addresses) != len(names):
            return addresses
        return [
            values[name].ctypes.data if name in values else int(address)
            for name, address in zip(names, addresses, strict=True)
        ]

    # ------------------------------------------------------------------ shapes

    def get_tensor_shape(self, name: str) -> Dims:
        """The shape of an input or output; a length that only a run knows is that of the last run, until TensorRT 9."""
        shape = super().get_tensor_shape(name)
        return Dims(self._last_shapes.get(name, shape)) if UNKNOWN in shape else shape

    def set_input_shape(self, name: str, shape: Sequence[int]) -> bool:
        """Set the shape of an input; False, with an error in the log, if it cannot have it."""
        self._last_shapes.clear()
        return super().set_input_shape(name, shape)

    def _write(self, run: HostTransfers, name: str, array: Any, shape: tuple[int, ...], stream: int) -> None:
        self._last_shapes[name] = shape
        super()._write(run, name, array, shape, stream)

    @property
    def _last_shapes(self) -> dict[str, tuple[int, ...]]:
        return vars(self).setdefault("_shapes_of_last_run", {})

    @property
    def _shape_values(self) -> dict[str, Array]:
        return vars(self).setdefault("_kept_values", {})

    def set_binding_shape(self, binding: int, shape: Sequence[int]) -> bool:
        """Set the shape of an input; False, with an error in the log, if it cannot have it."""
        own = self._binding(binding)
        return own is not None and self.set_input_shape(own.name, shape)

    def get_binding_shape(self, binding: int) -> Dims:
        """The shape of a binding as far as it is known, with -1 for each unknown length."""
        own = self._binding(binding)
        return Dims(()) if own is None else self._engine.without_batch(self.get_tensor_shape(own.name))

    def get_strides(self, binding: int) -> Dims:
        """The stride of each axis in elements."""
        own = self._binding(binding)
        return Dims(()) if own is None else self.get_tensor_strides(own.name)

    def set_shape_input(self, binding: int, shape: Sequence[int]) -> bool:
        """Set the values of a shape input, which are kept; whether there is such an input."""
        own = self._binding(binding)
        if own is None or self._input(own.name) is None:
            return self._refuse(f"binding {binding} is no input")
        dtype, wanted = numpy_type(self._engine.get_tensor_dtype(own.name)), self._engine.get_tensor_shape(own.name)
        array = np.asarray(shape, dtype).reshape(-1)
        if array.size != netloop.volume(wanted):
            return self._refuse(f"{own.name!r} has the shape {wanted}, and was given {array.size} values")
        self._shape_values[own.name] = array
        return self.set_tensor_address(own.name, array.ctypes.data)

    def get_shape(self, binding: int) -> list[int]:
        """The values of a shape input that were set.

        Raises:
            RuntimeError: there are none.
        """
        own = self._binding(binding)
        array = None if own is None else self._shape_values.get(own.name)
        if array is None:
            raise RuntimeError(f"binding {binding} has no values: call set_shape_input({binding}, values) first")
        return array.tolist()

    def _binding(self, index: int) -> Binding | None:
        binding = self._engine.binding(index)
        if binding is None or binding.profile != self._profile:
            self._refuse(f"profile {self._profile} has no binding {index}")
            return None
        return binding
