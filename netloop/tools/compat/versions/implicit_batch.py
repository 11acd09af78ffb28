"""Networks whose shapes leave out the batch, as TensorRT 7 and 8 have them without EXPLICIT_BATCH.

Such a network says what happens to one example. It becomes the body of a loop over the batch: each input is an iterator
over its first axis, and each output a stacked output. Axes, shapes and constants then mean what the script says, in
every layer; the compiler moves layers out of the loop where the iterations are independent, as it does for any loop.
"""

from collections.abc import Sequence

import netloop
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import LoopOutput, TripLimit

NAME = "implicit batch"
"""The name of the loop over the batch, by which an engine knows it, also one of a plan."""


def is_batched(network: netloop.INetworkDefinition) -> bool:
    """Whether a network is one of examples in a loop over the batch."""
    return any(loop.name == NAME for loop in network.loops)


def batched(network: netloop.INetworkDefinition) -> netloop.INetworkDefinition:
    """A network of batches for one of single examples, which shares its weights."""
    copy = network.copy(shares_weights=True)
    examples = [(tensor, [*tensor.uses]) for tensor in copy.inputs]
    for tensor, _ in examples:
        tensor.shape = (-1, *tensor.shape)
    loop = copy.add_loop()
    loop.name = NAME
    length = _length(copy)
    loop.add_trip_limit(length, TripLimit.COUNT)
    for tensor, uses in examples:
        example = loop.add_iterator(tensor).outputs[0]
        for reader, index in uses:
            reader.set_input(index, example)
        _replace_output(copy, tensor, example)
    for tensor in [*copy.outputs]:
        stacked = loop.add_loop_output(tensor, LoopOutput.CONCATENATE)
        stacked.set_input(1, length)
        name, tensor.name = tensor.name, f"{tensor.name} of an example"
        _replace_output(copy, tensor, stacked.outputs[0])
        stacked.outputs[0].name = name
    return copy


def _length(network: netloop.INetworkDefinition) -> ITensor:
    """The length of the batch: that of the first input."""
    shape = network.add_shape(network.inputs[0]).outputs[0]
    first = network.add_slice(shape, (0,), (1,), (1,)).outputs[0]
    scalar = network.add_shuffle(first)
    scalar.reshape_dims = ()
    return scalar.outputs[0]


def _replace_output(network: netloop.INetworkDefinition, before: ITensor, after: ITensor) -> None:
    """Make another tensor the output of the network that one is, at the same place; do nothing if it is none."""
    if not before.is_network_output:
        return
    outputs: Sequence[ITensor] = [after if tensor is before else tensor for tensor in network.outputs]
    for tensor in [*network.outputs]:
        network.unmark_output(tensor)
    for tensor in outputs:
        network.mark_output(tensor)
