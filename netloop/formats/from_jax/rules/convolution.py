"""Convolutions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import lax

from netloop.formats.from_jax.call import ints
from netloop.formats.from_jax.rules import EquationCall, on_parts, primitive
from netloop.formats.from_jax.rules.padding import filled, spread
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.dims import Dims


@primitive("conv_general_dilated")
def convolution(call: EquationCall, x: ITensor, kernel: ITensor) -> ITensor:
    """A convolution; one with dilated input inserts zeros before, as the gradient of one with strides does."""
    params, make = call.params, call.make
    numbers, dtype = params["dimension_numbers"], call.dtype
    if 0 in (*x.type.shape, *kernel.type.shape):  # sums of nothing, which layers refuse
        return call.facts.whole(make.constant(np.zeros((), dtype)), call.result)
    x = make.cast(make.transpose(x, ints(numbers.lhs_spec)), dtype)
    kernel = make.cast(make.transpose(kernel, ints(numbers.rhs_spec)), dtype)
    groups = params["batch_group_count"]
    if groups > 1:
        x = _groups_of_channels(call, x, groups)
    zero = make.constant(np.zeros((), dtype))
    space = x.type.rank - 2
    for axis, step in enumerate(params["lhs_dilation"]):
        if step > 1:
            x = spread(call, x, 2 + axis, int(step), zero)
    padding = [tuple(call.lengths(param)) for param in params["padding"]]
    require(all(isinstance(length, int) for pair in padding for length in pair), "the padding is symbolic")
    x = _cropped(call, x, padding, zero)
    extra = 1 if space == 0 else 0
    if extra:
        x, kernel = make.expand_dims(x, [2]), make.expand_dims(kernel, [2])
    tensor = _convolved(call, x, kernel, padding, params["feature_group_count"] * groups)
    tensor = make.squeeze(tensor, [2]) if extra else tensor
    return make.transpose(tensor, np.argsort(ints(numbers.out_spec)).tolist())


def _cropped(call: EquationCall, x: ITensor, padding: Sequence[Any], zero: ITensor) -> ITensor:
    """The input without the elements that negative padding removes."""
    axes = [axis for axis, pair in enumerate(padding) if min(pair) < 0]
    if not axes:
        return x
    starts, sizes = [], []
    for axis in axes:
        before, after = (min(amount, 0) for amount in padding[axis])
        length = call.make.length(x, 2 + axis)
        starts.append(-before)
        cut = before + after
        sizes.append(length + cut if isinstance(length, int) else call.make.add(length, cut))
    return filled(call, x, starts, sizes, [2 + axis for axis in axes], zero)


def _convolved(call: EquationCall, x: ITensor, kernel: ITensor, padding: Sequence[Any], groups: int) -> ITensor:
    maps, _, *window = kernel.type.shape
    value = call.facts.array_of(kernel)
    none = np.zeros(0, kernel.type.dtype)
    layer = call.make.network.add_convolution_nd(x, maps, Dims(window), none if value is None else value, none)
    if value is None:
        layer.set_input(1, kernel)
    layer.num_groups = groups
    if padding:
        layer.stride_nd = Dims(call.ints("window_strides"))
        layer.dilation_nd = Dims(call.ints("rhs_dilation"))
        layer.pre_padding = Dims([max(before, 0) for before, _ in padding])
        layer.post_padding = Dims([max(after, 0) for _, after in padding])
    return call.make.output(layer)


def _groups_of_channels(call: EquationCall, x: ITensor, groups: int) -> ITensor:
    """Groups moved from the batch axis of an input, [g n, c, ..], to its channels, [n, g c, ..]."""
    make = call.make
    batch, channels, *space = (make.length(x, axis) for axis in range(x.type.rank))
    parts = make.reshape(x, [groups, make.part_of(batch, groups), channels, *space])
    order = [1, 0, *range(2, parts.type.rank)]
    return make.reshape(
        make.transpose(parts, order), [make.part_of(batch, groups), make.times(channels, groups), *space]
    )


@on_parts("conv_general_dilated")
def _convolution(a: Any, b: Any, c: Any, d: Any, **params: Any) -> Any:
    def product(x: Any, y: Any) -> Any:
        return lax.conv_general_dilated_p.bind(x, y, **(params | {"preferred_element_type": None}))

    return product(a, c) - product(b, d), product(a, d) + product(b, c)
