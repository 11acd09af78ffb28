"""The smallest part in which an engine and a peer differ."""

import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop import peers
from netloop.model.layers.pointwise import IUnaryLayer

KIND = peers.kind_of("reference")


def chain(network, length):
    """x negated again and again; all tensors."""
    tensors = [network.add_input("x", trt.float32, (2,))]
    for number in range(length):
        layer = network.add_unary(tensors[-1], trt.UnaryOperation.NEG)
        layer.name, layer.get_output(0).name = f"layer {number}", f"t{number}"
        tensors.append(layer.get_output(0))
    network.mark_output(tensors[-1])
    return tensors[1:]


def plant(monkeypatch, fault):
    right = IUnaryLayer.lower
    monkeypatch.setattr(IUnaryLayer, "lower", lambda self, *arrays: fault(self, right(self, *arrays)))


def test_one_layer(network, monkeypatch):
    tensors = chain(network, 9)
    plant(monkeypatch, lambda layer, made: made + (layer.name == "layer 5"))
    found = peers.smallest_failure(KIND, network, {"x": np.float32([1, 2])}, tensors[5])

    assert [layer.name for layer in found.network.layers] == ["layer 5"]
    assert {name: array.tolist() for name, array in found.inputs.items()} == {"t4": [-1, -2]}
    assert [(agreement.name, agreement.agrees) for agreement in found.found] == [("t5", False)]


@pytest.mark.parametrize("needed", [2, 3, 4, 5, 7])
def test_layers_that_differ_only_together(network, monkeypatch, needed):
    """Engines whose network has a certain number of layers or more are wrong."""
    tensors = chain(network, 8)
    plant(monkeypatch, lambda layer, made: made + (len(layer.types.owner.layers) >= needed))
    monkeypatch.setattr(trt.ICudaEngine, "__call__", _off_if_long(needed))
    found = peers.smallest_failure(KIND, network, {"x": np.float32([1, 2])}, tensors[6])

    assert len(found.network.layers) == needed
    assert found.network.layers[-1].name == "layer 6"


def _off_if_long(needed):
    right = trt.ICudaEngine.__call__

    def call(self, inputs):
        made = right(self, inputs)
        return {name: value + (self.num_layers >= needed) for name, value in made.items()}

    return call


def test_no_part_differs(network):
    tensors = chain(network, 4)

    assert peers.smallest_failure(KIND, network, {"x": np.float32([1, 2])}, tensors[2]) is None


def test_integers_that_decide_shapes_become_constants(network, monkeypatch):
    x = network.add_input("x", trt.float32, (-1, 2))
    lengths = network.add_shape(x).get_output(0)
    doubled = network.add_elementwise(lengths, lengths, trt.ElementWiseOperation.MAX).get_output(0)
    reshaped = network.add_shuffle(network.add_unary(x, trt.UnaryOperation.NEG).get_output(0))
    reshaped.set_input(1, doubled)
    last = network.add_unary(reshaped.get_output(0), trt.UnaryOperation.EXP).get_output(0)
    network.mark_output(last)
    plant(monkeypatch, lambda layer, made: 2 * made if layer.op is trt.UnaryOperation.EXP else made)
    found = peers.smallest_failure(KIND, network, {"x": np.zeros((3, 2), np.float32)}, last)

    assert [type(layer) for layer in found.network.layers] == [trt.IUnaryLayer]
    assert found.inputs.keys() == {found.network.inputs[0].name}
    assert found.network.inputs[0].shape == (3, 2)


def test_part_in_which_a_layer_reads_shapes(network, monkeypatch):
    x = network.add_input("x", trt.float32, (-1, 2))
    lengths = network.add_shape(x).get_output(0)
    reshaped = network.add_shuffle(x)
    reshaped.set_input(1, lengths)
    made = reshaped.get_output(0)
    network.mark_output(made)
    kind = trt.IShuffleLayer
    right = kind.lower
    monkeypatch.setattr(kind, "lower", lambda self, *arrays: jnp.add(right(self, *arrays), 1))
    found = peers.smallest_failure(KIND, network, {"x": np.zeros((3, 2), np.float32)}, made)

    assert sorted(type(layer).__name__ for layer in found.network.layers) == ["IConstantLayer", "IShuffleLayer"]
    assert found.inputs.keys() == {"x"}
