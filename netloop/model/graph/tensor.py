"""A tensor of a network."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from netloop.model.graph.attributes import check_member
from netloop.model.graph.python_operators import PythonOperators
from netloop.values.checked_attributes import CheckedAttributes, text
from netloop.values.diagnostics import Finding, NetworkError
from netloop.values.dims import Dims
from netloop.values.enums import DataType, TensorFormat, TensorLocation
from netloop.values.types import LARGEST_TENSOR, UNKNOWN, TensorType, data_type, numpy_type, type_in_form
from netloop.values.unpicklable import OF_A_NETWORK, Unpicklable

if TYPE_CHECKING:
    from netloop.model.graph.infer import TypeTable
    from netloop.model.graph.layer import ILayer

ALL_FORMATS = sum(1 << int(format_) for format_ in TensorFormat)
LONGEST_NAME = 4095


def declared_type(
    dtype: DataType, shape: Sequence[int] | None, sequence: bool = False, optional: bool = False
) -> TensorType:
    """Return the type of an input: a tensor or a sequence of tensors, either of which may be optional.

    The shape has -1 where a length is not known, and is None for a sequence of tensors of any shape.

    Raises:
        ValueError: no tensor can have this shape.
    """
    dims = None if sequence and shape is None else tuple(Dims(shape))  # pyright: ignore[reportArgumentType]
    declared = type_in_form(numpy_type(dtype), dims, sequence, optional)
    if min(dims or (), default=0) < UNKNOWN:
        raise ValueError(f"the shape {dims} has a length below -1, which stands for an unknown length")
    if not declared.is_possible:
        raise ValueError(f"{declared} has more than {LARGEST_TENSOR} bytes")
    return declared


def _check_name(label: str, name: Any) -> str:
    text("the name of a tensor", name)
    if len(name) > LONGEST_NAME or (not name.isascii() and len(name.encode()) > LONGEST_NAME):
        raise ValueError(f"the name of a tensor has at most {LONGEST_NAME} bytes")
    return name


class ITensor(PythonOperators, Unpicklable, CheckedAttributes):
    """A tensor of a network: an input, or an output of a layer. Inside a loop it has a value for each iteration.

    Attributes:
        name: the name; unique among the inputs and outputs of a network, and of at most 4095 bytes.
        producer: the layer whose output it is; None for an input of the network.
        position: its index among the outputs of its producer, or the inputs of the network.
        declared: the type of an input, as given; None for the output of a layer.
        types: the types of the tensors of its network.
        dimension_names: the names of axes, by their index.
        is_network_output: whether it is an output of the network.
        is_converted: whether it is the output of a cast that setting ``dtype`` added.
        is_inner: whether it is the input of such a cast, whose output is the network output in its place.
        asked_dtype: the value that ``dtype`` was set to before it was an input or output; None if it was not.
        uses: the layers that read it, each with the index of its input, in the order in which they were wired.
    """

    UNPICKLABLE = OF_A_NETWORK
    UNLISTED = frozenset((
        *("as_converted", "asked_dtype", "declared", "dimension_names", "is_converted", "is_inner", "position"),
        *("producer", "type", "types", "uses"),
    ))  # fmt: skip

    name: str = ""
    location: TensorLocation = TensorLocation.DEVICE
    allowed_formats: int = ALL_FORMATS
    broadcast_across_batch: bool = False

    types: TypeTable
    producer: ILayer | None
    position: int
    declared: TensorType | None
    uses: dict[tuple[ILayer, int], None]
    dimension_names: dict[int, str]
    is_network_output: bool
    is_converted: bool
    is_inner: bool
    asked_dtype: DataType | None
    _range: tuple[float, float] | None

    CHECKS = {"name": _check_name}

    def __init__(
        self, name: str, types: TypeTable, producer: ILayer | None, position: int, declared: TensorType | None = None
    ) -> None:
        vars(self).update(name=name, types=types, producer=producer, position=position, declared=declared)
        vars(self).update(uses={}, dimension_names={}, asked_dtype=None, _range=None)
        vars(self).update(is_network_output=False, is_converted=False, is_inner=False)

    @property
    def type(self) -> TensorType:
        """Element type and shape.

        Raises:
            NetworkError: it has none; the finding gives the reason.
        """
        type_ = self.types.of(self)
        if isinstance(type_, Finding):
            raise NetworkError(type_)
        return type_

    @property
    def shape(self) -> Dims:
        """The dims, -1 where unknown; settable for an input of the network.

        A sequence or optional value has ``(-1,)``.

        Raises:
            NetworkError: it has none; the finding gives the reason.
        """
        return Dims(self.type.shape)

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        if self.declared is None:
            raise AttributeError(f"the shape of {self.name!r} follows from its layer; only that of an input can be set")
        if not self.declared.is_tensor:
            raise AttributeError(f"{self.name!r} is {self.declared}, which has no shape to set")
        vars(self)["declared"] = declared_type(data_type(self.declared.dtype), shape)
        self.types.forget([self])

    @property
    def dtype(self) -> DataType:
        """The element type.

        It can be set for an input or output of the network, which from then on has this type in calls: a cast is put
        between it and the layers, which compute as before. For any other tensor the value takes effect when the tensor
        is marked as an output.

        Raises:
            NetworkError: it has none; the finding gives the reason.
        """
        return data_type(self.type.dtype)

    @dtype.setter
    def dtype(self, dtype: DataType) -> None:
        self.types.owner.convert(self, check_member("the dtype of a tensor", dtype, DataType))

    @property
    def as_converted(self) -> ITensor:
        """The output of the cast that ``dtype`` added for this tensor; the tensor itself where there is none."""
        if not self.is_inner:
            return self
        tensors = (tensor for reader, _ in self.uses for tensor in reader.outputs)
        return next((tensor for tensor in tensors if tensor.is_converted), self)

    @property
    def is_network_input(self) -> bool:
        """Whether it is an input of the network."""
        return self.producer is None

    @property
    def is_shape_tensor(self) -> bool:
        """Whether the shape of some tensor depends on its value, as the network is wired now."""
        return self.types.owner.is_shape_tensor(self)

    @property
    def is_execution_tensor(self) -> bool:
        """Whether it is computed while the network runs: true except for an input that only shapes need."""
        return not (self.is_network_input and self.is_shape_tensor)

    def set_dimension_name(self, index: int, name: str | None) -> None:
        """Name an axis of an input; None, which ``get_dimension_name`` returns for one without a name, removes it."""
        if name is None:
            self.dimension_names.pop(operator.index(index), None)
        else:
            self.dimension_names[operator.index(index)] = text("name", name)

    def get_dimension_name(self, index: int) -> str | None:
        """The name of an axis, or None."""
        return self.dimension_names.get(index)

    # ------------------------------------------------------------------ of TensorRT 10, without effect

    @property
    def dynamic_range(self) -> tuple[float, float] | None:
        """The range that ``set_dynamic_range`` recorded, without effect; None if there is none."""
        return self._range

    @dynamic_range.setter
    def dynamic_range(self, limits: Sequence[float]) -> None:
        if not isinstance(limits, Sequence) or len(limits) != 2:
            raise TypeError(f"a dynamic range must be two numbers, not {limits!r}")
        self.set_dynamic_range(*limits)

    def set_dynamic_range(self, min: float, max: float) -> bool:
        """Record the range of the elements; return False if ``min`` and ``max`` are not finite and in order."""
        for limit in (min, max):
            if not isinstance(limit, float | int):
                raise TypeError(f"a dynamic range must be two numbers, and {limit!r} is not one")
        if not (math.isfinite(min) and math.isfinite(max) and min <= max):
            return False
        self._range = float(min), float(max)
        self.types.owner.warn_once("dynamic_range", "dynamic ranges have no effect: only add_quantize quantizes")
        return True

    def reset_dynamic_range(self) -> None:
        """Remove the recorded range."""
        self._range = None

    def __repr__(self) -> str:
        type_ = self.types.of(self)
        shown = "type unknown" if isinstance(type_, Finding) else str(type_)
        return f"<ITensor {self.name!r} {shown}>"
