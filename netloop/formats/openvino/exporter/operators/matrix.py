"""Matrix products and einsum."""

from netloop.formats.openvino.exporter.layer_builder import broadcast_shape
from netloop.formats.openvino.exporter.operators import IrPort, LayerBuilder, OnnxNode, exports
from netloop.values.types import UNKNOWN


@exports("MatMul")
def matmul(build: LayerBuilder, node: OnnxNode, a: IrPort, b: IrPort) -> IrPort:
    shape = None
    if a.shape is not None and b.shape is not None and min(len(a.shape), len(b.shape)) > 1:
        batch = broadcast_shape((a.shape[:-2], b.shape[:-2])) or ()
        shape = (*batch, a.shape[-2], b.shape[-1])
    product = build.op("MatMul", 1, a, b, shape=shape, transpose_a=False, transpose_b=False)
    return build.copy(product) if _may_lose_a_factor(a, b) else product


def _may_lose_a_factor(a: IrPort, b: IrPort) -> bool:
    """Whether OpenVINO may compute a product wrong together with the layers that read it.

    A factor for each column behind a ReLU or clip is lost where there are two columns and the sums have at most two
    terms, as trials of all lengths up to 5 show.
    """
    if a.shape is None or b.shape is None or min(len(a.shape), len(b.shape)) < 2:
        return False
    terms = {a.shape[-1], b.shape[-2]} - {UNKNOWN}
    return a.dtype.kind == "f" and all(count <= 2 for count in terms) and b.shape[-1] in (UNKNOWN, 2)


@exports("Einsum")
def einsum(build: LayerBuilder, node: OnnxNode, *operands: IrPort) -> IrPort:
    return build.op("Einsum", 7, *operands, equation=node.attributes["equation"])
