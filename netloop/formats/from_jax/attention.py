"""Attention: products of queries and keys, their softmax along the keys, and its products with the values.

The products may be scaled by a number, and masked by constants. Axes may have any order, and some of length 1 between
them, as ``jax.vmap`` and ``jax.nn.dot_product_attention`` leave them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netloop.formats.from_jax.activations import pair_of
from netloop.formats.from_jax.facts import Facts
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.matrix import IEinsumLayer, IMatrixMultiplyLayer
from netloop.model.layers.pointwise import ISelectLayer
from netloop.model.layers.rearrange import IShuffleLayer
from netloop.model.layers.reduce import ISoftMaxLayer
from netloop.values.enums import AttentionNormalizationOp, CausalMaskKind, ElementWiseOperation, MatrixOperation
from netloop.values.types import axes_of


@dataclass(frozen=True)
class Axis:
    """An axis of scores.

    Attributes:
        of: the axis of the first operand and the axis of the second one; None for an operand without such an axis.
        length: its length; -1 if it is unknown.
    """

    of: tuple[int | None, int | None]
    length: int


@dataclass(frozen=True)
class Scores:
    """Products of two tensors, scaled, and masked or not.

    Attributes:
        operands: the tensors.
        summed: the axes along which products are summed.
        axes: the axes.
        factor: the number that the products are multiplied by.
        mask: where they count, as bools, or the numbers that are added to them; None for no mask.
    """

    operands: tuple[ITensor, ITensor]
    summed: tuple[int, int]
    axes: tuple[Axis, ...]
    factor: float = 1.0
    mask: Any = None

    def swapped(self) -> "Scores":
        """The same, with the operands swapped."""
        axes = tuple(Axis((axis.of[1], axis.of[0]), axis.length) for axis in self.axes)
        return replace(self, operands=self.operands[::-1], summed=self.summed[::-1], axes=axes)


@dataclass(frozen=True)
class Sum:
    """The axes of one side of a sum of products: those that both sides have, and those that are summed."""

    batch: Sequence[int]
    summed: Sequence[int]


def attention(facts: Facts, shares: ITensor, sides: tuple[Sum, Sum], values: ITensor, is_first: bool) -> ITensor | None:
    """The attention whose last step is a sum of products of shares and values; None for any other sum.

    Args:
        facts: the facts about the tensors.
        shares: the operand that may be a softmax.
        sides: the axes of the shares, and those of the values.
        values: the values.
        is_first: whether the shares are the first operand, whose axes the result has first.
    """
    softmax = shares.producer
    own, other = sides
    if not isinstance(softmax, ISoftMaxLayer) or len(own.summed) != 1 or values.type.rank != len(other.batch) + 2:
        return None
    scores = _scores(facts, softmax.inputs[0])
    if scores is None or axes_of(softmax.axes, shares.type.rank) != tuple(own.summed):
        return None
    if scores.axes[own.summed[0]].of[0] is not None:
        scores = scores.swapped()
    axes = _score_axes(scores, own)
    if axes is None or not _is_alike(scores, values, own, other):
        return None
    return _layer(facts, scores, axes, sides, values, is_first)


@dataclass(frozen=True)
class ScoreAxes:
    """The axes of scores by what they count: batches and heads, queries, keys, and nothing (length 1)."""

    batch: list[int]
    query: int
    key: int
    spare: list[int]


def _score_axes(scores: Scores, own: Sum) -> ScoreAxes | None:
    """The axes of scores by what they count; None if they are no attention's."""
    (key,) = own.summed
    batch = [*own.batch]
    if scores.axes[key].of[0] is not None or scores.axes[key].of[1] is None or len(batch) > 2:
        return None
    if any(None in scores.axes[axis].of for axis in batch):
        return None
    rest = [axis for axis in range(len(scores.axes)) if axis not in (*batch, key)]
    if any(scores.axes[axis].of[1] is not None for axis in rest):
        return None
    long = [axis for axis in rest if scores.axes[axis].length != 1] or rest[-1:]
    return (
        ScoreAxes(batch, long[0], key, [operand for operand in rest if operand != long[0]]) if len(long) == 1 else None
    )


def _is_alike(scores: Scores, values: ITensor, own: Sum, other: Sum) -> bool:
    """Whether keys and values have the same shape, of known length on the axis of features."""
    query, key = scores.operands
    if not query.type.dtype == key.type.dtype == values.type.dtype:
        return False
    (free,) = {*range(values.type.rank)} - {*other.batch, *other.summed}
    features = key.type.shape[scores.summed[1]]
    return features > 0 and values.type.shape[free] == features and key.type.rank == len(own.batch) + 2


# ---------------------------------------------------------------------- scores


MOST_LAYERS = 8
"""The most layers between the products and their softmax."""


def _scores(facts: Facts, x: ITensor | None, most: int = MOST_LAYERS) -> Scores | None:
    """The products that a tensor holds, scaled, masked, and in another order of axes."""
    layer = None if x is None or most == 0 else x.producer
    match layer:
        case IMatrixMultiplyLayer():
            return _of_product(layer)
        case IEinsumLayer():
            return _of_einsum(layer)
        case ISelectLayer():
            return _masked(facts, _scores(facts, layer.inputs[1], most - 1), layer)
        case IShuffleLayer():
            return _transposed(_scores(facts, layer.inputs[0], most - 1), layer)
        case None:
            return None
        case _:
            return _scaled(facts, x, most - 1)


def _of_product(layer: IMatrixMultiplyLayer) -> Scores | None:
    a, b = layer.inputs
    ops = (layer.op0, layer.op1)
    if a is None or b is None or a.type.rank != b.type.rank or MatrixOperation.VECTOR in ops:
        return None
    last = a.type.rank - 1
    batch = range(last - 1)
    if any(a.type.shape[axis] != b.type.shape[axis] for axis in batch):
        return None
    is_turned = [op is MatrixOperation.TRANSPOSE for op in ops]
    rows, columns = last - (not is_turned[0]), last - is_turned[1]
    both = [Axis((axis, axis), a.type.shape[axis]) for axis in batch]
    own = [Axis((rows, None), a.type.shape[rows]), Axis((None, columns), b.type.shape[columns])]
    return Scores((a, b), (2 * last - 1 - rows, 2 * last - 1 - columns), (*both, *own))


def _of_einsum(layer: IEinsumLayer) -> Scores | None:
    operands, _, result = layer.equation.partition("->")
    first, _, second = operands.partition(",")
    a, b = (*layer.inputs, None)[:2]
    summed = {*first} & {*second} - {*result}
    if a is None or b is None or len(layer.inputs) != 2 or len(summed) != 1 or "." in operands:
        return None
    is_plain = len({*first}) == len(first) and len({*second}) == len(second)
    if not is_plain or ({*first} | {*second}) - summed != {*result}:
        return None
    of = [(_place(first, name), _place(second, name)) for name in result]
    lengths = [a.type.shape[i] if i is not None else b.type.shape[j or 0] for i, j in of]
    (letter,) = summed
    axes = tuple(map(Axis, of, lengths))
    return Scores((a, b), (first.index(letter), second.index(letter)), axes)


def _place(letters: str, letter: str) -> int | None:
    return letters.index(letter) if letter in letters else None


def _scaled(facts: Facts, x: ITensor | None, most: int) -> Scores | None:
    """Scores times or divided by a number, or with constants added."""
    for op in (ElementWiseOperation.PROD, ElementWiseOperation.DIV, ElementWiseOperation.SUM):
        pair = pair_of(x, op)
        for one, other in [] if pair is None else [pair] if op is ElementWiseOperation.DIV else [pair, pair[::-1]]:
            scores = _combined(facts, op, one, other, most)
            if scores is not None:
                return scores
    return None


def _combined(facts: Facts, op: ElementWiseOperation, one: Any, other: Any, most: int) -> Scores | None:
    array = facts.known_array(other)
    if array is None or not np.isfinite(array).all():
        return None
    scores = _scores(facts, one, most)
    if scores is None or scores.mask is not None:
        return None
    if op is ElementWiseOperation.SUM:
        return replace(scores, mask=array)
    if array.size != 1 or not array.all():
        return None
    number = float(array.reshape(()))
    return replace(scores, factor=scores.factor * (1 / number if op is ElementWiseOperation.DIV else number))


def _masked(facts: Facts, scores: Scores | None, layer: ISelectLayer) -> Scores | None:
    """Scores with a number instead of some that leaves nothing of their shares; some of each row stay."""
    condition, _, rest = layer.inputs
    if scores is None or scores.mask is not None or condition is None or rest is None:
        return None
    counts, number = facts.known_array(condition), facts.scalar_of(rest)
    if (
        counts is None
        or number is None
        or not number < np.finfo(number.dtype).min / 4
        or counts.ndim != len(scores.axes)
    ):
        return None
    return replace(scores, mask=counts)


def _transposed(scores: Scores | None, layer: IShuffleLayer) -> Scores | None:
    order = [*(layer.first_transpose or ())]
    is_plain = not layer.reshape_dims and not layer.second_transpose and len(layer.inputs) == 1
    if scores is None or not is_plain or len(order) != len(scores.axes):
        return None
    mask = None if scores.mask is None else np.transpose(scores.mask, order)
    return replace(scores, axes=tuple(scores.axes[axis] for axis in order), mask=mask)


# ---------------------------------------------------------------------- the layer


def _layer(
    facts: Facts, scores: Scores, axes: ScoreAxes, sides: tuple[Sum, Sum], values: ITensor, is_first: bool
) -> ITensor | None:
    make, (query, key) = facts.make, scores.operands
    spare = [scores.axes[axis].of[0] for axis in axes.spare]
    (free,) = {*range(values.type.rank)} - {*sides[1].batch, *sides[1].summed}
    batches = [[scores.axes[axis].of[side] for axis in axes.batch] for side in range(2)]
    missing = [0, 1][len(axes.batch) :] if len(axes.batch) != 1 else [1]

    def padded(x: ITensor, order: Sequence[Any]) -> ITensor:
        turned = make.transpose(x, order)
        ones = [*range(len(order) - len(axes.batch) - 2)]
        return make.expand_dims(make.squeeze(turned, ones) if ones else turned, missing)

    q = padded(query, [*spare, *batches[0], scores.axes[axes.query].of[0], scores.summed[0]])
    k = padded(key, [*batches[1], scores.axes[axes.key].of[1], scores.summed[1]])
    v = padded(values, [*sides[1].batch, *sides[1].summed, free])
    mask = None if scores.mask is None else _mask(scores, axes, missing)
    if scores.mask is not None and mask is None:
        return None
    if scores.factor != 1:
        q = make.mul(q, make.constant(np.full((1, 1, 1, 1), scores.factor, q.type.dtype)))
    tensor = _added(facts, (q, k, v), mask)
    kept = make.squeeze(tensor, missing) if missing else tensor
    return _in_order(facts, kept, axes, is_first)


def _added(facts: Facts, tensors: tuple[ITensor, ITensor, ITensor], mask: Any) -> ITensor:
    """The attention of padded sequences, with a causal kind instead of such a mask."""
    lengths = tensors[0].type.shape[2], tensors[1].type.shape[2]
    is_causal = mask is not None and mask.dtype == np.bool_ and mask.shape[2:] == lengths
    is_causal = is_causal and bool((mask == np.tril(np.ones(lengths, np.bool_))).all())
    kind = CausalMaskKind.UPPER_LEFT if is_causal else CausalMaskKind.NONE
    layer = facts.make.network.add_attention_v2(*tensors, AttentionNormalizationOp.SOFTMAX, kind)
    layer.decomposable = True
    if mask is not None and not is_causal:
        layer.mask = facts.make.constant(mask)
    result = layer.get_output(0)
    assert result is not None
    return result


def _mask(scores: Scores, axes: ScoreAxes, missing: Sequence[int]) -> Any:
    """The mask with the axes of the layer; None if some row has nothing that counts, or lengths are not known."""
    lengths = [axis.length for axis in scores.axes]
    if min(lengths[axes.query], lengths[axes.key]) < 0:
        return None
    wanted = [lengths[axis] if axis in (axes.query, axes.key) else 1 for axis in range(len(lengths))]
    wide = np.broadcast_to(scores.mask, np.broadcast_shapes(np.shape(scores.mask), wanted))
    order = [*axes.spare, *axes.batch, axes.query, axes.key]
    mask = np.expand_dims(np.transpose(wide, order)[(0,) * len(axes.spare)], tuple(missing))
    if mask.dtype == np.bool_ and not mask.any(-1).all():
        return None
    return np.ascontiguousarray(mask)


def _in_order(facts: Facts, x: ITensor, axes: ScoreAxes, is_first: bool) -> ITensor:
    """The result with the axes that the sum of products has: those of batches, and the others of each operand."""
    count = len(axes.batch)
    rest = sorted([axes.query, *axes.spare])
    tensor = x if is_first else facts.make.transpose(x, [*range(count), count + 1, count])
    start = count if is_first else count + 1
    ones = [start + place for place, axis in enumerate(rest) if axis != axes.query]
    return facts.make.expand_dims(tensor, ones) if ones else tensor
