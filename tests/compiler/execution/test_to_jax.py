"""Networks as pure functions, under JAX's transformations."""

import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.lower.program import Program
from tests.support.devices import assert_allclose
from tests.support.networks import (
    LAST,
    REVERSE,
    WHILE,
    F,
    Op,
    X,
    choice,
    combine,
    constant,
    count_is_an_input,
    counted,
    dynamic_axis,
    last,
    length_is_an_input,
    lstm,
    mark,
    nested,
    running_sum,
    stacked,
    table,
)


def linear(network, trips=3, count=None):
    """y, ys: the last and all values of a state s[2] = tanh(s w + x[t]); w[2,2] and the initial state are weights."""
    x = network.add_input("x", trt.float32, (3, 2))
    weights = network.add_constant((2, 2), F([[0.5, -0.25], [0.75, 1.0]]))
    start = network.add_constant((2,), F([0.1, -0.2]))
    weights.name, start.name = "weights", "start"
    loop = counted(network, trips if count is None else count)
    state = loop.add_recurrence(start.get_output(0))
    product = network.add_matrix_multiply(
        state.get_output(0), trt.MatrixOperation.VECTOR, weights.get_output(0), trt.MatrixOperation.NONE
    ).get_output(0)
    total = combine(network, product, loop.add_iterator(x).get_output(0))
    new = network.add_activation(total, trt.ActivationType.TANH).get_output(0)
    state.set_input(1, new)
    length = constant(network, 3, np.int32)
    return mark(network, y=last(loop, state.get_output(0)), ys=stacked(loop, new, length, REVERSE, 1))


ROWS = F([[0.3, -0.6], [0.2, 0.9], [-0.5, 0.1]])


def by_hand(weights, start, x):
    state, rows = start, []
    for row in x:
        state = np.tanh(state @ weights + row)
        rows.append(state)
    return state, np.stack(rows[::-1], 1)


def check_gradient(loss, arguments, rtol=2e-3):
    """Compare the gradient of a loss in float64 with central differences."""
    with jax.enable_x64(True):
        gradient, value = jax.grad(loss)(arguments), jax.jit(loss)
        leaves, tree = jax.tree.flatten(arguments)
        for position, leaf in enumerate(leaves):
            for index in np.ndindex(leaf.shape):
                sides = []
                for step in (1e-3, -1e-3):
                    moved = np.array(leaf)
                    moved[index] += step
                    sides.append(
                        float(value(jax.tree.unflatten(tree, [*leaves[:position], moved, *leaves[position + 1 :]])))
                    )
                slope = (sides[0] - sides[1]) / 2e-3
                assert_allclose(jax.tree.leaves(gradient)[position][index], slope, rtol=rtol, atol=5e-4)


# ---------------------------------------------------------------------------- weights


def test_weights_are_the_floats_by_the_names_of_their_layers(network):
    _, weights = trt.to_jax(linear(network))

    assert set(weights) == {"weights", "start"}
    assert all(isinstance(weight, jax.Array) for weight in weights.values())
    np.testing.assert_array_equal(weights["start"], F([0.1, -0.2]))


@pytest.mark.parametrize("load", [False, True])
def test_weights_whose_names_are_those_of_numbered_ones_are_numbered_on(network, load):
    layers = [network.add_constant((), np.float32(number)) for number in (1, 2, 4)]
    for layer, name in zip(layers, ("w", "w#2", "w"), strict=True):
        layer.name = name
    inputs = [network.add_input(f"x{at}", trt.float32, ()) for at in range(3)]
    products = (combine(network, x, layer.get_output(0), Op.PROD) for x, layer in zip(inputs, layers, strict=True))
    first, *others = products
    for tensor in others:
        first = combine(network, first, tensor)
    function, weights = trt.to_jax(mark(network, y=first), load=load)

    assert len(weights) == 3
    assert function(weights, {"x0": F(1), "x1": F(10), "x2": F(100)})["y"] == 421


def test_weights_of_one_name_are_numbered(network):
    layers = [network.add_constant((), np.float32(number)) for number in (1, 2)]
    for layer in layers:
        layer.name = "w"
    mark(network, y=combine(network, layers[0].get_output(0), layers[1].get_output(0), Op.SUB))
    function, weights = trt.to_jax(network)

    assert list(weights) == ["w", "w#1"]
    assert function({"w": F(5), "w#1": F(3)}, {})["y"] == 2


def test_changed_weights_change_the_result(network):
    function, weights = trt.to_jax(linear(network))
    changed = weights | {"weights": 2 * weights["weights"]}
    y, ys = by_hand(2 * np.float64(weights["weights"]), np.float64(weights["start"]), ROWS)
    got = function(changed, {"x": ROWS})

    assert_allclose(got["y"], y, rtol=1e-5)
    assert_allclose(got["ys"], ys, rtol=1e-5)


@pytest.mark.parametrize("operation", [trt.FillOperation.RANDOM_UNIFORM, trt.FillOperation.RANDOM_NORMAL])
def test_random_numbers_are_the_same_under_jit(operation, network):
    loop = counted(network, 3)
    state = loop.add_recurrence(network.add_constant((2,), np.zeros(2, F)).get_output(0))
    drawn = network.add_fill((2,), operation).get_output(0)
    state.set_input(1, combine(network, state.get_output(0), drawn))
    mark(network, y=last(loop, state.get_output(0)))
    function, weights = trt.to_jax(network)

    np.testing.assert_array_equal(jax.jit(function)(weights, {})["y"], trt.compile(network)({})["y"])


def test_missing_weight_is_reported(network):
    function, weights = trt.to_jax(linear(network))
    del weights["start"]
    with pytest.raises(trt.InputError, match=r"NL605: weight 'start' is missing; it is float32\[2\]") as caught:
        function(weights, {"x": ROWS})

    assert "IConstantLayer 'start'" in caught.value.findings[0].where


def test_weight_of_another_shape_is_reported(network):
    function, weights = trt.to_jax(linear(network))
    with pytest.raises(trt.InputError, match=r"NL605: weight 'start' is float32\[2\], and was given the shape \(3,\)"):
        function(weights | {"start": np.zeros(3, F)}, {"x": ROWS})


def test_weight_of_another_float_type_is_converted(network):
    function, weights = trt.to_jax(linear(network))
    got = function({name: weight.astype(jnp.bfloat16) for name, weight in weights.items()}, {"x": ROWS})

    assert got["y"].dtype == np.float32


@pytest.mark.parametrize("setting", [False, True])
def test_float64_weights_keep_their_digits(network, setting):
    with jax.enable_x64(setting):
        mark(network, y=combine(network, network.add_input("x", trt.float64, ()), 0.1, Op.PROD))
        function, weights = trt.to_jax(network)
        got = function(weights, {"x": np.float64(1)})["y"]

    assert got.dtype == np.float64
    assert float(got) == 0.1


def test_edits_of_the_network_do_not_reach_the_function(network):
    weights = np.ones(2, F)
    x = network.add_input("x", trt.float32, (2,))
    function, kept = trt.to_jax(mark(network, y=combine(network, x, network.add_constant((2,), weights).get_output(0))))
    weights[:] = 7
    mark(network, z=combine(network, x, 1))

    assert {name: array.tolist() for name, array in function(kept, {"x": F([0, 0])}).items()} == {"y": [1, 1]}


# ---------------------------------------------------------------------------- jit and inputs


def test_function_works_under_jit(network):
    function, weights = trt.to_jax(linear(network))
    y, ys = by_hand(np.float64(weights["weights"]), np.float64(weights["start"]), ROWS)
    got = jax.jit(function)(weights, {"x": ROWS})

    assert_allclose(got["y"], y, rtol=1e-5)
    assert_allclose(got["ys"], ys, rtol=1e-5)


def test_outputs_are_in_the_order_in_which_they_were_marked(network):
    function, weights = trt.to_jax(linear(network))

    assert list(function(weights, {"x": ROWS})) == ["y", "ys"]


@pytest.mark.parametrize("setting", [False, True])
@pytest.mark.parametrize("wrap", [lambda function: function, jax.jit], ids=["plain", "jit"])
def test_wide_integers_may_come_in_whatever_the_users_setting(network, setting, wrap):
    n = network.add_input("n", trt.int64, ())
    x = network.add_input("x", trt.float32, ())
    mark(network, y=combine(network, x, network.add_cast(combine(network, n, 1), trt.float32).get_output(0)))
    function, weights = trt.to_jax(network)
    with jax.enable_x64(setting):
        got = wrap(function)(weights, {"n": np.int64(41), "x": F(0)})["y"]

    assert (float(got), got.dtype) == (42, np.float32)


def test_shapes_are_specialised_for_each_call():
    function, weights = trt.to_jax(dynamic_axis())
    jitted = jax.jit(function)

    for length in (5, 2, 0):
        np.testing.assert_array_equal(jitted(weights, {"x": X[:length, :2]})["y"], np.cumsum(X[:length, :2], 0))


def test_input_that_decides_a_shape_cannot_be_traced():
    function, weights = trt.to_jax(length_is_an_input())
    with pytest.raises(trt.InputError, match="NL604: input 'n' decides a shape, and JAX is tracing it"):
        jax.jit(function)(weights, {"n": np.int32(3)})


def test_input_that_decides_a_shape_may_be_given_outside_of_jit():
    function, weights = trt.to_jax(length_is_an_input())
    jitted = jax.jit(lambda weights: function(weights, {"n": np.int32(3)}))

    assert jitted(weights)["y"].tolist() == [0, 1, 2]


def test_inputs_are_checked_under_jit():
    function, weights = trt.to_jax(running_sum())
    with pytest.raises(trt.InputError, match="NL603"):
        jax.jit(function)(weights, {"x": X[:4]})


@pytest.mark.parametrize("in_loop", [False, True])
def test_branch_that_is_not_possible_for_the_shapes_is_refused_with_a_way_out(network, in_loop):
    network.add_input("c", trt.bool, ())
    x = network.add_input("x", trt.float32, (-1, 2))
    loop = counted(network, 2)
    states = [loop.add_recurrence(x) for _ in range(2)] if in_loop else []
    conditional = network.add_if_conditional()
    conditional.set_condition(network.get_input(0))
    now = states[0].get_output(0) if in_loop else x
    row = network.add_squeeze(now, constant(network, [0], np.int32)).get_output(0)
    both = conditional.add_output(network.add_unsqueeze(row, constant(network, [0], np.int32)).get_output(0), now)
    for state in states:
        state.set_input(1, both.get_output(0))
    function, weights = trt.to_jax(
        mark(network, y=last(loop, states[1].get_output(0)) if in_loop else both.get_output(0))
    )

    assert function(weights, {"c": np.bool_(True), "x": F([[1, 2]])})["y"].tolist() == [[1, 2]]
    with pytest.raises(trt.NetworkError, match=r"NL501.*not possible for these shapes: axis 0 has 3 elements"):
        function(weights, {"c": np.bool_(False), "x": np.ones((3, 2), np.float32)})


# ---------------------------------------------------------------------------- gradients


def test_gradient_through_a_loop(network):
    function, weights = trt.to_jax(linear(network))

    def loss(both):
        got = function(both[0], {"x": jnp.asarray(both[1], F)})
        return jnp.sum(got["y"] ** 2) + jnp.sum(got["ys"] * jnp.arange(6).reshape(2, 3))

    check_gradient(loss, ({name: np.asarray(weight) for name, weight in weights.items()}, ROWS), rtol=1e-2)


@pytest.mark.parametrize("taken", [True, False])
def test_gradient_through_a_conditional(taken):
    function, weights = trt.to_jax(choice())
    gradient = jax.grad(lambda x: jnp.sum(function(weights, {"c": np.bool_(taken), "x": x})["y"] ** 2))(F([1, 2, 3]))

    # (2x)**2 or x**2
    assert_allclose(gradient, (8 if taken else 2) * F([1, 2, 3]))


def test_gradient_through_a_conditional_in_a_loop(network):
    x = network.add_input("x", trt.float32, ())
    loop = counted(network, 3)
    state = loop.add_recurrence(x)
    now = state.get_output(0)
    conditional = network.add_if_conditional()
    conditional.set_condition(combine(network, now, 5, Op.LESS))
    squared = combine(network, now, now, Op.PROD)
    state.set_input(1, conditional.add_output(squared, combine(network, now, 3, Op.PROD)).get_output(0))
    function, weights = trt.to_jax(mark(network, y=last(loop, now)))

    # 2 -> 4 -> 16 -> 48 = 3 x**4
    assert jax.grad(lambda x: function(weights, {"x": x})["y"])(F(2)) == 12 * 2**3


def test_gradient_through_nested_loops():
    function, weights = trt.to_jax(table())
    x, z = F([1, 2]), F([3, 4, 5])
    scale = np.arange(6, dtype=F).reshape(2, 3)
    by_x, by_z = jax.grad(lambda both: jnp.sum(scale * function(weights, dict(zip("xz", both, strict=True)))["y"]))(
        (x, z)
    )

    assert_allclose(by_x, scale @ z)
    assert_allclose(by_z, x @ scale)


def test_gradient_through_a_dynamic_axis():
    function, weights = trt.to_jax(dynamic_axis())
    gradient = jax.grad(lambda x: jnp.sum(function(weights, {"x": x})["y"]))(X[:3, :2])

    np.testing.assert_array_equal(gradient, [[3, 3], [2, 2], [1, 1]])


def test_gradient_of_an_lstm_is_finite():
    function, weights = trt.to_jax(lstm())
    inputs = {"x": 0.1 * np.ones((2, 3, 7), F), "h0": np.zeros((2, 5), F), "c0": np.zeros((2, 5), F)}
    gradient = jax.grad(lambda weights: jnp.sum(function(weights, inputs)["y"]))(weights)

    assert set(gradient) == set(weights)
    assert all(np.isfinite(value).all() and np.abs(value).max() > 0 for value in gradient.values())


@pytest.mark.parametrize("limit", ["count", "while"])
def test_forward_derivative_through_a_loop_whose_iterations_the_call_decides(network, limit):
    x = network.add_input("x", trt.float32, ())
    loop = network.add_loop()
    state = loop.add_recurrence(x)
    now = state.get_output(0)
    state.set_input(1, combine(network, now, now, Op.PROD))
    if limit == "count":
        loop.add_trip_limit(network.add_input("n", trt.int32, ()), trt.TripLimit.COUNT)
    else:
        loop.add_trip_limit(combine(network, now, 10, Op.LESS), WHILE)
    function, weights = trt.to_jax(mark(network, y=last(loop, now)))
    rest = {"n": np.int32(2)} if limit == "count" else {}

    # 2 -> 4 -> 16 = x**4
    value, slope = jax.jvp(lambda x: function(weights, {"x": x, **rest})["y"], (F(2),), (F(1),))
    assert (value, slope) == (16, 32)


def test_backward_derivative_through_such_a_loop_is_refused():
    function, weights = trt.to_jax(mark_float(count_is_an_input()))
    with pytest.raises(trt.NetworkError, match=r"NL504: .* has no derivatives in reverse mode"):
        jax.grad(lambda x: function(weights, {"n": np.int32(2), "x": x})["z"])(F(1))


def mark_float(network):
    """The network with z: x doubled n times."""
    loop = counted(network, network.inputs[0])
    state = loop.add_recurrence(network.add_input("x", trt.float32, ()))
    state.set_input(1, combine(network, state.get_output(0), state.get_output(0)))
    return mark(network, z=last(loop, state.get_output(0)))


# ---------------------------------------------------------------------------- vmap


def test_vmap_over_inputs_is_a_loop_over_examples(network):
    function, weights = trt.to_jax(linear(network))
    batch = np.stack([ROWS, -ROWS, 2 * ROWS])
    got = jax.vmap(function, (None, 0))(weights, {"x": batch})

    for index, rows in enumerate(batch):
        one = function(weights, {"x": rows})
        for name in got:
            assert_allclose(got[name][index], one[name], rtol=1e-6)


def test_vmap_over_weights_is_a_loop_over_examples(network):
    function, weights = trt.to_jax(linear(network))
    many = {name: np.stack([weight, 2 * weight]) for name, weight in weights.items()}
    got = jax.vmap(function, (0, None))(many, {"x": ROWS})["y"]

    for index in range(2):
        one = function({name: array[index] for name, array in many.items()}, {"x": ROWS})["y"]
        assert_allclose(got[index], one, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "batch", "wanted"),
    [
        (count_is_an_input, {"n": np.int32([0, 3, 5])}, [1, 8, 32]),
        (nested, {"n": np.int32([0, 1, 4])}, [0, 1, 20]),
        (choice, {"c": np.bool_([1, 0]), "x": F([[1, 2, 3], [1, 2, 3]])}, [[2, 4, 6], [1, 2, 3]]),
        (lambda: running_sum(2, LAST), {"x": np.stack([X, 2 * X])}, [[3, 5, 7], [6, 10, 14]]),
    ],
)
def test_examples_of_a_batch_may_take_different_ways(make, batch, wanted):
    function, weights = trt.to_jax(make())
    got = jax.vmap(function, (None, 0))(weights, batch)["y"]

    np.testing.assert_array_equal(got, wanted)


def test_gradient_of_a_batch_is_that_of_its_examples(network):
    function, weights = trt.to_jax(linear(network))
    batch = np.stack([ROWS, -ROWS])

    def loss(weights, x):
        return jnp.sum(function(weights, {"x": x})["y"] ** 2)

    whole = jax.grad(lambda weights: jnp.sum(jax.vmap(loss, (None, 0))(weights, batch)))(weights)
    parts = [jax.grad(loss)(weights, request) for request in batch]
    for name in weights:
        assert_allclose(whole[name], parts[0][name] + parts[1][name], rtol=1e-5)


# ---------------------------------------------------------------------------- passes and loaded weights


def two_products(network, name=""):
    """y: x[1,64] times the sum of two matrices, by two products that share x; found: elements ``at`` of a table."""
    x = network.add_input("x", trt.float32, (1, 64))
    products = []
    for seed in (1, 2):
        layer = network.add_constant((64, 64), np.random.default_rng(seed).standard_normal((64, 64)).astype(F))
        layer.name = name or f"w{seed}"
        none = trt.MatrixOperation.NONE
        products.append(network.add_matrix_multiply(x, none, layer.get_output(0), none).get_output(0))
    table = network.add_constant((4096,), np.arange(4096, dtype=np.int32))
    table.name = "table"
    found = network.add_gather(table.get_output(0), network.add_input("at", trt.int32, (2,)), 0).get_output(0)
    return mark(network, y=combine(network, *products), found=found)


GIVEN = {"x": np.linspace(-1, 1, 64, dtype=F)[None], "at": np.int32([7, 4095])}


def operations(function, weights):
    """The operations of the program of a function."""
    found, todo = set(), [jax.make_jaxpr(function)(weights, GIVEN).jaxpr]
    while todo:
        for eqn in todo.pop().eqns:
            found.add(eqn.primitive.name)
            todo += [inner.jaxpr for inner in eqn.params.values() if hasattr(inner, "jaxpr")]
    return found


def test_loaded_weights_need_no_preparation_in_a_call(network):
    two_products(network)
    plain, loaded = trt.to_jax(network), trt.to_jax(network, load=True)
    # machine code, which pure functions do not call, adds in another order
    wanted = trt.compile(network, passes=trt.PASSES.keys() - {"product_kernels"})(GIVEN)

    assert "concatenate" in operations(*plain)
    assert "concatenate" not in operations(*loaded)
    assert sorted(array.shape for array in loaded[1].values()) == [(64, 128), (4096,)]
    for function, weights in (plain, loaded):
        for name, value in jax.jit(function)(weights, GIVEN).items():
            np.testing.assert_array_equal(value, wanted[name])


def test_loaded_weights_can_be_changed(network):
    function, weights = trt.to_jax(two_products(network), load=True)
    doubled = {name: 2 * weight for name, weight in weights.items()}
    once, twice = function(weights, GIVEN), function(doubled, GIVEN)

    np.testing.assert_array_equal(twice["y"], 2 * once["y"])
    assert twice["found"].tolist() == [14, 8190]


def test_loaded_weights_of_one_name_are_numbered(network):
    function, weights = trt.to_jax(two_products(network, "table"), passes=[], load=True)

    assert list(weights) == ["table", "table#1", "table#2"]
    assert_allclose(function(weights, GIVEN)["y"], trt.evaluate(network, GIVEN)["y"], rtol=1e-4)


def test_missing_loaded_weight_is_reported(network):
    function, weights = trt.to_jax(two_products(network), load=True)
    del weights["table"]
    with pytest.raises(trt.InputError, match=r"NL605: weight 'table' is missing; it is int32\[4096\]"):
        function(weights, GIVEN)


@pytest.mark.parametrize(
    ("make", "which"),
    [(dynamic_axis, r"input 'x' is float32\[-1,2\]"), (length_is_an_input, r"input 'n' is int32\[\]")],
)
def test_weights_of_a_network_of_open_shapes_are_not_loaded(make, which):
    with pytest.raises(trt.NetworkError, match=f"NL617: {which}, and the weights are to be loaded"):
        trt.to_jax(make(), load=True)


def test_chosen_passes_are_applied(network):
    two_products(network)

    assert "concatenate" not in operations(*trt.to_jax(network, passes=[]))
    assert "concatenate" in operations(*trt.to_jax(network, passes=["horizontal_fusion"]))


def test_unknown_pass_and_other_types_are_refused(network):
    with pytest.raises(ValueError, match="there is no pass 'fusion'"):
        trt.to_jax(two_products(network), passes=["fusion"])
    with pytest.raises(TypeError, match="load"):
        trt.to_jax(network, load="yes")


def test_threads_trace_a_program_one_after_the_other(monkeypatch):
    inside, most, run_in = [], [], Program.run_in

    def slow(program, frame):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.05)
        inside.pop()
        return run_in(program, frame)

    monkeypatch.setattr(Program, "run_in", slow)
    function, weights = trt.to_jax(running_sum())

    def sums(precision):
        with jax.default_matmul_precision(precision):
            return function(weights, {"x": X})["y"]

    with ThreadPoolExecutor(3) as pool:
        results = [*pool.map(sums, ["default", "high", "highest"])]

    np.testing.assert_array_equal(results, [X[:3].sum(0)] * 3)
    assert max(most) == 1
