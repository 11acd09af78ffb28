"""Shapes, transposes and joined tensors."""

from netloop.formats.from_jax.patterns import kept_reduction, transposed_again, transposed_einsum
from netloop.formats.from_jax.rules import EquationCall, primitive
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor


def own_axes(call: EquationCall, x: ITensor) -> list[Length]:
    """The lengths of the axes of a tensor after those of the operand: the words of random keys."""
    return [call.make.length(x, axis) for axis in range(len(call.operand(0).shape), x.type.rank)]


@primitive("broadcast_in_dim", broadcasts=True)
def broadcast_in_dim(call: EquationCall, x: ITensor, *lengths: ITensor) -> ITensor:
    """Axes in their places among new ones; layers that broadcast by themselves read this without a layer of its own."""
    shape, places = call.result.shape, call.ints("broadcast_dimensions")
    if x.type.rank == 0 and call.operand(0).shape != ():
        return x
    if not places:
        return x if x.type.rank == 0 else call.make.expand_dims(x, range(len(shape)))
    axes = [axis for axis in range(len(shape)) if axis not in places]
    return kept_reduction(call.make, x, axes) or call.make.expand_dims(x, axes)


@primitive("reshape", moves=True)
def reshape(call: EquationCall, x: ITensor, *lengths: ITensor) -> ITensor:
    """The elements in another shape; with ``dimensions``, those of the tensor with its axes in this order."""
    before, after = call.operand(0).shape, call.result.shape
    order = call.params["dimensions"]
    if order is not None:
        x = call.make.transpose(x, [*map(int, order), *range(len(order), x.type.rank)])
        before = tuple(before[axis] for axis in order)
    if before == after:
        return x
    kept = [length for length in after if not (isinstance(length, int) and length == 1)]
    if tuple(kept) == tuple(before) and x.type.rank == len(before):
        return call.make.expand_dims(x, _ones(before, after))
    return call.make.reshape(x, [*call.lengths(after), *own_axes(call, x)])


def _ones(before: tuple[Length, ...], after: tuple[Length, ...]) -> list[int]:
    """The axes of length 1 that a shape has more than another one."""
    return [axis for axis, length in enumerate(after) if isinstance(length, int) and length == 1]


@primitive("squeeze", moves=True)
def squeeze(call: EquationCall, x: ITensor) -> ITensor:
    """The tensor without some axes of length 1; of a slice at a dynamic place, a gather."""
    picked = call.facts.picked.get(x)
    if picked is not None and call.ints("dimensions") == [picked[2]]:
        return call.make.gather(*picked)
    return call.make.squeeze(x, call.ints("dimensions"))


@primitive("transpose", moves=True, broadcasts=True)
def transpose(call: EquationCall, x: ITensor) -> ITensor:
    """The axes in another order."""
    order = call.ints("permutation")
    if x.type.rank == len(order):
        result = transposed_einsum(call.make, x, order) or transposed_again(call.make, x, order)
        if result is not None:
            return result
    return call.make.transpose(x, [*order, *range(len(order), x.type.rank)])


@primitive("concatenate")
def concatenate(call: EquationCall, *parts: ITensor) -> ITensor:
    """Tensors joined along an axis."""
    return call.make.concat(parts, int(call.params["dimension"]))


@primitive("rev", moves=True)
def reverse(call: EquationCall, x: ITensor) -> ITensor:
    """The axes from their ends."""
    return call.make.backwards(x, call.ints("dimensions"))


@primitive("stack")
def stack(call: EquationCall, *parts: ITensor) -> ITensor:
    """Tensors joined along a new axis."""
    return call.make.stack(parts, int(call.params.get("axis", 0)))


@primitive("unstack")
def unstack(call: EquationCall, x: ITensor) -> list[ITensor]:
    """The slices of an axis."""
    axis = int(call.params.get("axis", 0))
    count = len(call.equation.outvars)
    return [call.make.squeeze(call.make.slice(x, [at], [1], axes=[axis]), [axis]) for at in range(count)]
