"""Scopes: the loops in which tensors vary."""

import random

import numpy as np
import pytest

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.model.nest import Scopes
from tests.support.nests import NESTS
from tests.support.networks import COUNT, F, Op, combine, constant, counted, counter, deep, last, mark, stacked


def test_input_varies_in_no_loop(network):
    x = network.add_input("x", trt.float32, (2,))
    mark(network, y=combine(network, x, 1))

    assert Scopes(network).of(x) == frozenset()


def test_iterators_and_recurrences_vary_in_their_loop(network):
    loop = counted(network, 2)
    row = loop.add_iterator(network.add_input("x", trt.int32, (2,))).get_output(0)
    now = counter(network, loop)
    mark(network, y=stacked(loop, combine(network, row, now), constant(network, 2, np.int32)))
    scopes = Scopes(network)

    assert [scopes.of(tensor) for tensor in (row, now)] == [{loop}, {loop}]


def test_result_of_a_loop_varies_in_no_loop(network):
    loop = counted(network, 2)
    y = last(loop, counter(network, loop))

    assert Scopes(mark(network, y=y)).of(y) == frozenset()


def test_layer_between_others_of_a_loop_is_outside_if_it_does_not_vary(network):
    loop = counted(network, 2)
    now = counter(network, loop)
    invariant = combine(network, constant(network, 2, np.int32), 3, Op.PROD)
    varies = combine(network, now, invariant)
    mark(network, y=stacked(loop, varies, constant(network, 2, np.int32)))
    scopes = Scopes(network)

    assert scopes.of(invariant) == frozenset()
    assert scopes.of(varies) == {loop}


def test_layer_that_was_added_before_its_loop_may_be_in_it(network):
    zero = constant(network, 0, np.int32)
    plus = network.add_elementwise(zero, zero, Op.SUM)
    loop = counted(network, 2)
    state = loop.add_recurrence(zero)
    plus.set_input(0, state.get_output(0))
    state.set_input(1, plus.get_output(0))
    mark(network, y=last(loop, state.get_output(0)))

    assert Scopes(network).of(plus.get_output(0)) == {loop}


def test_recurrence_whose_next_value_is_invariant_varies(network):
    loop = counted(network, 2)
    state = loop.add_recurrence(constant(network, 0, F))
    state.set_input(1, constant(network, 1, F))
    mark(network, y=last(loop, state.get_output(0)))

    assert Scopes(network).of(state.get_output(0)) == {loop}


@pytest.mark.parametrize("bound", ["count", "initial value", "iterator", "next value", "while", "length", "output"])
def test_any_input_of_a_boundary_layer_puts_a_loop_inside_another(network, bound):
    outer, inner = counted(network, 2), network.add_loop()
    now = counter(network, outer)
    rows = outer.add_iterator(network.add_input("x", trt.int32, (2, 3))).get_output(0)
    zero = constant(network, 0, np.int32)
    inner.add_trip_limit(now if bound == "count" else zero, COUNT)
    state = inner.add_recurrence(now if bound == "initial value" else zero)
    state.set_input(1, now if bound == "next value" else zero)
    made = state.get_output(0)
    if bound == "iterator":
        made = inner.add_iterator(rows).get_output(0)
    if bound == "while":
        inner.add_trip_limit(combine(network, now, 1, Op.LESS), trt.TripLimit.WHILE)
    made = stacked(inner, now if bound == "output" else made, now if bound == "length" else zero)
    total = network.add_reduce(made, trt.ReduceOperation.SUM, 1, False).get_output(0)
    mark(network, y=stacked(outer, total, constant(network, 2, np.int32)))
    scopes = Scopes(network)

    assert scopes.around(inner) == {outer}
    assert scopes.around(outer) == frozenset()
    assert scopes.of(made) == {outer}
    assert scopes.of(state.get_output(0)) == ({outer, inner} if bound not in ("iterator", "output") else set())


def test_loops_side_by_side_are_not_around_each_other(network):
    first, second = counted(network, 2), counted(network, 2)
    state = second.add_recurrence(last(first, counter(network, first)))
    state.set_input(1, state.get_output(0))
    mark(network, y=last(second, state.get_output(0)))
    scopes = Scopes(network)

    assert scopes.around(first) == scopes.around(second) == frozenset()


def test_output_of_a_conditional_varies_with_branches_and_condition(network):
    loop = counted(network, 2)
    now = counter(network, loop)
    a, b = constant(network, 1, np.int32), constant(network, 2, np.int32)
    by_condition, by_branch, neither = (network.add_if_conditional() for _ in range(3))
    by_condition.set_condition(combine(network, now, 1, Op.LESS))
    flag = network.add_input("c", trt.bool, ())
    by_branch.set_condition(flag)
    neither.set_condition(flag)
    made = [
        by_condition.add_output(a, b).get_output(0),
        by_branch.add_output(a, now).get_output(0),
        neither.add_output(a, b).get_output(0),
    ]
    for number, value in enumerate(made):
        mark(network, **{f"y{number}": stacked(loop, value, constant(network, 2, np.int32))})
    scopes = Scopes(network)

    assert [scopes.of(value) for value in made] == [{loop}, {loop}, frozenset()]


def test_condition_that_was_set_last_counts(network):
    choice = network.add_if_conditional()
    made = choice.add_output(constant(network, 1, F), constant(network, 2, F)).get_output(0)
    loop = counted(network, 2)
    choice.set_condition(combine(network, counter(network, loop), 1, Op.LESS))
    mark(network, y=stacked(loop, made, constant(network, 2, np.int32)))

    assert Scopes(network).of(made) == {loop}


def test_what_nothing_needs_varies_in_no_loop(network):
    loop = counted(network, 2)
    dead = combine(network, counter(network, loop), 1)
    mark(network, y=constant(network, 1, F))

    assert Scopes(network).of(dead) == frozenset()


def test_what_nothing_needs_puts_no_loop_around_another(network):
    outer, inner = counted(network, 2), counted(network, 2)
    dead = inner.add_recurrence(counter(network, outer))
    dead.set_input(1, dead.get_output(0))
    mark(network, y=last(inner, counter(network, inner)))

    assert Scopes(network).around(inner) == frozenset()


def test_chain_goes_from_the_outermost_loop_to_the_innermost():
    network = deep(4)
    innermost = network.loops[-1].layers[1].get_output(0)

    assert Scopes(network).chain_of(innermost) == tuple(network.loops)


def test_loops_added_from_the_innermost_nest_alike(network):
    inner, outer = network.add_loop(), network.add_loop()
    two = constant(network, 2, np.int32)
    inner.add_trip_limit(two, COUNT)
    outer.add_trip_limit(two, COUNT)
    state, part = outer.add_recurrence(two), inner.add_recurrence(two)
    part.set_input(0, state.get_output(0))
    part.set_input(1, combine(network, part.get_output(0), 1))
    state.set_input(1, last(inner, part.get_output(0)))
    mark(network, y=last(outer, state.get_output(0)))

    assert Scopes(network).chain_of(part.get_output(0)) == (outer, inner)


def test_random_numbers_vary_where_what_they_are_drawn_from_does(network):
    loop = counted(network, 2)
    fill = network.add_fill((2,), trt.FillOperation.RANDOM_NORMAL)
    still = network.add_fill((2,), trt.FillOperation.RANDOM_NORMAL)
    fill.set_input(1, network.add_cast(counter(network, loop), trt.float32).get_output(0))
    fill.set_input(2, constant(network, 1, F))
    mark(
        network,
        y=stacked(loop, combine(network, fill.get_output(0), still.get_output(0)), constant(network, 2, np.int32)),
    )
    scopes = Scopes(network)

    assert scopes.of(fill.get_output(0)) == {loop}
    assert scopes.of(still.get_output(0)) == frozenset()


# ---------------------------------------------------------------------------- the equations


def solved(network, live):
    """The scopes of tensors and the loops around loops, by the equations of ``nest/scope.py`` as they are."""
    found = {tensor: frozenset() for layer in live for tensor in layer.outputs} | {
        loop: frozenset() for loop in network.loops
    }
    before = None
    while before != found:
        before = dict(found)
        for layer in live:
            tensors = [tensor for tensor in layer.inputs if tensor is not None]
            if isinstance(layer, trt.IIfConditionalOutputLayer) and layer.conditional.condition is not None:
                tensors.append(layer.conditional.condition)
            scope = frozenset().union(*(found.get(tensor, ()) for tensor in tensors))
            if isinstance(layer, trt.ILoopBoundaryLayer):
                found[layer.loop] |= scope - {layer.loop}
                is_inside = isinstance(layer, trt.IRecurrenceLayer | trt.IIteratorLayer)
                scope = found[layer.loop] | ({layer.loop} if is_inside else frozenset())
            for tensor in layer.outputs:
                found[tensor] |= scope
    return found


def tangle(seed):
    """A network of a few loops and conditionals whose layers read each other at random, mostly in no valid way."""
    draw, network = random.Random(seed), trt.INetworkDefinition()
    loops, states = [network.add_loop() for _ in range(draw.randint(1, 5))], []
    tensors = [network.add_input("x", trt.bool, ())]
    for _ in range(draw.randint(3, 25)):
        loop, (a, b, c) = draw.choice(loops), draw.choices(tensors, k=3)
        kind = draw.randrange(6)
        if kind == 0:
            loop.add_trip_limit(a, trt.TripLimit.WHILE)
        elif kind == 1:
            states.append(loop.add_recurrence(a))
            tensors.append(states[-1].get_output(0))
        elif kind == 2:
            tensors.append(network.add_elementwise(a, b, Op.AND).get_output(0))
        elif kind == 3:
            tensors.append(last(loop, a))
        elif kind == 4:
            choice = network.add_if_conditional()
            choice.set_condition(a)
            tensors.append(choice.add_output(b, c).get_output(0))
        else:
            network.add_assertion(a, "")
    for state in states:
        state.set_input(1, draw.choice(tensors))
    network.mark_output(draw.choice(tensors))
    return network


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_scopes_are_the_least_solution_of_their_equations(start):
    for seed in range(start, start + 100):
        network = tangle(seed)
        scopes = Scopes(network)
        wanted = solved(network, scopes.live)

        assert {
            tensor: scopes.of(tensor) if isinstance(tensor, ITensor) else scopes.around(tensor) for tensor in wanted
        } == wanted


@pytest.mark.parametrize("nest", ["loops", "loops from inside", "loops with limits"])
def test_chain_of_a_deep_nest_has_all_of_its_loops(nest):
    network = NESTS[nest](300)
    scopes = Scopes(network)
    deepest = max(network.loops, key=scopes.depth)

    assert len(scopes.chain_around(deepest)) == scopes.depth(deepest) == 299
    assert scopes.around(deepest) == set(network.loops) - {deepest}
