"""Loops, conditionals, and functions that are called."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from netloop.formats.from_jax.counters import bounds, increment_of, known_number, only_bound
from netloop.formats.from_jax.patterns import softplus
from netloop.formats.from_jax.rules import EquationCall, primitive, refuse
from netloop.formats.from_jax.rules.pointwise.elements import unconverted
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import ReduceOperation, TripLimit

BODIES = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""The names of the parameter that is the function called."""


@primitive(
    "jit", "pjit", "closed_call", "core_call", "call", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call",
    "custom_vjp_call_jaxpr", "custom_vmap_call", "composite", "remat_opt", "eval_jaxpr",
    broadcasts=True,
)  # fmt: skip
def inlined(call: EquationCall, *operands: ITensor) -> list[ITensor]:
    """The equations of the function, instead of the call."""
    body: Any = next(call.params[name] for name in BODIES if name in call.params)
    assert isinstance(body, ClosedJaxpr | Jaxpr)
    if len(operands) == 2:
        tensor = softplus(call.make, body, operands[0], call.facts.scalar_of(operands[1]))
        if tensor is not None:
            return [tensor]
    return call.inline(body, operands)


@primitive("custom_linear_solve")
def linear_solve(call: EquationCall, *operands: ITensor) -> list[ITensor]:
    """The equations of the solver."""
    lengths, jaxprs = call.params["const_lengths"], call.params["jaxprs"]
    start = lengths.matvec + lengths.vecmat
    tensors = operands[start : start + lengths.solve]
    return call.inline(jaxprs.solve, [*tensors, *operands[sum(lengths) :]])


@primitive("while")
def while_loop(call: EquationCall, *operands: ITensor) -> list[ITensor]:
    """A loop with a WHILE limit: the condition of the values before each iteration; a COUNT where it only counts."""
    params, make = call.params, call.make
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    initial, body = operands[second:], params["body_jaxpr"]
    result, returned = body.jaxpr.invars[params["body_nconsts"] :], body.jaxpr.outvars
    loop = make.network.add_loop()
    kept = [before is after for before, after in zip(result, returned, strict=True)]
    recurrences = [None if same else loop.add_recurrence(state) for same, state in zip(kept, initial, strict=True)]
    carried = [state if one is None else one.outputs[0] for one, state in zip(recurrences, initial, strict=True)]
    increments = [increment_of(body, before, after) for before, after in zip(result, returned, strict=True)]
    state = ConditionOperands([*operands[:first], *carried], [*operands[:first], *initial], [None] * first + increments)
    count, goes_on = _count(call, state), None
    if count is not None:
        loop.add_trip_limit(count, TripLimit.COUNT)
    else:
        goes_on = _condition(call, params["cond_jaxpr"], state.carried)
        loop.add_trip_limit(make.reduce(ReduceOperation.MAX, goes_on, range(goes_on.type.rank)), TripLimit.WHILE)
    _enter_ranges(call, state)
    tensors = call.inline(body, [*operands[first:second], *carried])
    results: list[ITensor] = []
    for recurrence, start, value, atom in zip(recurrences, initial, tensors, returned, strict=True):
        if recurrence is None:
            results.append(start)
            continue
        before, after = recurrence.outputs[0], call.facts.whole(value, atom.aval)
        recurrence.set_input(1, after if goes_on is None else _where_it_goes_on(call, goes_on, after, before))
        results.append(make.last(loop, recurrence))
    return results


@dataclass(frozen=True)
class ConditionOperands:
    """The operands of a condition.

    Attributes:
        carried: their tensors in an iteration.
        initial: their tensors before the loop.
        increments: the constant that each iteration adds to an operand; None where it is no constant.
    """

    carried: list[ITensor]
    initial: list[ITensor]
    increments: list[int | None]


def _count(call: EquationCall, state: ConditionOperands) -> ITensor | None:
    """The number of iterations of a loop that goes on while a counter with step 1 is below a number that stays."""
    condition, make = call.params["cond_jaxpr"], call.make
    pair = only_bound(condition)
    places = {variable: number for number, variable in enumerate(condition.jaxpr.invars)}
    if pair is None or pair[0] not in places or state.increments[places[pair[0]]] != 1:
        return None
    first = state.initial[places[pair[0]]]
    if isinstance(pair[1], Literal):
        most = make.constant(np.asarray(pair[1].val, first.type.dtype))
    else:
        place = places.get(pair[1])
        if place is None or state.carried[place] is not state.initial[place]:
            return None
        most = state.initial[place]
    value = call.facts.scalar_of(first)
    count = most if value is not None and value == 0 else make.sub(most, first)
    return count if count.type.is_index else None


def _enter_ranges(call: EquationCall, state: ConditionOperands) -> None:
    """Enter the ranges of counters in the body, where the condition is true."""
    condition, facts = call.params["cond_jaxpr"], call.facts
    places = {variable: number for number, variable in enumerate(condition.jaxpr.invars)}
    for counter, most in bounds(condition):
        number = places.get(counter)
        if number is None or state.increments[number] is None:
            continue
        start = facts.range_of(state.initial[number])
        limits = {name: facts.range_of(state.carried[place]) for name, place in places.items()}
        end = known_number(most, limits)
        end = np.iinfo(state.carried[number].type.dtype).max if end is None else end
        if start is not None and start[0] < end:
            facts.ranges[state.carried[number]] = start[0], end - 1


def _condition(call: EquationCall, condition: ClosedJaxpr, operands: list[ITensor]) -> ITensor:
    """The condition; several of them for a loop under vmap, which ends when all are false."""
    (tensor,) = call.inline(condition, operands)
    return call.facts.whole(tensor, condition.jaxpr.outvars[0].aval)


def _where_it_goes_on(call: EquationCall, goes_on: ITensor, after: ITensor, before: ITensor) -> ITensor:
    """The next value, and the value before for those of vmap that have ended."""
    if goes_on.type.rank == 0:
        return after
    axes = range(goes_on.type.rank, after.type.rank)
    return call.make.where(call.make.expand_dims(goes_on, axes), after, before)


@primitive("platform_index")
def platform_index(call: EquationCall) -> ITensor:
    """The place of the branch for all platforms; netloop runs on any, and so has no other."""
    platforms = [*call.params["platforms"]]
    place = platforms.index(None) if None in platforms else len(platforms) - 1
    return call.make.constant(np.int32(place))


@primitive("cond")
def conditional(call: EquationCall, which: ITensor, *operands: ITensor) -> list[ITensor]:
    """A conditional; one inside the other for more than two branches."""
    make, branches = call.make, call.params["branches"]
    index = make.known(which)
    if index is not None:
        chosen = branches[min(max(int(index), 0), len(branches) - 1)]
        return call.inline(chosen, operands)
    results = [_branch(call, branch, operands) for branch in branches]
    tensors = results[-1] if len(branches) != 2 else None
    condition = unconverted(which)
    if tensors is None and condition.type.is_bool:
        return _either(call, condition, results[1], results[0])
    tensors = results[-1]
    for number in reversed(range(len(branches) - 1)):
        chosen = make.less(which, 1) if number == 0 else make.equal(which, number)
        tensors = _either(call, chosen, results[number], tensors)
    return tensors


def _branch(call: EquationCall, branch: ClosedJaxpr, operands: tuple[ITensor, ...]) -> list[ITensor]:
    tensors = call.inline(branch, operands)
    return [call.facts.whole(tensor, atom.aval) for tensor, atom in zip(tensors, branch.jaxpr.outvars, strict=True)]


def _either(call: EquationCall, condition: ITensor, true: list[ITensor], false: list[ITensor]) -> list[ITensor]:
    result = call.make.network.add_if_conditional()
    result.set_condition(condition)
    pairs = zip(true, false, strict=True)
    return [a if a is b else result.add_output(a, b).outputs[0] for a, b in pairs]


refuse(
    "it is a step of a transformation, which is finished before a network is made; trace the function that is derived",
    "custom_lin", "linear_call", "stage", "create_linear", "to_edtype", "from_edtype",
)  # fmt: skip
