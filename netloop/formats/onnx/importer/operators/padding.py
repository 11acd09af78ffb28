"""Padding and reversed sequences."""

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.shared.word_tables import PAD_MODES
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.rearrange import axis_count
from netloop.values.diagnostics import require


@operator("ReverseSequence", since=10)
def reverse_sequence(call: NodeCall, x: ITensor, lengths: ITensor) -> ITensor:
    """The leading elements of each sequence in reverse order."""
    layer = call.make.network.add_reverse_sequence(x, lengths)
    layer.batch_axis, layer.sequence_axis = call.attribute("batch_axis"), call.attribute("time_axis")
    return call.make.output(layer)


@operator("Pad", since=(1, 2))
def pad_by_attributes(call: NodeCall, x: ITensor) -> ITensor:
    """Padding around axes: constant, edge, reflect or wrap; negative widths crop."""
    make = call.make
    widths = call.attribute("pads" if call.node.version >= 2 else "paddings")
    return pad(call, x, make.constant(widths, np.int64), make.constant(call.attribute("value"), x.type.dtype))


@operator("Pad", since=(11, 18))
def pad(call: NodeCall, x: ITensor, widths: ITensor, value: Maybe = None, axes: Maybe = None) -> ITensor:
    """Padding around axes: constant, edge, reflect or wrap; negative widths crop."""
    make, mode = call.make, call.choice("mode", PAD_MODES.onnx.read)
    axes = make.constant(np.arange(x.type.rank)) if axes is None else make.list_tensor(axes)
    count, widths = axis_count(axes.type), make.list_tensor(widths)
    require(widths.type.shape == (2 * count,), f"the widths are {widths.type}, but must be {2 * count} numbers")
    before, after = (make.slice(widths, [start], [count]) for start in (0, count))
    return make.pad(x, before, after, mode, value, axes)
