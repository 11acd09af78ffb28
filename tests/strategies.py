"""Random networks with loops and conditionals, valid by construction.

All arithmetic is exact: floats are small whole numbers, and integers wrap alike everywhere. So an engine and the
reference have to agree to the last bit. A risky network has assertions that may not hold, iterators that may pass the
end of their axes and outputs that may have too little room.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import netloop as trt
from netloop.graph.tensor import ITensor
from netloop.types import numpy_type

Op = trt.ElementWiseOperation
DTYPES = [trt.int32, trt.int64, trt.float32, trt.bool, trt.float16, trt.bfloat16]
FLOATS = [trt.float32, trt.float16, trt.bfloat16]
SHAPES = [(), (2,), (3,), (2, 3)]
MOST_TRIPS = 4


@dataclass
class Grown:
    """A random network and arrays for its inputs."""

    network: trt.INetworkDefinition
    inputs: dict[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "\n".join(["", *map(repr, self.network.layers), repr(self.inputs)])


class Grower:
    """Grows a network from the choices of a hypothesis ``draw``."""

    def __init__(self, draw: Any, depth: int, risky: bool = False) -> None:
        self.draw = draw
        self.depth = depth
        self.risky = risky
        self.grown = Grown(trt.INetworkDefinition())
        self.network = self.grown.network
        self.within: dict[trt.ILoop, ITensor] = {}

    def grow(self) -> Grown:
        pool = [self.input(number) for number in range(self.draw(st.integers(1, 3)))]
        pool += [self.constant(*self.type()) for _ in range(2)]
        pool = self.steps(pool, self.depth, self.draw(st.integers(2, 5)))
        made = [each for each in pool if each.producer is not None]
        for tensor in made[-self.draw(st.integers(1, 4)) :]:
            self.network.mark_output(tensor)
        for tensor in self.network.inputs:
            tensor.shape = [-1 if self.draw(st.booleans()) else length for length in tensor.shape]
        return self.grown

    # ------------------------------------------------------------------ sources

    def type(self) -> tuple[trt.DataType, tuple[int, ...]]:
        return self.draw(st.sampled_from(DTYPES)), self.draw(st.sampled_from(SHAPES))

    def array(self, dtype: trt.DataType, shape: tuple[int, ...]) -> np.ndarray:
        low = 0 if dtype is trt.bool else -3
        size = int(np.prod(shape))
        numbers = self.draw(st.lists(st.integers(low, 1 if dtype is trt.bool else 4), min_size=size, max_size=size))
        return np.array(numbers).reshape(shape).astype(numpy_type(dtype))

    def input(self, number: int) -> ITensor:
        dtype, shape = self.type()
        name = f"x{number}"
        self.grown.inputs[name] = self.array(dtype, shape)
        return self.network.add_input(name, dtype, shape)

    def constant(self, dtype: trt.DataType, shape: tuple[int, ...]) -> ITensor:
        return self.fixed(self.array(dtype, shape))

    def fixed(self, array: Any) -> ITensor:
        array = np.asarray(array)
        return self.network.add_constant(array.shape, array).get_output(0)

    # ------------------------------------------------------------------ steps

    def steps(self, pool: list[ITensor], depth: int, number: int) -> list[ITensor]:
        pool = list(pool)
        for _ in range(number):
            kinds = ["layer"] * 3 + (["loop"] * 2 + ["conditional"] if depth else [])
            kinds += ["assertion"] if self.risky else []
            kind = self.draw(st.sampled_from(kinds))
            pool += getattr(self, kind)(pool, depth)
        return pool

    def pick(self, pool: list[ITensor], wanted: Any = None) -> ITensor | None:
        fitting = [each for each in pool if wanted is None or wanted(each)]
        return self.draw(st.sampled_from(fitting)) if fitting else None

    def like(self, pool: list[ITensor], tensor: ITensor) -> ITensor:
        """A tensor of the same type, perhaps itself."""
        same = self.pick(pool, lambda each: each.dtype is tensor.dtype and each.shape == tensor.shape)
        return tensor if same is None else same

    def layer(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        tensor = self.pick(pool)
        assert tensor is not None
        kinds = [self.combine, self.cast] + ([self.drop_axis, self.flip, self.stretch] if len(tensor.shape) else [])
        return [self.draw(st.sampled_from(kinds))(tensor, pool)]

    def combine(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        other = self.like(pool, tensor)
        if tensor.dtype is trt.bool:
            op = self.draw(st.sampled_from([Op.AND, Op.OR, Op.XOR]))
            return self.network.add_elementwise(tensor, other, op).get_output(0)
        op = self.draw(st.sampled_from([Op.SUM, Op.SUB, Op.PROD, Op.MAX, Op.MIN, Op.LESS, Op.EQUAL]))
        return self.tame(self.network.add_elementwise(tensor, other, op).get_output(0))

    def tame(self, tensor: ITensor) -> ITensor:
        """Keep floats small and whole, so that all arithmetic on them is exact."""
        if tensor.dtype not in FLOATS:
            return tensor
        clip = self.network.add_activation(tensor, trt.ActivationType.CLIP)
        clip.alpha, clip.beta = -64, 64
        return clip.get_output(0)

    def cast(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        dtype = self.draw(st.sampled_from(DTYPES))
        made = self.network.add_cast(tensor, dtype).get_output(0)
        return self.tame(made)

    def drop_axis(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        axis = self.draw(st.integers(0, len(tensor.shape) - 1))
        if tensor.dtype is trt.bool:
            return self.network.add_gather(tensor, self.fixed(np.int32(0)), axis).get_output(0)
        op = self.draw(st.sampled_from([trt.ReduceOperation.SUM, trt.ReduceOperation.MAX]))
        return self.tame(self.network.add_reduce(tensor, op, 1 << axis, False).get_output(0))

    def flip(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        rank = len(tensor.shape)
        starts = [length - 1 if length > 0 else 0 for length in tensor.shape]
        return self.network.add_slice(tensor, starts, tuple(tensor.shape), (-1,) * rank).get_output(0)

    def stretch(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """Combine with a tensor of one axis fewer, through an axis of length 1."""
        row = self.drop_axis(tensor, pool)
        if tensor.dtype is trt.bool or row.shape != tensor.shape[1:]:
            return row
        shuffle = self.network.add_shuffle(row)
        shuffle.reshape_dims = (1, *row.shape)
        return self.tame(self.network.add_elementwise(tensor, shuffle.get_output(0), Op.SUM).get_output(0))

    def assertion(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        flag = self.pick(pool, lambda each: each.dtype is trt.bool and len(each.shape) < 2)
        if flag is not None:
            self.network.add_assertion(flag, "it may hold")
        return []

    def number(self, pool: list[ITensor], wanted: int) -> ITensor:
        """A number, as a constant or computed from the length of an axis."""
        source = self.pick(pool, lambda each: len(each.shape))
        if source is None or self.draw(st.booleans()):
            return self.fixed(self.draw(st.sampled_from([np.int32, np.int64]))(wanted))
        axis = self.draw(st.integers(0, len(source.shape) - 1))
        shape = self.network.add_shape(source).get_output(0)
        length = self.network.add_gather(shape, self.fixed(np.int32(axis)), 0).get_output(0)
        off = self.fixed(np.int64(wanted - source.shape[axis]))
        return self.network.add_elementwise(length, off, Op.SUM).get_output(0)

    # ------------------------------------------------------------------ loops

    def loop(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        loop = self.network.add_loop()
        inside: list[ITensor] = list(pool)
        bound = MOST_TRIPS
        iterators = []
        for _ in range(self.draw(st.integers(0, 2))):
            source = self.pick(pool, lambda each: len(each.shape))
            if source is not None:
                axis = self.draw(st.integers(-len(source.shape), len(source.shape) - 1))
                iterators.append(loop.add_iterator(source, axis, False))
                bound = min(bound, source.shape[axis])
                inside.append(iterators[-1].get_output(0))
        if self.risky:
            bound = min(MOST_TRIPS, bound + self.draw(st.integers(0, 1)))
        counted = self.limits(loop, pool, inside, bound)
        for iterator in iterators:
            iterator.reverse = counted and self.draw(st.booleans())
        states = [loop.add_recurrence(self.pick(pool)) for _ in range(self.draw(st.integers(1, 3)))]
        inside += [each.get_output(0) for each in states]
        inside = self.steps(inside, depth - 1, self.draw(st.integers(1, 4)))
        for state in states:
            state.set_input(1, self.like(inside, state.get_output(0)))
        self.end(loop, inside)
        return self.outputs(loop, states, inside, [bound, pool])

    def limits(self, loop: trt.ILoop, pool: list[ITensor], inside: list[ITensor], bound: int) -> bool:
        """Give a loop limits that keep it within ``bound`` trips; whether one is a COUNT.

        A WHILE limit is asked once more than there are trips, and may ask an iterator: it ends the loop a trip earlier.
        """
        kind = self.draw(st.sampled_from(["count", "computed count", "while", "both"]))
        if kind == "computed count":
            loop.add_trip_limit(self.computed_count(pool, bound), trt.TripLimit.COUNT)
        elif kind != "while":
            loop.add_trip_limit(self.number(pool, self.draw(st.integers(-1, bound))), trt.TripLimit.COUNT)
        if kind in ("while", "both"):
            counter = loop.add_recurrence(self.fixed(np.int32(0)))
            now = counter.get_output(0)
            counter.set_input(1, self.network.add_elementwise(now, self.fixed(np.int32(1)), Op.SUM).get_output(0))
            within = self.network.add_elementwise(now, self.fixed(np.int32(bound - 1)), Op.LESS).get_output(0)
            self.within[loop] = within
            inside.append(now)
        return kind != "while"

    def computed_count(self, pool: list[ITensor], bound: int) -> ITensor:
        source = self.pick(pool, lambda each: each.dtype in (trt.int32, trt.int64) and not len(each.shape))
        if source is None:
            return self.fixed(np.int32(bound))
        dtype = numpy_type(source.dtype)
        return self.network.add_elementwise(source, self.fixed(dtype.type(bound)), Op.MIN).get_output(0)

    def end(self, loop: trt.ILoop, inside: list[ITensor]) -> None:
        """Add the WHILE limit, which may read anything in the loop but stays within the bound."""
        within = self.within.pop(loop, None)
        if within is None:
            return
        flag = self.pick(inside, lambda each: each.dtype is trt.bool and not len(each.shape))
        if flag is not None and self.draw(st.booleans()):
            within = self.network.add_elementwise(within, flag, Op.AND).get_output(0)
        loop.add_trip_limit(within, trt.TripLimit.WHILE)

    def outputs(self, loop: trt.ILoop, states: list[Any], inside: list[ITensor], around: list[Any]) -> list[ITensor]:
        made = []
        bound, pool = around
        for _ in range(self.draw(st.integers(1, 3))):
            kind = self.draw(st.sampled_from(list(trt.LoopOutput)))
            if kind is trt.LoopOutput.LAST_VALUE:
                state = self.draw(st.sampled_from(states))
                made.append(loop.add_loop_output(state.get_output(0), kind).get_output(0))
                continue
            tensor = self.pick(inside, lambda each: len(each.shape) < 3)
            axis = self.draw(st.integers(-len(tensor.shape) - 1, len(tensor.shape)))
            output = loop.add_loop_output(tensor, kind, axis)
            room = max(0, bound + self.draw(st.integers(-1 if self.risky else 0, 1)))
            output.set_input(1, self.number(pool, room))
            made.append(output.get_output(0))
        return made

    # ------------------------------------------------------------------ conditionals

    def conditional(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        conditional = self.network.add_if_conditional()
        condition = self.pick(pool, lambda each: each.dtype is trt.bool and not len(each.shape))
        if condition is None:
            condition = self.fixed(np.bool_(self.draw(st.booleans())))
        conditional.set_condition(condition)
        entered = [conditional.add_input(each).get_output(0) for each in pool if self.draw(st.booleans())]
        true = self.steps(entered + pool, depth - 1, self.draw(st.integers(0, 3)))
        false = self.steps(entered + pool, depth - 1, self.draw(st.integers(0, 3)))
        made = []
        for _ in range(self.draw(st.integers(1, 2))):
            taken = self.pick(true)
            fitting = self.pick(false, lambda each: each.dtype is taken.dtype and each.shape == taken.shape)  # noqa: B023
            if fitting is not None:
                made.append(conditional.add_output(taken, fitting).get_output(0))
        return made


@st.composite
def networks(draw: Any, depth: int = 2, risky: bool = False) -> Grown:
    """Random valid networks, loops and conditionals nested up to ``depth``.

    An assertion about two loops, one written inside the other and yet apart from it, is the one mistake that can grow
    (NL211): such networks are left out.
    """
    grown = Grower(draw, depth, risky).grow()
    assume(not any(each.code == "NL211" for each in trt.check(grown.network)))
    return grown
