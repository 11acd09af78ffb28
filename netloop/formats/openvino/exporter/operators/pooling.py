"""Pooling, and normalization over neighbouring channels."""

from typing import Any

from netloop.formats.openvino.exporter.layer_builder import open_shape
from netloop.formats.openvino.exporter.operators import INT64, IrPort, LayerBuilder, OnnxNode, exports
from netloop.formats.openvino.exporter.operators.convolution import window_attributes


@exports("MaxPool")
def max_pool(build: LayerBuilder, node: OnnxNode, x: IrPort) -> tuple[IrPort, IrPort]:
    result = IrPort(x.dtype, open_shape(x)), IrPort(INT64, open_shape(x))
    values = node.attributes
    build.layer(
        "MaxPool", 8, [x], result,
        kernel=values["kernel_shape"], dilations=values["dilations"], rounding_type="floor",
        index_element_type=INT64, axis=0, **window_attributes(node),
    )  # fmt: skip
    return result


@exports("AveragePool")
def average_pool(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    rounding = "ceil" if node.attributes.get("ceil_mode", 0) else "floor"
    values: dict[str, Any] = {"kernel": node.attributes["kernel_shape"], "rounding_type": rounding}
    values["exclude-pad"] = not node.attributes.get("count_include_pad", 0)
    is_dilated = max(node.attributes["dilations"]) > 1
    attributes = window_attributes(node, dilated=is_dilated)
    return build.op("AvgPool", 16 if is_dilated else 1, x, shape=open_shape(x), **values, **attributes)


@exports("LRN")
def lrn(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    numbers: dict[str, Any] = {name: float(node.attributes[name]) for name in ("alpha", "beta", "bias")}
    return build.op("LRN", 1, x, build.int64s(1), shape=x.shape, size=node.attributes["size"], **numbers)
