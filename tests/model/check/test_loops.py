"""Rules about loops, each with the smallest network that breaks it."""

import numpy as np
import pytest

import netloop as trt
from netloop import FindingSeverity as Severity
from tests.support.findings import line_of, only
from tests.support.networks import (
    CONCATENATE,
    COUNT,
    LAST,
    WHILE,
    F,
    Op,
    combine,
    constant,
    counted,
    counter,
    last,
    mark,
    stacked,
)


def test_loop_without_a_limit(network):
    loop = network.add_loop()  # forever
    loop.name = "forever"
    mark(network, y=last(loop, counter(network, loop)))

    found = only(network, "NL201", loop)
    assert found.what == "'forever' has no trip limit"
    assert found.fix == "call add_trip_limit(tensor, TripLimit.COUNT) or (tensor, TripLimit.WHILE) on the loop"
    assert found.where == line_of(__file__, "loop = network.add_loop()  # forever") + ", ILoop 'forever'"


@pytest.mark.parametrize(("kind", "value"), [(COUNT, np.int32(2)), (WHILE, np.bool_(False))])
def test_second_limit_of_a_kind(network, kind, value):
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, value), kind)
    second = loop.add_trip_limit(constant(network, value), kind)
    mark(network, y=last(loop, counter(network, loop)))

    found = only(network, "NL202", second)
    assert f"has a second {kind.name} limit, {second.name!r}" in found.what
    assert found.fix == "combine them into one tensor; the first is '(Unnamed Layer* 1) [TripLimit]'"


def test_recurrence_without_a_next_value(network):
    loop = counted(network, 2)
    state = loop.add_recurrence(constant(network, 0, F))  # no next
    mark(network, y=last(loop, state.get_output(0)))

    found = only(network, "NL203", state)
    assert found.what == f"{state.name!r} has no next value"
    assert found.fix == "call set_input(1, tensor) on the layer, with the value for the next iteration"
    assert line_of(__file__, "state = loop.add_recurrence(constant(network, 0, F))  # no next") in found.where


def test_last_value_of_a_plain_layer(network):
    loop = counted(network, 2)
    state = loop.add_recurrence(constant(network, 0, F))
    state.set_input(1, combine(network, state.get_output(0), 1))
    state.name = "total"
    output = loop.add_loop_output(state.get_input(1), LAST)
    mark(network, y=output.get_output(0))

    found = only(network, "NL204", output)
    assert found.severity is trt.Severity.PORTABILITY
    assert found.fix == "read the recurrence that it feeds, 'total'"


def test_last_value_of_a_recurrence_of_another_loop(network):
    outer, inner = counted(network, 2), counted(network, 2)
    now = counter(network, outer)
    output = inner.add_loop_output(now, LAST)
    mark(network, y=stacked(outer, output.get_output(0), constant(network, 2, np.int32)))

    assert only(network, "NL204", output).fix == ""


@pytest.mark.parametrize(
    ("value", "shown", "fix"),
    [
        (F([1]), "float32[2], and its next value is float32[1]", "keep the shape: collect values"),
        (F([[1, 2]]), "float32[2], and its next value is float32[1,2]", "keep the shape: collect values"),
        (np.int32([1, 2]), "float32[2], and its next value is int32[2]", "convert one of them with add_cast"),
    ],
)
def test_state_that_changes_its_type(network, value, shown, fix):
    loop = counted(network, 2)
    state = loop.add_recurrence(constant(network, [0, 0], F))
    state.name = "state"
    state.set_input(1, constant(network, value))
    mark(network, y=last(loop, state.get_output(0)))

    found = only(network, "NL205", state)
    assert found.what == f"'state' starts as {shown}"
    assert found.fix.startswith(fix)


def test_state_that_grows(network):
    loop = counted(network, 2)
    state = loop.add_recurrence(constant(network, [0], F))
    longer = network.add_concatenation([state.get_output(0), constant(network, [1], F)]).get_output(0)
    state.set_input(1, longer)
    mark(network, y=last(loop, state.get_output(0)))

    assert "float32[1], and its next value is float32[2]" in only(network, "NL205", state).what


def growing(network, **attributes):
    loop = counted(network, 3)
    state = loop.add_recurrence(constant(network, [0], F))
    for name, value in attributes.items():
        setattr(state, name, value)
    longer = network.add_concatenation([state.get_output(0), constant(network, [1], F)]).get_output(0)
    state.set_input(1, longer)
    mark(network, y=last(loop, state.get_output(0)))
    return state


def test_state_that_is_allowed_to_grow(network):
    state = growing(network, keeps_shape=False)

    assert only(network, "NL220", state).severity is Severity.PORTABILITY
    assert state.get_output(0).shape == (-1,)
    assert trt.evaluate(network, {})["y"].tolist() == [0, 1, 1, 1]
    assert trt.compile(network)({})["y"].tolist() == [0, 1, 1, 1]


def test_state_that_may_change_its_lengths_keeps_its_axes(network):
    loop = counted(network, 2)
    state = loop.add_recurrence(constant(network, [0, 0], F))
    state.keeps_shape = False
    state.set_input(1, constant(network, F([[1, 2]])))
    mark(network, y=last(loop, state.get_output(0)))

    assert "its next value is float32[1,2]" in only(network, "NL205", state).what


def test_loop_whose_count_is_its_own_result(network):
    loop = network.add_loop()
    loop.name = "snake"
    state = loop.add_recurrence(constant(network, 0, np.int32))
    state.set_input(1, combine(network, state.get_output(0), 1))
    output = loop.add_loop_output(state.get_output(0), LAST)
    loop.add_trip_limit(output.get_output(0), COUNT)
    mark(network, y=output.get_output(0))

    found = only(network, "NL207", output)
    assert found.what == "'snake' depends on its own output"
    assert found.fix == "make two loops, or carry the value through a recurrence"


def test_loop_whose_next_value_is_its_own_result(network):
    loop = counted(network, 2)
    state = loop.add_recurrence(constant(network, 0, np.int32))
    output = loop.add_loop_output(state.get_output(0), LAST)
    state.set_input(1, output.get_output(0))
    mark(network, y=output.get_output(0))

    only(network, "NL207", output)


def test_loop_that_reads_itself_through_another(network):
    first, second = network.add_loop(), network.add_loop()
    a, b = counter(network, first), counter(network, second)
    one, two = first.add_loop_output(a, LAST), second.add_loop_output(b, LAST)
    first.add_trip_limit(two.get_output(0), COUNT)
    second.add_trip_limit(one.get_output(0), COUNT)
    mark(network, y=one.get_output(0))

    only(network, "NL207")


def test_initial_value_that_is_the_result_of_its_own_loop(network):
    loop = counted(network, 2)
    state = loop.add_recurrence(constant(network, 0, np.int32))
    output = loop.add_loop_output(state.get_output(0), LAST)
    state.set_input(1, state.get_output(0))
    state.set_input(0, output.get_output(0))
    mark(network, y=output.get_output(0))

    only(network, "NL102")


def inside(network, loop):
    """Tensors that vary in a loop: float32[2], int32[] and float32[]."""
    row = loop.add_iterator(network.add_input("x", trt.float32, (2, 2))).get_output(0)
    return row, counter(network, loop)


@pytest.mark.parametrize(
    ("bind", "role"),
    [
        (lambda loop, row, now: loop.add_iterator(row), "the input"),
        (lambda loop, row, now: loop.add_recurrence(row), "the initial value"),
        (lambda loop, row, now: loop.add_trip_limit(now, COUNT), "the count"),
        (lambda loop, row, now: loop.add_loop_output(now, CONCATENATE), "the length"),
    ],
)
def test_loop_that_starts_from_what_is_inside_it(network, bind, role):
    loop = network.add_loop()
    row, now = inside(network, loop)
    layer = bind(loop, row, now)
    if not loop.limit(COUNT):
        loop.add_trip_limit(constant(network, 2, np.int32), COUNT)
    if role == "the length":
        layer.set_input(1, now)
    if role == "the initial value":
        layer.set_input(1, row)
    mark(
        network,
        y=stacked(
            loop,
            (layer.get_output(0) if role in ("the input", "the initial value") else now),
            constant(network, 2, np.int32),
        ),
    )
    if role == "the length":
        mark(network, z=layer.get_output(0))

    found = only(network, "NL208", layer)
    assert found.what.startswith(f"{role} of {layer.name!r}, '")
    assert f"is made inside {loop.name!r} itself" in found.what


def test_two_loops_each_inside_the_other(network):
    first, second = counted(network, 2), counted(network, 2)
    first.name, second.name = "L", "M"
    a, b = (loop.add_recurrence(constant(network, 0, F)) for loop in (first, second))
    a.set_input(1, b.get_output(0))
    b.set_input(1, a.get_output(0))
    a.get_output(0).name, b.get_output(0).name = "a", "b"
    mark(network, y=last(first, a.get_output(0)))

    found = only(network, "NL209", second)
    assert found.what == (
        "'L' and 'M' are each inside the other: 'M' uses 'a' from inside 'L', and 'L' uses 'b' from inside 'M'"
    )
    assert found.fix == "let 'b' out of 'M' with add_loop_output"


def test_loop_that_is_around_one_of_two_loops_each_inside_the_other_is_not_told(network):
    outer, inner, wrong = (counted(network, 2) for _ in range(3))
    total = outer.add_recurrence(constant(network, 0, F))
    state = inner.add_recurrence(total.get_output(0))
    other = wrong.add_recurrence(state.get_output(0))
    other.set_input(1, other.get_output(0))
    state.set_input(1, other.get_output(0))
    total.set_input(1, last(inner, state.get_output(0)))
    mark(network, y=last(outer, total.get_output(0)))

    found = only(network, "NL209", wrong)
    assert found.what.startswith(f"{inner.name!r} and {wrong.name!r} are each inside the other")


def test_output_that_escapes_its_loop(network):
    loop = counted(network, 2)
    now = counter(network, loop)
    loop.name = "L"
    state = now.producer
    mark(network, y=now)

    found = only(network, "NL210", state)
    assert found.what == "the network output 'y' varies in 'L': it escapes the loop"
    assert found.fix == ("let it out of 'L' with add_loop_output(tensor, LoopOutput.LAST_VALUE), and mark that output")


def test_tensor_read_outside_of_its_loop_is_named(network):
    loop = counted(network, 2)
    loop.name = "L"
    now = counter(network, loop)
    now.name = "now"
    reader = network.add_elementwise(now, last(loop, now), Op.SUM)
    reader.name = "sum"
    mark(network, y=combine(network, reader.get_output(0), constant(network, 2, np.int32)))

    found = only(network, "NL210", reader)
    assert found.what == "the network output 'y' varies in 'L': 'sum' reads 'now', which escapes the loop"
    assert found.fix == (
        "let 'now' out of 'L' with add_loop_output(tensor, LoopOutput.LAST_VALUE), and read that output instead"
    )
    reader.set_input(0, last(loop, now))
    assert trt.check(network) == []


def test_layer_that_puts_a_loop_inside_another_is_named(network):
    first, second = counted(network, 2), counted(network, 3)
    first.name, second.name = "L", "M"
    a = counter(network, first)
    a.name = "a"
    total = second.add_recurrence(constant(network, 0, np.int32))
    reader = network.add_elementwise(total.get_output(0), a, Op.SUM)
    reader.name = "add"
    total.set_input(1, reader.get_output(0))
    mark(network, y=last(second, total.get_output(0)))

    found = only(network, "NL210", reader)
    assert found.what == (
        "the network output 'y' varies in 'L': it comes out of 'M', which is inside 'L' because 'add' reads 'a'"
    )
    assert "if 'M' comes after 'L', let 'a' out of 'L'" in found.fix
    reader.set_input(1, last(first, a))
    assert trt.check(network) == []


def test_next_value_is_let_out_as_its_recurrence(network):
    loop = counted(network, 2)
    loop.name = "L"
    state = loop.add_recurrence(constant(network, 0, np.int32))
    state.name = "state"
    state.set_input(1, combine(network, state.get_output(0), constant(network, 1, np.int32)))
    mark(network, y=state.get_input(1))

    assert only(network, "NL210").fix == (
        "let it out of 'L' with add_loop_output(tensor, LoopOutput.LAST_VALUE) of the recurrence that it feeds, "
        "'state', and mark that output"
    )


def test_what_is_computed_from_an_iterated_value_is_let_out_itself(network):
    loop = counted(network, 2)
    loop.name = "L"
    element = loop.add_iterator(network.add_input("x", trt.int32, (2,))).get_output(0)
    mark(network, y=combine(network, element, constant(network, 2, np.int32)))

    found = only(network, "NL210", network.outputs[0].producer)
    assert found.fix == (
        "let it out of 'L' with add_loop_output(tensor, LoopOutput.CONCATENATE), with a length as input 1, "
        "and mark that output"
    )


def test_iterated_value_is_let_out_where_an_output_of_the_loop_is_used_too(network):
    loop = counted(network, 2)
    element = loop.add_iterator(network.add_input("x", trt.int32, (2,))).get_output(0)
    element.name = "element"
    mark(network, y=combine(network, element, last(loop, counter(network, loop))))

    assert only(network, "NL210").fix.startswith("let 'element' out of ")


def test_loop_that_stacks_what_varies_in_another_is_inside_it(network):
    first, second = counted(network, 2), counted(network, 2)
    second.name = "M"
    mixed = combine(network, counter(network, first), counter(network, second))
    mark(network, y=stacked(first, mixed, constant(network, 2, np.int32)))

    found = only(network, "NL210")
    assert found.what.startswith("the network output 'y' varies in 'M': it comes out of")


def test_tensors_of_two_loops_side_by_side(network):
    first, second = counted(network, 2), counted(network, 2)
    first.name, second.name = "L", "M"
    a, b = counter(network, first), counter(network, second)
    a.name, b.name = "a", "b"
    layer = network.add_elementwise(a, b, Op.LESS)
    layer.name = "mix"
    network.add_assertion(layer.get_output(0), "in step")
    mark(network, y=last(first, a), z=last(second, b))

    found = only(network, "NL211", layer)
    assert found.what == "'mix' mixes loops that are not nested: 'a' varies in 'L' and 'b' varies in 'M'"
    assert found.fix == (
        "let one of them out of its loop, such as 'a' with add_loop_output(tensor, LoopOutput.LAST_VALUE) on 'L', "
        "and read that output instead"
    )


def test_reverse_iterator_without_a_count(network):
    loop = network.add_loop()
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (2,)), 0, True)
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, 2, Op.LESS), WHILE)
    mark(network, y=stacked(loop, iterator.get_output(0), constant(network, 2, np.int32)))

    found = only(network, "NL212", iterator)
    assert f"{iterator.name!r}" in found.what
    assert found.fix == f"give {loop.name!r} one with add_trip_limit(length, TripLimit.COUNT)"


# ---------------------------------------------------------------------------- types of boundary layers


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        (COUNT, F(2), "is float32[], but must be an int32[] or int64[]"),
        (COUNT, np.int32([2]), "is int32[1], but must be an int32[] or int64[]"),
        (COUNT, np.bool_(True), "is bool[], but must be an int32[] or int64[]"),
        (WHILE, np.int32(1), "is int32[], but must be a bool[]"),
        (WHILE, np.bool_([True]), "is bool[1], but must be a bool[]"),
    ],
)
def test_limit_of_another_type(network, kind, value, wanted):
    loop = network.add_loop()
    limit = loop.add_trip_limit(constant(network, value), kind)
    mark(network, y=last(loop, counter(network, loop)))

    found = only(network, "NL401", limit)
    assert found.what == f"the {kind.name} limit of {loop.name!r} {wanted}"


def test_iterator_of_a_tensor_without_axes(network):
    loop = counted(network, 2)
    iterator = loop.add_iterator(constant(network, 1, F))
    mark(network, y=stacked(loop, iterator.get_output(0), constant(network, 2, np.int32)))

    assert "its input float32[] has none" in only(network, "NL401", iterator).what


@pytest.mark.parametrize("axis", [2, -3])
def test_iterator_along_an_axis_that_is_not_there(network, axis):
    loop = counted(network, 2)
    iterator = loop.add_iterator(network.add_input("x", trt.float32, (2, 2)), axis)
    mark(network, y=stacked(loop, iterator.get_output(0), constant(network, 2, np.int32)))

    assert f"axis {axis} is not one of the" in only(network, "NL401", iterator).what


@pytest.mark.parametrize("axis", [2, -3])
def test_new_axis_where_there_is_no_place(network, axis):
    loop = counted(network, 2)
    output = loop.add_loop_output(network.add_input("x", trt.float32, (2,)), CONCATENATE, axis)
    output.set_input(1, constant(network, 2, np.int32))
    mark(network, y=output.get_output(0))

    assert f"axis {axis} is not one of the" in only(network, "NL401", output).what


@pytest.mark.parametrize(
    ("length", "wanted"),
    [
        (None, "has no length"),
        (F(2), "the length is float32[], but must be an int32[] or int64[]"),
        (np.int32([2]), "the length is int32[1], but must be an int32[] or int64[]"),
    ],
)
def test_length_that_is_none(network, length, wanted):
    loop = counted(network, 2)
    output = loop.add_loop_output(counter(network, loop), CONCATENATE)
    if length is not None:
        output.set_input(1, constant(network, length))
    mark(network, y=output.get_output(0))

    assert wanted in only(network, "NL401", output).what
