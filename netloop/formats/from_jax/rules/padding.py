"""Padding."""

from collections.abc import Sequence
from typing import Any

from jax import lax

from netloop.formats.from_jax.indices import differs
from netloop.formats.from_jax.rules import EquationCall, on_parts, primitive
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import SampleMode


@primitive("pad")
def pad(call: EquationCall, x: ITensor, value: ITensor) -> ITensor:
    """Elements of a value before, after and between those of the tensor; negative widths crop."""
    config = call.params["padding_config"]
    for axis, (_, _, between) in enumerate(config):
        if int(between):
            x = spread(call, x, axis, int(between) + 1, value)
    after = call.result.shape
    axes = [axis for axis, value in enumerate(config) if any(differs(width, 0) for width in value[:2])]
    if not axes:
        return x
    before = call.lengths([config[axis][0] for axis in axes])
    starts: list[Length] = [-length if isinstance(length, int) else call.make.sub(0, length) for length in before]
    lengths = call.lengths([after[axis] for axis in axes])
    return filled(call, x, starts, lengths, axes, value)


@on_parts("pad")
def _padded(a: Any, b: Any, c: Any, d: Any, *, padding_config: Any) -> Any:
    return lax.pad(a, c, padding_config), lax.pad(b, d, padding_config)


def filled(
    call: EquationCall, x: ITensor, first: Sequence[Length], sizes: Sequence[Length], axes: Sequence[int], fill: ITensor
) -> ITensor:
    """A slice with a value outside of the tensor."""
    constant = call.facts.scalar_of(fill)
    outside = None if constant is not None and constant == 0 else fill
    return call.make.slice(x, first, sizes, [1] * len(axes), axes, SampleMode.FILL, outside)


def spread(call: EquationCall, x: ITensor, axis: int, step: int, value: ITensor) -> ITensor:
    """The elements of an axis at every ``step``-th place, with a value between them."""
    make = call.make
    lengths = [make.length(x, index) for index in range(x.type.rank)]
    wide = make.expand_dims(x, [axis + 1])
    wide = filled(call, wide, [0], [step], [axis + 1], value)
    count = make.times(lengths[axis], step)
    joined = make.reshape(wide, [*lengths[:axis], count, *lengths[axis + 1 :]])
    used = count - step + 1 if isinstance(count, int) else make.sub(count, step - 1)
    if isinstance(used, int):
        return make.slice(joined, [0], [max(used, 0)], axes=[axis])
    return make.slice(joined, [0], [make.maximum(used, 0)], axes=[axis])
