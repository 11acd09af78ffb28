"""A tensor of a network."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from netloop.checked_attributes import Settings, text
from netloop.diagnostics import Finding, NetworkError
from netloop.dims import Dims
from netloop.enums import DataType, TensorFormat, TensorLocation
from netloop.graph.tensor_compat import TensorHints, check_data_type
from netloop.types import LARGEST_TENSOR, UNKNOWN, TensorType, data_type, numpy_type, type_in_form

if TYPE_CHECKING:
    from netloop.graph.infer import TypeTable
    from netloop.graph.layer import ILayer

ALL_FORMATS = sum(1 << int(each) for each in TensorFormat)
LONGEST_NAME = 4095


def declared_type(
    dtype: DataType, shape: Sequence[int] | None, sequence: bool = False, optional: bool = False
) -> TensorType:
    """The type of an input: of a tensor, or of a sequence of tensors of a shape, that may be absent if it is optional.

    Args:
        dtype: the element type.
        shape: the shape, -1 where a length is not known; None for a sequence of tensors of any shape.
        sequence: whether it is a sequence.
        optional: whether it may be absent.

    Raises:
        ValueError: no tensor has such a shape.
    """
    lengths = None if sequence and shape is None else tuple(Dims(shape))  # pyright: ignore[reportArgumentType]
    declared = type_in_form(numpy_type(dtype), lengths, sequence, optional)
    if min(lengths or (), default=0) < UNKNOWN:
        raise ValueError(f"the shape {lengths} has a length below -1, which stands for one that is not known yet")
    if not declared.is_possible:
        raise ValueError(f"{declared} has more than {LARGEST_TENSOR} bytes")
    return declared


def _check_name(label: str, name: Any) -> None:
    text("the name of a tensor", name)
    if len(name) > LONGEST_NAME or (not name.isascii() and len(name.encode()) > LONGEST_NAME):
        raise ValueError(f"the name of a tensor has at most {LONGEST_NAME} bytes")


class ITensor(Settings, TensorHints):
    """A tensor of a network: an input, or an output of a layer. Inside a loop, a sequence of them.

    Attributes:
        name: the name; unique among the inputs and outputs of a network, and of at most 4095 bytes.
        producer: the layer whose output it is; None for an input of the network.
        position: its number among the outputs of its producer, or the inputs of the network.
        declared: the type of an input, as given; None for the output of a layer.
        types: the types of the tensors of its network.
        dimension_names: the names of some axes.
        is_network_output: whether it is an output of the network.
        is_converted: whether a cast, which setting ``dtype`` put there, makes it.
        is_inner: whether such a cast reads it, and gives the output of the network that it was.
        asked_dtype: what ``dtype`` was set to while it was no input or output; None if it was not.
        uses: the layers that read it, each with the number of its input, in the order in which they came to it.
    """

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

    CHECKS = {"name": _check_name}

    def __init__(
        self, name: str, types: TypeTable, producer: ILayer | None, position: int, declared: TensorType | None = None
    ) -> None:
        own = vars(self)
        own["name"] = name
        own["types"] = types
        own["producer"] = producer
        own["position"] = position
        own["declared"] = declared
        own["uses"] = {}
        own["dimension_names"] = {}
        own["is_network_output"] = False
        own["is_converted"] = False
        own["is_inner"] = False
        own["asked_dtype"] = None

    @property
    def type(self) -> TensorType:
        """Element type and shape.

        Raises:
            NetworkError: it has none, for the reason that the finding gives.
        """
        found = self.types.of(self)
        if isinstance(found, Finding):
            raise NetworkError(found)
        return found

    @property
    def shape(self) -> Dims:
        """The lengths of the axes, -1 where unknown; it can be set for an input of the network.

        What is no single tensor has ``(-1,)``.

        Raises:
            NetworkError: it has none, for the reason that the finding gives.
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

        It can be set for an input, which from then on is given in this type, and for an output of the network, which
        is then told in it: a cast stands between it and the layers that there are, and these compute as before. For
        any other tensor it waits until the tensor is marked as an output.

        Raises:
            NetworkError: it has none, for the reason that the finding gives.
        """
        return data_type(self.type.dtype)

    @dtype.setter
    def dtype(self, dtype: DataType) -> None:
        self.types.owner.convert(self, check_data_type("the dtype of a tensor", dtype))

    @property
    def as_converted(self) -> ITensor:
        """The output of the network that this tensor is converted to; itself where there is none."""
        if not self.is_inner:
            return self
        made = (each for reader, _ in self.uses for each in reader.outputs)
        return next((each for each in made if each.is_converted), self)

    @property
    def is_network_input(self) -> bool:
        """Whether it is an input of the network."""
        return self.producer is None

    @property
    def is_shape_tensor(self) -> bool:
        """Whether a shape somewhere depends on its value, so far as the network is wired now."""
        return self in self.types.owner.shape_tensors()

    @property
    def is_execution_tensor(self) -> bool:
        """Whether it is computed while the network runs; true of every tensor but an input needed for shapes alone."""
        return not (self.is_network_input and self.is_shape_tensor)

    def set_dimension_name(self, index: int, name: str) -> None:
        """Name an axis of an input."""
        self.dimension_names[operator.index(index)] = name

    def get_dimension_name(self, index: int) -> str | None:
        """The name of an axis, or None."""
        return self.dimension_names.get(index)

    def __repr__(self) -> str:
        found = self.types.of(self)
        shown = "type unknown" if isinstance(found, Finding) else str(found)
        return f"<ITensor {self.name!r} {shown}>"
