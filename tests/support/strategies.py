"""Random networks of layers of every kind, with loops and conditionals, valid by construction.

A risky network has what may fail (``failure_recipes``) and, anywhere, assertions that may not hold, iterators that may
pass the end of their axes and outputs that may have too little room.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import netloop as trt
from netloop.compiler.lower import has_program
from netloop.model.graph.tensor import ITensor
from netloop.model.nest import live_layers
from netloop.values.types import data_type
from tests.support.attribute_recipes import RANGES
from tests.support.corner_recipes import Corner, corner
from tests.support.failure_recipes import FAILURES, Place, Way, failure
from tests.support.host_recipes import HOST
from tests.support.layer_specs import RECIPES, Kinds, Recipe
from tests.support.tensor_drawing import FLOATS, TOLERANCE, Op, is_empty
from tests.support.weighed_recipes import WEIGHED

MOST_NUMBERS, MOST_AXES = 24, 4
"""Of larger tensors only loops and conditionals make others."""


@dataclass
class Grown:
    """A random network and arrays for its inputs.

    Attributes:
        network: the network.
        inputs: the arrays, by name.
        others: other arrays of the same shapes, with which a run that may fail can fail elsewhere.
        rough: the names of the outputs that are known up to a tolerance.
        is_risky: whether the run may fail.
        settings: values of names in netloop under which an engine of it is compared (``random_networks``).
    """

    network: trt.INetworkDefinition
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    others: list[dict[str, np.ndarray]] = field(default_factory=list)
    rough: set[str] = field(default_factory=set)
    is_risky: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "\n".join(["", *map(repr, self.network.layers), repr(self.inputs), repr(self.settings)])


class Grower(Kinds):
    """Grows a network by chance.

    Attributes:
        shapes: the shapes of inputs and constants that are drawn from.
        most_trips: how many trips a loop makes at most.
        limit_kinds: the kinds of limits that are drawn from.
        depth: how deep loops and conditionals are nested at most; at 0 there are none, and more layers.
        most: the number of layers after which no loop or conditional is begun.
        is_risky: whether the run may fail.
        has_entries: whether conditionals have inputs.
        share_on_host: the share of networks with layers that run on the host.
        deck: the recipes that come next, the last one first.
        failures: the ways to fail that come next, and where, the last one first.
        corners: the corners that it has, of which nothing else is made.
        watch: the share of tensors that become outputs although something reads them. At 0 passes find more to
            rewrite; at 1 nothing hides a wrong number.
        watched: these tensors.
        always: the names of the methods that grow what every network has.
    """

    shapes = [(), (2,), (3,), (2, 3)]
    most_trips = 4
    limit_kinds = ["count", "computed count", "while", "both"]
    recipes = [*RECIPES, *RANGES, *WEIGHED]
    share_on_host = 0.3

    def __init__(self, chance: Random, depth: int, most: int, is_risky: bool = False, has_entries: bool = True) -> None:
        super().__init__(chance)
        self.depth = depth
        self.most = most
        self.is_risky = is_risky
        self.has_entries = has_entries
        self.inputs: dict[str, np.ndarray] = {}
        self.within: dict[trt.ILoop, ITensor] = {}
        self.watch = self.choose(0, 0.1, 0.5, 1)
        self.watched: set[ITensor] = set()
        self.always = ["failure"] * 2 if is_risky else []
        self.is_on_host = self.chance.random() < self.share_on_host
        self.deck: list[Recipe] = self.some_on_host() if self.is_on_host else []
        self.failures: list[tuple[Way, Place]] = []
        self.corners: list[Corner] = []

    def some_on_host(self) -> list[Recipe]:
        found = [recipe for recipe in self.recipes if recipe in HOST]
        return self.chance.sample(found, min(3, len(found)))

    def grow(self) -> Grown:
        pool = [self.input(number) for number in range(self.between(1, 3))]
        pool += [self.constant(*self.type()) for _ in range(2)]
        pool = self.steps(pool, self.depth, 1)
        for make in self.always:
            pool += getattr(self, make)(pool, 0)
        if self.depth:
            pool += self.choose(self.loop, self.loop, self.conditional)(pool, self.depth)
            pool = self.steps(pool, self.depth, self.between(0, 1))
        else:
            dealt = len(self.deck)
            pool = self.steps(pool, 0, self.between(1, 3) if self.is_risky else 0 if dealt else self.between(6, 16))
            while self.deck and not self.is_risky and dealt:
                pool = self.steps(pool, 0, 1)
        outputs = self.left(pool) or [tensor for tensor in pool if tensor.producer is not None][-1:]
        outputs += self.corner(pool)
        for tensor in outputs:
            self.network.mark_output(tensor)
        for tensor in self.network.inputs:
            tensor.shape = [-1 if self.coin() else length for length in tensor.shape]
        rough = {tensor.name for tensor in outputs if tensor in self.rough}
        return Grown(self.network, self.inputs, self.others(), rough, self.is_risky)

    def others(self) -> list[dict[str, np.ndarray]]:
        """Other arrays for the inputs of a network that may fail."""
        types = {tensor.name: (tensor.dtype, self.inputs[tensor.name].shape) for tensor in self.network.inputs}
        return [{name: self.array(*of) for name, of in types.items()} for _ in range(3 * self.is_risky)]

    # ------------------------------------------------------------------ sources

    def type(self) -> tuple[trt.DataType, tuple[int, ...]]:
        return self.choose(*self.dtypes), self.choose(*self.shapes)

    def input(self, number: int) -> ITensor:
        dtype, shape = self.type()
        name = f"x{number}"
        self.inputs[name] = self.array(dtype, shape)
        return self.network.add_input(name, dtype, shape)

    # ------------------------------------------------------------------ steps

    def steps(self, pool: list[ITensor], depth: int, number: int) -> list[ITensor]:
        pool = list(pool)
        for _ in range(number):
            kinds = ["layer"] * 2 + (["loop"] * 2 + ["conditional"] if self.grows(depth) else [])
            kinds += ["assertion", "failure"] if self.is_risky else []
            made = getattr(self, self.choose(*kinds))(pool, depth)
            self.watched.update(value for value in made if self.chance.random() < self.watch)
            pool += made
        return pool

    def left(self, pool: list[ITensor], before: Collection[ITensor] = ()) -> list[ITensor]:
        """The tensors that have been made, but not before, and that nothing reads or that are watched."""
        made = [tensor for tensor in dict.fromkeys(pool) if tensor.producer is not None and tensor not in before]
        return [tensor for tensor in made if not tensor.uses or tensor in self.watched]

    def layer(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        tensor = self.pick_exact(pool, self.is_handy) if self.between(0, 3) else self.pick(pool, self.is_handy)
        if tensor is None:
            tensor = self.constant(*self.type())
        if tensor in self.rough:
            return [self.blend(tensor, pool)]
        recipe = self.recipe() if self.between(0, 3) else self.choose(Kinds.mix, Kinds.convert, Kinds.reduce)
        return [recipe(self, tensor, [tensor for tensor in pool if tensor not in self.rough])]

    def recipe(self) -> Recipe:
        """The next recipe: none comes again before all have come."""
        if not self.deck:
            fitting = [recipe for recipe in self.recipes if self.is_on_host or recipe not in HOST]
            self.deck = self.chance.sample(fitting, len(fitting))
        return self.deck.pop()

    def grows(self, depth: int) -> bool:
        """Whether another loop or conditional may begin, in which ``depth`` are nested at most, itself counted."""
        return depth > 0 and len(self.network.layers) < self.most

    def is_handy(self, tensor: ITensor) -> bool:
        return not is_empty(tensor) and self.size(tensor) <= MOST_NUMBERS and len(tensor.shape) <= MOST_AXES

    def assertion(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        flag = (
            self.pick(pool, lambda tensor: tensor.dtype is trt.bool and len(tensor.shape) < 2) if self.coin() else None
        )
        source = self.pick_exact(pool, self.is_handy) if flag is None else None
        if source is not None:
            number = self.one(source, self.fixed(np.int32(0)))
            flag = self.combine(number, self.fixed(np.int32(self.between(2, 5))), Op.LESS)
        if flag is not None:
            self.network.add_assertion(flag, "it may hold")
        return []

    def failure(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        """A number that may need what fails, of the next way to fail and place."""
        tensor = self.pick_exact(pool, self.is_handy)
        if tensor is None:
            return []
        if not self.failures:
            self.failures = self.chance.sample(FAILURES, len(FAILURES))
        return [failure(self, tensor, *self.failures.pop())]

    def corner(self, pool: list[ITensor]) -> list[ITensor]:
        """The results of the corners, of numbers of their own: a new corner changes nothing else in any network."""
        kept, self.chance = self.chance, Random(self.chance.random())
        tensor = self.pick_exact(pool, self.is_handy)
        made = [] if tensor is None else [
            corner(self, tensor, other) if self.is_risky else other(self, tensor) for other in self.corners
        ]  # fmt: skip
        self.chance = kept
        return made

    def number(self, pool: list[ITensor], wanted: int) -> ITensor:
        """A number, as a constant or computed from the length of an axis."""
        source = self.pick(pool, lambda tensor: len(tensor.shape))
        if source is None or self.between(0, 2):
            return self.fixed(self.choose(np.int32, np.int64)(wanted))
        axis = self.axis(source)
        shape = self.network.add_shape(source).get_output(0)
        length = self.network.add_gather(shape, self.fixed(np.int32(axis)), 0).get_output(0)
        return self.combine(length, self.fixed(np.int64(wanted - source.shape[axis])), Op.SUM)

    # ------------------------------------------------------------------ loops

    def loop(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        loop = self.network.add_loop()
        iterators, bound = self.iterators(loop, pool)
        inside = pool + [iterator.get_output(0) for iterator in iterators]
        counted = self.limits(loop, pool, inside, bound)
        for iterator in iterators:
            iterator.reverse = counted and self.coin()
        states = self.states(loop, pool)
        inside += [state.get_output(0) for state in states]
        if self.grows(depth - 1):
            inside += self.choose(self.loop, self.loop, self.conditional)(inside, depth - 1)
        inside = self.body(inside, len(pool), depth - 1)
        self.next_values(states, inside)
        self.end(loop, inside)
        return self.outputs(loop, inside, bound, pool)

    def body(self, inside: list[ITensor], outside: int, depth: int) -> list[ITensor]:
        """The tensors that a loop body can read, of which the first few are from outside, and those that it makes."""
        return self.steps(inside, depth, self.between(1, 2))

    def iterators(self, loop: trt.ILoop, pool: list[ITensor]) -> tuple[list[trt.IIteratorLayer], int]:
        """Some iterators, and the number of trips that they bear."""
        bound = self.most_trips
        made = []
        for _ in range(self.between(0, 2)):
            source = self.pick(pool, lambda tensor: len(tensor.shape))
            if source is not None:
                axis = self.between(-len(source.shape), len(source.shape) - 1)
                made.append(loop.add_iterator(source, axis, False))
                bound = min(bound, source.shape[axis])
                self.as_rough_as(made[-1].get_output(0), source)
        return made, min(self.most_trips, bound + self.between(0, 1)) if self.is_risky else bound

    def as_rough_as(self, tensor: ITensor, *sources: ITensor) -> ITensor:
        if self.rough.intersection(sources):
            self.rough.add(tensor)
        return tensor

    def states(self, loop: trt.ILoop, pool: list[ITensor]) -> list[trt.IRecurrenceLayer]:
        """Some recurrences, often of one type, so that they can hand their values to each other."""
        first = self.pick(pool)
        firsts = [first] + [self.choose(self.like(pool, first), self.pick(pool)) for _ in range(self.choose(0, 1, 2))]
        if self.coin():
            firsts = [self.soft(first) if first.dtype in FLOATS else first for first in firsts]
            self.rough.update(first for first in firsts if first.dtype in FLOATS)
        made = [loop.add_recurrence(first) for first in firsts]
        for recurrence, source in zip(made, firsts, strict=True):
            self.as_rough_as(recurrence.get_output(0), source)
        return made

    def next_values(self, states: list[trt.IRecurrenceLayer], inside: list[ITensor]) -> None:
        """A next value for each recurrence; or those of one type hand their values around."""
        handed = self.handed(
            [state for state in states if self.are_alike(state.get_output(0), states[0].get_output(0))]
        )
        for state in states:
            state.set_input(1, handed[state] if state in handed else self.next_value(state.get_output(0), inside))

    def handed(self, ring: list[trt.IRecurrenceLayer]) -> dict[trt.IRecurrenceLayer, ITensor]:
        """The next values of recurrences of one type that are those of others before."""
        if not ring or self.coin():
            return {}
        made = {state: other.get_output(0) for state, other in zip(ring[1:], ring, strict=False)}
        return made if self.coin() else {ring[0]: ring[-1].get_output(0), **made}

    def next_value(self, state: ITensor, inside: list[ITensor]) -> ITensor:
        other = self.pick_exact(inside, self.is_handy)
        if other is None or is_empty(state) or not self.between(0, 3):
            return self.like(inside, state)
        if state not in self.rough:
            return self.stir(state, other)
        return self.roughen(self.combine(state, self.one(self.soft(other), state), Op.SUM))

    def limits(self, loop: trt.ILoop, pool: list[ITensor], inside: list[ITensor], bound: int) -> bool:
        """Give a loop limits that keep it within ``bound`` trips; whether iterators may start from its COUNT.

        A WHILE limit is asked once more than there are trips, and may ask an iterator: it ends the loop a trip earlier,
        also where the COUNT is larger.
        """
        kind = self.choose(*self.limit_kinds)
        count = self.between(-1, bound + 2 if kind == "both" else bound)
        if kind == "computed count":
            loop.add_trip_limit(self.computed_count(pool, bound), trt.TripLimit.COUNT)
        elif kind != "while":
            loop.add_trip_limit(self.number(pool, count), trt.TripLimit.COUNT)
        if kind in ("while", "both"):
            counter = loop.add_recurrence(self.fixed(np.int32(0)))
            now = counter.get_output(0)
            counter.set_input(1, self.combine(now, self.fixed(np.int32(1)), Op.SUM))
            self.within[loop] = self.combine(now, self.fixed(np.int32(bound - 1)), Op.LESS)
            inside.append(now)
        return kind != "while" and count <= bound

    def computed_count(self, pool: list[ITensor], bound: int) -> ITensor:
        source = self.pick(pool, lambda tensor: tensor.dtype in (trt.int32, trt.int64) and not len(tensor.shape))
        if source is None:
            return self.fixed(np.int32(bound))
        return self.combine(source, self.filled(source, bound), Op.MIN)

    def end(self, loop: trt.ILoop, inside: list[ITensor]) -> None:
        """Add the WHILE limit, which may read anything in the loop but stays within the bound."""
        within = self.within.pop(loop, None)
        if within is None:
            return
        flag = self.pick(inside, lambda tensor: tensor.dtype is trt.bool and not len(tensor.shape))
        if flag is not None and self.coin():
            within = self.combine(within, flag, Op.AND)
        loop.add_trip_limit(within, trt.TripLimit.WHILE)

    def outputs(self, loop: trt.ILoop, inside: list[ITensor], bound: int, pool: list[ITensor]) -> list[ITensor]:
        """An output for all that is left in a loop, or for anything; and for the states that none of them needs."""
        left = self.left(inside, set(pool))
        more = [self.pick(inside)] if not left or not self.between(0, 2) else []
        made = [self.output(loop, tensor, bound, pool) for tensor in left + more]
        for state in loop.boundary(trt.IRecurrenceLayer):
            if state not in live_layers(self.network, [tensor.producer for tensor in made]):
                made.append(self.last_value(loop, state.get_output(0)))
        return made

    def output(self, loop: trt.ILoop, tensor: ITensor, bound: int, pool: list[ITensor]) -> ITensor:
        if isinstance(tensor.producer, trt.IRecurrenceLayer) and tensor.producer.loop is loop and self.between(0, 2):
            return self.last_value(loop, tensor)
        if len(tensor.shape) > MOST_AXES:
            tensor = self.as_rough_as(self.reshape(tensor, -1), tensor)
        axis = self.between(-len(tensor.shape) - 1, len(tensor.shape))
        output = loop.add_loop_output(tensor, self.choose(trt.LoopOutput.CONCATENATE, trt.LoopOutput.REVERSE), axis)
        may_be_less = self.is_risky or loop.limit(trt.TripLimit.WHILE) is not None
        room = max(0, bound + self.between(-1 if may_be_less else 0, 1))
        output.set_input(1, self.number(pool, room))
        return self.as_rough_as(output.get_output(0), tensor)

    def last_value(self, loop: trt.ILoop, tensor: ITensor) -> ITensor:
        return self.as_rough_as(loop.add_loop_output(tensor, trt.LoopOutput.LAST_VALUE).get_output(0), tensor)

    # ------------------------------------------------------------------ conditionals

    def conditional(self, pool: list[ITensor], depth: int) -> list[ITensor]:
        """An output for all that is left in the branches, or for anything."""
        conditional = self.network.add_if_conditional()
        conditional.set_condition(self.condition(pool))
        sources = self.chance.sample(pool, min(len(pool), self.between(0, 3))) if self.has_entries else []
        entered = [self.enter(conditional, source) for source in sources]
        branches = [self.steps(entered + pool, depth - 1, self.between(0, 2)) for _ in range(2)]
        pairs = []
        for side, branch in enumerate(branches):
            for taken in self.left(branch, {*pool, *(entered if side else ())}) or [self.pick(branch)]:
                pairs.append(self.pair(taken, branches[1 - side])[:: -1 if side else 1])
        return [self.as_rough_as(conditional.add_output(*pair).get_output(0), pair[0]) for pair in pairs]

    def condition(self, pool: list[ITensor]) -> ITensor:
        """A flag that may differ from call to call and from iteration to iteration, if something in the pool does."""
        flag = self.pick(pool, lambda tensor: tensor.dtype is trt.bool and not len(tensor.shape))
        source = self.pick_exact(pool, self.is_handy) if flag is None or self.coin() else None
        if source is not None:
            number = self.one(source, self.fixed(np.int32(0)))
            return self.combine(number, self.fixed(np.int32(self.between(-2, 2))), self.choose(Op.LESS, Op.GREATER))
        return self.fixed(np.bool_(self.coin())) if flag is None else flag

    def pair(self, taken: ITensor, pool: list[ITensor]) -> tuple[ITensor, ITensor]:
        """A tensor of a branch, and one of the same type for the other branch."""
        return taken, self.pick(pool, lambda tensor: self.are_alike(tensor, taken)) or self.stand_in(taken, pool)

    def stand_in(self, tensor: ITensor, pool: list[ITensor]) -> ITensor:
        """A tensor of the type of another one, and as rough, that depends on something in the pool."""
        other = self.pick_exact(pool, self.is_handy)
        if tensor in self.rough or other is None or is_empty(tensor):
            return tensor
        return self.stir(self.constant(tensor.dtype, tuple(tensor.shape)), other)

    def enter(self, conditional: trt.IIfConditional, tensor: ITensor) -> ITensor:
        return self.as_rough_as(conditional.add_input(tensor).get_output(0), tensor)


def assert_equal(got, meant, rough=()):
    """Equal to the last bit, but for the outputs that are rough, and subnormal numbers, which are 0 for XLA."""
    assert list(got) == list(meant)
    for name, wanted in meant.items():
        array = np.asarray(got[name])
        assert array.dtype == wanted.dtype
        if name in rough:
            off = TOLERANCE[data_type(wanted.dtype)]
            np.testing.assert_allclose(array.astype(float), wanted.astype(float), rtol=0, atol=off)
        elif wanted.dtype.kind == "V":
            np.testing.assert_array_equal(array.astype(float), wanted.astype(float))  # numpy has no NaN of these types
        else:
            np.testing.assert_array_equal(without_subnormal(array), without_subnormal(wanted))


def without_subnormal(array: np.ndarray) -> np.ndarray:
    """An array with 0 in place of subnormal numbers of float32, which XLA rounds to 0, also before it widens them."""
    if array.dtype not in (np.float32, np.float64):
        return array
    return np.where(np.abs(array) < np.finfo(np.float32).tiny, array.dtype.type(0), array)


def is_pure(network: trt.INetworkDefinition, inputs: Mapping[str, np.ndarray]) -> bool:
    """Whether one program can hold the network for inputs of these shapes, whatever their values are."""
    fixed = network.copy()
    for tensor in fixed.inputs:
        tensor.shape = inputs[tensor.name].shape
    return has_program(fixed, fixed.types)


@st.composite
def networks(draw: Any, depth: int = 4, most: int = 40, is_risky: bool = False, grower: type[Grower] = Grower) -> Grown:
    """Random valid networks, loops and conditionals nested up to ``depth``, and begun among the first ``most`` layers.

    Hypothesis draws a seed and the sizes: its own choices, thousands of them, would be too much alike to nest anything.
    So a failing network shrinks in size.

    An assertion about two loops, one written inside the other and yet apart from it, is the one mistake that can grow
    (NL211): such networks are left out.
    """
    sizes = draw(st.integers(0, depth)), draw(st.integers(0, most))
    grown = grower(Random(draw(st.integers(0, 1 << 32))), *sizes, is_risky).grow()
    assume(not any(finding.code == "NL211" for finding in trt.check(grown.network)))
    return grown
