"""Small networks that many tests share, with inputs ``x``, ``n`` ... and outputs as in each docstring."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor

Op = trt.ElementWiseOperation
LAST, CONCATENATE, REVERSE = trt.LoopOutput
COUNT, WHILE = trt.TripLimit


# ---------------------------------------------------------------------------- helpers


def constant(network: trt.INetworkDefinition, value: Any, dtype: Any = None) -> ITensor:
    array = np.ascontiguousarray(value, dtype)
    return network.add_constant(np.shape(value), array).get_output(0)


def combine(network: trt.INetworkDefinition, a: ITensor, b: Any, op: trt.ElementWiseOperation = Op.SUM) -> ITensor:
    """Combine ``a`` with a tensor, or with a number as a constant of its type and rank."""
    if not isinstance(b, ITensor):
        b = constant(network, np.full((1,) * len(a.shape), b, a.type.dtype))
    return network.add_elementwise(a, b, op).get_output(0)


def cast(network: trt.INetworkDefinition, tensor: ITensor, dtype: trt.DataType) -> ITensor:
    return network.add_cast(tensor, dtype).get_output(0)


def last(loop: trt.ILoop, tensor: ITensor) -> ITensor:
    return loop.add_loop_output(tensor, LAST).get_output(0)


def stacked(
    loop: trt.ILoop, tensor: ITensor, length: ITensor, kind: trt.LoopOutput = CONCATENATE, axis: int = 0
) -> ITensor:
    output = loop.add_loop_output(tensor, kind, axis)
    output.set_input(1, length)
    return output.get_output(0)


def mark(network: trt.INetworkDefinition, **tensors: ITensor) -> trt.INetworkDefinition:
    """Name tensors, mark them as outputs, and return the network."""
    for name, tensor in tensors.items():
        tensor.name = name
        network.mark_output(tensor)
    return network


def counted(network: trt.INetworkDefinition, count: Any, dtype: Any = np.int32) -> trt.ILoop:
    """Add a loop with a COUNT, which is a tensor or a number."""
    loop = network.add_loop()
    loop.add_trip_limit(count if isinstance(count, ITensor) else constant(network, count, dtype), COUNT)
    return loop


def counter(network: trt.INetworkDefinition, loop: trt.ILoop, first: int = 0, dtype: Any = np.int32) -> ITensor:
    """The sequence first, first + 1, ..."""
    now = loop.add_recurrence(constant(network, first, dtype))
    now.set_input(1, combine(network, now.get_output(0), 1))
    return now.get_output(0)


# ---------------------------------------------------------------------------- networks


def running_sum(
    trips: int = 3, kind: trt.LoopOutput = LAST, axis: int = 0, length: int | None = None
) -> trt.INetworkDefinition:
    """y: the running sums of the rows of x[5,3], one row per iteration, each after the addition."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (5, 3))
    loop = counted(network, trips)
    total = loop.add_recurrence(constant(network, np.zeros(3, np.float32)))
    new = combine(network, total.get_output(0), loop.add_iterator(x).get_output(0))
    total.set_input(1, new)
    if kind is LAST:
        return mark(network, y=last(loop, total.get_output(0)))
    room = constant(network, max(0, trips) if length is None else length, np.int32)
    return mark(network, y=stacked(loop, new, room, kind, axis))


def newton() -> trt.INetworkDefinition:
    """y: the square root of x, by Newton's steps while the square is off by more than 1e-6; n: their number."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float64, ())
    loop = network.add_loop()
    guess = loop.add_recurrence(x)
    now = guess.get_output(0)
    half = combine(network, combine(network, now, combine(network, x, now, Op.DIV)), 0.5, Op.PROD)
    guess.set_input(1, half)
    off = combine(network, combine(network, now, now, Op.PROD), x, Op.SUB)
    size = network.add_unary(off, trt.UnaryOperation.ABS).get_output(0)
    loop.add_trip_limit(combine(network, size, 1e-6, Op.GREATER), WHILE)
    return mark(network, y=last(loop, now), n=last(loop, counter(network, loop)))


def lstm(batch: int = -1, steps: int = -1) -> trt.INetworkDefinition:
    """y, c: the last states of an LSTM of ones over x[batch, steps, 7] from h0, c0[batch, 5]; hs: all h."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (batch, steps, 7))
    h0 = network.add_input("h0", trt.float32, (batch, 5))
    c0 = network.add_input("c0", trt.float32, (batch, 5))
    length = _length_of(network, x, 1)
    loop = counted(network, length)
    now = loop.add_iterator(x, 1).get_output(0)
    h, c = loop.add_recurrence(h0), loop.add_recurrence(c0)
    sigmoid, tanh = trt.ActivationType.SIGMOID, trt.ActivationType.TANH
    gates = [_gate(network, now, h.get_output(0), number) for number in (sigmoid, sigmoid, tanh, sigmoid)]
    kept = combine(network, gates[0], c.get_output(0), Op.PROD)
    c.set_input(1, combine(network, kept, combine(network, gates[1], gates[2], Op.PROD)))
    squashed = network.add_activation(c.get_input(1), tanh).get_output(0)
    h.set_input(1, combine(network, gates[3], squashed, Op.PROD))
    every = stacked(loop, h.get_input(1), length, axis=1)
    return mark(network, y=last(loop, h.get_output(0)), c=last(loop, c.get_output(0)), hs=every)


def _gate(network: trt.INetworkDefinition, x: ITensor, h: ITensor, type: trt.ActivationType) -> ITensor:
    none = trt.MatrixOperation.NONE
    products = [
        network.add_matrix_multiply(tensor, none, constant(network, np.ones((rows, 5), np.float32)), none).get_output(0)
        for tensor, rows in ((x, 7), (h, 5))
    ]
    return network.add_activation(combine(network, *products), type).get_output(0)


def _length_of(network: trt.INetworkDefinition, tensor: ITensor, axis: int) -> ITensor:
    """The length of an axis, int64[]."""
    shape = network.add_shape(tensor).get_output(0)
    return network.add_gather(shape, constant(network, axis, np.int32), 0).get_output(0)


def nested() -> trt.INetworkDefinition:
    """y: 1 + (1 + 2) + (1 + 2 + 3) + ... of n terms; the inner loop counts to the outer iteration."""
    network = trt.INetworkDefinition()
    outer = counted(network, network.add_input("n", trt.int32, ()))
    number = counter(network, outer, 1)
    inner = counted(network, number)
    part = inner.add_recurrence(constant(network, 0, np.int32))
    part.set_input(1, combine(network, part.get_output(0), counter(network, inner, 1)))
    total = outer.add_recurrence(constant(network, 0, np.int32))
    total.set_input(1, combine(network, total.get_output(0), last(inner, part.get_output(0))))
    return mark(network, y=last(outer, total.get_output(0)))


def conditional_in_loop() -> trt.INetworkDefinition:
    """y: 10 numbers of the Collatz sequence from x on; the branch changes between iterations."""
    network = trt.INetworkDefinition()
    loop = counted(network, 10)
    number = loop.add_recurrence(network.add_input("x", trt.int32, ()))
    now = number.get_output(0)
    half = combine(network, now, 2, Op.FLOOR_DIV)
    choice = network.add_if_conditional()
    choice.set_condition(combine(network, combine(network, half, 2, Op.PROD), now, Op.EQUAL))
    more = combine(network, combine(network, now, 3, Op.PROD), 1)
    number.set_input(1, choice.add_output(half, more).get_output(0))
    return mark(network, y=stacked(loop, now, constant(network, 10, np.int32)))


def loop_in_conditional() -> trt.INetworkDefinition:
    """y: 2 to the power n if c, else n."""
    network = trt.INetworkDefinition()
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    n = network.add_input("n", trt.int64, ())
    loop = counted(network, n)
    power = loop.add_recurrence(constant(network, 1, np.int64))
    power.set_input(1, combine(network, power.get_output(0), 2, Op.PROD))
    return mark(network, y=choice.add_output(last(loop, power.get_output(0)), n).get_output(0))


def swap(trips: int = 3) -> trt.INetworkDefinition:
    """a, b: the inputs x and z, swapped a number of times."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    a = loop.add_recurrence(network.add_input("x", trt.float32, (2,)))
    b = loop.add_recurrence(network.add_input("z", trt.float32, (2,)))
    a.set_input(1, b.get_output(0))
    b.set_input(1, a.get_output(0))
    return mark(network, a=last(loop, a.get_output(0)), b=last(loop, b.get_output(0)))


def delay_line() -> trt.INetworkDefinition:
    """y: x[4] delayed by two iterations, after two zeros."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (4,))
    loop = counted(network, 4)
    first, second = (loop.add_recurrence(constant(network, 0, np.float32)) for _ in range(2))
    first.set_input(1, loop.add_iterator(x).get_output(0))
    second.set_input(1, first.get_output(0))
    return mark(network, y=stacked(loop, second.get_output(0), constant(network, 4, np.int32)))


def count_is_an_input() -> trt.INetworkDefinition:
    """y: 2 to the power n; ys: the powers before it, in 8 rows."""
    network = trt.INetworkDefinition()
    loop = counted(network, network.add_input("n", trt.int32, ()))
    power = loop.add_recurrence(constant(network, 1, np.int32))
    power.set_input(1, combine(network, power.get_output(0), 2, Op.PROD))
    ys = stacked(loop, power.get_output(0), constant(network, 8, np.int32))
    return mark(network, y=last(loop, power.get_output(0)), ys=ys)


def length_is_an_input() -> trt.INetworkDefinition:
    """y: 0, 1, ..., n - 1; n is a COUNT and a length."""
    network = trt.INetworkDefinition()
    n = network.add_input("n", trt.int32, ())
    loop = counted(network, n)
    return mark(network, y=stacked(loop, counter(network, loop), n))


def both_limits(below: int = 20) -> trt.INetworkDefinition:
    """y: 2 to the power n, or the first such power not below ``below``, whichever comes first."""
    network = trt.INetworkDefinition()
    loop = counted(network, network.add_input("n", trt.int32, ()))
    power = loop.add_recurrence(constant(network, 1, np.int32))
    power.set_input(1, combine(network, power.get_output(0), 2, Op.PROD))
    loop.add_trip_limit(combine(network, power.get_output(0), below, Op.LESS), WHILE)
    return mark(network, y=last(loop, power.get_output(0)))


def flipped(trips: int = 4) -> trt.INetworkDefinition:
    """y: the first elements of x[4], in reverse order."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (4,)), 0, True)
    return mark(network, y=stacked(loop, iterator.get_output(0), constant(network, trips, np.int32)))


def dynamic_axis() -> trt.INetworkDefinition:
    """y: the running sums of x[-1,2] along its first axis."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 2))
    length = _length_of(network, x, 0)
    loop = counted(network, length)
    total = loop.add_recurrence(constant(network, np.zeros(2, np.float32)))
    new = combine(network, total.get_output(0), loop.add_iterator(x).get_output(0))
    total.set_input(1, new)
    return mark(network, y=stacked(loop, new, length))


def table() -> trt.INetworkDefinition:
    """y: the products of all pairs of x[2] and z[3]; a loop over x, and in it one over z."""
    network = trt.INetworkDefinition()
    x, z = network.add_input("x", trt.float32, (2,)), network.add_input("z", trt.float32, (3,))
    outer = counted(network, 2)
    inner = counted(network, 3)
    product = combine(network, outer.add_iterator(x).get_output(0), inner.add_iterator(z).get_output(0), Op.PROD)
    row = stacked(inner, product, constant(network, 3, np.int32))
    return mark(network, y=stacked(outer, row, constant(network, 2, np.int32)))


def asserted(most: int = 3) -> trt.INetworkDefinition:
    """y: n; the assertion fails in iteration ``most``."""
    network = trt.INetworkDefinition()
    loop = counted(network, network.add_input("n", trt.int32, ()))
    now = counter(network, loop)
    network.add_assertion(combine(network, now, most, Op.LESS), f"the trip is below {most}")
    return mark(network, y=last(loop, now))


def choice() -> trt.INetworkDefinition:
    """y: x + x if c, else x."""
    network = trt.INetworkDefinition()
    conditional = network.add_if_conditional()
    conditional.set_condition(network.add_input("c", trt.bool, ()))
    x = conditional.add_input(network.add_input("x", trt.float32, (3,))).get_output(0)
    return mark(network, y=conditional.add_output(combine(network, x, x), x).get_output(0))


def deep(loops: int, trips: int = 2) -> trt.INetworkDefinition:
    """y: x + trips ** loops, by counting in nested loops."""
    network = trt.INetworkDefinition()
    state = network.add_input("x", trt.int64, ())
    states = []
    for _ in range(loops):
        states.append(counted(network, trips).add_recurrence(state))
        state = states[-1].get_output(0)
    made = combine(network, state, 1)
    for layer in reversed(states):
        layer.set_input(1, made)
        made = last(layer.loop, layer.get_output(0))
    return mark(network, y=made)


def chain(layers: int, dtype: trt.DataType = trt.float32, length: int = 2) -> trt.INetworkDefinition:
    """y: x[length], negated by many layers in a row."""
    network = trt.INetworkDefinition()
    tensor = network.add_input("x", dtype, (length,))
    for _ in range(layers):
        tensor = network.add_unary(tensor, trt.UnaryOperation.NEG).get_output(0)
    return mark(network, y=tensor)


def chain_in_loop(layers: int, trips: int = 2) -> trt.INetworkDefinition:
    """y: x[2], negated in each iteration by many layers in a row."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (2,)))
    tensor = state.get_output(0)
    for _ in range(layers):
        tensor = network.add_unary(tensor, trt.UnaryOperation.NEG).get_output(0)
    state.set_input(1, tensor)
    return mark(network, y=last(loop, state.get_output(0)))


class Example(NamedTuple):
    """A network, arrays for its inputs, and outputs computed by hand."""

    make: Callable[[], trt.INetworkDefinition]
    inputs: dict[str, Any]
    outputs: dict[str, Any]


F = np.float32
X = np.arange(15, dtype=F).reshape(5, 3)

EXAMPLES = {
    "running sum": Example(running_sum, {"x": X}, {"y": F([9, 12, 15])}),
    "running sums": Example(lambda: running_sum(2, CONCATENATE, 1), {"x": X}, {"y": F([[0, 3], [1, 5], [2, 7]])}),
    "running sums, reversed": Example(
        lambda: running_sum(2, REVERSE, 0, 3), {"x": X}, {"y": F([[3, 5, 7], [0, 1, 2], [0, 0, 0]])}
    ),
    "nested": Example(nested, {"n": np.int32(4)}, {"y": np.int32(20)}),
    "conditional in a loop": Example(
        conditional_in_loop, {"x": np.int32(6)}, {"y": np.int32([6, 3, 10, 5, 16, 8, 4, 2, 1, 4])}
    ),
    "loop in a conditional": Example(
        loop_in_conditional, {"c": np.bool_(True), "n": np.int64(40)}, {"y": np.int64(1 << 40)}
    ),
    "loop in the branch not taken": Example(
        loop_in_conditional, {"c": np.bool_(False), "n": np.int64(40)}, {"y": np.int64(40)}
    ),
    "swap": Example(swap, {"x": F([1, 2]), "z": F([3, 4])}, {"a": F([3, 4]), "b": F([1, 2])}),
    "delay line": Example(delay_line, {"x": F([1, 2, 3, 4])}, {"y": F([0, 0, 1, 2])}),
    "count is an input": Example(
        count_is_an_input, {"n": np.int32(3)}, {"y": np.int32(8), "ys": np.int32([1, 2, 4, 0, 0, 0, 0, 0])}
    ),
    "length is an input": Example(length_is_an_input, {"n": np.int32(3)}, {"y": np.int32([0, 1, 2])}),
    "both limits, COUNT first": Example(both_limits, {"n": np.int32(3)}, {"y": np.int32(8)}),
    "both limits, WHILE first": Example(both_limits, {"n": np.int32(9)}, {"y": np.int32(32)}),
    "flipped": Example(flipped, {"x": F([1, 2, 3, 4])}, {"y": F([4, 3, 2, 1])}),
    "dynamic axis": Example(dynamic_axis, {"x": X[:, :2]}, {"y": F(np.cumsum(X[:, :2], 0))}),
    "table": Example(table, {"x": F([1, 2]), "z": F([3, 4, 5])}, {"y": F([[3, 4, 5], [6, 8, 10]])}),
    "asserted": Example(asserted, {"n": np.int32(3)}, {"y": np.int32(3)}),
    "choice": Example(choice, {"c": np.bool_(True), "x": F([1, 2, 3])}, {"y": F([2, 4, 6])}),
    "deep": Example(lambda: deep(4), {"x": np.int64(0)}, {"y": np.int64(16)}),
    "chain": Example(lambda: chain(5), {"x": F([1, 2])}, {"y": F([-1, -2])}),
    "chain in a loop": Example(lambda: chain_in_loop(3), {"x": F([1, 2])}, {"y": F([1, 2])}),
}
"""Valid networks with exact results."""


# ---------------------------------------------------------------------------- ways to run


def run(way: str, network: trt.INetworkDefinition, inputs: dict[str, Any] | None = None) -> dict[str, np.ndarray]:
    """Run a network in one of the three ways."""
    return {name: np.asarray(array) for name, array in WAYS[way](network, inputs or {}).items()}


def _by_to_jax(network: trt.INetworkDefinition, inputs: dict[str, Any]) -> Any:
    function, weights = trt.to_jax(network)
    return function(weights, inputs)


WAYS: dict[str, Callable[[trt.INetworkDefinition, dict[str, Any]], Any]] = {
    "reference": trt.evaluate,
    "engine": lambda network, inputs: trt.compile(network)(inputs),
    "to_jax": _by_to_jax,
}
RAISING = ["reference", "engine"]
"""The ways that raise an ExecutionError; a pure function cannot."""


def assert_outputs(got: dict[str, np.ndarray], wanted: dict[str, Any]) -> None:
    """Check outputs for equality to the last bit, including order, element types and shapes."""
    assert list(got) == list(wanted)
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype
        np.testing.assert_array_equal(got[name], array, strict=True)


def scatter_with_reduction(mode: trt.ScatterMode, reduction: trt.ReduceOperation) -> trt.INetworkDefinition:
    """A network that combines updates with x, float32[3, 2]."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (3, 2))
    indices = np.int32([[0], [2]] if mode is trt.ScatterMode.ND else [[0, 2], [2, 0]])
    layer = network.add_scatter(
        x, constant(network, indices), constant(network, np.full((2, 2), 3.5, np.float32)), mode
    )
    layer.reduction = reduction
    y = layer.get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network
