"""Sequences of tensors and optional values: netloop extensions, computed on the host."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from netloop.model.graph import ITensor, NetworkBase, Operation, check_tensor, check_tensors, layer
from netloop.values.diagnostics import require
from netloop.values.dims import DimsLike
from netloop.values.enums import DataType, LayerType
from netloop.values.string_arrays import type_name
from netloop.values.types import (
    ABSENT,
    UNKNOWN,
    Absent,
    Array,
    OptionalType,
    SequenceType,
    Shape,
    Tensors,
    TensorType,
    normal_axis,
    numpy_type,
    slice_at,
)


class HostOperation(Operation):
    """Base class of operations on sequences or optional values, which cannot be compiled."""

    TENSORS_ONLY = False
    TAKES_STRINGS = True
    BEYOND: ClassVar[str] = "is a netloop extension for sequences"

    @property
    def on_host(self) -> bool:
        return True

    @property
    def is_foldable(self) -> bool:
        return False

    def beyond_tensorrt(self, *inputs: Any) -> str:
        return self.BEYOND

    def lower(self, *inputs: Any) -> Any:
        raise AssertionError(f"{self.described} cannot be compiled")


def _sequence(type_: TensorType) -> SequenceType:
    require(
        isinstance(type_, SequenceType),
        f"input 0 is {type_}, but must be a sequence",
        why="the layer works on a list of tensors",
        fix="make one with add_sequence",
    )
    assert isinstance(type_, SequenceType)
    return type_


def _declared(shape: DimsLike | None) -> Shape | None:
    """The shape of a tensor that is not there."""
    lengths_fit = min(shape or (), default=0) >= UNKNOWN
    require(
        lengths_fit,
        f"the shape {shape} has a dim below -1; -1 stands for an unknown dim",
        why="-1 stands for an unknown length, and no other negative number has a meaning",
    )
    return None if shape is None else tuple(shape)


def _check_position(type_: TensorType | None) -> None:
    fits = type_ is None or (type_.is_tensor and type_.is_index and type_.rank <= 1 and type_.volume in (1, UNKNOWN))
    require(
        fits, f"the position is {type_}, but must be an int32[] or int64[]", why="it is one position in the sequence"
    )


def _position(index: Array, least: int, most: int, length: int) -> int:
    """The non-negative position in a sequence."""
    require(
        index.size == 1,
        f"the position has {index.size} elements, but must be one number",
        why="it is one position in the sequence",
    )
    position = int(index.reshape(()))
    require(
        least <= position <= most,
        f"position {position} is out of range for a sequence of {length} tensors",
        f"positions go from {least} to {most}" if least <= most else "an empty sequence has no positions",
    )
    return position + length if position < 0 else position


@layer(LayerType.SEQUENCE, "Sequence")
class ISequenceLayer(HostOperation):
    """Build a sequence of the inputs; without inputs, an empty one.

    The inputs have the same element type and any shapes. Source: ONNX's SequenceConstruct and SequenceEmpty.

    Attributes:
        dtype: the element type, required for an empty sequence; None for that of the inputs.
        shape: the dims of the tensors of an empty sequence, -1 where unknown: a loop that carries it may read a tensor
            before it appends one. None if nothing does, or they are not known.
    """

    REQUIRED_INPUTS = 0

    dtype: DataType | None = None
    shape: DimsLike | None = None

    def infer(self, *inputs: TensorType) -> SequenceType:
        typed = bool(inputs) or self.dtype is not None
        require(
            typed,
            "an empty sequence has no element type",
            fix="give add_sequence a dtype",
            why="an element type follows from the tensors, and there are none",
        )
        dtype = inputs[0].dtype if self.dtype is None else numpy_type(self.dtype)
        type_ = SequenceType(dtype, element=_declared(self.shape), is_empty=True)
        for tensor_type in inputs:
            fits = tensor_type.is_tensor and tensor_type.dtype == type_.dtype
            require(
                fits,
                f"the sequence is of {type_name(type_.dtype)}, and an input is {tensor_type}",
                fix="convert it with add_cast",
            )
            type_ = type_.joined(SequenceType(tensor_type.dtype, element=tensor_type.shape))
        return type_

    def evaluate(self, *inputs: Array) -> Tensors:
        return Tensors(inputs)


@layer(LayerType.SEQUENCE_INSERT, "SequenceInsert")
class ISequenceInsertLayer(HostOperation):
    """Insert a tensor (input 1) into a sequence (input 0) before a position (input 2), by default at the end.

    The tensor has the element type of the sequence. The position is an int32 or int64 number from -n to n, for n
    tensors. Source: ONNX's SequenceInsert.
    """

    REQUIRED_INPUTS = 2
    MAX_INPUTS = 3

    def infer(self, x: TensorType, tensor: TensorType, position: TensorType | None = None) -> SequenceType:
        sequence = _sequence(x)
        fits = tensor.is_tensor and tensor.dtype == sequence.dtype
        require(fits, f"a {sequence} takes no {tensor}", fix="convert the tensor with add_cast")
        _check_position(position)
        return sequence.joined(SequenceType(tensor.dtype, element=tensor.shape))

    def evaluate(self, x: Tensors, tensor: Array, position: Array | None = None) -> Tensors:
        at = len(x) if position is None else _position(position, -len(x), len(x), len(x))
        return Tensors((*x[:at], tensor, *x[at:]))


@layer(LayerType.SEQUENCE_ERASE, "SequenceErase")
class ISequenceEraseLayer(HostOperation):
    """Remove the tensor at a position (input 1) from a sequence (input 0), by default the last.

    The position is an int32 or int64 number from -n to n-1, for n tensors. Source: ONNX's SequenceErase.
    """

    MAX_INPUTS = 2

    def infer(self, x: TensorType, position: TensorType | None = None) -> SequenceType:
        _check_position(position)
        return _sequence(x)

    def evaluate(self, x: Tensors, position: Array | None = None) -> Tensors:
        at = _position(np.asarray(-1) if position is None else position, -len(x), len(x) - 1, len(x))
        return Tensors(x[:at] + x[at + 1 :])


@layer(LayerType.SEQUENCE_AT, "SequenceAt")
class ISequenceAtLayer(HostOperation):
    """Read the tensor at a position (input 1) of a sequence (input 0).

    The position is an int32 or int64 number from -n to n-1, for n tensors. Source: ONNX's SequenceAt.
    """

    REQUIRED_INPUTS = 2

    def infer(self, x: TensorType, position: TensorType) -> TensorType:
        sequence = _sequence(x)
        _check_position(position)
        return _element(sequence)

    def evaluate(self, x: Tensors, position: Array) -> Array:
        return x[_position(position, -len(x), len(x) - 1, len(x))]


def _element(sequence: SequenceType) -> TensorType:
    element = sequence.element
    require(
        element is not None,
        f"the rank of the tensors of a {sequence} is unknown",
        "the rank of each tensor must be known before the network runs",
        "give all tensors of the sequence the same rank, or the shape of these to add_sequence_input or add_sequence",
    )
    assert element is not None
    return TensorType(sequence.dtype, element)


@layer(LayerType.SEQUENCE_LENGTH, "SequenceLength")
class ISequenceLengthLayer(HostOperation):
    """The number of tensors of a sequence, int64, 0-D. Source: ONNX's SequenceLength."""

    def infer(self, x: TensorType) -> TensorType:
        _sequence(x)
        return TensorType(np.dtype(np.int64))

    def evaluate(self, x: Tensors) -> Array:
        return np.asarray(len(x), np.int64)


@layer(LayerType.SEQUENCE_CONCATENATION, "SequenceConcatenation")
class ISequenceConcatenationLayer(HostOperation):
    """Concatenate the tensors of a sequence along an axis, or stack them along a new one.

    The sequence is not empty, and the tensors have equal dims along all other axes. Source: ONNX's ConcatFromSequence.

    Attributes:
        axis: the axis; a negative one counts from the end of the result.
        new_axis: whether the axis is new.
    """

    axis: int
    new_axis: bool = False

    def infer(self, x: TensorType) -> TensorType:
        element = _element(_sequence(x))
        axis = normal_axis(self.axis, element.rank + self.new_axis)
        return element.with_shape((*element.shape[:axis], UNKNOWN, *element.shape[axis + (not self.new_axis) :]))

    def evaluate(self, x: Tensors) -> Array:
        require_tensors(len(x))
        axis = normal_axis(self.axis, x[0].ndim + self.new_axis)
        rests = {array.shape if self.new_axis else array.shape[:axis] + array.shape[axis + 1 :] for array in x}
        shapes = " and ".join(sorted({str(array.shape) for array in x}))
        require(
            len(rests) == 1,
            f"the tensors have the shapes {shapes}, which do not fit along axis {self.axis}",
            why="tensors are joined along one axis, and agree in all others",
        )
        return np.stack(x, axis) if self.new_axis else np.concatenate(x, axis)


def require_tensors(count: int) -> None:
    """Refuse to join no tensors.

    Raises:
        LayerError: there are none.
    """
    require(count > 0, "the sequence is empty, so the result has no shape", why="shapes are those of the tensors")


@layer(LayerType.SEQUENCE_SPLIT, "SequenceSplit")
class ISequenceSplitLayer(HostOperation):
    """Split a tensor (input 0) along an axis into a sequence.

    Input 1 (int32 or int64) lists the lengths of the parts, or is the length of all parts except the last, which may be
    shorter. Without it each part has length 1. Source: ONNX's SplitToSequence.

    Attributes:
        axis: the axis; a negative one counts from the end.
        keep_axis: whether parts keep the axis; if not, they are slices of length 1 without it.
    """

    MAX_INPUTS = 2

    axis: int = 0
    keep_axis: bool = True

    def infer(self, x: TensorType, split: TensorType | None = None) -> SequenceType:
        require(x.is_tensor, f"input 0 is {x}, but must be a tensor", why="only tensors have axes to split along")
        axis = normal_axis(self.axis, x.rank)
        fits = split is None or (split.is_tensor and split.is_index and split.rank <= 1)
        require(
            fits,
            f"the lengths are {split}, but must be int32 or int64 with one axis or none",
            why="it is the length of all parts, or of each part",
        )
        require(
            self.keep_axis or split is None,
            "parts of given lengths keep the axis",
            fix="set keep_axis",
            why="only parts of length 1 can lose it",
        )
        kept = ((UNKNOWN if split is not None else 1),) if self.keep_axis else ()
        return SequenceType(x.dtype, element=(*x.shape[:axis], *kept, *x.shape[axis + 1 :]))

    def evaluate(self, x: Array, split: Array | None = None) -> Tensors:
        axis = normal_axis(self.axis, x.ndim)
        if not self.keep_axis:
            return Tensors(slice_at(x, position, axis) for position in range(x.shape[axis]))
        ends = np.cumsum(part_lengths(x.shape[axis], np.asarray(1) if split is None else split))
        return Tensors(np.split(x, ends[:-1], axis) if len(ends) else ())


def part_lengths(length: int, split: Array) -> list[int]:
    """The lengths of the parts of an axis, from a list or one length for all parts except the last.

    Raises:
        LayerError: the lengths do not fit the axis.
    """
    if split.ndim == 0:
        size = int(split)
        require(
            size > 0, f"the parts have the length {size}, but must have at least 1", why="the axis is cut into parts"
        )
        return [min(size, length - start) for start in range(0, length, size)]
    sizes = [int(value) for value in split]
    fits = min(sizes, default=0) >= 0 and sum(sizes) == length
    require(
        fits,
        f"the lengths {sizes} do not make up the {length} elements of the axis",
        why="the axis is cut into parts without a rest",
    )
    return sizes


# ---------------------------------------------------------------------------- optional values


@layer(LayerType.OPTIONAL, "Optional")
class IOptionalLayer(HostOperation):
    """Wrap the input as an optional value; without an input, an absent one. Source: ONNX's Optional.

    Attributes:
        dtype: the element type of an absent value.
        shape: the shape of an absent tensor, -1 where unknown; None for a sequence of tensors.
    """

    REQUIRED_INPUTS = 0
    MAX_INPUTS = 1
    BEYOND = "is a netloop extension for optional values"

    dtype: DataType | None = None
    shape: DimsLike | None = None

    def infer(self, x: TensorType | None = None) -> OptionalType:
        if x is not None:
            require(x.present is x, f"the input is {x} already", why="an optional value holds a tensor or a sequence")
            return OptionalType.around(x)
        require(
            self.dtype is not None,
            "an absent value has no element type",
            fix="give add_optional a dtype",
            why="an element type follows from the value, and there is none",
        )
        assert self.dtype is not None
        dtype, shape = numpy_type(self.dtype), _declared(self.shape)
        return OptionalType.around(SequenceType(dtype, is_empty=True) if shape is None else TensorType(dtype, shape))

    def evaluate(self, x: Any = ABSENT) -> Any:
        return x


@layer(LayerType.OPTIONAL_HAS, "OptionalHas")
class IOptionalHasLayer(HostOperation):
    """Whether an optional value is present; bool, 0-D. Source: ONNX's OptionalHasElement."""

    BEYOND = IOptionalLayer.BEYOND

    def infer(self, x: TensorType) -> TensorType:
        return TensorType(np.dtype(np.bool_))

    def evaluate(self, x: Any) -> Array:
        return np.asarray(not isinstance(x, Absent))


@layer(LayerType.OPTIONAL_GET, "OptionalGet")
class IOptionalGetLayer(HostOperation):
    """Unwrap an optional value, which must be present. Source: ONNX's OptionalGetElement."""

    BEYOND = IOptionalLayer.BEYOND

    def infer(self, x: TensorType) -> TensorType:
        return x.present.without_value()

    def evaluate(self, x: Any) -> Any:
        require(
            not isinstance(x, Absent),
            "the value is absent",
            fix="test it with add_optional_has, in a conditional",
            why="an absent value has no tensor to take out",
        )
        return x


class SequenceMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "sequences and optional values"

    def add_sequence(
        self, inputs: Sequence[ITensor], dtype: DataType | None = None, shape: Sequence[int] | None = None
    ) -> ISequenceLayer:
        """Add a sequence of tensors of one element type; ``dtype`` is required if it is empty. A netloop extension.

        The inputs have the same element type and any shapes. Source: ONNX's SequenceConstruct and SequenceEmpty.

        Args:
            inputs: the inputs, in order.
            dtype: the element type, required for an empty sequence; None for that of the inputs.
            shape: the dims of the tensors of an empty sequence, -1 where unknown: a loop that carries it may read a
                tensor before it appends one. None if nothing does, or they are not known.
        """
        return self.add(ISequenceLayer(dtype=dtype, shape=shape), check_tensors(inputs))

    def add_sequence_insert(
        self, input: ITensor, tensor: ITensor, position: ITensor | None = None
    ) -> ISequenceInsertLayer:
        """Add the insertion of a tensor into a sequence, before a position or at the end; a netloop extension.

        The tensor has the element type of the sequence. The position is an int32 or int64 number from -n to n, for n
        tensors. Source: ONNX's SequenceInsert.

        Args:
            input: input 0.
            tensor: input 1.
            position: input 2, or None.
        """
        tensors = [check_tensor(input, "input"), check_tensor(tensor, "tensor"), *_given(position)]
        return self.add(ISequenceInsertLayer(), tensors)

    def add_sequence_erase(self, input: ITensor, position: ITensor | None = None) -> ISequenceEraseLayer:
        """Add the removal of the tensor at a position, or of the last; a netloop extension.

        The position is an int32 or int64 number from -n to n-1, for n tensors. Source: ONNX's SequenceErase.

        Args:
            input: input 0.
            position: input 1, or None.
        """
        return self.add(ISequenceEraseLayer(), [check_tensor(input, "input"), *_given(position)])

    def add_sequence_at(self, input: ITensor, position: ITensor) -> ISequenceAtLayer:
        """Add the selection of the tensor at a position of a sequence; a netloop extension.

        The position is an int32 or int64 number from -n to n-1, for n tensors. Source: ONNX's SequenceAt.

        Args:
            input: input 0.
            position: input 1.
        """
        return self.add(ISequenceAtLayer(), input=input, position=position)

    def add_sequence_length(self, input: ITensor) -> ISequenceLengthLayer:
        """Add the number of tensors of a sequence; a netloop extension.

        Args:
            input: the input.
        """
        return self.add(ISequenceLengthLayer(), input=input)

    def add_sequence_concatenation(
        self, input: ITensor, axis: int, new_axis: bool = False
    ) -> ISequenceConcatenationLayer:
        """Add the concatenation of the tensors of a sequence along an axis; a netloop extension.

        The sequence is not empty, and the tensors have equal dims along all other axes. Source: ONNX's
        ConcatFromSequence.

        Args:
            input: the input.
            axis: the axis; a negative one counts from the end of the result.
            new_axis: whether the axis is new.
        """
        return self.add(ISequenceConcatenationLayer(axis=axis, new_axis=new_axis), input=input)

    def add_sequence_split(
        self, input: ITensor, split: ITensor | None = None, axis: int = 0, keep_axis: bool = True
    ) -> ISequenceSplitLayer:
        """Add the split of a tensor along an axis into a sequence; a netloop extension.

        Input 1 (int32 or int64) lists the lengths of the parts, or is the length of all parts except the last, which
        may be shorter. Without it each part has length 1. Source: ONNX's SplitToSequence.

        Args:
            input: input 0.
            split: input 1, or None.
            axis: the axis; a negative one counts from the end.
            keep_axis: whether parts keep the axis; if not, they are slices of length 1 without it.
        """
        tensors = [check_tensor(input, "input"), *_given(split, "split")]
        return self.add(ISequenceSplitLayer(axis=axis, keep_axis=keep_axis), tensors)

    def add_optional(
        self, input: ITensor | None = None, dtype: DataType | None = None, shape: Sequence[int] | None = None
    ) -> IOptionalLayer:
        """Add an optional value of a tensor or sequence; without an input, an absent one. A netloop extension.

        Args:
            input: the input, or None.
            dtype: the element type of an absent value.
            shape: the shape of an absent tensor, -1 where unknown; None for a sequence of tensors.
        """
        return self.add(IOptionalLayer(dtype=dtype, shape=shape), _given(input, "input"))

    def add_optional_has(self, input: ITensor) -> IOptionalHasLayer:
        """Add the test whether an optional value is present; a netloop extension.

        Args:
            input: the input.
        """
        return self.add(IOptionalHasLayer(), input=input)

    def add_optional_get(self, input: ITensor) -> IOptionalGetLayer:
        """Add the unwrapping of an optional value; a netloop extension.

        Args:
            input: the input.
        """
        return self.add(IOptionalGetLayer(), input=input)


def _given(tensor: ITensor | None, name: str = "position") -> list[ITensor]:
    return [] if tensor is None else [check_tensor(tensor, name)]
