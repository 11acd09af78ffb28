"""Pooling."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.openvino.importer.operators.convolution import sliding
from netloop.formats.shared.import_errors import present
from netloop.formats.shared.windows import among_all, pooled
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import DataType, PoolingType, TopKOperation
from netloop.values.types import UNKNOWN

ROUNDS = {"floor": (False, False), "ceil": (True, False), "ceil_torch": (True, True)}
"""For each rounding: whether there is a last partial window, and whether it must not start in the padding."""


def _window(call: LayerCall, x: ITensor) -> Sequence[int]:
    window = call.ints("kernel")
    require(len(window) == x.type.rank - 2, f"the input is {x.type}, and the kernel {list(window)}")
    return window


@operator("AvgPool", "opset1", "opset14", "opset16")
def average_pool(call: LayerCall, x: ITensor) -> ITensor:
    """Average of each window, with or without the padding."""
    layer = call.make.network.add_pooling_nd(x, PoolingType.AVERAGE, _window(call, x))
    layer.average_count_excludes_padding = call.flag("exclude-pad")
    return pooled(call.make, x, layer, sliding(call, x.type.rank - 2), *call.choice("rounding_type", ROUNDS, "floor"))


@operator("MaxPool", "opset1")
def max_pool(call: LayerCall, x: ITensor) -> ITensor:
    """Maximum of each window."""
    layer = call.make.network.add_pooling_nd(x, PoolingType.MAX, _window(call, x))
    return pooled(call.make, x, layer, sliding(call, x.type.rank - 2), *call.choice("rounding_type", ROUNDS, "floor"))


@operator("MaxPool", "opset8", "opset14")
def max_pool_with_indices(call: LayerCall, x: ITensor) -> list[ITensor]:
    """Maximum of each window, and its flat index in the axes from ``axis`` on."""
    make, slides = call.make, sliding(call, x.type.rank - 2)
    layer = make.network.add_pooling_indices(x, _window(call, x), DataType.INT64)
    indices = pooled(make, x, layer, slides, *call.choice("rounding_type", ROUNDS, "floor"))
    axis = call.axis(x, "axis", 0)
    indices = make.cast(among_all(make, x, indices, axis), call.element_type("index_element_type", "i64"))
    return [max_pool(call, x), indices]


LARGEST_MATRIX = 1 << 26
"""The most elements of the matrix whose product gives the means along an axis."""


@operator("AdaptiveAvgPool", "opset8")
def adaptive_average_pool(call: LayerCall, x: ITensor, shape: Maybe = None) -> ITensor:
    """Average of windows that divide the input evenly into the elements of the output."""
    make = call.make
    wanted = call.known_ints(present(shape, "the shape of the output must be an input"), "lengths")
    require(x.type.rank == len(wanted) + 2, f"the input is {x.type}, and the shape of the output {wanted}")
    for axis, count in enumerate(wanted, 2):
        length = x.type.shape[axis]
        require(length != UNKNOWN, f"the input is {x.type}, and its dims must be known")
        require(count > 0 and length * count <= LARGEST_MATRIX, f"axis {axis} has {length} elements, and gets {count}")
        indices = np.arange(count)
        starts, ends = indices * length // count, -(-(indices + 1) * length // count)
        inside = (np.arange(length)[:, None] >= starts) & (np.arange(length)[:, None] < ends)
        weights = (inside / (ends - starts)).astype(x.type.dtype)
        order = [*(index for index in range(x.type.rank) if index != axis), axis]
        x = make.transpose(make.matmul(make.transpose(x, order), make.constant(weights)), np.argsort(order).tolist())
    return x


@operator("AdaptiveMaxPool", "opset8")
def adaptive_max_pool(call: LayerCall, x: ITensor, shape: ITensor) -> list[ITensor]:
    """Maximum of windows that divide the input evenly, and its flat index in its image."""
    make, wanted = call.make, call.known_ints(shape, "lengths")
    rank, dims = x.type.rank, x.type.shape[2:]
    require(rank == len(wanted) + 2, f"the input is {x.type}, and the shape of the output {wanted}")
    require(UNKNOWN not in dims and min(wanted) > 0, f"the input is {x.type}, the output {wanted}; both must be known")
    most = math.prod(map(max, dims, wanted))
    require(most <= LARGEST_MATRIX, f"the windows have {most} elements or more, but may have {LARGEST_MATRIX}")
    windows = [_even_windows(length, count) for length, count in zip(dims, wanted, strict=True)]
    size = math.prod(window.size for window in windows)
    require(size <= LARGEST_MATRIX, f"the windows have {size} elements, but may have {LARGEST_MATRIX}")
    grid = np.ix_(*(np.arange(window.size) for window in windows))
    places = np.ravel_multi_index([window.ravel()[index] for window, index in zip(windows, grid, strict=True)], dims)
    split = places.reshape([length for window in windows for length in window.shape])
    axes = range(2 * len(windows))
    places = make.constant(split.transpose(*axes[::2], *axes[1::2]).reshape(math.prod(wanted), -1))
    lead = [make.length(x, axis) for axis in (0, 1)]
    parts = make.gather(make.reshape(x, [*lead, -1]), places, 2)
    highest, which = make.best(TopKOperation.MAX, parts, 1, 3)
    shown = make.broadcast_to(make.expand_dims(places, [0, 1]), make.shape(parts))
    indices = make.gather_elements(shown, which, 3)
    kind = call.element_type("index_element_type", "i64")
    return [make.reshape(highest, [*lead, *wanted]), make.cast(make.reshape(indices, [*lead, *wanted]), kind)]


def _even_windows(length: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The places of an axis in each of the windows that divide it evenly; shorter ones repeat their last place."""
    starts = np.arange(count) * length // count
    ends = -(-np.arange(1, count + 1) * length // count)
    return np.minimum(starts[:, None] + np.arange((ends - starts).max()), ends[:, None] - 1)


@operator("LRN", "opset1")
def response_normalization(call: LayerCall, x: ITensor, axes: ITensor) -> ITensor:
    """``x / (bias + alpha * mean) ** beta``, with the mean of the squares nearby along given axes."""
    make, size = call.make, call.int("size")
    alpha, beta, bias = (call.number(name) for name in ("alpha", "beta", "bias"))
    along = sorted(call.known_axes(axes, x.type.rank))
    require(size > 0, f"size is {size}, but must be positive")
    if not along:
        return make.div(x, make.power(make.add(make.mul(make.mul(x, x), alpha), bias), beta))
    rest = [axis for axis in range(x.type.rank) if axis not in along]
    order = [*rest, *along]
    rows = make.transpose(make.mul(x, x), order)
    sums = _window_means(make, rows, len(along), size)
    mean = make.transpose(sums, np.argsort(order).tolist())
    return make.div(x, make.power(make.add(make.mul(mean, alpha), bias), beta))


def _window_means(make: FormulaBuilder, x: ITensor, count: int, size: int) -> ITensor:
    """The mean of the window around each element along the last axes, with zeros outside of the input."""
    lengths = [make.length(x, axis) for axis in range(x.type.rank - count, x.type.rank)]
    flat = make.reshape(x, [-1, 1, *lengths, *([1] * (2 - count))])
    layer = make.network.add_pooling_nd(flat, PoolingType.AVERAGE, [size] * count + [1] * (2 - count))
    layer.pre_padding = [(size - 1) // 2] * count + [0] * (2 - count)
    layer.post_padding = [size // 2] * count + [0] * (2 - count)
    layer.average_count_excludes_padding = False
    return make.reshape(make.output(layer), make.shape(x))
