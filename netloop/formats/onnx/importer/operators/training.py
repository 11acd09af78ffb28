"""Training: gradients of a part of the graph, and steps of optimizers (ai.onnx.preview.training)."""

from collections.abc import Callable, Sequence

import numpy as np

from netloop.compiler.execution.gradient import gradient_plugin
from netloop.formats.onnx.importer.operators import NodeCall, operator
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import quoted, require
from netloop.values.enums import UnaryOperation

TRAINING = "ai.onnx.preview.training"


@operator("Gradient", domain=TRAINING)
def gradient(call: NodeCall, *inputs: ITensor) -> Sequence[ITensor]:
    """The derivatives of one value with respect to others, which JAX computes."""
    xs, zs, y = call.attribute("xs"), call.attribute("zs", []), call.attribute("y")
    names = [*xs, *zs]
    require(len(inputs) == len(names), f"the node has {len(inputs)} inputs for the {len(names)} names of xs and zs")
    require(len(set(names)) == len(names), f"xs and zs name a value twice: {names}")
    for name, tensor in zip(names, inputs, strict=True):
        require(tensor.type.is_tensor, f"{quoted(name)} is {tensor.type}, and a gradient is that of tensors")
    network = call.part(dict(zip(names, inputs, strict=True)), y)
    return call.make.network.add_plugin_v3(inputs, [], gradient_plugin(network, len(xs))).outputs


Optimizer = Callable[..., tuple[ITensor, ...]]
"""The update of one tensor: takes the tensor, its gradient and its states; returns the tensor and its states."""


def _updated(call: NodeCall, tensors: Sequence[ITensor], states: int, optimizer: Optimizer) -> list[ITensor]:
    """The updates of all tensors: the inputs and the outputs are first all tensors, then all of each further kind."""
    kinds = 2 + states
    require(len(tensors) % kinds == 0, f"the node has {len(tensors)} tensors, and needs {kinds} for each variable")
    count = len(tensors) // kinds
    result = [optimizer(*tensors[number::count]) for number in range(count)]
    return [value for kind in zip(*result, strict=True) for value in kind]


def _regularized(call: NodeCall, x: ITensor, slope: ITensor) -> ITensor:
    """The gradient, with the gradient of the regularization added."""
    return call.make.add(call.make.mul(x, call.attribute("norm_coefficient")), slope)


@operator("Adagrad", domain=TRAINING)
def adagrad(call: NodeCall, rate: ITensor, count: ITensor, *tensors: ITensor) -> list[ITensor]:
    """One step of Adagrad for each variable, with its accumulated squared gradient."""
    make = call.make
    decay = make.add(make.mul(make.cast(count, rate.type.dtype), call.attribute("decay_factor")), 1)
    rate = make.div(rate, decay)

    def step(x: ITensor, slope: ITensor, squares: ITensor) -> tuple[ITensor, ...]:
        slope = _regularized(call, x, slope)
        squares = make.add(squares, make.mul(slope, slope))
        root = make.add(make.unary(UnaryOperation.SQRT, squares), call.attribute("epsilon"))
        return make.sub(x, make.div(make.mul(make.cast(rate, x.type.dtype), slope), root)), squares

    return _updated(call, tensors, 1, step)


@operator("Adam", domain=TRAINING)
def adam(call: NodeCall, rate: ITensor, count: ITensor, *tensors: ITensor) -> list[ITensor]:
    """One step of Adam for each variable, with the running means of its gradient and of the squared gradient."""
    make, alpha, beta = call.make, call.attribute("alpha"), call.attribute("beta")
    first, second = (
        make.sub(1.0, make.power(make.tensor(value, rate), make.cast(count, rate.type.dtype)))
        for value in (alpha, beta)
    )
    corrected = make.div(make.mul(rate, make.unary(UnaryOperation.SQRT, second)), first)
    rate = make.where(make.greater(count, 0), corrected, rate)

    def step(x: ITensor, slope: ITensor, mean: ITensor, square: ITensor) -> tuple[ITensor, ...]:
        slope = _regularized(call, x, slope)
        mean = make.add(make.mul(mean, alpha), make.mul(slope, 1 - alpha))
        square = make.add(make.mul(square, beta), make.mul(make.mul(slope, slope), 1 - beta))
        root = make.add(make.unary(UnaryOperation.SQRT, square), call.attribute("epsilon"))
        x = make.sub(x, make.mul(make.cast(rate, x.type.dtype), make.div(mean, root)))
        return make.mul(x, 1 - call.attribute("norm_coefficient_post")), mean, square

    return _updated(call, tensors, 2, step)


@operator("Momentum", domain=TRAINING)
def momentum(call: NodeCall, rate: ITensor, count: ITensor, *tensors: ITensor) -> list[ITensor]:
    """One step of gradient descent with momentum, standard or Nesterov's, for each variable."""
    make, alpha = call.make, call.attribute("alpha")
    nesterov = call.choice("mode", {"standard": False, "nesterov": True})
    beta = make.where(make.greater(count, 0), np.float32(call.attribute("beta")), np.float32(1))

    def step(x: ITensor, slope: ITensor, speed: ITensor) -> tuple[ITensor, ...]:
        slope = _regularized(call, x, slope)
        speed = make.add(make.mul(speed, alpha), make.mul(make.cast(beta, x.type.dtype), slope))
        way = make.add(slope, make.mul(speed, alpha)) if nesterov else speed
        return make.sub(x, make.mul(make.cast(rate, x.type.dtype), way)), speed

    return _updated(call, tensors, 1, step)
