"""Bits of elements."""

from typing import Any

import numpy as np

from netloop.formulas import as_dtype
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.onnx.tensors import element_type


@operator("BitCast", since=26)
def bit_cast(call: Call, x: ITensor) -> ITensor:
    """The bits of each element read as another type; a bool is a byte, 0 or 1."""
    make, dtype = call.make, np.dtype(element_type(call.attribute("to")))
    if _is_bool(dtype) and x.type.is_bool:
        return x
    raw = make.cast(x, np.uint8) if x.type.is_bool else x
    read = make.made(make.network.add_bit_cast(raw, as_dtype(np.uint8 if _is_bool(dtype) else dtype)))
    return make.cast(read, dtype)


def _is_bool(dtype: np.dtype[Any]) -> bool:
    return dtype == np.bool_
