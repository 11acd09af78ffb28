"""The elements that a list has before a loop appends to it."""

from collections.abc import Sequence

import numpy as np

from netloop.compiler.passes.buffer_layers import FilledPartLayer, RowListLayer
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph import ITensor
from netloop.model.layers.sequence import ISequenceInsertLayer, ISequenceLayer
from netloop.values.types import TensorType


def appends(insertion: ISequenceInsertLayer) -> bool:
    """Whether a layer inserts a tensor at the end of a sequence."""
    return [*insertion.inputs, None][2] is None


def beginning_of(sequence: ITensor, kind: TensorType) -> list[ITensor] | None:
    """The elements of a sequence, and the sequences of rows in it, in order; None if it may have others.

    Args:
        sequence: the sequence.
        kind: the type that all elements must have.
    """
    parts, layer = list[ITensor](), sequence.producer
    while isinstance(layer, ISequenceInsertLayer) and appends(layer):
        parts.insert(0, operand(layer, 1))
        layer = operand(layer, 0).producer
    if isinstance(layer, RowListLayer):
        parts.insert(0, layer.outputs[0])
    elif isinstance(layer, ISequenceLayer):
        parts[:0] = filter(None, layer.inputs)
    else:
        return None
    return parts if all(_element(part) == (kind.dtype, kind.shape) for part in parts) else None


def _element(part: ITensor) -> tuple[object, ...]:
    layer = part.producer
    if isinstance(layer, RowListLayer):
        rows = operand(layer, 0).type
        return rows.dtype, rows.shape[1:]
    return part.type.dtype, part.type.shape


def is_counted(part: ITensor) -> bool:
    """Whether the number of elements of a part of ``beginning_of`` is known."""
    layer = part.producer
    if not isinstance(layer, RowListLayer):
        return True
    _, number, flags = [*layer.inputs, None, None][:3]
    return flags is None and (number is None or number.type.ints() is not None)


def begin_with(rewriter: Rewriter, parts: Sequence[ITensor], rows: Sequence[ITensor]) -> list[ITensor]:
    """The inputs of a ``RowListLayer`` of a list that begins with some elements, and goes on with rows.

    Args:
        rewriter: the copy of the network.
        parts: what the list begins with, of ``beginning_of``.
        rows: the inputs of a ``RowListLayer`` of the rest.
    """
    if not parts:
        return list(rows)
    pieces = [_rows_of(rewriter, part) for part in parts]
    buffer, number, *flags = rows
    make = rewriter.make
    # a COUNT may be negative
    pieces.append([buffer, make.maximum(make.cast(number, np.int64), 0), *flags])
    total = pieces[0][1]
    for piece in pieces[1:]:
        total = make.add(total, piece[1])
    joined = [make.concat([piece[0] for piece in pieces], 0), total]
    if any(piece[2:] for piece in pieces):
        joined.append(make.concat([_flags_of(rewriter, piece) for piece in pieces], 0))
    return joined


def _rows_of(rewriter: Rewriter, part: ITensor) -> list[ITensor]:
    """The rows of a part without any that do not count, their number, and perhaps flags."""
    make, layer = rewriter.make, part.producer
    if not isinstance(layer, RowListLayer):
        return [make.expand_dims(part, [0]), make.constant(np.int64(1))]
    rows, number, flags = [*layer.inputs, None, None][:3]
    assert rows is not None
    if number is None:
        return [rows, make.cast(make.tensor(make.length(rows, 0)), np.int64)]
    counted = make.maximum(make.cast(number, np.int64), 0)
    if counted.type.ints() == [rows.type.shape[0]]:
        return [rows, counted, *filter(None, [flags])]
    cut = (rewriter.network.add(FilledPartLayer(axis=0, slope=1, start=0), [x, counted]) for x in (rows, flags) if x)
    rows, *others = (layer.outputs[0] for layer in cut)
    return [rows, counted, *others]


def _flags_of(rewriter: Rewriter, piece: Sequence[ITensor]) -> ITensor:
    """A flag for each row of a piece, set where it has none."""
    rows, _, *flags = piece
    return flags[0] if flags else rewriter.make.full([rewriter.make.length(rows, 0)], True, np.bool_)
