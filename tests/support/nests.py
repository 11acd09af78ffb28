"""Networks of any size: nests of loops and conditionals, and many of them side by side or in a row."""

from collections.abc import Callable

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from tests.support.networks import Op, chain, chain_in_loop, combine, constant, counted, counter, deep, last, mark


class Maker:
    """An empty network with an input ``x``, int32, an input ``c``, bool, and a constant 1."""

    def __init__(self) -> None:
        self.network = trt.INetworkDefinition()
        self.x = self.network.add_input("x", trt.int32, ())
        self.flag = self.network.add_input("c", trt.bool, ())
        self.one = constant(self.network, 1, np.int32)

    def state(self, initial: ITensor) -> trt.IRecurrenceLayer:
        """A recurrence of a new loop that makes one iteration."""
        return counted(self.network, self.one).add_recurrence(initial)

    def conditional(self) -> trt.IIfConditional:
        """A conditional that takes its first branch if ``c`` is true."""
        made = self.network.add_if_conditional()
        made.set_condition(self.flag)
        return made

    def after(self, tensor: ITensor) -> ITensor:
        """The sum of a tensor and 1."""
        return combine(self.network, tensor, self.one)

    def all(self, tensors: list[ITensor]) -> trt.INetworkDefinition:
        """The network, with the tensors as rows of its output ``y``."""
        axes = constant(self.network, [0], np.int32)
        rows = [self.network.add_unsqueeze(tensor, axes).get_output(0) for tensor in tensors]
        return mark(self.network, y=self.network.add_concatenation(rows).get_output(0))


def loops_from_inside(size: int) -> trt.INetworkDefinition:
    """y: x + 1, computed in nested loops that were added from the innermost."""
    make = Maker()
    states = [make.state(make.x) for _ in range(size)]
    made = make.after(states[0].get_output(0))
    for number, state in enumerate(states):
        state.set_input(1, made)
        made = last(state.loop, state.get_output(0))
        if number + 1 < size:
            state.set_input(0, states[number + 1].get_output(0))
    return mark(make.network, y=made)


def loops_with_limits(size: int) -> trt.INetworkDefinition:
    """y: x + size, counted by nested loops with both limits, which follow from the state of the loop around each."""
    make = Maker()
    now, states = make.x, list[trt.IRecurrenceLayer]()
    for _ in range(size):
        count = make.after(combine(make.network, now, now, Op.SUB))
        states.append(counted(make.network, count).add_recurrence(now))
        now = states[-1].get_output(0)
        states[-1].loop.add_trip_limit(combine(make.network, now, make.one, Op.GREATER), trt.TripLimit.WHILE)
    for state in reversed(states):
        state.set_input(1, make.after(now))
        now = last(state.loop, state.get_output(0))
    return mark(make.network, y=now)


def last_values_of_inner_loops(size: int) -> trt.INetworkDefinition:
    """y: x + 2 ** size, as each loop needs the inner one once more for its last value."""
    make = Maker()
    states = list[trt.IRecurrenceLayer]()
    for _ in range(size):
        states.append(make.state(states[-1].get_output(0) if states else make.x))
    made = make.after(states[-1].get_output(0))
    for state in reversed(states):
        state.set_input(1, made)
        made = last(state.loop, made)
    return mark(make.network, y=made)


def conditionals(size: int) -> trt.INetworkDefinition:
    """y: x + size if c, else x + 1; nested conditionals, with a layer in each branch."""
    make = Maker()
    made = make.x
    for _ in range(size):
        made = make.conditional().add_output(make.after(made), make.after(make.x)).get_output(0)
    return mark(make.network, y=made)


def conditionals_with_inputs(size: int) -> trt.INetworkDefinition:
    """y: x + 1; nested conditionals, each of which passes x into the one inside it."""
    make = Maker()
    inside, choices = make.x, list[trt.IIfConditional]()
    for _ in range(size):
        choices.append(make.conditional())
        inside = choices[-1].add_input(inside).get_output(0)
    made = make.after(inside)
    for choice in reversed(choices):
        made = choice.add_output(made, make.after(make.x)).get_output(0)
    return mark(make.network, y=made)


def conditionals_with_assertions(size: int) -> trt.INetworkDefinition:
    """y: x + size if c, else x + 1; nested conditionals with an assertion in each first branch."""
    make = Maker()
    made = make.x
    for _ in range(size):
        taken = make.after(made)
        make.network.add_assertion(combine(make.network, taken, make.x, Op.GREATER), "it grows")
        made = make.conditional().add_output(taken, make.after(make.x)).get_output(0)
    return mark(make.network, y=made)


def loops_and_conditionals(size: int) -> trt.INetworkDefinition:
    """y: x + 1 if c, else 1; ``size`` conditionals and loops in turn, a conditional outermost."""
    make = Maker()
    states = list[trt.IRecurrenceLayer]()
    for _ in range(size // 2):
        states.append(make.state(states[-1].get_output(0) if states else make.x))
    made = make.after(states[-1].get_output(0))
    for state in reversed(states):
        state.set_input(1, made)
        made = make.conditional().add_output(last(state.loop, state.get_output(0)), make.one).get_output(0)
    return mark(make.network, y=made)


def loops_side_by_side(size: int) -> trt.INetworkDefinition:
    """y: a row for each of many loops."""
    make = Maker()
    loops = [counted(make.network, make.one) for _ in range(size)]
    return make.all([last(loop, counter(make.network, loop)) for loop in loops])


def loops_in_a_row(size: int) -> trt.INetworkDefinition:
    """y: x + size, counted by loops of which each starts from the last value of the one before."""
    make = Maker()
    made = make.x
    for _ in range(size):
        state = make.state(made)
        state.set_input(1, make.after(state.get_output(0)))
        made = last(state.loop, state.get_output(0))
    return mark(make.network, y=made)


def states(size: int) -> trt.INetworkDefinition:
    """y: a row for the last value of each of the recurrences of one loop, of which each follows the one before."""
    make = Maker()
    loop = counted(make.network, make.one)
    made = [loop.add_recurrence(make.x) for _ in range(size)]
    for number, recurrence in enumerate(made):
        recurrence.set_input(1, make.after(made[number - 1].get_output(0)))
    return make.all([last(loop, recurrence.get_output(0)) for recurrence in made])


def shift_register(size: int) -> trt.INetworkDefinition:
    """y: the last of many recurrences, of which each takes the value of the one before, and the first x + 1."""
    make = Maker()
    loop = counted(make.network, make.one)
    made = [loop.add_recurrence(make.x) for _ in range(size)]
    for number, recurrence in enumerate(made):
        recurrence.set_input(1, made[number - 1].get_output(0) if number else make.after(make.x))
    return mark(make.network, y=last(loop, made[-1].get_output(0)))


def conditionals_side_by_side(size: int) -> trt.INetworkDefinition:
    """y: a row for each of many conditionals."""
    make = Maker()
    return make.all([make.conditional().add_output(make.after(make.x), make.x).get_output(0) for _ in range(size)])


def outputs_of_a_conditional(size: int) -> trt.INetworkDefinition:
    """y: a row for each of the outputs of one conditional."""
    make = Maker()
    choice = make.conditional()
    return make.all([choice.add_output(make.after(make.x), make.x).get_output(0) for _ in range(size)])


NESTS: dict[str, Callable[[int], trt.INetworkDefinition]] = {
    "loops": lambda size: deep(size, 1),
    "loops from inside": loops_from_inside,
    "loops with limits": loops_with_limits,
    "conditionals": conditionals,
    "conditionals with inputs": conditionals_with_inputs,
    "conditionals with assertions": conditionals_with_assertions,
    "loops and conditionals": loops_and_conditionals,
}
"""Networks of ``size`` loops and conditionals, each inside the one before."""

FAMILIES: dict[str, Callable[[int], trt.INetworkDefinition]] = NESTS | {
    "chain": chain,
    "chain in a loop": chain_in_loop,
    "loops side by side": loops_side_by_side,
    "loops in a row": loops_in_a_row,
    "states": states,
    "shift register": shift_register,
    "conditionals side by side": conditionals_side_by_side,
    "outputs of a conditional": outputs_of_a_conditional,
}
"""Networks whose number of layers is a multiple of ``size``."""


def inputs_of(network: trt.INetworkDefinition) -> dict[str, np.ndarray]:
    """5 for each input, or True."""
    return {tensor.name: np.full(tensor.shape, 5, tensor.type.dtype) for tensor in network.inputs}
