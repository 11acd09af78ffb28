"""Connectionist temporal classification (CTC)."""

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import TopKOperation


@operator("CTCGreedyDecoder", "opset1")
def ctc_greedy_decoder(call: LayerCall, x: ITensor, mask: ITensor) -> ITensor:
    """Greedy CTC decoding of masked sequences, time before batch; float32[batch, time, 1, 1], padded with -1."""
    make = call.make
    blank = make.sub(make.tensor(make.length(x, 2)), 1)
    # The first 0 of a mask ends the sequence.
    active = make.equal(make.cumulative_sum(make.cast(make.equal(mask, 0), np.int64)), 0)
    merges = call.flag("ctc_merge_repeated", True)
    classes, _ = _decoded(call, make.transpose(x, (1, 0, 2)), make.transpose(active, (1, 0)), blank, merges)
    return make.expand_dims(make.cast(classes, x.type.dtype), [2, 3])


@operator("CTCGreedyDecoderSeqLen", "opset6")
def ctc_greedy_decoder_with_lengths(
    call: LayerCall, x: ITensor, lengths: ITensor, blank: Maybe = None
) -> list[ITensor]:
    """Greedy CTC decoding of sequences of given lengths: the classes, padded with -1, and their number."""
    make = call.make
    last = make.sub(make.tensor(make.length(x, 2)), 1)
    index = last if blank is None else make.scalar(make.cast(blank, np.int64))
    ends = make.expand_dims(make.cast(lengths, np.int64), [1])
    active = make.less(make.arange(make.length(x, 1)), ends)
    result = _decoded(call, x, active, index, call.flag("merge_repeated", True))
    names = "classes_index_type", "sequence_length_type"
    return [make.cast(tensor, call.element_type(name, "i32")) for tensor, name in zip(result, names, strict=True)]


def _decoded(call: LayerCall, x: ITensor, active: ITensor, blank: ITensor, merges: bool) -> tuple[ITensor, ITensor]:
    """The decoded classes of each sequence, [batch, time], padded with -1; and their number."""
    make = call.make
    best = make.squeeze(make.best(TopKOperation.MAX, x, 1, 2)[1], [2])
    batch, time = make.length(x, 0), make.tensor(make.length(x, 1))
    kept = make.logical_and(active, make.logical_not(make.equal(best, blank)))
    if merges:
        first = make.full([batch, 1], -1, np.int64)
        before = make.take_first(make.concat([first, best], 1), time, 1)
        kept = make.logical_and(kept, make.logical_not(make.equal(best, before)))
    places = make.cumulative_sum(make.cast(kept, np.int64), 1)
    # Dropped steps are written to an extra element, which is cut off.
    targets = make.where(kept, make.sub(places, 1), time)
    empty = make.full([batch, make.add(time, 1)], -1, np.int64)
    written = make.scatter_elements(empty, targets, best, 1)
    return make.take_first(written, time, 1), make.sum(make.cast(kept, np.int64), [1])
