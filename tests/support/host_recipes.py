"""Recipes of what runs on the host: shapes that depend on values, plugins, and sequences that loops carry.

Each ends in a tensor of a fixed shape, which it pads or cuts, so that any recipe can follow.
"""

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from tests.support.attribute_recipes import Pool
from tests.support.layer_specs import Kinds, Recipe
from tests.support.networks import counter
from tests.support.plugin_examples import NonZero, Plugin
from tests.support.tensor_drawing import LISTED, NUMBERS, Op

HOST: list[Recipe] = [Kinds.non_zero, Kinds.find_unique, Kinds.suppress, Kinds.spell, Kinds.tokenize, Kinds.decode]
"""The recipes of this module, and those of ``layer_specs`` that run on the host too."""


def draws(recipe: Recipe) -> Recipe:
    HOST.append(recipe)
    return recipe


def settled(grow: Kinds, tensor: ITensor, *shape: int) -> ITensor:
    """The beginning of a tensor, or all of it and zeros."""
    ones = [1] * len(shape)
    layer = grow.network.add_slice(tensor, [0] * len(shape), shape, ones)
    layer.mode = trt.SampleMode.FILL
    return layer.get_output(0)


def number(grow: Kinds, tensor: ITensor, most: int) -> ITensor:
    """A number from 0 to ``most`` that depends on a tensor, int32[1]."""
    one = grow.reshape(grow.one(tensor, grow.fixed(np.int32(0))), 1)
    return grow.combine(one, grow.filled(one, most + 1), Op.MOD)


def some(grow: Kinds, tensor: ITensor) -> ITensor:
    """Some of its elements, a number that depends on them."""
    flat = grow.reshape(tensor, grow.size(tensor))
    layer = grow.network.add_slice(flat, (0,), (0,), (1,))
    layer.set_input(2, number(grow, flat, grow.size(tensor)))
    return layer.get_output(0)


@draws
def found_elements(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """The elements that are not zero."""
    x = grow.with_axis(grow.among(tensor, [trt.bool, *NUMBERS]))
    places = grow.network.add_non_zero(x, grow.choose(trt.int32, trt.int64)).get_output(0)
    columns = grow.network.add_shuffle(places)
    columns.first_transpose = 1, 0
    found = grow.network.add_gather_v2(x, columns.get_output(0), trt.GatherMode.ND).get_output(0)
    return settled(grow, found, grow.between(2, 5))


@draws
def unique_elements(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """One of the outputs that list the unique elements, or slices along an axis."""
    x = grow.with_axis(grow.among(tensor, [trt.bool, *NUMBERS]))
    axis = grow.choose(None, grow.axis(x))
    layer = grow.network.add_unique(x, axis, grow.coin(), grow.choose(trt.int32, trt.int64))
    output = grow.between(0, 3)
    shape = x.shape if output == 0 and axis is not None else (4,)
    return settled(grow, layer.get_output(output), *shape)


@draws
def toss(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Elements once or twice, as a random number decides."""
    flat = grow.reshape(tensor, grow.size(tensor))
    fill = grow.network.add_fill((), trt.FillOperation.RANDOM_UNIFORM)
    conditional = grow.network.add_if_conditional()
    conditional.set_condition(grow.combine(fill.get_output(0), grow.fixed(np.float32(0.5)), Op.LESS))
    return settled(
        grow, conditional.add_output(flat, grow.concatenated([flat, flat], 0)).get_output(0), 2 * grow.size(tensor)
    )


@draws
def some_elements(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Some elements twice, as rows or columns of a matrix."""
    part = some(grow, tensor)
    axes = grow.fixed(np.int32([grow.between(0, 1)]))
    rows = grow.network.add_unsqueeze(part, axes).get_output(0)
    return settled(grow, grow.concatenated([rows, rows], grow.between(0, 1)), 2, 3)


@draws
def lines(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """A line of numbers, as long as values say."""
    fill = grow.network.add_fill((0,), trt.FillOperation.LINSPACE, grow.choose(trt.float32, trt.int32, trt.int64))
    fill.set_input(0, number(grow, tensor, 5))
    fill.alpha, fill.beta = grow.between(-2, 2), grow.between(1, 3)
    return settled(grow, fill.get_output(0), 4)


@draws
def resized(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    flat = grow.reshape(grow.real(tensor), 1, grow.size(tensor))
    layer = grow.network.add_resize(flat)
    length = grow.combine(number(grow, tensor, 4), grow.fixed(np.int32([1])), Op.SUM)
    layer.set_input(1, grow.concatenated([grow.fixed(np.int32([1])), length], 0))
    return settled(grow, layer.get_output(0), 1, 5)


@draws
def growing_state(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """A loop-carried list, to which each iteration appends."""
    x = grow.reshape(tensor, grow.size(tensor))
    loop = grow.network.add_loop()
    loop.add_trip_limit(grow.fixed(np.int32(grow.between(0, 3))), trt.TripLimit.COUNT)
    state = loop.add_recurrence(x if grow.coin() else some(grow, x))
    state.keeps_shape = False
    more = [state.get_output(0), x] if grow.coin() else [x, state.get_output(0)]
    state.set_input(1, grow.concatenated(more, 0))
    output = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    return settled(grow, output, grow.size(x) + 3)


@draws
def reverse_in_a_branch(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """A list that grows by elements from the last one on, which only a branch reads."""
    x = grow.reshape(tensor, grow.size(tensor))
    loop = grow.network.add_loop()
    loop.add_trip_limit(grow.reshape(number(grow, x, grow.size(x))), trt.TripLimit.COUNT)
    rows = [grow.reshape(loop.add_iterator(x, 0, flag).get_output(0), 1) for flag in (True, False)]
    conditional = grow.network.add_if_conditional()
    conditional.set_condition(grow.combine(counter(grow.network, loop), grow.fixed(np.int32(1)), Op.LESS))
    element = conditional.add_output(*grow.chance.sample(rows, 2)).get_output(0)
    state = loop.add_recurrence(x)
    state.keeps_shape = False
    state.set_input(1, grow.concatenated([element, state.get_output(0)], 0))
    output = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    return settled(grow, output, grow.size(x) + 2)


@draws
def carried_sequence(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """A loop-carried sequence, to which each iteration appends a number of it."""
    x = grow.reshape(grow.among(tensor, LISTED), grow.size(tensor))
    loop = grow.network.add_loop()
    loop.add_trip_limit(grow.fixed(np.int64(grow.between(1, 3))), trt.TripLimit.COUNT)
    state = loop.add_recurrence(grow.network.add_sequence([x], x.dtype).get_output(0))
    now = state.get_output(0)
    last = grow.network.add_sequence_at(now, grow.fixed(np.int64(-1))).get_output(0)
    turned = grow.network.add_slice(last, (grow.size(x) - 1,), (grow.size(x),), (-1,)).get_output(0)
    place = grow.fixed(np.int64(0)) if grow.coin() else None
    state.set_input(1, grow.network.add_sequence_insert(now, turned, place).get_output(0))
    output = loop.add_loop_output(now, trt.LoopOutput.LAST_VALUE).get_output(0)
    has_axis = grow.coin()
    joined = grow.network.add_sequence_concatenation(output, 0, has_axis).get_output(0)
    return settled(grow, joined, *([2, grow.size(x)] if has_axis else [2 * grow.size(x)]))


@draws
def differing_branches(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """A conditional of branches with different lengths."""
    x = grow.reshape(tensor, grow.size(tensor))
    conditional = grow.network.add_if_conditional()
    flag = number(grow, x, 1)
    condition = grow.fixed(np.bool_(grow.coin())) if grow.coin() else grow.cast(grow.reshape(flag), trt.bool)
    conditional.set_condition(condition)
    entered = conditional.add_input(x).get_output(0)
    pair = grow.chance.sample([entered, grow.concatenated([entered, x], 0)], 2)
    return settled(grow, conditional.add_output(*pair).get_output(0), grow.size(x) + 1)


@draws
def selected_boxes(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """The boxes that remain of some that overlap, in either format."""
    count = grow.size(tensor)
    boxes = np.float32([[2 * index, 0, 3, 3] for index in range(count)])
    layer = grow.network.add_nms(
        grow.fixed(boxes[None]), grow.reshape(grow.small(tensor), 1, count, 1), grow.fixed(np.int32(grow.between(1, 3)))
    )
    layer.bounding_box_format = grow.choose(*trt.BoundingBoxFormat)
    layer.set_input(3, grow.fixed(np.float32(grow.choose(0.25, 0.75))))
    layer.set_input(4, grow.fixed(np.float32(grow.between(-2, 2))))
    return settled(grow, layer.get_output(0), 3, 3)


@draws
def plugin_on_the_host(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """The double, or the indices of what is not zero."""
    x = grow.with_axis(grow.small(tensor))
    if grow.coin():
        return grow.network.add_plugin_v3([x], [], Plugin()).get_output(0)
    layer = grow.network.add_plugin_v3([x], [], NonZero())
    return settled(grow, layer.get_output(0), 3, len(x.shape)) if grow.coin() else layer.get_output(1)


@draws
def maybe_absent(grow: Kinds, tensor: ITensor, pool: Pool) -> ITensor:
    """Whether an optional value that one branch of a conditional leaves out is there."""
    x = grow.among(tensor, LISTED)
    conditional = grow.network.add_if_conditional()
    conditional.set_condition(grow.cast(grow.reshape(number(grow, x, 1)), trt.bool))
    there = grow.network.add_optional(x).get_output(0)
    absent = grow.network.add_optional(None, x.dtype, tuple(x.shape)).get_output(0)
    held = conditional.add_output(*grow.chance.sample([there, absent], 2)).get_output(0)
    return grow.network.add_optional_has(held).get_output(0)
