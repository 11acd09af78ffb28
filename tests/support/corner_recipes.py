"""Recipes of what other recipes hardly ever draw together: corners in which one fault alone would show.

Each takes a tensor, on which its result depends. Those that may fail take a number from 2 to 5 instead, int32[], known
only in the call, and mostly fail if it is above 3.
"""

from collections.abc import Callable

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import numpy_type
from tests.support.failure_recipes import chosen, plus, total
from tests.support.host_recipes import number
from tests.support.layer_specs import NONE, Kinds, Unary
from tests.support.networks import counted, counter, last, stacked
from tests.support.tensor_drawing import Op

Corner = Callable[[Kinds, ITensor], ITensor]

CORNERS: list[Corner] = []
RISKY_CORNERS: list[Corner] = []
MORE_CORNERS: list[Corner] = []
MORE_RISKY_CORNERS: list[Corner] = []
"""Corners of networks from number 100 on, in addition: what the first hundred show is measured without them."""
LARGE = 1 << 30


def draws(corner: Corner) -> Corner:
    CORNERS.append(corner)
    return corner


def fails(corner: Corner) -> Corner:
    RISKY_CORNERS.append(corner)
    return corner


def also_draws(corner: Corner) -> Corner:
    MORE_CORNERS.append(corner)
    return corner


def also_fails(corner: Corner) -> Corner:
    MORE_RISKY_CORNERS.append(corner)
    return corner


# ---------------------------------------------------------------------------- element types


@draws
def read_a_sign_as_a_bit(grow: Kinds, tensor: ITensor) -> ITensor:
    """Which whole numbers are large when floats of them are read without a sign and become floats again."""
    x = grow.small(tensor)
    whole = grow.cast(grow.joined(x, grow.fixed(np.float32([-2, 3]))), trt.int32)
    way = grow.choose(grow.network.add_cast, grow.network.add_bit_cast)
    unsigned = way(whole, trt.uint32).get_output(0)
    floats = [grow.cast(unsigned, dtype) for dtype in (trt.float32, trt.float64, trt.bfloat16)]
    return grow.joined(*(grow.combine(float_, grow.filled(float_, LARGE), Op.GREATER) for float_ in floats))


@draws
def power_of_two_of_a_constant(grow: Kinds, tensor: ITensor) -> ITensor:
    """What constants of any type are as powers of two, or that they are none."""
    made = []
    for dtype in grow.chance.sample([trt.float32, trt.float16, trt.int8, trt.uint8, trt.fp8, trt.int16, trt.bool], 3):
        power = grow.cast(grow.cast(grow.fixed(np.int32([-70000, -3, 0, 1, 6])), dtype), trt.e8m0)
        wide = grow.cast(power, trt.float32)
        is_nan = grow.network.add_unary(wide, Unary.ISNAN).get_output(0)
        inside = grow.clip(wide, -LARGE, LARGE)
        made.append(grow.network.add_select(is_nan, grow.filled(wide, 5), inside).get_output(0))
    return grow.stir(grow.tame(grow.joined(*made)), tensor)


@draws
def quantize_ties(grow: Kinds, tensor: ITensor) -> ITensor:
    """Odd numbers by a scale of 2."""
    x = grow.joined(grow.small(tensor), grow.fixed(np.float32([1, 3, 5, -1, -3, -5])))
    two = grow.fixed(np.float32(2))
    whole = grow.network.add_quantize(x, two, grow.choose(trt.int8, trt.int4)).get_output(0)
    return grow.network.add_dequantize(whole, two, trt.float32).get_output(0)


@draws
def quantize_blocks(grow: Kinds, tensor: ITensor) -> ITensor:
    """Blocks of two numbers along either axis, each with a scale of its own."""
    row = grow.reshape(grow.part(grow.joined(grow.small(tensor), grow.fixed(np.float32([1, 2, 3, -4]))), 0, 0, 4), 1, 4)
    rows = grow.concatenated([row, grow.combine(row, grow.filled(row, 3), Op.PROD)] * 2, 0)
    shape = grow.next_of((4, 2), (2, 4))
    scale = grow.fixed(np.float32(2.0) ** np.resize(np.int32([-1, 0, 1]), shape).astype(np.float32))
    whole = grow.network.add_quantize(rows, scale, grow.choose(trt.int8, trt.int4, trt.fp8)).get_output(0)
    return grow.network.add_dequantize(whole, scale, trt.float32).get_output(0)


# ---------------------------------------------------------------------------- order


@draws
def first_of_equals(grow: Kinds, tensor: ITensor) -> ITensor:
    """The place of the one top element, which is there twice."""
    x = grow.joined(*[grow.small(tensor)] * 2)
    kinds = trt.TopKOperation.MAX, trt.TopKOperation.MIN
    return grow.joined(*(grow.network.add_topk(x, kind, 1, 1).get_output(1) for kind in kinds))


@draws
def smallest_unsigned(grow: Kinds, tensor: ITensor) -> ITensor:
    """The smallest of unsigned integers, of which one is 0."""
    dtype = grow.choose(trt.uint8, trt.uint16, trt.uint32, trt.uint64)
    x = grow.joined(grow.fixed(np.array([2, 0, 1], numpy_type(dtype))), grow.cast(grow.small(tensor, trt.uint8), dtype))
    layer = grow.network.add_topk(x, trt.TopKOperation.MIN, 2, 1)
    return grow.joined(layer.get_output(1), grow.cast(layer.get_output(0), trt.int32))


# ---------------------------------------------------------------------------- loops that passes look for


def whole_numbers(grow: Kinds, *shape: int) -> ITensor:
    """Whole floats of which all sums of products are exact."""
    return grow.constant(trt.float32, shape)


def product(grow: Kinds, a: ITensor, b: ITensor) -> ITensor:
    return grow.network.add_matrix_multiply(a, NONE, b, NONE).get_output(0)


@draws
def product_as_a_next_value(grow: Kinds, tensor: ITensor) -> ITensor:
    """A state that is the product of the iteration before, which needs no state."""
    loop = counted(grow.network, 3)
    rows = whole_numbers(grow, 3, 2, 2)
    x = loop.add_iterator(grow.combine(rows, grow.one(tensor, rows), Op.SUM)).get_output(0)
    before = loop.add_recurrence(whole_numbers(grow, 2, 2))
    before.set_input(1, product(grow, x, whole_numbers(grow, 2, 2)))
    return grow.tame(stacked(loop, before.get_output(0), grow.fixed(np.int32(3))))


@draws
def rows_from_the_last(grow: Kinds, tensor: ITensor) -> ITensor:
    """A buffer of which each iteration writes a row, the last one first and then from the first one on."""
    loop = counted(grow.network, 3)
    place = grow.reshape(counter(grow.network, loop, grow.choose(-1, -1, 0)), 1, 1)
    rows = whole_numbers(grow, 3, 2)
    row = loop.add_iterator(grow.combine(rows, grow.one(tensor, rows), Op.SUM)).get_output(0)
    buffer = loop.add_recurrence(grow.constant(trt.float32, (3, 2)))
    update = grow.reshape(row, 1, 2)
    written = grow.network.add_scatter(buffer.get_output(0), place, update, trt.ScatterMode.ND).get_output(0)
    buffer.set_input(1, written)
    return grow.tame(last(loop, buffer.get_output(0)))


@draws
def einsum_of_a_narrow_state(grow: Kinds, tensor: ITensor) -> ITensor:
    """A sum over the shorter axis of a state, to which each iteration adds an outer product."""
    loop, shapes = counted(grow.network, 3), ((3, 1, 4, 1), (3, 1, 1, 3))
    column, row = (loop.add_iterator(whole_numbers(grow, *shape)).get_output(0) for shape in shapes)
    first = whole_numbers(grow, 1, 4, 3)
    state = loop.add_recurrence(grow.combine(first, grow.one(tensor, first), Op.SUM))
    outer = grow.network.add_einsum([grow.reshape(column, 1, 4), grow.reshape(row, 1, 3)], "ab, ac -> abc").get_output(
        0
    )
    after = grow.combine(state.get_output(0), outer, Op.SUM)
    state.set_input(1, after)
    y = grow.network.add_einsum([after, row], "abc,adc->ab").get_output(0)
    return grow.tame(stacked(loop, y, grow.fixed(np.int32(3))))


@also_draws
def slices_of_the_last_axis(grow: Kinds, tensor: ITensor) -> ITensor:
    """The matrices along the last of three axes, of which the others are equally long."""
    loop, cube = counted(grow.network, 3), whole_numbers(grow, 2, 2, 3)
    matrix = loop.add_iterator(grow.combine(cube, grow.one(tensor, cube), Op.SUM), 2).get_output(0)
    return grow.tame(stacked(loop, matrix, grow.fixed(np.int32(3))))


@draws
def every_other_row(grow: Kinds, tensor: ITensor) -> ITensor:
    """The rows of a table at a counter that counts by twos."""
    loop = counted(grow.network, 3)
    place = loop.add_recurrence(grow.fixed(np.int32(grow.choose(0, 1))))
    place.set_input(1, grow.combine(place.get_output(0), grow.fixed(np.int32(2)), Op.SUM))
    rows = whole_numbers(grow, 6, 2)
    table = grow.combine(rows, grow.one(tensor, rows), Op.SUM)
    row = grow.network.add_gather(table, place.get_output(0), 0).get_output(0)
    return grow.tame(stacked(loop, row, grow.fixed(np.int32(3))))


@draws
def more_in_each_iteration(grow: Kinds, tensor: ITensor) -> ITensor:
    """Sums of more numbers in each iteration, whose number decides a shape."""
    loop = counted(grow.network, 3)
    numbers = grow.cast(grow.joined(grow.small(tensor), grow.fixed(np.float32([1, 2, 4]))), trt.int32)
    made = first_numbers(grow, numbers, counter(grow.network, loop, 1))
    return stacked(loop, made, grow.fixed(np.int32(3)))


@draws
def every_other_from_a_start(grow: Kinds, tensor: ITensor) -> ITensor:
    """Every second number from a start that only a run knows, forwards or backwards."""
    x = grow.joined(grow.fixed(np.float32([1, 2, 3, -1, -2, -3, 4])), grow.small(tensor))
    start, stride = number(grow, tensor, 1), grow.choose(2, -2)
    layer = grow.network.add_slice(x, (0,), (3,), (stride,))
    layer.set_input(1, plus(grow, start, 0 if stride > 0 else 5))
    return layer.get_output(0)


@draws
def nearest_pixels(grow: Kinds, tensor: ITensor) -> ITensor:
    """Images of fewer and of more columns, of the nearest pixels in each way to place them."""
    row = grow.joined(grow.fixed(np.float32([1, 2, 3, 4, -1])), grow.small(tensor))
    image, made = grow.reshape(row, 1, 1, 1, grow.size(row)), []
    for columns in (3, grow.size(row) + 2):
        layer = grow.network.add_resize(image)
        layer.shape, layer.resize_mode = (1, 1, 1, columns), trt.InterpolationMode.NEAREST
        layer.coordinate_transformation = trt.ResizeCoordinateTransformation.HALF_PIXEL
        layer.nearest_rounding = grow.choose(*trt.ResizeRoundMode)
        made.append(layer.get_output(0))
    return grow.joined(*made)


@draws
def products_in_order(grow: Kinds, tensor: ITensor) -> ITensor:
    """What is made of two products of each of two tensors: what they share comes first or second, and in any order."""
    x = grow.combine(ones := whole_numbers(grow, 2, 4), grow.one(tensor, ones), Op.SUM)
    z = grow.combine(x, grow.filled(x, 1), Op.SUM)
    a, b = ([product(grow, tensor, whole_numbers(grow, 4, 3)) for _ in range(2)] for tensor in (x, z))
    factor = grow.one(tensor, x)
    made = []
    for place in (0, 1):
        made.append(grow.combine(whole_numbers(grow, 1, 3), a[place], Op.SUB))
        made.append(grow.combine(a[place], factor, Op.PROD))
        made.append(grow.combine(a[place], b[1 - place], Op.SUM))
    negated = [grow.network.add_unary(value, Unary.NEG).get_output(0) for value in made]
    return grow.tame(grow.joined(*negated))


# ---------------------------------------------------------------------------- failures


def corner(grow: Kinds, tensor: ITensor, recipe: Corner) -> ITensor:
    """A corner that may fail, for a number from 2 to 5 of which most do not."""
    return recipe(grow, plus(grow, grow.reshape(number(grow, tensor, 2)), grow.choose(2, 2, 3)))


def rows_up_to(grow: Kinds, n: ITensor) -> ITensor:
    """A sum of as many rows as there are iterations; above 3 there are too few."""
    loop = counted(grow.network, n)
    state = loop.add_recurrence(grow.fixed(np.int32(0)))
    row = loop.add_iterator(grow.constant(trt.int32, (3,))).get_output(0)
    state.set_input(1, grow.combine(state.get_output(0), row, Op.SUM))
    return last(loop, state.get_output(0))


def below(grow: Kinds, n: ITensor, most: int) -> ITensor:
    return grow.combine(n, grow.filled(n, most), Op.LESS)


@fails
def promise_about_an_entry(grow: Kinds, n: ITensor) -> ITensor:
    """An assertion about what enters a branch."""
    conditional = grow.network.add_if_conditional()
    conditional.set_condition(grow.combine(n, grow.filled(n, grow.between(1, 3)), Op.GREATER))
    inside = conditional.add_input(n).get_output(0)
    grow.network.add_assertion(below(grow, inside, 4), "it is at most 3")
    return conditional.add_output(plus(grow, inside, 1), grow.fixed(np.int32(0))).get_output(0)


@fails
def entry_that_failed(grow: Kinds, n: ITensor) -> ITensor:
    """What failed enters a branch."""
    conditional = grow.network.add_if_conditional()
    conditional.set_condition(grow.combine(n, grow.filled(n, grow.between(1, 4)), Op.GREATER))
    inside = conditional.add_input(rows_up_to(grow, n)).get_output(0)
    return conditional.add_output(plus(grow, inside, 1), grow.fixed(np.int32(0))).get_output(0)


@fails
def row_after_the_last(grow: Kinds, n: ITensor) -> ITensor:
    """In a branch, the element of an iterator after the last iteration, past an end of its axis."""
    loop = counted(grow.network, 3)
    past = last(loop, loop.add_iterator(grow.constant(trt.int32, (3,)), 0, grow.coin()).get_output(0))
    return chosen(grow, below(grow, n, 4), plus(grow, n, 1), plus(grow, past, 1))


@fails
def first_of_the_stacked(grow: Kinds, n: ITensor) -> ITensor:
    """Stacked numbers of which only the first can fail."""
    loop = counted(grow.network, 3)
    less = grow.combine(n, counter(grow.network, loop), Op.SUB)
    return total(grow, stacked(loop, rows_up_to(grow, less), grow.fixed(np.int32(3))))


@fails
def promise_about_a_constant_state(grow: Kinds, n: ITensor) -> ITensor:
    """An assertion about a state that never changes, in a loop that may make no iteration, around another loop."""
    outer, inner = counted(grow.network, plus(grow, n, -grow.between(3, 5))), counted(grow.network, 2)
    stays = outer.add_recurrence(n)
    stays.set_input(1, stays.get_output(0))
    around, within = counter(grow.network, outer), counter(grow.network, inner)
    inside = inner.add_recurrence(stays.get_output(0))
    inside.set_input(1, inside.get_output(0))
    both = grow.combine(grow.combine(around, within, Op.SUM), inside.get_output(0), Op.LESS)
    grow.network.add_assertion(both, "both are below it")
    grow.network.add_assertion(below(grow, stays.get_output(0), 4), "it stays below 4")
    return last(outer, around)


@fails
def promise_of_the_last_iteration(grow: Kinds, n: ITensor) -> ITensor:
    """An assertion that fails in the fourth iteration, which may be the last one."""
    loop = counted(grow.network, n)
    now = counter(grow.network, loop)
    grow.network.add_assertion(below(grow, now, 3), "it is at most 2")
    return last(loop, now)


@fails
def promise_after_the_last_iteration(grow: Kinds, n: ITensor) -> ITensor:
    """An assertion that holds in each iteration that is made, and not in the next one, of which a sum is read."""
    loop = counted(grow.network, n)
    now = counter(grow.network, loop)
    grow.network.add_assertion(grow.combine(now, n, Op.LESS), "there is such an iteration")
    return last(loop, plus(grow, first_numbers(grow, grow.fixed(np.arange(9, dtype=np.int32)), now), 1))


@also_fails
def product_with_what_failed(grow: Kinds, n: ITensor) -> ITensor:
    """Sums of rows times a matrix that failed, which is large enough for a product of all rows before the loop."""
    loop, size = counted(grow.network, 4), 32
    x = loop.add_iterator(whole_numbers(grow, 4, 1, size)).get_output(0)
    failed = grow.reshape(grow.cast(rows_up_to(grow, plus(grow, n, 2)), trt.float32), 1, 1)
    matrix = grow.combine(whole_numbers(grow, size, size), failed, Op.SUM)
    state = loop.add_recurrence(grow.fixed(np.zeros((1, size), np.float32)))
    state.set_input(1, grow.combine(state.get_output(0), product(grow, x, matrix), Op.SUM))
    return total(grow, grow.cast(grow.reshape(last(loop, state.get_output(0)), size), trt.int32))


@also_fails
def inner_promise_after_the_last_iteration(grow: Kinds, n: ITensor) -> ITensor:
    """An assertion in an inner loop, whose sum is read after the last iteration of the outer one."""
    outer, inner = counted(grow.network, n), counted(grow.network, 2)
    both = grow.combine(counter(grow.network, outer), counter(grow.network, inner), Op.SUM)
    grow.network.add_assertion(grow.combine(both, plus(grow, n, 1), Op.LESS), "there is such an outer iteration")
    return last(outer, last(inner, first_numbers(grow, grow.fixed(np.arange(9, dtype=np.int32)), both)))


def first_numbers(grow: Kinds, x: ITensor, number: ITensor) -> ITensor:
    """The sum of the first numbers of a vector, as many as a number says: a shape that only a run knows."""
    layer = grow.network.add_slice(x, (0,), (0,), (1,))
    layer.set_input(2, grow.reshape(number, 1))
    return total(grow, layer.get_output(0))


@fails
def matrix_past_an_end(grow: Kinds, n: ITensor) -> ITensor:
    """A row times one of two matrices; the one that a loop reads past the end of an axis is not always taken."""
    outer, inner = counted(grow.network, n), counted(grow.network, 2)
    read = outer.add_iterator(whole_numbers(grow, 3, 2, 2)).get_output(0)
    flag = below(grow, counter(grow.network, outer), 3)
    x = inner.add_iterator(whole_numbers(grow, 2, 2, 2)).get_output(0)
    made = []
    for matrix in grow.chance.sample([read, whole_numbers(grow, 2, 2)], 2):
        state = inner.add_recurrence(grow.fixed(np.zeros((2, 2), np.float32)))
        state.set_input(1, grow.combine(state.get_output(0), product(grow, x, matrix), Op.SUM))
        made.append((matrix is not read, last(inner, state.get_output(0))))
    taken = chosen(grow, flag, *(value for _, value in sorted(made, key=lambda value: value[0])))
    rows = stacked(outer, grow.reshape(taken, 4), grow.fixed(np.int32(6)))
    return total(grow, grow.cast(grow.reshape(rows, 24), trt.int32))
