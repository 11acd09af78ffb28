"""Loops and branches inside ``jax.shard_map``, with its check of what varies from device to device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

import netloop as trt
from netloop.model.manual_axes import cond, scan, while_loop
from tests.model.layers.test_example_calls import PLAIN, added, value
from tests.support.examples import mostly_slow
from tests.support.laws import assert_close
from tests.support.networks import CONCATENATE, EXAMPLES, REVERSE, WHILE, F, Op, combine, constant, last, mark, stacked

ROWS = PartitionSpec("rows")
EVERYWHERE = PartitionSpec()

pytestmark = pytest.mark.eight_devices


def mapped(function, given=ROWS, returned=ROWS):
    mesh = Mesh(jax.devices()[:8], ("rows",))
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=returned))


def doubled(trips=5):
    """y: the first x * 2 ** n that is not below 100; ys, reversed: those before it."""
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    state = loop.add_recurrence(network.add_input("x", trt.float32, ()))
    now = state.get_output(0)
    state.set_input(1, combine(network, now, now))
    loop.add_trip_limit(combine(network, now, 100, Op.LESS), WHILE)
    room = constant(network, 10, np.int32)
    ys, backwards = stacked(loop, now, room, CONCATENATE), stacked(loop, now, room, REVERSE)
    return mark(network, y=last(loop, now), ys=ys, backwards=backwards)


def by_hand(x):
    values = [x]
    while values[-1] < 100:
        values.append(2 * values[-1])
    room = np.zeros(10 - len(values) + 1, F)
    return values[-1], F([*values[:-1], *room]), F([*values[:-1][::-1], *room])


@pytest.mark.parametrize("outside", [lambda f: jax.jit(jax.vmap(f)), lambda f: jax.vmap(jax.jit(f)), mapped])
def test_rows_of_a_while_loop_end_by_themselves(outside):
    function, weights = trt.to_jax(doubled())
    x = np.arange(1, 9, dtype=F)

    def run(x):
        return function(weights, {"x": x})

    made = outside(jax.vmap(run) if outside is mapped else run)(x)

    for row, other in enumerate(x):
        y, ys, backwards = by_hand(other)
        assert made["y"][row] == y
        np.testing.assert_array_equal(made["ys"][row], ys)
        np.testing.assert_array_equal(made["backwards"][row], backwards)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"length is an input"}))
def test_every_example_runs_on_each_device(name):
    example = EXAMPLES[name]
    function, weights = trt.to_jax(example.make())
    inputs = {key: np.stack([tensor] * 8) for key, tensor in example.inputs.items()}

    made = mapped(jax.vmap(lambda inputs: function(weights, inputs)))(inputs)

    for key, wanted in example.outputs.items():
        np.testing.assert_allclose(made[key], np.stack([wanted] * 8), rtol=1e-6)


@pytest.mark.parametrize("method", mostly_slow(20, PLAIN))
def test_every_layer_runs_on_each_device(method):
    network, layer = added(method)
    for tensor in layer.outputs:
        network.mark_output(tensor)
    function, weights = trt.to_jax(network)
    inputs = {tensor.name: value(tensor.type) for tensor in network.inputs}
    rows = {"row": np.zeros(8), **{name: np.stack([tensor] * 8) for name, tensor in inputs.items()}}

    def run(rows):
        return function(weights, {name: rows[name] for name in inputs})

    with jax.enable_x64(True):
        made = mapped(jax.vmap(run))(rows)
    for name, wanted in function(weights, inputs).items():
        assert_close(np.asarray(made[name])[5], np.asarray(wanted), 1e-5)


def test_powers_of_integers_vary(network):
    x = network.add_input("x", trt.int32, (1,))
    function, weights = trt.to_jax(mark(network, y=combine(network, constant(network, [3], np.int32), x, Op.POW)))

    made = mapped(lambda x: function(weights, {"x": x})["y"])(np.arange(8, dtype=np.int32))

    assert made.tolist() == [3**index for index in range(8)]


def test_axes_go_from_state_to_state():
    """The third state varies after three iterations only, as each gets the value of the one before."""

    def step(state, row=None):
        first, second, third, x = state
        return (x, first, second, x), third

    def run(x):
        zeros = (jnp.zeros(1),) * 3
        ended = while_loop(lambda state: state[2][0] < 1, lambda state: step(state)[0], (*zeros, x))
        scanned, rows = scan(step, (*zeros, x), jnp.arange(4))
        return ended[2], scanned[2], rows

    third, scanned, rows = mapped(run, ROWS, (ROWS, ROWS, PartitionSpec(None, "rows")))(np.arange(1, 9, dtype=F))
    assert third.tolist() == scanned.tolist() == list(range(1, 9))
    assert rows.tolist() == [[0] * 8] * 3 + [list(range(1, 9))]


@pytest.mark.parametrize(
    "counts",
    [
        lambda x: while_loop(lambda count: count < x[0], lambda count: count + 1, jnp.int32(0)),
        lambda x: cond(x[0] > 3, lambda: jnp.int32(1), lambda: jnp.int32(0)),
    ],
    ids=["while", "cond"],
)
def test_what_depends_on_a_condition_that_varies_does_too(counts):
    """JAX itself types these as equal on all devices, and would return the number of the first one."""
    x = np.arange(8, dtype=np.int32)
    with pytest.raises(ValueError, match="out_specs"):
        mapped(counts, ROWS, EVERYWHERE)(x)

    assert mapped(lambda x: counts(x)[None])(x).tolist() in ([*range(8)], [0] * 4 + [1] * 4)


@pytest.mark.parametrize("is_tracked", [True, False])
def test_bodies_are_traced_again_only_where_jax_tracks_what_varies(is_tracked):
    traces = {"lax": 0, "netloop": 0}

    def body(kind):
        def run(state):
            traces[kind] += 1
            return state + 1

        return run

    def run(x):
        ended = jax.lax.while_loop(lambda state: state[0] < 3, body("lax"), x)
        return ended + while_loop(lambda state: state[0] < 3, body("netloop"), x)

    devices = Mesh(jax.devices()[:8], ("rows",))
    mapping = jax.shard_map(run, mesh=devices, in_specs=ROWS, out_specs=ROWS, check_vma=is_tracked)

    assert jax.jit(mapping)(np.zeros(8, F)).tolist() == [6] * 8
    assert (traces["netloop"] > traces["lax"]) == is_tracked


def test_branches_may_vary_along_other_axes():
    def run(x):
        return cond(x.sum() < 3, lambda: (x, jnp.zeros(1)), lambda: (jnp.ones(1), x))

    first, second = mapped(run, ROWS, (ROWS, ROWS))(np.arange(8, dtype=F))
    assert first.tolist() == [0, 1, 2, 1, 1, 1, 1, 1]
    assert second.tolist() == [0, 0, 0, 3, 4, 5, 6, 7]


def test_a_scan_without_rows_returns_its_state():
    state, rows = mapped(lambda x: scan(lambda state, row: (state + x, state), jnp.zeros(1), jnp.zeros(0)), ROWS, ROWS)(
        np.arange(8, dtype=F)
    )
    assert state.tolist() == [0] * 8
    assert rows.shape == (0, 1)
