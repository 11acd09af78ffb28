"""Gather of onnxruntime (com.microsoft)."""

import numpy as np

from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.onnx.importer.operators.microsoft.matrix import unpacked
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require


@microsoft("TorchEmbedding")
def torch_embedding(
    call: NodeCall, table: ITensor, indices: ITensor, padding: Maybe = None, scaled: Maybe = None
) -> ITensor:
    """Rows of a table, selected by index; the other inputs are for training."""
    return call.make.gather(table, indices)


@microsoft("GatherBlockQuantized")
def gather_block_quantized(
    call: NodeCall, x: ITensor, indices: ITensor, scales: ITensor, zeros: Maybe = None
) -> ITensor:
    """Slices along an axis, selected by index, of numbers of a few bits that have a scale for each block."""
    make, rank, bits, block = call.make, x.type.rank, call.attribute("bits"), call.attribute("block_size")
    along, across = call.axis(x, "gather_axis"), call.axis(x, "quantize_axis")
    require(along != across, f"gather_axis and quantize_axis are both {along}")
    packed = x.type.dtype == np.uint8
    require(not packed or across == rank - 1, f"quantize_axis is {across}, but bytes are packed along the last axis")
    numbers, scale = (make.gather(tensor, indices, along) for tensor in (x, scales))
    zero = None if zeros is None else make.gather(zeros, indices, along)
    axis = across + indices.type.rank - 1 if across > along else across
    if packed:
        numbers = unpacked(make, numbers, bits)
        zero = None if zero is None else unpacked(make, zero, bits)
    middle = 1 << bits - 1 if packed else 0
    blocks, count = make.length(scale, axis), make.tensor(make.length(numbers, axis))
    point = make.constant(np.float32(middle)) if zero is None else make.take_first(zero, make.tensor(blocks), axis)
    spread = [
        tensor if tensor.type.rank == 0 else _repeated(call, tensor, axis, block, count)
        for tensor in (make.cast(point, np.float32), make.cast(scale, np.float32))
    ]
    wide = make.mul(make.sub(make.cast(numbers, np.float32), spread[0]), spread[1])
    return make.cast(wide, scales.type.dtype)


def _repeated(call: NodeCall, x: ITensor, axis: int, times: int, count: ITensor) -> ITensor:
    """The first ``count`` elements along an axis, each repeated."""
    make, index = call.make, call.make.floor_div(call.make.arange(count), times)
    return make.gather(x, index, axis)
