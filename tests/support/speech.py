"""Networks of speech: letters decide how many frames there are."""

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from tests.support.networks import cast, constant


def total_of(network: trt.INetworkDefinition, table: ITensor, text: ITensor) -> ITensor:
    """The sum of the numbers that letters have in a table, a float32 scalar."""
    numbers = network.add_gather(table, text, 0).outputs[0]
    return network.add_reduce(numbers, trt.ReduceOperation.SUM, 1, False).outputs[0]


def rounded_up(network: trt.INetworkDefinition, total: ITensor) -> ITensor:
    """A length, an int64 scalar."""
    return cast(network, network.add_unary(total, trt.UnaryOperation.CEIL).outputs[0], trt.int64)


def frames_of(network: trt.INetworkDefinition, length: ITensor) -> ITensor:
    """0, 1, 2 .. up to a length, as float32."""
    shape = network.add_shuffle(length)
    shape.reshape_dims = (1,)
    fill = network.add_fill((1,), trt.FillOperation.LINSPACE, trt.int64)
    fill.set_input(0, shape.outputs[0])
    fill.set_input(1, constant(network, 0, np.int64))
    fill.set_input(2, constant(network, [1], np.int64))
    return cast(network, fill.outputs[0], trt.float32)
