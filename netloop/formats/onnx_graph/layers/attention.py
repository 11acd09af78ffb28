"""Attention, written as products and a softmax."""

from typing import NamedTuple

import numpy as np

from netloop.formats.onnx_graph.layers import BOOL, INT64, NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import FP8
from netloop.model.layers.attention import IAttentionInputLayer, IAttentionOutputLayer
from netloop.model.layers.attention_formula import PACKED
from netloop.values.enums import AttentionNormalizationOp, CausalMaskKind, DataType
from netloop.values.types import UNKNOWN


class OptionalInputs(NamedTuple):
    """The optional inputs of an attention."""

    mask: Value | None = None
    query_lengths: Value | None = None
    key_value_lengths: Value | None = None
    quantize_scale: Value | None = None


@exports(IAttentionInputLayer)
def attention_input(
    layer: IAttentionInputLayer, make: NodeBuilder, query: Value, key: Value, value: Value
) -> tuple[Value, Value, Value]:
    return query, key, value


@exports(IAttentionOutputLayer)
def attention_output(
    layer: IAttentionOutputLayer, make: NodeBuilder, query: Value, key: Value, value: Value, *extras: Value | None
) -> Value:
    inputs = OptionalInputs(*extras)
    tensors = (make.wide(query), make.wide(key), make.wide(value))
    if PACKED in (layer.query_form, layer.key_value_form):
        result = _packed(layer, make, tensors, inputs)
    else:
        result = _attend(layer, make, tensors, inputs, _allowed(layer, make, tensors, inputs))
    return make.cast(result, query.dtype)


# ---------------------------------------------------------------------------- padded sequences

QueryKeyValue = tuple[Value, Value, Value]


def _allowed(
    layer: IAttentionOutputLayer, make: NodeBuilder, tensors: QueryKeyValue, extras: OptionalInputs
) -> Value | None:
    """A mask of the keys to which each query may attend; None for all."""
    queries, keys = make.length(tensors[0], make.type(0), 2), make.length(tensors[1], make.type(1), 2)
    count, result = keys, None
    j = make.arange(keys)
    if extras.key_value_lengths is not None:
        count = make.reshape(make.cast(extras.key_value_lengths, INT64), [-1, 1, 1, 1])
        result = make.compare("Less", j, count)
    if layer.causal_kind is not CausalMaskKind.NONE:
        reach = make.expand_dims(make.arange(queries), [1])
        if layer.causal_kind is CausalMaskKind.LOWER_RIGHT:
            reach = make.op("Add", reach, make.op("Sub", count, queries))
        result = _and(make, result, make.compare("LessOrEqual", j, reach))
    if extras.mask is not None and extras.mask.dtype == BOOL:
        result = _and(make, result, extras.mask)
    return result


def _and(make: NodeBuilder, a: Value | None, b: Value) -> Value:
    return b if a is None else make.op("And", a, b)


def _attend(
    layer: IAttentionOutputLayer,
    make: NodeBuilder,
    tensors: QueryKeyValue,
    extras: OptionalInputs,
    allowed: Value | None,
) -> Value:
    query, key, value = tensors
    shape = make.shape(query)
    heads, groups = make.type(0).shape[1], make.type(1).shape[1]
    shared = heads != groups or heads == UNKNOWN
    rows = make.reshape(query, _shape_by_key_heads(make, query, key)) if shared else query
    scores = make.op("MatMul", rows, make.transpose(key, [0, 1, 3, 2]))
    every = make.concat([make.shape(query, 0, 3), make.shape(key, 2, 3)], 0)
    scores = make.reshape(scores, every) if shared else scores
    if extras.mask is not None and extras.mask.dtype != BOOL:
        scores = make.op("Add", scores, make.wide(extras.mask))
    weights = _weights(layer, make, scores, allowed, may_have_no_key=_may_have_no_key(layer, extras))
    if extras.quantize_scale is not None:
        weights = _quantized(layer, make, weights, make.scalar(make.wide(extras.quantize_scale)))
    if not shared:
        return make.op("MatMul", weights, value)
    weights = make.reshape(weights, _shape_by_key_heads(make, query, key, make.shape(key, 2, 3)))
    return make.reshape(make.op("MatMul", weights, value), shape)


def _shape_by_key_heads(make: NodeBuilder, query: Value, key: Value, width: Value | None = None) -> Value:
    """The shape with the queries of all heads that share keys merged into one head."""
    heads, groups = make.shape(query, 1, 2), make.shape(key, 1, 2)
    sharing = make.op("Div", heads, make.op("Max", groups, make.int64s(1)))
    rows = make.op("Mul", sharing, make.shape(query, 2, 3))
    last = make.shape(key, 3, 4) if width is None else width
    return make.concat([make.shape(key, 0, 2), rows, last], 0)


def _may_have_no_key(layer: IAttentionOutputLayer, extras: OptionalInputs) -> bool:
    """Whether a query may have no key to attend to."""
    return (
        any(extra is not None for extra in extras[:3])
        or layer.causal_kind is CausalMaskKind.LOWER_RIGHT
        or PACKED in (layer.query_form, layer.key_value_form)
    )


def _weights(
    layer: IAttentionOutputLayer, make: NodeBuilder, scores: Value, allowed: Value | None, *, may_have_no_key: bool
) -> Value:
    lowest, zero = make.number_like(-np.inf, scores), make.number_like(0, scores)
    if allowed is not None:
        scores = make.where(allowed, scores, lowest)
    if layer.norm_op is not AttentionNormalizationOp.SOFTMAX:
        return make.where(make.compare("Equal", scores, lowest), zero, scores)
    if not may_have_no_key:
        return make.op("Softmax", scores, axis=-1)
    highest = make.reduce("ReduceMax", scores, (-1,), keep=True)
    nothing = make.compare("Equal", highest, lowest)
    terms = make.op("Exp", make.op("Sub", scores, make.where(nothing, zero, highest)))
    total = make.reduce("ReduceSum", terms, (-1,), keep=True)
    return make.op("Div", terms, make.where(nothing, make.number_like(1, scores), total))


def _quantized(layer: IAttentionOutputLayer, make: NodeBuilder, weights: Value, scale: Value) -> Value:
    step = make.cast(scale, weights.dtype)
    codes = make.op("Div", weights, step)
    if layer.normalization_quantize_to_type is DataType.INT8:
        whole = make.clip(make.op("Round", codes), -128, 127)
    else:
        whole = make.cast(make.cast(make.clip(codes, -448, 448), FP8), weights.dtype)
    return make.op("Mul", whole, step)


# ---------------------------------------------------------------------------- packed sequences


class Tokens(NamedTuple):
    """All tokens of all sequences in one row, int64.

    Attributes:
        sequence: the number of each token's sequence; the number of sequences for a token that belongs to none.
        position: the position of each token in its sequence.
        lengths: the lengths of the sequences.
    """

    sequence: Value
    position: Value
    lengths: Value


def _packed(layer: IAttentionOutputLayer, make: NodeBuilder, tensors: QueryKeyValue, extras: OptionalInputs) -> Value:
    """Attend in all sequences at once; a mask limits each query to the keys of its sequence."""
    query_form, key_form = layer.query_form is PACKED, layer.key_value_form is PACKED
    queries = _tokens(make, tensors[0], 0, query_form, extras.query_lengths)
    keys = _tokens(make, tensors[1], 1, key_form, extras.key_value_lengths)
    forms = zip(tensors, (query_form, key_form, key_form), strict=True)
    query, key, value = (_row(make, value, is_packed) for value, is_packed in forms)
    allowed = _same_sequence(layer, make, queries, keys)
    result = make.transpose(_attend(layer, make, (query, key, value), extras, allowed), [0, 2, 1, 3])
    if query_form:
        return make.squeeze(result, [0])
    batch, heads, count, elements = (make.length(tensors[0], make.type(0), axis) for axis in range(4))
    by_token = make.reshape(result, make.concat([batch, count, heads, elements], 0))
    return make.transpose(by_token, [0, 2, 1, 3])


def _tokens(make: NodeBuilder, x: Value, position: int, is_packed: bool, lengths: Value | None) -> Tokens:
    type = make.type(position)
    if is_packed:
        assert lengths is not None
        return _packed_tokens(make, lengths, make.length(x, type, 0))
    return _padded_tokens(make, make.length(x, type, 0), make.length(x, type, 2), lengths)


def _packed_tokens(make: NodeBuilder, beginnings: Value, total: Value) -> Tokens:
    """The tokens of packed sequences, from the cumulative lengths of these."""
    bounds = make.cast(beginnings, INT64)
    one, places = make.number(1, INT64), make.arange(total)
    begun = make.cast(make.compare("LessOrEqual", make.expand_dims(bounds, [1]), places), INT64)
    sequence = make.op("Sub", make.reduce("ReduceSum", begun, (0,), keep=False), one)
    position = make.op("Sub", places, make.gather(bounds, sequence, 0))
    end = make.shape(bounds)
    after = make.op("Slice", bounds, make.int64s(1), end)
    before = make.op("Slice", bounds, make.int64s(0), make.int64s(-1))
    return Tokens(sequence, position, make.op("Sub", after, before))


def _padded_tokens(make: NodeBuilder, batch: Value, count: Value, lengths: Value | None) -> Tokens:
    """The tokens of padded sequences, ``count`` in each."""
    places = make.arange(make.op("Mul", batch, count))
    width = make.op("Max", count, make.int64s(1))
    sequence = make.op("Div", places, width)
    whole = make.op("Expand", count, batch) if lengths is None else make.cast(lengths, INT64)
    return Tokens(sequence, make.op("Sub", places, make.op("Mul", sequence, width)), whole)


def _row(make: NodeBuilder, x: Value, is_packed: bool) -> Value:
    """A tensor as [1, head, token, element]."""
    if is_packed:
        return make.expand_dims(make.transpose(x, [1, 0, 2]), [0])
    by_head = make.transpose(x, [1, 0, 2, 3])
    heads, elements = make.shape(x, 1, 2), make.shape(x, 3, 4)
    tokens = make.op("Mul", make.shape(x, 0, 1), make.shape(x, 2, 3))
    return make.reshape(by_head, make.concat([make.int64s(1), heads, tokens, elements], 0))


def _exists(make: NodeBuilder, tokens: Tokens) -> Value:
    """Whether a token belongs to a sequence and is within its length."""
    own = _of_sequence(make, tokens.lengths, tokens.sequence)
    is_of_a_sequence = make.compare("Less", tokens.sequence, make.shape(tokens.lengths))
    return make.op("And", is_of_a_sequence, make.compare("Less", tokens.position, own))


def _of_sequence(make: NodeBuilder, numbers: Value, sequence: Value) -> Value:
    """The number of each token's sequence; the number of the last one for a token that belongs to none."""
    last = make.op("Sub", make.shape(numbers), make.int64s(1))
    return make.gather(numbers, make.op("Min", sequence, last), 0)


def _same_sequence(layer: IAttentionOutputLayer, make: NodeBuilder, queries: Tokens, keys: Tokens) -> Value:
    same = make.compare("Equal", make.expand_dims(queries.sequence, [1]), keys.sequence)
    result = make.op("And", same, make.expand_dims(_exists(make, queries), [1]))
    result = make.op("And", result, _exists(make, keys))
    if layer.causal_kind is CausalMaskKind.NONE:
        return result
    reach = queries.position
    if layer.causal_kind is CausalMaskKind.LOWER_RIGHT:
        longer = make.op("Sub", keys.lengths, queries.lengths)
        reach = make.op("Add", reach, _of_sequence(make, longer, queries.sequence))
    return make.op("And", result, make.compare("LessOrEqual", keys.position, make.expand_dims(reach, [1])))
