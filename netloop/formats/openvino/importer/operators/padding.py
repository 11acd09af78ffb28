"""Padding and reversed sequences."""

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.shared.word_tables import PAD_MODES
from netloop.model.graph.tensor import ITensor


@operator("ReverseSequence", "opset1")
def reverse_sequence(call: LayerCall, x: ITensor, lengths: ITensor) -> ITensor:
    """The leading elements of each sequence in reverse order."""
    layer = call.make.network.add_reverse_sequence(x, call.make.cast(lengths, np.int64))
    layer.batch_axis = call.axis(x, "batch_axis", 0)
    layer.sequence_axis = call.axis(x, "seq_axis", 1)
    return call.make.output(layer)


PADDINGS = {**PAD_MODES.openvino.read, "symmetric": None}


@operator("Pad", "opset1", "opset12")
def pad(call: LayerCall, x: ITensor, before: ITensor, after: ITensor, value: Maybe = None) -> ITensor:
    """Padding around axes: constant, edge, reflect or symmetric; negative widths crop."""
    make, mode = call.make, call.choice("pad_mode", PADDINGS)
    axes = make.constant(np.arange(x.type.rank))
    widths = make.list_tensor(before), make.list_tensor(after)
    if mode is not None:
        return make.pad(x, *widths, mode, value, axes)
    before_each, after_each = (call.known_ints(width, "widths") for width in widths)
    for axis, (start, end) in enumerate(zip(before_each, after_each, strict=True)):
        x = _mirrored(call, x, axis, start, end)
    return x


def _mirrored(call: LayerCall, x: ITensor, axis: int, before: int, after: int) -> ITensor:
    """An axis mirrored at its ends, the edge elements included."""
    make = call.make
    back = make.backwards(x, [axis])
    length = make.length(x, axis)
    parts = [x]
    if before > 0:
        parts.insert(0, make.slice(back, [make.sub(make.tensor(length), before)], [before], axes=[axis]))
    if after > 0:
        parts.append(make.slice(back, [0], [after], axes=[axis]))
    return make.concat(parts, axis)
