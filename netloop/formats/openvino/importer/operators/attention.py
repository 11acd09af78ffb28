"""Attention."""

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.openvino.importer.operators.matrix import transposed
from netloop.model.graph.tensor import ITensor


@operator("ScaledDotProductAttention", "opset13")
def attention(
    call: LayerCall, query: ITensor, key: ITensor, value: ITensor, mask: Maybe = None, scale: Maybe = None
) -> ITensor:
    """Scaled dot-product attention.

    A boolean mask selects the keys that count, a numeric one is added to the scores. With ``causal`` no query sees
    later keys.
    """
    make = call.make
    scores = make.matmul(query, transposed(call, key))
    if scale is None:
        width = make.cast(make.tensor(make.length(query, -1)), query.type.dtype)
        scores = make.div(scores, make.power(width, 0.5))
    else:
        scores = make.mul(scores, make.scalar(scale))
    never = make.constant(np.array(-np.inf, query.type.dtype))
    if call.flag("causal", False):
        rows, columns = (make.arange(make.length(tensor, -2)) for tensor in (query, key))
        scores = make.where(make.less_equal(columns, make.expand_dims(rows, [1])), scores, never)
    elif mask is not None:
        scores = make.where(mask, scores, never) if mask.type.is_bool else make.add(scores, mask)
    return make.matmul(make.softmax(scores, scores.type.rank - 1), value)
