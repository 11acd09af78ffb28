"""Products of quantized numbers as bfloat16: exact integers, and where they are not used."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import netloop as trt
import netloop.onnx
from netloop.compiler.passes.bfloat16_products import FEATURES, IntegerProductLayer, multiplies_bfloat16
from tests.support.devices import only_on_cpus
from tests.support.examples import examples, mostly_slow
from tests.support.pass_checks import count, improved
from tests.support.quantized_models import QuantizedGraph, quantized_block, quantized_blocks

pytestmark = only_on_cpus("the pass is not used elsewhere")

ONLY = ["integers_as_floats", "channels_last", "bfloat16_products"]


@pytest.fixture(autouse=True)
def any_cpu(monkeypatch):
    monkeypatch.setattr("netloop.compiler.passes.bfloat16_products.multiplies_bfloat16", lambda: True)


@pytest.fixture
def any_size(monkeypatch):
    for name in ("MIN_LENGTH", "MIN_POSITIONS"):
        monkeypatch.setattr(f"netloop.compiler.passes.bfloat16_products.{name}", 1)


def product(dtype=np.uint8, zero=100, channels=40, maps=8, *, size=1, per_channel=True, shape=(5, 4), **named):
    """y: a convolution of quantized numbers, which have their channels last because of another one."""
    graph = QuantizedGraph(dtype, zero)
    before = graph.convolution(graph.pair("x", 0.05), channels, channels, 1, groups=channels)
    made = graph.convolution(graph.pair(before, 0.05), channels, maps, size, per_channel=per_channel, **named)
    return netloop.onnx.load(graph.model((1, channels, *shape), graph.add("Identity", made, output="y")))


def images(network, seed=0):
    x = np.random.default_rng(seed).normal(0, 4, network.inputs[0].shape).astype(np.float32)
    x.flat[::13] *= 1e4
    return {"x": x}


def uses(network, passes=ONLY):
    return count(improved(network, passes).network, IntegerProductLayer)


@pytest.mark.usefixtures("any_size")
@example(quantized_block(np.uint8, 3), 0)
@examples(3, nightly=150)
@given(quantized_blocks(), st.integers(0, 3))
def test_products_of_random_blocks_keep_the_meaning(model, seed):
    network = netloop.onnx.load(model)
    inputs = images(network, seed)
    wanted = trt.evaluate(network, inputs)["y"]
    made = improved(network, ONLY).network

    assert count(made, IntegerProductLayer) == 1
    for found in (trt.evaluate(made, inputs)["y"], np.asarray(trt.compile(network, passes=ONLY)(inputs)["y"])):
        difference = np.abs(found - wanted)
        # one step of 0.9 where a number is next to the middle of two steps
        assert difference.max() < 0.9 + 1e-4
        assert (difference > 1e-4).mean() < 0.02 + 1 / difference.size


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(
    ("dtype", "zero"), mostly_slow(2, [(np.uint8, 255), (np.int8, 9), (np.uint8, 0), (np.int8, 0), (np.int8, -128)])
)
def test_engine_agrees_with_the_reference(dtype, zero, per_channel):
    network = product(dtype, zero, per_channel=per_channel)
    inputs = images(network)
    wanted = trt.evaluate(network, inputs)["y"]
    found = np.asarray(trt.compile(network, passes=ONLY)(inputs)["y"])

    assert uses(network) == 1
    difference = np.abs(found - wanted)
    # a number before the product may be next to the middle of two steps of 0.05, and weights are at most 1.5
    assert difference.max() <= 0.05 * 1.5
    assert (difference > 1e-4).mean() <= 0.02


@pytest.mark.parametrize("length", [1, 64, 500])
def test_integers_are_multiplied_and_summed_exactly(length):
    random = np.random.default_rng(length)
    x = random.integers(-255, 256, (1, 6, 5, length)).astype(np.float32)
    x[0, 0] = 255
    kernel = random.integers(-128, 128, (length, 7)).astype(np.float32)
    kernel[:, 0] = -127
    made = IntegerProductLayer().lower(x, kernel.astype(jnp.bfloat16), np.ones(7, np.float32))

    np.testing.assert_array_equal(np.asarray(made), x.astype(np.int64) @ kernel.astype(np.int64))


def test_other_convolutions_are_left_alone():
    assert uses(product()) == 1
    assert not uses(product(channels=31))
    assert not uses(product(shape=(5, 3)))
    assert not uses(product(size=3, pads=[1] * 4))
    assert not uses(product(pads=[1] * 4))
    assert not uses(product(strides=[2, 2], shape=(9, 9)))
    assert not uses(product(groups=2))
    assert not uses(product(np.uint16, 3))


def test_scaled_weights_that_are_no_small_integers_are_left_alone():
    graph = QuantizedGraph(np.uint8, 3)
    kernel = graph.constant(np.ones((8, 40, 1, 1), np.float32))
    made = graph.add("Conv", graph.pair("x", 0.05), kernel)
    network = netloop.onnx.load(graph.model((1, 40, 5, 4), graph.add("Identity", made, output="y")))

    assert not uses(network)


def test_other_cpus_multiply_float32(monkeypatch):
    monkeypatch.setattr("netloop.compiler.passes.bfloat16_products.multiplies_bfloat16", lambda: False)

    assert not uses(product())
    assert not uses(product(), ["bfloat16_products"])


@pytest.mark.parametrize(
    ("text", "has"),
    [*[(f"flags\t\t: fpu {feature} sse", True) for feature in sorted(FEATURES)], ("flags\t\t: fpu avx512_bf16x", False),
     ("bugs\t\t: avx512_bf16", False), ("", False)],
)  # fmt: skip
def test_features_are_those_that_linux_lists(monkeypatch, tmp_path, text, has):
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\n{text}\n")
    monkeypatch.setattr("netloop.compiler.passes.bfloat16_products.CPU_INFO", file)

    assert multiplies_bfloat16.__wrapped__() is has


def test_system_without_such_a_file_has_none(monkeypatch, tmp_path):
    monkeypatch.setattr("netloop.compiler.passes.bfloat16_products.CPU_INFO", tmp_path / "none")

    assert multiplies_bfloat16.__wrapped__() is False
