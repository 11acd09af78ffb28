"""Networks and models that the corpora of the targets start from, made from those of the tests."""

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from onnx.backend.test import loader

import netloop as trt
from tests.support.layer_specs import CALLS, Tensors
from tests.support.networks import EXAMPLES, lstm
from tests.support.plan_forge import small
from tests.support.strategies import Grower

LARGEST = 6000
"""The largest seed, in bytes: the fuzzer is faster with small inputs."""
GROWN = 12
"""The number of random networks."""


def networks() -> Iterator[trt.INetworkDefinition]:
    """The example networks, one network for each method that adds a layer, and some random networks."""
    yield small()
    yield lstm(1, 2)
    for example in EXAMPLES.values():
        yield example.make()
    for method in CALLS:
        yield with_call(method)
    for number in range(GROWN):
        yield Grower(Random(number), 3, 12).grow().network


def with_call(method: str) -> trt.INetworkDefinition:
    """A network of one layer."""
    network = trt.INetworkDefinition()
    getattr(network, method)(**CALLS[method](Tensors(network)))
    for tensor in [tensor for layer in network for tensor in layer.outputs if not tensor.uses]:
        network.mark_output(tensor)
    return network


@cache
def node_tests() -> tuple[bytes, ...]:
    """The smallest model of each operator, and of its expansion, among the tests of the package onnx."""
    smallest: dict[tuple[str, bool], bytes] = {}
    for case in loader.load_model_tests(kind="node"):
        model: Any = case.model
        data = model.SerializeToString()
        key = model.graph.node[-1].op_type, len(model.graph.node) > 1
        if len(data) <= LARGEST and len(data) < len(smallest.get(key, bytes(LARGEST + 1))):
            smallest[key] = data
    return tuple(smallest.values())
