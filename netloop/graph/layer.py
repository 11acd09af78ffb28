"""Layers: what all kinds have in common, and what a kind must say."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from types import UnionType
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

import jax.numpy as jnp
import numpy as np
from typing_extensions import dataclass_transform

from netloop.checked_attributes import text
from netloop.diagnostics import Finding, LayerError, NetworkError, Severity, SourceLocation, did_you_mean, reason
from netloop.dims import DimsLike, PermutationLike, check_dims, check_order, check_word, weights_array
from netloop.enums import LayerType
from netloop.graph.call_site import call_site
from netloop.graph.infer import TypeTable
from netloop.graph.layer_compat import LayerHints
from netloop.graph.tensor import ITensor
from netloop.types import HALVES, Array, TensorType

Types = TensorType | tuple[TensorType, ...]
Arrays = Array | tuple[Array, ...]


class ILayer(LayerHints, ABC):
    """A layer of a network.

    The attributes of a kind are the fields of its class: each is checked when it is set, and setting one makes the
    network forget the types that depend on it. The wiring is ``inputs`` and ``outputs``.

    Attributes:
        name: its name, not necessarily unique.
        metadata: any text.
        num_ranks: the number of ranks that it runs on.
        inputs: the tensors that it reads; None for one that is missing or left out.
        outputs: the tensors that it makes.
        index: its number in the network.
        source_location: the line of the user's source that added it.
    """

    LAYER_TYPE: ClassVar[LayerType]
    LABEL: ClassVar[str]
    """What default names call the kind."""
    NUM_OUTPUTS: ClassVar[int] = 1
    REQUIRED_INPUTS: ClassVar[int] = 1
    """How many of the first inputs must be there."""
    MAX_INPUTS: ClassVar[int] = 0
    """Up to how many inputs ``set_input`` may add; those there from the start are always allowed."""
    TENSORS_ONLY: ClassVar[bool] = True
    """Whether no input may be a sequence of tensors, or optional."""
    SHAPE_INPUTS: ClassVar[frozenset[int]] = frozenset()
    """The inputs whose value, and not only its type, decides the type of an output."""
    INPUT_OF: ClassVar[dict[str, int]] = {}
    """The attributes that are the fixed form of an input: setting one takes the input away."""
    READ_ONLY: ClassVar[frozenset[str]] = frozenset()
    """The attributes that are fixed once the layer is in a network."""
    ATTRIBUTES: ClassVar[dict[str, Callable[[str, Any], Any]]] = {}

    name: str = ""
    metadata: str = ""
    num_ranks: int = 1
    types: TypeTable
    inputs: list[ITensor | None]
    outputs: tuple[ITensor, ...] = ()
    index: int = -1
    source_location: SourceLocation | None = None

    def attach(self, types: TypeTable, index: int, inputs: Iterable[ITensor | None]) -> None:
        """Make the layer number ``index`` of a network, wired to ``inputs``."""
        own = vars(self)
        own["types"], own["index"], own["source_location"] = types, index, call_site()
        own["name"] = f"(Unnamed Layer* {index}) [{self.LABEL}]"
        self.wire(inputs)
        own["outputs"] = tuple(
            ITensor(f"{self.name}_output" + (f" ({position})" if position else ""), types, self, position)
            for position in range(self.NUM_OUTPUTS)
        )

    def wire(self, inputs: Iterable[ITensor | None]) -> None:
        """Read ``inputs``, and nothing else, from now on; a layer in use is wired with ``set_input``."""
        vars(self)["inputs"] = list(inputs)
        for tensor in filter(None, self.inputs):
            check_same_network(self, tensor)
        for position, tensor in enumerate(self.inputs):
            if tensor is not None:
                tensor.uses[self, position] = None

    def detach(self) -> None:
        """Be in no network any more; nothing reads the outputs."""
        for position, tensor in enumerate(self.inputs):
            if tensor is not None:
                tensor.uses.pop((self, position), None)
        self.types.forget(self.outputs)

    @property
    def num_inputs(self) -> int:
        """The number of inputs, those that are missing counted."""
        return len(self.inputs)

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self.outputs)

    def get_input(self, index: int) -> ITensor | None:
        """Input number ``index``; None if it is missing or there is none of this number."""
        return self.inputs[index] if 0 <= index < len(self.inputs) else None

    def get_output(self, index: int) -> ITensor | None:
        """Output number ``index``, converted if its ``dtype`` was set; None if there is none of this number."""
        return self.outputs[index].as_converted if 0 <= index < len(self.outputs) else None

    def set_input(self, index: int, tensor: ITensor) -> None:
        """Read ``tensor`` as input number ``index`` from now on; it may be made later than this layer.

        Raises:
            TypeError: it is no tensor.
            IndexError: the layer has no such input.
            ValueError: the tensor is of another network.
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
        """Give an output to another layer, and make a new one in its place, which the layers that read it now read."""
        tensor, own = self.outputs[index], vars(self)
        made = ITensor(f"{tensor.name} before conversion", self.types, self, index)
        vars(made)["is_inner"] = True
        own["outputs"] = (*self.outputs[:index], made, *self.outputs[index + 1 :])
        self.types.forget([tensor])
        for reader, position in list(tensor.uses):
            reader._rewire(position, made)
        return made

    def take_output(self, tensor: ITensor) -> None:
        """Be the layer that makes ``tensor``, which another has parted with, and converts it."""
        vars(self)["outputs"] = (tensor,)
        vars(tensor).update(producer=self, position=0, is_converted=True)

    def unshared(self) -> dict[str, Any]:
        """What a copy of the layer has for itself, by name, beside arrays."""
        return {}

    def unshared_arrays(self) -> dict[str, Any]:
        """The arrays that a copy of the layer has for itself, by name."""
        return {name: each.copy() for name, each in vars(self).items() if isinstance(each, np.ndarray)}

    def dependent_tensors(self) -> Sequence[ITensor]:
        """The tensors whose types change with this layer's inputs and attributes."""
        return self.outputs

    def type_inputs(self) -> Sequence[ITensor | None]:
        """The tensors on which the types of the outputs depend, in the order in which ``infer`` takes them."""
        return self.inputs

    def feedback(self) -> ITensor | None:
        """A tensor made from the output whose lengths the output must be able to have too; None if there is none."""
        return None

    @abstractmethod
    def infer(self, *inputs: Any, **named: Any) -> Types:
        """The types of the outputs, from the types of the inputs.

        Raises:
            LayerError: the inputs or attributes have no meaning.
        """

    @property
    def on_host(self) -> bool:
        """Whether it computes on the host alone, and no program can hold it."""
        return False

    @property
    def described(self) -> str:
        """Class and name, as messages put it."""
        return f"{type(self).__name__} {self.name!r}"

    @property
    def where(self) -> str:
        """SourceLocation, class and name, as messages put it."""
        return f"{self.source_location}, {self.described}" if self.source_location else type(self).__name__

    def finding(
        self, code: str, what: str, why: str = "", fix: str = "", severity: Severity = Severity.ERROR
    ) -> Finding:
        """A finding at this layer."""
        return Finding(code, what, self.where, why, fix, severity, self)

    def finding_of(self, error: LayerError, code: str = LayerError.CODE) -> Finding:
        """The finding that a complaint of this layer amounts to; ``code`` is for those that have none of their own."""
        why = error.why or f"the layer means: {self.meaning()}"
        found = self.finding(code if error.code == LayerError.CODE else error.code, error.what, why, error.fix)
        return replace(found, cause=error.__cause__)

    @classmethod
    def meaning(cls) -> str:
        """The first sentence of the documentation of the kind."""
        return (cls.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")

    def __setattr__(self, name: str, value: Any) -> None:
        convert = self.ATTRIBUTES.get(name) or BASE_ATTRIBUTES.get(name)
        if convert is None:
            view = getattr(type(self), name, None)
            if not (isinstance(view, property) and view.fset) and (name != "__class__" or not isinstance(self, value)):
                hint = did_you_mean(name, self.ATTRIBUTES)
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r} to set{hint and f'; {hint}'}")
            object.__setattr__(self, name, value)
            return
        if self.index >= 0 and name in self.READ_ONLY:
            raise AttributeError(f"{name!r} of {type(self).__name__} is fixed when the layer is added")
        vars(self)[name] = convert(f"{type(self).__name__}.{name}", value)
        if self.index >= 0 and name in self.ATTRIBUTES:
            self._attribute_changed(name)

    def _attribute_changed(self, name: str) -> None:
        index = self.INPUT_OF.get(name)
        if index is not None and index < len(self.inputs):
            self._rewire(index, None)
        self.types.forget(self.dependent_tensors())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.ATTRIBUTES)
        return f"<{self.described} {shown}>"


class Operation(ILayer):
    """A layer that computes. It says what from types and arrays alone, and never looks at its wiring."""

    @abstractmethod
    def evaluate(self, *inputs: Any, **named: Any) -> Arrays:
        """The reference: the outputs as numpy arrays, computed the obvious way.

        Raises:
            LayerError: the values have no meaning, such as an index out of range.
        """

    @abstractmethod
    def lower(self, *inputs: Any, **named: Any) -> Any:
        """The outputs as JAX arrays, computed the fast way; the ``SHAPE_INPUTS`` are numpy arrays."""

    def beyond_tensorrt(self, *inputs: Any, **named: Any) -> str:
        """What of it TensorRT refuses, though it is right here, from the types of the inputs; "" for nothing."""
        return ""

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers; ``evaluate`` and ``lower`` then take ``seed``, a tuple of integers."""
        return False

    @property
    def is_foldable(self) -> bool:
        """Whether it may be computed while a network is built, where all of its inputs are known."""
        return not self.draws


class Elementary(Operation):
    """An operation that is one array formula, the same for numpy and JAX, and written once."""

    @abstractmethod
    def formula(self, xp: Any, *inputs: Any, **named: Any) -> Any:
        """The output, with the functions of the array module ``xp``."""

    def evaluate(self, *inputs: Array) -> Array:
        """The formula in numpy; on half-precision inputs it is computed in float32 and rounded once."""
        half = next((each.dtype for each in inputs if each.dtype in HALVES), None)
        wide = [each.astype(np.float32) if each.dtype in HALVES else each for each in inputs]
        with np.errstate(all="ignore"):
            made = np.asarray(self.formula(np, *wide))
            return made.astype(half) if half is not None and made.dtype == np.float32 else made

    def lower(self, *inputs: Any) -> Any:
        """The formula in JAX."""
        return self.formula(jnp, *inputs)


# ---------------------------------------------------------------------------- attributes


def check_int(name: str, value: Any) -> int:
    """``value`` as an int of 64 bits.

    Raises:
        TypeError: it is no int.
        ValueError: it has more bits.
    """
    if isinstance(value, bool | np.bool_ | Enum):
        raise TypeError(f"{name} is an int, not {value!r}")
    try:
        return check_word(name, operator.index(value))
    except TypeError:
        raise TypeError(f"{name} is an int, not {value!r}") from None


def _convert_ranks(name: str, value: Any) -> int:
    ranks = check_int(name, value)
    if ranks < 1:
        raise ValueError(f"{name} is at least 1, not {ranks}")
    return ranks


def check_float(name: str, value: Any) -> float:
    """``value`` as a float.

    Raises:
        TypeError: it is no number.
        ValueError: a float does not hold it.
    """
    if isinstance(value, bool | np.bool_ | str | bytes | Enum | np.complexfloating) or (
        isinstance(value, np.ndarray) and value.ndim > 0
    ):
        raise TypeError(f"{name} is a number, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is beyond what a float holds") from None
    except TypeError:
        raise TypeError(f"{name} is a number, not {value!r}") from None


def _convert_bool(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise TypeError(f"{name} is a bool, not {value!r}")
    return bool(value)


def _convert_str(name: str, value: Any) -> str:
    text(name, value)
    return value


def _convert_weights(name: str, value: Any) -> Array:
    return weights_array(value, name)


_CONVERTERS: dict[Any, Callable[[str, Any], Any]] = {
    int: check_int,
    float: check_float,
    bool: _convert_bool,
    str: _convert_str,
    DimsLike: check_dims,
    PermutationLike: check_order,
    Array: _convert_weights,
}

BASE_ATTRIBUTES = {"name": _convert_str, "metadata": _convert_str, "num_ranks": _convert_ranks}


def _converter(hint: Any) -> Callable[[str, Any], Any]:
    """The function that checks a value for an attribute annotated ``hint`` and brings it into its own form."""
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (each for each in get_args(hint) if each is not type(None))
        convert = _converter(inner)
        return lambda name, value: None if value is None else convert(name, value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda name, value: check_member(name, value, hint)
    if hint in _CONVERTERS:
        return _CONVERTERS[hint]
    return lambda name, value: check_instance(name, value, hint)


def check_member(name: str, value: Any, enum: type[Enum]) -> Any:
    """``value``, if it is a member of ``enum``.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, enum):
        raise TypeError(f"{name} is a member of {enum.__name__}, not {value!r}")
    return value


def check_instance(name: str, value: Any, cls: type) -> Any:
    """``value``, if it is a ``cls``.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, cls):
        raise TypeError(f"{name} is {cls.__name__}, not {value!r}")
    return value


def check_tensor(value: Any, name: str) -> ITensor:
    """``value``, if it is a tensor.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, ITensor):
        hint = ": give its output, layer.get_output(0)" if isinstance(value, ILayer) else ""
        raise TypeError(f"{name} is an ITensor, not {type(value).__name__}{hint}")
    return value


def check_same_network(reader: ILayer, tensor: ITensor) -> None:
    """Complain about a tensor of another network.

    Raises:
        NetworkError: it is of another network than the layer that is to read it.
    """
    if tensor.types is not reader.types:
        what = f"tensor {tensor.name!r} is of another network than {reader.name!r}, which is to read it"
        fix = "make the tensor in this network, or mark it as an input"
        raise NetworkError(reader.finding("NL103", what, reason("NL103"), fix))


L = TypeVar("L", bound=type[ILayer])


@dataclass_transform(eq_default=False, kw_only_default=True)
def layer(kind: LayerType, label: str) -> Callable[[L], L]:
    """Make a class a kind of layer: its annotated fields become attributes.

    Args:
        kind: its number.
        label: what default names call it.
    """

    def declare(cls: L) -> L:
        cls = dataclass(eq=False, repr=False, kw_only=True)(cls)
        names = [each.name for each in fields(cls)]  # pyright: ignore[reportArgumentType]
        hints = get_type_hints(cls, include_extras=True)
        cls.LAYER_TYPE, cls.LABEL = kind, label
        cls.ATTRIBUTES = {name: _converter(hints[name]) for name in names}
        if "type" not in names:
            cls.type = kind  # pyright: ignore[reportAttributeAccessIssue]
        return cls

    return declare
