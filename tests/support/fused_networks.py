"""Random networks of what XLA's CPU compiler computes in one piece: products, element-wise layers and reductions.

Their tensors have thousands of elements, from which on XLA hands such pieces to a library, and many operands are one
number throughout, which XLA may know. The networks are valid by construction, and each output has a bound of what
rounding may change.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import numpy_type
from tests.support.layer_specs import NONE, VECTOR
from tests.support.networks import counted
from tests.support.number_bounds import Bounds, either, is_float, largest, mean, product, rounded, total
from tests.support.tensor_drawing import Act, Op
from tests.support.uniform_operands import SPECIAL, Operands, Shape, sprinkled

TRANSPOSE = trt.MatrixOperation.TRANSPOSE
Reduce = trt.ReduceOperation
TYPES = [*[trt.float32] * 13, trt.float64, trt.float64, trt.bfloat16, trt.bfloat16, trt.float16, trt.int32, trt.int8]
SPECIAL_KINDS = ["none"] * 4 + ["nan"] * 3 + [name for name in SPECIAL if name not in ("none", "nan")]
SIZES = [(3900, 4095), (4096, 4096), (4097, 9000), (4097, 9000), (9000, 40000)]
"""Ranges of the number of elements of a product."""
MOST_ARGUMENTS = 150_000
"""The most elements of an operand, so that a network takes a fraction of a second."""
MOST_POSITIONS = 400
"""The most positions of a pool."""

Flow = Callable[[ITensor], ITensor]


@dataclass
class Fused:
    """A random network of a number.

    Attributes:
        network: the network.
        inputs: the arrays of its inputs, by name.
        bounds: the bounds of its outputs, by name.
        compilations: how often it is compiled: a number that XLA does not write may be right by chance.
    """

    network: trt.INetworkDefinition
    inputs: dict[str, np.ndarray]
    bounds: dict[str, Bounds]
    compilations: int


def fused_network(seed: int) -> Fused:
    """The random network of a number."""
    return FusedGrower(Random(seed)).grow()


class FusedGrower(Operands):
    """Grows a network: a product or a convolution, element-wise layers, and a reduction of what they make.

    Attributes:
        dtype: the element type of its tensors.
        special: the kind of special numbers in its first input.
        outputs: the tensors that are marked.
    """

    def __init__(self, chance: Random) -> None:
        super().__init__(chance)
        self.dtype = self.choose(*TYPES)
        self.special = self.choose(*SPECIAL_KINDS) if is_float(self.dtype) else "none"
        self.outputs: list[ITensor] = []

    def grow(self) -> Fused:
        forms = [self.matrices] * 9 + [self.narrow] * 3 + [self.convolution] * 3 + [self.plain] * 2
        shape, flow = self.choose(*forms)()
        wraps = [self.once] * 12 + [self.iterated, self.accumulated, self.recurrent, self.conditional]
        self.outputs.append(self.choose(*wraps)(shape, flow))
        for tensor in dict.fromkeys(self.outputs):
            self.network.mark_output(tensor)
        bounds = {tensor.name: self.bounds[tensor] for tensor in self.outputs}
        return Fused(self.network, self.inputs, bounds, self.choose(1, 1, 1, 1, 3))

    # ------------------------------------------------------------------ around the network

    def source(self, *shape: int) -> ITensor:
        """The first input, with special numbers; the largest ones do not reach what would overflow."""
        tensor = self.entered(sprinkled(self.numbers(self.dtype, shape), self.special, self.draw))
        if self.special == "largest":
            self.bounds[tensor] = self.bounds[tensor]._replace(size=largest(self.dtype))
        return tensor

    def squeezed(self, tensor: ITensor) -> ITensor:
        if self.special != "largest":
            return tensor
        return self.choose(self.clipped, self.squashed, self.limited)(tensor)

    def whole(self, tensor: ITensor, flow: Flow) -> ITensor:
        """All layers from the source on; XLA keeps a tensor out of a piece if it is also an output."""
        made = flow(self.squeezed(tensor))
        if not self.between(0, 7):
            self.outputs.append(made)
        for _ in range(self.choose(0, 1, 1, 2, 3)):
            made = self.step(made)
        if not self.between(0, 7):
            self.outputs.append(made)
        return self.ending(made)

    def once(self, shape: Shape, flow: Flow) -> ITensor:
        return self.whole(self.source(*shape), flow)

    def inside(self, tensor: ITensor, flow: Flow) -> ITensor:
        """All layers in a loop or a branch, which has one output only."""
        outputs, self.outputs = self.outputs, []
        made = self.whole(tensor, flow)
        self.outputs = outputs
        return made

    def loop_over(self, shape: Shape) -> tuple[trt.ILoop, ITensor, int]:
        """A loop over the first axis of the source, its rows and its number of iterations."""
        times = self.between(2, 3)
        tensor = self.source(times, *shape)
        loop = counted(self.network, times)
        row = loop.add_iterator(tensor, 0, self.coin()).get_output(0)
        return loop, self.bounded(row, self.bounds[tensor]), times

    def iterated(self, shape: Shape, flow: Flow) -> ITensor:
        """The layers for each row, stacked."""
        loop, row, times = self.loop_over(shape)
        made = self.inside(row, flow)
        output = loop.add_loop_output(made, self.choose(trt.LoopOutput.CONCATENATE, trt.LoopOutput.REVERSE), 0)
        output.set_input(1, self.fixed(np.int32(times)))
        return self.bounded(output.get_output(0), self.bounds[made])

    def accumulated(self, shape: Shape, flow: Flow) -> ITensor:
        """The sum over all rows, in a state that begins with one number throughout."""
        loop, row, times = self.loop_over(shape)
        made = self.inside(row, flow)
        first = self.uniform(self.dtype, tuple(made.shape))
        state = loop.add_recurrence(first)
        state.set_input(1, self.combine(state.get_output(0), made, Op.SUM))
        size, unit, error = self.bounds[made]
        most = rounded(self.dtype, times * size, unit, times * error, times)
        output = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
        return self.bounded(output, total(self.dtype, self.bounds[first], most))

    def recurrent(self, shape: Shape, flow: Flow) -> ITensor:
        """A state that is multiplied, added to and squashed, and reduced after the loop.

        Its products are no larger than it is, so that its error grows by as much in each iteration.
        """
        if not is_float(self.dtype):
            return self.accumulated(shape, flow)
        loop, row, times = self.loop_over((self.between(60, 300), self.choose(17, 64)))
        first = self.uniform(self.dtype, tuple(row.shape)) if self.coin() else self.operand(self.dtype, (*row.shape,))
        state = loop.add_recurrence(self.tamed(first, 1))
        now = self.bounded(state.get_output(0), rounded(self.dtype, 1, 0, self.bounds[state.get_input(0)].error))
        kernel = self.tamed(self.operand(self.dtype, (row.shape[1],) * 2), 1 / row.shape[1])
        mixed = self.multiplied(now, NONE, kernel, NONE)
        added = self.combine(mixed, self.squeezed(row), Op.SUM)
        state.set_input(1, self.network.add_activation(added, self.choose(Act.TANH, Act.SOFTSIGN)).get_output(0))
        output = loop.add_loop_output(now, trt.LoopOutput.LAST_VALUE).get_output(0)
        error = times * (self.bounds[mixed].error + rounded(self.dtype, 5, 0, 0, 8).error)
        return self.ending(self.step(self.bounded(output, Bounds(1, 0, error))))

    def conditional(self, shape: Shape, flow: Flow) -> ITensor:
        """The layers in one branch, and one number throughout in the other."""
        flag = self.network.add_input("flag", trt.bool, ())
        self.inputs["flag"] = np.array(self.between(0, 3) > 0)
        tensor = self.source(*shape)
        conditional = self.network.add_if_conditional()
        conditional.set_condition(flag)
        entered = self.bounded(conditional.add_input(tensor).get_output(0), self.bounds[tensor])
        made = self.inside(entered, flow)
        other = self.uniform(self.dtype, tuple(made.shape))
        bounds = either(self.bounds[made], self.bounds[other])
        return self.bounded(conditional.add_output(made, other).get_output(0), bounds)

    # ------------------------------------------------------------------ products

    def elements(self) -> int:
        return self.between(*self.choose(*SIZES))

    def plain(self) -> tuple[Shape, Flow]:
        """No product."""
        columns = self.choose(3, 16, 64, 65, 128)
        rows = -(-self.elements() // columns)
        shapes = [(rows, columns), (rows, columns), (columns, rows), (2, 4, -(-rows // 8), columns)]
        return self.choose(*shapes), lambda tensor: tensor

    def matrices(self) -> tuple[Shape, Flow]:
        """A product of matrices, some of them in batches, the source on either side."""
        batch = self.choose((), (), (), (self.between(2, 8),))
        columns = self.choose(1, 2, 3, 8, 16, 17, 64, 65, 128)
        rows = -(-self.elements() // columns // prod(batch))
        length = self.choose(*(number for number in (2, 3, 5, 8, 16, 17, 64, 65) if number * rows <= MOST_ARGUMENTS))
        op_x, op = self.choose(NONE, NONE, NONE, TRANSPOSE), self.choose(NONE, NONE, TRANSPOSE)
        is_left = self.between(0, 4) > 0

        def flow(tensor: ITensor) -> ITensor:
            shared = batch if self.coin() else (1,) * len(batch)
            is_as_is = (op is NONE) == is_left
            other = self.operand(self.dtype, (*shared, *((length, columns) if is_as_is else (columns, length))))
            sides = (tensor, op_x, other, op) if is_left else (other, op, tensor, op_x)
            return self.multiplied(*sides)

        return (*batch, *((rows, length) if (op_x is NONE) == is_left else (length, rows))), flow

    def narrow(self) -> tuple[Shape, Flow]:
        """A product of a small matrix, or a vector, and many rows of a few numbers."""
        rows = self.between(*self.choose((4097, 32768), (32769, 50000), (32769, 50000)))
        length, height = self.choose(2, 3, 3, 3, 3, 4), self.choose(2, 3, 3, 3, 5)

        def flow(tensor: ITensor) -> ITensor:
            form = self.between(0, 5)
            if form == 0:
                return self.multiplied(tensor, NONE, self.operand(self.dtype, (length,)), VECTOR)
            small = self.operand(self.dtype, (height, length))
            sides = (tensor, NONE, small, TRANSPOSE) if form == 1 else (small, NONE, tensor, TRANSPOSE)
            return self.multiplied(*sides)

        return (rows, length), flow

    def multiplied(self, a: ITensor, op_a: Any, b: ITensor, op_b: Any) -> ITensor:
        length = a.shape[-1] if op_a is not TRANSPOSE else a.shape[-2]
        bounds = product(a.dtype, self.bounds[a], self.bounds[b], length)
        return self.bounded(self.network.add_matrix_multiply(a, op_a, b, op_b).get_output(0), bounds)

    def convolution(self) -> tuple[Shape, Flow]:
        """A convolution of 1x1, 1x3 or 3x3, some of them in groups, its kernel weights or a tensor."""
        window, side = self.choose(((1, 1), 16), ((1, 1), 8), ((1, 3), 12), ((3, 3), 8))
        channels, groups = self.choose((3, 1), (8, 1), (16, 1), (16, 2), (4, 4), (64, 1))
        maps = groups * self.choose(*(number for number in (1, 4, 8, 16, 17, 64) if number * groups <= 64))
        batch = min(4, -(-self.elements() // (maps * side * side)))

        def flow(tensor: ITensor) -> ITensor:
            shape = (maps, channels // groups, *window)
            layer = self.network.add_convolution_nd(tensor, maps, window, self.numbers(self.dtype, shape))
            kernel = self.bounds[self.fixed(layer.kernel)] if not self.between(0, 3) else self.kernel(layer, shape)
            layer.num_groups = groups
            layer.padding_nd = tuple(value // 2 for value in window) if self.coin() else (0, 0)
            bounds = product(tensor.dtype, self.bounds[tensor], kernel, prod(shape[1:]))
            return self.bounded(layer.get_output(0), bounds)

        return (batch, channels, side, side), flow

    def kernel(self, layer: trt.IConvolutionLayer, shape: Shape) -> Bounds:
        """Give a convolution a tensor as its kernel."""
        tensor = self.operand(self.dtype, shape)
        layer.kernel = trt.Weights()
        layer.set_input(1, tensor)
        return self.bounds[tensor]

    # ------------------------------------------------------------------ element-wise layers

    def step(self, tensor: ITensor) -> ITensor:
        steps: list[Flow] = [
            self.biased, self.biased, self.rectified, self.rectified, self.squared, self.compared, self.compared,
            self.with_a_number, self.negated, self.doubled,
        ]  # fmt: skip
        if is_float(self.dtype):
            steps += [self.squashed, self.clipped, self.exponential, self.bent, self.through_another_type]
        return self.choose(*steps)(self.tamed(tensor, 1000))

    def bias(self, tensor: ITensor) -> ITensor:
        """A tensor that is added to another one: of its shape, or of length 1 along some axes."""
        if not self.between(0, 3):
            return self.operand(self.dtype, (*tensor.shape,))
        axis = self.axis(tensor)
        return self.operand(self.dtype, tuple(length if at == axis else 1 for at, length in enumerate(tensor.shape)))

    def biased(self, tensor: ITensor) -> ITensor:
        other = self.bias(tensor)
        bounds = total(self.dtype, self.bounds[tensor], self.bounds[other])
        return self.bounded(self.combine(tensor, other, self.choose(Op.SUM, Op.SUB)), bounds)

    def with_a_number(self, tensor: ITensor) -> ITensor:
        """The tensor times, plus or compared with a number that is a tensor of one element."""
        one = self.argument(self.number(self.dtype).reshape((1,) * len(tensor.shape)))
        op = self.choose(Op.PROD, Op.SUM, Op.MAX, Op.MIN)
        rule = {Op.PROD: product, Op.SUM: total}.get(op, lambda dtype, *bounds: either(*bounds))
        sides = (tensor, one) if self.coin() else (one, tensor)
        return self.bounded(self.combine(*sides, op), rule(self.dtype, self.bounds[tensor], self.bounds[one]))

    def squared(self, tensor: ITensor) -> ITensor:
        tensor = self.tamed(tensor, 64)
        bounds = product(self.dtype, self.bounds[tensor], self.bounds[tensor])
        return self.bounded(self.combine(tensor, tensor, Op.PROD), bounds)

    def compared(self, tensor: ITensor) -> ITensor:
        """The larger or the smaller of the tensor and another one, or its own negative."""
        other = self.bias(tensor) if self.between(0, 3) else self.negated(tensor)
        sides = (tensor, other) if self.coin() else (other, tensor)
        made = self.combine(*sides, self.choose(Op.MAX, Op.MIN))
        return self.bounded(made, either(self.bounds[tensor], self.bounds[other]))

    def limited(self, tensor: ITensor) -> ITensor:
        """The tensor between two numbers, by element-wise layers."""
        ends = [self.fixed(np.full((1,) * len(tensor.shape), number, numpy_type(self.dtype))) for number in (4, -4)]
        made = self.combine(self.combine(tensor, ends[0], Op.MIN), ends[1], Op.MAX)
        return self.bounded(made, self.bounds[tensor]._replace(size=4))

    def clipped(self, tensor: ITensor) -> ITensor:
        size, unit, error = self.bounds[tensor]
        most = self.choose(1, 2, 4)
        return self.bounded(self.clip(tensor, -most, most), Bounds(min(size, most), min(unit, 1), error))

    def squashed(self, tensor: ITensor) -> ITensor:
        """At most 1."""
        kind = self.choose(Act.TANH, Act.SIGMOID, Act.HARD_SIGMOID, Act.SOFTSIGN)
        layer = self.network.add_activation(tensor, kind)
        layer.alpha, layer.beta = 0.25, 0.5
        return self.bounded(layer.get_output(0), rounded(self.dtype, 1, 0, self.bounds[tensor].error, 8))

    def bent(self, tensor: ITensor) -> ITensor:
        """An activation that leaves large numbers about as large."""
        size, _, error = self.bounds[tensor]
        layer = self.network.add_activation(tensor, self.choose(Act.LEAKY_RELU, Act.ELU, Act.SOFTPLUS, Act.GELU_TANH))
        layer.alpha, layer.beta = 0.5, 1.0
        return self.bounded(layer.get_output(0), rounded(self.dtype, size + 1, 0, 2 * error, 8))

    # ------------------------------------------------------------------ reductions

    def ending(self, tensor: ITensor) -> ITensor:
        """A reduction, or what else XLA computes together with what is before it."""
        if not self.between(0, 7):
            tensor = self.moved(tensor)
        endings: list[Flow] = [self.reduced] * 10 + [self.second_product, self.second_product]
        if is_float(self.dtype):
            endings += [self.softmax, self.pooled, self.pooled]
        made = self.choose(*endings)(self.tamed(tensor, 1000))
        return self.reduced(made) if not self.between(0, 3) and prod(made.shape) > 1 else made

    def moved(self, tensor: ITensor) -> ITensor:
        """The tensor transposed, or a part of it."""
        if len(tensor.shape) < 2:
            return tensor
        if self.coin():
            return self.transposed(tensor)
        shape = (*tensor.shape[:-2], tensor.shape[-2] - 1, tensor.shape[-1])
        start = (0,) * (len(shape) - 2) + (1, 0)
        return tensor if shape[-2] < 1 else self.window(tensor, start, shape, (1,) * len(shape))

    def axes(self, tensor: ITensor) -> list[int]:
        number = self.choose(1, 1, 1, 2)
        return self.chance.sample(range(len(tensor.shape)), min(number, len(tensor.shape)))

    def reduced(self, tensor: ITensor) -> ITensor:
        axes = self.axes(tensor)
        length = prod(tensor.shape[axis] for axis in axes)
        ops = [*[Reduce.SUM] * 5, *([Reduce.AVG] * 4 + [Reduce.PROD] if is_float(self.dtype) else []), Reduce.MAX]
        op = self.choose(*ops, Reduce.MIN)
        if op is Reduce.PROD and self.special == "infinite":
            op = Reduce.SUM  # an infinity times what rounds to 0 is NaN, and the order decides what rounds to 0
        tensor = self.ready_for(op, tensor, length)
        keeps = self.coin() or len(axes) == len(tensor.shape)  # no scalars: nothing is left to reduce in them
        layer = self.network.add_reduce(tensor, op, sum(1 << axis for axis in axes), keeps)
        return self.bounded(layer.get_output(0), self.bounds_of_reduced(op, self.bounds[tensor], length))

    def ready_for(self, op: trt.ReduceOperation, tensor: ITensor, length: int) -> ITensor:
        """The tensor, with numbers whose sums or products do not overflow."""
        if op is Reduce.PROD:
            return self.tamed(tensor, 1)
        return self.tamed(tensor, largest(self.dtype) / length / 4) if is_float(self.dtype) else tensor

    def bounds_of_reduced(self, op: trt.ReduceOperation, bounds: Bounds, length: int) -> Bounds:
        if op is Reduce.SUM:
            return product(self.dtype, bounds, Bounds(1, 1), length)
        if op is Reduce.AVG:
            return mean(self.dtype, bounds, length)
        if op is Reduce.PROD:
            return rounded(self.dtype, bounds.size, 0, length * bounds.error, length)
        return bounds

    def softmax(self, tensor: ITensor) -> ITensor:
        tensor = self.tamed(tensor, 4)
        layer = self.network.add_softmax(tensor)
        layer.axes = 1 << self.axis(tensor)
        return self.bounded(layer.get_output(0), rounded(self.dtype, 1, 0, 2 * self.bounds[tensor].error, 12))

    def pooled(self, tensor: ITensor) -> ITensor:
        """A pool of some positions only, because the reference visits them one by one."""
        width = tensor.shape[-1]
        if width > MOST_POSITIONS:
            return self.reduced(tensor)
        channels = prod(tensor.shape[:-1])
        height = self.choose(
            *(number for number in (1, 2, 3, 4, 8) if channels % number == 0 and number * width <= MOST_POSITIONS)
        )
        image = self.shaped(tensor, 1, channels // height, height, width)
        kind = self.choose(trt.PoolingType.MAX, trt.PoolingType.AVERAGE, trt.PoolingType.AVERAGE)
        window = tuple(min(length, self.choose(1, 2, 2, 3)) for length in image.shape[2:])
        layer = self.network.add_pooling_nd(image, kind, window)
        layer.stride_nd = window if self.coin() else (1, 1)
        bounds = self.bounds[image]
        made = bounds if kind is trt.PoolingType.MAX else mean(self.dtype, bounds, prod(window))
        return self.bounded(layer.get_output(0), made)

    def second_product(self, tensor: ITensor) -> ITensor:
        if len(tensor.shape) < 2 or tensor.shape[-1] > 1000:
            return self.reduced(tensor)
        tensor = self.tamed(tensor, 64)
        columns = self.choose(1, 3, 16, 64)
        batch = (1,) * (len(tensor.shape) - 2)
        return self.multiplied(tensor, NONE, self.operand(self.dtype, (*batch, tensor.shape[-1], columns)), NONE)


# ---------------------------------------------------------------------------- comparison


def wrong_numbers(fused: Fused, **options: Any) -> str:
    """The first wrong numbers of engines of a network, and its listing; empty if all are right."""
    with np.errstate(all="ignore"):
        meant = trt.evaluate(fused.network, fused.inputs)
    for number in range(fused.compilations):
        got = trt.compile(fused.network, **options)(fused.inputs)
        wrong = [differences(name, got[name], array, fused.bounds[name]) for name, array in meant.items()]
        if any(wrong):
            lines = [f"compilation {number + 1} of {fused.compilations}", *filter(None, wrong), str(fused.network)]
            return "\n".join([*lines, *(f"{name}: {array.dtype}{array.shape}" for name, array in fused.inputs.items())])
    return ""


def differences(name: str, got: Any, meant: np.ndarray, bounds: Bounds) -> str:
    """A line for some elements that differ by more than their bound; empty if there are none."""
    a, b = np.asarray(got).astype(np.float64), meant.astype(np.float64)
    assert (a.shape, np.asarray(got).dtype) == (b.shape, meant.dtype)
    tiny = float(np.finfo(np.float32).tiny)
    off = bounds.error + tiny
    with np.errstate(invalid="ignore"):
        is_right = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= off)
    places = np.argwhere(~is_right)
    lines = [f"  {[*map(int, at)]}: {a[tuple(at)]:.9g} instead of {b[tuple(at)]:.9g}" for at in places[:3]]
    head = f"output {name!r} is wrong at {len(places)} of {a.size} elements; it may be off by {off:.3g}"
    return "\n".join([head, *lines]) if len(places) else ""
