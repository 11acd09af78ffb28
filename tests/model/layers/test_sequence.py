"""Sequences of tensors and optional values, against Python lists."""

import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.sequence import (
    IOptionalLayer,
    ISequenceAtLayer,
    ISequenceConcatenationLayer,
    ISequenceEraseLayer,
    ISequenceInsertLayer,
    ISequenceLayer,
    ISequenceLengthLayer,
    ISequenceSplitLayer,
)
from netloop.values.types import OptionalType, SequenceType, TensorType
from tests.support.laws import refuses
from tests.support.networks import cast, combine, constant, counted, last, mark

F = np.float32
FLOAT, INDEX = np.dtype(F), np.array(0)
PAIRS = SequenceType(FLOAT, element=(2,))
GIVEN = [F([1]), F([2, 3]), F([4, 5, 6])]


def plain(value):
    """Convert a value to Python lists."""
    return (
        [element.tolist() for element in value]
        if isinstance(value, list)
        else value
        if value is None
        else value.tolist()
    )


def run(network, **given):
    """Return the outputs of the reference, after comparing an engine and one from a plan with them."""
    expected = {name: plain(value) for name, value in trt.evaluate(network, given).items()}
    engine = trt.compile(network)
    again = trt.Runtime(trt.Logger()).deserialize_cuda_engine(engine.serialize())
    for other in (engine, again):
        assert {name: plain(value) for name, value in other(given).items()} == expected
    assert trt.compare(network, given).agrees
    return expected


def with_sequence(shape=(-1,)):
    network = trt.INetworkDefinition()
    return network, network.add_sequence_input("s", trt.float32, shape)


def only(layer):
    return layer.get_output(0)


# ---------------------------------------------------------------------------- sequences


def test_sequence_is_what_its_inputs_are():
    network, _ = with_sequence()
    a, b = network.add_input("a", trt.float32, (2,)), network.add_input("b", trt.float32, (1, 1))
    mark(network, y=only(network.add_sequence([a, b])), none=only(network.add_sequence([], trt.int32)))

    assert run(network, a=F([1, 2]), b=F([[3]]), s=[]) == {"y": [[1, 2], [[3]]], "none": []}


@pytest.mark.parametrize("position", [None, *range(-3, 4)])
def test_tensor_is_inserted_where_a_list_inserts_it(position):
    network, s = with_sequence()
    at = None if position is None else constant(network, position, np.int64)
    mark(network, y=only(network.add_sequence_insert(s, constant(network, [9], F), at)))

    expected = [f.tolist() for f in GIVEN]
    expected.insert(len(expected) if position is None else position, [9])
    assert run(network, s=GIVEN)["y"] == expected


@pytest.mark.parametrize("position", [None, *range(-3, 3)])
def test_tensor_is_erased_as_from_a_list(position):
    network, s = with_sequence()
    at = None if position is None else constant(network, [position], np.int32)
    mark(network, y=only(network.add_sequence_erase(s, at)))

    expected = [f.tolist() for f in GIVEN]
    del expected[-1 if position is None else position]
    assert run(network, s=GIVEN)["y"] == expected


@pytest.mark.parametrize("position", range(-3, 3))
def test_tensor_is_found_at_its_position(position):
    network, s = with_sequence()
    mark(network, y=only(network.add_sequence_at(s, network.add_input("i", trt.int64, ()))))

    assert run(network, s=GIVEN, i=np.int64(position))["y"] == GIVEN[position].tolist()


@pytest.mark.parametrize("given", [[], GIVEN])
def test_sequence_has_a_length(given):
    network, s = with_sequence()
    mark(network, n=only(network.add_sequence_length(s)))

    assert run(network, s=given)["n"] == len(given)


@pytest.mark.parametrize("axis", [0, -1, 1])
@pytest.mark.parametrize("new_axis", [False, True])
def test_tensors_are_concatenated_or_stacked_as_by_numpy(axis, new_axis):
    network, s = with_sequence((2, 2))
    mark(network, y=only(network.add_sequence_concatenation(s, axis, new_axis)))
    given = [F([[1, 2], [3, 4]]), F([[5, 6], [7, 8]])]

    assert run(network, s=given)["y"] == (np.stack if new_axis else np.concatenate)(given, axis).tolist()


@pytest.mark.parametrize(
    ("lengths", "keep_axis", "parts"),
    [
        (None, True, [[[0], [3]], [[1], [4]], [[2], [5]]]),
        (None, False, [[0, 3], [1, 4], [2, 5]]),
        (2, True, [[[0, 1], [3, 4]], [[2], [5]]]),
        ([0, 1, 2], True, [[[], []], [[0], [3]], [[1, 2], [4, 5]]]),
    ],
)
def test_axis_is_split_into_parts(lengths, keep_axis, parts):
    network, _ = with_sequence()
    x = network.add_input("x", trt.float32, (2, 3))
    given = None if lengths is None else constant(network, lengths, np.int64)
    mark(network, y=only(network.add_sequence_split(x, given, -1, keep_axis)))

    assert run(network, x=np.arange(6, dtype=F).reshape(2, 3), s=[])["y"] == parts


# ---------------------------------------------------------------------------- optional values


@pytest.mark.parametrize("sequence", [False, True])
def test_optional_input_is_there_or_not(sequence):
    network = trt.INetworkDefinition()
    given = network.add_optional_input("o", trt.float32, (2,), sequence)
    mark(network, there=only(network.add_optional_has(given)), same=only(network.add_identity(given)))
    value = [F([1, 2])] if sequence else F([1, 2])

    assert run(network, o=None) == {"there": False, "same": None}
    assert run(network, o=value) == {"there": True, "same": plain(value)}


def test_value_is_asked_for_only_where_it_is_there():
    network = trt.INetworkDefinition()
    o, other = network.add_optional_input("o", trt.float32, (-1,)), network.add_input("x", trt.float32, (1,))
    choice = network.add_if_conditional()
    choice.set_condition(only(network.add_optional_has(o)))
    mark(network, y=only(choice.add_output(only(network.add_optional_get(o)), other)))

    assert run(network, o=F([1, 2]), x=F([3]))["y"] == [1, 2]
    assert run(network, o=None, x=F([3]))["y"] == [3]


def test_branches_give_a_value_or_none():
    network = trt.INetworkDefinition()
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    there, absent = network.add_optional(constant(network, [1, 2], F)), network.add_optional(None, trt.float32, (2,))
    mark(network, y=only(choice.add_output(only(there), only(absent))))

    assert [run(network, c=np.bool_(number))["y"] for number in (True, False)] == [[1, 2], None]


# ---------------------------------------------------------------------------- in loops


def growing(network, start, trips=3):
    """A loop that appends ``i`` ones in each iteration."""
    loop = counted(network, trips)
    state, number = loop.add_recurrence(start), loop.add_recurrence(constant(network, 0, np.int64))
    state.keeps_shape = False
    number.set_input(1, combine(network, only(number), 1))
    ones = network.add_fill((1,), trt.FillOperation.LINSPACE)
    lengths = network.add_shuffle(only(number))
    lengths.reshape_dims = (1,)
    ones.set_input(0, only(lengths))
    ones.set_input(1, constant(network, 1, F))
    ones.set_input(2, constant(network, [0], F))
    state.set_input(1, only(network.add_sequence_insert(only(state), only(ones))))
    return loop, state


@pytest.mark.parametrize("trips", [0, 3])
def test_loop_grows_a_sequence(trips):
    network = trt.INetworkDefinition()
    loop, state = growing(network, only(network.add_sequence([], trt.float32)), trips)
    mark(network, y=last(loop, only(state)))

    assert run(network)["y"] == [[1.0] * i for i in range(trips)]


def test_trace_has_the_sequence_of_each_trip():
    network = trt.INetworkDefinition()
    loop, state = growing(network, only(network.add_sequence([], trt.float32)))
    mark(network, y=last(loop, only(state)))

    assert [plain(value) for value in trt.trace(network, {})[only(state)]] == [[], [[]], [[], [1]]]


def test_type_of_an_empty_start_is_that_of_what_follows():
    network = trt.INetworkDefinition()
    _, state = growing(network, only(network.add_sequence([], trt.float32)))

    assert only(state).type == SequenceType(FLOAT, element=(-1,))


def test_loop_reads_what_it_appended_to_an_empty_start_of_a_declared_shape():
    network = trt.INetworkDefinition()
    loop, before = counted(network, 3), only(network.add_sequence([], trt.float32, (-1,)))
    state = loop.add_recurrence(before)
    state.keeps_shape = False
    length = only(network.add_sequence_length(only(state)))
    choice = network.add_if_conditional()
    choice.set_condition(combine(network, length, 0, trt.ElementWiseOperation.GREATER))
    end = only(network.add_sequence_at(only(state), constant(network, -1, np.int64)))
    following = only(
        choice.add_output(combine(network, end, constant(network, [2, 2], F)), constant(network, [5, 6], F))
    )
    state.set_input(1, only(network.add_sequence_insert(only(state), following)))
    mark(network, y=last(loop, only(state)))

    assert run(network)["y"] == [[5, 6], [7, 8], [9, 10]]
    assert only(state).type == SequenceType(FLOAT, element=(2,))


def test_declared_shape_of_an_empty_start_has_the_rank_of_what_follows():
    network = trt.INetworkDefinition()
    loop, state = growing(network, only(network.add_sequence([], trt.float32, ())))
    end = only(network.add_sequence_at(only(state), constant(network, -1, np.int64)))
    mark(network, y=last(loop, only(state)), end=loop.add_loop_output(end, trt.LoopOutput.LAST_VALUE).get_output(0))

    assert "the rank of the tensors of a sequence of float32[...] is unknown" in {
        finding.what for finding in trt.check(network)
    }


def test_sequence_that_changes_needs_a_recurrence_that_may():
    network = trt.INetworkDefinition()
    loop, state = growing(network, only(network.add_sequence([], trt.float32)))
    state.keeps_shape = True
    mark(network, y=last(loop, only(state)))

    (found,) = [finding for finding in trt.check(network) if finding.code == "NL205"]
    assert found.what.endswith("starts as sequence of float32[...], and its next value is sequence of float32[-1]")
    assert found.fix == "set keeps_shape to False, since its contents change"


def test_loop_output_does_not_stack_sequences():
    network, s = with_sequence()
    loop = counted(network, 2)
    output = loop.add_loop_output(s, trt.LoopOutput.CONCATENATE)
    output.set_input(1, constant(network, 2))
    mark(network, y=only(output))

    assert "stacks tensors, not sequence of float32[-1]" in told(network)


def told(network):
    return "\n".join(finding.what for finding in trt.check(network))


# ---------------------------------------------------------------------------- errors


def test_layer_for_tensors_refuses_a_sequence():
    network, s = with_sequence()
    mark(network, y=only(network.add_unary(s, trt.UnaryOperation.EXP)))

    assert "input 0 takes a tensor, not a sequence of float32[-1]" in told(network)


def test_types_that_do_not_fit_are_refused():
    other, wide = SequenceType(FLOAT), np.zeros(2)
    refuses(ISequenceLayer(), F([1]), wide, match="the sequence is of float32, and an input is float64[2]")
    refuses(ISequenceLayer(), match="an empty sequence has no element type")
    refuses(ISequenceLayer(dtype=trt.int8, shape=(-2,)), match="has a dim below -1")
    refuses(ISequenceInsertLayer(), PAIRS, wide, match="a sequence of float32[2] takes no float64[2]")
    refuses(ISequenceInsertLayer(), F([1]), F([1]), match="input 0 is float32[1], but must be a sequence")
    refuses(ISequenceAtLayer(), PAIRS, F([0]), match="the position is float32[1], but must be an int32[] or int64[]")
    refuses(ISequenceAtLayer(), other, INDEX, match="the rank of the tensors of a sequence of float32[...]")
    refuses(ISequenceEraseLayer(), PAIRS, np.zeros((2, 1), np.int64), match="the position is int64[2,1]")
    refuses(ISequenceLengthLayer(), TensorType(FLOAT), match="must be a sequence")
    refuses(ISequenceConcatenationLayer(axis=1), PAIRS, match="axis 1")
    refuses(ISequenceSplitLayer(), PAIRS, match="input 0 is sequence of float32[2], but must be a tensor")
    refuses(ISequenceSplitLayer(keep_axis=False), F([1]), INDEX, match="parts of given lengths keep the axis")
    refuses(ISequenceSplitLayer(), F([1]), F([1]), match="must be int32 or int64")
    refuses(IOptionalLayer(), OptionalType.around(PAIRS), match="is optional sequence of float32[2] already")
    refuses(IOptionalLayer(dtype=trt.int8, shape=(2, -5)), match="has a dim below -1")
    refuses(IOptionalLayer(), match="an absent value has no element type")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda n, s, i: n.add_sequence_at(s, i), "position 3 is out of range for a sequence of 3 tensors"),
        (lambda n, s, i: n.add_sequence_erase(s, i), "position 3 is out of range for a sequence of 3 tensors"),
        (
            lambda n, s, i: n.add_sequence_insert(s, combine(n, cast(n, i, trt.float32), 0), combine(n, i, 1)),
            "position 4",
        ),
        (
            lambda n, s, i: n.add_sequence_concatenation(s, 0, True),
            "the tensors have the shapes (1,) and (2,) and (3,)",
        ),
        (lambda n, s, i: n.add_sequence_split(n.add_sequence_at(s, combine(n, i, -1)).get_output(0), i, 5), "axis 5"),
        (lambda n, s, i: n.add_optional_get(n.add_optional_input("o", trt.float32, ())), "the value is absent"),
    ],
)
def test_what_is_not_there_is_an_error(ask, message):
    network, s = with_sequence()
    mark(network, y=only(ask(network, s, network.add_input("i", trt.int64, ()))))
    given = {tensor.name: {"s": GIVEN, "i": np.int64(3), "o": None}[tensor.name] for tensor in network.inputs}

    for runs in (trt.evaluate, lambda network, given: trt.compile(network)(given)):
        with pytest.raises((trt.ExecutionError, trt.NetworkError)) as caught:
            runs(network, given)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (F([1]), "a sequence must be a list or tuple of arrays, not ndarray"),
        (None, "a sequence must be a list or tuple of arrays, not NoneType"),
        ([np.zeros(2)], "input 's' is sequence of float32[-1], and its value is float64[2]"),
        ([F([1]), F([[1]])], "input 's' is sequence of float32[-1], and its value is float32[1,1]"),
        ([F([1]), "one"], "input 's' is sequence of float32[-1], and its value is"),
    ],
)
def test_call_gives_a_list_of_fitting_arrays(given, message):
    network, s = with_sequence()
    mark(network, n=only(network.add_sequence_length(s)))

    with pytest.raises(trt.InputError) as caught:
        trt.compile(network)({"s": given})
    assert message in str(caught.value)


def test_input_takes_tensors_of_any_shape_where_none_is_declared():
    network, s = with_sequence(None)
    mark(network, n=only(network.add_sequence_length(s)))

    assert run(network, s=[F(1), F([[2]])])["n"] == 2


def test_sequence_has_no_shape_or_element_type_to_set():
    _, s = with_sequence()

    with pytest.raises(AttributeError, match="has no shape to set"):
        s.shape = (1,)
    with pytest.raises(AttributeError, match="its element type cannot be set"):
        s.dtype = trt.float16


def test_context_refuses_what_has_no_address():
    network, s = with_sequence()
    mark(network, n=only(network.add_sequence_length(s)))

    with pytest.raises(trt.NetworkError) as caught:
        trt.compile(network).create_execution_context()
    assert [finding.code for finding in caught.value.findings] == ["NL611"]


def test_pure_function_takes_no_sequence():
    network, s = with_sequence()
    mark(network, n=only(network.add_sequence_length(s)))

    function, weights = trt.to_jax(network)

    with pytest.raises(trt.NetworkError, match="the input 's' is sequence of float32"):
        function(weights, {"s": []})


def test_shape_may_come_from_a_sequence():
    network = trt.INetworkDefinition()
    s, x = network.add_sequence_input("s", trt.int64, (2,)), network.add_input("x", trt.float32, (6,))
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, only(network.add_sequence_at(s, constant(network, 0, np.int64))))
    mark(network, y=only(shuffle))

    assert run(network, s=[np.array([2, 3])], x=np.arange(6, dtype=F))["y"] == [[0, 1, 2], [3, 4, 5]]


def test_tensorrt_has_no_sequences():
    network, s = with_sequence()
    mark(network, n=only(network.add_sequence_length(s)))

    found = [finding.what for finding in trt.check(network, target="tensorrt")]
    assert any("the input 's' is sequence of float32[-1]" in name for name in found)
