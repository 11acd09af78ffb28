"""Programs for GPUs and TPUs, which JAX lowers without the device."""

import runpy
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import export

import netloop as trt
import netloop.onnx
from netloop.compiler.lower import has_program
from netloop.model.graph.layer import ILayer
from tests.model.layers.test_example_calls import added, value
from tests.support import networks
from tests.support.examples import mostly_slow
from tests.support.layer_specs import CALLS
from tests.support.quantized_models import quantized_block
from tests.support.random_networks import random_network
from tests.support.strategies import is_pure

ROOT = Path(__file__).parents[3]
BACKENDS = {"gpu": "cuda", "tpu": "tpu"}
"""The names of platforms in programs, by those of JAX's backends."""


@pytest.fixture(params=BACKENDS)
def platform(request, monkeypatch):
    """A platform, whose passes are chosen as if its devices were here."""
    monkeypatch.setattr(jax, "default_backend", lambda: request.param)
    return BACKENDS[request.param]


def program(network, inputs, platform):
    """The program of a network with all passes of a platform; inputs that decide shapes have their values."""
    function, weights = trt.to_jax(network, passes=trt.PASSES)
    decisive = {tensor.name for tensor in network.inputs if tensor.is_shape_tensor}
    fixed = {name: tensor for name, tensor in inputs.items() if name in decisive}
    given = {name: tensor for name, tensor in inputs.items() if name not in decisive}
    run = jax.jit(lambda weights, given: function(weights, {**fixed, **given}))
    with jax.enable_x64(True):
        return export.export(run, platforms=[platform])(weights, given)


def lstm():
    random = np.random.default_rng(0)
    network = networks.lstm(1, 5)
    return network, {tensor.name: random.normal(size=tensor.shape).astype(np.float32) for tensor in network.inputs}


def image():
    """A convolution, its largest numbers, and a scatter of them."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (1, 8, 16, 16))
    kernel = np.ones((8, 8, 3, 3), np.float32)
    y = network.add_convolution_nd(x, 8, (3, 3), kernel).get_output(0)
    top = network.add_topk(y, trt.TopKOperation.MAX, 4, 1 << 3)
    made = network.add_scatter(y, top.get_output(1), top.get_output(0), trt.ScatterMode.ELEMENT)
    made.axis = 3
    return networks.mark(network, y=made.get_output(0)), {"x": np.ones((1, 8, 16, 16), np.float32)}


def quantized():
    return netloop.onnx.load(quantized_block()), {"x": np.ones((1, 6, 7, 8), np.float32)}


@pytest.mark.parametrize("make", [lstm, image, quantized])
def test_network_has_a_program_for_the_platform(make, platform):
    network, inputs = make()

    assert program(network, inputs, platform).platforms == (platform,)


@pytest.mark.parametrize("name", networks.EXAMPLES)
def test_example_has_a_program_for_the_platform(name, platform):
    make, inputs, _ = networks.EXAMPLES[name]

    assert program(make(), inputs, platform).platforms == (platform,)


def every_kind_of_layer() -> trt.INetworkDefinition:
    """The example calls of all methods whose layers are part of programs, in one network."""
    network = trt.INetworkDefinition()
    for method in filter(is_in_programs, CALLS):
        mark_all(network, added(method, network)[1])
    return network


def is_in_programs(method: str) -> bool:
    """Whether the layer of an example call computes something, and not on the host."""
    network, layer = added(method)
    mark_all(network, layer)
    return bool(layer.outputs) and has_program(network, network.types)


def mark_all(network: trt.INetworkDefinition, layer: ILayer) -> None:
    for tensor in layer.outputs:
        network.mark_output(tensor)


def test_every_kind_of_layer_has_a_program_for_the_platform(platform):
    network = every_kind_of_layer()
    inputs = {tensor.name: value(tensor.type) for tensor in network.inputs}

    assert len({type(layer) for layer in network.layers}) > 45
    assert program(network, inputs, platform).platforms == (platform,)


BUILDS = "def build() -> trt.INetworkDefinition"
SAMPLES = [path for path in sorted((ROOT / "samples").glob("*.py")) if BUILDS in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_sample_has_a_program_for_the_platform(path, platform):
    network = runpy.run_path(str(path))["build"]()
    inputs = {
        tensor.name: np.ones([3 if length < 0 else length for length in tensor.shape], tensor.type.dtype)
        for tensor in network.inputs
    }

    assert program(network, inputs, platform).platforms == (platform,)


@pytest.mark.parametrize("seed", mostly_slow(3, range(20)))
def test_random_network_has_a_program_for_the_platform(seed, platform):
    grown = random_network(seed, False)
    if is_pure(grown.network, grown.inputs):
        assert program(grown.network, grown.inputs, platform).platforms == (platform,)
