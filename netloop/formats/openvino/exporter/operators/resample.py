"""Resizing."""

from netloop.formats.openvino.exporter.layer_builder import open_shape
from netloop.formats.openvino.exporter.operators import IrPort, LayerBuilder, OnnxNode, exports
from netloop.formats.shared.word_tables import COORDINATE_TRANSFORMATIONS, NEAREST_ROUNDINGS, RESIZE_MODES
from netloop.values.diagnostics import require


@exports("Resize")
def resize(
    build: LayerBuilder,
    node: OnnxNode,
    x: IrPort,
    roi: IrPort | None = None,
    scales: IrPort | None = None,
    sizes: IrPort | None = None,
) -> IrPort:
    values, rank = node.attributes, len(x.shape or ())
    lengths = sizes if sizes is not None else scales
    assert lengths is not None
    mode = RESIZE_MODES.onnx_to_openvino[values["mode"]]
    return build.op(
        "Interpolate", 11, x, lengths,
        # OpenVINO's linear widens its triangle where it shrinks; its linear_onnx never does
        shape=open_shape(x), mode="linear_onnx" if mode == "linear" and rank == 4 else mode,
        shape_calculation_mode="scales" if sizes is None else "sizes",
        coordinate_transformation_mode=_transformation(node),
        nearest_mode=NEAREST_ROUNDINGS.onnx_to_openvino[values["nearest_mode"]], antialias=bool(values["antialias"]),
        cube_coeff=float(values["cubic_coeff_a"]), pads_begin=[0] * rank, pads_end=[0] * rank,
    )  # fmt: skip


def _transformation(node: OnnxNode) -> str:
    word = node.attributes["coordinate_transformation_mode"]
    words = COORDINATE_TRANSFORMATIONS.onnx_to_openvino
    require(
        word in words,
        f"it resizes with the coordinate transformation {word}",
        f"OpenVINO's Interpolate has only {', '.join(COORDINATE_TRANSFORMATIONS.openvino.write.values())}",
        "fix the shape of the input, or choose one of these" if word == "half_pixel_symmetric" else "",
    )
    return words[word]
