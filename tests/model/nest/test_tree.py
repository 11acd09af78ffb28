"""The region tree."""

import numpy as np
import pytest

import netloop as trt
from netloop.model.nest import Block, IfStep, LayerStep, LoopStep, Scopes, live_layers, nest
from tests.support.calls import calls_in
from tests.support.networks import (
    EXAMPLES,
    LAST,
    F,
    Op,
    chain,
    chain_in_loop,
    combine,
    constant,
    counted,
    counter,
    deep,
    last,
    mark,
    nested,
    stacked,
)

NOT = trt.UnaryOperation.NOT


@pytest.fixture
def x(network):
    return network.add_input("x", trt.float32, ())


def tree(network):
    return nest(network, Scopes(network))


def named(network, tensor, name):
    """An identity of a tensor, called ``name``."""
    layer = network.add_identity(tensor)
    layer.name = name
    return layer.get_output(0)


def shown(block):
    """A block as nested lists of the names of layers, loops and conditionals, without constants."""
    return [entry for step in block.steps for entry in _shown(step)]


def _shown(step):
    if isinstance(step, LoopStep):
        return [{step.loop.name: shown(step.body)}]
    if isinstance(step, IfStep):
        return [{step.conditional.name: [shown(branch) for branch in step.branches]}]
    return [] if isinstance(step.layer, trt.IConstantLayer) else [step.layer.name]


def conditional(network, name):
    made = network.add_if_conditional()
    made.name = name
    made.set_condition(network.add_input(f"c{name}", trt.bool, ()))
    return made


# ---------------------------------------------------------------------------- loops


def test_layers_are_in_the_loop_in_which_they_vary(network, x):
    loop = counted(network, 2)
    loop.name = "L"
    state = loop.add_recurrence(x)
    invariant = named(network, x, "outside")
    state.set_input(1, named(network, combine(network, state.get_output(0), invariant), "inside"))
    network.layers[-2].name = "sum"
    mark(network, y=named(network, last(loop, state.get_output(0)), "after"))

    assert shown(tree(network)) == ["outside", {"L": ["sum", "inside"]}, "after"]


def test_loop_has_its_boundary_layers():
    network = EXAMPLES["running sums"].make()
    (step,) = (step for step in tree(network).steps if isinstance(step, LoopStep))

    kinds = [trt.ITripLimitLayer, trt.IRecurrenceLayer, trt.IIteratorLayer, trt.ILoopOutputLayer]
    found = [step.limits, step.recurrences, step.iterators, step.outputs]
    assert [[type(limit) for limit in layers] for layers in found] == [[kind] for kind in kinds]


def test_boundary_layers_that_nothing_needs_are_left_out(network, x):
    loop = counted(network, 2)
    now = counter(network, loop)
    loop.add_iterator(network.add_input("z", trt.float32, (2,)))
    loop.add_recurrence(x).set_input(1, x)
    loop.add_loop_output(now, LAST)
    mark(network, y=last(loop, now))
    (step,) = (step for step in tree(network).steps if isinstance(step, LoopStep))

    assert (len(step.recurrences), len(step.iterators), len(step.outputs)) == (1, 0, 1)


def test_inner_loop_is_a_step_of_the_outer():
    network = nested()
    network.loops[0].name, network.loops[1].name = "outer", "inner"
    (outer,) = (step for step in tree(network).steps if isinstance(step, LoopStep))
    inner = [step for step in outer.body.steps if isinstance(step, LoopStep)]

    assert outer.loop.name == "outer"
    assert [step.loop.name for step in inner] == ["inner"]
    assert not any(isinstance(step, LoopStep) for step in inner[0].body.steps)


def test_inner_loop_that_does_not_vary_is_outside(network):
    outer, inner = counted(network, 2), counted(network, 3)
    outer.name, inner.name = "outer", "inner"
    now = counter(network, outer)
    made = last(inner, counter(network, inner))
    mark(network, y=stacked(outer, combine(network, now, made), constant(network, 2, np.int32)))
    loops = [step.loop.name for step in tree(network).steps if isinstance(step, LoopStep)]

    assert loops == ["inner", "outer"]


def test_loop_reads_what_comes_from_outside(network, x):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    state = loop.add_recurrence(x)
    z = network.add_input("z", trt.float32, ())
    state.set_input(1, combine(network, state.get_output(0), z))
    mark(network, y=last(loop, state.get_output(0)))
    (step,) = tree(network).steps

    assert {tensor.name for tensor in step.reads} == {"n", "x", "z"}
    assert [tensor.name for tensor in step.writes] == ["y"]


# ---------------------------------------------------------------------------- conditionals


def test_branches_have_what_only_they_need(network, x):
    choice = conditional(network, "if")
    both = named(network, x, "both")
    true, false = named(network, both, "true"), named(network, both, "false")
    mark(network, y=named(network, choice.add_output(true, false).get_output(0), "after"))

    assert shown(tree(network)) == ["both", {"if": [["true"], ["false"]]}, "after"]


def test_what_is_an_output_too_is_in_no_branch(network, x):
    choice = conditional(network, "if")
    true = named(network, x, "true")
    mark(network, y=choice.add_output(true, x).get_output(0), z=true)

    assert shown(tree(network)) == ["true", {"if": [[], []]}]


def test_what_is_used_after_the_conditional_is_in_no_branch(network, x):
    choice = conditional(network, "if")
    true = named(network, x, "true")
    y = choice.add_output(true, x).get_output(0)
    mark(network, y=combine(network, true, y))
    network.layers[-1].name = "sum"

    assert shown(tree(network)) == ["true", {"if": [[], []]}, "sum"]


def test_what_the_condition_needs_is_in_no_branch(network):
    flag = network.add_input("f", trt.bool, ())
    inverse = network.add_unary(flag, NOT)
    inverse.name = "not"
    choice = network.add_if_conditional()
    choice.name = "if"
    choice.set_condition(inverse.get_output(0))
    mark(network, y=choice.add_output(inverse.get_output(0), flag).get_output(0))

    assert shown(tree(network)) == ["not", {"if": [[], []]}]


def test_conditional_in_a_branch_is_a_step_of_it(network, x):
    outer, inner = conditional(network, "outer"), conditional(network, "inner")
    a, b, shared, other = (named(network, x, name) for name in ("a", "b", "shared", "other"))
    picked = inner.add_output(combine(network, a, shared), combine(network, b, shared)).get_output(0)
    for layer, name in zip(network.layers[-3:-1], ("a+", "b+"), strict=True):
        layer.name = name
    mark(network, y=outer.add_output(other, picked).get_output(0))

    assert shown(tree(network)) == [{"outer": [["other"], ["shared", {"inner": [["a", "a+"], ["b", "b+"]]}]]}]


def test_what_two_conditionals_need_is_in_no_branch(network, x):
    first, second = conditional(network, "first"), conditional(network, "second")
    shared = named(network, x, "shared")
    mark(network, y=first.add_output(shared, x).get_output(0), z=second.add_output(x, shared).get_output(0))

    assert shown(tree(network)) == ["shared", {"first": [[], []]}, {"second": [[], []]}]


def test_outputs_of_a_conditional_are_one_step(network, x):
    choice = conditional(network, "if")
    a, b = named(network, x, "a"), named(network, x, "b")
    mark(network, y=choice.add_output(a, x).get_output(0), z=choice.add_output(b, a).get_output(0))

    assert shown(tree(network)) == ["a", {"if": [["b"], []]}]


def test_loop_that_only_a_branch_needs_is_in_it(network, x):
    choice = conditional(network, "if")
    loop = counted(network, 2)
    loop.name = "L"
    state = loop.add_recurrence(x)
    state.set_input(1, named(network, state.get_output(0), "body"))
    mark(network, y=choice.add_output(last(loop, state.get_output(0)), x).get_output(0))

    assert shown(tree(network)) == [{"if": [[{"L": ["body"]}], []]}]


def test_conditional_that_varies_is_in_the_loop(network, x):
    loop = counted(network, 2)
    loop.name = "L"
    choice = conditional(network, "if")
    state = loop.add_recurrence(x)
    inside = named(network, state.get_output(0), "inside")
    outside = named(network, x, "outside")
    state.set_input(1, choice.add_output(inside, outside).get_output(0))
    mark(network, y=last(loop, state.get_output(0)))

    assert shown(tree(network)) == ["outside", {"L": [{"if": [["inside"], []]}]}]


# ---------------------------------------------------------------------------- assertions


def test_assertion_about_the_outside_is_outside(network, x):
    choice = conditional(network, "if")
    network.add_assertion(combine(network, x, 1, Op.LESS), "small").name = "assertion"
    network.layers[-2].name = "less"
    mark(network, y=choice.add_output(named(network, x, "true"), x).get_output(0))

    assert sorted(map(str, shown(tree(network)))) == ["assertion", "less", "{'if': [['true'], []]}"]


def test_assertion_about_what_only_a_branch_needs_is_in_it(network, x):
    choice = conditional(network, "if")
    true = named(network, x, "true")
    network.add_assertion(combine(network, true, 1, Op.LESS), "small").name = "assertion"
    network.layers[-2].name = "less"
    mark(network, y=choice.add_output(true, x).get_output(0))

    assert shown(tree(network)) == [{"if": [["true", "less", "assertion"], []]}]


def test_assertion_about_both_branches_is_in_neither(network, x):
    choice = conditional(network, "if")
    true, false = named(network, x, "true"), named(network, x, "false")
    network.add_assertion(combine(network, true, false, Op.LESS), "in order").name = "assertion"
    network.layers[-2].name = "less"
    mark(network, y=choice.add_output(true, false).get_output(0))
    found = shown(tree(network))

    assert {"if": [[], []]} in found
    assert found.index("less") < found.index("assertion")


def test_assertion_about_a_branch_and_the_output_of_its_conditional_is_after_it(network, x):
    choice = conditional(network, "if")
    true = named(network, x, "true")
    y = choice.add_output(true, x).get_output(0)
    network.add_assertion(combine(network, true, y, Op.EQUAL), "equal").name = "assertion"
    network.layers[-2].name = "equal"
    mark(network, y=y)

    assert shown(tree(network)) == ["true", {"if": [[], []]}, "equal", "assertion"]
    assert trt.compile(network)({"x": F(1), "cif": np.bool_(True)})["y"] == 1


def test_conditional_is_after_what_an_assertion_in_its_branch_reads(network, x):
    first, second = conditional(network, "first"), conditional(network, "second")
    a, b = named(network, x, "a"), named(network, x, "b")
    y, z = first.add_output(a, x).get_output(0), second.add_output(b, x).get_output(0)
    network.add_assertion(combine(network, a, z, Op.EQUAL), "equal").name = "assertion"
    network.layers[-2].name = "equal"
    mark(network, y=y, z=z)

    assert shown(tree(network)) == [{"second": [["b"], []]}, {"first": [["a", "equal", "assertion"], []]}]


def test_assertions_in_branches_that_need_each_other_are_in_neither(network, x):
    first, second = conditional(network, "first"), conditional(network, "second")
    a, b = named(network, x, "a"), named(network, x, "b")
    y, z = first.add_output(a, x).get_output(0), second.add_output(b, x).get_output(0)
    for one, other in ((a, z), (b, y)):
        network.add_assertion(combine(network, one, other, Op.EQUAL), "equal")
    mark(network, y=y, z=z)

    assert trt.compile(network)({"x": F(1), "cfirst": np.bool_(True), "csecond": np.bool_(False)})["y"] == 1


def test_assertion_about_what_varies_is_in_the_loop(network):
    loop = counted(network, 2)
    loop.name = "L"
    now = counter(network, loop)
    network.layers[-1].name = "plus"
    network.add_assertion(combine(network, now, 5, Op.LESS), "small").name = "assertion"
    network.layers[-2].name = "less"
    mark(network, y=last(loop, now))

    assert shown(tree(network)) == [{"L": ["plus", "less", "assertion"]}]


def test_loop_that_only_an_assertion_needs_is_there(network, x):
    loop = counted(network, 2)
    loop.name = "L"
    network.add_assertion(combine(network, counter(network, loop), 5, Op.LESS), "small")
    mark(network, y=named(network, x, "y"))
    block = tree(network)

    assert [next(iter(value)) for value in shown(block) if isinstance(value, dict)] == ["L"]
    assert block.has_assertions


# ---------------------------------------------------------------------------- order


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_tree_is_the_same_each_time(example):
    first, second = tree(example.make()), tree(example.make())

    assert shown(first) == shown(second)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_every_live_layer_that_is_no_boundary_is_in_one_block(example):
    network = example.make()
    found = [layer for block in blocks(tree(network)) for layer in _layers(block)]

    boundary = trt.ITripLimitLayer | trt.IRecurrenceLayer | trt.ILoopOutputLayer | trt.IConditionLayer
    wanted = [layer for layer in live_layers(network) if not isinstance(layer, boundary)]
    wanted = [layer for layer in wanted if not isinstance(layer, trt.IIfConditionalOutputLayer)]
    assert sorted(layer.index for layer in found) == [layer.index for layer in wanted]


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_every_step_comes_after_what_it_reads(example):
    for block in blocks(tree(example.make())):
        written = set()
        made = {tensor for step in block.steps for tensor in step.writes}
        for step in block.steps:
            assert all(tensor in written for tensor in step.reads if tensor in made)
            written.update(step.writes)


def blocks(block: Block):
    yield block
    for step in block.steps:
        inner = [step.body] if isinstance(step, LoopStep) else getattr(step, "branches", ())
        for other in inner:
            yield from blocks(other)


def _layers(block):
    return [step.layer for step in block.steps if isinstance(step, LayerStep)]


def test_layers_run_in_the_order_in_which_they_were_added_if_they_can(network, x):
    first, second = named(network, x, "first"), named(network, x, "second")
    mark(network, y=combine(network, second, first))
    network.layers[-1].name = "sum"

    assert shown(tree(network)) == ["first", "second", "sum"]


def test_layers_that_were_rewired_run_in_the_order_of_data(network, x):
    early = network.add_identity(x)
    early.name = "early"
    early.set_input(0, named(network, x, "late"))
    mark(network, y=early.get_output(0))

    assert shown(tree(network)) == ["late", "early"]


# ---------------------------------------------------------------------------- size


@pytest.mark.parametrize("make", [chain, chain_in_loop])
def test_long_chain_is_one_block(make):
    assert max(len(block.steps) for block in blocks(tree(make(5000)))) >= 5000


@pytest.mark.parametrize("make", [chain, chain_in_loop])
def test_nesting_takes_as_much_work_for_each_layer_of_a_long_chain_as_of_a_short_one(make):
    short, long = make(300), make(3000)

    assert calls_in(tree, long) < 12 * calls_in(tree, short)


def test_hundred_loops_nest():
    network = deep(100)

    assert len(list(blocks(tree(network)))) == 101


# ---------------------------------------------------------------------------- steps that are needed


def test_needed_steps_are_those_that_some_tensors_need(network, x):
    a, b = named(network, x, "a"), named(network, x, "b")
    c = named(network, a, "c")
    mark(network, y=combine(network, b, c))
    block = tree(network)

    assert [step.layer.name for step in block.needed([c])] == ["a", "c"]
    assert block.needed([x]) == []


def test_assertions_are_needed_if_they_are_asked_for(network, x):
    network.add_assertion(combine(network, x, 1, Op.LESS), "small")
    mark(network, y=named(network, x, "y"))
    block = tree(network)

    assert len(block.needed([])) == 0
    assert [type(step.layer).__name__ for step in block.needed([], assertions=True)][-1] == "IAssertionLayer"


def test_network_output_that_is_a_constant_is_a_step(network):
    mark(network, y=constant(network, 1, F))

    assert len(tree(network).steps) == 1
