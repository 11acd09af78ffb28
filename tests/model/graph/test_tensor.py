import numpy as np
import pytest

from netloop.model.graph.tensor import LONGEST_NAME
from netloop.values.diagnostics import NetworkError
from netloop.values.dims import Dims
from netloop.values.enums import (
    ActivationType,
    DataType,
    ElementWiseOperation,
    LoopOutput,
    TensorFormat,
    TensorLocation,
)


@pytest.fixture
def x(network):
    return network.add_input("x", DataType.FLOAT, (2, -1))


def relu(network, x):
    return network.add_activation(x, ActivationType.RELU).get_output(0)


def test_input_has_the_name_that_it_was_given(x):
    assert x.name == "x"


def test_tensor_can_be_renamed(network, x):
    y = relu(network, x)
    y.name = "y"

    assert y.name == "y"


def test_renamed_tensor_leaves_the_name_of_its_layer(network, x):
    layer = network.add_activation(x, ActivationType.RELU)
    layer.get_output(0).name = "y"

    assert layer.name == "(Unnamed Layer* 0) [Activation]"


def test_name_of_a_tensor_is_a_str(x):
    with pytest.raises(TypeError, match="the name of a tensor must be a str, not 3"):
        x.name = 3


def test_name_has_room_in_bytes(x):
    x.name = "a" * LONGEST_NAME
    with pytest.raises(ValueError, match="at most 4095 bytes"):
        x.name = "é" * 2048


def test_name_is_text(x):
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        x.name = "\ud800"


def test_shape_is_dims(x):
    assert isinstance(x.shape, Dims)
    assert x.shape == (2, -1)


def test_type_of_an_input_is_the_declared_one(x):
    assert (x.dtype, str(x.type)) == (DataType.FLOAT, "float32[2,-1]")


def test_unknown_length_passes_through_a_layer(network, x):
    assert relu(network, x).shape == (2, -1)


def test_new_shape_of_an_input_reaches_all_that_depends_on_it(network, x):
    y = relu(network, relu(network, x))
    assert y.shape == (2, -1)

    x.shape = [5, 3, 1]

    assert (x.shape, y.shape) == ((5, 3, 1), (5, 3, 1))


def test_new_shape_of_an_input_may_mend_a_network(network, x):
    y = network.add_input("y", DataType.FLOAT, (3, 4))
    z = network.add_elementwise(x, y, ElementWiseOperation.SUM).get_output(0)
    with pytest.raises(NetworkError, match="axis 0 has 2 and 3 elements"):
        _ = z.shape

    x.shape = (3, -1)

    assert z.shape == (3, 4)


def test_shape_of_the_output_of_a_layer_cannot_be_set(network, x):
    with pytest.raises(AttributeError, match="follows from its layer; only that of an input can be set"):
        relu(network, x).shape = (1,)


@pytest.mark.parametrize("name", ["is_network_input", "is_shape_tensor", "is_execution_tensor", "type"])
def test_what_follows_from_the_network_cannot_be_set(x, name):
    with pytest.raises(AttributeError):
        setattr(x, name, None)


def test_input_knows_that_it_is_one(network, x):
    assert (x.is_network_input, relu(network, x).is_network_input) == (True, False)


def test_tensor_is_an_output_while_marked(network, x):
    y = relu(network, x)
    network.mark_output(y)
    assert y.is_network_output

    network.unmark_output(y)
    assert not y.is_network_output


def test_tensor_knows_where_it_comes_from(network, x):
    layer = network.add_activation(x, ActivationType.RELU)

    assert x.producer is None
    assert (layer.get_output(0).producer, layer.get_output(0).position) == (layer, 0)


def test_uses_are_the_layers_that_read_a_tensor_with_the_number_of_their_input(network, x):
    a = network.add_activation(x, ActivationType.RELU)
    b = network.add_elementwise(a.get_output(0), x, ElementWiseOperation.SUM)
    c = network.add_elementwise(x, x, ElementWiseOperation.SUM)

    assert list(x.uses) == [(a, 0), (b, 1), (c, 0), (c, 1)]


def test_uses_follow_set_input(network, x):
    a = network.add_activation(x, ActivationType.RELU)
    b = network.add_activation(x, ActivationType.RELU)
    b.set_input(0, a.get_output(0))

    assert list(x.uses) == [(a, 0)]
    assert list(a.get_output(0).uses) == [(b, 0)]


def test_trip_count_needed_for_a_length_is_a_shape_tensor(network, x):
    n = network.add_input("n", DataType.INT32, ())
    loop = network.add_loop()
    output = loop.add_loop_output(x, LoopOutput.CONCATENATE)
    assert not n.is_shape_tensor

    output.set_input(1, n)

    assert n.is_shape_tensor
    assert not n.is_execution_tensor
    assert not x.is_shape_tensor
    assert x.is_execution_tensor


def test_type_of_an_output_can_be_set_before_its_layer_is_complete(network, x):
    output = network.add_loop().add_loop_output(x, LoopOutput.CONCATENATE)
    output.get_output(0).dtype = DataType.HALF
    output.set_input(1, network.add_input("n", DataType.INT32, ()))
    network.mark_output(output.get_output(0))

    assert output.get_output(0).dtype is DataType.HALF


def test_axes_have_no_names_until_they_get_some(x):
    x.set_dimension_name(1, "time")

    assert (x.get_dimension_name(0), x.get_dimension_name(1)) == (None, "time")
    x.set_dimension_name(0, None)
    x.set_dimension_name(1, None)
    assert x.get_dimension_name(1) is None


def test_tensor_has_every_format_on_the_device_from_the_start(x):
    assert x.location is TensorLocation.DEVICE
    assert all(x.allowed_formats >> int(format_) & 1 for format_ in TensorFormat)


def test_tensor_without_a_type_raises_its_finding(network, x):
    y = network.add_input("y", DataType.HALF, (2, 3))
    z = network.add_elementwise(x, y, ElementWiseOperation.SUM).get_output(0)
    for read in (lambda: z.shape, lambda: z.dtype, lambda: z.type):
        with pytest.raises(NetworkError) as caught:
            read()

        assert [finding.at for finding in caught.value.findings] == [z.producer]


def test_tensor_is_printed_with_its_type(network, x):
    assert repr(x) == "<ITensor 'x' float32[2,-1]>"


def test_tensor_without_a_type_can_be_printed(network, x):
    layer = network.add_activation(x, ActivationType.RELU)
    layer.set_input(0, layer.get_output(0))

    assert repr(layer.get_output(0)) == "<ITensor '(Unnamed Layer* 0) [Activation]_output' type unknown>"


def test_numpy_ints_are_lengths(network):
    assert network.add_input("x", DataType.FLOAT, np.array([2, 3])).shape == (2, 3)
