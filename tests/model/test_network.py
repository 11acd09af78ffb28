import numpy as np
import pytest

from netloop.model.network import INetworkDefinition
from netloop.model.weights import Weights
from netloop.values.diagnostics import NetworkError
from netloop.values.enums import (
    ActivationType,
    DataType,
    ElementWiseOperation,
    LayerType,
    LoopOutput,
    NetworkDefinitionCreationFlag,
    ScaleMode,
    TopKOperation,
    TripLimit,
    UnaryOperation,
)


@pytest.fixture
def x(network):
    return network.add_input("x", DataType.FLOAT, (2, 3))


def constant(network, value):
    array = np.asarray(value)
    return network.add_constant(array.shape, array).get_output(0)


# ---------------------------------------------------------------------------- inputs


def test_new_network_is_empty(network):
    assert (len(network), network.num_layers, network.num_inputs, network.num_outputs) == (0, 0, 0, 0)


def test_network_has_a_name_from_the_start(network):
    assert network.name == "Unnamed Network 0"


def test_inputs_come_in_the_order_in_which_they_were_added(network, x):
    y = network.add_input("y", DataType.INT64, ())

    assert (network.num_inputs, network.get_input(0), network.get_input(1)) == (2, x, y)


def test_two_inputs_may_not_share_a_name(network, x):
    with pytest.raises(NetworkError, match="NL104: the network already has an input 'x'") as caught:
        network.add_input("x", DataType.INT32, ())

    assert __file__ in caught.value.findings[0].where
    assert network.num_inputs == 1


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ((3, DataType.FLOAT, ()), "name must be str, not 3"),
        (("x", np.float32, ()), "dtype must be a member of DataType, not"),
        (("x", 0, ()), "dtype must be a member of DataType, not 0"),
        (("x", DataType.FLOAT, 3), "Dims takes a sequence of ints, not 3"),
        (("x", DataType.FLOAT, (1.5,)), "-1 where only a call knows it, not 1.5"),
    ],
)
def test_argument_of_the_wrong_type_is_refused_at_the_call(network, arguments, wanted):
    with pytest.raises(TypeError, match=wanted):
        network.add_input(*arguments)


def test_input_has_at_most_eight_axes(network):
    with pytest.raises(ValueError, match="at most 8 axes"):
        network.add_input("x", DataType.FLOAT, [1] * 9)


@pytest.mark.parametrize("dtype", DataType)
def test_input_is_of_any_type(network, dtype):
    assert network.add_input("x", dtype, ()).dtype is dtype


def test_input_that_nobody_reads_can_be_removed(network, x):
    network.remove_tensor(x)

    assert network.num_inputs == 0


@pytest.mark.parametrize("call", ["mark_output", "add_identity", "mark_debug"])
def test_removed_input_can_be_used_no_more(network, x, call):
    network.remove_tensor(x)

    with pytest.raises(NetworkError, match="NL103"):
        getattr(network, call)(x)


def test_name_of_a_removed_input_is_free(network, x):
    network.remove_tensor(x)

    assert network.add_input("x", DataType.INT8, ()).dtype is DataType.INT8


def test_input_that_is_read_stays(network, x):
    network.add_identity(x)
    network.remove_tensor(x)

    assert network.get_input(0) is x


def test_input_that_is_an_output_stays(network, x):
    network.mark_output(x)
    network.remove_tensor(x)

    assert network.inputs == [x]


def test_input_that_is_not_read_any_more_can_be_removed(network, x):
    y = network.add_input("y", DataType.FLOAT, (2, 3))
    network.add_identity(x).set_input(0, y)
    network.remove_tensor(x)

    assert network.inputs == [y]


def test_inputs_are_numbered_anew_when_one_is_removed(network, x):
    y = network.add_input("y", DataType.FLOAT, ())
    network.remove_tensor(x)

    assert y.position == 0


def test_output_of_a_layer_is_not_removed(network, x):
    y = network.add_identity(x).get_output(0)
    network.remove_tensor(y)

    assert network.get_layer(0).get_output(0) is y


# ---------------------------------------------------------------------------- outputs


def test_outputs_come_in_the_order_in_which_they_were_marked(network, x):
    a, b = (network.add_identity(x).get_output(0) for _ in range(2))
    network.mark_output(b)
    network.mark_output(a)

    assert (network.num_outputs, network.get_output(0), network.get_output(1)) == (2, b, a)


def test_output_marked_twice_is_one_output(network, x):
    y = network.add_identity(x).get_output(0)
    network.mark_output(y)
    network.mark_output(y)

    assert network.outputs == [y]


def test_output_can_be_unmarked(network, x):
    y = network.add_identity(x).get_output(0)
    network.mark_output(y)
    network.unmark_output(y)

    assert network.outputs == []


def test_unmarking_what_is_no_output_does_nothing(network, x):
    network.unmark_output(x)

    assert network.outputs == []


def test_tensor_of_another_network_is_no_output(network):
    foreign = INetworkDefinition().add_input("foreign", DataType.FLOAT, ())
    with pytest.raises(NetworkError, match="NL103: tensor 'foreign' belongs to another network"):
        network.mark_output(foreign)


def test_layer_is_no_output(network, x):
    with pytest.raises(TypeError, match=r"tensor must be an ITensor, not IIdentityLayer: give its output"):
        network.mark_output(network.add_identity(x))


# ---------------------------------------------------------------------------- layers


def test_layers_are_numbered_in_the_order_in_which_they_were_added(network, x):
    layers = [network.add_identity(x) for _ in range(3)]

    assert (len(network), network.num_layers) == (3, 3)
    assert [network[i] for i in range(3)] == layers == list(network)
    assert [layer.index for layer in layers] == [0, 1, 2]


def test_negative_number_of_a_layer_counts_from_the_end(network, x):
    layers = [network.add_identity(x) for _ in range(3)]

    assert network[-1] is layers[2]


@pytest.mark.parametrize("index", [1, -2, 100])
def test_number_past_the_layers_is_an_error(network, x, index):
    network.add_identity(x)
    with pytest.raises(IndexError):
        network[index]


@pytest.mark.parametrize("index", [1, -1, 100])
def test_nothing_is_found_out_of_range(network, x, index):
    network.mark_output(network.add_identity(x).get_output(0))

    assert (network.get_layer(index), network.get_input(index), network.get_output(index)) == (None, None, None)


def test_layers_and_tensors_have_the_default_names_of_tensorrt(network, x):
    network.add_activation(x, ActivationType.RELU)
    network.add_elementwise(x, x, ElementWiseOperation.SUM)

    assert [layer.name for layer in network] == ["(Unnamed Layer* 0) [Activation]", "(Unnamed Layer* 1) [ElementWise]"]
    assert network[1].get_output(0).name == "(Unnamed Layer* 1) [ElementWise]_output"


def test_second_output_is_numbered_in_its_name(network, x):
    layer = network.add_topk(x, TopKOperation.MAX, 1, 1)

    assert layer.get_output(0).name == "(Unnamed Layer* 0) [TopK]_output"
    assert layer.get_output(1).name == "(Unnamed Layer* 0) [TopK]_output (1)"


def test_second_output_of_a_dynamic_quantization_has_its_own_form_in_tensorrt(network, x):
    layer = network.add_dynamic_quantize_v2(x, (1, 2), DataType.FP8, DataType.FLOAT)

    assert layer.get_output(1).name == "(Unnamed Layer* 0) [DynamicQuantize]_output_1"


def test_indices_are_int32_unless_told(network, x):
    first, second = (network.add_topk(x, TopKOperation.MAX, 1, 2, *rest) for rest in ([], [DataType.INT64]))

    assert (first.get_output(1).dtype, second.get_output(1).dtype) == (DataType.INT32, DataType.INT64)


def test_boundary_layers_are_counted_in_the_default_names(network, x):
    n = network.add_input("n", DataType.INT32, ())
    go = network.add_input("go", DataType.BOOL, ())
    loop = network.add_loop()
    loop.add_trip_limit(n, TripLimit.COUNT)
    row = loop.add_iterator(x).get_output(0)
    loop.add_recurrence(x)
    loop.add_loop_output(row, LoopOutput.LAST_VALUE)
    conditional = network.add_if_conditional()
    conditional.set_condition(go)
    y = conditional.add_input(x).get_output(0)
    conditional.add_output(y, x)
    network.add_identity(x)

    kinds = ["TripLimit", "Iterator", "Recurrence", "LoopOutput", "Condition", "Input", "Output", "Identity"]
    assert [layer.name for layer in network] == [f"(Unnamed Layer* {i}) [{kind}]" for i, kind in enumerate(kinds)]


def test_loop_is_no_layer(network):
    network.add_loop()
    network.add_if_conditional()

    assert len(network) == 0


LABELS = {
    LayerType.SOFTMAX: ("add_softmax", [], "Softmax"),
    LayerType.SHAPE: ("add_shape", [], "Shape"),
    LayerType.SHUFFLE: ("add_shuffle", [], "Shuffle"),
    LayerType.UNARY: ("add_unary", [UnaryOperation.EXP], "Unary"),
    LayerType.CAST: ("add_cast", [DataType.INT32], "Cast"),
    LayerType.SLICE: ("add_slice", [(0, 0), (1, 1), (1, 1)], "Slice"),
    LayerType.SQUEEZE: ("add_squeeze", [], "Squeeze"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_default_name_tells_the_kind(network, x, kind):
    method, arguments, label = LABELS[kind]
    layer = getattr(network, method)(x, *arguments)

    assert (layer.type, layer.name) == (kind, f"(Unnamed Layer* 0) [{label}]")


def test_arguments_can_be_named(network, x):
    n = network.add_input("n", DataType.INT32, ())
    loop = network.add_loop()
    loop.add_trip_limit(tensor=n, kind=TripLimit.COUNT)
    iterator = loop.add_iterator(tensor=x, axis=1, reverse=True)
    layer = network.add_elementwise(input1=x, input2=x, op=ElementWiseOperation.MIN)

    assert (iterator.axis, iterator.reverse, layer.op) == (1, True, ElementWiseOperation.MIN)


@pytest.mark.parametrize("name", ["input1", "input2"])
def test_error_of_a_wrong_argument_names_it(network, x, name):
    arguments = {"input1": x, "input2": x, name: "x"}
    with pytest.raises(TypeError, match=f"{name} must be an ITensor, not str"):
        network.add_elementwise(**arguments, op=ElementWiseOperation.SUM)

    assert len(network) == 0


def test_error_in_a_list_of_tensors_names_the_element(network, x):
    with pytest.raises(TypeError, match=r"inputs\[1\] must be an ITensor, not int"):
        network.add_concatenation([x, 3])


def test_shapes_need_not_fit_until_somebody_asks(network, x):
    y = network.add_input("y", DataType.FLOAT, (7,))
    layer = network.add_elementwise(x, y, ElementWiseOperation.SUM)

    with pytest.raises(NetworkError, match="the inputs have 2 and 1 axes"):
        _ = layer.get_output(0).shape


# ---------------------------------------------------------------------------- the rest of the surface


def test_flags_are_bits():
    network = INetworkDefinition(flags=1 << int(NetworkDefinitionCreationFlag.PREFER_JIT_PYTHON_PLUGINS))

    assert network.get_flag(NetworkDefinitionCreationFlag.PREFER_JIT_PYTHON_PLUGINS)
    assert not network.get_flag(NetworkDefinitionCreationFlag.STRONGLY_TYPED)


def test_every_axis_is_in_the_shape(network):
    assert network.has_implicit_batch_dimension is False


def test_network_is_a_context():
    with INetworkDefinition() as network:
        assert isinstance(network, INetworkDefinition)


# ---------------------------------------------------------------------------- copy


@pytest.fixture
def rich(network, x):
    """A network with a loop, a conditional and a constant."""
    go = network.add_input("go", DataType.BOOL, ())
    three = constant(network, np.int32(3))
    loop = network.add_loop()
    loop.name = "the loop"
    loop.add_trip_limit(three, TripLimit.COUNT)
    state = loop.add_recurrence(x)
    state.set_input(1, network.add_activation(state.get_output(0), ActivationType.TANH).get_output(0))
    rows = loop.add_loop_output(state.get_output(0), LoopOutput.CONCATENATE, 1)
    rows.set_input(1, three)
    conditional = network.add_if_conditional()
    conditional.set_condition(go)
    y = conditional.add_input(rows.get_output(0)).get_output(0)
    output = conditional.add_output(network.add_unary(y, UnaryOperation.NEG).get_output(0), y).get_output(0)
    output.name = "result"
    network.mark_output(output)
    return network


def structure(network):
    """All that two networks have in common if one is a copy of the other."""
    return [
        (
            type(layer).__name__,
            layer.name,
            layer.index,
            layer.source_location,
            [tensor and tensor.name for tensor in layer.inputs],
            [(tensor.name, str(tensor.type)) for tensor in layer.outputs],
            {
                name: getattr(value, "name", value)
                for name in layer.ATTRIBUTES
                for value in [getattr(layer, name)]
                if name != "weights"
            },
        )
        for layer in network
    ]


def tensors_of(network):
    return {*network.inputs, *(tensor for layer in network for tensor in layer.outputs)}


def test_copy_has_equal_layers(rich):
    assert structure(rich.copy()) == structure(rich)


def test_copy_has_equal_inputs_and_outputs(rich):
    twin = rich.copy()

    assert [tensor.name for tensor in twin.inputs] == ["x", "go"]
    assert [(tensor.name, tensor.is_network_output) for tensor in twin.outputs] == [("result", True)]
    assert twin.outputs[0] is twin[-1].get_output(0)


def test_copy_shares_no_tensor(rich):
    assert not tensors_of(rich) & tensors_of(rich.copy())


def test_copy_is_wired_to_its_own_tensors_alone(rich):
    twin = rich.copy()

    assert {tensor for layer in twin for tensor in layer.inputs} <= tensors_of(twin)
    assert {layer for tensor in tensors_of(twin) for layer, _ in tensor.uses} <= set(twin.layers)
    assert all(tensor.types is twin.types for tensor in tensors_of(twin))


def test_copied_tensors_are_used_as_the_originals_are(rich):
    twin = rich.copy()
    for tensor, other in zip(rich.inputs, twin.inputs, strict=True):
        assert [(layer.name, i) for layer, i in other.uses] == [(layer.name, i) for layer, i in tensor.uses]


def test_loops_and_conditionals_are_copied(rich):
    twin = rich.copy()
    (loop,), (conditional,) = twin.loops, twin.conditionals

    assert loop is not rich.loops[0]
    assert (loop.name, loop.source_location) == ("the loop", rich.loops[0].source_location)
    assert [layer.name for layer in loop.layers] == [layer.name for layer in rich.loops[0].layers]
    assert all(layer.loop is loop for layer in loop.layers)
    assert all(layer.conditional is conditional for layer in conditional.layers)
    assert conditional.condition is twin.inputs[1]


def test_edit_of_a_copy_leaves_the_original_alone(rich):
    before = structure(rich)
    twin = rich.copy()
    twin.inputs[0].shape = (5, 5)
    twin[2].name = "another"
    twin.loops[0].add_iterator(twin.inputs[0])
    twin.add_identity(twin.inputs[0])
    twin.unmark_output(twin.outputs[0])

    assert structure(rich) == before
    assert rich.num_outputs == 1


def test_edit_of_the_original_leaves_a_copy_alone(rich):
    twin = rich.copy()
    before = structure(twin)
    rich.inputs[0].shape = (5, 5)
    rich.add_identity(rich.inputs[0])
    rich.loops[0].add_iterator(rich.inputs[0])

    assert structure(twin) == before


def test_copy_can_be_built_on(rich):
    twin = rich.copy()
    doubled = twin.add_elementwise(twin.outputs[0], twin.outputs[0], ElementWiseOperation.SUM)

    assert doubled.name == f"(Unnamed Layer* {len(rich)}) [ElementWise]"
    assert doubled.get_output(0).shape == (2, 3, 3)


def test_names_of_axes_are_copied(network, x):
    x.set_dimension_name(0, "batch")
    twin = network.copy()
    twin.inputs[0].set_dimension_name(0, "time")

    assert x.get_dimension_name(0) == "batch"


def test_copy_has_constants_of_its_own(network):
    weights = np.arange(3, dtype=np.float32)
    network.add_constant((3,), weights)

    assert not np.shares_memory(network.copy()[0].weights, weights)


def test_copy_has_attributes_that_are_arrays_of_its_own(network):
    kernel, scale = np.ones((1, 1, 1, 1), np.float32), np.ones(1, np.float32)
    image = network.add_input("image", DataType.FLOAT, (1, 1, 2, 2))
    network.add_convolution_nd(image, 1, (1, 1), Weights(kernel))
    network.add_scale(image, ScaleMode.UNIFORM, scale=Weights(DataType.FLOAT, scale.ctypes.data, 1))
    convolution, scaling = network.copy()
    kernel[:], scale[:] = 2, 2

    assert (convolution.kernel.item(), scaling.scale.item()) == (1, 1)


def test_copy_of_a_deep_network_needs_no_deep_stack(network, x):
    for _ in range(5000):
        x = network.add_identity(x).get_output(0)

    assert network.copy()[-1].get_output(0).shape == (2, 3)


def test_name_of_a_network_is_copied(network):
    network.name = "mine"

    assert network.copy().name == "mine"
