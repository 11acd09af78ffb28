"""Scans."""

from collections.abc import Mapping, Sequence
from typing import Any

from netloop.formats.from_jax.counters import increment_of
from netloop.formats.from_jax.rules import EquationCall, primitive
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import TripLimit


@primitive("scan")
def scan(call: EquationCall, *operands: ITensor) -> list[ITensor]:
    """A loop with a COUNT, iterators, recurrences, and stacked outputs."""
    params, make = call.params, call.make
    consts, count = _counts(params)
    body, reverse = params["jaxpr"], params["reverse"]
    initial = operands[consts : consts + count]
    length = call.lengths([params["length"]])[0]
    loop = make.network.add_loop()
    loop.add_trip_limit(make.tensor(length), TripLimit.COUNT)
    iterated = [loop.add_iterator(tensor, 0, reverse).outputs[0] for tensor in operands[consts + count :]]
    kept = _kept(body.jaxpr.invars[consts : consts + count], body.jaxpr.outvars[:count])
    recurrences = [None if same else loop.add_recurrence(state) for same, state in zip(kept, initial, strict=True)]
    carried = [state if one is None else one.outputs[0] for one, state in zip(recurrences, initial, strict=True)]
    _enter_ranges(call, [*operands[:consts], *carried, *iterated], operands)
    tensors = call.inline(body, [*operands[:consts], *carried, *iterated])
    results: list[ITensor] = []
    for recurrence, start, value, atom in zip(recurrences, initial, tensors, body.jaxpr.outvars, strict=False):
        if recurrence is None:
            results.append(start)
        else:
            recurrence.set_input(1, call.facts.whole(value, atom.aval))
            results.append(make.last(loop, recurrence))
    for value, atom in zip(tensors[count:], body.jaxpr.outvars[count:], strict=True):
        results.append(make.stacked(loop, call.facts.whole(value, atom.aval), make.tensor(length), 0, reverse))
    return results


def _counts(params: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers of operands that are the same in all iterations, and of those that are carried."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    # since JAX 0.12 the operands are a tree of three parts
    consts, carried, _ = params["ft_in"].unpack()
    return len(consts), len(carried)


def _kept(inputs: Sequence[object], returned: Sequence[object]) -> list[bool]:
    """Whether each carried value stays as it is."""
    return [before is after for before, after in zip(inputs, returned, strict=True)]


def _enter_ranges(call: EquationCall, inside: Sequence[ITensor], operands: Sequence[ITensor]) -> None:
    """Enter the ranges of counters, and of the elements that iterators read."""
    params, facts = call.params, call.facts
    body, length, (consts, count) = params["jaxpr"], params["length"], _counts(params)
    for number, (tensor, operand) in enumerate(zip(inside, operands, strict=True)):
        reach = facts.range_of(operand)
        if reach is None or tensor is operand or not isinstance(length, int):
            continue
        if number >= consts + count:
            facts.ranges[tensor] = reach
        else:
            increment = increment_of(body, body.jaxpr.invars[number], body.jaxpr.outvars[number - consts])
            if increment is not None:
                facts.ranges[tensor] = reach[0], reach[1] + increment * max(length - 1, 0)
