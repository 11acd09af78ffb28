"""Layers by the names of TensorRT 7 and 8."""

import numpy as np
import pytest

import netloop
from netloop.tools.compat.versions import module_of
from tests.support.log import Log

trt = module_of(8)


@pytest.fixture
def network():
    return trt.Builder(Log()).create_network(1)


def image(network, shape=(1, 2, 6, 6)):
    return network.add_input("x", trt.float32, shape)


def test_attributes_have_their_older_names_and_those_of_today(network):
    kernel = np.ones((3, 2, 2, 2), np.float32)
    convolution = network.add_convolution(image(network), 3, (2, 2), kernel)
    convolution.stride, convolution.padding, convolution.dilation = (2, 2), (1, 1), (1, 2)
    pooling = network.add_pooling(convolution.get_output(0), trt.PoolingType.AVERAGE, (2, 2))
    pooling.stride = pooling.window_size = (1, 2)

    assert [convolution.kernel_size, convolution.stride, convolution.dilation] == [(2, 2), (2, 2), (1, 2)]
    assert [convolution.stride_nd, convolution.post_padding, convolution.padding_nd] == [(2, 2), (1, 1), (1, 1)]
    assert [pooling.window_size_nd, pooling.stride_nd, pooling.type] == [(1, 2), (1, 2), trt.PoolingType.AVERAGE]
    assert convolution.get_output(0).shape == (1, 3, 4, 3)
    assert isinstance(convolution, netloop.IConvolutionLayer)
    assert [network[0] == convolution, network[0].kernel_size, network.get_layer(1).type] == [
        True,
        (2, 2),
        trt.LayerType.POOLING,
    ]


def test_deconvolution_and_padding_have_their_older_names(network):
    deconvolution = network.add_deconvolution(image(network), 1, (2, 2), np.ones((2, 1, 2, 2), np.float32))
    deconvolution.stride = (2, 2)
    padding = network.add_padding(deconvolution.get_output(0), (1, 0), (0, 0))
    padding.post_padding = (0, 3)

    assert [padding.pre_padding, padding.post_padding_nd] == [(1, 0), (0, 3)]
    assert padding.get_output(0).shape == (1, 1, 13, 15)


def test_names_of_today_alone_stay_without_the_version():
    layer = netloop.INetworkDefinition().add_input("x", netloop.float32, (1, 1, 4, 4))
    layer = layer.types.owner.add_pooling_nd(layer, netloop.PoolingType.MAX, (2, 2))

    with pytest.raises(AttributeError, match=r"IPoolingLayer has no attribute 'window_size'; .*window_size_nd"):
        assert layer.window_size


def test_product_with_a_matrix_takes_the_last_three_axes(network):
    matrix, bias = np.arange(144, dtype=np.float32).reshape(2, 72) / 100, np.float32([1, 2])
    layer = network.add_fully_connected(image(network, (3, 2, 6, 6)), 2, matrix, bias)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    x = np.random.default_rng(0).standard_normal((3, 2, 6, 6)).astype(np.float32)

    assert [layer.num_output_channels, layer.type, layer.kernel.size] == [2, trt.LayerType.FULLY_CONNECTED, 144]
    y = netloop.compile(network)({"x": x})["y"]
    np.testing.assert_allclose(y, (x.reshape(3, 72) @ matrix.T + bias)[..., None, None], rtol=1e-5)
    layer.num_output_channels = 1
    assert layer.num_output_maps == 1


# the examples of TensorRT's documentation of padding modes: 6 elements, padding 3, stride 2, window 3
@pytest.mark.parametrize(("mode", "length"), [("CAFFE_ROUND_DOWN", 5), ("CAFFE_ROUND_UP", 5)])
def test_padding_of_caffe_leaves_out_windows_that_begin_behind_the_input(network, mode, length):
    pooling = network.add_pooling(image(network), trt.PoolingType.MAX, (3, 3))
    pooling.stride, pooling.pre_padding = (2, 2), (3, 3)
    pooling.padding_mode = getattr(trt.PaddingMode, mode)
    network.mark_output(pooling.get_output(0))
    network.finished()

    assert pooling.get_output(0).shape == (1, 2, length, length)


def test_padding_of_caffe_rounds_up(network):
    pooling = network.add_pooling(image(network, (1, 1, 5, 5)), trt.PoolingType.MAX, (2, 2))
    pooling.stride = (2, 2)
    pooling.padding_mode = trt.PaddingMode.CAFFE_ROUND_UP
    network.finished()

    assert pooling.get_output(0).shape == (1, 1, 3, 3)


def test_padding_of_caffe_is_that_in_front_at_both_ends(network):
    convolution = network.add_convolution(image(network), 1, (2, 2), np.ones((1, 2, 2, 2), np.float32))
    convolution.pre_padding = (1, 2)
    convolution.padding_mode = trt.PaddingMode.CAFFE_ROUND_DOWN

    assert convolution.get_output(0).shape == (1, 1, 7, 9)


def test_padding_of_caffe_needs_known_lengths():
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network(1)
    pooling = network.add_pooling(image(network, (1, 1, -1, 5)), trt.PoolingType.MAX, (2, 2))
    pooling.padding_mode = trt.PaddingMode.CAFFE_ROUND_UP
    network.mark_output(pooling.get_output(0))

    assert builder.build_engine(network, builder.create_builder_config()) is None
    assert log.errors()[0].startswith("NL679: the padding of Caffe depends on the lengths of the input")


def test_corners_are_aligned_in_version_7():
    network = module_of(7).Builder(Log()).create_network(1)
    resize = network.add_resize(image(network))
    assert not resize.align_corners
    resize.align_corners = True

    assert resize.coordinate_transformation is netloop.ResizeCoordinateTransformation.ALIGN_CORNERS


def fill(network, first, step):
    layer = network.add_fill((3,), trt.FillOperation.LINSPACE)
    layer.set_input(1, network.add_constant((), first).get_output(0))
    layer.set_input(2, network.add_constant((1,), step).get_output(0))
    return layer


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_fill_has_the_type_of_its_alpha_and_beta(network, dtype):
    layer = fill(network, dtype(3), dtype([2]))

    assert isinstance(layer, netloop.IFillLayer)
    np.testing.assert_array_equal(layer.get_output(0).type.value, dtype([3, 5, 7]), strict=True)


def test_fill_without_inputs_is_float(network):
    layer = network.add_fill((3,), trt.FillOperation.LINSPACE)
    layer.alpha, layer.beta = 1, 2

    np.testing.assert_array_equal(layer.get_output(0).type.value, np.float32([1, 3, 5]), strict=True)


def test_type_that_a_script_sets_is_that_of_the_fill(network):
    layer = network.add_fill((3,), trt.FillOperation.LINSPACE)
    layer.set_output_type(0, trt.float16)
    layer.set_input(1, network.add_constant((), np.float16(3)).get_output(0))

    assert layer.to_type is trt.float16
    assert trt.Builder(Log()).create_network(1).add_fill((3,), layer.operation, trt.int32).to_type is trt.int32
