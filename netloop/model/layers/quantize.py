"""Quantization: low-bit numbers that represent floating-point numbers, with scales shared by blocks of them."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.graph import ITensor, NetworkBase, Operation, check_member, layer
from netloop.model.layers.extreme_forms import extremes_of_blocks
from netloop.model.layers.lax_forms import quotient
from netloop.model.layers.low_bit import FORMATS, lower_quantized, quantized
from netloop.values.diagnostics import require
from netloop.values.dims import DimsLike
from netloop.values.enums import DataType, LayerType
from netloop.values.types import NUMPY_TYPES, UNKNOWN, Array, Shape, TensorType, agree, normal_axis, numpy_type, wide

# fmt: off
DYNAMIC: dict[tuple[DataType, DataType], bool] = {
    (DataType.FP4,  DataType.FP8):   True,
    (DataType.FP8,  DataType.E8M0):  False,
    (DataType.FP8,  DataType.FLOAT): False,
    (DataType.INT8, DataType.FLOAT): False,
}
# fmt: on
"""The supported pairs of result and scale types, and whether the scales are themselves scaled."""

E8M0 = NUMPY_TYPES[DataType.E8M0]
E8M0_BIAS, E8M0_MOST, E8M0_NAN = 127, 254, 255
QUANTISED = {numpy_type(format_): format_ for format_ in FORMATS}
REAL = (DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.DOUBLE)
WHOLE_AXIS = -1
"""The block length that stands for a whole axis."""


# ---------------------------------------------------------------------------- scales


def _check_scale(x: TensorType, scale: TensorType, axis: int, block: Sequence[int]) -> None:
    require(
        scale.is_float or scale.dtype == E8M0,
        f"the scale is {scale}, but must be floating-point or E8M0",
        fix="convert it with add_cast, or an FP8 one with add_dequantize",
    )
    if block or (scale.rank == x.rank and scale.rank):
        _check_blocks(x, scale, block)
    elif scale.rank and (scale.shape, axis) != ((1,), -1):
        require(
            scale.rank == 1 and 0 <= axis < x.rank,
            f"the scale is {scale}, and axis {axis}",
            why="a scale is 0-D for all elements, 1-D for one axis, or has one element for each block of the input",
            fix=f"set axis to one of 0 to {x.rank - 1}, or give a 0-D scale" if scale.rank == 1 else "",
        )
        wanted = x.shape[axis]
        fits = agree(scale.shape, (wanted,))
        require(
            fits,
            f"the scale has {scale.shape[0]} elements, and axis {axis} of the input has {wanted}",
            why="each slice along the axis has a scale of its own",
        )
    factors = scale.value
    require(
        factors is None or bool((factors.astype(np.float64) > 0).all()),
        "the scale has an element that is not positive",
        "values are divided by it",
    )


def _check_blocks(x: TensorType, scale: TensorType, block: Sequence[int]) -> None:
    _check_block_shape(x, block)
    require(
        scale.rank == x.rank,
        f"the scale is {scale}, and block_shape {tuple(block)} needs one of {x.rank} axes",
        why="a block is a part of each axis",
    )
    for axis, (many, few, length) in enumerate(zip(x.shape, scale.shape, block or (0,) * x.rank, strict=True)):
        require(
            _is_divided(many, few, length),
            f"axis {axis} has {many} elements, and the scale {few}",
            why="the scale has one element for each block of the input"
            + (f", and a block is {length} long" if length > 0 else ""),
        )


def _check_block_shape(x: TensorType, block: Sequence[int]) -> None:
    require(
        all(step == WHOLE_AXIS or step > 0 for step in block) and len(block) in (0, x.rank),
        f"block_shape is {tuple(block)}, but must be {x.rank} positive numbers",
        why=f"it says how long the blocks of {x} are; -1 is the whole axis",
    )


def _is_divided(many: int, few: int, block: int) -> bool:
    """Whether ``many`` elements divide into ``few`` blocks of a length, 0 for any length."""
    if block == WHOLE_AXIS:
        return few in (1, UNKNOWN)
    if UNKNOWN in (many, few):
        return many == UNKNOWN or not block or many % block == 0
    return few * block == many if block else few == many or (few > 0 and many % few == 0)


def _check_zero_point(zero: TensorType | None, scale: TensorType, dtype: Any) -> None:
    if zero is not None:
        wanted = TensorType(np.dtype(dtype), scale.shape)
        fits = (zero.dtype == wanted.dtype or zero.is_float) and agree(zero.shape, wanted.shape)
        require(
            fits,
            f"the zero point is {zero}, but must be {wanted}, or floating-point of that shape",
            why="it is subtracted from the quantized numbers, of which it has the type",
        )
        _check_zeros(zero.value)


def _zero_point_beyond(zero: TensorType | None, dtype: Any) -> str:
    return "" if zero is None or zero.dtype == np.dtype(dtype) else f"has a zero point of {zero.dtype}"


def _check_zeros(zero: Array | None) -> None:
    require(
        zero is None or not zero.astype(np.float32).any(),
        "the zero point has an element that is not 0",
        why="quantization is symmetric: 0 represents 0",
    )


def _with_axes(scale: Any, rank: int, axis: int) -> Any:
    """Reshape the scale to the rank of the tensor that it applies to."""
    if scale.ndim == rank:
        return scale
    shape = [1] * rank
    if scale.ndim and axis >= 0:
        shape[axis] = scale.shape[0]
    return scale.reshape(shape)


def _spread(scale: Array, shape: Shape) -> Array:
    """The scale of each element of a tensor, taken from its block; or an array that broadcasts to it."""
    for axis, (few, many) in enumerate(zip(scale.shape, shape, strict=True)):
        if few not in (1, many):
            scale = scale.take(np.arange(many) * few // many, axis)
    return scale


def _lower_spread(scale: Any, shape: Shape) -> Any:
    """The scale of each element, or an array that broadcasts to it."""
    for axis, (few, many) in enumerate(zip(scale.shape, shape, strict=True)):
        if few not in (1, many):
            scale = jnp.repeat(scale, many // few, axis)
    return scale


def _with_scale(x: Any, scale: Any, factor: float) -> tuple[Any, Any]:
    """Convert numbers and their scales to one type.

    XLA flushes the smallest E8M0 number, 2**-127, to 0: then the numbers are multiplied by ``factor``, and the scale is
    2**-126.
    """
    scale = _lower_spread(scale, x.shape)
    if scale.dtype != E8M0:
        return x, scale.astype(x.dtype)
    is_least = lax.bitcast_convert_type(scale, np.uint8) == 0
    x = jnp.where(
        is_least & ~jnp.isnan(x), x * factor, x
    )  # the barrier keeps XLA from fusing the factor into the scale
    return x, jnp.where(is_least, x.dtype.type(2.0**-126), scale.astype(x.dtype))


# ---------------------------------------------------------------------------- layers


@layer(LayerType.QUANTIZE, "Quantize")
class IQuantizeLayer(Operation):
    """Quantize to a low-bit type: output = clamp(round(input / scale)).

    Floating-point input, half types divided in float32; output of to_type and the same shape. Rounding is to the
    nearest number of the type, ties to even; NaN becomes 0 if the type has no NaN:

    ====  ============================================================
    INT8  -128 to 127
    INT4  -8 to 7
    FP8   -448 to 448, 4 significant bits, multiples of 2**-9 (E4M3)
    FP4   0, 1/2, 1, 3/2, 2, 3, 4, 6 and their negatives (E2M1)
    ====  ============================================================

    The scale is positive, floating-point or E8M0: 0-D or one element if ``axis`` is -1; 1-D with one element for each
    position along ``axis``; or of the rank of the input with one element for each block. Input 2, the zero point, holds
    only zeros, of the quantized type or floating-point; TensorRT's documentation has the first alone. The derivative is
    0.

    Attributes:
        axis: the axis of a 1-D scale; -1 for none.
        block_shape: the dims of a block, -1 for a whole axis; () to derive it from the shapes of input and scale.
        to_type: the type of the output.
    """

    REQUIRED_INPUTS = 2
    MAX_INPUTS = 3
    OUTPUT_TYPES = frozenset(FORMATS)

    axis: int = -1
    block_shape: DimsLike = ()
    to_type: DataType

    def infer(self, x: TensorType, scale: TensorType, zero: TensorType | None = None) -> TensorType:
        require(x.is_float, f"the input is floating-point, not {x}", fix="convert it with add_cast")
        what = f"the input is {x}, but must have at least one axis"
        require(x.rank > 0, what, "blocks lie along an axis", "add one with add_unsqueeze")
        formats = ", ".join(format_.name for format_ in FORMATS)
        require(
            self.to_type in FORMATS,
            f"to_type is {self.to_type.name}, but must be one of {formats}",
            why="blocks are quantized to these types",
        )
        _check_scale(x, scale, self.axis, self.block_shape)
        _check_zero_point(zero, scale, numpy_type(self.to_type))
        return x.with_dtype(numpy_type(self.to_type))

    def beyond_tensorrt(self, x: TensorType, scale: TensorType, zero: TensorType | None = None) -> str:
        return _zero_point_beyond(zero, numpy_type(self.to_type))

    def evaluate(self, x: Array, scale: Array, zero: Array | None = None) -> Array:
        _check_zeros(zero)
        inputs = wide(x)
        scales = _spread(_with_axes(scale, x.ndim, self.axis), x.shape)
        return quantized(inputs / scales.astype(inputs.dtype), self.to_type)

    def lower(self, x: Any, scale: Any, zero: Any = None) -> Any:
        inputs = wide(jnp.asarray(x))
        inputs, scales = _with_scale(inputs, _with_axes(jnp.asarray(scale), inputs.ndim, self.axis), 2)
        return lower_quantized(quotient(jnp, inputs, scales), self.to_type)


@layer(LayerType.DEQUANTIZE, "Dequantize")
class IDequantizeLayer(Operation):
    """Dequantize low-bit numbers: output = input * scale.

    INT8, INT4, FP8 or FP4 input, floating-point output of the same shape; the product is computed in float32, or in
    float64 for DOUBLE, and rounded once. Scale and zero point are as for ``IQuantizeLayer``.

    Attributes:
        axis: the axis of a 1-D scale; -1 for none.
        block_shape: the dims of a block, -1 for a whole axis; () to derive it from the shapes of input and scale.
        to_type: the type of the output: FLOAT, HALF, BF16 or DOUBLE.
    """

    REQUIRED_INPUTS = 2
    MAX_INPUTS = 3
    OUTPUT_TYPES = frozenset(REAL)

    axis: int = -1
    block_shape: DimsLike = ()
    to_type: DataType

    def infer(self, x: TensorType, scale: TensorType, zero: TensorType | None = None) -> TensorType:
        formats = ", ".join(format_.name for format_ in FORMATS)
        require(
            x.dtype in QUANTISED,
            f"the input is {x}, but must be one of {formats}",
            fix="quantize it first, with add_quantize",
            why="only these types are codes that need a scale",
        )
        real = ", ".join(number.name for number in REAL)
        require(
            self.to_type in REAL,
            f"to_type is {self.to_type.name}, but must be one of {real}",
            why="a quantized number stands for a real one",
        )
        _check_scale(x, scale, self.axis, self.block_shape)
        _check_zero_point(zero, scale, x.dtype)
        return x.with_dtype(numpy_type(self.to_type))

    def beyond_tensorrt(self, x: TensorType, scale: TensorType, zero: TensorType | None = None) -> str:
        return _zero_point_beyond(zero, x.dtype)

    @property
    def _width(self) -> Any:
        return np.float64 if self.to_type is DataType.DOUBLE else np.float32

    def evaluate(self, x: Array, scale: Array, zero: Array | None = None) -> Array:
        _check_zeros(zero)
        scales = _spread(_with_axes(scale, x.ndim, self.axis), x.shape)
        array = np.asarray(x.astype(self._width) * scales.astype(self._width))
        return array.astype(numpy_type(self.to_type))

    def lower(self, x: Any, scale: Any, zero: Any = None) -> Any:
        array = jnp.asarray(x).astype(self._width)
        array, scales = _with_scale(array, _with_axes(jnp.asarray(scale), x.ndim, self.axis), 0.5)
        return (array * scales).astype(numpy_type(self.to_type))


@layer(LayerType.DYNAMIC_QUANTIZE, "DynamicQuantize")
class IDynamicQuantizeLayer(Operation):
    """Quantize blocks, each by a scale computed from its largest element.

    ::

        to_type  scale_type  scale                           output 0
        FP8      FLOAT       amax / 448                      FP8 nearest to input / scale
        INT8     FLOAT       amax / 127                      INT8 nearest to input / scale
        FP8      E8M0        2**k >= amax / 448, k least     FP8 nearest to input / scale
        FP4      FP8         FP8 nearest to amax / 6 / s     FP4 nearest to input / (scale s)

    amax is the largest absolute value in a block, and s is input 1, a positive scalar, which only FP4 has. Output 1
    holds the scales, one for each block along each axis; a block whose scale is 0 becomes zeros. Half types are
    computed in float32. Rounding is that of ``IQuantizeLayer``. TensorRT's blocks have 16 elements for FP4 and 32 for
    E8M0; netloop accepts any length that divides the axis.

    Attributes:
        axis: the axis that is divided into blocks of block_size elements.
        block_size: their length.
        block_shape: the dims of a block, -1 for a whole axis; () to use axis and block_size.
        to_type: the type of output 0.
        scale_type: the type of output 1.
    """

    NUM_OUTPUTS = 2
    LATER_OUTPUT = "_{}"
    MAX_INPUTS = 2

    axis: int = -1
    block_size: int = 0
    block_shape: DimsLike = ()
    to_type: DataType
    scale_type: DataType

    def infer(self, x: TensorType, double: TensorType | None = None) -> tuple[TensorType, TensorType]:
        require(x.is_float, f"the input is floating-point, not {x}", fix="convert it with add_cast")
        self._check_types(double)
        block = self._block(x)
        for axis, (length, step) in enumerate(zip(x.shape, block, strict=True)):
            require(
                length == UNKNOWN or step == WHOLE_AXIS or length % step == 0,
                f"axis {axis} has {length} elements, which is not a multiple of the block length {step}",
                fix="pad the axis with add_slice in FILL mode",
                why="each block has a scale of its own",
            )
            require(
                step != WHOLE_AXIS or length != 0,
                f"axis {axis} has 0 elements, so its blocks have no largest element",
                why="the scale follows from the largest element of a block",
            )
        scales = TensorType(numpy_type(self.scale_type), _counts(x.shape, block))
        return x.with_dtype(numpy_type(self.to_type)), scales

    def _check_types(self, double: TensorType | None) -> None:
        pair = self.to_type, self.scale_type
        formats = ", ".join(f"{to.name} with {scale.name}" for to, scale in DYNAMIC)
        require(pair in DYNAMIC, f"to_type is {pair[0].name} with scale_type {pair[1].name}", f"there are {formats}")
        require(
            (double is not None) == DYNAMIC[pair],
            f"to_type is {self.to_type.name}, and there is {'no' if double is None else 'a'} scale of the scales",
            why="only the FP8 scales of FP4 numbers are themselves scaled",
            fix="give it with set_input(1, ...)" if double is None else "",
        )
        if double is not None:
            what = f"the scale of the scales is a real scalar, not {double}"
            require(double.is_float and double.rank == 0, what, "all scales are multiplied by it")
            positive = double.value is None or bool(double.value > 0)
            what = f"the scale of the scales is {double.value}, but must be positive"
            require(positive, what, "the scales are divided by it")

    def _block(self, x: TensorType) -> Sequence[int]:
        """The dims of a block."""
        if self.block_shape:
            _check_block_shape(x, self.block_shape)
            return self.block_shape
        require(
            self.block_size > 0,
            f"block_size is {self.block_size}, but must be positive",
            "a block has one element or more",
        )
        block = [1] * x.rank
        block[normal_axis(self.axis, x.rank)] = self.block_size
        return block

    def _pairs(self, shape: Shape) -> list[tuple[int, int]]:
        """The number of blocks along each axis, and the dims of a block."""
        block = self._block(TensorType(np.dtype(np.float32), shape))
        lengths = (many if step == WHOLE_AXIS else step for many, step in zip(shape, block, strict=True))
        return list(zip(_counts(shape, block), lengths, strict=True))

    def evaluate(self, x: Array, double: Array | None = None) -> tuple[Array, Array]:
        inputs, pairs = wide(x), self._pairs(x.shape)
        array = np.zeros(x.shape, numpy_type(self.to_type))
        scales = np.zeros([count for count, _ in pairs], numpy_type(self.scale_type))
        again = 1 if double is None else double.astype(inputs.dtype)
        for index in np.ndindex(*scales.shape):
            box = tuple(slice(i * number, (i + 1) * number) for i, (_, number) in zip(index, pairs, strict=True))
            scales[index] = scale = self._scale(np.abs(inputs[box]).max(), again)
            factor = scale.astype(inputs.dtype) * again
            array[box] = quantized(inputs[box] / factor, self.to_type) if factor > 0 else 0
        return array, scales

    def _scale(self, largest: Any, again: Any) -> Any:
        most = FORMATS[self.to_type].most
        if self.scale_type is DataType.E8M0:
            return _power_of_two(float(largest), most)
        scale = largest / largest.dtype.type(most) / again
        return quantized(scale, DataType.FP8) if self.scale_type is DataType.FP8 else np.float32(scale)

    def lower(self, x: Any, double: Any = None) -> Any:
        inputs, pairs = wide(jnp.asarray(x)), self._pairs(x.shape)
        again = 1 if double is None else jnp.asarray(double).astype(inputs.dtype)
        blocks = [block for _, block in pairs]
        largest = extremes_of_blocks(jnp.abs(inputs), blocks, blocks, is_max=True)
        scales = self._lower_scales(lax.stop_gradient(largest.astype(inputs.dtype)), again)
        inputs, factors = _with_scale(inputs, scales, 2)
        is_normal = factors * again >= jnp.finfo(inputs.dtype).tiny
        return lower_quantized(jnp.where(is_normal, quotient(jnp, inputs, factors * again), 0), self.to_type), scales

    def _lower_scales(self, largest: Any, again: Any) -> Any:
        if self.scale_type is DataType.E8M0:
            return _lower_powers_of_two(largest, FORMATS[self.to_type].most)
        scale = quotient(jnp, quotient(jnp, largest, FORMATS[self.to_type].most), again)
        is_fp8 = self.scale_type is DataType.FP8
        return lower_quantized(scale, DataType.FP8) if is_fp8 else scale.astype(np.float32)


def _counts(shape: Shape, block: Sequence[int]) -> Shape:
    """The number of blocks along each axis."""
    return tuple(_count(many, step) for many, step in zip(shape, block, strict=True))


def _count(many: int, block: int) -> int:
    if block == WHOLE_AXIS:
        return 1
    return UNKNOWN if many == UNKNOWN else many // block


def _power_of_two(largest: float, most: float) -> Any:
    """The smallest power of two, as E8M0, that scales ``largest`` to ``most`` or less. NVIDIA's quantizers round such
    scales this way, and the standard of the format allows it.
    """
    if math.isnan(largest):
        return np.uint8(E8M0_NAN).view(E8M0)
    powers = range(-E8M0_BIAS, E8M0_MOST - E8M0_BIAS)
    power = next((power for power in powers if 2.0**power * most >= largest), powers.stop)
    return np.uint8(power + E8M0_BIAS).view(E8M0)


def _lower_powers_of_two(largest: Any, most: float) -> Any:
    """Compute it from mantissa and exponent: 2**(k - e) if the mantissas satisfy m <= f, else the next power."""
    digits, exponent = jnp.frexp(largest)
    most_digits, most_exponent = math.frexp(most)
    power = exponent - most_exponent + (digits > most_digits)
    code = jnp.where(largest > 0, jnp.clip(power + E8M0_BIAS, 0, E8M0_MOST), 0)
    code = jnp.where(jnp.isinf(largest), E8M0_MOST, code)
    return lax.bitcast_convert_type(jnp.where(jnp.isnan(largest), E8M0_NAN, code).astype(np.uint8), E8M0)


class QuantizationMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "quantization"

    def add_quantize(self, input: ITensor, scale: ITensor, output_type: DataType = DataType.INT8) -> IQuantizeLayer:
        """Add the quantization of ``input`` by a scale.

        Floating-point input, half types divided in float32; output of to_type and the same shape. Rounding is to the
        nearest number of the type, ties to even; NaN becomes 0 if the type has no NaN:

        ====  ============================================================
        INT8  -128 to 127
        INT4  -8 to 7
        FP8   -448 to 448, 4 significant bits, multiples of 2**-9 (E4M3)
        FP4   0, 1/2, 1, 3/2, 2, 3, 4, 6 and their negatives (E2M1)
        ====  ============================================================

        The scale is positive, floating-point or E8M0: 0-D or one element if ``axis`` is -1; 1-D with one element for
        each position along ``axis``; or of the rank of the input with one element for each block. Input 2, the zero
        point, holds only zeros, of the quantized type or floating-point; TensorRT's documentation has the first alone.
        The derivative is 0.

        Args:
            input: input 0.
            scale: input 1.
            output_type: the type of the output.

        Further attributes of the layer, which have defaults: ``axis``, ``block_shape``.
        """
        return self.add(
            IQuantizeLayer(to_type=check_member("output_type", output_type, DataType)), input=input, scale=scale
        )

    def add_dequantize(
        self, input: ITensor, scale: ITensor, output_type: DataType = DataType.FLOAT
    ) -> IDequantizeLayer:
        """Add the dequantization of ``input`` by a scale.

        INT8, INT4, FP8 or FP4 input, floating-point output of the same shape; the product is computed in float32, or
        in float64 for DOUBLE, and rounded once. Scale and zero point are as for ``IQuantizeLayer``.

        Args:
            input: input 0.
            scale: input 1.
            output_type: the type of the output: FLOAT, HALF, BF16 or DOUBLE.

        Further attributes of the layer, which have defaults: ``axis``, ``block_shape``.
        """
        return self.add(
            IDequantizeLayer(to_type=check_member("output_type", output_type, DataType)), input=input, scale=scale
        )

    def add_dynamic_quantize(
        self, input: ITensor, axis: int, block_size: int, output_type: DataType, scale_type: DataType
    ) -> IDynamicQuantizeLayer:
        """Add dynamic quantization of blocks of ``block_size`` elements along an axis.

        ::

            to_type  scale_type  scale                           output 0
            FP8      FLOAT       amax / 448                      FP8 nearest to input / scale
            INT8     FLOAT       amax / 127                      INT8 nearest to input / scale
            FP8      E8M0        2**k >= amax / 448, k least     FP8 nearest to input / scale
            FP4      FP8         FP8 nearest to amax / 6 / s     FP4 nearest to input / (scale s)

        amax is the largest absolute value in a block, and s is input 1, a positive scalar, which only FP4 has.
        Output 1 holds the scales, one for each block along each axis; a block whose scale is 0 becomes zeros. Half
        types are computed in float32. Rounding is that of ``IQuantizeLayer``. TensorRT's blocks have 16 elements for
        FP4 and 32 for E8M0; netloop accepts any length that divides the axis.

        Args:
            input: the input.
            axis: the axis that is divided into blocks of block_size elements.
            block_size: their length.
            output_type: the type of output 0.
            scale_type: the type of output 1.

        Further attributes of the layer, which have defaults: ``block_shape``.
        """
        to_type = check_member("output_type", output_type, DataType)
        result = IDynamicQuantizeLayer(axis=axis, block_size=block_size, to_type=to_type, scale_type=scale_type)
        return self.add(result, input=input)

    def add_dynamic_quantize_v2(
        self, input: ITensor, block_shape: Sequence[int], output_type: DataType, scale_type: DataType
    ) -> IDynamicQuantizeLayer:
        """Add dynamic quantization of blocks of a shape.

        ::

            to_type  scale_type  scale                           output 0
            FP8      FLOAT       amax / 448                      FP8 nearest to input / scale
            INT8     FLOAT       amax / 127                      INT8 nearest to input / scale
            FP8      E8M0        2**k >= amax / 448, k least     FP8 nearest to input / scale
            FP4      FP8         FP8 nearest to amax / 6 / s     FP4 nearest to input / (scale s)

        amax is the largest absolute value in a block, and s is input 1, a positive scalar, which only FP4 has.
        Output 1 holds the scales, one for each block along each axis; a block whose scale is 0 becomes zeros. Half
        types are computed in float32. Rounding is that of ``IQuantizeLayer``. TensorRT's blocks have 16 elements for
        FP4 and 32 for E8M0; netloop accepts any length that divides the axis.

        Args:
            input: the input.
            block_shape: the dims of a block, -1 for a whole axis; () to use axis and block_size.
            output_type: the type of output 0.
            scale_type: the type of output 1.

        Further attributes of the layer, which have defaults: ``axis``, ``block_size``.
        """
        to_type = check_member("output_type", output_type, DataType)
        result = IDynamicQuantizeLayer(block_shape=block_shape, to_type=to_type, scale_type=scale_type)
        return self.add(result, input=input)
