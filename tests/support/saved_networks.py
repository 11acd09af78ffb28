"""Random loops and conditionals that are saved, by number: what other runtimes must compute like netloop.

Trip counts, lengths and conditions differ from call to call: they are 0, 1, 2 or 5, so a loop runs no iteration in some
calls and several in others. States start from constants that other states and conditions read too.
"""

from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import numpy_type
from tests.support.open_layers import MOST_AXES, READS, ROWS, Dims, OpenLayers
from tests.support.tensor_drawing import Op

TRIPS = 0, 1, 2, 5
MOST_TRIPS = 5
LENGTHS = {"n": (0, 1, 2, 5), "m": (1, 2, 3), "k": (2,)}
"""The lengths of open axes in the calls; the letter says how long they may be."""
SHAPES: list[Dims] = [(), ("n",), ("m",), ("n", 2), (2, "n"), ("m", "n"), ("n", "m"), ("k", "n"), ("n", "k"),
                      (2, ROWS), (ROWS, "n"), ("m", ROWS)]  # fmt: skip
COUNTERS = [trt.int32, trt.int64, trt.int8, trt.uint8]
CALLS = 3
MOST_LAYERS = 60
"""The number of layers after which no loop or conditional is begun in another one."""


@dataclass
class Saved:
    """A random network and the inputs of some calls."""

    number: int
    network: trt.INetworkDefinition
    calls: list[dict[str, np.ndarray]]

    def __str__(self) -> str:
        return f"network {self.number}:\n{self.network}"


def saved_network(number: int) -> Saved:
    """The random network of a number."""
    return SavedGrower(Random(number)).grow(number)


class SavedGrower(OpenLayers):
    """Grows a network of loops and conditionals.

    Attributes:
        inputs: the lengths of each input.
        trips: the names of the inputs that are trip counts.
    """

    def __init__(self, chance: Random) -> None:
        super().__init__(chance)
        self.inputs: dict[ITensor, Dims] = {}
        self.trips: set[str] = set()

    def grow(self, number: int) -> Saved:
        pool = [self.input(*self.type()) for _ in range(self.between(1, 2))]
        pool.append(self.of((ROWS, 2), self.constant(self.choose(*self.dtypes), (ROWS, 2))))
        pool = self.steps(pool, 0, self.between(0, 1))
        first = len(pool)
        for _ in range(self.between(1, 2)):
            pool += self.choose(self.loop, self.loop, self.cell, self.conditional)(pool, 2)
        for tensor in self.unread(pool[first:]) or pool[-1:]:
            self.network.mark_output(tensor)
        return Saved(number, self.network, [self.call() for _ in range(CALLS)])

    # ------------------------------------------------------------------ inputs

    def type(self) -> tuple[trt.DataType, Dims]:
        return self.choose(*self.dtypes), self.choose(*SHAPES)

    def input(self, dtype: trt.DataType, dims: Dims, name: str = "x") -> ITensor:
        shape = [length if isinstance(length, int) else -1 for length in dims]
        tensor = self.network.add_input(f"{name}{len(self.inputs)}", dtype, shape)
        self.inputs[tensor] = dims
        return self.of(dims, tensor)

    def trip_count(self, dtype: trt.DataType) -> ITensor:
        tensor = self.input(dtype, (), "trips")
        self.trips.add(tensor.name)
        return tensor

    def call(self) -> dict[str, np.ndarray]:
        """Arrays for the inputs of a call."""
        lengths = {name: self.choose(*some) for name, some in LENGTHS.items()}
        arrays: dict[str, np.ndarray] = {}
        for tensor, dims in self.inputs.items():
            shape = tuple(lengths[length] if isinstance(length, str) else length for length in dims)
            is_count = tensor.name in self.trips
            arrays[tensor.name] = (
                np.array(self.choose(*TRIPS), numpy_type(tensor.dtype)) if is_count else self.array(tensor.dtype, shape)
            )
        return {name: np.asarray(array) for name, array in arrays.items()}

    # ------------------------------------------------------------------ steps

    def steps(self, pool: list[ITensor], depth: int, number: int) -> list[ITensor]:
        """The tensors, and those that some more layers make of them."""
        pool = list(pool)
        for _ in range(number):
            kinds = [self.loop, self.cell, self.conditional] if depth and len(self.network.layers) < MOST_LAYERS else []
            kind = self.choose(*kinds, None, None)
            pool += [self.layer(pool)] if kind is None else kind(pool, depth)
        return pool

    def unread(self, tensors: list[ITensor]) -> list[ITensor]:
        return [tensor for tensor in dict.fromkeys(tensors) if not tensor.uses and tensor.producer is not None]

    def kept(self, tensor: ITensor, pool: list[ITensor], depth: int) -> ITensor:
        """A tensor of the same type and shape, perhaps itself."""
        way = self.between(0, 9 if depth and len(self.network.layers) < MOST_LAYERS else 7)
        if way == 0:
            return tensor
        if way == 1:
            return self.alike(tensor, pool)
        if way < 5:
            return self.stirred(tensor, self.any(pool))
        if way < 8:
            return self.choose(OpenLayers.mix, OpenLayers.select)(self, tensor, pool)
        first, *others = (self.loop if way == 8 else self.conditional)(pool, depth, tensor)
        return self.stirred(first, self.choose(*others)) if others else first

    # ------------------------------------------------------------------ loops

    def loop(self, pool: list[ITensor], depth: int, first: ITensor | None = None) -> list[ITensor]:
        """The outputs of a loop; the first one has the type of the tensor ``first``, if there is one."""
        loop, counters = self.network.add_loop(), list(self.counters)
        kind = self.choose("count", "count", "while", "both")
        rows = None if kind == "while" else self.count(loop, pool)
        counter, going = self.counter(loop, rows, kind != "count")
        states = [loop.add_recurrence(first or self.initial(pool)) for _ in range(self.between(1, 2))]
        inside = pool + self.iterators(loop, pool, rows, kind == "count")
        inside += [self.of(self.dims[state.get_input(0)], state.get_output(0)) for state in states] + [counter]
        reads = [recipe(self, counter, inside) for recipe in self.chance.sample(READS, self.between(0, 2))]
        inside += [tensor for tensor in reads if tensor is not None]
        inside = self.steps(inside, depth - 1, self.between(0, 2))
        for state in states:
            state.set_input(1, self.next(state.get_output(0), inside, depth - 1))
        if going is not None:
            self.goes_on(loop, going, [state.get_output(0) for state in states])
        self.counters = counters
        now = [states[0].get_output(0), *(state.get_output(0) for state in states[1:] if self.coin())]
        rest = [tensor for tensor in self.unread(inside[len(pool) :]) if tensor not in now]
        more = [self.choose(*inside[len(pool) :])] if self.coin() or not rest else []
        rows = rows if kind == "count" else None
        return [self.last(loop, tensor) for tensor in now] + [self.output(loop, tensor, rows) for tensor in rest + more]

    def cell(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        """The outputs of a loop along an open axis, with a state like a slice of it, as recurrent networks have it."""
        places = [place for place in self.axes(pool, LENGTHS) if len(self.dims[place[0]]) > 1]
        if not places:
            return self.loop(pool, depth)
        (tensor, axis), loop, counters = self.choose(*places), self.network.add_loop(), list(self.counters)
        rows = self.dims[tensor][axis]
        loop.add_trip_limit(self.length(tensor, axis), trt.TripLimit.COUNT)
        counter, _ = self.counter(loop, rows, False)
        if self.counters[-1] == (counter, rows) and self.coin():
            x = self.read(tensor, axis, self.converted(counter, self.choose(trt.int32, trt.int64)))
        else:
            x = loop.add_iterator(tensor, axis, self.coin()).get_output(0)
        state = loop.add_recurrence(self.converted(self.summed(tensor, (axis,)), tensor.dtype))
        now = self.of(self.without(tensor, axis), state.get_output(0))
        inside = self.steps([*pool, self.of(self.dims[now], x), now], depth - 1, self.between(0, 1))
        state.set_input(1, self.mix(now, inside))
        self.counters = counters
        rest = [x, state.get_input(1), *self.unread(inside[len(pool) :])]
        return [self.last(loop, now), *(self.output(loop, element, rows) for element in rest)]

    def axes(self, pool: list[ITensor], lengths: Collection[Any]) -> list[tuple[ITensor, int]]:
        """The axes of some lengths."""
        return [(tensor, axis) for tensor in pool for axis, length in enumerate(self.dims[tensor]) if length in lengths]

    def next(self, state: ITensor, inside: list[ITensor], depth: int) -> ITensor:
        """The next value of a state: itself, another state, itself and 1, or something else."""
        way = self.between(0, 5)
        if way == 0:
            return state
        if way == 1 and state.dtype is not trt.bool:
            return self.bounded(self.with_number(state, 1, Op.SUM))
        return self.kept(state, inside, depth)

    def initial(self, pool: list[ITensor]) -> ITensor:
        """What a state starts from: a constant that may start others too, or any tensor."""
        if self.between(0, 2):
            return self.number(self.choose(*self.dtypes), self.choose(0, 1))
        return self.any(pool)

    def count(self, loop: trt.ILoop, pool: list[ITensor]) -> int | str | None:
        """Add a COUNT; return the number of iterations, the name by which calls know it, or None."""
        kind, dtype = (
            self.choose("constant", "input", "input", "length", "length", "computed"),
            self.choose(trt.int32, trt.int64),
        )
        rows: int | str | None = None
        if kind == "length":
            open_axes = self.axes(pool, LENGTHS)
            kind = kind if open_axes else "input"
        if kind == "length":
            tensor, axis = self.choose(*open_axes)
            count, rows = self.length(tensor, axis), self.dims[tensor][axis]
        elif kind == "constant":
            rows = self.choose(*TRIPS)
            count = self.number(dtype, rows)
        elif kind == "input":
            count = self.trip_count(dtype)
            rows = count.name
        else:
            count = self.at_most(self.total(self.choose(*pool), dtype))
        loop.add_trip_limit(count, trt.TripLimit.COUNT)
        return rows

    def at_most(self, number: ITensor) -> ITensor:
        return self.with_number(number, MOST_TRIPS, Op.MIN)

    def counter(self, loop: trt.ILoop, rows: int | str | None, is_limit: bool) -> tuple[ITensor, ITensor | None]:
        """The number of the iteration, from 0 or 1 on; and whether it is below a limit, if it is to end a loop."""
        dtype, start = self.choose(*COUNTERS), self.choose(0, 0, 0, 1)
        state = loop.add_recurrence(self.number(dtype, start))
        now = self.of((), state.get_output(0))
        step = self.number(dtype, 1)
        state.set_input(1, self.of((), self.combine(now, step, Op.SUM)))
        self.counters.append((now, ROWS if start or rows is None else rows))
        if not is_limit:
            return now, None
        limit = self.trip_count(dtype) if self.coin() else self.number(dtype, self.choose(*TRIPS))
        return now, self.of((), self.combine(now, limit, Op.LESS))

    def goes_on(self, loop: trt.ILoop, going: ITensor, states: list[ITensor]) -> None:
        """Add a WHILE, of the limit of the counter and perhaps of a state."""
        if self.coin():
            flag = self.total(self.choose(*states), trt.bool)
            going = self.of((), self.combine(going, flag, self.choose(Op.AND, Op.AND, Op.XOR)))
            going = self.of(
                (), self.combine(going, self.with_number(self.counters[-1][0], MOST_TRIPS, Op.LESS), Op.AND)
            )
        loop.add_trip_limit(going, trt.TripLimit.WHILE)

    def iterators(
        self, loop: trt.ILoop, pool: list[ITensor], rows: int | str | None, is_counted: bool
    ) -> list[ITensor]:
        """Slices of tensors that are long enough, forward or in reverse."""
        axes = self.axes(pool, [ROWS, rows])
        result: list[ITensor] = []
        for tensor, axis in self.chance.sample(axes, min(len(axes), self.between(0, 2))):
            layer = loop.add_iterator(tensor, axis - self.choose(0, len(self.dims[tensor])), is_counted and self.coin())
            result.append(self.of(self.without(tensor, axis), layer.get_output(0)))
        return result

    # ------------------------------------------------------------------ outputs of loops

    def last(self, loop: trt.ILoop, tensor: ITensor) -> ITensor:
        return self.of(self.dims[tensor], loop.add_loop_output(tensor, trt.LoopOutput.LAST_VALUE).get_output(0))

    def output(self, loop: trt.ILoop, tensor: ITensor, rows: int | str | None) -> ITensor:
        """The rows of all iterations, or the last value if there is one after the last iteration."""
        if len(self.dims[tensor]) >= MOST_AXES or (not self.between(0, 3) and not reads_slices(tensor, loop)):
            return (
                self.last(loop, tensor)
                if not reads_slices(tensor, loop)
                else self.output(loop, self.short(tensor), rows)
            )
        kind, dims = self.choose(trt.LoopOutput.CONCATENATE, trt.LoopOutput.REVERSE), self.dims[tensor]
        axis = self.between(0, len(dims))
        layer = loop.add_loop_output(tensor, kind, axis - self.choose(0, len(dims) + 1))
        limit = loop.limit(trt.TripLimit.COUNT)
        if rows is None or limit is None or self.coin():
            rows = self.choose(MOST_TRIPS, ROWS)
            layer.set_input(1, self.number(self.choose(trt.int32, trt.int64), rows))
        else:
            layer.set_input(1, limit.tensor(0))
        return self.of((*dims[:axis], rows, *dims[axis:]), layer.get_output(0))

    def short(self, tensor: ITensor) -> ITensor:
        return self.summed(tensor, (0,))

    # ------------------------------------------------------------------ conditionals

    def conditional(self, pool: list[ITensor], depth: int, first: ITensor | None = None) -> list[ITensor]:
        """The outputs of a conditional, of the types of some tensors; or of one whose branches differ in length."""
        conditional = self.network.add_if_conditional()
        conditional.set_condition(self.condition(pool))
        result: list[ITensor] = []
        for tensor in [first or self.any(pool), *([self.any(pool)] if self.coin() else [])]:
            source = conditional.add_input(tensor).get_output(0) if self.coin() else tensor
            self.of(self.dims[tensor], source)
            pair = [self.kept(source, pool, depth - 1) for _ in range(2)]
            result.append(self.of(self.dims[tensor], conditional.add_output(*pair).get_output(0)))
        return result + ([self.longer(conditional, self.any(pool))] if not self.between(0, 3) else [])

    def condition(self, pool: list[ITensor]) -> ITensor:
        flags = [tensor for tensor in pool if tensor.dtype is trt.bool and not self.dims[tensor]]
        if flags and self.coin():
            return self.choose(*flags)
        return self.input(trt.bool, (), "flag") if self.coin() else self.total(self.choose(*pool), trt.bool)

    def longer(self, conditional: trt.IIfConditional, tensor: ITensor) -> ITensor:
        """The sum of a tensor, or of two such tensors."""
        x = tensor if self.dims[tensor] else self.ranked(tensor, 1)
        pair = self.chance.sample([x, self.concatenated([x, x], 0)], 2)
        dims = ("?", *self.dims[x][1:])
        return self.summed(self.of(dims, conditional.add_output(*pair).get_output(0)), (0,))


def reads_slices(tensor: ITensor, loop: trt.ILoop) -> bool:
    """Whether a tensor has no value after the last iteration of a loop: an iterator or an index would be too large."""
    stack: list[Any] = [tensor]
    seen: set[ITensor] = set()
    while stack:
        layer = stack.pop().producer
        if isinstance(layer, trt.IIteratorLayer | trt.IGatherLayer | trt.ISliceLayer):
            return True
        if layer is None or (isinstance(layer, trt.IRecurrenceLayer) and layer.loop is loop):
            continue
        layers = [layer]
        if isinstance(layer, trt.ILoopOutputLayer) and layer.loop is not loop:
            layers += layer.loop.layers
        if isinstance(layer, trt.IIfConditionalOutputLayer):
            layers += layer.conditional.layers
        new = [source for reader in layers for source in reader.inputs if source is not None and source not in seen]
        seen.update(new)
        stack += new
    return False
