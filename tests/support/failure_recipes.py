"""Recipes of what may fail, and of the places in which a failure counts or does not.

Each way to fail takes a number, int32[], and mostly fails if it is above 3. Each place gives a way a number that is up
to the one that it is given itself, known only in the call, and returns a number, int32[], that may need what failed.
"""

from collections.abc import Callable

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from tests.support.host_recipes import number
from tests.support.layer_specs import NONE, Kinds
from tests.support.networks import COUNT, WHILE, counted, counter, last, stacked
from tests.support.tensor_drawing import Op

Way = Callable[[Kinds, ITensor], ITensor]
Place = Callable[[Kinds, ITensor, Way], ITensor]

WAYS: list[Way] = []
PLACES: list[Place] = []


def fails(way: Way) -> Way:
    WAYS.append(way)
    return way


def surrounds(place: Place) -> Place:
    PLACES.append(place)
    return place


def failure(grow: Kinds, tensor: ITensor, way: Way, place: Place) -> ITensor:
    """What fails in a place for a number from 2 to 5, of which most do not fail."""
    varying = grow.reshape(number(grow, tensor, 2))
    return place(grow, plus(grow, varying, grow.choose(2, 2, 3)), way)


def plus(grow: Kinds, n: ITensor, other: int) -> ITensor:
    return grow.combine(n, grow.filled(n, other), Op.SUM) if other else n


def recurrence(grow: Kinds, loop: trt.ILoop) -> trt.IRecurrenceLayer:
    return loop.add_recurrence(grow.fixed(np.int32(grow.between(0, 3))))


def total(grow: Kinds, tensor: ITensor) -> ITensor:
    return grow.network.add_reduce(tensor, trt.ReduceOperation.SUM, 1, False).get_output(0)


# ---------------------------------------------------------------------------- ways to fail


@fails
def past_an_end(grow: Kinds, n: ITensor) -> ITensor:
    """A sum of rows past the end or before the beginning of an axis, or the valid value of a state beside it."""
    loop = counted(grow.network, n)
    row = loop.add_iterator(grow.constant(trt.int32, (3,)), 0, grow.coin()).get_output(0)
    sums, beside = grow.chance.sample([recurrence(grow, loop), recurrence(grow, loop)], 2)
    sums.set_input(1, grow.combine(sums.get_output(0), row, Op.SUM))
    beside.set_input(1, plus(grow, beside.get_output(0), 1))
    if grow.coin():
        return last(loop, grow.combine(sums.get_output(0), beside.get_output(0), Op.SUM))
    pair = last(loop, sums.get_output(0)), last(loop, beside.get_output(0))
    return chosen(grow, grow.combine(pair[1], grow.filled(n, grow.between(3, 6)), Op.LESS), *pair)


@fails
def row_past_an_end(grow: Kinds, n: ITensor) -> ITensor:
    """Rows that are stacked."""
    loop = counted(grow.network, n)
    row = loop.add_iterator(grow.constant(trt.int32, (3,)), 0, grow.coin()).get_output(0)
    return total(grow, stacked(loop, row, grow.fixed(np.int32(6)), grow.choose(*list(trt.LoopOutput)[1:])))


@fails
def next_row(grow: Kinds, n: ITensor) -> ITensor:
    """The row of an iteration after the last one: after four of them it is past the end, or before the beginning."""
    loop = counted(grow.network, 4)
    loop.add_trip_limit(grow.combine(counter(grow.network, loop), n, Op.LESS), WHILE)
    row = loop.add_iterator(grow.constant(trt.int32, (4,)), 0, grow.coin()).get_output(0)
    return last(loop, plus(grow, row, grow.between(0, 1)))


@fails
def row_of_no_iteration(grow: Kinds, n: ITensor) -> ITensor:
    """A row that a WHILE reads, unless the COUNT has ended the loop."""
    loop = counted(grow.network, n)
    goes_on = loop.add_iterator(grow.fixed(np.ones(3, np.bool_))).get_output(0)
    loop.add_trip_limit(goes_on, WHILE)
    return last(loop, counter(grow.network, loop))


@fails
def too_short(grow: Kinds, n: ITensor) -> ITensor:
    """A stacked output of three rows, of a loop that its COUNT ends or its WHILE."""
    loop = counted(grow.network, n if grow.coin() else 6)
    loop.add_trip_limit(grow.combine(counter(grow.network, loop), n, Op.LESS), WHILE)
    return total(grow, stacked(loop, counter(grow.network, loop), grow.fixed(np.int32(3))))


@fails
def promise(grow: Kinds, n: ITensor) -> ITensor:
    """An assertion."""
    grow.network.add_assertion(grow.combine(n, grow.filled(n, 4), Op.LESS), "it is at most 3")
    return plus(grow, n, 1)


@fails
def promise_in_a_loop(grow: Kinds, n: ITensor) -> ITensor:
    """An assertion that holds in all iterations but one, which may be the last one, or earlier, or is not made."""
    loop = counted(grow.network, n)
    holds = loop.add_iterator(grow.fixed(np.arange(6) != grow.choose(2, 3))).get_output(0)
    grow.network.add_assertion(holds, "it holds in each iteration")
    return last(loop, counter(grow.network, loop))


@fails
def promise_of_no_iteration(grow: Kinds, n: ITensor) -> ITensor:
    """An assertion about a state that never changes, in a loop that may make no iteration."""
    loop = counted(grow.network, grow.combine(n, grow.filled(n, grow.between(3, 4)), Op.SUB))
    state = loop.add_recurrence(n)
    state.set_input(1, state.get_output(0))
    grow.network.add_assertion(grow.combine(state.get_output(0), grow.filled(n, 4), Op.LESS), "it stays below 4")
    return last(loop, counter(grow.network, loop))


# ---------------------------------------------------------------------------- conditionals


def chosen(grow: Kinds, condition: ITensor, true: ITensor, false: ITensor) -> ITensor:
    conditional = grow.network.add_if_conditional()
    conditional.set_condition(condition)
    return conditional.add_output(true, false).get_output(0)


def known_or_not(grow: Kinds, n: ITensor) -> ITensor:
    """A condition that is known while building, or only in the call."""
    known = grow.fixed(np.bool_(grow.coin()))
    return grow.choose(known, grow.combine(n, grow.filled(n, grow.between(3, 4)), Op.LESS))


@surrounds
def branch(grow: Kinds, n: ITensor, way: Way) -> ITensor:
    """One of two branches, of a number that enters it or of one from outside."""
    conditional = grow.network.add_if_conditional()
    conditional.set_condition(known_or_not(grow, n))
    inside = conditional.add_input(n).get_output(0) if grow.between(0, 2) else n
    pair = grow.chance.sample([way(grow, inside), plus(grow, n, 1)], 2)
    return conditional.add_output(*pair).get_output(0)


@surrounds
def known_branch(grow: Kinds, n: ITensor, way: Way) -> ITensor:
    """The branch that is known to be taken, or at times the other one."""
    return chosen(grow, grow.fixed(np.bool_(grow.between(0, 3))), way(grow, n), plus(grow, n, 1))


@surrounds
def both_branches(grow: Kinds, n: ITensor, way: Way) -> ITensor:
    """What both branches read, or one of them and something else."""
    conditional = grow.network.add_if_conditional()
    conditional.set_condition(known_or_not(grow, n))
    made = way(grow, n)
    inside = conditional.add_input(made).get_output(0) if grow.coin() else made
    pair = [plus(grow, tensor, number) for number, tensor in enumerate((inside, grow.choose(inside, made, n)), 1)]
    return conditional.add_output(*grow.chance.sample(pair, 2)).get_output(0)


@surrounds
def condition(grow: Kinds, n: ITensor, way: Way) -> ITensor:
    made = way(grow, n)
    return chosen(grow, grow.combine(made, n, grow.choose(Op.LESS, Op.GREATER)), n, grow.fixed(np.int32(0)))


# ---------------------------------------------------------------------------- layers and loops


@surrounds
def operand(grow: Kinds, n: ITensor, way: Way) -> ITensor:
    """One of two operands."""
    return grow.combine(*grow.chance.sample([way(grow, n), n], 2), Op.SUM)


@surrounds
def iteration(grow: Kinds, n: ITensor, way: Way) -> ITensor:
    """An iteration of a loop, the last one or, as numbers become smaller, the first one."""
    loop, sums = looped(grow, 2), grow.coin()
    now, state = counter(grow.network, loop), recurrence(grow, loop)
    made = way(grow, grow.combine(n, now, Op.SUB) if grow.coin() else plus(grow, grow.combine(n, now, Op.SUM), -1))
    state.set_input(1, grow.combine(state.get_output(0), made, Op.SUM))
    if sums:
        return last(loop, state.get_output(0))
    return total(grow, stacked(loop, grow.choose(made, state.get_output(0)), grow.fixed(np.int32(2))))


def looped(grow: Kinds, trips: int) -> trt.ILoop:
    """A loop whose number of iterations is known, or a WHILE."""
    if grow.coin():
        return counted(grow.network, trips)
    loop = grow.network.add_loop()
    loop.add_trip_limit(grow.combine(counter(grow.network, loop), grow.fixed(np.int32(trips)), Op.LESS), WHILE)
    return loop


@surrounds
def coming_iteration(grow: Kinds, n: ITensor, way: Way) -> ITensor:
    """An iteration that is not made, in which nothing asserts."""
    loop = looped(grow, 2)
    now = grow.combine(n, counter(grow.network, loop), Op.SUM)
    return last(loop, way(grow, plus(grow, now, grow.choose(-1, -2))))


@surrounds
def limit(grow: Kinds, n: ITensor, way: Way) -> ITensor:
    """A COUNT, or a WHILE that asks for another iteration."""
    loop, number = grow.network.add_loop(), grow.fixed(np.int32(grow.between(1, 3)))
    now = counter(grow.network, loop)
    if grow.coin():
        loop.add_trip_limit(grow.combine(way(grow, n), number, Op.MIN), COUNT)
    else:
        made = way(grow, plus(grow, grow.combine(n, now, Op.SUM), -1))
        below = grow.combine(made, grow.fixed(np.int32(-99)), Op.GREATER)
        loop.add_trip_limit(grow.combine(grow.combine(now, number, Op.LESS), below, Op.AND), WHILE)
    return last(loop, now)


@surrounds
def initial_value(grow: Kinds, n: ITensor, way: Way) -> ITensor:
    """The initial value of a state, or a tensor that each iteration reads."""
    loop, made = looped(grow, 2), way(grow, n)
    state = loop.add_recurrence(made) if grow.coin() else recurrence(grow, loop)
    state.set_input(1, grow.combine(state.get_output(0), grow.choose(made, n), Op.SUM))
    return last(loop, state.get_output(0))


@surrounds
def product(grow: Kinds, n: ITensor, way: Way) -> ITensor:
    """A product in each iteration that no state needs, of which an operand or another part may fail."""
    loop, made = counted(grow.network, 3), way(grow, n)
    row = loop.add_iterator(grow.constant(trt.float32, (3, 1, 2), -1, 1)).get_output(0)
    several = grow.reshape(grow.cast(made, trt.float32), 1, 1)
    row = grow.combine(row, several, Op.SUM) if grow.coin() else row
    made = grow.network.add_matrix_multiply(row, NONE, grow.constant(trt.float32, (2, 1), -1, 1), NONE).get_output(0)
    made = grow.cast(grow.reshape(grow.combine(made, several, Op.SUM)), trt.int32)
    return total(grow, stacked(loop, made, grow.fixed(np.int32(3))))


@surrounds
def matrices(grow: Kinds, n: ITensor, way: Way) -> ITensor:
    """One of two matrices by which a row is multiplied; only one of the products is needed."""
    weights = [grow.constant(trt.float32, (2, 2), -1, 1) for _ in range(2)]
    weights[0] = grow.combine(weights[0], grow.reshape(grow.cast(way(grow, n), trt.float32), 1, 1), Op.SUM)
    loop, made = counted(grow.network, 2), []
    row = loop.add_iterator(grow.constant(trt.float32, (2, 1, 2), -1, 1)).get_output(0)
    for tensor in grow.chance.sample(weights, 2):
        state = loop.add_recurrence(grow.constant(trt.float32, (1, 2)))
        product = grow.network.add_matrix_multiply(row, NONE, tensor, NONE).get_output(0)
        state.set_input(1, grow.combine(state.get_output(0), product, Op.SUM))
        made.append(last(loop, state.get_output(0)))
    taken = chosen(grow, grow.combine(n, grow.filled(n, grow.between(3, 4)), Op.LESS), *made)
    return total(grow, grow.cast(grow.reshape(taken, 2), trt.int32))


FAILURES = [(way, place) for way in WAYS for place in PLACES]
"""Every way to fail in every place."""
