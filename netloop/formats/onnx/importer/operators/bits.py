"""Bit casts."""

import numpy as np

from netloop.formats.onnx.importer.operators import NodeCall, operator
from netloop.formats.onnx.tensors import element_type
from netloop.model.formulas import as_dtype
from netloop.model.graph.tensor import ITensor


@operator("BitCast", since=26)
def bit_cast(call: NodeCall, x: ITensor) -> ITensor:
    """Bits of each element read as another type; a bool is one byte, 0 or 1."""
    make, dtype = call.make, np.dtype(element_type(call.attribute("to")))
    byte = np.dtype(np.uint8)
    if x.type.is_bool and dtype.kind == "b":
        return x
    bits = make.cast(x, byte) if x.type.is_bool else x
    read = make.output(make.network.add_bit_cast(bits, as_dtype(byte if dtype.kind == "b" else dtype)))
    return make.cast(read, dtype)
