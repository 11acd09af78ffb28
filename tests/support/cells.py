"""Recurrent networks as a user writes them: a product for each gate, and a slice of the input in each iteration."""

from collections.abc import Callable

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from tests.support.networks import CONCATENATE, Op, cast, combine, constant, counted, counter, last, mark, stacked

PLAIN, TRANSPOSE, VECTOR = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE, trt.MatrixOperation.VECTOR
SIGMOID, TANH = trt.ActivationType.SIGMOID, trt.ActivationType.TANH
Gate = Callable[[ITensor, ITensor], ITensor]


def weights(network: trt.INetworkDefinition, *shape: int) -> ITensor:
    """Random weights that depend on the network so far only, and not on what other tests drew."""
    drawn = np.random.default_rng(network.num_layers).standard_normal(shape)
    return constant(network, (drawn / np.sqrt(shape[0])).astype(np.float32))


def product(network: trt.INetworkDefinition, a: ITensor, b: ITensor) -> ITensor:
    return network.add_matrix_multiply(a, PLAIN, b, PLAIN).get_output(0)


def activation(network: trt.INetworkDefinition, x: ITensor, type: trt.ActivationType) -> ITensor:
    return network.add_activation(x, type).get_output(0)


def affine(network: trt.INetworkDefinition, x: ITensor, h: ITensor, size: int) -> ITensor:
    """x W + h U + b, with new weights."""
    from_x = product(network, x, weights(network, x.shape[1], size))
    from_h = product(network, h, weights(network, h.shape[1], size))
    return combine(network, combine(network, from_x, from_h), weights(network, 1, size))


def lstm(trips: int = 5, batch: int = 1, inputs: int = 4, size: int = 3) -> trt.INetworkDefinition:
    """y: the outputs of an LSTM over x[trips, batch, inputs]; c: its last cell."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    x = loop.add_iterator(network.add_input("x", trt.float32, (trips, batch, inputs))).get_output(0)
    zeros = constant(network, np.zeros((batch, size), np.float32))
    h, c = loop.add_recurrence(zeros), loop.add_recurrence(zeros)
    i, f, o = (activation(network, affine(network, x, h.get_output(0), size), SIGMOID) for _ in range(3))
    g = activation(network, affine(network, x, h.get_output(0), size), TANH)
    kept = combine(network, f, c.get_output(0), Op.PROD)
    cell = combine(network, kept, combine(network, i, g, Op.PROD))
    output = combine(network, o, activation(network, cell, TANH), Op.PROD)
    h.set_input(1, output)
    c.set_input(1, cell)
    length = constant(network, trips, np.int32)
    return mark(network, y=stacked(loop, output, length, CONCATENATE), c=last(loop, c.get_output(0)))


def gru(trips: int = 5, batch: int = 2, inputs: int = 4, size: int = 3) -> trt.INetworkDefinition:
    """y: the outputs of a GRU over x[trips, batch, inputs], each multiplied by a matrix, which no state needs."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    x = loop.add_iterator(network.add_input("x", trt.float32, (trips, batch, inputs))).get_output(0)
    h = loop.add_recurrence(constant(network, np.zeros((batch, size), np.float32)))
    before = h.get_output(0)
    z, r = (activation(network, affine(network, x, before, size), SIGMOID) for _ in range(2))
    of_x, of_h = (product(network, tensor, weights(network, tensor.shape[1], size)) for tensor in (x, before))
    n = activation(network, combine(network, of_x, combine(network, r, of_h, Op.PROD)), TANH)
    changed = combine(network, z, combine(network, before, n, Op.SUB), Op.PROD)
    after = combine(network, n, changed)
    h.set_input(1, after)
    seen = product(network, after, weights(network, size, 2))
    seen = combine(network, seen, x) if inputs == 2 else seen
    return mark(network, y=stacked(loop, seen, constant(network, trips, np.int32), axis=1))


def heads() -> trt.INetworkDefinition:
    """Products of one operand outside of loops, from the left, from the right and of vectors, and sums of them."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (4, 4))
    right = [product(network, x, weights(network, 4, size)) for size in (2, 3, 2)]
    left = [product(network, weights(network, size, 4), x) for size in (2, 3)]
    v = network.add_input("v", trt.float32, (4,))
    of_v = [network.add_matrix_multiply(v, VECTOR, weights(network, 4, 3), PLAIN).get_output(0) for _ in range(2)]
    summed = combine(network, right[0], right[2])
    outputs = {"a": summed, "b": right[1], "c": left[0], "d": combine(network, left[1], 2.0, Op.PROD)}
    return mark(network, **outputs, e=combine(network, *of_v, Op.PROD))


def by_number(start: int = 1, trips: int = 3) -> trt.INetworkDefinition:
    """y: the sum of rows of x[5, 2] at a counter, times rows at another counter with the same start.

    n: the other counter.
    """
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (5, 2))
    loop = counted(network, trips)
    one, other = counter(network, loop, start), counter(network, loop, start)
    row = network.add_gather(x, one, 0).get_output(0)
    shuffle = network.add_shuffle(combine(network, other, 1))
    shuffle.reshape_dims = (1,)
    column = network.add_gather(x, cast(network, shuffle.get_output(0), trt.int64), 0).get_output(0)
    state = loop.add_recurrence(constant(network, np.zeros((1, 2), np.float32)))
    scaled = network.add_unsqueeze(row, constant(network, [0], np.int32)).get_output(0)
    state.set_input(1, combine(network, state.get_output(0), combine(network, scaled, column, Op.PROD)))
    return mark(network, y=last(loop, state.get_output(0)), n=last(loop, other))


def written(trips: int = 3, rows: int = 3, start: int = 0, reads: bool = False) -> trt.INetworkDefinition:
    """y: a buffer[rows, 2] of which each iteration writes a row at a counter: the sum of the rows of x[5, 2] so far.

    With ``reads`` the written row depends on the buffer too.
    """
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (5, 2))
    loop = counted(network, trips)
    place = network.add_shuffle(counter(network, loop, start))
    place.reshape_dims = (1, 1)
    total = loop.add_recurrence(constant(network, np.zeros(2, np.float32)))
    row = combine(network, total.get_output(0), loop.add_iterator(x).get_output(0))
    total.set_input(1, row)
    buffer = loop.add_recurrence(constant(network, np.full((rows, 2), 7, np.float32)))
    if reads:
        second = network.add_gather(buffer.get_output(0), constant(network, 1, np.int32), 0).get_output(0)
        row = combine(network, row, second)
    update = network.add_shuffle(row)
    update.reshape_dims = (1, 2)
    scatter = network.add_scatter(buffer.get_output(0), place.get_output(0), update.get_output(0), trt.ScatterMode.ND)
    buffer.set_input(1, scatter.get_output(0))
    return mark(network, y=last(loop, buffer.get_output(0)))


def read_once_more(start: int = 1, trips: int = 3) -> trt.INetworkDefinition:
    """y: the row of x[5, 2] at a counter after the last iteration."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    row = network.add_gather(network.add_input("x", trt.float32, (5, 2)), counter(network, loop, start), 0)
    return mark(network, y=last(loop, row.get_output(0)))


def kept(trips: int = 4) -> trt.INetworkDefinition:
    """k: a constant state, x; a, b: two swapped states that are always equal; z: zero."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    loop = counted(network, trips)
    same = loop.add_recurrence(x)
    same.set_input(1, network.add_identity(same.get_output(0)).get_output(0))
    zero = constant(network, np.zeros(2, np.float32))
    a, b = loop.add_recurrence(zero), loop.add_recurrence(zero)
    a.set_input(1, combine(network, b.get_output(0), same.get_output(0)))
    b.set_input(1, combine(network, a.get_output(0), same.get_output(0)))
    third = loop.add_recurrence(zero)
    third.set_input(1, combine(network, third.get_output(0), zero))
    outputs = {"a": a, "b": b, "k": same, "z": third}
    return mark(network, **{name: last(loop, recurrence.get_output(0)) for name, recurrence in outputs.items()})


def noisy(trips: int = 3) -> trt.INetworkDefinition:
    """y: random numbers of each iteration, with the shape of a constant state."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    same = loop.add_recurrence(network.add_input("x", trt.float32, (2,)))
    same.set_input(1, same.get_output(0))
    noise = network.add_fill((), trt.FillOperation.RANDOM_UNIFORM, trt.float32)
    noise.set_input(0, network.add_shape(same.get_output(0)).get_output(0))
    return mark(network, y=stacked(loop, noise.get_output(0), constant(network, trips, np.int32), CONCATENATE))


def embedded(rows: int | None = 2, trips: int = 3) -> trt.INetworkDefinition:
    """y: a sum of two products of the embeddings of tokens; of a single one if ``rows`` is None."""
    network = trt.INetworkDefinition()
    shape = () if rows is None else (rows,)
    tokens = network.add_input("tokens", trt.int32, (trips, *shape))
    loop = counted(network, trips)
    token = loop.add_iterator(tokens).get_output(0)
    read = network.add_gather(weights(network, 6, 4), token, 0).get_output(0)
    op = VECTOR if rows is None else PLAIN
    products = [network.add_matrix_multiply(read, op, weights(network, 4, 3), PLAIN).get_output(0) for _ in range(2)]
    both = combine(network, *products, Op.PROD)
    state = loop.add_recurrence(constant(network, np.zeros((*shape, 3), np.float32)))
    state.set_input(1, combine(network, state.get_output(0), both))
    return mark(network, y=last(loop, state.get_output(0)))


def attention(trips: int = 3) -> trt.INetworkDefinition:
    """y, z: sums along the last axis of the products of a state and a row of x[trips, 1, 4], in either order."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    x = loop.add_iterator(network.add_input("x", trt.float32, (trips, 1, 4))).get_output(0)
    state = loop.add_recurrence(weights(network, 3, 4))
    after = combine(network, state.get_output(0), x)
    state.set_input(1, after)
    products = combine(network, after, x, Op.PROD), combine(network, x, after, Op.PROD)
    kept, dropped = (
        network.add_reduce(tensor, trt.ReduceOperation.SUM, 0b10, keep).get_output(0)
        for tensor, keep in zip(products, (True, False), strict=True)
    )
    length = constant(network, trips, np.int32)
    return mark(network, y=stacked(loop, kept, length), z=stacked(loop, dropped, length))


def selective(trips: int = 8, batch: int = 2, by_einsum: bool = False) -> trt.INetworkDefinition:
    """y: the outputs of a selective scan with a state [batch, 4, 3] that starts as h0; h: its last state."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    shapes = {"d": (4, 1), "x": (4, 1), "B": (1, 3), "C": (1, 3)}
    inputs = [network.add_input(name, trt.float32, (trips, batch, *shape)) for name, shape in shapes.items()]
    d, x, b, c = (loop.add_iterator(tensor).get_output(0) for tensor in inputs)
    state = loop.add_recurrence(network.add_input("h0", trt.float32, (batch, 4, 3)))
    decay = activation(network, combine(network, d, weights(network, 1, 4, 3), Op.PROD), TANH)
    kept = combine(network, decay, state.get_output(0), Op.PROD)
    both = combine(network, d, x, Op.PROD)
    if by_einsum:
        column, row = (network.add_squeeze(tensor, constant(network, [axis])) for tensor, axis in ((both, 2), (b, 1)))
        outer = network.add_einsum([column.get_output(0), row.get_output(0)], "ab, ac -> abc").get_output(0)
        after = combine(network, kept, outer)
        y = network.add_einsum([after, c], "abc,adc->ab").get_output(0)
    else:
        after = combine(network, kept, combine(network, both, b, Op.PROD))
        read = combine(network, after, c, Op.PROD)
        y = network.add_reduce(read, trt.ReduceOperation.SUM, 0b100, False).get_output(0)
    state.set_input(1, after)
    length = constant(network, trips, np.int32)
    return mark(network, y=stacked(loop, y, length), h=last(loop, state.get_output(0)))


def remembered(trips: int = 3) -> trt.INetworkDefinition:
    """m: a memory [4, 3] to which products of columns and rows are added; u: sums of it; v, w: two products of it.

    All kinds of products and reductions read it, in an inner loop too.
    """
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    x = loop.add_iterator(network.add_input("x", trt.float32, (trips, 4, 1))).get_output(0)
    memory = loop.add_recurrence(weights(network, 4, 3))
    now = memory.get_output(0)
    column = network.add_matrix_multiply(now, PLAIN, weights(network, 1, 3), TRANSPOSE).get_output(0)
    row = network.add_matrix_multiply(x, TRANSPOSE, now, PLAIN).get_output(0)
    most = network.add_reduce(activation(network, now, TANH), trt.ReduceOperation.MAX, 0b10, True).get_output(0)
    added = product(network, combine(network, combine(network, column, most), x), row)
    inner = counted(network, 2)
    total = inner.add_recurrence(now)
    largest = network.add_reduce(total.get_output(0), trt.ReduceOperation.MAX, 0b01, True).get_output(0)
    mean = network.add_reduce(total.get_output(0), trt.ReduceOperation.AVG, 0b11, True).get_output(0)
    total.set_input(1, combine(network, combine(network, total.get_output(0), largest, Op.SUB), mean))
    after = activation(network, combine(network, last(inner, total.get_output(0)), added), TANH)
    memory.set_input(1, after)
    u = network.add_reduce(after, trt.ReduceOperation.SUM, 0b01, False).get_output(0)
    v = network.add_matrix_multiply(now, PLAIN, weights(network, 3), VECTOR).get_output(0)
    length = constant(network, trips, np.int32)
    outputs = {"u": u, "v": v, "w": product(network, now, weights(network, 3, 2))}
    made = {name: stacked(loop, tensor, length) for name, tensor in outputs.items()}
    return mark(network, **made, m=last(loop, now))
