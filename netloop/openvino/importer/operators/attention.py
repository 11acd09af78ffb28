"""Attention."""

from __future__ import annotations

import numpy as np

from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator
from netloop.openvino.importer.operators.matrix import transposed


@operator("ScaledDotProductAttention", "opset13")
def attention(
    call: Call,
    query: ITensor,
    key: ITensor,
    value: ITensor,
    mask: ITensor | None = None,
    scale: ITensor | None = None,
) -> ITensor:
    """The mean of the values for each query, weighted by its products with the keys.

    A mask of truth values tells which weights count, one of numbers is added. Causal, no query sees later keys.
    """
    make = call.make
    products = make.matmul(query, transposed(call, key))
    if scale is None:
        width = make.cast(make.tensor(make.length(query, -1)), query.type.dtype)
        products = make.div(products, make.power(width, 0.5))
    else:
        products = make.mul(products, make.scalar(scale))
    never = make.constant(np.array(-np.inf, query.type.dtype))
    if call.flag("causal", False):
        rows, columns = (make.arange(make.length(each, -2)) for each in (query, key))
        products = make.where(make.less_equal(columns, make.expand_dims(rows, [1])), products, never)
    elif mask is not None:
        products = make.where(mask, products, never) if mask.type.is_bool else make.add(products, mask)
    return make.matmul(make.softmax(products, products.type.rank - 1), value)
