"""Reinterpretation of bits."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.model.graph import ITensor, NetworkBase, Operation, layer
from netloop.values.diagnostics import require
from netloop.values.enums import DataType, LayerType
from netloop.values.types import TINY, Array, TensorType, data_type, numpy_type


@layer(LayerType.BIT_CAST, "BitCast")
class IBitCastLayer(Operation):
    """Reinterpret the bits of every element as another element type.

    Input of any type except bool; output of any type except bool with the same number of bits, and of the same shape.
    Example: float32 1.0 is 0x3F800000 as uint32.

    A netloop extension with the meaning of ONNX's operator BitCast.

    Attributes:
        to_type: the new element type.
    """

    to_type: DataType

    def infer(self, x: TensorType) -> TensorType:
        result = numpy_type(self.to_type)
        require(
            not x.is_bool and result != np.bool_, "bool has no bits of its own", fix="convert it to UINT8 with add_cast"
        )
        before, after = (int(8 * dtype.itemsize) for dtype in (data_type(x.dtype), self.to_type))
        require(
            before == after,
            f"the input is {x}, with {before} bits per element, but {result} has {after}",
            why="the bits of an element become those of one element, and none are added or lost",
            fix="choose a type of the same size, or convert with add_cast",
        )
        return x.with_dtype(result)

    def beyond_tensorrt(self, x: TensorType) -> str:
        return "reinterprets bits as another type"

    def evaluate(self, x: Array) -> Array:
        bits = int(8 * data_type(x.dtype).itemsize)
        raw = x.astype(np.int8) if x.dtype in TINY else x
        codes = np.ascontiguousarray(raw).view(f"u{x.dtype.itemsize}").reshape(x.shape)
        if bits < 8:
            codes = codes & np.uint8((1 << bits) - 1)
        result = numpy_type(self.to_type)
        return codes.astype(result) if result in TINY else codes.view(result)

    def lower(self, x: Any) -> Any:
        return jax.lax.bitcast_convert_type(jnp.asarray(x), numpy_type(self.to_type))


class BitMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "element by element"

    def add_bit_cast(self, input: ITensor, to_type: DataType) -> IBitCastLayer:
        """Reinterpret the bits of every element as ``to_type``; a netloop extension.

        Input of any type except bool; output of any type except bool with the same number of bits, and of the same
        shape. Example: float32 1.0 is 0x3F800000 as uint32.

        A netloop extension with the meaning of ONNX's operator BitCast.

        Args:
            input: the input.
            to_type: the new element type.
        """
        return self.add(IBitCastLayer(to_type=to_type), input=input)
