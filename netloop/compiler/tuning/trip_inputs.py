"""Numbers for the inputs that decide how often loops run, where nobody gives any: with 0 or 1 nothing is exercised."""

from collections.abc import Iterable, Mapping, Sequence

import jax.numpy as jnp
import numpy as np

from netloop.compiler.lower.loop.facts import known_count
from netloop.compiler.passes.rewriter import operand
from netloop.model.graph import ITensor, TypeTable
from netloop.model.layers.conditional import IIfConditionalInputLayer, IIfConditionalOutputLayer
from netloop.model.layers.gather import IGatherLayer
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.pointwise import ICastLayer, IElementWiseLayer, IIdentityLayer, ISelectLayer, IUnaryLayer
from netloop.model.layers.rearrange import IConcatenationLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
from netloop.model.layers.reduce import IReduceLayer
from netloop.model.layers.slice import ISliceLayer
from netloop.model.network import INetworkDefinition
from netloop.values.enums import GatherMode, TripLimit
from netloop.values.types import UNKNOWN, Array, TensorType

TRIPS = 64
"""The iterations of a loop whose COUNT is an input."""
OTHERS = (32, 16, 8, 4, 2, 128, 256, 512, 1000, 1)
"""Numbers to try if ``TRIPS`` does not fit, as a sequence is shorter or a count is not the input itself."""

LONGEST = 1000
"""The most iterations of a loop for which made-up inputs are used: with them, a WHILE loop may never end."""

ALL = None
FOLLOWED: dict[type, int | None] = {
    IIdentityLayer: 1, ICastLayer: 1, IUnaryLayer: 1, IElementWiseLayer: ALL, ISelectLayer: ALL, IReduceLayer: 1,
    IShuffleLayer: 1, ISqueezeLayer: 1, IUnsqueezeLayer: 1, ISliceLayer: 1, IGatherLayer: 1, IConcatenationLayer: ALL,
    IRecurrenceLayer: ALL, IIteratorLayer: 1, ILoopOutputLayer: 1, IIfConditionalInputLayer: 1,
    IIfConditionalOutputLayer: ALL,
}  # fmt: skip
"""The layers whose results are made of numbers that they are given, and how many of their first inputs have these."""


def inputs_behind(tensor: ITensor) -> set[ITensor]:
    """The inputs of a network of which a tensor is computed by moves, arithmetic and comparisons."""
    tensors, seen, stack = set[ITensor](), set[ITensor](), [tensor]
    while stack:
        each = stack.pop()
        if each in seen:
            continue
        seen.add(each)
        if each.is_network_input:
            tensors.add(each)
        elif type(each.producer) in FOLLOWED and each.producer is not None:
            stack += filter(None, each.producer.inputs[: FOLLOWED[type(each.producer)]])
    return tensors


def trip_inputs(network: INetworkDefinition, shapes: Mapping[ITensor, Sequence[int]]) -> dict[ITensor, Array]:
    """Arrays for the inputs that decide how often loops run: 64 everywhere, or another number if that does not fit.

    These are the inputs of which a COUNT is computed, and the integers and bools of which a WHILE is. A number fits if
    each COUNT that it decides is from 1 to the room of its loop, and if it is a valid index where it is one.

    Args:
        network: the network.
        shapes: the shape of each input that is a tensor.
    """
    arrays = dict[ITensor, Array]()
    for tensor, loops in _deciding(network).items():
        if tensor in shapes:
            arrays[tensor] = _fitting(network, tensor, loops, shapes, arrays)
    return arrays


def _deciding(network: INetworkDefinition) -> dict[ITensor, list[ILoop]]:
    """The inputs that decide trip counts, in order, each with the loops."""
    loops: dict[ITensor, list[ILoop]] = {}
    for loop in network.loops:
        behind = set[ITensor]()
        for kind in TripLimit:
            limit = loop.limit(kind)
            behind |= (
                {tensor for tensor in inputs_behind(limit.tensor(0)) if _may_count(tensor, kind)} if limit else set()
            )
        for tensor in behind:
            loops.setdefault(tensor, []).append(loop)
    return {tensor: loops[tensor] for tensor in network.inputs if tensor in loops}


def _may_count(tensor: ITensor, kind: TripLimit) -> bool:
    """Whether an input behind a limit may be a number of iterations, and not a tolerance or a state."""
    of = tensor.type
    if not isinstance(of, TensorType) or of.is_string:
        return False
    # is_float is false for types of 8 bits
    return not jnp.issubdtype(of.dtype, jnp.floating) or (kind is TripLimit.COUNT and of.volume == 1)


def _fitting(
    network: INetworkDefinition,
    tensor: ITensor,
    loops: Iterable[ILoop],
    shapes: Mapping[ITensor, Sequence[int]],
    others: Mapping[ITensor, Array],
) -> Array:
    """An array of the first number that fits, among those of the inputs before."""
    rows = [layer for layer in network.layers if isinstance(layer, IGatherLayer) and _is_index(tensor, layer)]
    result: Array = np.ones(shapes[tensor], tensor.type.dtype)
    dtype = tensor.type.dtype
    largest = jnp.iinfo(dtype).max if jnp.issubdtype(dtype, jnp.integer) else LONGEST
    for number in (other for other in (TRIPS, *OTHERS) if other <= largest):
        result = np.full(shapes[tensor], True if tensor.type.is_bool else number, tensor.type.dtype)
        types = _types(network, shapes, {**others, tensor: result})
        is_valid = all(_is_within(number, row, types) for row in rows)
        if is_valid and all(_runs(number, tensor, loop, types) for loop in loops):
            break
    return result


def _types(
    network: INetworkDefinition, shapes: Mapping[ITensor, Sequence[int]], arrays: Mapping[ITensor, Array]
) -> TypeTable:
    tensor_types = {tensor: tensor.type for tensor in network.inputs}
    tensor_types |= {key: TensorType(key.type.dtype, tuple(shape)) for key, shape in shapes.items()}
    return TypeTable(tensor_types | {key: TensorType.of(array) for key, array in arrays.items()})


def _is_index(tensor: ITensor, layer: IGatherLayer) -> bool:
    return not tensor.type.is_bool and tensor in inputs_behind(operand(layer, 1))


def _is_within(number: int, layer: IGatherLayer, types: TypeTable) -> bool:
    """Whether a number is an index of the rows that a layer gathers."""
    data, indices = (types.of(operand(layer, position)) for position in (0, 1))
    if not isinstance(data, TensorType) or not isinstance(indices, TensorType):
        return True
    if not data.rank:
        return True
    lengths = data.shape if layer.mode is GatherMode.ND else [data.shape[layer.axis % data.rank]]
    return max(indices.ints() or [number]) < min((length for length in lengths if length != UNKNOWN), default=LONGEST)


def _runs(number: int, tensor: ITensor, loop: ILoop, types: TypeTable) -> bool:
    """Whether a loop makes an iteration, and no more than it has room for, if ``number`` is that of an input."""
    limit, count = loop.limit(TripLimit.COUNT), None
    if limit is not None and tensor in inputs_behind(limit.tensor(0)):
        count = known_count(loop, types) if isinstance(types.of(limit.tensor(0)), TensorType) else None
    return 1 <= (number if count is None else count) <= _room(loop, types)


def _room(loop: ILoop, types: TypeTable) -> int:
    """The most iterations for which a loop has elements to read and rows to write, as far as types show."""
    room = [LONGEST]
    for iterator in loop.boundary(IIteratorLayer):
        read = types.of(iterator.tensor(0))
        if isinstance(read, TensorType) and read.rank > iterator.axis and read.shape[iterator.axis] >= 0:
            room.append(read.shape[iterator.axis])
    for output in loop.boundary(ILoopOutputLayer):
        rows = types.of(output.tensor(1)) if output.stacks and len(output.inputs) > 1 else None
        if isinstance(rows, TensorType) and rows.ints():
            room.append((rows.ints() or [0])[0])
    return min(room)
