"""The interpreter computes only what is needed, once, however deep or long the network is."""

import tracemalloc

import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.pointwise import IElementWiseLayer, IUnaryLayer
from netloop.model.reference.interpreter import Interpreter
from tests.support.nests import FAMILIES, NESTS, inputs_of, loops_in_a_row
from tests.support.networks import (
    EXAMPLES,
    REVERSE,
    F,
    Op,
    assert_outputs,
    chain,
    chain_in_loop,
    combine,
    constant,
    counted,
    counter,
    deep,
    last,
    lstm,
    mark,
    running_sum,
    stacked,
)


@pytest.fixture
def evaluated(monkeypatch):
    """The names of the unary layers that were evaluated, in order."""
    names = []
    evaluate = IUnaryLayer.evaluate

    def noted(self, *arrays):
        names.append(self.name)
        return evaluate(self, *arrays)

    monkeypatch.setattr(IUnaryLayer, "evaluate", noted)
    return names


def negated(network, tensor, name):
    layer = network.add_unary(tensor, trt.UnaryOperation.NEG)
    layer.name = name
    return layer.get_output(0)


# ---------------------------------------------------------------------------- laziness


def test_element_that_many_need_is_computed_once(network, evaluated):
    x = negated(network, network.add_input("x", trt.float32, ()), "x")
    mark(network, y=combine(network, x, x), z=combine(network, x, 1))
    trt.evaluate(network, {"x": F(1)})

    assert evaluated == ["x"]


def test_element_of_each_trip_is_computed_once(network, evaluated):
    loop = counted(network, 3)
    now = negated(network, counter(network, loop), "now")
    length = constant(network, 3, np.int32)
    mark(network, y=stacked(loop, now, length), z=stacked(loop, combine(network, now, now), length, REVERSE))
    trt.evaluate(network, {})

    assert evaluated == ["now"] * 3


def test_invariant_is_computed_once(network, evaluated):
    loop = counted(network, 3)
    still = negated(network, network.add_input("x", trt.int32, ()), "still")
    made = combine(network, counter(network, loop), still)
    mark(network, y=stacked(loop, made, constant(network, 3, np.int32)))
    trt.evaluate(network, {"x": np.int32(1)})

    assert evaluated == ["still"]


def test_invariant_of_a_loop_without_trips_is_not_computed(network, evaluated):
    loop = counted(network, 0)
    still = negated(network, network.add_input("x", trt.int32, ()), "still")
    made = combine(network, counter(network, loop), still)
    mark(network, y=stacked(loop, made, constant(network, 3, np.int32)))
    trt.evaluate(network, {"x": np.int32(1)})

    assert evaluated == []


def test_branch_not_taken_is_not_computed(network, evaluated):
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    x = network.add_input("x", trt.float32, ())
    mark(network, y=choice.add_output(negated(network, x, "true"), negated(network, x, "false")).get_output(0))
    trt.evaluate(network, {"c": np.bool_(False), "x": F(1)})

    assert evaluated == ["false"]


def test_element_after_the_last_is_computed_only_for_the_last_value(network, evaluated):
    loop = counted(network, 3)
    state = loop.add_recurrence(network.add_input("x", trt.float32, ()))
    state.set_input(1, negated(network, state.get_output(0), "next"))
    output = stacked(loop, state.get_output(0), constant(network, 3, np.int32))
    mark(network, y=output)
    trt.evaluate(network, {"x": F(1)})

    # elements 0, 1 and 2 need two steps
    assert evaluated == ["next"] * 2


def test_dead_layer_is_not_computed(network, evaluated):
    x = network.add_input("x", trt.float32, ())
    negated(network, x, "dead")
    mark(network, y=combine(network, x, 1))
    trt.evaluate(network, {"x": F(1)})

    assert evaluated == []


def test_value_of_any_tensor_is_available_in_any_iteration(network):
    loop = counted(network, 3)
    square = combine(network, counter(network, loop), counter(network, loop), Op.PROD)
    mark(network, y=stacked(loop, square, constant(network, 3, np.int32)))
    interpreter = Interpreter(network, {})

    assert [int(interpreter.value(square, {loop: trip})) for trip in (5, 0, 100)] == [25, 0, 10000]


# ---------------------------------------------------------------------------- length and depth


def test_ten_thousand_iterations():
    assert trt.evaluate(chain_in_loop(1, 10_000), {"x": F([1, 2])})["y"].tolist() == [1, 2]


def test_ten_thousand_iterations_from_the_last_to_the_first(network):
    loop = counted(network, 10_000)
    mark(network, y=last(loop, combine(network, counter(network, loop), 1)))

    assert trt.evaluate(network, {})["y"] == 10_001


def test_hundred_nested_loops():
    assert trt.evaluate(deep(100, 1), {"x": np.int64(5)})["y"] == 6


def test_ten_nested_loops_of_two_iterations():
    assert trt.evaluate(deep(10, 2), {"x": np.int64(0)})["y"] == 1024


@pytest.mark.parametrize("dtype", [trt.float32, trt.int32])
def test_five_thousand_layers_in_a_row(dtype):
    network = chain(5000, dtype)
    x = np.array([1, 2], network.inputs[0].type.dtype)

    assert_outputs(trt.evaluate(network, {"x": x}), {"y": x})


def test_hundred_nested_conditionals(network):
    flag = network.add_input("c", trt.bool, ())
    tensor = network.add_input("x", trt.int32, ())
    zero = constant(network, 0, np.int32)
    for _ in range(100):
        choice = network.add_if_conditional()
        choice.set_condition(flag)
        tensor = choice.add_output(combine(network, tensor, 1), zero).get_output(0)
    mark(network, y=tensor)

    assert trt.evaluate(network, {"c": np.bool_(True), "x": np.int32(0)})["y"] == 100


# ---------------------------------------------------------------------------- inputs and outputs


def test_outputs_are_numpy_arrays_in_the_order_in_which_they_were_marked(network):
    b, a = (network.add_input(name, trt.float32, ()) for name in "ba")
    network.mark_output(a)
    network.mark_output(b)
    got = trt.evaluate(network, {"a": F(1), "b": F(2)})

    assert list(got) == ["a", "b"]
    assert all(type(array) is np.ndarray for array in got.values())


def test_inputs_are_checked(network):
    with pytest.raises(trt.InputError, match="input 'x' is missing"):
        trt.evaluate(running_sum(), {})


def test_network_is_checked_for_the_shapes_of_the_inputs():
    inputs = {"x": np.ones((2, 3, 7), F), "h0": np.ones((3, 5), F), "c0": np.ones((2, 5), F)}
    with pytest.raises(trt.NetworkError) as caught:
        trt.evaluate(lstm(), inputs)

    assert {finding.code for finding in caught.value.findings} <= {"NL205", "NL401"}


def test_zeros_of_a_loop_without_trips_have_the_shape_of_its_rows(network):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    x = network.add_input("x", trt.float32, (-1, 2))
    mark(network, y=stacked(loop, combine(network, x, 1), constant(network, 3, np.int32), axis=1))

    assert trt.evaluate(network, {"n": np.int32(0), "x": np.ones((4, 2), F)})["y"].shape == (4, 3, 2)


def test_edits_of_the_inputs_do_not_reach_the_outputs(network):
    x = np.ones(2, F)
    network.mark_output(network.add_input("x", trt.float32, (2,)))
    network.mark_output(combine(network, network.inputs[0], 1))
    got = trt.evaluate(network, {"x": x})
    x[:] = 7

    assert [array.tolist() for array in got.values()][1] == [2, 2]


# ---------------------------------------------------------------------------- errors


def test_error_of_an_operation_names_its_layer(network):
    x = network.add_input("x", trt.float32, (2,))
    gather = network.add_gather(x, network.add_input("i", trt.int32, ()), 0)
    gather.name = "pick"
    mark(network, y=gather.get_output(0))
    with pytest.raises(trt.ExecutionError) as caught:
        trt.evaluate(network, {"x": F([1, 2]), "i": np.int32(2)})

    (found,) = caught.value.findings
    assert found.code == "NL601"
    assert found.where == f"{gather.source_location}, IGatherLayer 'pick'"
    assert __file__ in found.where


def test_error_leaves_the_interpreter_fit_for_another_question(network):
    loop = counted(network, 3)
    row = loop.add_iterator(network.add_input("x", trt.float32, (-1,))).get_output(0)
    mark(network, y=stacked(loop, row, constant(network, 3, np.int32)))
    interpreter = Interpreter(network, {"x": F([1, 2])})
    with pytest.raises(trt.ExecutionError):
        interpreter.value(network.outputs[0])

    assert interpreter.value(row, {loop: 1}) == 2


def test_bug_in_a_layer_is_not_reported_as_the_users_mistake(network, monkeypatch):
    def broken(self, *arrays):
        raise ZeroDivisionError

    monkeypatch.setattr(IElementWiseLayer, "evaluate", broken)
    mark(network, y=combine(network, network.add_input("x", trt.float32, ()), 1))
    with pytest.raises(ZeroDivisionError):
        trt.evaluate(network, {"x": F(1)})


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_marking_more_outputs_changes_no_output(example):
    network = example.make()
    for layer in list(network.layers):
        for tensor in layer.outputs:
            if not Interpreter(network, example.inputs).scopes.of(tensor):
                network.mark_output(tensor)
    got = trt.evaluate(network, example.inputs)

    assert_outputs({name: got[name] for name in example.outputs}, example.outputs)


@pytest.mark.parametrize("run", [trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)])
def test_shape_of_what_failed_is_known(network, run):
    loop = counted(network, 3)
    short = stacked(loop, counter(network, loop), constant(network, 2, np.int32))
    mark(network, y=network.add_shape(short).get_output(0))

    assert run(network, {})["y"].tolist() == [2]


# ---------------------------------------------------------------------------- depth


@pytest.mark.parametrize("size", [300, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("nest", NESTS)
def test_nest_of_hundreds_is_evaluated(nest, size):
    network = NESTS[nest](size)
    grows = ("conditionals", "conditionals with assertions", "loops with limits")
    wanted = 5 + size if nest in grows else 6

    assert trt.evaluate(network, inputs_of(network))["y"] == wanted


def test_assertion_in_a_deep_nest_is_checked():
    network = NESTS["conditionals with assertions"](300)
    assertion = next(layer for layer in network.layers if isinstance(layer, trt.IAssertionLayer))
    assertion.message = "the innermost"
    less = assertion.get_input(0).producer
    less.op = trt.ElementWiseOperation.LESS

    with pytest.raises(trt.ExecutionError, match="the innermost"):
        trt.evaluate(network, inputs_of(network))


def test_iterations_that_each_need_the_one_before_are_evaluated():
    network = trt.INetworkDefinition()
    loop = counted(network, 20_000)
    mark(network, y=last(loop, counter(network, loop)))

    assert trt.evaluate(network, {})["y"] == 20_000


def test_long_chain_of_loops_takes_memory_for_each_loop_only():
    small, large = (_peak_of(loops_in_a_row(size)) for size in (200, 800))

    assert large < 6 * small


def _peak_of(network):
    """The most memory in bytes that an evaluation takes."""
    trt.check(network)
    tracemalloc.start()
    try:
        trt.evaluate(network, inputs_of(network))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["chain", "states", "loops in a row"])
def test_ten_thousands_of_layers_are_evaluated(family):
    network = FAMILIES[family](10_000)

    assert np.max(trt.evaluate(network, inputs_of(network))["y"]) in (5, 6, 10_005)


@pytest.mark.slow
def test_hundred_thousand_layers_and_iterations_are_evaluated():
    network = trt.INetworkDefinition()
    loop = counted(network, 100_000)
    mark(network, y=last(loop, counter(network, loop)))
    long = FAMILIES["chain"](100_000)

    assert trt.evaluate(network, {})["y"] == 100_000
    assert trt.evaluate(long, inputs_of(long))["y"].tolist() == [5, 5]
