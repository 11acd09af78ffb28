"""Plugins that are JAX functions."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from netloop.model.plugins.enums import PluginCapabilityType, PluginFieldType, TensorRTPhase
from netloop.model.plugins.fields import PluginField, PluginFieldCollection, PluginFieldCollection_
from netloop.model.plugins.interfaces import IPluginCreatorV3One, IPluginV3, IPluginV3OneCore
from netloop.model.plugins.kernel import Kernel, Types, calling, ensure
from netloop.model.plugins.registry import get_plugin_registry
from netloop.values.diagnostics import LayerError
from netloop.values.dims import Dims
from netloop.values.types import UNKNOWN, Array, TensorType, agree, data_type, merge

Function = Callable[..., Any]

PROBES = (8, 1, 2, 32, 224)
"""Lengths that are tried instead of unknown ones, until the function accepts one."""

ATTRIBUTES = "attributes"
"""The only field of a plugin, which has its attributes as JSON."""


@dataclass(frozen=True, eq=False, repr=False)
class JaxPlugin(IPluginV3, IPluginV3OneCore):
    """A plugin that is a JAX function, for ``add_plugin_v3``. It is immutable.

    ``function(*inputs, *shape_inputs)`` takes JAX arrays, and for shape inputs numpy arrays, whose values it may use
    for shapes. It returns an array, or a tuple of them, but must be pure, as it may run any number of times. It is
    traced with 64-bit types enabled, so that ``jnp.zeros(3)`` is float64; name the types. A plan can hold only plugins
    that are made with ``jax_plugin``.

    Args:
        function: the function.
        num_outputs: the number of its outputs.
        output_types: a function from the types of the inputs to those of the outputs, ``TensorType`` each, with -1 for
            an unknown length; its result is checked. Without it, the function is traced for the types.

    Raises:
        TypeError: an argument is of another type.
    """

    function: Function
    num_outputs: int = 1
    output_types: Function | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any], init=False)

    def __post_init__(self) -> None:
        _check_function("function", self.function)
        if self.output_types is not None:
            _check_function("output_types", self.output_types)
        if type(self.num_outputs) is not int or self.num_outputs < 1:
            raise TypeError(f"num_outputs must be an int of 1 or more, not {self.num_outputs!r}")

    def get_capability_interface(self, type: PluginCapabilityType) -> Any:
        """Return the core, which has the names; the other parts are not needed."""
        return self if type is PluginCapabilityType.CORE else None

    def clone(self) -> JaxPlugin:
        """Return the plugin itself, which is immutable."""
        return self

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        """Return the attributes, as JSON."""
        text = json.dumps(dict(self.attributes), sort_keys=True)
        return PluginFieldCollection([PluginField(ATTRIBUTES, text, PluginFieldType.CHAR)])

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self.attributes.items())
        return f"<JaxPlugin {self.plugin_name or _name_of(self.function)}{shown}>"


class JaxPluginCreator(IPluginCreatorV3One):
    """A JAX function with a name, by which plans identify it; see ``jax_plugin``.

    Calling it with attributes returns a plugin.
    """

    def __init__(
        self,
        function: Function,
        name: str,
        version: str = "1",
        namespace: str = "",
        num_outputs: int = 1,
        output_types: Function | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name, self.plugin_version, self.plugin_namespace = name, version, namespace
        self.field_names = PluginFieldCollection([PluginField(ATTRIBUTES, b"", PluginFieldType.CHAR)])
        checked = JaxPlugin(function, num_outputs, output_types)
        self._num_outputs, self._output_types = checked.num_outputs, checked.output_types

    def __call__(self, **attributes: Any) -> JaxPlugin:
        """Return a plugin with attributes, which the function receives by keyword.

        Attributes are bools, ints, floats, strings, None, and sequences of these, which become tuples.

        Raises:
            TypeError: an attribute is of another type, or the function does not take it.
        """
        attributes = {name: _attribute(name, value) for name, value in attributes.items()}
        _require_taken(self.function, attributes)
        types = None if self._output_types is None else functools.partial(self._output_types, **attributes)
        plugin = JaxPlugin(functools.partial(self.function, **attributes), self._num_outputs, types)
        names = {"plugin_version": self.plugin_version, "plugin_namespace": self.plugin_namespace}
        vars(plugin).update(names, plugin_name=self.name, attributes=MappingProxyType(attributes))
        return plugin

    def create_plugin(
        self, name: str, field_collection: PluginFieldCollection_, phase: TensorRTPhase = TensorRTPhase.BUILD
    ) -> JaxPlugin:
        """Return a plugin with the attributes from a plan, or with those that are fields, as scripts pass them.

        A field of one element is a number, as attributes of TensorRT's plugins are.
        """
        texts = [other.data.tobytes() for other in field_collection if other.name == ATTRIBUTES]
        if not texts:
            return self(**{field.name: _of_field(field) for field in field_collection})
        result = json.loads(texts[0])
        if not isinstance(result, dict):
            raise ValueError(f"the attributes of {self.name!r} are not a JSON object")
        return self(**result)


def jax_plugin(
    name: str, version: str = "1", namespace: str = "", *, num_outputs: int = 1, output_types: Function | None = None
) -> Callable[[Function], JaxPluginCreator]:
    """Make a JAX function a kind of plugin, and register it, so that plans can hold it.

    Calling it with attributes, as in ``circular_pad(pads=(1, 1))``, then returns a ``JaxPlugin``. A function of the
    same module and name replaces the earlier one, as when a cell of a notebook is run again.

    Args:
        name: its name, by which plans identify it, together with the version and namespace.
        version: its version.
        namespace: its namespace.
        num_outputs: as for ``JaxPlugin``.
        output_types: as for ``JaxPlugin``; it receives the attributes too.

    Raises:
        TypeError: an argument is of another type.
        ValueError: another function has the name.
    """

    def register(function: Function) -> JaxPluginCreator:
        creator = JaxPluginCreator(function, name, version, namespace, num_outputs, output_types)
        registry = get_plugin_registry()
        there = registry.get_creator(name, version, namespace)
        if isinstance(there, JaxPluginCreator) and _name_of(there.function) == _name_of(function):
            registry.deregister_creator(there)
        if not registry.register_creator(creator, namespace):
            raise ValueError(f"another plugin {name!r} of version {version!r} is registered in {namespace!r}")
        return creator

    return register


class JaxKernel(Kernel):
    """Runs a JAX function."""

    on_host = False

    def __init__(self, plugin: JaxPlugin) -> None:
        super().__init__()
        self.num_outputs = plugin.num_outputs
        self._function = plugin.function
        self._promise = plugin.output_types
        self._name = plugin.plugin_name or _name_of(plugin.function)

    def find_types(self, inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> Types:
        """Return the types of the outputs, from ``output_types`` or a trace of the function.

        Raises:
            LayerError: the function does not accept these inputs, fails, or contradicts ``output_types``.
        """
        values = [tensor_type.value for tensor_type in shape_inputs]
        is_fixed = all(tensor_type.is_fixed for tensor_type in inputs) and all(array is not None for array in values)
        promised = None if self._promise is None else self._promised(self._promise, [*inputs, *shape_inputs])
        if is_fixed:
            traced = self._trace([tensor_type.shape for tensor_type in inputs], inputs, values)
            return traced if promised is None else self._kept(promised, traced)
        return self._partial_types(inputs, shape_inputs) if promised is None else promised

    def _trace(self, shapes: Sequence[Any], inputs: Sequence[TensorType], values: Sequence[Any]) -> Types:
        with jax.enable_x64(True):
            structs = [
                jax.ShapeDtypeStruct(shape, tensor_type.dtype)
                for shape, tensor_type in zip(shapes, inputs, strict=True)
            ]
            with calling(self._name):
                result = jax.eval_shape(lambda *arrays: self._call(arrays, values), *structs)
        return tuple(self._type(value) for value in result)

    def _type(self, made: Any) -> TensorType:
        try:
            data_type(made.dtype)
        except ValueError as error:
            ensure(False, f"{self._name} returned {made.dtype} elements: {error}")
        shape = (length if isinstance(length, int) else UNKNOWN for length in made.shape)
        return TensorType(np.dtype(made.dtype), tuple(shape))

    def _call(self, inputs: Sequence[Any], values: Sequence[Any]) -> tuple[jax.Array, ...]:
        """Call the function, and return its outputs as JAX arrays."""
        with calling(self._name):
            returned = self._function(*map(jnp.asarray, inputs), *values)
        outputs = tuple(returned) if isinstance(returned, list | tuple) else (returned,)
        count = f"{len(outputs)} outputs, and num_outputs is {self.num_outputs}"
        ensure(len(outputs) == self.num_outputs, f"{self._name} returned {count}")
        for tensor in outputs:
            ensure(isinstance(tensor, _ARRAYS), f"{self._name} returned {type(tensor).__name__}, not an array")
        return tuple(map(jnp.asarray, outputs))

    # ------------------------------------------------------------------ unknown lengths

    def _partial_types(self, inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> Types:
        """The types of the outputs, as far as they can be found while some lengths are unknown."""
        if all(tensor_type.value is not None for tensor_type in shape_inputs):
            try:
                return self._trace(_symbolic(inputs), inputs, [tensor_type.value for tensor_type in shape_inputs])
            except LayerError:
                pass  # as where the function needs two unknown lengths to be equal
        return self._probe(inputs, shape_inputs)

    def _probe(self, inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> Types:
        """The element types and ranks of the outputs, found by tracing with example lengths."""
        first: LayerError | None = None
        for probe in PROBES:
            shapes = [_filled(tensor_type, probe) for tensor_type in inputs]
            values = [np.full(_filled(e, probe), probe, e.dtype) if e.value is None else e.value for e in shape_inputs]
            try:
                types = self._trace(shapes, inputs, values)
            except LayerError as error:
                first = first or error
            else:
                return tuple(tensor_type.with_shape([UNKNOWN] * tensor_type.rank) for tensor_type in types)
        assert first is not None
        first.fix = "pass output_types, since the function accepts only certain lengths"
        raise first

    # ------------------------------------------------------------------ output_types

    def _promised(self, promise: Function, inputs: Sequence[TensorType]) -> Types:
        with calling(f"output_types of {self._name}"):
            promised = promise(*inputs)
        types = tuple(promised) if isinstance(promised, list | tuple) else (promised,)
        right = len(types) == self.num_outputs and all(isinstance(type_, TensorType) for type_ in types)
        ensure(
            right, f"output_types of {self._name} returned {promised!r}, but must return {self.num_outputs} TensorType"
        )
        return tuple(type_.without_value() for type_ in types)

    def _kept(self, promised: Types, traced: Types) -> Types:
        for number, (promise, tensor_type) in enumerate(zip(promised, traced, strict=True)):
            holds = promise.dtype == tensor_type.dtype and agree(promise.shape, tensor_type.shape)
            ensure(holds, f"output {number} of {self._name} is {tensor_type}, and output_types returned {promise}")
        return tuple(b.with_shape(merge(a.shape, b.shape)) for a, b in zip(promised, traced, strict=True))

    # ------------------------------------------------------------------ runs

    def evaluate(self, inputs: Sequence[Array], shape_inputs: Sequence[Array]) -> tuple[Array, ...]:
        # a reference, which no device may round
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            return tuple(map(np.asarray, jax.block_until_ready(self._call(inputs, shape_inputs))))

    def lower(self, inputs: Sequence[Any], shape_inputs: Sequence[Array]) -> tuple[Any, ...]:
        return self._call(inputs, shape_inputs)


_ARRAYS = (jax.Array, np.ndarray, np.generic, bool, int, float)


def _symbolic(inputs: Sequence[TensorType]) -> list[tuple[Any, ...]]:
    """The shapes of the inputs, with a symbolic dimension for each unknown length."""
    unknown = sum(tensor_type.shape.count(UNKNOWN) for tensor_type in inputs)
    symbols = iter(export.symbolic_shape(", ".join(f"n{number}" for number in range(unknown))))
    return [
        tuple(next(symbols) if length == UNKNOWN else length for length in tensor_type.shape) for tensor_type in inputs
    ]


def _filled(type: TensorType, probe: int) -> tuple[int, ...]:
    return tuple(probe if length == UNKNOWN else length for length in type.shape)


def _of_field(field: PluginField) -> Any:
    if field.type is PluginFieldType.CHAR:
        return field.data.tobytes().decode()
    return field.data.item() if field.size == 1 else field.data.tolist()


def _attribute(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple | Dims):
        return tuple(_attribute(name, element) for element in value)
    if value is not None and not isinstance(value, bool | int | float | str):
        what = f"the attribute {name!r} is {type(value).__name__}, not a bool, int, float, str or sequence of these"
        raise TypeError(f"{what}; pass arrays as inputs, made with add_constant")
    return value


def _require_taken(function: Function, attributes: Mapping[str, Any]) -> None:
    """Check that a function takes all attributes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    names = [
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    for name in attributes:
        if name not in names:
            raise TypeError(f"{_name_of(function)} does not take the attribute {name!r}")


def _check_function(name: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(f"{name} must be a function, not {value!r}")


def _name_of(function: Function) -> str:
    """The qualified name of a function, for messages."""
    inner = function.func if isinstance(function, functools.partial) else function
    return str(getattr(inner, "__qualname__", None) or type(inner).__name__)
