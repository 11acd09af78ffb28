"""Connectionist temporal classification: the best class of each step, repeats and blanks left out."""

from __future__ import annotations

import numpy as np

from netloop.enums import TopKOperation
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator
from netloop.openvino.importer.weights import element_type


@operator("CTCGreedyDecoder", "opset1")
def by_mask(call: Call, x: ITensor, mask: ITensor) -> ITensor:
    """Sequences of time before batch, with a mask of their steps; float32[batch, time, 1, 1], -1 at the end."""
    make = call.make
    blank = make.sub(make.tensor(make.length(x, 2)), 1)
    # the first 0 of a mask ends the sequence
    going = make.equal(make.cumulative_sum(make.cast(make.equal(mask, 0), np.int64)), 0)
    merges = call.flag("ctc_merge_repeated", True)
    classes, _ = _decoded(call, make.transpose(x, (1, 0, 2)), make.transpose(going, (1, 0)), blank, merges)
    return make.expand_dims(make.cast(classes, x.type.dtype), [2, 3])


@operator("CTCGreedyDecoderSeqLen", "opset6")
def by_length(call: Call, x: ITensor, lengths: ITensor, blank: ITensor | None = None) -> list[ITensor]:
    """Sequences of given lengths; the classes of each with -1 at the end, and how many they are."""
    make = call.make
    last = make.sub(make.tensor(make.length(x, 2)), 1)
    index = last if blank is None else make.scalar(make.cast(blank, np.int64))
    ends = make.expand_dims(make.cast(lengths, np.int64), [1])
    going = make.less(make.arange(make.length(x, 1)), ends)
    found = _decoded(call, x, going, index, call.flag("merge_repeated", True))
    names = "classes_index_type", "sequence_length_type"
    return [make.cast(each, element_type(call.text(name, "i32"))) for each, name in zip(found, names, strict=True)]


def _decoded(call: Call, x: ITensor, going: ITensor, blank: ITensor, merges: bool) -> tuple[ITensor, ITensor]:
    """The classes that stay of each sequence, [batch, time], -1 at the end; and how many they are."""
    make = call.make
    best = make.squeeze(make.best(TopKOperation.MAX, x, 1, 2)[1], [2])
    batch, time = make.length(x, 0), make.tensor(make.length(x, 1))
    kept = make.logical_and(going, make.logical_not(make.equal(best, blank)))
    if merges:
        first = make.broadcast_to(make.constant(-1), make.list_tensor([batch, 1]))
        before = make.take_first(make.concat([first, best], 1), time, 1)
        kept = make.logical_and(kept, make.logical_not(make.equal(best, before)))
    places = make.cumulative_sum(make.cast(kept, np.int64), 1)
    # what is left out goes to one place more, which is cut off
    targets = make.where(kept, make.sub(places, 1), time)
    room = make.broadcast_to(make.constant(-1), make.list_tensor([batch, make.add(time, 1)]))
    written = make.scatter_elements(room, targets, best, 1)
    return make.take_first(written, time, 1), make.sum(make.cast(kept, np.int64), [1])
