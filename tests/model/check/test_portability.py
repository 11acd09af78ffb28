"""Rules about what TensorRT refuses, leaves undefined or runs otherwise, each with a network that breaks it."""

import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from tests.support.findings import line_of, only
from tests.support.networks import (
    CONCATENATE,
    COUNT,
    LAST,
    REVERSE,
    WHILE,
    F,
    Op,
    cast,
    combine,
    constant,
    counted,
    counter,
    last,
    mark,
    stacked,
)
from tests.support.plugin_examples import Plugin

PORTABILITY = trt.Severity.PORTABILITY


@pytest.fixture
def x(network):
    return network.add_input("x", trt.float32, (3,))


def silent(network):
    """Whether nothing is wrong with a network, TensorRT's view included."""
    return trt.check(network, "tensorrt") == []


def length(network, number):
    return constant(network, number, np.int32)


# ---------------------------------------------------------------------------- wiring


def test_output_that_is_an_input(network, x):
    network.mark_output(x)

    found = only(network, "NL108", x)
    assert found.severity is PORTABILITY
    assert found.what == "the network output 'x' is an input of the network"
    assert found.fix == "mark the output of network.add_identity(tensor) instead"


def test_output_that_is_a_copy_of_an_input(network, x):
    assert silent(mark(network, y=network.add_identity(x).get_output(0)))


# ---------------------------------------------------------------------------- WHILE


def test_while_that_reads_an_iterator(network, x):
    loop = network.add_loop()
    loop.name = "L"
    iterator = loop.add_iterator(x)
    iterator.name = "element"
    small = combine(network, iterator.get_output(0), 5, Op.LESS)
    limit = loop.add_trip_limit(small, WHILE)
    mark(network, y=last(loop, counter(network, loop)))

    found = only(network, "NL213", limit)
    assert found.severity is PORTABILITY
    assert found.what == "the WHILE limit of 'L' depends on 'element', an iterator"
    assert found.fix == "carry the value through a recurrence of the loop, and read that"


def test_while_that_reads_what_comes_out_of_a_loop_inside(network):
    outer = network.add_loop()
    now = counter(network, outer)
    inner = counted(network, now)
    made = inner.add_loop_output(counter(network, inner), LAST)
    made.name = "made"
    limit = outer.add_trip_limit(combine(network, made.get_output(0), 3, Op.LESS), WHILE)
    mark(network, y=last(outer, now))

    assert only(network, "NL213", limit).what.endswith("depends on 'made', the output of a loop")


def test_while_that_reads_an_iterator_twice_is_told_once(network, x):
    loop = network.add_loop()
    element = loop.add_iterator(x).get_output(0)
    loop.add_trip_limit(combine(network, element, combine(network, element, 1), Op.LESS), WHILE)
    mark(network, y=last(loop, counter(network, loop)))

    only(network, "NL213")


def test_while_that_reads_recurrences(network, x):
    loop = network.add_loop()
    state = loop.add_recurrence(constant(network, 0, F))
    state.set_input(1, combine(network, state.get_output(0), loop.add_iterator(x).get_output(0)))
    loop.add_trip_limit(combine(network, state.get_output(0), 5, Op.LESS), WHILE)

    assert silent(mark(network, y=last(loop, state.get_output(0))))


def test_while_that_reads_what_a_loop_before_gives_out(network):
    before = counted(network, 3)
    most = last(before, counter(network, before))
    loop = network.add_loop()
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, most, Op.LESS), WHILE)

    assert silent(mark(network, y=last(loop, now)))


# ---------------------------------------------------------------------------- loop outputs


@pytest.mark.parametrize("kind", [CONCATENATE, REVERSE])
def test_stacking_what_is_made_outside(network, x, kind):
    loop = counted(network, 2)
    loop.name = "L"
    output = loop.add_loop_output(x, kind)
    output.set_input(1, length(network, 2))
    output.name = "rows"
    mark(network, y=output.get_output(0))

    found = only(network, "NL214", output)
    assert found.severity is PORTABILITY
    assert found.what == f"the {kind.name} output 'rows' reads 'x', made outside 'L'"
    assert found.fix == "pass 'x' through a recurrence of 'L'"


def test_stacking_what_a_recurrence_hands_through(network, x):
    loop = counted(network, 2)
    state = loop.add_recurrence(x)
    state.set_input(1, x)

    assert silent(mark(network, y=stacked(loop, state.get_output(0), length(network, 2))))


def test_stacking_what_nothing_needs(network, x):
    loop = counted(network, 2)
    stacked(loop, x, length(network, 1), axis=-1)

    assert silent(mark(network, y=combine(network, x, 1)))


def test_length_below_the_count(network):
    loop = counted(network, 5)
    loop.name = "L"
    output = loop.add_loop_output(counter(network, loop), CONCATENATE)
    output.set_input(1, length(network, 4))
    output.name = "rows"
    mark(network, y=network.add_shape(output.get_output(0)).get_output(0))

    found = only(network, "NL215", output)
    assert found.severity is PORTABILITY
    assert found.what == "'rows' has room for 4 elements, and 'L' runs 5 iterations"
    assert found.fix == "give it a length of 5"


@pytest.mark.parametrize("room", [5, 6])
def test_length_of_the_count_or_more(network, room):
    loop = counted(network, 5)

    assert silent(mark(network, y=stacked(loop, counter(network, loop), length(network, room))))


# ---------------------------------------------------------------------------- iterators


def test_count_past_the_axis(network, x):
    """The sum before an iteration does not need the slice of that iteration."""
    loop = counted(network, 4)
    loop.name = "L"
    iterator = loop.add_iterator(x)
    iterator.name = "element"
    total = loop.add_recurrence(constant(network, F(0)))
    total.set_input(1, combine(network, total.get_output(0), iterator.get_output(0)))
    mark(network, y=stacked(loop, total.get_output(0), length(network, 4)))

    found = only(network, "NL216", iterator)
    assert found.severity is PORTABILITY
    assert found.what == "'element' iterates over an axis of 3 elements, and 'L' runs 4 iterations"
    assert found.fix == "limit 'L' to 3 iterations"
    assert trt.compile(network)({"x": F([1, 2, 3])})["y"].tolist() == [0, 1, 3, 6]


@pytest.mark.parametrize("trips", [2, 3])
def test_count_of_the_axis_or_less(network, x, trips):
    loop = counted(network, trips)

    assert silent(mark(network, y=stacked(loop, loop.add_iterator(x).get_output(0), length(network, trips))))


def test_axis_of_a_length_that_only_the_call_tells(network):
    loop = counted(network, 4)
    element = loop.add_iterator(network.add_input("x", trt.float32, (-1,))).get_output(0)

    assert silent(mark(network, y=stacked(loop, element, length(network, 4))))


def test_negative_axis_of_an_iterator(network):
    loop = counted(network, 2)
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (3, 2)), -1)
    iterator.name = "columns"
    mark(network, y=stacked(loop, iterator.get_output(0), length(network, 2)))

    found = only(network, "NL217", iterator)
    assert found.severity is PORTABILITY
    assert (found.what, found.fix) == ("the axis -1 of 'columns' is negative", "write axis 1")


def test_negative_axis_of_a_loop_output(network):
    loop = counted(network, 2)
    row = loop.add_iterator(network.add_input("x", trt.float32, (2, 3))).get_output(0)
    output = loop.add_loop_output(row, CONCATENATE, -1)
    output.set_input(1, length(network, 2))
    mark(network, y=output.get_output(0))

    assert only(network, "NL217", output).fix == "write axis 1"


def test_axis_that_a_last_value_makes_no_use_of(network):
    loop = counted(network, 2)

    assert silent(mark(network, y=loop.add_loop_output(counter(network, loop), LAST, -1).get_output(0)))


# ---------------------------------------------------------------------------- shapes, counts


def test_recurrence_that_decides_a_shape(network):
    loop = counted(network, 3)
    now = counter(network, loop, 1)
    now.producer.name = "now"
    fill = network.add_fill((1,), trt.FillOperation.LINSPACE, trt.float32)
    fill.set_input(0, network.add_unsqueeze(now, constant(network, [0], np.int32)).get_output(0))
    fill.set_input(1, constant(network, 0, F))
    fill.set_input(2, constant(network, [1], F))
    total = network.add_reduce(fill.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0)
    mark(network, y=stacked(loop, total, length(network, 3)))

    (found,) = trt.check(network)
    assert (found.code, found.severity, found.at) == ("NL218", PORTABILITY, now.producer)
    assert found.what == "a shape depends on the value of the recurrence 'now'"


def test_recurrence_whose_shape_decides_a_shape(network, x):
    loop = counted(network, 3)
    state = loop.add_recurrence(x)
    shape = network.add_shape(state.get_output(0)).get_output(0)
    flat = network.add_shuffle(state.get_output(0))
    flat.set_input(1, shape)
    state.set_input(1, flat.get_output(0))

    assert silent(mark(network, y=last(loop, state.get_output(0))))


def test_negative_count(network):
    loop = network.add_loop()
    loop.name = "L"
    limit = loop.add_trip_limit(length(network, -1), COUNT)
    mark(network, y=last(loop, counter(network, loop)))

    found = only(network, "NL219", limit)
    assert found.severity is PORTABILITY
    assert (found.what, found.fix) == ("the COUNT limit of 'L' is -1", "give it 0")


def test_count_of_no_trips(network):
    loop = counted(network, 0)

    assert silent(mark(network, y=last(loop, counter(network, loop))))


# ---------------------------------------------------------------------------- conditionals


@pytest.fixture
def choice(network):
    made = network.add_if_conditional()  # which
    made.name = "which"
    made.set_condition(network.add_input("c", trt.bool, ()))
    return made


def test_conditional_without_inputs_around_a_layer(network, x, choice):
    twice = network.add_elementwise(x, x, Op.SUM)
    twice.name = "twice"
    mark(network, y=choice.add_output(twice.get_output(0), x).get_output(0))

    found = only(network, "NL302", choice)
    assert found.severity is PORTABILITY
    assert found.what == "'which' has no input, so TensorRT runs both branches; 'twice' is in one of them"
    assert found.fix == "pass the tensors that the branches read through add_input"
    assert found.where == line_of(__file__, "made = network.add_if_conditional()  # which") + ", IIfConditional 'which'"


def test_conditional_with_an_input(network, x, choice):
    inside = choice.add_input(x).get_output(0)

    assert silent(mark(network, y=choice.add_output(combine(network, inside, inside), inside).get_output(0)))


def test_conditional_between_what_is_there_anyway(network, x, choice):
    twice = combine(network, x, x)

    chosen = choice.add_output(twice, constant(network, [1, 2, 3], F)).get_output(0)
    assert silent(mark(network, y=chosen, z=combine(network, twice, 1)))


def test_conditional_that_chooses_an_output_of_the_network(network, x, choice):
    twice = combine(network, x, x)

    assert silent(mark(network, z=twice, y=choice.add_output(twice, x).get_output(0)))


def test_conditional_both_branches_of_which_are_one_tensor(network, x, choice):
    twice = combine(network, x, x)

    assert silent(mark(network, y=choice.add_output(twice, twice).get_output(0)))


def test_conditional_that_is_decided_before_the_run(network, x):
    decided = network.add_if_conditional()
    decided.set_condition(constant(network, True, np.bool_))

    assert silent(mark(network, y=decided.add_output(combine(network, x, x), x).get_output(0)))


def test_conditional_in_a_loop_that_chooses_what_is_outside(network, x):
    loop = counted(network, 3)
    now = counter(network, loop)
    choice = network.add_if_conditional()
    choice.set_condition(combine(network, now, 1, Op.LESS))
    chosen = choice.add_output(combine(network, x, x), x).get_output(0)

    assert silent(mark(network, y=stacked(loop, chosen, length(network, 3))))


def test_input_of_a_conditional_that_is_used_outside(network, x, choice):
    inside = choice.add_input(x).get_output(0)
    after = network.add_elementwise(inside, inside, Op.SUM)
    chosen = choice.add_output(combine(network, inside, inside), inside).get_output(0)
    mark(network, y=chosen, z=after.get_output(0))

    found = only(network, "NL303", after)
    assert found.severity is PORTABILITY
    assert found.what == "the network output 'z' comes from inside 'which', not through one of its outputs"
    assert found.fix == "compute it from the tensors that 'which' takes as inputs, or let it out with add_output"


def test_input_of_a_conditional_that_ends_a_loop_outside(network, choice):
    n = choice.add_input(network.add_input("n", trt.int32, ())).get_output(0)
    loop = counted(network, n)
    output = loop.add_loop_output(counter(network, loop), LAST)
    mark(network, y=choice.add_output(n, n).get_output(0), z=output.get_output(0))

    only(network, "NL303", output)


def test_input_of_a_conditional_that_decides_another_outside(network, choice):
    flag = choice.add_input(network.add_input("flag", trt.bool, ())).get_output(0)
    other = network.add_if_conditional()
    other.set_condition(flag)
    output = other.add_output(constant(network, 1, F), constant(network, 2, F))
    mark(network, y=choice.add_output(flag, flag).get_output(0), z=output.get_output(0))

    only(network, "NL303", output)


def test_loop_and_conditional_in_a_branch(network, x, choice):
    inside = choice.add_input(x).get_output(0)
    loop = counted(network, 2)
    state = loop.add_recurrence(inside)
    state.set_input(1, combine(network, state.get_output(0), inside))
    inner = network.add_if_conditional()
    inner.set_condition(network.add_input("d", trt.bool, ()))
    deep = inner.add_input(last(loop, state.get_output(0))).get_output(0)
    made = inner.add_output(combine(network, deep, 1), deep).get_output(0)

    assert silent(mark(network, y=choice.add_output(made, inside).get_output(0)))


def test_branches_of_two_types_under_a_known_condition(network, x):
    decided = network.add_if_conditional()
    decided.name = "which"
    decided.set_condition(constant(network, True, np.bool_))
    output = decided.add_output(x, network.add_input("n", trt.int32, (3,)))
    mark(network, y=output.get_output(0))

    found = only(network, "NL304", output)
    assert found.severity is PORTABILITY
    assert found.what == "the branches of 'which' give float32[3] and int32[3]"
    assert found.fix == "convert one of them with add_cast"


def test_branches_of_two_ranks_under_a_known_condition(network, x):
    decided = network.add_if_conditional()
    decided.set_condition(constant(network, True, np.bool_))

    assert silent(mark(network, y=decided.add_output(x, constant(network, [[1]], F)).get_output(0)))


def test_branches_of_two_ranks_under_a_condition_of_the_run(network, x):
    decided = network.add_if_conditional()
    decided.name = "which"
    decided.set_condition(network.add_input("c", trt.bool, ()))
    output = decided.add_output(x, constant(network, [[1]], F))

    found = only(mark(network, y=output.get_output(0)), "NL305", output)
    assert found.severity is PORTABILITY
    assert found.what == "the branches of 'which' give float32[3] or float32[1,1]"


# ---------------------------------------------------------------------------- types


def test_float64_input(network):
    wide = network.add_input("w", trt.float64, (2,))
    mark(network, y=network.add_identity(wide).get_output(0))

    found = only(network, "NL402", wide)
    assert found.severity is PORTABILITY
    assert (found.what, found.fix) == ("the input 'w' is float64[2]", "declare it as float32")


def test_float64_constant(network):
    wide = constant(network, [1, 2], np.float64)
    wide.producer.name = "weights"
    mark(network, y=combine(network, wide, wide))

    found = only(network, "NL402", wide.producer)
    assert (found.what, found.fix) == ("'weights' makes float64[2]", "make it float32")


def test_float64_by_a_cast_is_told_at_the_cast_alone(network, x):
    wide = cast(network, x, trt.float64)
    mark(network, y=network.add_identity(wide).get_output(0))

    only(network, "NL402", wide.producer)


def test_concatenation_of_too_many(network):
    one = constant(network, [1], F)
    layer = network.add_concatenation([one] * 10_001)
    layer.name = "all"
    mark(network, y=layer.get_output(0))

    (found,) = trt.check(network)
    assert (found.code, found.severity, found.at) == ("NL403", PORTABILITY, layer)
    assert (found.what, found.fix) == ("'all' has 10001 inputs", "concatenate groups of them first")


def test_concatenation_of_just_enough(network):
    one = constant(network, [1], F)

    assert silent(mark(network, y=network.add_concatenation([one] * 10_000).get_output(0)))


@pytest.mark.parametrize(
    ("op", "dtype", "wanted"),
    [
        (trt.ElementWiseOperation.MOD, F, "computes MOD, which TensorRT does not have"),
        (trt.ElementWiseOperation.POW, np.int32, "computes POW on int32"),
        (trt.ElementWiseOperation.XOR, np.int32, "computes XOR on int32"),
        (trt.ElementWiseOperation.SUM, np.uint8, "computes SUM on uint8"),
    ],
)
def test_layer_that_takes_more_than_tensorrts(network, op, dtype, wanted):
    layer = combine(network, constant(network, [1], dtype), constant(network, [2], dtype), op).producer
    layer.name = "both"
    mark(network, y=layer.get_output(0))

    found = only(network, "NL404", layer)
    assert (found.severity, found.what) == (PORTABILITY, f"'both' {wanted}")


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        (trt.ElementWiseOperation.XOR, np.bool_),
        (trt.ElementWiseOperation.SUM, np.int8),
        (trt.ElementWiseOperation.EQUAL, np.uint8),
        (trt.ElementWiseOperation.POW, F),
    ],
)
def test_layer_that_takes_as_much_as_tensorrts(network, op, dtype):
    both = constant(network, [1], dtype), constant(network, [0], dtype)

    assert silent(mark(network, y=combine(network, *both, op)))


def test_identity_that_converts(network, x):
    identity = network.add_identity(x)
    identity.name = "to_bool"
    identity.set_output_type(0, trt.bool)
    mark(network, y=identity.get_output(0))

    assert only(network, "NL404", identity).what.startswith(
        "'to_bool' converts to BOOL, which TensorRT 11 supports only in add_cast"
    )


# ---------------------------------------------------------------------------- plugins


def test_plugin_that_is_a_function_of_jax(network, x):
    layer = network.add_plugin_v3([x], [], trt.JaxPlugin(jnp.sin))
    layer.name = "mine"
    network.mark_output(layer.get_output(0))

    found = only(network, "NL413", layer)
    assert found.severity is PORTABILITY
    assert found.what == "the plugin of 'mine' is <JaxPlugin sin>"
    assert found.fix == "derive a plugin from IPluginV3"


def test_plugin_of_tensorrts_interfaces(network, x):
    network.mark_output(network.add_plugin_v3([x], [], Plugin()).get_output(0))

    assert silent(network)
