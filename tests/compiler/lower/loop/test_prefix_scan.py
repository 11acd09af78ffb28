"""Loops of linear states as prefix scans: which are, and that they compute what the loop computes."""

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.lower.loop import prefix_scan
from netloop.compiler.passes.forms import PrefixScan
from tests.support.examples import mostly_slow
from tests.support.networks import CONCATENATE, REVERSE, Op, combine, constant, counted, last, mark, stacked

TRIPS, WIDTH, LOOP = 40, 3, "loop"
RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def on_every_platform(monkeypatch):
    monkeypatch.setattr(PrefixScan, "platforms", None)


def scanned(update, dtype=trt.float32, trips=TRIPS, states=1):
    """The last value of each state, and its values before and after each iteration, of an update of states and rows."""
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    loop.name = LOOP
    rows = [loop.add_iterator(network.add_input(name, dtype, (trips, WIDTH))).get_output(0) for name in "ax"]
    recurrences = [loop.add_recurrence(network.add_input(f"s{number}", dtype, (WIDTH,))) for number in range(states)]
    present = [recurrence.get_output(0) for recurrence in recurrences]
    following = update(network, *present, *rows)
    following = following if isinstance(following, tuple) else (following,)
    outputs = {}
    for number, (recurrence, state, after) in enumerate(zip(recurrences, present, following, strict=True)):
        recurrence.set_input(1, after)
        length = constant(network, trips, np.int32)
        outputs[f"last{number}"] = last(loop, state)
        outputs[f"after{number}"] = stacked(loop, after, length, CONCATENATE)
        outputs[f"before{number}"] = stacked(loop, state, length, REVERSE)
    return mark(network, **outputs)


def inputs_of(network):
    inputs = {}
    for tensor in network.inputs:
        numbers = RANDOM.uniform(0.25, 1.25, tuple(tensor.shape)) * RANDOM.choice([-1, 1], tuple(tensor.shape))
        whole = tensor.dtype in (trt.int32, trt.int64, trt.bool)
        inputs[tensor.name] = (np.round(4 * numbers) if whole else numbers).astype(trt.nptype(tensor.dtype))
    return inputs


def strategy(network):
    return trt.compile(network).loop_strategies[LOOP].name


def assert_same(network, *inputs):
    engine = trt.compile(network)
    for row in inputs:
        outputs, expected = engine(row), trt.evaluate(network, row)
        assert engine.loop_strategies[LOOP].name == "prefix"
        for name, wanted in expected.items():
            np.testing.assert_allclose(np.asarray(outputs[name]), wanted, rtol=1e-4, atol=1e-5, err_msg=name)


def a_times_s_plus_x(network, s, a, x):
    return combine(network, combine(network, a, s, Op.PROD), x, Op.SUM)


def reset(network, s, a, x):
    condition = combine(network, a, x, Op.LESS)
    return network.add_select(condition, x, combine(network, s, x, Op.SUM)).get_output(0)


def half(network, s, a, x):
    """x - (s + s) / a, where a number is broadcast."""
    doubled = combine(network, combine(network, s, s, Op.SUM), constant(network, np.float32([0.5])), Op.PROD)
    return combine(network, x, combine(network, doubled, a, Op.DIV), Op.SUB)


def negated(network, s, a, x):
    return combine(network, network.add_unary(s, trt.UnaryOperation.NEG).get_output(0), a, Op.SUB)


def chained(network, s, average, a, x):
    """A sum, and a moving average of it."""
    total = combine(network, s, x, Op.SUM)
    return total, combine(network, combine(network, average, a, Op.PROD), total, Op.SUM)


LINEAR = {
    "sum": lambda network, s, a, x: combine(network, x, s, Op.SUM),
    "product": lambda network, s, a, x: combine(network, s, a, Op.PROD),
    "a s + x": a_times_s_plus_x,
    "reset": reset,
    "halves": half,
    "negated": negated,
    "maximum": lambda network, s, a, x: combine(network, s, x, Op.MAX),
    "minimum": lambda network, s, a, x: combine(network, x, s, Op.MIN),
    "delayed": lambda network, s, a, x: x,
    "kept": lambda network, s, a, x: s,
}


@pytest.mark.parametrize("update", LINEAR.values(), ids=LINEAR)
def test_linear_state_has_the_values_of_the_loop(update):
    network = scanned(update)

    assert_same(network, inputs_of(network))


@pytest.mark.parametrize("trips", [16, 33, 257])
def test_chunks_of_any_number_are_joined(trips):
    network = scanned(a_times_s_plus_x, trips=trips)

    assert_same(network, inputs_of(network))


@pytest.mark.parametrize("update", mostly_slow(2, [a_times_s_plus_x, LINEAR["maximum"], reset]))
def test_values_that_are_not_finite_are_those_of_the_loop(update):
    network = scanned(update)
    inputs = [inputs_of(network) for _ in range(4)]
    for special, row in zip([np.inf, -np.inf, np.nan, 3e38], inputs, strict=True):
        row["x"][[5, 20], [0, 1]] = special
        row["a"][[3, 25], [0, 1]] = 0

    assert_same(network, *inputs)


def test_product_of_factors_that_overflows_makes_no_number_of_a_state_that_stays_zero():
    network = scanned(a_times_s_plus_x)
    zeros = np.zeros((TRIPS, WIDTH), np.float32)

    outputs = trt.compile(network)({"a": zeros + 1e30, "x": zeros, "s0": zeros[0]})

    assert np.asarray(outputs["after0"]).tolist() == zeros.tolist()


@pytest.mark.parametrize("dtype", [trt.int32, trt.int64])
def test_integers_wrap_as_in_the_loop(dtype):
    network = scanned(a_times_s_plus_x, dtype)
    inputs = inputs_of(network)
    inputs["x"][::7] = np.iinfo(trt.nptype(dtype)).max

    outputs, expected = trt.compile(network)(inputs), trt.evaluate(network, inputs)

    assert {name: np.asarray(outputs[name]).tolist() for name in expected} == {
        name: array.tolist() for name, array in expected.items()
    }


@pytest.mark.parametrize("op", [Op.AND, Op.OR, Op.XOR])
def test_flags_are_joined(op):
    network = scanned(lambda network, s, a, x: combine(network, s, x, op), trt.bool)

    assert_same(network, inputs_of(network))


def test_state_that_reads_another_one_comes_after_it():
    network = scanned(chained, states=2)

    assert_same(network, inputs_of(network))


def test_what_only_rows_read_is_computed_for_all_iterations():
    network = scanned(LINEAR["sum"])
    (loop,) = network.loops
    (state,) = loop.boundary(trt.IRecurrenceLayer)
    tangent = network.add_activation(state.get_output(0), trt.ActivationType.TANH).get_output(0)
    mark(network, tangents=stacked(loop, tangent, constant(network, TRIPS, np.int32)))

    assert_same(network, inputs_of(network))


# ---------------------------------------------------------------------------- states that depend on each other


def swapped(network, s, t, a, x):
    return t, combine(network, s, x, Op.SUM)


def rotated(network, s, t, a, x):
    """A rotation by an angle, and a little growth."""
    cosine, sine = constant(network, np.float32([0.8])), constant(network, np.float32([0.61]))
    parts = [[combine(network, state, number, Op.PROD) for number in (cosine, sine)] for state in (s, t)]
    left = combine(network, parts[0][0], parts[1][1], Op.SUB)
    return combine(network, left, x, Op.SUM), combine(network, parts[0][1], parts[1][0], Op.SUM)


def oscillating(network, s, v, a, x):
    """A place, and a speed that changes by it: x" = -s, with a reset where the row says so."""
    step = constant(network, np.float32([0.1]))
    place = combine(network, s, combine(network, v, step, Op.PROD), Op.SUM)
    speed = combine(network, v, combine(network, s, step, Op.PROD), Op.SUB)
    return network.add_select(combine(network, a, x, Op.LESS), x, place).get_output(0), speed


def shifted(network, *tensors):
    """A linear recurrence of an order: each state is the one before, and the first one is the mean of the last two."""
    *states, _, x = tensors
    both = combine(network, combine(network, states[-1], states[-2], Op.SUM), np.float32([0.5]), Op.PROD)
    return combine(network, both, x, Op.SUM), *states[:-1]


COUPLED = {"swapped": (2, swapped), "rotated": (2, rotated), "oscillating": (2, oscillating), "four": (4, shifted)}


@pytest.mark.parametrize(("states", "update"), COUPLED.values(), ids=COUPLED)
def test_states_that_are_linear_together_have_the_values_of_the_loop(states, update):
    network = scanned(update, states=states)

    assert_same(network, inputs_of(network))


def test_long_rotation_is_that_of_float64():
    trips = 1000
    network = scanned(rotated, trips=trips, states=2)
    inputs = inputs_of(network)
    found = np.asarray(trt.compile(network)(inputs)["after0"])

    matrix = np.float32([[0.8, -0.61], [0.61, 0.8]]).astype(float)
    state, wanted = np.stack([inputs["s0"], inputs["s1"]]).astype(float), []
    for row in inputs["x"]:
        state = matrix @ state + np.stack([row, 0 * row])
        wanted.append(state[0])

    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())


def test_state_that_reads_states_that_depend_on_each_other_comes_after_them():
    def update(network, total, s, t, a, x):
        return combine(network, total, s, Op.SUM), *swapped(network, s, t, a, x)

    network = scanned(update, states=3)

    assert_same(network, inputs_of(network))


def test_values_of_several_states_that_are_not_finite_are_those_of_the_loop():
    network = scanned(swapped, states=2)
    inputs = [inputs_of(network) for _ in range(3)]
    for special, row in zip([np.inf, np.nan, 3e38], inputs, strict=True):
        row["x"][[5, 20], [0, 1]] = special

    assert_same(network, *inputs)


def test_integers_of_several_states_wrap_as_in_the_loop():
    def update(network, s, t, a, x):
        return combine(network, combine(network, s, np.int32([7]), Op.PROD), t, Op.SUM), combine(network, s, x, Op.SUM)

    network = scanned(update, trt.int32, states=2)
    inputs = inputs_of(network)
    outputs, expected = trt.compile(network)(inputs), trt.evaluate(network, inputs)

    assert strategy(network) == "prefix"
    assert {np.asarray(output).dtype.name for output in outputs.values()} == {"int32"}
    assert {name: np.asarray(outputs[name]).tolist() for name in expected} == {
        name: array.tolist() for name, array in expected.items()
    }


# ---------------------------------------------------------------------------- loops that stay loops


def squared(network, s, a, x):
    return combine(network, combine(network, s, s, Op.PROD), x, Op.SUM)


def divisor(network, s, a, x):
    return combine(network, a, s, Op.DIV)


def clipped(network, s, a, x):
    return combine(network, combine(network, s, a, Op.SUM), x, Op.MAX)


def wide(network, s, a, x):
    doubles = [network.add_cast(tensor, trt.float64).get_output(0) for tensor in (s, x)]
    return network.add_cast(combine(network, *doubles, Op.SUM), trt.float32).get_output(0)


@pytest.mark.parametrize("update", [squared, divisor, clipped, wide])
def test_state_that_is_not_linear_stays_a_loop(update):
    assert strategy(scanned(update)) == "scan"


@pytest.mark.parametrize(
    ("states", "update"),
    [
        (prefix_scan.MOST_COUPLED + 1, shifted),
        (2, lambda network, s, t, a, x: (combine(network, s, t, Op.PROD), combine(network, t, s, Op.SUM))),
        (2, lambda network, s, t, a, x: (combine(network, t, x, Op.MAX), combine(network, s, a, Op.MAX))),
    ],
    ids=["too many", "product", "maximum"],
)
def test_states_that_are_not_linear_together_stay_a_loop(states, update):
    assert strategy(scanned(update, states=states)) == "scan"


def test_states_of_different_shapes_stay_a_loop():
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    loop.name = LOOP
    row, one = (
        loop.add_recurrence(network.add_input(name, trt.float32, shape)) for name, shape in (("r", (3,)), ("o", (1,)))
    )
    first = network.add_slice(row.get_output(0), (0,), (1,), (1,)).get_output(0)
    one.set_input(1, combine(network, one.get_output(0), first, Op.SUM))
    row.set_input(1, combine(network, row.get_output(0), one.get_output(0), Op.SUM))
    mark(network, y=last(loop, row.get_output(0)))

    assert strategy(network) == "scan"


def test_matrices_beyond_the_memory_stay_a_loop(monkeypatch):
    network = scanned(lambda network, s, t, a, x: (t, s), states=2)
    values = TRIPS * WIDTH * 4 * 2
    monkeypatch.setattr(prefix_scan, "MOST_BYTES", 2 * values - 1)

    assert strategy(network) == "scan"


@pytest.mark.parametrize("dtype", [trt.float16, trt.bfloat16])
def test_types_of_few_digits_stay_a_loop(dtype):
    assert strategy(scanned(LINEAR["sum"], dtype)) == "scan"


def test_few_iterations_stay_a_loop():
    assert strategy(scanned(LINEAR["sum"], trips=prefix_scan.FEWEST_TRIPS - 1)) == "scan"


def test_integers_that_are_divided_stay_a_loop():
    assert strategy(scanned(lambda network, s, a, x: combine(network, s, a, Op.DIV), trt.int32)) == "scan"


def test_values_beyond_the_memory_stay_a_loop(monkeypatch):
    monkeypatch.setattr(prefix_scan, "MOST_BYTES", TRIPS * WIDTH * 4 - 1)

    assert strategy(scanned(LINEAR["sum"])) == "scan"


def test_loop_that_may_fail_stays_a_loop():
    network = scanned(LINEAR["sum"])
    (state,) = network.loops[0].boundary(trt.IRecurrenceLayer)
    network.add_assertion(combine(network, state.get_output(0), np.float32([100]), Op.LESS), "it is below 100")

    assert strategy(network) == "scan"


def test_pass_can_be_left_out():
    passes = [name for name in trt.PASSES if name != "prefix_scan"]

    assert trt.compile(scanned(LINEAR["sum"]), passes=passes).loop_strategies[LOOP].name == "scan"


# ---------------------------------------------------------------------------- transformations


@pytest.mark.parametrize(("updates", "states"), [(a_times_s_plus_x, 1), (oscillating, 2)])
def test_derivatives_are_those_of_the_loop(updates, states, monkeypatch):
    network = scanned(updates, states=states)
    inputs = inputs_of(network)

    def gradients():
        function, weights = trt.to_jax(network)
        return jax.grad(lambda inputs: sum(array.sum() for array in function(weights, inputs).values()))(inputs)

    scans = gradients()
    monkeypatch.setattr(PrefixScan, "platforms", frozenset({"gpu"}))
    for name, wanted in gradients().items():
        np.testing.assert_allclose(scans[name], wanted, rtol=1e-4, atol=1e-4)


def test_rows_are_mapped():
    network = scanned(a_times_s_plus_x)
    rows = [inputs_of(network) for _ in range(3)]
    rows[1]["x"][4] = np.inf
    function, weights = trt.to_jax(network)
    stacks = {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    outputs = jax.vmap(lambda inputs: function(weights, inputs))(stacks)

    for number, row in enumerate(rows):
        for name, wanted in trt.evaluate(network, row).items():
            np.testing.assert_allclose(outputs[name][number], wanted, rtol=1e-4, atol=1e-5)


def test_rows_are_mapped_by_one_look_at_all_of_them():
    network = scanned(a_times_s_plus_x)
    function, weights = trt.to_jax(network)
    stacks = {name: np.stack([array] * 3) for name, array in inputs_of(network).items()}

    text = str(jax.make_jaxpr(jax.vmap(lambda inputs: function(weights, inputs)))(stacks))

    assert "cond[" in text
