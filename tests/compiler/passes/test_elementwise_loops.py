"""Loops of element-wise layers as kernels: exact numbers, and where they are not used."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from netloop.compiler.machine_code.processor import Processor, processor
from netloop.compiler.passes import elementwise_loops, recurrent_kernels
from netloop.compiler.passes.recurrent_kernels import RecurrentKernelLayer
from netloop.model.nest import live_layers
from tests.support import networks
from tests.support.devices import only_on_cpus
from tests.support.examples import many, mostly_slow
from tests.support.networks import CONCATENATE, Op, combine, constant, counted, counter, last, mark, stacked
from tests.support.pass_checks import improved

pytestmark = [
    only_on_cpus("the pass is not used elsewhere"),
    pytest.mark.skipif(processor() is None, reason="the extra is not installed, or the processor has no kernels"),
]

REVERSE = trt.LoopOutput.REVERSE
FUNCTIONS = {Op.SUM: np.add, Op.SUB: np.subtract, Op.PROD: np.multiply, Op.MAX: np.maximum, Op.MIN: np.minimum}
COMPARED = {Op.LESS: np.less, Op.GREATER: np.greater, Op.EQUAL: np.equal}
FUNCTIONS |= COMPARED


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    monkeypatch.setattr(elementwise_loops, "LEAST_ELEMENTS", 1)
    monkeypatch.setattr(elementwise_loops, "LEAST_WORK", 1)


def cells(network):
    network = improved(network, ["elementwise_loops"]).network
    return [layer.cell for layer in live_layers(network) if isinstance(layer, RecurrentKernelLayer)]


def strategies(network, **named):
    return [strategy.name for strategy in trt.compile(network, **named).loop_strategies.values()]


class RandomLoop:
    """A random loop of exact element-wise layers, and what it computes in float32 by numpy, operation by operation."""

    def __init__(self, seed):
        random = np.random.default_rng(seed)

        def pick(choices):
            return choices[int(random.integers(len(choices)))]

        shape = pick([(1,), (16,), (33,), (3, 5), (2, 16), (300,), (4, 64)])
        trips, states = int(random.integers(1, 9)), int(random.integers(1, 4))
        network = trt.INetworkDefinition()
        self.network, self.inputs = network, {"x": self.drawn(random, trips, *shape)}
        loop, is_reverse = counted(network, trips), pick([False, True])
        x = network.add_input("x", trt.float32, (trips, *shape))
        row = loop.add_iterator(x, 0, is_reverse).get_output(0)
        constants = [
            self.drawn(random, *size) for size in (shape, (1,) * len(shape), (*(1,) * (len(shape) - 1), shape[-1]))
        ]
        start = [self.drawn(random, *shape) for _ in range(states)]
        recurrences = [loop.add_recurrence(constant(network, array)) for array in start]
        tensors = [row, *(recurrence.get_output(0) for recurrence in recurrences)]
        tensors += [constant(network, array) for array in constants]
        plan = []
        for left in reversed(range(int(random.integers(1, 7)))):
            # the first operand has the shape of the state; the last layer, which is stacked, reads one
            a = pick([at for at, tensor in enumerate(tensors) if tuple(tensor.shape) == shape]) if left else 1
            b, op = int(random.integers(len(tensors))), pick(list(FUNCTIONS))
            if op in COMPARED:
                condition = combine(network, tensors[a], tensors[b], op)
                plan.append((a, b, lambda a, b, holds=FUNCTIONS[op]: np.where(holds(a, b), b, a)))
                tensors.append(network.add_select(condition, tensors[b], tensors[a]).get_output(0))
            else:
                plan.append((a, b, FUNCTIONS[op]))
                tensors.append(combine(network, tensors[a], tensors[b], op))
        computed = len(tensors) - len(plan)
        after = [int(random.integers(computed, len(tensors))) for _ in range(states)]
        for recurrence, at in zip(recurrences, after, strict=True):
            recurrence.set_input(1, tensors[at])
        kind, axis, out = pick([CONCATENATE, REVERSE]), pick(range(len(shape) + 1)), len(tensors) - 1
        rows = stacked(loop, tensors[out], constant(network, trips, np.int32), kind, axis)
        mark(network, y=rows, **{f"s{at}": last(loop, own.get_output(0)) for at, own in enumerate(recurrences)})
        stack, now = [], start
        for element in self.inputs["x"][::-1] if is_reverse else self.inputs["x"]:
            values = [element, *now, *constants]
            with np.errstate(all="ignore"):
                for a, b, function in plan:
                    values.append(function(values[a], values[b]))
            now = [values[at] for at in after]
            stack.append(values[out])
        self.wanted = {"y": np.stack(stack if kind is CONCATENATE else stack[::-1], axis)}
        self.wanted |= {f"s{at}": array for at, array in enumerate(now)}

    @staticmethod
    def drawn(random, *shape):
        return random.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("seed", mostly_slow(12, many(100)))
def test_random_loops_are_kernels_and_equal_numpy(seed):
    loop = RandomLoop(seed)
    engine = trt.compile(loop.network, passes=["elementwise_loops"])

    outputs = engine(loop.inputs)

    assert {strategy.name for strategy in engine.loop_strategies.values()} == {"kernel"}
    for name, array in loop.wanted.items():
        # XLA's threads flush denormal numbers
        np.testing.assert_allclose(np.asarray(outputs[name]), array, rtol=0, atol=1.2e-38, err_msg=name)


@pytest.mark.parametrize("seed", range(3))
def test_short_vectors_and_the_reference_give_the_same(seed, monkeypatch):
    monkeypatch.setattr(recurrent_kernels, "processor", lambda: Processor(8, 12))
    loop = RandomLoop(seed)

    for outputs in (
        trt.compile(loop.network, passes=["elementwise_loops"])(loop.inputs),
        trt.evaluate(improved(loop.network, ["elementwise_loops"]).network, loop.inputs),
    ):
        for name, array in loop.wanted.items():
            np.testing.assert_array_equal(np.asarray(outputs[name]), array, err_msg=name)


@pytest.mark.parametrize("width", [256, 261, 400])
def test_sums_of_wide_rows_equal_those_of_numpy(width):
    x = np.random.default_rng(0).standard_normal((50, width)).astype(np.float32)
    network = trt.from_jax(lambda x: lax.scan(lambda sum_, row: (sum_ + row,) * 2, jnp.zeros(width), x)[1], x)

    (sums,) = trt.compile(network)({network.inputs[0].name: x}).values()

    np.testing.assert_array_equal(sums, np.cumsum(x, 0, dtype=np.float32))
    assert strategies(network) == ["kernel"]


def test_many_states_leave_registers_for_one_vector_each():
    random = np.random.default_rng(0)
    x, starts = random.standard_normal((7, 37)).astype(np.float32), [np.full(37, at, np.float32) for at in range(13)]

    def averages(x):
        def step(states, row):
            return tuple(state + row * (at + 1) for at, state in enumerate(states)), None

        return lax.scan(step, tuple(map(jnp.asarray, starts)), x)[0]

    network = trt.from_jax(averages, x)
    outputs = trt.compile(network)({network.inputs[0].name: x}).values()

    for at, (state, got) in enumerate(zip(starts, outputs, strict=True)):
        for row in x:
            state = state + row * np.float32(at + 1)
        np.testing.assert_allclose(got, state, rtol=1e-6)
    assert strategies(network) == ["kernel"]


def test_a_number_for_each_row_and_iteration_is_read_for_all_units():
    random = np.random.default_rng(0)
    x, decay = random.standard_normal((6, 3, 20)).astype(np.float32), random.random((6, 3, 1)).astype(np.float32)

    def step(state, now):
        return (now[1] * state + now[0],) * 2

    network = trt.from_jax(lambda x, decay: lax.scan(step, jnp.ones((3, 20)), (x, decay))[1], x, decay)
    inputs = {tensor.name: array for tensor, array in zip(network.inputs, (x, decay), strict=True)}

    (rows,) = trt.compile(network)(inputs).values()

    state = np.ones((3, 20), np.float32)
    for now in range(6):
        state = decay[now] * state + x[now]
        np.testing.assert_array_equal(rows[now], state)
    assert strategies(network) == ["kernel"]


def test_states_may_begin_with_what_is_no_number():
    x = np.ones((3, 4), np.float32)
    first = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    network = trt.from_jax(lambda x: lax.scan(lambda s, row: (s + row, None), jnp.asarray(first), x)[0], x)

    (last,) = trt.compile(network)({network.inputs[0].name: x}).values()

    np.testing.assert_array_equal(last, first + 3)
    assert strategies(network) == ["kernel"]


def test_rows_of_one_shape_are_flat():
    def network(broadcast):
        x = np.ones((4, 3, 5), np.float32)
        return trt.from_jax(lambda x: lax.scan(lambda s, row: (s * broadcast + row, None), jnp.zeros((3, 5)), x)[0], x)

    (flat,), (rows,) = cells(network(np.float32(0.5))), cells(network(np.arange(5, dtype=np.float32)[None]))
    assert (flat.rows, flat.units) == (1, 15)
    assert (rows.rows, rows.units) == (3, 5)


def test_what_no_kernel_computes_stays_with_xla(monkeypatch):
    def loop(step, dtype=np.float32):
        x = np.ones((4, 32), dtype)
        return trt.from_jax(lambda x: lax.scan(lambda s, row: (step(s, row), None), jnp.zeros(32, dtype), x)[0], x)

    assert strategies(loop(lambda s, row: s + row)) == ["kernel"]
    assert strategies(loop(lambda s, row: s + row, np.float16)) == ["scan"]
    assert strategies(loop(lambda s, row: s + row, np.int32)) == ["scan"]
    assert strategies(loop(lambda s, row: jnp.tanh(s + row))) == ["scan"]
    assert strategies(loop(lambda s, row: jnp.where(s >= row, s, row))) == ["scan"]
    assert strategies(loop(lambda s, row: s + row[::-1])) == ["scan"]
    assert strategies(loop(lambda s, row: jnp.maximum(s @ np.ones((32, 32), np.float32) + row, 0))) == ["scan"]
    assert strategies(loop(lambda s, row: s + row), max_trips=9) == ["scan"]
    monkeypatch.setattr(elementwise_loops, "LEAST_WORK", 4 * 32 + 1)
    assert strategies(loop(lambda s, row: s + row)) == ["scan"]
    monkeypatch.setattr(elementwise_loops, "LEAST_WORK", 1)
    monkeypatch.setattr(elementwise_loops, "LEAST_ELEMENTS", 33)
    assert strategies(loop(lambda s, row: s + row)) == ["scan"]


def test_pure_functions_have_derivatives_and_no_kernel():
    network = networks.running_sum()
    function, weights = trt.to_jax(network)

    gradient = jax.grad(lambda x: (function(weights, {"x": x})["y"] ** 2).sum())(networks.X)

    wanted = np.zeros((5, 3))
    wanted[:3] = 2 * networks.X[:3].sum(0)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6)
    assert strategies(network) == ["kernel"]


def test_rows_of_one_number_have_masks_of_their_own():
    network, random = trt.INetworkDefinition(), np.random.default_rng(0)
    x, loop = network.add_input("x", trt.float32, (9, 40, 1)), counted(network, 9)
    lengths = constant(network, random.integers(0, 10, (40, 1)), np.int32)
    state = loop.add_recurrence(constant(network, np.zeros((40, 1), np.float32)))
    count = network.add_shuffle(counter(network, loop))
    count.reshape_dims = (1, 1)
    mask = combine(network, count.get_output(0), lengths, Op.LESS)
    now = state.get_output(0)
    total = combine(network, now, loop.add_iterator(x).get_output(0))
    state.set_input(1, network.add_select(mask, total, now).get_output(0))
    mark(network, y=last(loop, now))
    inputs = {"x": random.standard_normal((9, 40, 1)).astype(np.float32)}

    np.testing.assert_array_equal(trt.compile(network)(inputs)["y"], trt.evaluate(network, inputs)["y"])
    assert strategies(network) == ["kernel"]
