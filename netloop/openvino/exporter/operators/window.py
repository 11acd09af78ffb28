"""Convolutions, poolings and samples of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from netloop.diagnostics import require
from netloop.onnx_graph.graph import Node
from netloop.onnx_graph.node_builder import FLOAT, INT64
from netloop.openvino.exporter.layer_builder import LayerBuilder
from netloop.openvino.exporter.net import Port
from netloop.openvino.exporter.operator_table import says
from netloop.openvino.exporter.operators.arrange import joined
from netloop.openvino.exporter.operators.pointwise import paired
from netloop.types import UNKNOWN, Shape

AUTO_PAD = {"SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower", "VALID": "valid", "NOTSET": "explicit"}


def _spatial(node: Node, x: Port) -> int:
    kernel = node.attributes.get("kernel_shape") or node.attributes.get("strides")
    return len(kernel) if kernel else len(x.shape or ()) - 2


def _steps(node: Node, axes: int, *, dilated: bool = False) -> dict[str, Any]:
    """Strides and paddings, and dilations if they are asked for."""
    given = node.attributes
    dilations = {"dilations": list(given.get("dilations") or [1] * axes)} if dilated else {}
    pads = list(given.get("pads") or [0] * (2 * axes))
    return {
        "strides": list(given.get("strides") or [1] * axes),
        "pads_begin": pads[:axes],
        "pads_end": pads[axes:],
        "auto_pad": AUTO_PAD[given.get("auto_pad", "NOTSET")],
        **dilations,
    }


def _open(x: Port) -> Shape | None:
    return None if x.shape is None else (UNKNOWN,) * len(x.shape)


@says("Conv")
def convolution(build: LayerBuilder, node: Node, x: Port, kernel: Port, bias: Port | None = None) -> Port:
    """A convolution, of groups of channels if there are several."""
    axes, groups = _spatial(node, x), node.attributes.get("group", 1)
    steps = _steps(node, axes, dilated=True)
    if groups == 1:
        made = build.op("Convolution", 1, x, kernel, shape=_open(x), **steps)
    else:
        made = build.op("GroupConvolution", 1, x, _grouped(build, kernel, groups), shape=_open(x), **steps)
    return _moved(build, made, bias, axes)


@says("ConvTranspose")
def deconvolution(build: LayerBuilder, node: Node, x: Port, kernel: Port, bias: Port | None = None) -> Port:
    """The gradient of a convolution."""
    axes, groups = _spatial(node, x), node.attributes.get("group", 1)
    steps = _steps(node, axes, dilated=True)
    steps["output_padding"] = list(node.attributes.get("output_padding") or [0] * axes)
    if groups == 1:
        made = build.op("ConvolutionBackpropData", 1, x, kernel, shape=_open(x), **steps)
    else:
        own = _grouped(build, kernel, groups)
        made = build.op("GroupConvolutionBackpropData", 1, x, own, shape=_open(x), **steps)
    return _moved(build, made, bias, axes)


def _grouped(build: LayerBuilder, kernel: Port, groups: int) -> Port:
    """A kernel with an axis of groups in front."""
    lengths = build.shape_of(kernel)
    first = build.op("Slice", 8, lengths, *(build.ints(each) for each in (0, 1, 1, 0)), shape=(1,))
    rest = build.op("Slice", 8, lengths, *(build.ints(each) for each in (1, 1 << 31, 1, 0)), shape=(UNKNOWN,))
    each = paired(build, "Divide", first, build.ints(groups), m_pythondiv=True)
    return build.reshape(kernel, joined(build, [build.ints(groups), each, rest], 0))


def _moved(build: LayerBuilder, x: Port, bias: Port | None, axes: int) -> Port:
    if bias is None:
        return x
    return paired(build, "Add", x, build.reshape(bias, build.ints(1, -1, *[1] * axes)))


def _rounding(node: Node) -> str:
    return "ceil" if node.attributes.get("ceil_mode") else "floor"


@says("MaxPool")
def max_pool(build: LayerBuilder, node: Node, x: Port) -> tuple[Port, Port]:
    """The largest element of each window, and its place in the tensor."""
    axes = _spatial(node, x)
    made = Port(x.dtype, _open(x)), Port(INT64, _open(x))
    dilations = list(node.attributes.get("dilations") or [1] * axes)
    build.layer(
        "MaxPool", 8, [x], made,
        kernel=list(node.attributes["kernel_shape"]), dilations=dilations, rounding_type=_rounding(node),
        index_element_type=INT64, axis=0, **_steps(node, axes),
    )  # fmt: skip
    return made


@says("AveragePool")
def average_pool(build: LayerBuilder, node: Node, x: Port) -> Port:
    """The mean of each window."""
    given: dict[str, Any] = {"kernel": list(node.attributes["kernel_shape"]), "rounding_type": _rounding(node)}
    given["exclude-pad"] = not node.attributes.get("count_include_pad", 0)
    is_dilated = max(node.attributes.get("dilations") or (), default=1) > 1
    steps = _steps(node, _spatial(node, x), dilated=is_dilated)
    return build.op("AvgPool", 16 if is_dilated else 1, x, shape=_open(x), **given, **steps)


@says("GridSample")
def grid_sample(build: LayerBuilder, node: Node, x: Port, grid: Port) -> Port:
    """The elements at places that a grid tells."""
    require(x.shape is None or len(x.shape) == 4, "it samples volumes", "OpenVINO's GridSample samples pictures")
    modes = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}
    given = node.attributes
    return build.op(
        "GridSample", 9, x, grid,
        shape=_open(x), align_corners=bool(given.get("align_corners", 0)),
        mode=modes[given.get("mode", "linear")], padding_mode=given.get("padding_mode", "zeros"),
    )  # fmt: skip


@says("Resize")
def resize(
    build: LayerBuilder,
    node: Node,
    x: Port,
    roi: Port | None = None,
    scales: Port | None = None,
    sizes: Port | None = None,
) -> Port:
    """A picture of another size."""
    given = node.attributes
    how = given.get("coordinate_transformation_mode", "half_pixel")
    require(how != "tf_crop_and_resize", "it crops what it resizes", "OpenVINO's Interpolate does not")
    lengths = sizes if sizes is not None else scales
    assert lengths is not None
    linear = "linear_onnx" if len(x.shape or ()) == 4 else "linear"
    return build.op(
        "Interpolate", 11, x, lengths,
        shape=_open(x), mode={"linear": linear}.get(given.get("mode", "nearest"), given.get("mode", "nearest")),
        shape_calculation_mode="scales" if sizes is None else "sizes", coordinate_transformation_mode=how,
        nearest_mode=given.get("nearest_mode", "round_prefer_floor"), antialias=bool(given.get("antialias", 0)),
        cube_coeff=float(given.get("cubic_coeff_a", -0.75)),
        pads_begin=[0] * len(x.shape or ()), pads_end=[0] * len(x.shape or ()),
    )  # fmt: skip


@says("NonMaxSuppression")
def suppress(
    build: LayerBuilder,
    node: Node,
    boxes: Port,
    scores: Port,
    most: Port | None = None,
    overlap: Port | None = None,
    least: Port | None = None,
) -> Port:
    """The boxes that no better one of their class overlaps much."""
    scalar = build.constant(np.zeros(0, np.int64))
    defaults = (most, np.int64(0)), (overlap, np.float32(0)), (least, np.float32(-np.inf))
    limits = [build.constant(zero) if given is None else build.reshape(given, scalar) for given, zero in defaults]
    made = Port(INT64, (UNKNOWN, 3)), Port(FLOAT, (UNKNOWN, 3)), Port(INT64, (1,))
    encoding = "center" if node.attributes.get("center_point_box") else "corner"
    build.layer(
        "NonMaxSuppression", 9, [boxes, scores, *limits], made,
        box_encoding=encoding, sort_result_descending=False, output_type=INT64,
    )  # fmt: skip
    return made[0]
