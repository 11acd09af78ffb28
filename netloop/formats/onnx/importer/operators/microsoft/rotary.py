"""Rotary embedding of onnxruntime (com.microsoft)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.types import LARGEST_CONSTANT


def rotated(
    make: FormulaBuilder,
    x: ITensor,
    positions: Maybe,
    caches: Sequence[ITensor],
    interleaved: bool = False,
    elements: int = 0,
) -> ITensor:
    """Tokens [batch, head, token, element], with pairs of elements rotated by the angles of their positions.

    Without positions, the caches have the angles of each token.
    """
    cos, sin = caches
    layer = make.network.add_rotary_embedding(x, cos, sin, interleaved, elements)
    if positions is not None:
        layer.set_input(3, positions)
    return make.output(layer)


@microsoft("RotaryEmbedding")
def rotary_embedding(call: NodeCall, x: ITensor, positions: ITensor, cos: ITensor, sin: ITensor) -> ITensor:
    """Pairs of elements of each token rotated by an angle that depends on its position."""
    make, elements = call.make, call.attribute("rotary_embedding_dim", 0)
    require(x.type.rank in (3, 4), f"the input is {x.type}, but must have 3 or 4 axes")
    tokens = x if x.type.rank == 4 else _by_head(call, x, cos, elements)
    if positions.type.rank == 1:  # the position of the first token
        counted = make.add(make.arange(make.length(tokens, 2)), make.cast(positions, np.int64))
        ids = make.expand_dims(counted, [0])
        positions = make.broadcast_to(ids, make.list_tensor([make.length(tokens, axis) for axis in (0, 2)]))
    turned = rotated(make, tokens, positions, (cos, sin), call.flag("interleaved"), elements)
    return _like(make, turned, x)


def _like(make: FormulaBuilder, turned: ITensor, x: ITensor) -> ITensor:
    """Tokens in the form that ``x`` has."""
    return turned if x.type.rank == 4 else make.reshape(make.transpose(turned, [0, 2, 1, 3]), make.shape(x))


@microsoft("MRotaryEmbedding")
def multi_axis_rotary_embedding(call: NodeCall, x: ITensor, positions: ITensor, cos: ITensor, sin: ITensor) -> ITensor:
    """``RotaryEmbedding`` with three positions of each token, in time, height and width, each for some of the pairs."""
    make, elements = call.make, call.attribute("rotary_embedding_dim", 0)
    require(x.type.rank in (3, 4), f"the input is {x.type}, but must have 3 or 4 axes")
    require(positions.type.rank == 3, f"the position_ids are {positions.type}, but must have 3 axes")
    chosen = make.constant(_sections(call, cos))
    places = make.transpose(make.gather(positions, chosen), [1, 2, 0])  # [batch, token, pair]
    pairs = make.arange(make.length(cos, 1))
    index = make.add(make.mul(make.cast(places, np.int64), make.length(cos, 1)), pairs)
    caches = [make.gather(make.flat(tensor), index) for tensor in (cos, sin)]
    tokens = x if x.type.rank == 4 else _by_head(call, x, cos, elements)
    return _like(make, rotated(make, tokens, None, caches, call.flag("interleaved"), elements), x)


def _sections(call: NodeCall, cos: ITensor) -> np.ndarray[Any, Any]:
    """The number of the position that each pair of elements has: in sections, or in turn as far as these reach."""
    require(cos.type.rank == 2, f"cos_cache is {cos.type}, but must have 2 axes")
    sizes, pairs = call.attribute("mrope_section"), cos.type.shape[1]
    require(pairs <= LARGEST_CONSTANT, f"cos_cache is {cos.type}, and has at most {LARGEST_CONSTANT} columns")
    fits = len(sizes) == 3 and min(sizes) >= 0 and sum(sizes) == pairs
    require(fits, f"mrope_section is {sizes}, but must be 3 numbers whose sum is the {pairs} of the caches")
    if not call.attribute("mrope_layout", 0):
        return np.repeat(np.arange(3), sizes)
    axes = np.zeros(pairs, np.int64)
    for number in (1, 2):
        axes[number : 3 * sizes[number] : 3] = number
    return axes


def _by_head(call: NodeCall, x: ITensor, cos: ITensor, elements: int) -> ITensor:
    """[batch, token, head * element] as [batch, head, token, element]."""
    make, heads = call.make, call.attribute("num_heads", 0)
    require(heads > 0 or not elements, "num_heads is 0, and rotary_embedding_dim is not")
    batch, tokens = (make.length(x, axis) for axis in (0, 1))
    sizes = [heads, -1] if heads else [-1, make.times(make.length(cos, 1), 2)]
    return make.transpose(make.reshape(x, [batch, tokens, *sizes]), [0, 2, 1, 3])
