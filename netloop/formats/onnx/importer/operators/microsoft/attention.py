"""Attention of onnxruntime (com.microsoft)."""

from collections.abc import Callable, Sequence

import numpy as np

from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.onnx.importer.operators.microsoft.matrix import matmul_integer_to_float
from netloop.formats.onnx.importer.operators.microsoft.rotary import rotated
from netloop.formats.onnx.importer.operators.normalization import rms_normalized, wide_of
from netloop.formats.shared.import_errors import present
from netloop.model.formulas import FormulaBuilder, Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ActivationType, UnaryOperation
from netloop.values.types import UNKNOWN

MASKED = -10000.0
"""The default addend to the score of a masked key."""
LATER = float(np.finfo(np.float32).min)
"""The addend to the score of a key after the query, in onnxruntime."""


# ---------------------------------------------------------------------------- heads


def heads_of(make: FormulaBuilder, x: ITensor, heads: int) -> ITensor:
    """[batch, token, head * element] as [batch, head, token, element]."""
    batch, tokens, elements = (make.length(x, axis) for axis in range(3))
    return make.transpose(make.reshape(x, [batch, tokens, heads, make.part_of(elements, heads)]), [0, 2, 1, 3])


def merged(make: FormulaBuilder, x: ITensor) -> ITensor:
    """[batch, head, token, element] as [batch, token, head * element]."""
    batch, heads, tokens, elements = (make.length(x, axis) for axis in range(4))
    return make.reshape(make.transpose(x, [0, 2, 1, 3]), [batch, tokens, make.product([heads, elements])])


def parts_of(make: FormulaBuilder, x: ITensor, sizes: Sequence[Length], axis: int) -> list[ITensor]:
    """Consecutive parts along an axis."""
    return make.split(x, axis, make.list_tensor(sizes))


# ---------------------------------------------------------------------------- scores


def scores_of(call: NodeCall, query: ITensor, key: ITensor) -> ITensor:
    """The scaled products of queries and keys, [batch, head, query, key], in float32 or wider."""
    make = call.make
    query, key = wide_of(make, query), wide_of(make, key)
    scale = call.attribute("scale", 0.0) or make.power(
        make.cast(make.tensor(make.length(query, 3)), query.type.dtype), -0.5
    )
    return make.matmul(make.mul(query, scale), make.transpose(key, [0, 1, 3, 2]))


def attended(make: FormulaBuilder, scores: ITensor, value: ITensor) -> ITensor:
    """The mean of the values weighted by the softmax of the scores, [batch, token, head * element]."""
    weights = make.softmax(scores, scores.type.rank - 1)
    return make.cast(merged(make, make.matmul(weights, wide_of(make, value))), value.type.dtype)


def _places(make: FormulaBuilder, scores: ITensor, past: Length) -> tuple[ITensor, ITensor]:
    """The position of each key, and of each query, which follows ``past`` keys."""
    queries, keys = (make.length(scores, axis) for axis in (2, 3))
    return make.arange(keys), make.expand_dims(make.add(make.arange(queries), past), [1])


def _added(make: FormulaBuilder, allowed: ITensor, otherwise: float) -> ITensor:
    return make.where(allowed, make.constant(np.float32(0)), np.float32(otherwise))


def masked(call: NodeCall, scores: ITensor, past: Length, mask: Maybe, bias: Maybe) -> ITensor:
    """Scores plus a bias, with large negative numbers added for masked keys, and later ones if unidirectional."""
    make = call.make
    if mask is not None:
        allowed = _allowed(make, scores, past, mask)
        scores = make.add(scores, _added(make, allowed, call.attribute("mask_filter_value", MASKED)))
    if call.attribute("unidirectional", 0):
        keys, queries = _places(make, scores, past)
        scores = make.add(scores, _added(make, make.less_equal(keys, queries), LATER))
    return scores if bias is None else make.add(scores, wide_of(make, bias))


def _allowed(make: FormulaBuilder, scores: ITensor, past: Length, mask: ITensor) -> ITensor:
    """Whether a query may attend to a key, by a mask of 1 to 4 axes; [batch, 1, query or 1, key]."""
    rank = mask.type.rank
    require(1 <= rank <= 4, f"the mask is {mask.type}, but must have 1 to 4 axes")
    if rank == 1:
        return _within_lengths(make, scores, mask)
    allowed = make.greater(mask, 0)
    if rank < 4:
        return make.expand_dims(allowed, [1, 2] if rank == 2 else [1])
    _, queries = _places(make, scores, past)
    rows = make.gather(allowed, make.reshape(queries, [-1]), 2)
    return make.take_first(rows, make.tensor(make.length(scores, 3)), 3)


def _within_lengths(make: FormulaBuilder, scores: ITensor, ends: ITensor) -> ITensor:
    """Whether a key is before the end of its sequence; of a mask of two halves the second has the starts."""
    count, batch = ends.type.shape[0], make.length(scores, 0)
    keys = make.cast(make.arange(make.length(scores, 3)), ends.type.dtype)
    if not isinstance(batch, int) or count == UNKNOWN:
        return make.less(keys, make.expand_dims(ends, [1, 2, 3]))
    if count in (batch, 3 * batch + 2):  # the second form has running totals behind the lengths
        return make.less(keys, make.expand_dims(make.take_first(ends, batch), [1, 2, 3]))
    require(count == 2 * batch, f"the mask has {count} numbers, but must have {batch}, {2 * batch} or {3 * batch + 2}")
    ends, starts = (make.expand_dims(make.slice(ends, [at], [batch]), [1, 2, 3]) for at in (0, batch))
    return make.logical_and(make.less(keys, ends), make.greater_equal(keys, starts))


# ---------------------------------------------------------------------------- operators


@microsoft("Attention")
def attention(
    call: NodeCall,
    x: ITensor,
    weights: ITensor,
    bias: Maybe = None,
    mask: Maybe = None,
    past: Maybe = None,
    attention_bias: Maybe = None,
    past_length: Maybe = None,
) -> list[Maybe]:
    """Attention of a sequence to itself, with the projections to queries, keys and values; also keys and values."""
    make = call.make
    product = make.matmul(x, weights)
    product = product if bias is None else make.add(product, bias)
    return attention_of_projections(call, product, mask, past, attention_bias, past_length)


def attention_of_projections(
    call: NodeCall, product: ITensor, mask: Maybe, past: Maybe, attention_bias: Maybe = None, past_length: Maybe = None
) -> list[Maybe]:
    """Attention of queries, keys and values next to each other along the last axis."""
    make, heads = call.make, call.attribute("num_heads")
    _check_caches(call, past_length)
    require(not call.attribute("do_rotary", 0), "do_rotary is 1", fix="use GroupQueryAttention or RotaryEmbedding")
    sizes = call.attribute("qkv_hidden_sizes") or [make.part_of(make.length(product, 2), 3)] * 3
    require(len(sizes) == 3, f"qkv_hidden_sizes is {sizes}, but must have 3 numbers")
    query, key, value = (heads_of(make, tensor, heads) for tensor in parts_of(make, product, sizes, 2))
    before = 0 if past is None else make.length(past, 3)
    if past is not None:
        old = [make.squeeze(make.slice(past, [at], [1], axes=[0]), [0]) for at in (0, 1)]
        key, value = (make.concat(pair, 2) for pair in zip(old, (key, value), strict=True))
    scores = masked(call, scores_of(call, query, key), before, mask, attention_bias)
    return [attended(make, scores, value), make.stack([key, value], 0) if call.wants(1) else None]


def _check_caches(call: NodeCall, past_length: Maybe) -> None:
    shared = call.attribute("past_present_share_buffer", 0) or past_length is not None
    require(
        not shared,
        "past and present keys and values share a buffer",
        "a network has no buffers that a call changes",
        "export the model without past_present_share_buffer",
    )


@microsoft("QAttention")
def quantized_attention(
    call: NodeCall,
    x: ITensor,
    weights: ITensor,
    bias: ITensor,
    scale_of_x: ITensor,
    scale_of_weights: ITensor,
    mask: Maybe = None,
    zero_of_x: Maybe = None,
    zero_of_weights: Maybe = None,
    past: Maybe = None,
) -> list[Maybe]:
    """``Attention`` with quantized inputs and weights."""
    factors = x, weights, scale_of_x, scale_of_weights, zero_of_x, zero_of_weights
    return attention_of_projections(call, matmul_integer_to_float(call, *factors, bias), mask, past)


@microsoft("MultiHeadAttention")
def multi_head_attention(
    call: NodeCall,
    query: ITensor,
    key: Maybe = None,
    value: Maybe = None,
    bias: Maybe = None,
    mask: Maybe = None,
    attention_bias: Maybe = None,
    past_key: Maybe = None,
    past_value: Maybe = None,
    past_length: Maybe = None,
    indirection: Maybe = None,
) -> list[Maybe]:
    """Attention to keys and values that are given, or packed with the queries; also keys, values and scores."""
    make = call.make
    _check_caches(call, past_length)
    require(indirection is None, "the node has a cache_indirection", fix="export the model without beam search")
    query, key, value = _split(call, query, key, value, bias)
    before = 0 if past_key is None else make.length(past_key, 2)
    if past_key is not None and past_value is not None:
        key, value = make.concat([past_key, key], 2), make.concat([past_value, value], 2)
    scores = masked(call, scores_of(call, query, key), before, mask, attention_bias)
    return [attended(make, scores, value), key, value, make.cast(scores, query.type.dtype)]


def _split(call: NodeCall, query: ITensor, key: Maybe, value: Maybe, bias: Maybe) -> list[ITensor]:
    """Queries, keys and values as [batch, head, token, element]; a bias is added to those that are not given so."""
    make, heads = call.make, call.attribute("num_heads")
    cached = key is not None and key.type.rank == 4
    if query.type.rank == 5:  # [batch, token, head, 3, element]
        tensors = _apart(make, query, 3)
    elif key is not None and key.type.rank == 5:
        tensors = [heads_of(make, query, heads), *_apart(make, key, 2)]
    else:
        tensors = [query, *(present(tensor, "key or value is left out, and none is packed") for tensor in (key, value))]
        tensors = [tensor if tensor.type.rank == 4 else heads_of(make, tensor, heads) for tensor in tensors]
    if bias is None:
        return tensors
    sizes = [make.product([heads, make.length(tensor, 3)]) for tensor in tensors]
    parts = [make.reshape(tensor, [1, heads, 1, -1]) for tensor in parts_of(make, bias, sizes, 0)]
    biased = [make.add(tensor, part) for tensor, part in zip(tensors, parts, strict=True)]
    return [biased[0], *tensors[1:]] if cached else biased


def _apart(make: FormulaBuilder, x: ITensor, count: int) -> list[ITensor]:
    """The tensors of [batch, token, head, ``count``, element], each [batch, head, token, element]."""
    parts = [make.squeeze(make.slice(x, [at], [1], axes=[3]), [3]) for at in range(count)]
    return [make.transpose(part, [0, 2, 1, 3]) for part in parts]


# ---------------------------------------------------------------------------- queries that share keys

UNSUPPORTED = {"k_quant_type": "NONE", "v_quant_type": "NONE", "sliding_window_cache": 0, "kv_cache_bit_width": 0}
"""The attributes of GroupQueryAttention that netloop supports one value of."""


@microsoft("GroupQueryAttention")
def group_query_attention(
    call: NodeCall,
    query: ITensor,
    key: Maybe,
    value: Maybe,
    past_key: Maybe,
    past_value: Maybe,
    lengths: ITensor,
    total: ITensor,
    cos: Maybe = None,
    sin: Maybe = None,
    positions: Maybe = None,
    bias: Maybe = None,
    sink: Maybe = None,
    *rest: Maybe,
) -> list[Maybe]:
    """Causal attention with a cache, in which several query heads share a head of keys and values; also the cache.

    The cache has room for more tokens than it has; ``lengths`` has the number of tokens of each sequence, less one.
    """
    make = call.make
    _check_group_query(call, rest)
    query, key, value = _normalized(call, _grouped(call, query, key, value), rest[2:4])
    tokens = _CachedTokens(make, query, lengths, total)
    if call.attribute("do_rotary", 0):
        caches = [present(tensor, "do_rotary is 1, and cos_cache or sin_cache is left out") for tensor in (cos, sin)]
        places = make.cast(tokens.queries if positions is None else positions, np.int64)
        interleaved = call.flag("rotary_interleaved")
        query, key = (rotated(make, tensor, places, caches, interleaved) for tensor in (query, key))
    key, value = tokens.cached(past_key, key), tokens.cached(past_value, value)
    scores = _capped(call, _shared(make, query, key, lambda q, k: scores_of(call, q, k)))
    allowed = tokens.allowed(make.length(key, 2), call.attribute("causal", 1), call.attribute("local_window_size"))
    scores = make.where(allowed, scores if bias is None else make.add(scores, wide_of(make, bias)), LATER)
    weights = _softmax(call, scores, sink)
    mean = _shared(make, weights, wide_of(make, value), make.matmul)
    return [make.cast(merged(make, mean), query.type.dtype), key, value]


def _check_group_query(call: NodeCall, rest: Sequence[Maybe]) -> None:
    """Refuse features without support: quantized and sliding caches, lengths of queries, and scores."""
    own = {name: call.attribute(name, default) for name, default in UNSUPPORTED.items()}
    require(own == UNSUPPORTED, f"the node has {own}, and netloop supports {UNSUPPORTED}")
    scales, lengths = rest[:2], rest[4:]
    require(not any(scales), "the node has scales of a quantized cache")
    require(not any(lengths), "the node has query_seqlens")
    require(not call.wants(3), "the node has the output output_qk")


def _grouped(call: NodeCall, query: ITensor, key: Maybe, value: Maybe) -> tuple[ITensor, ITensor, ITensor]:
    """Queries, keys and values as [batch, head, token, element]; they may be packed along the last axis."""
    make, heads, shared = call.make, call.attribute("num_heads"), call.attribute("kv_num_heads")
    require(shared > 0 and heads % shared == 0, f"num_heads is {heads}, but must be a multiple of {shared}")
    if key is None or value is None:
        query, key, value = parts_of(make, heads_of(make, query, heads + 2 * shared), [heads, shared, shared], 1)
        return query, key, value
    return heads_of(make, query, heads), heads_of(make, key, shared), heads_of(make, value, shared)


def _normalized(call: NodeCall, tensors: tuple[ITensor, ITensor, ITensor], scales: Sequence[Maybe]) -> list[ITensor]:
    """Queries and keys divided by their root mean square where they have a scale, and the values."""
    make, (query, key, value) = call.make, tensors
    epsilon = call.attribute("qk_norm_epsilon")
    result = [
        tensor if scale is None else rms_normalized(make, tensor, scale, [3], epsilon)[0]
        for tensor, scale in zip((query, key), [*scales, None, None], strict=False)
    ]
    return [*result, value]


def _shared(make: FormulaBuilder, x: ITensor, y: ITensor, product: Callable[[ITensor, ITensor], ITensor]) -> ITensor:
    """A product of each head of ``x`` and the head of ``y`` that it shares with others."""
    batch, heads, rows, columns = (make.length(x, axis) for axis in range(4))
    wide = make.reshape(x, [batch, make.length(y, 1), -1, columns])
    tensor = product(wide, y)
    return make.reshape(tensor, [batch, heads, rows, make.length(tensor, 3)])


def _capped(call: NodeCall, scores: ITensor) -> ITensor:
    """Scores between plus and minus ``softcap``, if it is not 0."""
    make, cap = call.make, call.attribute("softcap", 0.0)
    return make.mul(make.activation(ActivationType.TANH, make.div(scores, cap)), cap) if cap else scores


def _softmax(call: NodeCall, scores: ITensor, sink: Maybe) -> ITensor:
    """The softmax of scores, with one more score in each row, whose weight is dropped: a head's sink, or 0."""
    make = call.make
    if sink is None and call.attribute("smooth_softmax", -1) != 1:
        return make.softmax(scores, 3)
    own = make.constant(np.zeros(1, np.float32)) if sink is None else wide_of(make, sink)
    column = make.expand_dims(own, [0, 2, 3])
    lengths = [make.length(scores, axis) for axis in range(4)]
    both = make.concat([scores, make.broadcast_to(column, make.list_tensor([*lengths[:3], 1]))], 3)
    return make.take_first(make.softmax(both, 3), make.tensor(lengths[3]), 3)


class _CachedTokens:
    """The positions of the tokens of sequences that have a cache.

    Attributes:
        queries: the position of each new token, [batch, token].
    """

    def __init__(self, make: FormulaBuilder, query: ITensor, lengths: ITensor, total: ITensor) -> None:
        self._make = make
        self._new = make.length(query, 2)
        self._total = make.scalar(make.cast(total, np.int64))
        self._ends = make.add(make.cast(make.flat(lengths), np.int64), 1)
        # a first prompt starts at 0; its length leaves padding out, and would say otherwise
        is_first = make.equal(self._total, self._new)
        self._starts = make.where(is_first, 0, make.sub(self._ends, self._new))
        self.queries = make.add(make.expand_dims(self._starts, [1]), make.arange(self._new))

    def cached(self, past: Maybe, new: ITensor) -> ITensor:
        """The tokens of a cache and the new ones behind them, with zeros up to the length of the cache."""
        make = self._make
        if past is None:
            return new
        before = make.length(past, 2)
        keys = make.arange(make.maximum(make.tensor(before), self._total))
        behind = make.sub(keys, make.expand_dims(self._starts, [1]))
        last = make.sub(make.tensor(self._new), 1)
        places = make.where(make.less(behind, 0), keys, make.add(make.clip(behind, 0, last), before))
        both = make.transpose(make.concat([past, new], 2), [0, 2, 1, 3])
        tensor = make.gather_nd(both, make.expand_dims(places, [2]), batch_axes=1)
        exists = make.expand_dims(make.less_equal(behind, last), [2, 3])
        return make.transpose(make.where(exists, tensor, np.zeros((), new.type.dtype)), [0, 2, 1, 3])

    def allowed(self, count: Length, causal: bool, window: int) -> ITensor:
        """Whether a query may attend to each of ``count`` keys; [batch, 1, query, key]."""
        make = self._make
        keys, queries = make.arange(count), make.expand_dims(self.queries, [1, 3])
        allowed = make.less_equal(keys, queries) if causal else make.less(keys, make.expand_dims(self._ends, [1, 2, 3]))
        if window < 0:
            return allowed
        return make.logical_and(allowed, make.greater(keys, make.sub(queries, window)))


# ---------------------------------------------------------------------------- positions


@microsoft("RelativePositionBias")
def relative_position_bias(call: NodeCall, table: ITensor, queries: ITensor, keys: ITensor) -> ITensor:
    """The bias of each pair of query and key by their distance, as in T5; [1, head, query, key].

    Short distances have a row of the table each; long ones share rows, more of them the longer they are.
    """
    make, most = call.make, call.attribute("max_distance")
    require(table.type.rank == 2, f"the bias_table is {table.type}, but must have 2 axes")
    buckets = table.type.shape[0]
    places = [make.arange(make.scalar(tensor)) for tensor in (keys, queries)]
    after = make.sub(places[0], make.expand_dims(places[1], [1]))
    if call.attribute("is_bidirectional"):
        buckets //= 2
        first, away = make.where(make.greater(after, 0), buckets, 0), make.unary(UnaryOperation.ABS, after)
    else:
        first, away = make.constant(0), make.maximum(make.sub(0, after), 0)
    exact = buckets // 2
    require(
        most > exact > 0, f"the bias_table is {table.type} and max_distance {most}", "some rows are for short distances"
    )
    growth = (buckets - exact) / np.log(most / exact)
    ratio = make.div(make.cast(make.maximum(away, 1), np.float32), exact)
    far = make.add(make.cast(make.mul(make.unary(UnaryOperation.LOG, ratio), growth), np.int64), exact)
    row = make.add(first, make.where(make.less(away, exact), away, make.minimum(far, buckets - 1)))
    return make.expand_dims(make.transpose(make.gather(table, row), [2, 0, 1]), [0])


@microsoft("GatedRelativePositionBias")
def gated_relative_position_bias(
    call: NodeCall,
    query: ITensor,
    bias: ITensor,
    places: ITensor,
    weight: ITensor,
    gate_bias: ITensor,
    scale: ITensor,
    offsets: Maybe = None,
) -> ITensor:
    """A bias of attention by relative positions, times a gate for each query: [batch, heads, queries, keys]."""
    make, heads = call.make, call.attribute("num_heads")
    require(offsets is None, "token_offset is given, and netloop does not support packed tokens")
    query = make.add(query, bias)
    shape = [make.length(query, 0), make.length(query, 1), heads, UNKNOWN]
    query = make.transpose(make.reshape(query, shape), [0, 2, 1, 3])
    gates = make.add(make.matmul(query, weight), gate_bias)
    halves = make.reshape(gates, [*(make.length(gates, axis) for axis in range(3)), 2, UNKNOWN])
    gates = make.activation(ActivationType.SIGMOID, make.sum(halves, [4]))
    first, second = (make.slice(gates, [at], [1], axes=[3]) for at in (0, 1))
    factor = make.add(make.mul(first, make.sub(make.mul(second, scale), 1.0)), 2.0)
    return make.mul(factor, places)
