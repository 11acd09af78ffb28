"""Lengths of streams that are known only in a request, for which no program of its own is compiled.

An engine compiles a program for each length of an output. Slots need none: the rows of a stream leave as they are made.
"""

import numpy as np

from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoopOutputLayer
from netloop.model.network import INetworkDefinition
from netloop.values.types import LARGEST_INDEX, LARGEST_TENSOR, TensorType


def free_lengths(network: INetworkDefinition, at: int) -> dict[str, str]:
    """Give the streams of a loop the largest length there is, and let the network return their own lengths.

    Those of known length, and those of which other layers read the rows, stay as they are.

    Args:
        network: the network, which is changed.
        at: the position of the loop among its loops.

    Returns:
        The name of the output that has the length, by the name of the stream.
    """
    read = {tensor for layer in network.layers for tensor in layer.inputs if tensor is not None}
    returned: dict[ITensor, str] = {}
    texts: dict[str, str] = {}
    for layer in network.loops[at].boundary(ILoopOutputLayer):
        output = layer.outputs[0]
        if not layer.stacks or output not in network.outputs or output in read:
            continue
        length, row = layer.tensor(1), layer.tensor(0).type
        # a known length is the longest already, and the largest number of rows follows from their size
        if length.type.value is not None or not row.is_fixed:
            continue
        if length not in returned:
            returned[length] = _returned(network, length)
        texts[output.name] = returned[length]
        longest = network.add_constant((), np.array(_longest(row), length.type.dtype)).outputs[0]
        layer.set_input(1, longest)
    return texts


def _longest(row: TensorType) -> int:
    return min(LARGEST_INDEX, LARGEST_TENSOR // max(1, row.nbytes))


def _returned(network: INetworkDefinition, tensor: ITensor) -> str:
    """Mark a copy of a tensor as an output; return its name."""
    # of a tensor that may be an input or an output, whose name stays
    copy = network.add_identity(tensor).outputs[0]
    taken = {tensor.name for tensor in (*network.inputs, *network.outputs)}
    number = 0
    while (name := f"length {number}") in taken:
        number += 1
    copy.name = name
    network.mark_output(copy)
    return name
