"""Weight folding: compute layers that depend on weights only at load time, once, and not in each call.

Weights are arguments of the program, so XLA computes what follows from them anew in each call: 10 times as long for a
char-RNN of 2 x 512 by one step a call (benchmarks/RESULTS.md).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from netloop.model.graph import Elementary, ILayer, ITensor, Operation, TypeTable
from netloop.model.layers.gather import IGatherLayer
from netloop.model.layers.pointwise import ICastLayer, IIdentityLayer
from netloop.model.layers.quantize import IDequantizeLayer
from netloop.model.layers.rearrange import IConcatenationLayer, Rearrangement
from netloop.model.layers.slice import ISliceLayer
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest import Block, LayerStep, Step, own_reads, walk, weight_only_tensors
from netloop.values.diagnostics import LayerError
from netloop.values.string_arrays import STRING

SMALLEST = 1 << 12
"""The least number of bytes of weights for which folding gains anything."""
MOST_GROWTH = 4
"""The most that folding may multiply the bytes of its inputs by: larger results would fill the memory."""

BY_NUMPY = (Elementary, ICastLayer, IConcatenationLayer, IDequantizeLayer, IIdentityLayer, ISliceLayer, Rearrangement)
"""Layers that numpy computes as fast as XLA, which would first compile a program for them."""


class WeightOnlySteps(NamedTuple):
    """The steps of a program that depend on weights only.

    Attributes:
        steps: the steps, in running order.
        tensors: their results that the rest of the program reads, and the others of the same layers.
        others: those that numpy does not compute, and those that read their results.
    """

    steps: list[LayerStep]
    tensors: list[ITensor]
    others: list[LayerStep]

    def by_numpy(self, weights: Mapping[ITensor, Any], types: TypeTable) -> dict[ITensor, Any]:
        """The tensors that numpy computes from the values of the given constants."""
        values: dict[ITensor, Any] = {tensor: np.asarray(array) for tensor, array in weights.items()}
        others = set(self.others)
        for step in self.steps:
            if step not in others:
                assert isinstance(step.layer, Operation)
                layer = step.layer
                arrays: list[Any] = [tensor and values.get(tensor, types[tensor].value) for tensor in layer.inputs]
                # numpy's results of rank 0 may be numbers instead of arrays
                values[layer.outputs[0]] = np.asarray(_computed(layer, arrays))
        return {tensor: array for tensor, array in values.items() if tensor not in weights}


def _computed(layer: Operation, arrays: Sequence[Any]) -> Any:
    """The result of a layer by numpy; that of XLA where the reference has none, as of an integer divided by zero."""
    try:
        return layer.zero_filled(*arrays) if isinstance(layer, IGatherLayer) else layer.evaluate(*arrays)
    except LayerError:
        return layer.lower(*arrays)


def find_weight_folding(
    block: Block, outputs: Iterable[ITensor], types: TypeTable, is_on_host: bool = False
) -> WeightOnlySteps:
    """Find the steps of a block that depend on weights only and are worth folding.

    On the host all are: a step that XLA fuses into others is one of a program of its own there, which takes 20 us.
    """
    fixed = weight_only_tensors(block)
    result: dict[ITensor, LayerStep] = {}
    for step in walk(block):
        if isinstance(step, LayerStep) and step.reads and fixed.issuperset(step.writes) and step.writes:
            # what reads a step that is not folded has no inputs at load time
            ready = all(tensor in result or isinstance(tensor.producer, IConstantLayer) for tensor in step.reads)
            # strings are on no device
            ready = ready and all(types[tensor].dtype != STRING for tensor in (*step.reads, *step.writes))
            if ready and _bytes(step.writes, types) <= MOST_GROWTH * _bytes(step.reads, types):
                result.update(dict.fromkeys(step.writes, step))
    steps = dict.fromkeys(result.values())
    steps = steps if is_on_host else _without_last_reshapes(steps)
    if not is_on_host and max((_bytes(step.reads, types) for step in steps), default=0) < SMALLEST:
        return WeightOnlySteps([], [], [])
    late = {*read_by_others(block, steps), *outputs}
    # a layer of which one result is given does not run again, and so gives all of them
    tensors = [tensor for step in steps if not late.isdisjoint(step.writes) for tensor in step.writes]
    return WeightOnlySteps(list(steps), tensors, _not_by_numpy(steps))


def _without_last_reshapes(steps: Collection[LayerStep]) -> dict[LayerStep, None]:
    """The steps without reshapes whose results no other step reads.

    XLA reshapes for nothing, and copies of the weights only cost time: BERT took 1.02 times as long with them, a step
    of GPT-2 1.05.
    """
    kept = list[LayerStep]()
    read = set[ITensor]()
    # from the end, as a reshape that only another such reshape reads goes too
    for step in reversed(list(steps)):
        is_reshape = isinstance(step.layer, Rearrangement) and step.layer.keeps_elements
        if not is_reshape or not read.isdisjoint(step.writes):
            kept.append(step)
            read.update(step.reads)
    return dict.fromkeys(reversed(kept))


def _not_by_numpy(steps: Iterable[LayerStep]) -> list[LayerStep]:
    late: set[ITensor] = set()
    result: list[LayerStep] = []
    for step in steps:
        if not _is_by_numpy(step.layer) or not late.isdisjoint(step.reads):
            late.update(step.writes)
            result.append(step)
    return result


def _is_by_numpy(layer: ILayer) -> bool:
    return layer.has_zero_filled if isinstance(layer, IGatherLayer) else isinstance(layer, BY_NUMPY)


def read_by_others(block: Block, steps: Collection[Step]) -> list[ITensor]:
    """The tensors that the steps of a block read, at any depth, without some of the steps."""
    return [read for step in walk(block) if step not in steps for read in own_reads(step)]


def _bytes(tensors: Iterable[ITensor], types: TypeTable) -> int:
    return sum(types[tensor].nbytes for tensor in tensors)
