from dataclasses import replace

import numpy as np
import pytest

from netloop.model.graph.infer import TypeTable
from netloop.model.layers.pointwise import IActivationLayer, IElementWiseLayer, ISelectLayer
from netloop.values.diagnostics import Finding, NetworkError
from netloop.values.enums import ActivationType, DataType, ElementWiseOperation, LoopOutput, TripLimit, UnaryOperation
from netloop.values.types import TensorType


@pytest.fixture
def x(network):
    return network.add_input("x", DataType.FLOAT, (2, 3))


@pytest.fixture
def asked(monkeypatch):
    """The names of the activations that were asked for their type, in order."""
    names = []
    infer = IActivationLayer.infer

    def counted(self, *types):
        names.append(self.name)
        return infer(self, *types)

    monkeypatch.setattr(IActivationLayer, "infer", counted)
    return names


def relu(network, x, name):
    layer = network.add_activation(x, ActivationType.RELU)
    layer.name = name
    return layer


def chain(network, x, names):
    layers = []
    for name in names:
        layers.append(relu(network, x, name))
        x = layers[-1].get_output(0)
    return layers


# ---------------------------------------------------------------------------- memory


def test_nothing_is_inferred_before_it_is_asked_for(network, x, asked):
    chain(network, x, "abc")

    assert asked == []


def test_types_are_remembered(network, x, asked):
    a, b, c = chain(network, x, "abc")
    for _ in range(3):
        _ = c.get_output(0).shape, b.get_output(0).dtype, a.get_output(0).type

    assert asked == ["a", "b", "c"]


def test_only_what_is_needed_is_inferred(network, x, asked):
    _, b, _ = chain(network, x, "abc")
    _ = b.get_output(0).shape

    assert asked == ["a", "b"]


def test_edit_in_the_middle_forgets_what_follows_alone(network, x, asked):
    a, b, c = chain(network, x, "abc")
    beside = relu(network, a.get_output(0), "beside")
    _ = c.get_output(0).shape, beside.get_output(0).shape
    asked.clear()

    b.set_input(0, network.add_input("y", DataType.HALF, (7,)))

    assert (c.get_output(0).shape, c.get_output(0).dtype) == ((7,), DataType.HALF)
    assert (beside.get_output(0).shape, a.get_output(0).shape) == ((2, 3), (2, 3))
    assert asked == ["b", "c"]


def test_attribute_forgets_the_types_that_follow(network, x, asked):
    a, b = chain(network, x, "ab")
    _ = b.get_output(0).shape
    asked.clear()

    a.alpha = 0.5
    _ = b.get_output(0).shape

    assert asked == ["a", "b"]


def test_name_forgets_nothing(network, x, asked):
    a, b = chain(network, x, "ab")
    _ = b.get_output(0).shape
    asked.clear()

    a.name, a.metadata = "another", "text"
    _ = b.get_output(0).shape

    assert asked == []


def test_finding_is_remembered_too(network, x, asked):
    (a,) = chain(network, x, "a")
    a.alpha = float("nan")
    for _ in range(3):
        with pytest.raises(NetworkError):
            _ = a.get_output(0).shape

    assert asked == ["a"]


def test_set_input_of_a_broken_layer_mends_what_follows(network, x):
    y = network.add_input("y", DataType.FLOAT, (5, 3))
    total = network.add_elementwise(x, y, ElementWiseOperation.SUM)
    after = relu(network, total.get_output(0), "after").get_output(0)
    with pytest.raises(NetworkError):
        _ = after.shape

    total.set_input(1, x)

    assert after.shape == (2, 3)


# ---------------------------------------------------------------------------- depth, cycles


def test_network_may_be_very_deep(network, x):
    layers = chain(network, x, map(str, range(5000)))
    assert layers[-1].get_output(0).shape == (2, 3)

    x.shape = (4,)

    assert layers[-1].get_output(0).shape == (4,)


def test_cycle_is_named(network, x):
    a, b, c = chain(network, x, "abc")
    a.set_input(0, c.get_output(0))
    with pytest.raises(NetworkError) as caught:
        _ = c.get_output(0).shape
    (found,) = caught.value.findings

    assert found.code == "NL102"
    assert found.at in (a, b, c)
    assert found.what == "'c' depends on itself: 'c' <- 'b' <- 'a' <- 'c'"
    assert found.fix == "carry the value through ILoop.add_recurrence"


def test_cycle_is_named_without_what_leads_to_it(network, x):
    a, b, _, d = chain(network, x, "abcd")
    a.set_input(0, b.get_output(0))
    with pytest.raises(NetworkError, match="NL102: 'b' depends on itself: 'b' <- 'a' <- 'b'\n"):
        _ = d.get_output(0).shape


def test_layer_may_not_read_its_own_output(network, x):
    (a,) = chain(network, x, "a")
    a.set_input(0, a.get_output(0))
    with pytest.raises(NetworkError, match="NL102: 'a' depends on itself: 'a' <- 'a'"):
        _ = a.get_output(0).shape


def test_all_tensors_of_a_cycle_have_one_finding(network, x):
    layers = chain(network, x, "abcd")
    layers[0].set_input(0, layers[2].get_output(0))

    assert len({id(network.types.of(layer.get_output(0))) for layer in layers}) == 1


def test_cycle_can_be_mended(network, x):
    a, _, c = chain(network, x, "abc")
    a.set_input(0, c.get_output(0))
    with pytest.raises(NetworkError):
        _ = c.get_output(0).shape

    a.set_input(0, x)

    assert c.get_output(0).shape == (2, 3)


def test_diamonds_are_no_cycles(network, x):
    for _ in range(200):
        x = network.add_elementwise(x, x, ElementWiseOperation.SUM).get_output(0)

    assert x.shape == (2, 3)


def test_recurrence_may_lead_back(network, x):
    loop = network.add_loop()
    recurrence = loop.add_recurrence(x)
    following = relu(network, recurrence.get_output(0), "following")
    recurrence.set_input(1, following.get_output(0))

    assert following.get_output(0).shape == (2, 3)


def test_very_long_cycle_is_cut_short(network, x):
    layers = chain(network, x, [f"n{i}" for i in range(3000)])
    layers[0].set_input(0, layers[-1].get_output(0))
    found = network.types.of(layers[-1].get_output(0))

    assert isinstance(found, Finding)
    assert len(found.what) < 200


# ---------------------------------------------------------------------------- one cause, one finding


def test_what_follows_a_broken_layer_has_its_finding(network, x):
    y = network.add_input("y", DataType.HALF, (2, 3))
    broken = network.add_elementwise(x, y, ElementWiseOperation.SUM)
    a, b = chain(network, broken.get_output(0), "ab")

    findings = {id(network.types.of(layer.get_output(0))) for layer in (broken, a, b)}
    assert len(findings) == 1
    assert network.types.of(b.get_output(0)).at is broken


def test_missing_input_is_told_by_its_number(network, x):
    layer = ISelectLayer()
    layer.attach(network.types, 0, [x, None, x])
    found = network.types.of(layer.get_output(0))

    assert found.code == "NL101"
    assert found.what == "input 1 of '(Unnamed Layer* 0) [Select]' is missing"
    assert found.fix == "call set_input(1, tensor) on the layer"


def test_stacking_output_without_a_length_says_what_to_call(network, x):
    output = network.add_loop().add_loop_output(x, LoopOutput.CONCATENATE)
    with pytest.raises(NetworkError, match=r"call set_input\(1, length\) on the layer"):
        _ = output.get_output(0).shape


# ---------------------------------------------------------------------------- loops and conditionals


@pytest.fixture
def choice(network):
    """A conditional of two vectors of unlike lengths, and its output."""
    conditional = network.add_if_conditional()
    short = network.add_input("short", DataType.FLOAT, (2, 3))
    long = network.add_input("long", DataType.FLOAT, (2, 4))
    return conditional, conditional.add_output(short, long).get_output(0)


def test_branches_that_differ_in_a_length_give_an_unknown_one(choice):
    assert choice[1].shape == (2, -1)


def test_known_condition_set_later_takes_its_branch(network, choice):
    conditional, y = choice
    assert y.shape == (2, -1)

    conditional.set_condition(network.add_constant((), np.array(False)).get_output(0))

    assert y.shape == (2, 4)


def test_value_given_for_a_condition_takes_its_branch(network, choice):
    conditional, y = choice
    given = network.add_input("condition", DataType.BOOL, ())
    conditional.set_condition(given)

    assert y.shape == (2, -1)
    assert TypeTable({given: TensorType.of(np.array(True))}).of(y).shape == (2, 3)


def test_limits_and_conditions_have_no_outputs_to_infer(network, x):
    n = network.add_input("n", DataType.INT32, ())
    limit = network.add_loop().add_trip_limit(n, TripLimit.COUNT)

    assert limit.infer(n.type) == ()


def test_length_of_an_output_that_is_known_is_in_its_shape(network, x):
    n = network.add_input("n", DataType.INT32, ())
    output = network.add_loop().add_loop_output(x, LoopOutput.CONCATENATE, axis=1)
    output.set_input(1, n)

    assert output.get_output(0).shape == (2, -1, 3)
    assert TypeTable({n: TensorType.of(np.array(6, np.int32))}).of(output.get_output(0)).shape == (2, 6, 3)


# ---------------------------------------------------------------------------- given types, known values


def test_given_type_stands_in_place_of_the_declared_one(network, x):
    y = relu(network, x, "a").get_output(0)
    table = TypeTable({x: TensorType(np.dtype(np.float16), (9,))})

    assert str(table[y]) == "float16[9]"
    assert y.shape == (2, 3)


def test_given_type_behind_a_recurrence_that_grows_is_kept(network, x):
    loop = network.add_loop()
    state = loop.add_recurrence(x)
    state.keeps_shape = False
    state.set_input(1, network.add_concatenation([state.get_output(0), x]).get_output(0))
    after = loop.add_loop_output(state.get_output(0), LoopOutput.LAST_VALUE).get_output(0)
    y = relu(network, after, "a").get_output(0)
    table = TypeTable({x: x.type, after: TensorType(np.dtype(np.float32), (8, 3))})

    assert table[state.get_output(0)].shape == (-1, 3)
    assert table[y].shape == (8, 3)


def test_value_follows_from_known_values(network):
    n = network.add_input("n", DataType.INT32, ())
    double = network.add_elementwise(n, n, ElementWiseOperation.SUM).get_output(0)
    negative = network.add_unary(double, UnaryOperation.NEG).get_output(0)
    table = TypeTable({n: TensorType.of(np.array(3, np.int32))})

    assert table[negative].ints() == [-6]


def test_value_of_an_unknown_input_is_unknown(network):
    n = network.add_input("n", DataType.INT32, ())
    negative = network.add_unary(n, UnaryOperation.NEG).get_output(0)

    assert negative.type.value is None


def test_large_values_are_not_computed_while_building(network):
    row = network.add_input("row", DataType.FLOAT, (1, 32))
    column = network.add_input("column", DataType.FLOAT, (32, 1))
    product = network.add_elementwise(row, column, ElementWiseOperation.PROD).get_output(0)
    table = TypeTable(
        {row: TensorType.of(np.ones((1, 32), np.float32)), column: TensorType.of(np.ones((32, 1), np.float32))}
    )

    assert table[row].value is not None
    assert table[product].value is None


def test_recurrence_of_a_known_value_is_unknown(network):
    n = network.add_input("n", DataType.INT32, ())
    state = network.add_loop().add_recurrence(n).get_output(0)
    table = TypeTable({n: TensorType.of(np.array(3, np.int32))})

    assert table[state].value is None


def test_value_that_is_an_error_is_left_to_the_run(network):
    a = network.add_input("a", DataType.INT32, ())
    quotient = network.add_elementwise(a, a, ElementWiseOperation.DIV).get_output(0)
    table = TypeTable({a: TensorType.of(np.array(0, np.int32))})

    assert table[quotient] == TensorType(np.dtype(np.int32), ())
    assert table[quotient].value is None


def test_tables_know_nothing_of_each_other(network, x):
    y = relu(network, x, "a").get_output(0)
    one, other = (TypeTable({x: replace(x.type, shape=shape)}) for shape in ((1,), (2,)))

    assert (one[y].shape, other[y].shape) == ((1,), (2,))


def test_type_table_raises_for_a_tensor_without_a_type(network, x):
    layer = network.add_activation(x, ActivationType.RELU)
    layer.set_input(0, layer.get_output(0))
    with pytest.raises(AssertionError, match="no type for"):
        network.types[layer.get_output(0)]


def test_elementwise_layer_is_asked_again_when_either_input_changes(network, x, monkeypatch):
    count = []
    infer = IElementWiseLayer.infer
    monkeypatch.setattr(IElementWiseLayer, "infer", lambda self, *types: count.append(1) or infer(self, *types))
    y = network.add_input("y", DataType.FLOAT, (1, 3))
    z = network.add_elementwise(x, y, ElementWiseOperation.SUM).get_output(0)
    for tensor in (x, y, x):
        tensor.shape = (1, 3)
        assert z.shape == (1, 3)

    assert len(count) == 3
