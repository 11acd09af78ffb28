"""Careless and hostile callers get a typed error, or the right number."""

import copy

import numpy as np
import pytest

import netloop as trt
from tests.support.builds import doubling
from tests.support.findings import certain_errors_ignored
from tests.support.networks import CONCATENATE, COUNT, F, combine, constant, counter, mark, stacked


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

    assert sorted(float(weight) for weight in weights.values()) == [1, 2, 3]
    assert weights["a#2"] == 2
    assert function(dict.fromkeys(weights, F(0)), {"x": F(5)})["y"] == 5


def test_deep_network_is_copied_deeply_without_recursion(network):
    x = network.add_input("x", trt.float32, ())
    for _ in range(5000):
        x = network.add_identity(x).get_output(0)

    assert len(copy.deepcopy(network)) == len(copy.copy(network)) == 5000


@pytest.mark.parametrize("shape", [(2**62, 2**62), (2**41,), (-2,), (2**63,)])
def test_input_of_no_possible_shape_is_refused(network, shape):
    with pytest.raises(ValueError, match=r"bytes|below -1|63 bits"):
        network.add_input("x", trt.float32, shape)


def test_tensor_too_large_is_a_finding(network):
    x, y = (network.add_input(name, trt.float32, shape) for name, shape in (("x", (2**31, 1)), ("y", (1, 2**31))))
    mark(network, z=combine(network, x, y))

    assert [finding.code for finding in trt.check(network)] == ["NL401"]


def test_attribute_beyond_a_float_is_refused(network):
    layer = network.add_activation(network.add_input("x", trt.float32, ()), trt.ActivationType.ELU)

    with pytest.raises(ValueError, match="too large for a float"):
        layer.alpha = 10**400


def test_count_far_beyond_the_rows_is_reported_at_once(network):
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, 2**40, np.int64), COUNT)
    mark(network, y=stacked(loop, counter(network, loop), constant(network, 5, np.int32), CONCATENATE))

    for run in (trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)):
        with pytest.raises(trt.NetworkError, match=r"NL221: .* room for 5 elements"):
            run(network, {})
        with certain_errors_ignored(), pytest.raises(trt.ExecutionError, match="room for 5 elements"):
            run(network, {})


@pytest.mark.parametrize("shape", [{3, 1}, {3: 1}, bytearray(b"ab"), "ab"])
def test_shape_needs_an_order(shape):
    with pytest.raises(TypeError, match="sequence of ints"):
        trt.Dims(shape)


@pytest.mark.parametrize("run", [trt.check, trt.compile, trt.to_jax, lambda network: trt.evaluate(network, {})])
def test_none_is_refused_as_network(run):
    with pytest.raises(TypeError, match="network must be INetworkDefinition"):
        run(None)


@pytest.mark.parametrize("inputs", [None, [1]])
def test_pure_function_takes_a_dict(network, inputs):
    function, weights = trt.to_jax(doubling(network))

    with pytest.raises(TypeError, match="a dict from names to arrays"):
        function(weights, inputs)
