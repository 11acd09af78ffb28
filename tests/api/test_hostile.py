"""What careless and hostile callers give: each ends in a typed error, or in the right number."""

import copy

import jax
import numpy as np
import pytest

import netloop as trt
from tests.support.networks import CONCATENATE, COUNT, F, combine, constant, counted, counter, last, mark, stacked


def doubling(network):
    x = network.add_input("x", trt.float32, (2,))
    mark(network, y=combine(network, x, x))
    return network


# ---------------------------------------------------------------------------- who owns an array


def test_engine_has_weights_of_its_own(network):
    weights = np.ones(5000, np.float32)
    x = network.add_input("x", trt.float32, (-1,))
    held = network.add_constant((5000,), weights)
    held.name = "held"
    highest = network.add_reduce(held.get_output(0), trt.ReduceOperation.MAX, 1, True).get_output(0)
    mark(network, y=combine(network, x, highest))
    engine = trt.compile(network)
    weights[:] = 100
    loaded = trt.Runtime(trt.Logger()).deserialize_cuda_engine(engine.serialize())

    for each in (engine, loaded):
        assert each({"x": np.zeros(1, np.float32)})["y"].tolist() == [1]
    assert trt.Refitter(engine, trt.Logger()).refit_cuda_engine()
    assert engine({"x": np.zeros(1, np.float32)})["y"].tolist() == [1]


def test_results_of_the_reference_are_the_callers_own(network):
    x = network.add_input("x", trt.float32, (2,))
    mark(network, same=network.add_identity(x).get_output(0), fixed=constant(network, [1, 2], np.float32))
    given = np.zeros(2, np.float32)
    made = trt.evaluate(network, {"x": given})
    made["same"][:], made["fixed"][:] = 7, 7

    assert given.tolist() == [0, 0]
    assert trt.evaluate(network, {"x": given})["fixed"].tolist() == [1, 2]


def test_weights_of_one_name_are_all_there(network):
    total = network.add_input("x", trt.float32, ())
    for value, name in ((1, "a"), (2, "a#2"), (3, "a")):
        layer = network.add_constant((), np.array(value, np.float32))
        layer.name = name
        total = combine(network, total, layer.get_output(0))
    mark(network, y=total)
    function, weights = trt.to_jax(network)

    assert sorted(float(each) for each in weights.values()) == [1, 2, 3]
    assert weights["a#2"] == 2
    assert function(dict.fromkeys(weights, F(0)), {"x": F(5)})["y"] == 5


def test_deep_network_is_copied_deeply_without_recursion(network):
    x = network.add_input("x", trt.float32, ())
    for _ in range(5000):
        x = network.add_identity(x).get_output(0)

    assert len(copy.deepcopy(network)) == len(copy.copy(network)) == 5000


# ---------------------------------------------------------------------------- sizes beyond sense


@pytest.mark.parametrize("shape", [(2**62, 2**62), (2**41,), (-2,), (2**63,)])
def test_input_of_no_possible_shape_is_refused(network, shape):
    with pytest.raises(ValueError, match=r"bytes|below -1|63 bits"):
        network.add_input("x", trt.float32, shape)


def test_tensor_too_large_is_a_finding(network):
    x, y = (network.add_input(name, trt.float32, shape) for name, shape in (("x", (2**31, 1)), ("y", (1, 2**31))))
    mark(network, z=combine(network, x, y))

    assert [each.code for each in trt.check(network)] == ["NL401"]


def test_length_too_large_at_run_time_is_an_error(network):
    length = network.add_input("length", trt.int64, ())
    loop = counted(network, 3)
    mark(network, y=stacked(loop, counter(network, loop), length))
    engine = trt.compile(network)

    with pytest.raises(trt.NetworkError, match="bytes"):
        engine({"length": np.int64(2**62)})


def test_attribute_beyond_a_float_is_refused(network):
    layer = network.add_activation(network.add_input("x", trt.float32, ()), trt.ActivationType.ELU)

    with pytest.raises(ValueError, match="beyond what a float holds"):
        layer.alpha = 10**400


def test_count_far_beyond_the_room_is_told_at_once(network):
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, 2**40, np.int64), COUNT)
    mark(network, y=stacked(loop, counter(network, loop), constant(network, 5, np.int32), CONCATENATE))

    for run in (trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)):
        with pytest.raises(trt.ExecutionError, match="room for 5 elements"):
            run(network, {})


@pytest.mark.parametrize("shape", [{3, 1}, {3: 1}, bytearray(b"ab"), "ab"])
def test_what_has_no_order_is_no_shape(shape):
    with pytest.raises(TypeError, match="sequence of ints"):
        trt.Dims(shape)


# ---------------------------------------------------------------------------- JAX around an engine


@pytest.mark.parametrize(
    "setting",
    [jax.disable_jit(), jax.debug_nans(True), jax.numpy_dtype_promotion("strict")],
    ids=["jit", "nans", "types"],
)
def test_settings_of_jax_do_not_reach_engines(network, setting):
    n = network.add_input("n", trt.int32, ())
    loop = network.add_loop()
    loop.add_trip_limit(n, COUNT)
    nothing = network.add_unary(constant(network, -1, np.float32), trt.UnaryOperation.LOG).get_output(0)
    mark(network, trips=last(loop, counter(network, loop)), nothing=nothing)
    with setting:
        made = trt.compile(network)({"n": np.int32(3)})

    assert made["trips"] == 3
    assert np.isnan(made["nothing"])


@pytest.mark.parametrize("run", [trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)])
def test_engine_in_a_transformation_points_to_the_pure_function(network, run):
    doubling(network)

    with pytest.raises(trt.InputError, match=r"netloop\.to_jax"):
        jax.jit(lambda x: run(network, {"x": x})["y"])(np.ones(2, np.float32))


# ---------------------------------------------------------------------------- no network, no inputs


@pytest.mark.parametrize("run", [trt.check, trt.compile, trt.to_jax, lambda network: trt.evaluate(network, {})])
def test_none_is_no_network(run):
    with pytest.raises(TypeError, match="network is INetworkDefinition"):
        run(None)


@pytest.mark.parametrize("inputs", [None, [1]])
def test_pure_function_takes_a_dict(network, inputs):
    function, weights = trt.to_jax(doubling(network))

    with pytest.raises(TypeError, match="a dict from names to arrays"):
        function(weights, inputs)


def test_roads_of_loops_of_one_name_are_all_there(network):
    n = network.add_input("n", trt.int32, ())
    for limit, name in ((constant(network, 2, np.int32), "a"), (n, "b")):
        loop = network.add_loop()
        loop.name = "loop"
        loop.add_trip_limit(limit, COUNT)
        mark(network, **{name: last(loop, counter(network, loop))})
    engine = trt.compile(network)

    assert {name: strategy.name for name, strategy in engine.loop_strategies.items()} == {
        "loop#0": "scan",
        "loop#1": "while",
    }


@pytest.mark.parametrize(
    ("address", "error"), [(1.5, TypeError), ("1", TypeError), (-1, ValueError), (2**70, ValueError)]
)
def test_address_is_a_number_of_a_pointer(network, address, error):
    context = trt.compile(doubling(network)).create_execution_context()

    with pytest.raises(error):
        context.set_tensor_address("x", address)


def test_allocator_is_an_allocator(network):
    with pytest.raises(TypeError, match="IOutputAllocator"):
        trt.compile(doubling(network)).create_execution_context().set_output_allocator("y", 3)
