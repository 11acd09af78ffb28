"""What random networks are made of."""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

import pytest

import netloop as trt
from netloop.compiler.passes import PASSES, improve, of_host, of_platform
from netloop.model.check import known_valid
from netloop.model.nest import Block, IfStep, LoopStep, live_layers
from netloop.model.plan.layer_kinds import kinds
from tests.support.random_networks import random_network, used
from tests.support.strategies import Grown, is_pure

NUMBER, MANY = 200, 1500
"""How many networks are looked at for constructs, and for each value of each attribute."""


@dataclass
class Found:
    """The live constructs of some networks.

    Attributes:
        kinds: the kinds of layers, and their number.
        words: the values of attributes that are enumerations or flags, by kind and name.
        carried: the element types of recurrences.
        nests: nested loops and conditionals, from the outermost, one letter each.
        limits: the kinds of limits of a loop.
        outputs: the kinds of loop outputs.
        ways: whether iterators are in reverse.
        counts: the known values of COUNT limits.
        layers: the number of all layers, dead ones too, without constants.
        on_host: the number of networks with data-dependent shapes after passes.
    """

    kinds: Counter[type] = field(default_factory=Counter)
    words: dict[tuple[str, str], set[object]] = field(default_factory=dict)
    carried: set[trt.DataType] = field(default_factory=set)
    nests: set[str] = field(default_factory=set)
    limits: set[frozenset[trt.TripLimit]] = field(default_factory=set)
    outputs: set[trt.LoopOutput] = field(default_factory=set)
    ways: set[bool] = field(default_factory=set)
    counts: set[int] = field(default_factory=set)
    layers: int = 0
    on_host: int = 0

    def look_at(self, grown: Grown) -> None:
        network = grown.network
        self.look_into(known_valid(network).block, "")
        self.layers += sum(not isinstance(layer, trt.IConstantLayer) for layer in network.layers)
        self.on_host += runs_on_host(grown)
        for layer in live_layers(network):
            self.kinds[type(layer)] += 1
            for name in layer.ATTRIBUTES:
                value = getattr(layer, name)
                if isinstance(value, Enum | bool) and not isinstance(value, trt.DataType):
                    self.words.setdefault((type(layer).__name__, name), set()).add(value)

    def look_into(self, block: Block, nest: str) -> None:
        self.nests.add(nest)
        for step in block.steps:
            if isinstance(step, IfStep):
                for branch in step.branches:
                    self.look_into(branch, nest + "c")
            elif isinstance(step, LoopStep):
                self.look_at_boundary(step)
                self.look_into(step.body, nest + "l")

    def look_at_boundary(self, step: LoopStep) -> None:
        self.carried.update(recurrence.get_output(0).dtype for recurrence in step.recurrences)
        self.limits.add(frozenset(limit.kind for limit in step.limits))
        self.outputs.update(output.kind for output in step.outputs)
        self.ways.update(iterator.reverse for iterator in step.iterators)
        self.counts.update(known[0] for limit in step.limits if (known := limit.tensor(0).type.ints()))


def runs_on_host(grown: Grown) -> bool:
    """Whether no program can hold a network, also after the passes that let programs hold more."""
    network = grown.network
    improved = improve(network, network.types, known_valid(network), of_host(PASSES)).network
    return not is_pure(network, grown.inputs) and not is_pure(improved, grown.inputs)


def found_in(number):
    found = Found()
    for seed in range(number):
        found.look_at(random_network(seed))
    return found


@pytest.fixture(scope="module")
def drawn():
    """The constructs found in many random networks."""
    return found_in(NUMBER)


@pytest.mark.slow
def test_every_kind_of_layer_is_drawn(drawn):
    assert set(kinds().values()) - set(drawn.kinds) == set()


@pytest.mark.slow
def test_loops_carry_every_element_type(drawn):
    assert drawn.carried == set(trt.DataType) - {trt.string}


@pytest.mark.slow
def test_loops_have_every_limit(drawn):
    count, goes_on = trt.TripLimit
    assert drawn.limits == {frozenset({count}), frozenset({goes_on}), frozenset({count, goes_on})}


@pytest.mark.slow
def test_loops_make_no_iteration_or_several(drawn):
    assert {-1, 0, 1, 2, 3} <= drawn.counts


@pytest.mark.slow
def test_iterators_go_both_ways(drawn):
    assert drawn.ways == {False, True}


@pytest.mark.slow
def test_every_kind_of_loop_output_is_drawn(drawn):
    assert drawn.outputs == set(trt.LoopOutput)


@pytest.mark.parametrize("nest", ["lll", "lc", "cl", "lcl", "clc", "cc"])
@pytest.mark.slow
def test_loops_and_conditionals_nest(drawn, nest):
    assert any(nest in value for value in drawn.nests)


@pytest.mark.slow
def test_nearly_every_layer_is_live(drawn):
    constants = drawn.kinds[trt.IConstantLayer]

    assert drawn.kinds.total() - constants > 0.99 * drawn.layers


@pytest.mark.slow
def test_many_networks_run_on_the_host_and_more_do_not(drawn):
    assert NUMBER / 10 < drawn.on_host < NUMBER / 2


NOT_DRAWN = {
    ("IGridSampleLayer", "sample_mode"): {trt.SampleMode.STRICT_BOUNDS, trt.SampleMode.WRAP},
    ("IKVCacheUpdateLayer", "update_form"): {trt.AttentionIOForm.PACKED_NHD},
    ("IReduceLayer", "op"): {trt.ReduceOperation.NONE},
    ("IScatterLayer", "reduction"): {trt.ReduceOperation.AVG},
    ("IDistCollectiveLayer", "reduce_operation"): {trt.ReduceOperation.AVG},
}
"""Values of attributes that no random network has: the layers refuse them, or they need sequences of their own."""


@pytest.mark.slow
def test_every_value_of_attributes_that_are_words_is_drawn():
    drawn = found_in(MANY)
    missing: dict[tuple[str, str], set[object]] = {}
    for place, found in drawn.words.items():
        every = {value for one in found for value in (type(one) if isinstance(one, Enum) else (False, True))}
        if every - found - NOT_DRAWN.get(place, set()):
            missing[place] = every - found

    assert missing == {}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_pass_and_every_strategy_is_used():
    passes, strategies = Counter(), Counter()
    for seed in range(NUMBER):
        grown = random_network(seed, is_risky=False)
        with used(grown.settings):
            engine = trt.compile(grown.network)
            engine(grown.inputs)
        passes.update({note.by for note in engine.notes})
        strategies.update({strategy.name for strategy in engine.loop_strategies.values()})

    # one set of shapes needs no bucketing
    assert min(passes[pass_] for pass_ in of_platform(PASSES, "cpu") - {"bucketing"}) >= 3, passes
    assert min(strategies[name] for name in ("scan", "while", "host")) >= 10, strategies
