"""Integer convolutions as ONNX, which has none but ConvInteger."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import netloop as trt
from netloop.onnx import load
from netloop.values.types import data_type
from tests.support.networks import mark
from tests.support.onnx_runtime import export, run

RANDOM = np.random.default_rng(0)


def agree(network, inputs):
    meant, model = trt.evaluate(network, inputs), export(network)
    for optimized in (False, True):
        got = run(model, inputs, optimized)
        for name, wanted in meant.items():
            np.testing.assert_array_equal(got[name], wanted, strict=True)
    return {node.op_type for node in model.graph.node}


def convolved(dtype, lengths, kernel, transposed=False, bias=None, **attributes):
    """y: x of some dims, of which the channels are known, convolved with a kernel."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", data_type(dtype), lengths)
    add = network.add_deconvolution_nd if transposed else network.add_convolution_nd
    groups = attributes.get("num_groups", 1)
    maps = kernel.shape[1] * groups if transposed else kernel.shape[0]
    layer = add(x, maps, kernel.shape[2:], kernel, bias)
    for name, value in attributes.items():
        setattr(layer, name, value)
    return mark(network, y=layer.get_output(0))


def integers(shape, dtype):
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolution_of_any_integers_wraps(dtype, transposed):
    kernel, bias = integers((4, 4, 3, 2), dtype), integers(4, dtype)
    network = convolved(dtype, (2, 4, 5, 6), kernel, transposed, bias, stride_nd=(2, 1), padding_nd=(1, 1))

    assert not {"Conv", "ConvTranspose"} & agree(network, {"x": integers((2, 4, 5, 6), dtype)})


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("mode", trt.PaddingMode)
@pytest.mark.parametrize("lengths", [(-1, 4, -1), (2, 4, 7)])
def test_convolution_of_integers_with_groups_dilation_and_padding(transposed, mode, lengths):
    kernel = integers((4, 3, 3) if transposed else (6, 2, 3), "int32")
    network = convolved(
        "int32", lengths, kernel, transposed, num_groups=2, stride_nd=(2,), dilation_nd=(2,), pre_padding=(1,),
        post_padding=(2,), padding_mode=mode,
    )  # fmt: skip

    agree(network, {"x": integers((2, 4, 7), "int32")})
    if lengths[0] == -1:
        agree(network, {"x": integers((1, 4, 6), "int32")})
        agree(network, {"x": integers((0, 4, 8), "int32")})


def test_convolution_of_integers_in_space_with_two_batch_axes():
    network = convolved("int32", (2, 3, 1, 4, 5, 6), integers((2, 1, 2, 2, 2), "int32"), stride_nd=(1, 2, 3))

    agree(network, {"x": integers((2, 3, 1, 4, 5, 6), "int32")})


def quantized(types, zeros, axes=2, open_lengths=False, **attributes):
    """A model of one ConvInteger, with zero points that are constants, or inputs if they are named in ``zeros``."""
    of_x, of_kernel = types
    kernel = integers((6, 2, *[3, 2, 2][:axes]), of_kernel)
    dims = ["n", 4, *("hwd" if open_lengths else (7, 6, 5))][: axes + 2]
    inputs = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(of_x)), dims)]
    arrays, names = {"k": kernel}, ["x", "k", "", ""]
    for place, name, dtype in ((2, "x zero", of_x), (3, "k zero", of_kernel)):
        zero = zeros.get(name)
        if isinstance(zero, str):
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), []))
        elif zero is not None:
            arrays[name] = np.array(zero, dtype)
        names[place] = name if zero is not None else ""
    while not names[-1]:
        names.pop()
    node = helper.make_node("ConvInteger", names, ["y"], group=2, **attributes)
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, None)]
    graph = helper.make_graph([node], "g", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in arrays.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("types", [("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8"), ("int8", "uint8")])
@pytest.mark.parametrize(
    "zeros",
    [{}, {"x zero": 7}, {"k zero": 3}, {"x zero": 9, "k zero": [3]}, {"x zero": "an input", "k zero": "an input"}],
    ids=str,
)
def test_convolution_of_8_bits_stays_conv_integer(types, zeros):
    network = load(quantized(types, zeros, strides=[2, 1], pads=[1, 2, 0, 1], dilations=[1, 2]))
    inputs = {"x": integers((2, 4, 7, 6), types[0])}
    inputs |= {name: np.array(5, types["k" in name]) for name, zero in zeros.items() if isinstance(zero, str)}

    operators = agree(network, inputs)
    assert "ConvInteger" in operators
    assert not {"Sub", "Cast"} & operators


def test_convolution_with_a_zero_point_for_each_map():
    network = load(quantized(("uint8", "int8"), {"x zero": 3, "k zero": [99, 2, 3, -99, 5, 6]}, pads=[1, 1, 1, 1]))

    assert "ConvInteger" not in agree(network, {"x": integers((2, 4, 7, 6), "uint8")})


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("open_lengths", [False, True])
@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
def test_convolution_of_8_bits_with_open_lengths(axes, open_lengths, pad):
    attributes = {"pads": [1] * 2 * axes} if pad == "NOTSET" else {"auto_pad": pad}
    network = load(quantized(("uint8", "uint8"), {"x zero": 3, "k zero": 4}, axes, open_lengths, **attributes))

    agree(network, {"x": integers((2, 4, 7, 6, 5)[: axes + 2], "uint8")})
