"""Recipes of what single passes look for and other recipes do not have: corners for networks that engines improve.

Each takes a tensor, on which its result depends. Their numbers are whole, or fractions of two, so that all arithmetic
is exact; those of recurrent layers are rough.
"""

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from tests.support.corner_recipes import Corner, product
from tests.support.layer_specs import Kinds
from tests.support.networks import counted, counter, last, stacked
from tests.support.tensor_drawing import Act, Op

PASS_CORNERS: list[Corner] = []
WEIGHT = 1 / 8
"""The largest weight of a recurrent layer: with 8 units or fewer, differences of its states do not grow."""


def draws(corner: Corner) -> Corner:
    PASS_CORNERS.append(corner)
    return corner


def rows(grow: Kinds, tensor: ITensor, trips: int, *shape: int) -> ITensor:
    """Rows of whole numbers, of which all depend on a tensor."""
    values = grow.constant(trt.float32, (trips, *shape))
    return grow.tame(grow.combine(values, grow.one(tensor, values), Op.SUM))


# ---------------------------------------------------------------------------- recurrent layers


def weights(grow: Kinds, *shape: int) -> ITensor:
    numbers = grow.array(trt.float32, shape, -1, 1)
    return grow.fixed(np.float32(WEIGHT) * numbers)


def gate(grow: Kinds, x: ITensor, state: ITensor, kind: Act) -> ITensor:
    """An activation of the sum of the products of an input and a state, and mostly a bias."""
    units = state.shape[-1]
    parts = [product(grow, x, weights(grow, x.shape[-1], units)), product(grow, state, weights(grow, units, units))]
    total = grow.combine(*parts, Op.SUM)
    if grow.between(0, 3):
        total = grow.combine(total, weights(grow, 1, units), grow.choose(Op.SUM, Op.SUB))
    return grow.network.add_activation(total, kind).get_output(0)


def next_state(grow: Kinds, x: ITensor, state: ITensor) -> ITensor:
    """The next state of a simple recurrent layer, or one that forgets by a gate, as a GRU does."""
    new = gate(grow, x, state, grow.choose(Act.TANH, Act.SIGMOID, Act.SOFTSIGN))
    if grow.coin():
        return new
    kept = gate(grow, x, state, Act.SIGMOID)
    replaced = grow.combine(grow.filled(kept, 1), kept, Op.SUB)
    return grow.combine(grow.combine(kept, state, Op.PROD), grow.combine(replaced, new, Op.PROD), Op.SUM)


@draws
def recurrent_layer(grow: Kinds, tensor: ITensor) -> ITensor:
    """The states of a recurrent layer, in either direction, or its last one."""
    trips, batch, units = grow.between(1, 5), grow.between(1, 3), grow.between(2, 8)
    loop = counted(grow.network, trips)
    x = loop.add_iterator(grow.soft(grow.small(rows(grow, tensor, trips, batch, grow.between(1, 4)))), 0, grow.coin())
    state = loop.add_recurrence(weights(grow, batch, units))
    state.set_input(1, next_state(grow, x.get_output(0), state.get_output(0)))
    if grow.coin():
        return grow.roughen(last(loop, state.get_output(0)))
    kind = grow.choose(trt.LoopOutput.CONCATENATE, trt.LoopOutput.REVERSE)
    leaving = grow.choose(state.get_output(0), state.inputs[1])
    return grow.roughen(stacked(loop, leaving, grow.fixed(np.int32(trips)), kind=kind))


@draws
def recurrent_step(grow: Kinds, tensor: ITensor) -> ITensor:
    """A recurrent layer in a loop whose number of iterations its own values decide."""
    trips, units = grow.between(1, 5), grow.between(2, 8)
    loop = grow.network.add_loop()
    now = counter(grow.network, loop)
    x = loop.add_iterator(grow.soft(grow.small(rows(grow, tensor, trips, 1, units))), 0)
    end = grow.combine(grow.reshape(grow.one(tensor, now), 1), grow.fixed(np.int32([trips])), Op.MIN)
    loop.add_trip_limit(grow.combine(now, grow.reshape(end, *now.shape), Op.LESS), trt.TripLimit.WHILE)
    state = loop.add_recurrence(weights(grow, 1, units))
    state.set_input(1, next_state(grow, x.get_output(0), state.get_output(0)))
    return grow.roughen(last(loop, state.get_output(0)))


# ---------------------------------------------------------------------------- loops


@draws
def running_values(grow: Kinds, tensor: ITensor) -> ITensor:
    """Running sums, largest numbers and what follows from both, element by element."""
    trips, shape = grow.between(1, 6), grow.choose((5,), (17,), (2, 3))
    loop = counted(grow.network, trips)
    x = loop.add_iterator(rows(grow, tensor, trips, *shape), 0, grow.coin()).get_output(0)
    total, most = (loop.add_recurrence(grow.constant(trt.float32, shape)) for _ in range(2))
    total.set_input(1, grow.combine(total.get_output(0), x, grow.choose(Op.SUM, Op.SUB)))
    most.set_input(1, grow.combine(most.get_output(0), total.inputs[1], grow.choose(Op.MAX, Op.MIN)))
    leaving = grow.choose(total.get_output(0), total.inputs[1], most.get_output(0), most.inputs[1])
    return grow.tame(stacked(loop, leaving, grow.fixed(np.int32(trips))))


def sliced(grow: Kinds, x: ITensor, start: ITensor, size: ITensor) -> ITensor:
    """Rows of a matrix from one on, numbers int64[]."""
    layer = grow.network.add_slice(x, (0,), (0,), (1,))
    layer.axes = (0,)
    layer.set_input(1, grow.reshape(start, 1))
    layer.set_input(2, grow.reshape(size, 1))
    return layer.get_output(0)


def reduced(grow: Kinds, x: ITensor) -> ITensor:
    """Sums, or largest numbers, of the columns of rows."""
    op = grow.choose(trt.ReduceOperation.SUM, trt.ReduceOperation.MAX)
    return grow.network.add_reduce(x, op, 1, False).get_output(0)


@draws
def chunks(grow: Kinds, tensor: ITensor) -> ITensor:
    """A sum of each of some chunks of rows, as long as a chunk or what is left for it."""
    trips, size = grow.between(1, 4), grow.between(1, 3)
    x, loop = rows(grow, tensor, trips * size, 2), counted(grow.network, trips, np.int64)
    most = grow.fixed(np.int64(size))
    start = grow.combine(counter(grow.network, loop, 0, np.int64), most, Op.PROD)
    left = grow.combine(grow.fixed(np.int64(trips * size)), start, Op.SUB)
    chunk = sliced(grow, x, start, grow.combine(left, most, Op.MIN))
    return grow.tame(stacked(loop, reduced(grow, chunk), grow.fixed(np.int64(trips))))


@draws
def bags(grow: Kinds, tensor: ITensor) -> ITensor:
    """A sum of each of some bags of rows, whose ends only a run knows."""
    trips, length = grow.between(1, 4), grow.between(2, 6)
    x, loop = rows(grow, tensor, length, 2), counted(grow.network, trips)
    shift = grow.cast(grow.one(tensor, grow.fixed(np.int64(0))), trt.int64)
    numbers = grow.fixed(grow.array(trt.int64, (2, trips), 0, length))
    starts, ends = (grow.part(numbers, 0, at, 1) for at in range(2))
    start, end = (
        limited(grow, loop.add_iterator(grow.reshape(side, trips)).get_output(0), shift, length)
        for side in (starts, ends)
    )
    size = grow.combine(grow.combine(end, start, Op.SUB), grow.fixed(np.int64(0)), Op.MAX)
    return grow.tame(stacked(loop, reduced(grow, sliced(grow, x, start, size)), grow.fixed(np.int32(trips))))


def limited(grow: Kinds, number: ITensor, shift: ITensor, length: int) -> ITensor:
    """A number plus another one, from 0 to a length."""
    moved = grow.combine(grow.combine(number, shift, Op.SUM), grow.fixed(np.int64(0)), Op.MAX)
    return grow.combine(moved, grow.fixed(np.int64(length)), Op.MIN)


@draws
def list_of_rows(grow: Kinds, tensor: ITensor) -> ITensor:
    """A list of the states of a loop, joined."""
    trips = grow.between(1, 5)
    loop, network = counted(grow.network, trips), grow.network
    state = loop.add_recurrence(rows(grow, tensor, 2, 2))
    state.set_input(1, grow.tame(grow.combine(state.get_output(0), grow.constant(trt.float32, (1, 2)), Op.SUM)))
    listed = loop.add_recurrence(network.add_sequence([], trt.float32).get_output(0))
    listed.keeps_shape = False
    listed.set_input(1, network.add_sequence_insert(listed.get_output(0), state.get_output(0)).get_output(0))
    return network.add_sequence_concatenation(last(loop, listed.get_output(0)), 0, grow.coin()).get_output(0)


# ---------------------------------------------------------------------------- convolutions


def convolved(grow: Kinds, x: ITensor, kernel: ITensor, groups: int = 1, pad: int = 0) -> ITensor:
    maps, _, *window = kernel.shape
    layer = grow.network.add_convolution_nd(x, maps, window, trt.Weights(trt.float32))
    layer.set_input(1, kernel)
    layer.num_groups, layer.padding_nd = groups, (pad, pad)
    return layer.get_output(0)


@draws
def windows_of_three(grow: Kinds, tensor: ITensor) -> ITensor:
    """A convolution by windows of 3 x 3, on images of any size."""
    channels, maps, pad = grow.between(1, 3), grow.between(1, 3), grow.between(0, 1)
    images = rows(grow, tensor, grow.between(1, 2), channels, grow.between(3, 6), grow.between(3, 6))
    return grow.tame(convolved(grow, grow.small(images), grow.constant(trt.float32, (maps, channels, 3, 3)), pad=pad))


def quantized(grow: Kinds, x: ITensor, scale: float) -> ITensor:
    """A tensor quantized and dequantized."""
    step = grow.fixed(np.float32(scale))
    whole = grow.network.add_quantize(x, step, trt.int8).get_output(0)
    return grow.network.add_dequantize(whole, step, trt.float32).get_output(0)


def dequantized(grow: Kinds, *shape: int) -> ITensor:
    """Quantized weights."""
    return grow.network.add_dequantize(
        grow.constant(trt.int8, shape), grow.fixed(np.float32(0.5)), trt.float32
    ).get_output(0)


@draws
def quantized_products(grow: Kinds, tensor: ITensor) -> ITensor:
    """A quantized product behind a quantized convolution of single channels, after which channels are last."""
    channels, maps = grow.between(2, 4), grow.between(1, 3)
    images = grow.small(rows(grow, tensor, 1, channels, 3, grow.between(3, 4)))
    by_channel = convolved(grow, quantized(grow, images, 0.5), dequantized(grow, channels, 1, 3, 3), channels, 1)
    return grow.tame(convolved(grow, quantized(grow, by_channel, 1), dequantized(grow, maps, channels, 1, 1)))
