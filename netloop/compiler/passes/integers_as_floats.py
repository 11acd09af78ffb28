"""Compute small integers, such as quantized numbers, in float32."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.compiler.passes.base import Pass
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph import Elementary, ILayer, ITensor, Operation, layer
from netloop.model.layers.convolution import IConvolutionLayer, is_given
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.layers.pointwise import IActivationLayer, ICastLayer, IElementWiseLayer, IUnaryLayer
from netloop.model.layers.quantize import IDequantizeLayer, IQuantizeLayer
from netloop.model.layers.rearrange import Rearrangement
from netloop.values.enums import ActivationType, ElementWiseOperation, LayerType, MatrixOperation, UnaryOperation
from netloop.values.types import UNKNOWN, TensorType

F32 = np.dtype(np.float32)
MOST = 1 << 24
"""Float32 has every integer up to this."""

SUM, SUB, PROD = ElementWiseOperation.SUM, ElementWiseOperation.SUB, ElementWiseOperation.PROD
MIN, MAX = ElementWiseOperation.MIN, ElementWiseOperation.MAX
ROUNDING = UnaryOperation.ROUND, UnaryOperation.FLOOR, UnaryOperation.CEIL


@layer(LayerType.INTERNAL, "Limited")
class LimitedLayer(Elementary):
    """Limit numbers to a range; NaN becomes a number.

    Attributes:
        low: the smallest number.
        high: the largest number.
        of_nan: what NaN becomes.
    """

    low: float
    high: float
    of_nan: float

    def infer(self, x: TensorType) -> TensorType:
        return x.without_value()

    def formula(self, xp: Any, x: Any) -> Any:
        low, high, of_nan = (xp.full_like(x, number) for number in (self.low, self.high, self.of_nan))
        # jnp.where is a call in the traced program, and takes ten times as long to trace
        select, is_unequal = (xp.where, np.not_equal) if xp is np else (lax.select, lax.ne)
        is_greater = np.greater if xp is np else lax.gt
        # otherwise NaN, which is not greater, becomes the low limit below
        if self.of_nan != self.low:
            x = select(is_unequal(x, x), of_nan, x)
        # a comparison and a choice are one instruction of x86; a maximum that keeps NaN takes twice as long
        x = select(is_greater(x, low), x, low)
        return select(is_greater(high, x), x, high)


class IntegersAsFloats(Pass):
    """Compute integers that float32 has, with all sums of their products, in float32.

    XLA multiplies and convolves integers slowly. A chain of conversions to integers and back, of which each is cheap,
    is computed again by everything that reads it.
    """

    name = "integers_as_floats"
    level = 2
    platforms = frozenset({"cpu"})
    on_host = True
    rule = (
        "On CPUs, what follows from a rounded float32 number within known limits, as a quantized number does, is "
        "computed in float32 and not in integers: sums, differences, products, matrix products and convolutions by "
        "weights, as long as types and the numbers of terms show that no result passes 2^24. All results are equal."
    )

    def rewrite(self, rewriter: Rewriter) -> bool:
        floats = _Floats(rewriter)
        for operation in rewriter.layers(Operation):
            if _is_typed(rewriter, operation):
                floats.visit(operation)
        if floats.replaced:
            rewriter.note(f"{floats.replaced} layers read small integers as float32")
        return floats.replaced > 0


class _Whole(NamedTuple):
    """A float32 tensor of integers from ``low`` to ``high``, which may be limited integers plus an offset."""

    tensor: ITensor
    low: int
    high: int
    unlimited: ITensor | None = None
    offset: int = 0

    @property
    def size(self) -> int:
        """The largest absolute value that is possible."""
        return max(abs(self.low), abs(self.high))

    def fits(self, dtype: Any) -> bool:
        """Whether an integer type has all of these integers."""
        limits = jnp.iinfo(dtype)
        return int(limits.min) <= self.low and self.high <= int(limits.max)


class _Floats:
    """The integer tensors that also exist in float32.

    Attributes:
        replaced: the number of layers whose results were replaced.
    """

    def __init__(self, rewriter: Rewriter) -> None:
        self.rewriter, self.make = rewriter, rewriter.make
        self.replaced = 0
        self._known: dict[ITensor, _Whole | None] = {}

    def visit(self, layer: Operation) -> None:
        """Compute a layer in float32 if what it reads exists so."""
        if isinstance(layer, ICastLayer):
            self._cast(layer)
        elif isinstance(layer, IQuantizeLayer):
            self._quantize(layer)
        elif isinstance(layer, IDequantizeLayer):
            self._dequantize(layer)
        elif isinstance(layer, IElementWiseLayer):
            self._elementwise(layer)
        elif isinstance(layer, (IMatrixMultiplyLayer, IConvolutionLayer)):
            self._product(layer)

    def _replace(self, old: ITensor, new: ITensor) -> None:
        self.rewriter.take_over(old, new)
        self.replaced += 1

    def _reads_known(self, layer: ILayer) -> bool:
        """Whether something that a layer reads follows from a rounded number."""
        return any(tensor is not None and self._known.get(tensor) for tensor in layer.inputs)

    def _whole(self, tensor: ITensor) -> _Whole | None:
        """A tensor in float32, if it follows from rounded numbers or consists of small weights."""
        if tensor not in self._known and tensor in self.rewriter.weights:
            limits = _limits(tensor)
            small = limits is not None and max(map(abs, limits)) <= MOST
            self._known[tensor] = _Whole(self.make.cast(tensor, F32), *limits) if limits and small else None
        return self._known.get(tensor)

    def _wholes(self, *tensors: ITensor) -> list[_Whole]:
        """Several tensors in float32; nothing if one is not known so."""
        wholes = [self._whole(tensor) for tensor in tensors]
        return [whole for whole in wholes if whole is not None] if all(wholes) else []

    # ------------------------------------------------------------------ conversions

    def _cast(self, layer: ICastLayer) -> None:
        x, output = operand(layer, 0), layer.outputs[0]
        if x in self.rewriter.weights:
            return
        # a float that is known to be whole is its own integer, and an integer back in float32 needs no conversion
        own = self._rounded(x) if x.type.dtype == F32 else self._known.get(x)
        if own is not None and output.type.is_integer and own.fits(output.type.dtype):
            self._known[output] = own
        elif own is not None and output.type.dtype == F32 != x.type.dtype:
            self._replace(output, own.tensor)

    def _rounded(self, x: ITensor) -> _Whole | None:
        """A float32 tensor without NaN, which a conversion makes 0, if it has only integers within limits."""
        clip = x.producer
        if x not in self._known and isinstance(clip, IActivationLayer) and clip.type is ActivationType.CLIP:
            low, high, source = math.ceil(clip.alpha), math.floor(clip.beta), operand(clip, 0)
            # a limit that is no integer could be a result itself
            if (low, high) == (clip.alpha, clip.beta) and -MOST <= low <= high <= MOST and _is_whole(source):
                self._known[x] = self._limited(source, low, high)
        return self._known.get(x)

    def _limited(self, x: ITensor, low: int, high: int) -> _Whole:
        """Integers limited to a range, in which NaN is 0."""
        whole = _Whole(self._limit(x, low, high, 0), low, high, x)
        added = x.producer
        # a zero point that is added here is subtracted again where the numbers are multiplied
        if isinstance(added, IElementWiseLayer) and added.op is SUM:
            offset = _number(operand(added, 1))
            if offset is not None:
                whole = whole._replace(unlimited=operand(added, 0), offset=offset)
        return whole

    def _limit(self, x: ITensor, low: int, high: int, of_nan: int) -> ITensor:
        result = LimitedLayer(low=float(low), high=float(high), of_nan=float(of_nan))
        return self.rewriter.network.add(result, [x]).outputs[0]

    def _quantize(self, layer: IQuantizeLayer) -> None:
        x, output = operand(layer, 0), layer.outputs[0]
        scale = self._scale_of(layer, x.type)
        if (
            scale is not None
            and x.type.dtype == F32
            and output.type.dtype == np.int8
            and x not in self.rewriter.weights
        ):
            rounded = self.make.unary(UnaryOperation.ROUND, self.make.div(x, scale))
            self._known[output] = self._limited(rounded, -128, 127)

    def _dequantize(self, layer: IDequantizeLayer) -> None:
        x, output = operand(layer, 0), layer.outputs[0]
        own, scale = self._known.get(x), self._scale_of(layer, x.type)
        if own is not None and scale is not None and output.type.dtype == F32:
            self._replace(output, self.make.mul(own.tensor, scale))

    def _scale_of(self, layer: IQuantizeLayer | IDequantizeLayer, x: TensorType) -> ITensor | None:
        """The float32 scale of a quantization, in a shape that broadcasts to that of its input; None for blocks."""
        scale = operand(layer, 1)
        if scale.type.dtype != F32 or scale.type.rank > 1 or layer.block_shape:
            return None
        # a list for a list is one of blocks
        if scale.type.rank == 1 and (layer.axis < 0 or x.rank == 1):
            return self.make.scalar(scale) if scale.type.shape == (1,) else None
        return self.make.along(scale, x.rank, layer.axis)

    # ------------------------------------------------------------------ integers

    def _elementwise(self, layer: IElementWiseLayer) -> None:
        output = layer.outputs[0]
        if not output.type.is_integer or not self._reads_known(layer):
            return
        both = self._wholes(operand(layer, 0), operand(layer, 1))
        limits = _combined(layer.op, *both) if both else None
        if limits is not None and max(map(abs, limits)) <= MOST:
            whole = _Whole(self._computed(layer.op, *both), *limits)
            # an integer that its type does not have wraps, and a float would not
            self._known[output] = whole if whole.fits(output.type.dtype) else None

    def _computed(self, op: ElementWiseOperation, a: _Whole, b: _Whole) -> ITensor:
        # limits that are moved by the zero point give the same numbers without the two sums
        if op is SUB and a.unlimited is not None and b.low == b.high == a.offset:
            return self._limit(a.unlimited, a.low - b.low, a.high - b.low, -b.low)
        return self.make.elementwise(op, a.tensor, b.tensor)

    def _product(self, layer: IMatrixMultiplyLayer | IConvolutionLayer) -> None:
        output, pair = layer.outputs[0], layer.inputs[:2]
        if output.type.dtype != np.int32 or not self._reads_known(layer) or not all(pair) or len(pair) < 2:
            return
        if isinstance(layer, IConvolutionLayer) and layer.bias is not None and is_given(layer.bias):
            return
        both = self._wholes(operand(layer, 0), operand(layer, 1))
        # no partial sum is larger, in whatever order XLA adds
        most = _terms(layer) * both[0].size * both[1].size if both else MOST + 1
        if most > MOST:
            return
        named = {name: getattr(layer, name) for name in layer.ATTRIBUTES}
        tensor = self.rewriter.network.add(type(layer)(**named), [whole.tensor for whole in both]).outputs[0]
        whole, bias = self.make.cast(tensor, np.int32), [*layer.inputs, None][2]
        if bias is None or not isinstance(layer, IConvolutionLayer):
            self._known[whole] = self._known[output] = _Whole(tensor, -most, most)
        else:
            whole = self.make.add(whole, self.make.along(bias, output.type.rank, -len(layer.window) - 1))
        self._replace(output, whole)


def _is_typed(rewriter: Rewriter, layer: Operation) -> bool:
    """Whether a layer has types: one in a branch that the shapes of a call do not allow has none."""
    types = rewriter.network.types
    tensors = [tensor for tensor in (*layer.inputs, *layer.outputs) if tensor is not None]
    return all(isinstance(types.of(tensor), TensorType) for tensor in tensors)


def _limits(tensor: ITensor) -> tuple[int, int] | None:
    """The smallest and largest integer that a weight may have, now and after a refit; None if there is no limit."""
    source: ITensor | None = tensor
    while source is not None and (source.type.is_integer or source.type.dtype == F32):
        kind = source.type
        if kind.is_known_integer and kind.value is not None and kind.value.size:
            return int(kind.value.min()), int(kind.value.max())
        # a refit may bring any number of the type
        if kind.is_integer and kind.dtype.itemsize <= 2:
            limits = jnp.iinfo(kind.dtype)
            return int(limits.min), int(limits.max)
        maker = source.producer
        source = maker.inputs[0] if isinstance(maker, ICastLayer | Rearrangement) else None
    return None


def _number(tensor: ITensor) -> int | None:
    """The small integer that all elements of a weight are; None for any other tensor."""
    low, high = _limits(tensor) or (0, MOST)
    return low if low == high and abs(low) < MOST else None


def _is_whole(tensor: ITensor) -> bool:
    """Whether a float32 tensor has only integers, infinities and NaN."""
    left = [tensor]
    while left:
        maker = left.pop().producer
        if isinstance(maker, IElementWiseLayer) and maker.op in (SUM, SUB, PROD, MIN, MAX):
            left += [operand(maker, 0), operand(maker, 1)]
        elif isinstance(maker, Rearrangement):
            left.append(operand(maker, 0))
        elif isinstance(maker, ICastLayer):
            if not operand(maker, 0).type.is_integer:
                return False
        elif not isinstance(maker, IUnaryLayer) or maker.op not in ROUNDING:
            return False
    return True


def _combined(op: ElementWiseOperation, a: _Whole, b: _Whole) -> tuple[int, int] | None:
    """The limits of the result of an element-wise operation; None for those that are not computed in float32."""
    if op is SUM:
        return a.low + b.low, a.high + b.high
    if op is SUB:
        return a.low - b.high, a.high - b.low
    if op is PROD:
        # the extremes of a product are at limits of both factors, whatever their signs
        corners = [one * other for one in (a.low, a.high) for other in (b.low, b.high)]
        return min(corners), max(corners)
    if op in (MIN, MAX):
        of = min if op is MIN else max
        return of(a.low, b.low), of(a.high, b.high)
    return None


def _terms(layer: IMatrixMultiplyLayer | IConvolutionLayer) -> int:
    """The number of products that a product of matrices or a convolution sums; too many if it is not known."""
    shapes = [operand(layer, 0).type.shape, operand(layer, 1).type.shape[1:]]
    if isinstance(layer, IMatrixMultiplyLayer):
        number = shapes[0][-2 if layer.op0 is MatrixOperation.TRANSPOSE else -1]
    else:
        number = UNKNOWN if UNKNOWN in shapes[1] else math.prod(shapes[1])
    return MOST + 1 if number == UNKNOWN else number
