"""Convolutions by Winograd's algorithm: numbers, accuracy, and where it does not apply."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import netloop as trt
from netloop.compiler.passes.winograd import WinogradConvolutionLayer, WinogradKernelLayer
from netloop.model.layers.convolution import IConvolutionLayer
from tests.support import onnx_runtime
from tests.support.convolutions import assert_near, block, inputs_of, same_as_the_reference, single
from tests.support.devices import assert_allclose, only_on_cpus
from tests.support.examples import examples
from tests.support.pass_checks import count, improved

pytestmark = only_on_cpus("the pass is not used elsewhere")

ONLY = ["channels_last", "winograd"]
EPSILON = 2.0**-24
"""The largest relative error of a float32 rounding."""
PADDED = {"pre_padding": (1, 1), "post_padding": (1, 1)}


@pytest.fixture
def any_size(monkeypatch):
    for name in ("MIN_CHANNELS", "MIN_MAPS", "MIN_TILES", "MIN_WORK"):
        monkeypatch.setattr(f"netloop.compiler.passes.winograd.{name}", 1)


@pytest.mark.usefixtures("any_size")
@example((6, 8), (1, 0, 0, 2), (2, 3, 4), True)
@examples(4, nightly=150)
@given(
    st.tuples(*[st.integers(1, 9)] * 2),
    st.tuples(*[st.integers(0, 2)] * 4),
    st.tuples(*[st.integers(1, 4)] * 3),
    st.booleans(),
)
def test_any_size_and_padding_keep_the_meaning(lengths, padding, sizes, bias):
    batch, channels, maps = sizes
    lengths = [max(length, 3 - a - b) for length, a, b in zip(lengths, padding[:2], padding[2:], strict=True)]
    network = single(
        (batch, channels, *lengths), np.float32, maps, (3, 3), bias=bias,
        pre_padding=padding[:2], post_padding=padding[2:],
    )  # fmt: skip
    inputs = inputs_of(network)

    assert count(same_as_the_reference(network, ONLY), WinogradConvolutionLayer) == 1
    assert_near(trt.compile(network, passes=ONLY)(inputs), onnx_runtime.run(onnx_runtime.export(network), inputs))


def test_large_convolutions_use_it_and_others_do_not():
    def uses(channels, maps, length, **named):
        network = single((1, channels, length, length), named.pop("dtype", np.float32), maps, (3, 3), **PADDED, **named)
        return count(improved(network, ONLY).network, WinogradConvolutionLayer) == 1

    assert uses(64, 64, 14)
    assert uses(128, 128, 7)
    assert uses(64, 64, 14, transposed=True)
    assert not uses(64, 64, 7)
    assert not uses(16, 128, 28)
    assert not uses(128, 32, 28)
    assert not uses(512, 512, 6)
    for named in (
        {"dtype": np.float16},
        {"dtype": np.float64},
        {"groups": 2},
        {"stride_nd": (2, 1)},
        {"dilation_nd": (1, 2)},
        {"transposed": True, "stride_nd": (2, 2)},
    ):
        assert not uses(64, 64, 14, **named)


def test_no_pass_but_its_own_uses_it():
    network = single((1, 64, 14, 14), np.float32, 64, (3, 3), **PADDED)

    assert not count(improved(network, ["channels_last"]).network, WinogradConvolutionLayer)
    assert improved(network, ["winograd"]).network is network


# ---------------------------------------------------------------------------- accuracy

LENGTH = 12


def _largest_of_window(x: np.ndarray) -> np.ndarray:
    """The largest magnitude in each window of 3 x 3, [H, W, C]."""
    wide = np.pad(np.abs(x[0]), [(1, 1), (1, 1), (0, 0)])
    parts = [wide[i : i + LENGTH, j : j + LENGTH] for i in range(3) for j in range(3)]
    return np.max(parts, 0)


def spikes(random: np.random.Generator, channels: int) -> np.ndarray:
    x = random.standard_normal((1, LENGTH, LENGTH, channels))
    x[:, ::4, ::4] *= 1e6
    return x


IMAGES = {
    "normal": lambda random, channels: random.standard_normal((1, LENGTH, LENGTH, channels)),
    "far from 0": lambda random, channels: random.standard_normal((1, LENGTH, LENGTH, channels)) + 1000,
    "spikes": spikes,
    "all positive": lambda random, channels: random.uniform(0, 1, (1, LENGTH, LENGTH, channels)),
    "scales of channels": lambda random, channels: (
        random.standard_normal((1, LENGTH, LENGTH, channels)) * 10.0 ** random.uniform(-3, 3, channels)
    ),
    "tiny": lambda random, channels: random.standard_normal((1, LENGTH, LENGTH, channels)) * 1e-30,
    "huge": lambda random, channels: random.standard_normal((1, LENGTH, LENGTH, channels)) * 1e30,
}


def corner(kernel: np.ndarray) -> np.ndarray:
    """Only one element of the window counts, so that the others must cancel."""
    kernel[1:] = kernel[:, 1:] = 0
    return kernel


KERNELS = {
    "normal": lambda kernel: kernel,
    "edges": lambda kernel: kernel - kernel.mean((0, 1), keepdims=True),
    "corner": corner,
    "positive": np.abs,
}


@pytest.mark.parametrize("channels", [8, 256])
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("images", IMAGES)
def test_error_is_within_the_bound_of_the_rule(images, kernels, channels):
    random = np.random.default_rng(0)
    x = IMAGES[images](random, channels).astype(np.float32)
    kernel = KERNELS[kernels](random.standard_normal((3, 3, channels, 8))).astype(np.float32)
    named = {"stride_nd": (1, 1), "dilation_nd": (1, 1), "before": (1, 1), "after": (1, 1)}
    made = WinogradConvolutionLayer(**named).lower(x, WinogradKernelLayer().evaluate(kernel))
    wide = np.pad(x[0].astype(np.float64), [(1, 1), (1, 1), (0, 0)])
    windows = np.stack([wide[i : i + LENGTH, j : j + LENGTH] for i in range(3) for j in range(3)])
    meant = np.einsum("fhwc,fck->hwk", windows, kernel.reshape(9, channels, 8).astype(np.float64))
    # the bound of a sum of 9 C products, with the largest number of the window in the place of each
    size = np.einsum(
        "hwc,ck->hwk", _largest_of_window(x.astype(np.float64)), np.abs(kernel).astype(np.float64).sum((0, 1))
    )
    error = np.abs(np.asarray(made)[0] - meant)

    assert (error <= 16 * 9 * channels * EPSILON * size).all()
    # the roundings of many products nearly cancel: errors are far below the bound
    assert (error <= 16 * EPSILON * np.sqrt(channels) * size).all()


def test_infinity_reaches_only_the_windows_that_hold_it():
    x = np.ones((1, 8, 8, 1), np.float32)
    x[0, 4, 4] = np.inf
    named = {"stride_nd": (1, 1), "dilation_nd": (1, 1), "before": (1, 1), "after": (1, 1)}
    kernel = WinogradKernelLayer().evaluate(np.ones((3, 3, 1, 1), np.float32))
    made = np.asarray(WinogradConvolutionLayer(**named).lower(x, kernel))[0, :, :, 0]
    near = np.zeros((8, 8), bool)
    near[3:6, 3:6] = True

    assert np.isfinite(made[~near]).all()
    assert not np.isfinite(made[near]).any()


@pytest.mark.slow
@pytest.mark.usefixtures("any_size")
def test_derivatives_are_those_of_the_sum(monkeypatch):
    network = block()
    assert count(improved(network, ONLY).network, WinogradConvolutionLayer)
    x = inputs_of(network)["x"]

    def gradients():
        function, weights = trt.to_jax(network)
        return jax.grad(
            lambda weights, x: sum((array**2).sum() for array in function(weights, {"x": x}).values()), (0, 1)
        )(weights, x)

    found = gradients()
    monkeypatch.setattr("netloop.compiler.execution.to_jax.PURE", frozenset())
    wanted = gradients()
    assert_near(
        {**found[0], "x": found[1]},
        {name: np.asarray(value) for name, value in {**wanted[0], "x": wanted[1]}.items()},
        tolerance=2e-5,
    )
    assert not count(network, WinogradConvolutionLayer)
    assert count(network, IConvolutionLayer)


@pytest.mark.usefixtures("any_size")
def test_batches_by_vmap_are_those_of_calls():
    network = single((1, 3, 7, 6), np.float32, 4, (3, 3))
    function, weights = trt.to_jax(network)
    x = inputs_of(network)["x"]
    both = jax.vmap(lambda x: function(weights, {"x": x})["y"])(jnp.stack([x, 2 * x]))

    for number, factor in enumerate((1, 2)):
        assert_allclose(both[number], function(weights, {"x": factor * x})["y"], rtol=1e-5, atol=1e-5)
