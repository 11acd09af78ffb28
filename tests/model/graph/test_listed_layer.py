"""Layers that a network lists have a LayerType for their type, whatever their class calls its type."""

import pytest

import netloop as trt


@pytest.fixture
def network():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (1, 1, 4, 4))
    relu = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
    network.add_pooling_nd(relu, trt.PoolingType.MAX, (2, 2))
    network.add_identity(x)
    return network


@pytest.mark.parametrize(("index", "name"), [(0, "ACTIVATION"), (1, "POOLING"), (2, "IDENTITY")])
def test_type_is_a_layer_type_however_the_layer_is_found(network, index, name):
    found = [network[index], network.get_layer(index), list(network)[index], network[index - len(network)]]

    assert [value.type for value in found] == [trt.LayerType[name]] * 4
    assert all(isinstance(value.type, trt.LayerType) and value.type.name == name for value in found)


def test_layer_of_an_add_method_has_the_type_of_its_class(network):
    relu = network.add_activation(network.get_input(0), trt.ActivationType.TANH)

    assert relu.type is trt.ActivationType.TANH
    assert network[3].type is trt.LayerType.ACTIVATION


def test_setting_the_class_gives_the_type_of_the_class_and_ilayer_gives_the_kind_again(network):
    layer = network[1]
    layer.__class__ = trt.IPoolingLayer
    assert layer.type is trt.PoolingType.MAX

    layer.__class__ = trt.ILayer
    assert layer.type is trt.LayerType.POOLING
    with pytest.raises(AttributeError):
        layer.__class__ = trt.IActivationLayer


def test_listed_layer_is_the_layer_in_all_else(network):
    added, listed = network.layers[0], network[0]

    assert listed == added
    assert added == listed
    assert listed == network[0]
    assert hash(listed) == hash(added)
    assert listed in {added}
    assert added in {listed}
    assert listed != network[1]
    assert listed in network.layers
    assert isinstance(listed, trt.IActivationLayer)
    assert type(listed).__name__ == "IActivationLayer"
    assert repr(listed) == repr(added)
    assert listed.get_output(0) is added.get_output(0)
    assert dir(listed) == dir(added)


def test_changes_of_a_listed_layer_reach_the_layer(network):
    added, listed = network.layers[0], network[0]
    other = network.add_input("other", trt.float32, (2, 2))
    listed.name, listed.alpha = "mine", 2
    listed.set_input(0, other)

    assert (added.name, added.alpha, added.get_input(0)) == ("mine", 2.0, other)
    assert [reader for reader, _ in other.uses] == [added]
    assert next(iter(other.uses))[0] is added
    assert not network.get_input(0).uses.keys() & {(added, 0)}


def test_network_with_listed_layers_compiles(network):
    for layer in network:
        layer.name = layer.type.name.lower()
    network.mark_output(network[1].get_output(0))

    assert [layer.name for layer in trt.compile(network).network.layers] == ["activation", "pooling", "identity"]


def test_class_of_layers_reads_and_sets_the_name_of_a_layer():
    network = trt.INetworkDefinition()
    copy = network.add_identity(network.add_input("x", trt.float32, (2,)))
    name = type(copy).name
    before = name.fget(copy)
    name.fset(copy, "copy")

    assert before == "(Unnamed Layer* 0) [Identity]"
    assert copy.name == name.fget(copy) == "copy"


def test_class_of_layers_reads_the_kind_of_a_layer_whose_type_is_a_function():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    relu, copy = network.add_activation(x, trt.ActivationType.RELU), network.add_identity(x)
    kind = trt.ILayer.type

    assert [relu.type, copy.type] == [trt.ActivationType.RELU, trt.LayerType.IDENTITY]
    assert [kind.fget(layer) for layer in (relu, copy)] == [trt.LayerType.ACTIVATION, trt.LayerType.IDENTITY]
    assert kind.__get__(relu) is trt.LayerType.ACTIVATION
    with pytest.raises(TypeError, match="'type'"):
        trt.IActivationLayer()
