"""The base classes of layers, and the decorator that declares a kind of layer."""

import operator
import re
import sys
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, get_type_hints

import jax.numpy as jnp
import numpy as np
from typing_extensions import dataclass_transform

from netloop.model.graph.argument_hints import tensor_hint
from netloop.model.graph.attributes import BASE_ATTRIBUTES, converter
from netloop.model.graph.call_site import call_site
from netloop.model.graph.infer import Known, TypeTable
from netloop.model.graph.layer_compat import LayerCompatibility
from netloop.model.graph.layer_text import layer_text, value_text
from netloop.model.graph.padded_axes import NO_NEUTRALS, Axes, Neutrals
from netloop.model.graph.partial_values import elementwise, moved
from netloop.model.graph.python_operators import PythonOperators
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import (
    Finding,
    LayerError,
    NetworkError,
    Severity,
    SourceLocation,
    did_you_mean,
    quoted,
    reason,
)
from netloop.values.enums import LayerType
from netloop.values.removed_names import unknown
from netloop.values.types import HALVES, Array, MaskedArray, Shape, TensorType

ACCESSOR = re.compile(r"(get|set|reset|is)_")
"""The beginning of the names of all methods that TensorRT's layers have, except for those in READABLE."""
TYPED = "TensorRT's networks are strongly typed: nothing is converted silently"
"""Why a layer refuses an element type that ``add_cast`` would convert."""
WIRING = {"output": "use get_output(0)", "input": "use get_input(0)"}
"""Replacements of attributes that layers of other systems have."""
READABLE = {"num_inputs", "num_outputs", "output_type_is_set", "precision_is_set", "type"}
"""The attributes and methods of TensorRT's layers that only report something."""

Types = TensorType | tuple[TensorType, ...]
Arrays = Array | tuple[Array, ...]


class LayerKind(ABCMeta):
    """The class of layer kinds; none is registered as another, and so ``isinstance`` need not ask Python's registry."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


class KindOfLayer:
    """``type`` of a layer whose class has none of its own: its LayerType; of a class, what reads it from a layer.

    Scripts read the LayerType of an activation, whose ``type`` is its function, as ``ILayer.type.fget(layer)``.
    """

    def fget(self, layer: Any) -> LayerType:
        """The LayerType of a layer."""
        return layer.LAYER_TYPE

    def __get__(self, layer: Any, owner: Any = None) -> Any:
        return self if layer is None else self.fget(layer)


class NameOfLayer:
    """``name`` of a layer outside of a network; of a class, what reads and sets that of a layer, as of a property."""

    def fget(self, layer: Any) -> str:
        """The name of a layer."""
        return vars(layer).get("name", "")

    def fset(self, layer: Any, name: str) -> None:
        """Set the name of a layer."""
        layer.name = name

    def __get__(self, layer: Any, owner: Any = None) -> Any:
        return self if layer is None else ""  # a layer of a network has its own


class ILayer(LayerCompatibility, PythonOperators, metaclass=LayerKind):
    """A layer of a network.

    The attributes of a kind are the fields of its class. Setting one checks the value, and makes the network forget
    the types that depend on it. The wiring is ``inputs`` and ``outputs``.

    Attributes:
        name: its name, not necessarily unique.
        metadata: any text.
        num_ranks: the number of ranks that it runs on.
        inputs: the tensors that it reads; None for one that is missing or left out.
        outputs: the tensors that it makes.
        index: its index in the network.
        type: its LayerType; of a layer with a function, the function.
        source_location: the line of the user's script that added it, or the node of the model that it comes from.
    """

    OPERAND = "a layer, which is not its output layer.get_output(0),"

    LAYER_TYPE: ClassVar[LayerType]
    LABEL: ClassVar[str]
    """The name of the kind in default names of layers."""
    NUM_OUTPUTS: ClassVar[int] = 1
    LATER_OUTPUT: ClassVar[str] = " ({})"
    """The end of the default name of an output after the first."""
    REQUIRED_INPUTS: ClassVar[int] = 1
    """The number of required inputs, which are the first."""
    MAX_INPUTS: ClassVar[int] = 0
    """The number of inputs up to which ``set_input`` may add one; inputs from the start are always allowed."""
    TENSORS_ONLY: ClassVar[bool] = True
    """Whether every input must be a tensor, neither a sequence nor optional."""
    TAKES_STRINGS: ClassVar[bool] = False
    """Whether inputs may be of strings: the layer moves elements, or tests them for equality."""
    SHAPE_INPUTS: ClassVar[frozenset[int]] = frozenset()
    """The inputs whose values, not only types, decide the types of outputs."""
    PADDED_SIZES: ClassVar[frozenset[int]] = frozenset()
    """The ``SHAPE_INPUTS`` of which larger ones only append elements: padded lengths may be among them."""
    HAS_PRODUCTS: ClassVar[bool] = False
    """Whether it multiplies its inputs as matrices or by windows, with XLA's products."""
    INPUT_OF: ClassVar[dict[str, int]] = {}
    """The attributes that replace an input, by the index of the input: setting one removes the input.

    A default of None or () is no value, and setting it removes nothing.
    """
    READ_ONLY: ClassVar[frozenset[str]] = frozenset()
    """The attributes that cannot be set once the layer is in a network."""
    ATTRIBUTES: ClassVar[dict[str, Callable[[str, Any], Any]]] = {}

    type: Any = KindOfLayer()
    name: str = cast(str, NameOfLayer())
    metadata: str = ""
    num_ranks: int = 1
    types: TypeTable
    inputs: list[ITensor | None]
    outputs: tuple[ITensor, ...] = ()
    index: int = -1
    source_location: SourceLocation | None = None

    def attach(self, types: TypeTable, index: int, inputs: Iterable[ITensor | None]) -> None:
        """Add the layer to a network as number ``index``, wired to ``inputs``."""
        own = vars(self)
        own["types"], own["index"], own["source_location"] = types, index, call_site()
        own["name"] = self.default_name
        self.wire(inputs)
        own["outputs"] = tuple(
            ITensor(f"{self.name}_output{self.LATER_OUTPUT.format(position) * bool(position)}", types, self, position)
            for position in range(self.NUM_OUTPUTS)
        )

    def wire(self, inputs: Iterable[ITensor | None]) -> None:
        """Set the inputs of a layer whose outputs nothing reads yet; see ``set_input`` for one in use."""
        vars(self)["inputs"] = list(inputs)
        for tensor in filter(None, self.inputs):
            check_same_network(self, tensor)
        for position, tensor in enumerate(self.inputs):
            if tensor is not None:
                tensor.uses[self, position] = None

    def detach(self) -> None:
        """Remove the layer, whose outputs nothing reads, from its network."""
        for position, tensor in enumerate(self.inputs):
            if tensor is not None:
                tensor.uses.pop((self, position), None)
        self.types.forget(self.outputs)

    @property
    def default_name(self) -> str:
        """The name of a layer that nobody has named, as in TensorRT."""
        return f"(Unnamed Layer* {self.index}) [{self.LABEL}]"

    @property
    def detail(self) -> str:
        """The difference to other layers of its kind in listings: its operation, if it has one."""
        values = (getattr(self, name) for name in self.ATTRIBUTES)
        return next((value.name for value in values if isinstance(value, Enum)), "")

    @property
    def num_inputs(self) -> int:
        """The number of inputs, including missing ones."""
        return len(self.inputs)

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self.outputs)

    # methods that return None for an index, as TensorRT's do, are typed "or Any": scripts ask for what is there, and a
    # type checker would want a test for None around each call
    def get_input(self, index: int) -> ITensor | Any:
        """Input ``index``; None if it is missing or there is no such input."""
        return self.inputs[index] if 0 <= index < len(self.inputs) else None

    def get_output(self, index: int) -> ITensor | Any:
        """Output ``index``, after the cast if its ``dtype`` was set; None if there is no such output."""
        return self.outputs[index].as_converted if 0 <= index < len(self.outputs) else None

    def set_input(self, index: int, tensor: ITensor) -> None:
        """Set input ``index``; the tensor may belong to a later layer.

        Raises:
            TypeError: it is not a tensor.
            IndexError: the layer has no such input.
            NetworkError: the tensor is of another network.
        """
        index = operator.index(index)
        check_tensor(tensor, "tensor")
        check_same_network(self, tensor)
        if not 0 <= index < max(len(self.inputs), self.MAX_INPUTS):
            raise IndexError(f"{self.described} has no input {index}")
        self.inputs.extend([None] * (index + 1 - len(self.inputs)))
        self._rewire(index, tensor)

    def _rewire(self, index: int, tensor: ITensor | None) -> None:
        before = self.inputs[index]
        if before is not None:
            before.uses.pop((self, index), None)
        self.inputs[index] = tensor
        if tensor is not None:
            tensor.uses[self, index] = None
        self.types.forget(self.dependent_tensors())

    def part_with_output(self, index: int) -> ITensor:
        """Replace an output by a new tensor, which all its readers then read; another layer takes the old one."""
        tensor, own = self.outputs[index], vars(self)
        result = ITensor(f"{tensor.name} before conversion", self.types, self, index)
        vars(result)["is_inner"] = True
        own["outputs"] = (*self.outputs[:index], result, *self.outputs[index + 1 :])
        self.types.forget([tensor])
        for reader, position in list(tensor.uses):
            reader._rewire(position, result)
        return result

    def take_output(self, tensor: ITensor) -> None:
        """Make ``tensor``, which another layer has parted with, the output of this layer, a cast."""
        vars(self)["outputs"] = (tensor,)
        vars(tensor).update(producer=self, position=0, is_converted=True)

    def unshared(self) -> dict[str, Any]:
        """The attributes, other than arrays, that a copy of the layer must not share, copied, by name."""
        return {}

    def unshared_arrays(self) -> dict[str, Any]:
        """Copies of the arrays of the layer, by name."""
        return {name: attribute.copy() for name, attribute in vars(self).items() if isinstance(attribute, np.ndarray)}

    def dependent_tensors(self) -> Sequence[ITensor]:
        """The tensors whose types depend on the inputs and attributes of this layer."""
        return self.outputs

    def type_inputs(self) -> Sequence[ITensor | None]:
        """The tensors that the types of the outputs depend on, in the order of the parameters of ``infer``."""
        return self.inputs

    def largest_shapes(self, *inputs: TensorType) -> tuple[Shape, ...]:
        """The largest shapes that the outputs may have for inputs of fixed shapes; empty if they are not known."""
        return ()

    def feedback(self) -> ITensor | None:
        """The next value of a recurrence whose shape may change, which its output must be able to take; else None."""
        return None

    def possible_types(self, types: list[Known | None]) -> list[Known | None]:
        """The types of ``type_inputs`` in a call; an input that need not be computed takes the type of another one."""
        return types

    @abstractmethod
    def infer(self, *inputs: Any, **named: Any) -> Types:
        """Return the types of the outputs, given the types of the inputs.

        Raises:
            LayerError: the inputs or attributes are invalid.
        """

    @property
    def on_host(self) -> bool:
        """Whether it computes only on the host, and cannot be compiled."""
        return False

    @property
    def described(self) -> str:
        """Class and name, for messages."""
        return f"{type(self).__name__} {quoted(self.name)}"

    @property
    def where(self) -> str:
        """Source location, class and name, for messages."""
        return f"{self.source_location}, {self.described}" if self.source_location else type(self).__name__

    def finding(
        self, code: str, what: str, why: str = "", fix: str = "", severity: Severity = Severity.ERROR
    ) -> Finding:
        """Return a finding at this layer."""
        return Finding(code, what, self.where, why, fix, severity, self)

    def finding_of(self, error: LayerError, code: str = LayerError.CODE) -> Finding:
        """Return the finding for an error that this layer raised; ``code`` is for errors without one of their own."""
        why = error.why or (TYPED if error.fix.startswith(("convert", "compare")) else "")
        finding = self.finding(code if error.code == LayerError.CODE else error.code, error.what, why, error.fix)
        return replace(finding, cause=error.__cause__)

    @classmethod
    def meaning(cls) -> str:
        """The first sentence of the documentation of the kind."""
        return (cls.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")

    def _set(self, name: str, value: Any) -> None:
        convert = self.ATTRIBUTES.get(name) or BASE_ATTRIBUTES.get(name)
        if convert is None:
            view = getattr(type(self), name, None)
            if not (isinstance(view, property) and view.fset) and (name != "__class__" or not isinstance(self, value)):
                hint = did_you_mean(name, self.ATTRIBUTES)
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r} to set{hint and f'; {hint}'}")
            if name != "__class__":  # a layer has the class of its kind from the start
                object.__setattr__(self, name, value)
            return
        if self.index >= 0 and name in self.READ_ONLY:
            raise AttributeError(f"{name!r} of {type(self).__name__} is fixed when the layer is added")
        vars(self)[name] = convert(f"{type(self).__name__}.{name}", value)
        if self.index >= 0 and name in self.ATTRIBUTES:
            self._attribute_changed(name)

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute that can be set
        __setattr__ = _set

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(unknown(type(self).__name__, name, "", WIRING.get(name, "")), name=name, obj=self)

    def _attribute_changed(self, name: str) -> None:
        index = self.INPUT_OF.get(name)
        default = getattr(type(self), name, index)
        is_unset = default in (None, ()) and getattr(self, name) == default
        if index is not None and index < len(self.inputs) and not is_unset:
            self._rewire(index, None)
        self.types.forget(self.dependent_tensors())

    def __dir__(self) -> list[str]:
        """The names that TensorRT's layers have, for completion and for tools that list the attributes of a layer."""
        return sorted({*filter(self._is_of_tensorrt, object.__dir__(self)), *self.ATTRIBUTES, *BASE_ATTRIBUTES})

    def _is_of_tensorrt(self, name: str) -> bool:
        if name in READABLE or name.startswith("__"):
            return True
        result = getattr(type(self), name, None)
        return (
            result.fset is not None if isinstance(result, property) else bool(ACCESSOR.match(name)) and callable(result)
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value_text(getattr(self, name))}" for name in self.ATTRIBUTES)
        return f"<{self.described} {shown}>" if shown else f"<{self.described}>"

    def __str__(self) -> str:
        """One line: number, kind, name, inputs, and outputs with their types."""
        return layer_text(self)


ALL_INPUTS = sys.maxsize
"""``Operation.MOVED_INPUTS`` of a layer that moves elements of all inputs."""


class Operation(ILayer):
    """A layer that computes, from types and arrays only: its methods do not depend on its wiring."""

    def __init_subclass__(cls, **named: Any) -> None:
        """Let numpy compute NaN, infinities and integers that wrap without warnings: they are results, as in JAX."""
        super().__init_subclass__(**named)
        for name in ("evaluate", "host_value"):
            if name in vars(cls):
                setattr(cls, name, np.errstate(all="ignore")(vars(cls)[name]))
        of_host = cls.evaluate if cls.host_value is Operation.host_value else cls.host_value
        # a run has one context for hundreds of layers
        cls.value_in_run = getattr(of_host, "__wrapped__", of_host)

    value_in_run: Callable[..., Any]
    """``host_value``, for a run on the host in which numpy warns of nothing."""
    IS_ELEMENTWISE: ClassVar[bool] = False
    """Whether an element of the output depends on the elements of the inputs at its place only."""
    MOVED_INPUTS: ClassVar[int] = 0
    """The number of first inputs whose elements are those of the output, in places that the other inputs say."""
    NUMPY_IS_FAST: ClassVar[bool] = False
    """Whether ``host_value`` takes a few microseconds for small arrays; it gives what a program gives, or raises."""
    TAKES_LENGTHS: ClassVar[bool] = False
    """Whether ``lower`` takes the ``lengths`` of its inputs, then of its outputs, without padding if any is padded."""

    @property
    def keeps_elements(self) -> bool:
        """Whether its output has the elements of input 0 in their order, in the shape that its type says."""
        return False

    @abstractmethod
    def evaluate(self, *inputs: Any, **named: Any) -> Arrays:
        """Return the outputs as numpy arrays, computed in the simplest way; this defines the layer.

        Raises:
            LayerError: the result is not defined for these values, such as an index out of range.
        """

    def host_value(self, *inputs: Any, **named: Any) -> Any:
        """Return the outputs as an engine computes them outside of its programs: as the reference, or faster."""
        return self.evaluate(*inputs, **named)

    @abstractmethod
    def lower(self, *inputs: Any, **named: Any) -> Any:
        """Return the outputs as JAX arrays, computed the fast way; the ``SHAPE_INPUTS`` are numpy arrays."""

    def beyond_tensorrt(self, *inputs: Any, **named: Any) -> str:
        """The reason why TensorRT refuses the layer, which is valid here, given the types of its inputs; else ""."""
        return ""

    def within_tensorrt(self) -> str:
        """The advice for a layer that TensorRT refuses: the layers of TensorRT that compute the same; "" for none."""
        return ""

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        """The numbers that padding has to be, if axes of the inputs are padded at their ends.

        The elements before the padding of the outputs must then follow from those of the inputs alone; behind them, and
        in padding without a neutral number, is garbage.

        Args:
            types: the types of the inputs, without padding.
            padded: the padded axes of each input.

        Returns:
            The neutral numbers; None if the layer cannot run with such padding.
        """
        return NO_NEUTRALS if self.IS_ELEMENTWISE else None

    def most_rows(self, *types: Any, **named: Any) -> int | None:
        """The largest length of the first axis of output 0, which only a run knows, for inputs of some fixed types.

        A program then computes the layer with that room, by ``lower_bounded``; None if no program is to do that.
        """
        return None

    def lower_bounded(self, rows: int, *inputs: Any, **named: Any) -> tuple[Sequence[Any], Any]:
        """The outputs as JAX arrays with room for the most rows, garbage behind the results, and their number."""
        raise AssertionError("a kind with most_rows defines it")

    def partial(self, *inputs: MaskedArray | None) -> MaskedArray | None:
        """Return the output for inputs of which some elements are unknown; None if nothing is known of it.

        These elements are masked, and those of the output that depend on them.
        """
        if self.IS_ELEMENTWISE:
            return elementwise(self.evaluate, inputs)
        return moved(self.evaluate, inputs, self.MOVED_INPUTS) if self.MOVED_INPUTS else None

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers; ``evaluate`` and ``lower`` then take the iterations, ``trips``."""
        return False

    @property
    def is_foldable(self) -> bool:
        """Whether it may be computed while a network is built, if all of its inputs are known."""
        return not self.draws


class Elementary(Operation):
    """An operation that is one array formula, written once for numpy and JAX."""

    NUMPY_IS_FAST = True

    @abstractmethod
    def formula(self, xp: Any, *inputs: Any, **named: Any) -> Any:
        """Return the output, with the functions of the array module ``xp``."""

    def evaluate(self, *inputs: Array) -> Array:
        """Compute the formula in numpy; half-precision inputs are computed in float32, and rounded once."""
        half = next((array.dtype for array in inputs if array.dtype in HALVES), None)
        wide = [array.astype(np.float32) if array.dtype in HALVES else array for array in inputs]
        result = np.asarray(self.formula(np, *wide))
        return result.astype(half) if half is not None and result.dtype == np.float32 else result

    def lower(self, *inputs: Any, **named: Any) -> Any:
        """Compute the formula in JAX."""
        return self.formula(jnp, *inputs, **named)


# ---------------------------------------------------------------------------- checks and declaration


def check_tensor(value: Any, name: str) -> ITensor:
    """Return ``value``, which must be a tensor.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, ITensor):
        hint = ": give its output, layer.get_output(0)" if isinstance(value, ILayer) else tensor_hint(value)
        raise TypeError(f"{name} must be an ITensor, not {type(value).__name__}{hint}")
    return value


def check_same_network(reader: ILayer, tensor: ITensor) -> None:
    """Check that a tensor is of the network of the layer that is to read it.

    Raises:
        NetworkError: it is of another network.
    """
    if tensor.types is not reader.types:
        what = f"tensor {tensor.name!r} belongs to another network than {reader.name!r}, which would read it"
        fix = "make the tensor in this network, or mark it as an input"
        raise NetworkError(reader.finding("NL103", what, reason("NL103"), fix))


L = TypeVar("L", bound=type[ILayer])


@dataclass_transform(eq_default=False, kw_only_default=True)
def layer(kind: LayerType, label: str) -> Callable[[L], L]:
    """Declare a class to be a kind of layer, with its annotated fields as attributes; see ``ILayer.LABEL``."""

    def declare(cls: L) -> L:
        if "type" in get_annotations(cls) and "type" not in vars(cls):
            cls.type = field()  # without a default: that of ILayer is none
        cls = dataclass(eq=False, repr=False, kw_only=True)(cls)
        names = [field.name for field in fields(cls)]  # pyright: ignore[reportArgumentType]
        hints = get_type_hints(cls, include_extras=True)
        cls.LAYER_TYPE, cls.LABEL = kind, label
        cls.ATTRIBUTES = {name: converter(hints[name]) for name in names}
        return cls

    return declare
