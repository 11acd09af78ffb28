"""Random numbers.

OpenVINO draws other numbers, whatever the seed. An engine draws the same ones in every call.
"""

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, operator
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import TopKOperation, UnaryOperation


@operator("RandomUniform", "opset8")
def random_uniform(call: LayerCall, shape: ITensor, low: ITensor, high: ITensor) -> ITensor:
    """Uniform random numbers from a minimum up to, but excluding, a maximum."""
    make, dtype = call.make, call.element_type("output_type")
    low, high = make.scalar(low), make.scalar(high)
    drawn = make.uniform(shape, np.dtype(np.float32))
    if low.type.is_float:
        span = make.cast(make.sub(high, low), np.float32)
        return make.cast(make.add(make.mul(drawn, span), make.cast(low, np.float32)), dtype)
    # float32 has too few digits for integers.
    span = make.cast(make.sub(make.cast(high, np.int64), make.cast(low, np.int64)), np.float64)
    whole = make.cast(make.mul(make.cast(drawn, np.float64), span), np.int64)
    return make.cast(make.add(whole, make.cast(low, np.int64)), dtype)


@operator("Multinomial", "opset13")
def multinomial(call: LayerCall, x: ITensor, samples: ITensor) -> ITensor:
    """Classes drawn from probabilities or log probabilities, with or without replacement."""
    make, dtype = call.make, call.element_type("convert_type")
    wide = make.cast(x, np.float32)
    p = make.unary(UnaryOperation.EXP, wide) if call.flag("log_probs", False) else wide
    p = make.div(p, make.sum(p, [1], True))
    count = make.scalar(make.cast(samples, np.int64))
    if call.flag("with_replacement", True):
        return make.cast(make.drawn_classes(p, count), dtype)
    # Without replacement: the largest of log(1 - u) / p are the first events of exponential variables with rates p.
    logs = make.unary(UnaryOperation.LOG, make.sub(1.0, make.uniform(make.shape(p), np.dtype(np.float32))))
    return make.cast(make.best(TopKOperation.MAX, make.div(logs, p), count, 1)[1], dtype)
