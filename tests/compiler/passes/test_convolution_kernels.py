"""Convolutions as machine code: numbers, what one kernel computes, and where it does not apply."""

import jax
import numpy as np
import pytest
from hypothesis import given

import netloop as trt
from netloop.compiler.machine_code import processor as machine_code_processor
from netloop.compiler.machine_code.processor import processor
from netloop.compiler.passes.channels_last_layers import ChannelsLastConvolutionLayer
from netloop.compiler.passes.convolution_kernels import ConvolutionKernelLayer
from netloop.model.layers.pointwise import IActivationLayer, IElementWiseLayer
from tests.support import onnx_runtime
from tests.support.convolutions import (
    DTYPES,
    assert_near,
    block,
    convolved,
    inputs_of,
    relu,
    same_as_the_reference,
    single,
    singles,
)
from tests.support.devices import only_on_cpus
from tests.support.examples import examples
from tests.support.networks import constant, counted, mark
from tests.support.pass_checks import count, improved

pytestmark = [
    only_on_cpus("the pass is not used elsewhere"),
    pytest.mark.skipif(processor() is None, reason="the extra is not installed, or there are no kernels"),
]

ONLY = ["channels_last", "convolution_kernels"]
PADDED = {"pre_padding": (1, 1), "post_padding": (1, 1)}
SHAPE = (1, 8, 6, 7)


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    monkeypatch.setattr("netloop.compiler.passes.convolution_kernels.LEAST_WORK", 1)


def kernels(network):
    return count(network, ConvolutionKernelLayer)


def agrees(network, passes=ONLY):
    """The copy of a network after passes, which has the numbers of the reference and of onnxruntime."""
    copy, inputs = same_as_the_reference(network, passes), inputs_of(network)
    assert_near(trt.compile(network, passes=passes)(inputs), onnx_runtime.run(onnx_runtime.export(network), inputs))
    return copy


@examples(4, nightly=200)
@given(singles())
def test_any_convolution_keeps_its_meaning(network):
    same_as_the_reference(network, ONLY)


def test_the_layers_of_networks_for_images_keep_their_meaning():
    copy = agrees(block())

    # the last one has three maps
    assert kernels(copy) == 3
    # of the activations, one follows a product of the whole image and one a deconvolution
    assert count(copy, IActivationLayer) == 1


def test_all_passes_together_keep_the_meaning():
    copy = same_as_the_reference(block(), sorted(trt.PASSES))

    assert kernels(copy) == 3


def with_(build, shape=SHAPE, dtype=np.float32):
    """y: what a function makes of x and of a convolution of it."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", DTYPES[np.dtype(dtype)], shape)
    return mark(network, y=build(network, x, convolved(network, x, 8, (3, 3), **PADDED)))


def combined(network, a, b, op=trt.ElementWiseOperation.SUM):
    return network.add_elementwise(a, b, op).get_output(0)


def hard_swish(network, x):
    gate = network.add_activation(x, trt.ActivationType.HARD_SIGMOID)
    gate.alpha, gate.beta = 1 / 6, 0.5
    return combined(network, x, gate.get_output(0), trt.ElementWiseOperation.PROD)


def number(network, value):
    return constant(network, np.full((1, 1, 1, 1), value, np.float32), np.float32)


FOLLOWED = {
    "an activation": lambda network, x, y: relu(network, y),
    "a value that is read twice": lambda network, x, y: hard_swish(network, y),
    "a residual": lambda network, x, y: relu(network, combined(network, x, y)),
    "a number": lambda network, x, y: combined(network, number(network, 0.5), y, trt.ElementWiseOperation.MAX),
    "a number for each map": lambda network, x, y: combined(
        network, y, constant(network, np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1), np.float32)
    ),
    "twice itself": lambda network, x, y: combined(network, y, y),
    "several": lambda network, x, y: hard_swish(network, combined(network, hard_swish(network, y), x)),
}


@pytest.mark.parametrize("kind", FOLLOWED)
def test_what_follows_element_by_element_is_part_of_the_kernel(kind):
    copy = agrees(with_(FOLLOWED[kind]))

    assert kernels(copy) == 1
    assert not count(copy, IActivationLayer) + count(copy, IElementWiseLayer)


def test_numbers_and_biases_that_are_refitted_are_those_of_the_next_call():
    network = with_(FOLLOWED["a number for each map"])
    layers = {type(layer).__name__: layer for layer in network}
    layers["IElementWiseLayer"].get_input(1).producer.name = "steps"
    engine, inputs = trt.compile(network, passes=ONLY), inputs_of(network)
    before = np.asarray(engine(inputs)["y"])

    refitter = trt.Refitter(engine, trt.Logger())
    assert refitter.set_weights("steps", trt.WeightsRole.CONSTANT, np.full(8, 3, np.float32))
    assert refitter.refit_cuda_engine()

    steps = np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1)
    np.testing.assert_allclose(engine(inputs)["y"], before - steps + 3, atol=1e-5)


def test_what_others_read_is_computed_for_them():
    def build(network, x, y):
        active = relu(network, y)
        network.mark_output(active)
        return combined(network, active, x)

    copy = agrees(with_(build))

    assert kernels(copy) == 1
    assert count(copy, IElementWiseLayer) == 1
    assert not count(copy, IActivationLayer)


def test_a_mean_of_what_follows_is_not_part_of_it():
    def build(network, x, y):
        means = network.add_reduce(y, trt.ReduceOperation.AVG, 0b1100, True).get_output(0)
        return combined(network, y, means, trt.ElementWiseOperation.PROD)

    copy = agrees(with_(build))

    assert (kernels(copy), count(copy, IElementWiseLayer)) == (1, 1)


def test_a_convolution_of_what_follows_reads_it_from_memory():
    copy = agrees(with_(lambda network, x, y: combined(network, y, convolved(network, y, 8, (1, 1), seed=3))))

    # the second adds the first
    assert (kernels(copy), count(copy, IElementWiseLayer)) == (2, 0)


def test_a_sum_of_two_convolutions_is_part_of_one_of_them():
    def build(network, x, y):
        other = convolved(network, x, 8, (1, 1), seed=3)
        return relu(network, combined(network, other, convolved(network, relu(network, y), 8, (1, 1), seed=4)))

    copy = agrees(with_(build))

    assert kernels(copy) == 3
    assert not count(copy, ChannelsLastConvolutionLayer) + count(copy, IActivationLayer)


def test_what_a_kernel_and_another_layer_read_is_computed_once():
    def build(network, x, y):
        other = convolved(network, x, 8, (1, 1), seed=3)
        network.mark_output(relu(network, other))
        return combined(network, y, other)

    copy = agrees(with_(build))

    assert (kernels(copy), count(copy, ChannelsLastConvolutionLayer)) == (2, 0)


@pytest.mark.parametrize("window", [(1,), (4,), (1, 1), (5, 2)])
def test_axes_of_one_or_two_windows(window):
    assert kernels(agrees(single((2, 5, 9, 8)[: len(window) + 2], np.float32, 20, window))) == 1


def test_others_stay_with_xla():
    def uses(maps=8, window=(3, 3), shape=SHAPE, dtype=np.float32, **named):
        return kernels(improved(single(shape, dtype, maps, window, **named), ONLY).network) == 1

    assert uses()
    assert uses(groups=8)
    assert uses(groups=1, **PADDED)
    assert uses(groups=2)
    assert not uses(6, groups=2)
    assert not uses(3)
    assert not uses(16, groups=8)
    assert not uses(dtype=np.float16)
    assert not uses(dtype=np.float64)
    assert not uses(window=(2, 2, 2), shape=(1, 8, 4, 4, 4))
    assert not uses(transposed=True, stride_nd=(2, 2))
    # a window of nothing but padding
    assert not uses(pre_padding=(5, 0))
    assert uses(shape=(1, 8, -1, 7))
    assert uses(shape=(1, 8, -1, -1), **PADDED)
    # a short one could have such windows
    assert not uses(shape=(1, 8, -1, 7), **PADDED, dilation_nd=(2, 1))
    assert not uses(shape=(1, 8, -1, 7), pre_padding=(3, 0))


def of_chosen_rows(network, name):
    """An image [1, 8, rows, 1] with as many rows as an input [23] has elements that are not zero."""
    places = network.add_non_zero(network.add_input(name, trt.float32, (23,))).get_output(0)
    chosen = network.add_shuffle(places)
    chosen.reshape_dims = (-1,)
    rows = network.add_gather(
        constant(network, np.arange(23 * 8).reshape(23, 8) / 100, np.float32), chosen.get_output(0), 0
    )
    image = network.add_shuffle(rows.get_output(0))
    image.second_transpose, image.reshape_dims = (0, 3, 1, 2), (1, -1, 1, 8)
    return image.get_output(0)


def first(count_):
    return (np.arange(23) < count_).astype(np.float32)


@pytest.mark.parametrize("windows", [((3, 3), (1, 1)), ((5, 1), (2, 0)), ((1, 4), (0, 3))])
def test_lengths_that_only_a_run_knows(windows):
    window, padding = windows
    network = trt.INetworkDefinition()
    y = convolved(network, of_chosen_rows(network, "x"), 16, window, pre_padding=padding, post_padding=padding)
    network = mark(network, y=hard_swish(network, y))
    engine = trt.compile(network, passes=[*ONLY, "bucketing"])
    for count_ in (1, 2, 3, 8, 9, 17, 23, 9, 3):
        inputs = {"x": first(count_)}
        assert_near(engine(inputs), trt.evaluate(network, inputs))
    assert any("convolution_kernels" in str(note) for note in engine.notes)


def test_an_array_of_one_row_that_only_a_run_knows_is_added_to_each():
    network = trt.INetworkDefinition()
    y = convolved(network, of_chosen_rows(network, "x"), 8, (3, 3), **PADDED)
    mark(network, y=combined(network, y, of_chosen_rows(network, "added")))
    engine = trt.compile(network, passes=[*ONLY, "bucketing"])
    for rows in (5, 1):
        inputs = {"x": first(5), "added": first(rows)}
        assert_near(engine(inputs), trt.evaluate(network, inputs))
    assert any("convolution_kernels" in str(note) for note in engine.notes)


def test_small_ones_stay_with_xla(monkeypatch):
    monkeypatch.setattr("netloop.compiler.passes.convolution_kernels.LEAST_WORK", 6 * 7 * 8 * 8 + 1)

    assert not kernels(improved(single(SHAPE, np.float32, 8, (1, 1)), ONLY).network)
    assert kernels(improved(single(SHAPE, np.float32, 9, (1, 1)), ONLY).network)


def test_without_the_extra_they_stay_with_xla(monkeypatch):
    monkeypatch.setattr(machine_code_processor, "find_spec", lambda name: None)
    processor.cache_clear()
    try:
        assert not kernels(improved(block(), ONLY).network)
    finally:
        monkeypatch.undo()
        processor.cache_clear()


def test_a_loop_computes_a_convolution_of_each_state():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, SHAPE)
    loop = counted(network, 3)
    state = loop.add_recurrence(x)
    state.set_input(1, relu(network, convolved(network, state.get_output(0), 8, (3, 3), **PADDED)))
    last = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)

    assert kernels(agrees(mark(network, y=last))) == 1


def test_a_loop_that_adds_to_a_convolution_before_it_adds_itself():
    def build(network, x, y):
        loop = counted(network, 3)
        state = loop.add_recurrence(x)
        state.set_input(1, combined(network, state.get_output(0), y))
        return loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)

    copy = agrees(with_(build))

    assert (kernels(copy), count(copy, IElementWiseLayer)) == (1, 1)


def test_pure_functions_have_derivatives():
    network = with_(FOLLOWED["a value that is read twice"])
    function, weights = trt.to_jax(network)
    inputs = inputs_of(network)

    gradient = jax.grad(lambda x: function(weights, {"x": x})["y"].sum())(inputs["x"])

    assert gradient.shape == SHAPE
    assert np.isfinite(gradient).all()
