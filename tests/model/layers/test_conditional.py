"""The semantics of conditionals, with numbers computed by hand."""

import re

import numpy as np
import pytest

import netloop as trt
from tests.support.findings import certain_errors_ignored
from tests.support.networks import (
    CONCATENATE,
    RAISING,
    WAYS,
    F,
    Op,
    assert_outputs,
    choice,
    combine,
    conditional_in_loop,
    constant,
    counted,
    counter,
    last,
    loop_in_conditional,
    mark,
    run,
    stacked,
)

each_way = pytest.mark.parametrize("way", WAYS)
each_raising_way = pytest.mark.parametrize("way", RAISING)
either = pytest.mark.parametrize("taken", [True, False])


@pytest.fixture
def conditional(network):
    """A conditional whose condition is the input ``c``."""
    made = network.add_if_conditional()
    made.set_condition(network.add_input("c", trt.bool, ()))
    return made


@pytest.fixture
def x(network):
    return network.add_input("x", trt.float32, (3,))


ABC = F([1, 2, 3])


def failing(network, loops=2):
    """A float32[] tensor without a value: a loop reads a tensor past its end."""
    loop = counted(network, loops)
    short = constant(network, [7], F)
    state = loop.add_recurrence(constant(network, 0, F))
    state.set_input(1, loop.add_iterator(short).get_output(0))
    return last(loop, state.get_output(0))


# ---------------------------------------------------------------------------- the selected branch


@each_way
@either
def test_condition_chooses(way, taken):
    got = run(way, choice(), {"c": np.bool_(taken), "x": ABC})

    assert_outputs(got, {"y": 2 * ABC if taken else ABC})


@each_way
@either
def test_branch_may_be_a_tensor_from_outside(way, network, conditional, x, taken):
    z = network.add_input("z", trt.float32, (3,))
    mark(network, y=conditional.add_output(x, z).get_output(0))

    assert_outputs(run(way, network, {"c": np.bool_(taken), "x": ABC, "z": 2 * ABC}), {"y": ABC if taken else 2 * ABC})


@each_way
@either
def test_both_branches_may_be_one_tensor(way, network, conditional, x, taken):
    inside = conditional.add_input(x).get_output(0)
    mark(network, y=conditional.add_output(inside, inside).get_output(0))

    assert_outputs(run(way, network, {"c": np.bool_(taken), "x": ABC}), {"y": ABC})


@each_way
@either
def test_conditional_may_have_several_outputs(way, network, conditional, x, taken):
    inside = conditional.add_input(x).get_output(0)
    double, flag = combine(network, inside, inside), combine(network, inside, 1.5, Op.GREATER)
    other = constant(network, [True] * 3, np.bool_)
    mark(
        network,
        a=conditional.add_output(double, inside).get_output(0),
        b=conditional.add_output(flag, other).get_output(0),
        c2=conditional.add_output(inside, double).get_output(0),
    )
    got = run(way, network, {"c": np.bool_(taken), "x": ABC})

    wanted = [2 * ABC, ABC > 1.5, ABC] if taken else [ABC, np.bool_([1, 1, 1]), 2 * ABC]
    assert_outputs(got, dict(zip(["a", "b", "c2"], wanted, strict=True)))


@each_way
@pytest.mark.parametrize(("outer", "inner", "wanted"), [(1, 1, 11), (1, 0, 101), (0, 1, 1001), (0, 0, 1001)])
def test_conditionals_nest(way, network, conditional, outer, inner, wanted):
    x = network.add_input("x", trt.int32, ())
    second = network.add_if_conditional()
    second.set_condition(network.add_input("d", trt.bool, ()))
    within = second.add_output(combine(network, x, 10), combine(network, x, 100)).get_output(0)
    mark(network, y=conditional.add_output(within, combine(network, x, 1000)).get_output(0))
    got = run(way, network, {"c": np.bool_(outer), "x": np.int32(1), "d": np.bool_(inner)})

    assert got["y"] == wanted


@each_way
@either
def test_condition_may_come_from_another_conditional(way, network, conditional, taken):
    yes, no = (constant(network, number, np.bool_) for number in (False, True))
    second = network.add_if_conditional()
    second.set_condition(conditional.add_output(yes, no).get_output(0))
    y = second.add_output(constant(network, 1, np.int32), constant(network, 2, np.int32)).get_output(0)

    assert run(way, mark(network, y=y), {"c": np.bool_(taken)})["y"] == (2 if taken else 1)


@each_way
def test_condition_may_be_set_last(way, network, x):
    conditional = network.add_if_conditional()
    mark(network, y=conditional.add_output(combine(network, x, 1), x).get_output(0))
    conditional.set_condition(network.add_input("c", trt.bool, ()))

    assert_outputs(run(way, network, {"x": ABC, "c": np.bool_(True)}), {"y": ABC + 1})


@each_way
@either
def test_inputs_may_be_put_in_between_later(way, network, conditional, x, taken):
    plus = network.add_elementwise(x, x, Op.SUM)
    mark(network, y=conditional.add_output(plus.get_output(0), x).get_output(0))
    inside = conditional.add_input(x).get_output(0)
    plus.set_input(0, inside)

    assert_outputs(run(way, network, {"c": np.bool_(taken), "x": ABC}), {"y": 2 * ABC if taken else ABC})


# ---------------------------------------------------------------------------- known conditions


@each_way
@either
def test_branches_of_a_known_condition_may_differ_in_rank(way, network, x, taken):
    conditional = network.add_if_conditional()
    conditional.set_condition(constant(network, taken, np.bool_))
    total = network.add_reduce(x, trt.ReduceOperation.SUM, 1, False).get_output(0)
    mark(network, y=conditional.add_output(total, combine(network, x, 1)).get_output(0))

    assert network.get_output(0).shape == (() if taken else (3,))
    assert_outputs(run(way, network, {"x": ABC}), {"y": F(6) if taken else ABC + 1})


@each_way
@either
def test_condition_may_follow_from_weights(way, network, x, taken):
    conditional = network.add_if_conditional()
    conditional.set_condition(combine(network, constant(network, 1, F), 0 if taken else 2, Op.GREATER))
    total = network.add_reduce(x, trt.ReduceOperation.SUM, 1, True).get_output(0)
    mark(
        network, y=conditional.add_output(total, total).get_output(0), z=conditional.add_output(x, total).get_output(0)
    )

    assert_outputs(run(way, network, {"x": ABC}), {"y": F([6]), "z": ABC if taken else F([6])})


@each_way
def test_condition_may_follow_from_a_shape(way, network):
    x = network.add_input("x", trt.float32, (-1,))
    length = network.add_shape(x).get_output(0)
    scalar = network.add_shuffle(length)
    scalar.reshape_dims = ()
    conditional = network.add_if_conditional()
    conditional.set_condition(combine(network, scalar.get_output(0), 2, Op.GREATER))
    total = network.add_reduce(x, trt.ReduceOperation.SUM, 1, True).get_output(0)
    mark(network, y=conditional.add_output(total, x).get_output(0))

    assert_outputs(run(way, network, {"x": ABC}), {"y": F([6])})
    assert_outputs(run(way, network, {"x": ABC[:2]}), {"y": ABC[:2]})


def test_lengths_in_which_branches_differ_are_unknown_while_building(network, conditional):
    a, b = network.add_input("a", trt.float32, (2, 3)), network.add_input("b", trt.float32, (2, 4))
    y = conditional.add_output(a, b).get_output(0)

    assert y.shape == (2, -1)


def test_reference_has_the_shape_of_the_branch_taken(network, conditional):
    a, b = network.add_input("a", trt.float32, (2,)), network.add_input("b", trt.float32, (3,))
    mark(network, y=conditional.add_output(a, b).get_output(0))

    assert_outputs(trt.evaluate(network, {"c": np.bool_(False), "a": F([1, 2]), "b": ABC}), {"y": ABC})


# ---------------------------------------------------------------------------- laziness


@each_way
@pytest.mark.parametrize("fenced", [True, False])
@either
def test_error_in_the_branch_not_taken_never_appears(way, network, conditional, fenced, taken):
    y = combine(network, failing(network), 1)
    bad = conditional.add_input(y).get_output(0) if fenced else y
    branches = [constant(network, 1, F), combine(network, bad, 1)]
    mark(network, y=conditional.add_output(*(branches if taken else branches[::-1])).get_output(0))

    assert run(way, network, {"c": np.bool_(taken)})["y"] == 1


@each_raising_way
@either
def test_error_in_the_branch_taken_appears(way, network, conditional, taken):
    branches = [failing(network), constant(network, 1, F)]
    mark(network, y=conditional.add_output(*(branches if taken else branches[::-1])).get_output(0))

    with pytest.raises(trt.ExecutionError, match="which has 1 elements"):
        run(way, network, {"c": np.bool_(taken)})


@each_raising_way
def test_error_in_the_branch_of_a_known_condition_appears(way, network):
    conditional = network.add_if_conditional()
    conditional.set_condition(constant(network, True, np.bool_))
    mark(network, y=conditional.add_output(failing(network), constant(network, 1, F)).get_output(0))

    with certain_errors_ignored(), pytest.raises(trt.ExecutionError, match="which has 1 elements"):
        run(way, network)


@each_raising_way
def test_error_in_an_input_of_a_conditional_appears(way, network, conditional):
    bad = conditional.add_input(failing(network)).get_output(0)
    mark(network, y=conditional.add_output(combine(network, bad, 1), constant(network, 1, F)).get_output(0))

    with pytest.raises(trt.ExecutionError, match="which has 1 elements"):
        run(way, network, {"c": np.bool_(True)})


@each_raising_way
def test_error_that_both_branches_need_appears(way, network, conditional):
    bad = failing(network)
    mark(network, y=conditional.add_output(bad, combine(network, bad, 1)).get_output(0))

    with pytest.raises(trt.ExecutionError, match="which has 1 elements"):
        run(way, network, {"c": np.bool_(True)})


@each_way
def test_endless_loop_in_the_branch_not_taken_is_not_run(way, network, conditional):
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, True, np.bool_), trt.TripLimit.WHILE)
    mark(
        network,
        y=conditional.add_output(last(loop, counter(network, loop)), constant(network, 5, np.int32)).get_output(0),
    )

    assert run(way, network, {"c": np.bool_(False)})["y"] == 5


@each_way
def test_error_in_one_output_of_a_conditional_does_not_appear_in_another(way, network, conditional):
    conditional.add_output(failing(network), constant(network, 1, F))
    mark(network, y=conditional.add_output(constant(network, 2, F), constant(network, 3, F)).get_output(0))

    assert run(way, network, {"c": np.bool_(True)})["y"] == 2


@each_way
def test_branch_that_a_known_condition_leaves_out_is_not_run(way, network, x):
    conditional = network.add_if_conditional()
    conditional.set_condition(constant(network, True, np.bool_))
    mark(network, y=conditional.add_output(combine(network, x, 1), failing(network)).get_output(0))

    assert_outputs(run(way, network, {"x": ABC}), {"y": ABC + 1})


# ---------------------------------------------------------------------------- loops


@each_way
def test_branch_may_change_from_trip_to_trip(way):
    got = run(way, conditional_in_loop(), {"x": np.int32(7)})

    assert_outputs(got, {"y": np.int32([7, 22, 11, 34, 17, 52, 26, 13, 40, 20])})


@each_way
@either
def test_loop_may_be_in_a_branch(way, taken):
    got = run(way, loop_in_conditional(), {"c": np.bool_(taken), "n": np.int64(5)})

    assert got["y"] == (32 if taken else 5)


@each_way
def test_invariant_condition_may_choose_inside_a_loop(way, network, conditional):
    loop = counted(network, 3)
    now = counter(network, loop)
    picked = conditional.add_output(combine(network, now, 10, Op.PROD), now).get_output(0)
    mark(network, y=stacked(loop, picked, constant(network, 3, np.int32)))

    assert_outputs(run(way, network, {"c": np.bool_(True)}), {"y": np.int32([0, 10, 20])})
    assert_outputs(run(way, network, {"c": np.bool_(False)}), {"y": np.int32([0, 1, 2])})


@each_way
def test_outputs_of_one_conditional_may_vary_in_different_loops(way, network, conditional):
    one, two = counted(network, 2), counted(network, 3)
    a, b = counter(network, one), counter(network, two, 10)
    none = constant(network, -1, np.int32)
    first, second = conditional.add_output(a, none), conditional.add_output(none, b)
    mark(
        network,
        a=stacked(one, first.get_output(0), constant(network, 2, np.int32)),
        b=stacked(two, second.get_output(0), constant(network, 3, np.int32)),
        d=conditional.add_output(none, constant(network, 7, np.int32)).get_output(0),
    )
    got = run(way, network, {"c": np.bool_(True)})

    assert_outputs(got, {"a": np.int32([0, 1]), "b": np.int32([-1, -1, -1]), "d": np.int32(-1)})


@each_way
def test_inner_loop_may_run_in_some_trips_alone(way, network):
    outer = counted(network, 4)
    number = counter(network, outer)
    inner = counted(network, number)
    power = inner.add_recurrence(constant(network, 1, np.int32))
    power.set_input(1, combine(network, power.get_output(0), 3, Op.PROD))
    choice = network.add_if_conditional()
    choice.set_condition(combine(network, number, 2, Op.LESS))
    picked = choice.add_output(number, last(inner, power.get_output(0))).get_output(0)
    mark(network, y=stacked(outer, picked, constant(network, 4, np.int32)))

    assert_outputs(run(way, network), {"y": np.int32([0, 1, 9, 27])})


# ---------------------------------------------------------------------------- assertions


def fails_to_hold(way, network, inputs, message):
    with pytest.raises(trt.ExecutionError, match=re.escape(f"does not hold: {message}")) as caught:
        run(way, network, inputs)
    (found,) = caught.value.findings
    assert found.code == "NL601"
    assert isinstance(found.at, trt.ILayer)
    assert __file__ in found.where


@each_raising_way
@pytest.mark.parametrize("shape", [(), (2,)])
def test_assertion_ends_the_run(way, network, shape):
    flags = network.add_input("c", trt.bool, shape)
    network.add_assertion(flags, "all is well")
    mark(network, y=constant(network, 1, F))

    assert run(way, network, {"c": np.ones(shape, np.bool_)})["y"] == 1
    fails_to_hold(way, network, {"c": np.zeros(shape, np.bool_)}, "all is well")


@each_raising_way
def test_assertion_of_weights_ends_the_run(way, network):
    """A refit may change them, so that it is no error before the run."""
    network.add_assertion(combine(network, constant(network, 1, F), F(2), Op.EQUAL), "never")
    mark(network, y=constant(network, 1, F))

    fails_to_hold(way, network, {}, "never")


@each_raising_way
@pytest.mark.parametrize("count", ["constant", "input"])
@pytest.mark.parametrize(("trips", "holds"), [(0, True), (2, True), (3, False)])
def test_assertion_in_a_loop_is_made_in_each_trip(way, network, count, trips, holds):
    loop = counted(network, trips if count == "constant" else network.add_input("n", trt.int32, ()))
    now = counter(network, loop)
    network.add_assertion(combine(network, now, 2, Op.LESS), "below 2")
    mark(network, y=last(loop, now))
    inputs = {} if count == "constant" else {"n": np.int32(trips)}

    if holds:
        assert run(way, network, inputs)["y"] == trips
    else:
        fails_to_hold(way, network, inputs, "below 2")


@each_raising_way
def test_assertion_is_not_made_in_the_trip_that_a_while_asks_about(way, network):
    outer = network.add_loop()
    now = counter(network, outer)
    inner = counted(network, 1)
    state = inner.add_recurrence(now)
    plus = combine(network, combine(network, state.get_output(0), counter(network, inner)), 0)
    state.set_input(1, plus)
    network.add_assertion(combine(network, plus, 3, Op.LESS), "below 3")
    outer.add_trip_limit(combine(network, last(inner, state.get_output(0)), 3, Op.LESS), trt.TripLimit.WHILE)
    mark(network, y=last(outer, now))

    assert run(way, network)["y"] == 3


@each_raising_way
@either
def test_assertion_about_what_only_a_branch_needs_is_made_if_it_is_taken(way, network, conditional, x, taken):
    inside = conditional.add_input(x).get_output(0)
    most = network.add_reduce(inside, trt.ReduceOperation.MAX, 1, False).get_output(0)
    network.add_assertion(combine(network, most, 2, Op.LESS), "small")
    mark(network, y=conditional.add_output(most, constant(network, 0, F)).get_output(0))

    if taken:
        fails_to_hold(way, network, {"c": np.bool_(True), "x": ABC}, "small")
    else:
        assert run(way, network, {"c": np.bool_(False), "x": ABC})["y"] == 0


@each_raising_way
def test_assertion_about_an_inner_loop_is_made_if_the_branch_around_it_is_taken(way, network, conditional):
    loop = counted(network, 3)
    now = counter(network, loop)
    network.add_assertion(combine(network, now, 2, Op.LESS), "below 2")
    mark(network, y=conditional.add_output(last(loop, now), constant(network, 0, np.int32)).get_output(0))

    assert run(way, network, {"c": np.bool_(False)})["y"] == 0
    fails_to_hold(way, network, {"c": np.bool_(True)}, "below 2")


@each_raising_way
def test_assertion_needs_no_output_that_reads_it(way, network):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    network.add_assertion(combine(network, counter(network, loop), 2, Op.LESS), "below 2")
    mark(network, y=constant(network, 1, F))

    assert run(way, network, {"n": np.int32(2)})["y"] == 1
    fails_to_hold(way, network, {"n": np.int32(3)}, "below 2")


@each_raising_way
def test_failure_of_a_length_tells_the_layer_inside_the_branch(way, network, conditional):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    short = loop.add_loop_output(counter(network, loop), CONCATENATE)
    short.set_input(1, constant(network, 1, np.int32))
    mark(network, y=conditional.add_output(short.get_output(0), constant(network, [8], np.int32)).get_output(0))

    assert list(run(way, network, {"c": np.bool_(False), "n": np.int32(2)})["y"]) == [8]
    with pytest.raises(trt.ExecutionError, match="has room for 1 elements"):
        run(way, network, {"c": np.bool_(True), "n": np.int32(2)})


# ---------------------------------------------------------------------------- attributes and methods


def test_condition_layer_has_no_output(network):
    layer = network.add_if_conditional().set_condition(constant(network, True, np.bool_))

    assert (layer.num_outputs, layer.get_output(0)) == (0, None)


def test_boundary_layers_know_their_conditional(network, conditional, x):
    conditional.add_output(conditional.add_input(x).get_output(0), x)

    assert all(layer.conditional is conditional for layer in conditional.layers)


@pytest.mark.parametrize(
    "call",
    [
        lambda conditional, x: conditional.set_condition(True),
        lambda conditional, x: conditional.add_input(None),
        lambda conditional, x: conditional.add_output(x, 3),
        lambda conditional, x: conditional.add_output(None, x),
    ],
)
def test_wrong_python_type_is_refused_at_the_call(network, conditional, x, call):
    before = len(network)
    with pytest.raises(TypeError, match="must be an ITensor, not"):
        call(conditional, x)

    assert len(network) == before
