"""Convolutional networks for the tests of passes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import netloop as trt
from netloop.model.graph.tensor import ITensor
from tests.support.networks import constant, mark
from tests.support.pass_checks import improved

DTYPES: dict[Any, trt.DataType] = {np.dtype(np.float32): trt.float32, np.dtype(np.float16): trt.float16,
                                   np.dtype(np.float64): trt.DataType.DOUBLE}  # fmt: skip


def convolved(
    network: trt.INetworkDefinition,
    x: ITensor,
    maps: int,
    window: Sequence[int],
    *,
    transposed: bool = False,
    groups: int = 1,
    bias: bool = True,
    as_tensors: bool = True,
    seed: int = 0,
    **named: Any,
) -> ITensor:
    """A convolution, or a deconvolution, by random weights, which are constants or attributes of the layer."""
    random, dtype = np.random.default_rng(seed), x.type.dtype
    channels = x.type.shape[-len(window) - 1]
    first, second = (channels, maps // groups) if transposed else (maps, channels // groups)
    kernel = random.standard_normal((first, second, *window)).astype(dtype)
    shift = random.standard_normal(maps).astype(dtype) if bias else None
    add = network.add_deconvolution_nd if transposed else network.add_convolution_nd
    given = (trt.Weights(), None) if as_tensors else (kernel, shift)
    layer = add(x, maps, window, *given)
    layer.num_groups = groups
    for name, value in named.items():
        setattr(layer, name, value)
    if as_tensors:
        layer.set_input(1, constant(network, kernel, dtype))
        if shift is not None:
            layer.set_input(2, constant(network, shift, dtype))
    return layer.get_output(0)


def relu(network: trt.INetworkDefinition, x: ITensor) -> ITensor:
    return network.add_activation(x, trt.ActivationType.RELU).get_output(0)


def single(shape: Sequence[int], dtype: Any, maps: int, window: Sequence[int], **named: Any) -> trt.INetworkDefinition:
    """y: a convolution of x."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", DTYPES[np.dtype(dtype)], tuple(shape))
    return mark(network, y=convolved(network, x, maps, window, **named))


@st.composite
def singles(draw: Any, dtypes: Sequence[Any] = (np.float32,)) -> trt.INetworkDefinition:
    """Convolutions and deconvolutions of any rank, groups, strides, dilations and padding."""
    rank, transposed = draw(st.integers(1, 3)), draw(st.booleans())
    groups, per_group, maps = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 3))

    def along(least: int, most: int) -> list[int]:
        return draw(st.lists(st.integers(least, most), min_size=rank, max_size=rank))

    window, dilation = along(1, 3), along(1, 2)
    spans = [1 + step * (size - 1) for size, step in zip(window, dilation, strict=True)]
    lengths = [span + more for span, more in zip(spans, along(0, 4), strict=True)]
    # what is cut off an output may be more than a window writes
    most = [9 if transposed else span - 1 for span in spans]
    sides = [[min(number, limit) for number, limit in zip(along(0, 4), most, strict=True)] for _ in range(2)]
    network = single(
        (*draw(st.sampled_from([(1,), (2,), (2, 1)])), groups * per_group, *lengths),
        draw(st.sampled_from(dtypes)),
        groups * maps,
        window,
        transposed=transposed,
        groups=groups,
        bias=draw(st.booleans()),
        as_tensors=draw(st.booleans()),
        seed=draw(st.integers(0, 9)),
        stride_nd=along(1, 3),
        dilation_nd=dilation,
        pre_padding=sides[0],
        post_padding=sides[1],
        padding_mode=draw(st.sampled_from(list(trt.PaddingMode))),
    )
    assume(not any(finding.severity is trt.Severity.ERROR for finding in trt.check(network)))
    return network


def block(dtype: Any = np.float32, shape: Sequence[int] = (2, 4, 8, 9)) -> trt.INetworkDefinition:
    """y, z: two blocks as networks for images have them, with every layer that may have its channels last."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", DTYPES[np.dtype(dtype)], tuple(shape))
    a = relu(network, convolved(network, x, 8, (3, 3), pre_padding=(1, 1), post_padding=(1, 1)))
    pooled = network.add_pooling_nd(a, trt.PoolingType.MAX, (3, 3))
    pooled.stride_nd, pooled.padding_nd = (2, 2), (1, 1)
    b = pooled.get_output(0)
    c = convolved(network, b, 8, (3, 3), groups=8, pre_padding=(1, 1), post_padding=(1, 1), seed=1)
    means = network.add_reduce(c, trt.ReduceOperation.AVG, 0b1100, True).get_output(0)
    gate = network.add_activation(convolved(network, means, 8, (1, 1), seed=2), trt.ActivationType.SIGMOID)
    d = network.add_elementwise(c, gate.get_output(0), trt.ElementWiseOperation.PROD).get_output(0)
    e = network.add_elementwise(d, b, trt.ElementWiseOperation.SUM).get_output(0)
    resized = network.add_resize(e)
    resized.scales = (1, 1, 2, 3)
    wide = resized.get_output(0)
    part = network.add_slice(wide, (0, 2, 1, 0), (shape[0], 4, 6, 8), (1, 1, 1, 1)).get_output(0)
    other = network.add_slice(wide, (0,), (4,), (2,))
    other.axes = (1,)
    cut = network.add_slice(other.get_output(0), (0, 0, 0, 0), (shape[0], 4, 6, 8), (1, 1, 1, 1)).get_output(0)
    joined = network.add_concatenation([part, cut])
    joined.axis = -3
    scaled = network.add_scale(
        joined.get_output(0), trt.ScaleMode.CHANNEL, *(np.linspace(low, 2, 8, dtype=dtype) for low in (-1, 1))
    ).get_output(0)
    mean = network.add_pooling_nd(scaled, trt.PoolingType.AVERAGE, (2, 3))
    mean.padding_nd, mean.padding_mode = (1, 1), trt.PaddingMode.EXPLICIT_ROUND_UP
    z = convolved(network, mean.get_output(0), 4, (2, 2), transposed=True, stride_nd=(2, 2), seed=3)
    return mark(network, y=convolved(network, z, 3, (1, 1), seed=4), z=relu(network, z))


def inputs_of(network: trt.INetworkDefinition) -> dict[str, np.ndarray]:
    """Random inputs of their types."""
    random = np.random.default_rng(7)
    return {tensor.name: random.standard_normal(tensor.shape).astype(tensor.type.dtype) for tensor in network.inputs}


def assert_near(found: Mapping[str, Any], wanted: Mapping[str, np.ndarray], tolerance: float = 1e-5) -> None:
    """Require equality within a part of the largest number of each output, as sums of products cancel."""
    for name, array in wanted.items():
        wide = array.astype(np.float64)
        least = tolerance * np.abs(wide).max(initial=1)
        np.testing.assert_allclose(np.asarray(found[name]).astype(np.float64), wide, 0, least, err_msg=name)


def same_as_the_reference(
    network: trt.INetworkDefinition, passes: Sequence[str], tolerance: float = 1e-5
) -> trt.INetworkDefinition:
    """Require that reference and engine keep the meaning of a network after passes, and return the copy."""
    inputs = inputs_of(network)
    meant = trt.evaluate(network, inputs)
    copy = improved(network, passes).network
    assert_near(trt.evaluate(copy, inputs), meant, tolerance)
    assert_near(trt.compile(network, passes=passes)(inputs), meant, tolerance)
    return copy
