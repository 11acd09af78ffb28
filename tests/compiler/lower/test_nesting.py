"""Nests that JAX and XLA cannot compile are refused at once, in every way to compile a network."""

import threading

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.lower.nesting import DEEPEST_NEST, DEEPEST_PURE_NEST, MOST_COPIES
from tests.support.examples import mostly_slow
from tests.support.nests import NESTS, inputs_of, last_values_of_inner_loops
from tests.support.networks import mark


def on_host(network):
    """The network, with a data-dependent shape beside it."""
    found = network.add_non_zero(network.add_input("found", trt.float32, (3,)))
    return mark(network, places=found.get_output(0))


REFUSING = {
    "compile": trt.compile,
    "interruptible": lambda network: trt.compile(network, interruptible=True),
    "host": lambda network: trt.compile(on_host(network)),
    "to_jax": trt.to_jax,
}


@pytest.mark.parametrize(
    ("nest", "way"),
    [
        # all ways ask alike, by the same measure
        pytest.param(nest, way, marks=[] if "compile" in way or nest == "loops and conditionals" else pytest.mark.slow)
        for nest in NESTS
        for way in REFUSING
    ],
)
def test_deep_nest_is_refused_at_once(nest, way):
    with pytest.raises(trt.NetworkError, match=r"NL502") as caught:
        REFUSING[way](NESTS[nest](400))

    (found,) = caught.value.findings
    assert found.what.endswith("is inside 399 other loops and conditionals")


@pytest.mark.parametrize("nest", NESTS)
def test_deep_nest_is_copied_and_shown(nest):
    network = NESTS[nest](400)

    assert [repr(layer) for layer in network.copy()] == [repr(layer) for layer in network]


def test_loops_and_conditionals_count_alike():
    deepest = NESTS["loops and conditionals"](DEEPEST_NEST)
    engine = trt.compile(deepest)

    assert engine(inputs_of(deepest))["y"] == 6
    with pytest.raises(trt.NetworkError, match=r"'.*' is inside 101 other loops and conditionals"):
        trt.compile(NESTS["loops and conditionals"](DEEPEST_NEST + 2))


@pytest.mark.parametrize("way", mostly_slow(1, ["compile", "host"]))
def test_deepest_nest_compiles_in_a_thread(way):
    network = NESTS["loops"](DEEPEST_NEST)
    network = on_host(network) if way == "host" else network
    found = []
    thread = threading.Thread(target=lambda: found.append(int(trt.compile(network)(inputs_of(network))["y"])))
    thread.start()
    thread.join(250)

    assert found == [6]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["compile", "host"])
@pytest.mark.parametrize("nest", ["loops", "loops from inside", "conditionals", "loops and conditionals"])
def test_deepest_nest_compiles(nest, way):
    network = NESTS[nest](DEEPEST_NEST)
    wanted = trt.evaluate(network, inputs_of(network))
    network = on_host(network) if way == "host" else network

    assert np.asarray(trt.compile(network)(inputs_of(network))["y"]) == wanted["y"]


@pytest.mark.parametrize("nest", ["loops", "conditionals"])
def test_deepest_pure_function_can_be_transformed(nest):
    network = NESTS[nest](DEEPEST_PURE_NEST)
    function, weights = trt.to_jax(network)
    inputs = {name: np.stack([array, array]) for name, array in inputs_of(network).items()}
    wanted = trt.evaluate(network, inputs_of(network))["y"]

    assert jax.jit(jax.vmap(lambda inputs: function(weights, inputs)))(inputs)["y"].tolist() == [wanted, wanted]


def test_deeper_pure_function_is_refused():
    with pytest.raises(trt.NetworkError, match=r"NL502.*inside 32 other loops"):
        trt.to_jax(NESTS["loops"](DEEPEST_PURE_NEST + 1))


def test_loops_that_would_be_compiled_too_often_are_refused():
    with pytest.raises(trt.NetworkError, match=r"NL502.*is compiled 16384 times"):
        trt.compile(last_values_of_inner_loops(15))

    assert MOST_COPIES < 2**14


def test_last_values_of_inner_loops_are_compiled():
    network = last_values_of_inner_loops(5)

    assert trt.compile(network)(inputs_of(network))["y"] == 5 + 2**5
