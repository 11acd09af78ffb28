"""Known constants, integer ranges and postponed broadcasts of imported values.

A broadcast adds no layer where the layers that read it broadcast by themselves. So the tensor of a value may be smaller
than the value: 0-D, or with length 1 on some axes. ``whole`` makes it a tensor of the shape of the value.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import JaxprEqn

from netloop.formats.from_jax.element_types import has_parts, tensor_array, tensor_shape
from netloop.formats.from_jax.lengths import Lengths
from netloop.formats.from_jax.ranges import Range, range_of_result
from netloop.model.formulas import FormulaBuilder, Length
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.pointwise import ICastLayer, IElementWiseLayer, ISelectLayer, IUnaryLayer
from netloop.model.layers.rearrange import IShuffleLayer, IUnsqueezeLayer
from netloop.model.layers.slice import ISliceLayer
from netloop.model.layers.sources import IConstantLayer, IFillLayer
from netloop.values.enums import FillOperation


class Facts:
    """Known facts about the tensors of a network that is being made.

    Attributes:
        make: the formula builder of the network.
        lengths: the symbolic lengths.
        iotas: the axis along which a tensor has the places of its elements.
        ranges: the ranges of integers, where they are known.
        complements, less_ones: for an erfc and an expm1, its operand.
        picked: for a slice of length 1 at a dynamic place, its source, the place, and the axis.
    """

    def __init__(self, make: FormulaBuilder) -> None:
        self.make = make
        self.lengths = Lengths(make)
        self.iotas: dict[ITensor, int] = {}
        self.ranges: dict[ITensor, Range] = {}
        self.complements: dict[ITensor, ITensor] = {}
        self.less_ones: dict[ITensor, ITensor] = {}
        self.picked: dict[ITensor, tuple[ITensor, ITensor, int]] = {}
        self._weights: set[ITensor] = set()

    # ------------------------------------------------------------------ constants

    def weight(self, name: str, value: Any, aval: Any) -> ITensor:
        """A constant with a name, to be refitted.

        Raises:
            TypeError: the value is only the shape and type of an array.
        """
        if isinstance(value, jax.ShapeDtypeStruct):
            raise TypeError(f"the weight {name!r} is a ShapeDtypeStruct, without numbers; pass an array")
        array = np.ascontiguousarray(tensor_array(value, aval))
        layer = self.make.network.add_constant(tensor_shape(aval), array)
        layer.name = name
        self._weights.add(layer.outputs[0])
        return layer.outputs[0]

    def constant(self, value: Any, aval: Any) -> ITensor:
        """A constant; 0-D if all elements are equal."""
        array = tensor_array(value, aval)
        if array.size > 1 and not has_parts(aval) and _is_uniform(array):
            array = array.reshape(-1)[0]
        return self.make.constant(np.asarray(array))

    def is_weight(self, tensor: ITensor) -> bool:
        """Whether a tensor is a weight."""
        return tensor in self._weights

    def array_of(self, tensor: ITensor) -> Any:
        """The array of a constant that is no weight; None for any other tensor."""
        layer = tensor.producer
        return layer.evaluate() if isinstance(layer, IConstantLayer) and tensor not in self._weights else None

    def scalar_of(self, tensor: ITensor) -> Any:
        """The element of a constant with one element that is no weight; None for any other tensor."""
        array = self.array_of(tensor) if tensor.type.volume == 1 else None
        return None if array is None else array.reshape(())

    def known_array(self, tensor: ITensor) -> Any:
        """The array of a tensor that a few layers make of constants alone; None for any other tensor."""
        values: dict[ITensor, Any] = {}
        waiting = [tensor]
        while waiting:
            layer, is_ready = waiting[-1].producer, True
            if not isinstance(layer, OF_CONSTANTS) or waiting[-1] in self._weights or len(waiting) > MOST_WAITING:
                return None
            if isinstance(layer, IFillLayer) and layer.operation is not FillOperation.LINSPACE:
                return None
            for other in layer.inputs:
                if other is not None and other not in values:
                    waiting.append(other)
                    is_ready = False
            if is_ready:
                inputs: list[Any] = [None if tensor is None else values[tensor] for tensor in layer.inputs]
                values[waiting.pop()] = layer.evaluate(*inputs)
        return values[tensor]

    # ------------------------------------------------------------------ shapes and ranges

    def whole(self, tensor: ITensor, aval: Any) -> ITensor:
        """A tensor with the shape of its value."""
        shape = tensor_shape(aval)
        if tensor.type.rank == len(shape) and not any(map(_is_narrow, tensor.type.shape, shape)):
            return tensor
        lengths = [self.lengths.length(length) for length in shape]
        fixed = [length for length in lengths if isinstance(length, int)]
        value = self.scalar_of(tensor)
        if value is not None and len(fixed) == len(lengths) and np.prod(fixed) * value.itemsize <= SMALL:
            return self.make.constant(np.full(fixed, value))
        if value is not None:
            tensor = self.make.constant(value.reshape((1,) * len(shape)))
        return self.broadcast(tensor, lengths)

    def broadcast(self, x: ITensor, lengths: Sequence[Length]) -> ITensor:
        """A tensor broadcast to a shape, by a slice that reads each element again and again."""
        wide = self.make.expand_dims(x, range(len(lengths) - x.type.rank))
        axes = [axis for axis, length in enumerate(lengths) if wide.type.shape[axis] == 1 and length != 1]
        none = [0] * len(axes)
        result = self.make.slice(wide, none, [lengths[axis] for axis in axes], none, axes) if axes else wide
        if x in self.iotas:
            self.iotas[result] = self.iotas[x]
        if x in self.ranges:
            self.ranges[result] = self.ranges[x]
        return result

    def range_of(self, tensor: ITensor) -> Range | None:
        """The range of integers; None if it is not known."""
        value = tensor.type.value if tensor.type.is_known_integer else None
        if value is not None and value.size and value.dtype.kind in "iu":
            return int(value.min()), int(value.max())
        return self.ranges.get(tensor)

    def enter_range(self, equation: JaxprEqn, operands: Sequence[ITensor], output: ITensor) -> None:
        """Enter the range of the first result of an equation."""
        aval = equation.outvars[0].aval
        if has_parts(aval) or output.type.dtype.kind not in "iu" or output in self.ranges:
            return
        avals = [variable.aval for variable in equation.invars]
        ranges = [self.range_of(tensor) for tensor in operands]
        range_ = range_of_result(equation.primitive.name, equation.params, ranges, avals, aval)
        if range_ is not None:
            self.ranges[output] = range_


OF_CONSTANTS = (
    IConstantLayer, IFillLayer, IElementWiseLayer, IUnaryLayer, ISelectLayer, ICastLayer, IUnsqueezeLayer,
    IShuffleLayer, ISliceLayer,
)  # fmt: skip
"""The kinds of layers that compute masks from constants."""
MOST_WAITING = 100

SMALL = 64
"""Constants with equal elements are written out up to this size in bytes."""


def _is_uniform(array: np.ndarray[Any, Any]) -> bool:
    first = array.reshape(-1)[:1]
    return bool((array.reshape(-1).view(f"u{array.itemsize}") == first.view(f"u{array.itemsize}")).all())


def _is_narrow(own: int, wanted: Any) -> bool:
    return own == 1 and not (isinstance(wanted, int) and wanted == 1)
