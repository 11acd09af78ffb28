"""Random numbers.

The standard leaves open which numbers a seed gives. An engine draws the same ones in every call.
"""

from typing import Any

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.onnx.tensors import element_type
from netloop.model.graph.tensor import ITensor


def _random_tensor(call: NodeCall, shape: list[int] | ITensor, dtype: np.dtype[Any]) -> ITensor:
    if "Normal" in call.node.op:
        return call.make.normal(shape, dtype, call.attribute("mean"), call.attribute("scale"))
    return call.make.uniform(shape, dtype, call.attribute("low"), call.attribute("high"))


@operator("RandomUniform", "RandomNormal")
def random(call: NodeCall) -> ITensor:
    """Uniform or normal random numbers of a given shape."""
    return _random_tensor(call, call.attribute("shape"), element_type(call.attribute("dtype")))


@operator("RandomUniformLike", "RandomNormalLike")
def random_like(call: NodeCall, x: ITensor) -> ITensor:
    """Uniform or normal random numbers in the shape of another tensor."""
    code = call.attribute("dtype")
    return _random_tensor(call, call.make.shape(x), x.type.dtype if code is None else element_type(code))


@operator("Multinomial", since=7)
def multinomial(call: NodeCall, x: ITensor) -> ITensor:
    """Classes drawn from unnormalized log probabilities."""
    make = call.make
    classes = make.drawn_classes(make.softmax(make.cast(x, np.float32), 1), call.attribute("sample_size"))
    return make.cast(classes, element_type(call.attribute("dtype")))


@operator("Dropout", since=(1, 7))
def dropout_by_attributes(call: NodeCall, x: ITensor) -> list[ITensor]:
    """Identity, with a mask of ones; before version 7 dropout, unless ``is_test`` is set."""
    if call.node.since < 7 and not call.attribute("is_test"):
        dropped, kept = _dropped(call, x, call.make.constant(call.attribute("ratio"), np.float32))
        return [dropped, call.make.cast(kept, x.type.dtype)]
    return [x, call.make.full(call.make.shape(x), 1, np.bool_ if call.node.since >= 10 else x.type.dtype)]


@operator("Dropout", since=12)
def dropout(call: NodeCall, x: ITensor, ratio: Maybe = None, training: Maybe = None) -> list[ITensor]:
    """In training random elements set to 0 and the others scaled up, else identity; with the mask of kept elements."""
    make, all_kept = call.make, call.make.full(call.make.shape(x), 1, np.bool_)
    rate = make.constant(0.5, np.float32) if ratio is None else make.cast(make.scalar(ratio), np.float32)
    if training is None or make.ints(training) == [0] or make.known(rate) == 0:
        return [x, all_kept]
    dropped, kept = _dropped(call, x, rate)
    trains = make.scalar(training)
    return [make.where(trains, dropped, x), make.where(trains, kept, all_kept)]


def _dropped(call: NodeCall, x: ITensor, rate: ITensor) -> tuple[ITensor, ITensor]:
    """The tensor with random elements set to 0 and the others scaled up, and the mask of kept elements."""
    make = call.make
    kept = make.greater_equal(make.uniform(make.shape(x), np.dtype(np.float32)), rate)
    scale = make.cast(make.div(1.0, make.sub(1.0, rate)), x.type.dtype)
    return make.where(kept, make.mul(x, scale), make.constant(np.zeros((), x.type.dtype))), kept
