"""Attention, and the methods that add rotary embeddings and key-value caches.

An ``IAttention`` is not a layer but a view of two: the input layer returns query, key and value unchanged; the output
layer computes the result, and has all attributes and the other inputs. Each is an ordinary operation, so that type
inference, reference and lowering need no special case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from netloop.model.graph import ITensor, NetworkBase, Operation, check_instance, check_tensor, layer
from netloop.model.graph.padded_axes import NO_NEUTRALS, Axes, Lengths, Neutrals, length_along, neutral
from netloop.model.layers.attention_formula import PACKED, PADDED, QUANTIZED, Attending, Extras
from netloop.model.layers.cache import IKVCacheUpdateLayer
from netloop.model.layers.collective import axis_of_ranks, require_one_rank
from netloop.model.layers.packed_sequences import batch_of
from netloop.model.layers.rotary import IRotaryEmbeddingLayer
from netloop.model.manual_axes import all_gather
from netloop.values.diagnostics import require
from netloop.values.enums import (
    AttentionIOForm,
    AttentionNormalizationOp,
    CausalMaskKind,
    DataType,
    KVCacheMode,
    LayerType,
)
from netloop.values.types import UNKNOWN, Array, TensorType, agree, require_possible

MASK, QUERY_LENGTHS, KEY_VALUE_LENGTHS, QUANTIZE_SCALE = 3, 4, 5, 6
"""The indices of the output layer's inputs after query, key and value."""


class IAttentionBoundaryLayer(Operation):
    """A layer at the boundary of an attention."""

    @property
    def attention(self) -> IAttention:
        """The attention that the layer belongs to."""
        return IAttention(self._output_layer())

    def _output_layer(self) -> IAttentionOutputLayer:
        readers = (reader for tensor in self.outputs for reader, _ in tensor.uses)
        return next(reader for reader in readers if isinstance(reader, IAttentionOutputLayer))


@layer(LayerType.ATTENTION_INPUT, "AttentionInput")
class IAttentionInputLayer(IAttentionBoundaryLayer):
    """The input side of an attention: query, key and value, unchanged."""

    NUM_OUTPUTS = 3
    REQUIRED_INPUTS = 3

    def infer(self, query: TensorType, key: TensorType, value: TensorType) -> tuple[TensorType, ...]:
        return query.without_value(), key.without_value(), value.without_value()

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return NO_NEUTRALS

    def evaluate(self, query: Array, key: Array, value: Array) -> tuple[Array, ...]:
        return query, key, value

    def lower(self, query: Any, key: Any, value: Any) -> Any:
        return query, key, value


@layer(LayerType.ATTENTION_OUTPUT, "AttentionOutput")
class IAttentionOutputLayer(IAttentionBoundaryLayer):
    """Dot-product attention: for each query, the mean of the values weighted by its softmax over the keys.

    ::

        scores[i, j] = query[i] . key[j] (+ mask[i, j])          -infinity where query i may not attend to key j
        output[i]    = the sum over j of softmax(scores[i])[j] value[j]

    for each sequence and head. The products are not scaled: scale the query before. With norm_op NONE the scores
    themselves are the weights, 0 where attention is forbidden. A query that may attend to no key gives 0.

    ===========  ================================================================================================
    PADDED_BHND  query [B, Hq, Sq, D]; key and value [B, Hkv, Skv, D], and key_value_lengths [B] if some are shorter
    PACKED_NHD   query [Tq, Hq, D], key and value [Tkv, Hkv, D], and cumulative lengths [B + 1], from 0 to Tq or Tkv
    ===========  ================================================================================================

    The form of the query is independent of that of key and value; the output has the shape and type of the query. Hq
    is a multiple of Hkv, and Hq / Hkv consecutive heads share keys and values. All three are floating-point, of one
    type; for half types, softmax and sums are computed in float32.

    The mask [B, Hq, Sq, Skv], any of them 1, is for padded forms: bool, true where i may attend to key j, or of the
    type of the query and added. A causal kind excludes a mask: UPPER_LEFT lets query i attend to the keys j <= i,
    LOWER_RIGHT to j <= i + skv - sq, where skv and sq are the lengths of the sequence.

    With normalization_quantize_to_type INT8 or FP8 and a scale s, the weights w become s quantized(w / s); the
    gradient of the rounding to INT8 is 0.

    With num_ranks above 1, the ranks have parts of the sequence of keys and values, and the queries of each attend to
    all of them: context parallelism, on the axis of JAX that the metadata names, as for a collective. Forms are padded
    then, without lengths, mask and causal kind.

    Attributes:
        norm_op: SOFTMAX or NONE.
        causal_kind: the keys that a query may attend to.
        decomposable: whether TensorRT may use several kernels; without effect in netloop.
        query_form: the form of query and output.
        key_value_form: the form of key and value.
        normalization_quantize_to_type: the type that the weights are quantized to; FLOAT for none.
    """

    HAS_PRODUCTS = True
    REQUIRED_INPUTS = 3
    MAX_INPUTS = 7
    TAKES_LENGTHS = True

    norm_op: AttentionNormalizationOp
    causal_kind: CausalMaskKind = CausalMaskKind.NONE
    decomposable: bool = False
    query_form: AttentionIOForm = PADDED
    key_value_form: AttentionIOForm = PADDED
    normalization_quantize_to_type: DataType = DataType.FLOAT

    def _output_layer(self) -> IAttentionOutputLayer:
        return self

    @property
    def _attending(self) -> Attending:
        forms = (self.query_form, self.key_value_form)
        return Attending(self.norm_op, self.causal_kind, *forms, self.normalization_quantize_to_type)

    def place_input(self, index: int, tensor: ITensor | None) -> None:
        """Read ``tensor`` as input ``index``; None removes the input."""
        if tensor is not None:
            self.set_input(index, tensor)
        elif index < self.num_inputs:
            self._rewire(index, None)

    # ------------------------------------------------------------------ types

    def infer(
        self,
        query: TensorType,
        key: TensorType,
        value: TensorType,
        mask: TensorType | None = None,
        query_lengths: TensorType | None = None,
        key_value_lengths: TensorType | None = None,
        quantize_scale: TensorType | None = None,
    ) -> TensorType:
        require(query.is_float, f"the query must be floating-point, not {query}", fix="convert it with add_cast")
        require(
            query.dtype == key.dtype == value.dtype,
            f"query, key and value are {query.dtype}, {key.dtype} and {value.dtype}, but must be of one type",
            why="TensorRT's networks are strongly typed: nothing is converted silently",
            fix="convert them with add_cast",
        )
        _check_form("query", query, self.query_form)
        _check_form("key", key, self.key_value_form)
        what = f"the key is {key}, the value {value}, but must be of one shape"
        require(agree(key.shape, value.shape), what, "each key has one value")
        _check_heads(query, key)
        queries = self._batch("query", query, self.query_form, query_lengths)
        keys = self._batch("key_value", key, self.key_value_form, key_value_lengths)
        what = f"the query has {queries} sequences, but the key {keys}"
        require(agree((queries,), (keys,)), what, "each query attends to the keys of its own sequence")
        if mask is not None:
            self._check_mask(mask, query, key)
        self._check_quantization(quantize_scale)
        self._check_ranks(mask is not None or key_value_lengths is not None)
        require_possible(self._scores(query, key), f"the product of the query {query} and the key {key}")
        return query.without_value()

    def _scores(self, query: TensorType, key: TensorType) -> TensorType:
        """The products of the queries with the keys: of those of a sequence if all are padded, else of all."""
        if self.query_form is PADDED and self.key_value_form is PADDED:
            return query.with_shape((*query.shape[:3], key.shape[2]))
        tokens = [x.shape[:1] if x.rank == 3 else (x.shape[0], x.shape[2]) for x in (query, key)]
        return query.with_shape((query.shape[1], *tokens[0], *tokens[1]))

    @staticmethod
    def _batch(name: str, x: TensorType, form: AttentionIOForm, lengths: TensorType | None) -> int:
        """The number of sequences, -1 if it is unknown."""
        if form is PACKED:
            return batch_of(f"{name}_lengths", lengths)
        require(
            lengths is None or name == "key_value",
            f"there are {name}_lengths, {lengths}, but {name}_form is PADDED_BHND",
            why="all padded queries are computed",
            fix="set query_form to PACKED_NHD, or query_lengths to None",
        )
        require(
            lengths is None or (lengths.is_index and agree(lengths.shape, x.shape[:1])),
            f"the {name}_lengths are {lengths}, but must be int32[{x.shape[0]}]",
            why=f"{x} has one length per padded sequence",
        )
        return x.shape[0]

    def _check_mask(self, mask: TensorType, query: TensorType, key: TensorType) -> None:
        require(
            self.causal_kind is CausalMaskKind.NONE,
            f"there is a mask, but causal_kind is {self.causal_kind.name}",
            why="TensorRT accepts only one of them",
            fix="set causal_kind to NONE, and exclude later keys in the mask",
        )
        forms = (self.query_form, self.key_value_form)
        require(
            PACKED not in forms,
            "there is a mask, but packed sequences have no common length for it",
            why="a mask has one element for each pair of positions",
        )
        require(
            mask.is_bool or mask.dtype == query.dtype,
            f"the mask is {mask}, but must be bool or {query.dtype}",
            fix="convert it with add_cast",
        )
        wanted = (*query.shape[:3], key.shape[2])
        accepted = tuple(1 if own == 1 else length for own, length in zip(mask.shape, wanted, strict=False))
        require(
            mask.rank == 4 and agree(mask.shape, accepted),
            f"the mask is {mask}, but must be {mask.with_shape(wanted)}; each dim may be 1",
            why=f"it applies to the products of the query {query} with the key {key}",
        )

    def _check_ranks(self, is_limited: bool) -> None:
        is_plain = self.query_form is self.key_value_form is PADDED and self.causal_kind is CausalMaskKind.NONE
        require(
            self.num_ranks == 1 or (is_plain and not is_limited),
            f"num_ranks is {self.num_ranks}, and not all queries attend to all keys",
            why="each rank has its own part of the keys, and no position in the whole sequence",
            fix="use padded forms without lengths, mask and causal kind, or set num_ranks to 1",
        )

    def _check_quantization(self, scale: TensorType | None) -> None:
        kind = self.normalization_quantize_to_type
        require(
            kind in QUANTIZED or kind is DataType.FLOAT,
            f"normalization_quantize_to_type is {kind.name}",
            why="the weights can be quantized to INT8 or FP8; FLOAT leaves them unchanged",
        )
        require(
            (scale is not None) == (kind in QUANTIZED),
            f"normalization_quantize_to_type is {kind.name}, but there is "
            f"{'no ' if scale is None else 'a '}normalization_quantize_scale",
            why="quantization needs both a type and a scale",
        )
        require(
            scale is None or (scale.is_float and scale.rank <= 1 and scale.volume in (1, UNKNOWN)),
            f"the normalization_quantize_scale is {scale}, but must be one floating-point number",
            why="all elements are divided by it",
        )

    # ------------------------------------------------------------------ values

    def evaluate(self, query: Array, key: Array, value: Array, *extras: Array | None) -> Array:
        require_one_rank(self)
        return self._attending.evaluate(query, key, value, Extras(*extras))

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        are_padded = self.query_form is self.key_value_form is PADDED and self.num_ranks == 1
        # heads of the query share those of the key by their numbers, and an element of a head is a term of each score
        if not are_padded or any(1 in axes or 3 in axes for axes in padded[:3]) or any(padded[6:]):
            return None
        # a weight of 0 times garbage may be NaN
        return neutral(2, padded[2] & {2})

    def lower(self, query: Any, key: Any, value: Any, *extras: Any, lengths: Lengths = ()) -> Any:
        key, value = jnp.asarray(key), jnp.asarray(value)
        if self.num_ranks > 1:
            axis = axis_of_ranks(self)
            key, value = (all_gather(other, axis, 2, tiled=True) for other in (key, value))
        sizes = tuple(length_along(x, 2, own) for x, own in zip((query, key), lengths, strict=False))
        return self._attending.lower(jnp.asarray(query), key, value, Extras(*extras), sizes)


def _check_form(name: str, x: TensorType, form: AttentionIOForm) -> None:
    axes = "[batch, head, token, element]" if form is PADDED else "[token, head, element]"
    require(
        x.rank == (4 if form is PADDED else 3),
        f"the {name} is {x}, but must be {axes}",
        why=f"its form is {form.name}",
        fix="reshape it with add_shuffle, or set another form",
    )


def _check_heads(query: TensorType, key: TensorType) -> None:
    heads, groups = query.shape[1], key.shape[1]
    require(
        UNKNOWN in (heads, groups) or (groups > 0 and heads % groups == 0),
        f"the query has {heads} heads, but the key {groups}",
        why="each head of the key is shared by the same number of heads of the query",
    )
    require(
        agree(query.shape[-1:], key.shape[-1:]),
        f"the query {query} and the key {key} differ in their last axis",
        why="their dot products are formed along it",
    )


# ---------------------------------------------------------------------------- the view


def _attribute(name: str) -> Any:
    """A property for an attribute of the output layer."""

    def read(self: IAttention) -> Any:
        return getattr(self.output_layer, name)

    def write(self: IAttention, value: Any) -> None:
        setattr(self.output_layer, name, value)

    return property(read, write)


def _optional_input(index: int) -> Any:
    """A property for an input of the output layer."""

    def read(self: IAttention) -> ITensor | None:
        return self.output_layer.get_input(index)

    def write(self: IAttention, tensor: ITensor | None) -> None:
        self.output_layer.place_input(index, tensor)

    return property(read, write)


class IAttention:
    """An attention: for each query, the mean of the values weighted by its softmax over the keys.

    A view of two layers of the network, ``IAttentionInputLayer`` and ``IAttentionOutputLayer``, the documentation of
    which defines the computation. Two views of one attention are equal.

    Attributes:
        norm_op: SOFTMAX or NONE.
        causal: whether causal_kind is UPPER_LEFT.
        causal_kind: the keys that a query may attend to.
        mask: the keys that a query may attend to, or numbers that are added to the products; None for neither.
        decomposable: whether TensorRT may use several kernels; without effect in netloop.
        query_form: the form of query and output, padded or packed.
        key_value_form: the form of key and value, padded or packed.
        query_lengths: the cumulative lengths of packed queries; None for padded ones.
        key_value_lengths: the cumulative lengths of packed keys, or the lengths of padded ones; None for full ones.
        normalization_quantize_to_type: the type that the weights are quantized to; FLOAT for none.
        normalization_quantize_scale: the scale of the quantization; None for none.
        name, metadata, num_ranks: those of the output layer.
        output_layer: the layer that computes the result.
    """

    norm_op: AttentionNormalizationOp = _attribute("norm_op")
    causal_kind: CausalMaskKind = _attribute("causal_kind")
    decomposable: bool = _attribute("decomposable")
    query_form: AttentionIOForm = _attribute("query_form")
    key_value_form: AttentionIOForm = _attribute("key_value_form")
    normalization_quantize_to_type: DataType = _attribute("normalization_quantize_to_type")
    name: str = _attribute("name")
    metadata: str = _attribute("metadata")
    num_ranks: int = _attribute("num_ranks")
    mask: ITensor | None = _optional_input(MASK)
    query_lengths: ITensor | None = _optional_input(QUERY_LENGTHS)
    key_value_lengths: ITensor | None = _optional_input(KEY_VALUE_LENGTHS)
    normalization_quantize_scale: ITensor | None = _optional_input(QUANTIZE_SCALE)

    def __init__(self, output_layer: IAttentionOutputLayer) -> None:
        self.output_layer = output_layer

    @property
    def input_layer(self) -> IAttentionInputLayer:
        """The layer that reads query, key and value."""
        tensor = self.output_layer.inputs[0]
        assert tensor is not None
        assert isinstance(tensor.producer, IAttentionInputLayer), f"{self.name!r} has lost its input layer"
        return tensor.producer

    @property
    def causal(self) -> bool:
        """Whether a query attends only to keys at or before its own position; setting it sets causal_kind."""
        return self.causal_kind is CausalMaskKind.UPPER_LEFT

    @causal.setter
    def causal(self, causal: bool) -> None:
        self.causal_kind = _causal_kind(causal)

    @property
    def num_inputs(self) -> int:
        """3: query, key and value; 4 with a mask, 5 with a scale of the quantization, as TensorRT 10.16 counts."""
        if self.normalization_quantize_scale is not None:
            return 5
        return 3 if self.mask is None else 4

    @property
    def num_outputs(self) -> int:
        """1."""
        return self.output_layer.num_outputs

    def get_input(self, index: int) -> ITensor | None:
        """Query, key, value, mask or scale of the quantization: input 0 to 4; None where there is none."""
        optional = {3: self.mask, 4: self.normalization_quantize_scale}
        return optional[index] if index in optional else self.input_layer.get_input(index)

    def get_output(self, index: int) -> ITensor | None:
        """The result, output 0; None for any other index."""
        return self.output_layer.get_output(index)

    def set_input(self, index: int, tensor: ITensor) -> bool:
        """Replace query, key or value: input 0, 1 or 2.

        Raises:
            TypeError: ``tensor`` is not a tensor.
            IndexError: there is no such input.
        """
        self.input_layer.set_input(index, tensor)
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IAttention) and other.output_layer is self.output_layer

    def __hash__(self) -> int:
        return hash(self.output_layer)

    def __repr__(self) -> str:
        return f"<IAttention {self.name!r}>"


def _causal_kind(causal: bool) -> CausalMaskKind:
    is_causal = check_instance("causal", causal, bool)
    return CausalMaskKind.UPPER_LEFT if is_causal else CausalMaskKind.NONE


class AttentionMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "transformers"

    def add_attention(
        self, query: ITensor, key: ITensor, value: ITensor, norm_op: AttentionNormalizationOp, causal: bool
    ) -> IAttention:
        """Dot-product attention; ``causal`` means UPPER_LEFT.

        ::

            scores[i, j] = query[i] . key[j] (+ mask[i, j])          -infinity where query i may not attend to key j
            output[i]    = the sum over j of softmax(scores[i])[j] value[j]

        for each sequence and head. The products are not scaled: scale the query before. With norm_op NONE the scores
        themselves are the weights, 0 where attention is forbidden. A query that may attend to no key gives 0.

        ===========  ================================================================================================
        PADDED_BHND  query [B, Hq, Sq, D]; key and value [B, Hkv, Skv, D], and key_value_lengths [B] if some are shorter
        PACKED_NHD   query [Tq, Hq, D], key and value [Tkv, Hkv, D], and cumulative lengths [B + 1], from 0 to Tq or Tkv
        ===========  ================================================================================================

        The form of the query is independent of that of key and value; the output has the shape and type of the
        query. Hq is a multiple of Hkv, and Hq / Hkv consecutive heads share keys and values. All three are floating-
        point, of one type; for half types, softmax and sums are computed in float32.

        The mask [B, Hq, Sq, Skv], any of them 1, is for padded forms: bool, true where i may attend to key j, or of
        the type of the query and added. A causal kind excludes a mask: UPPER_LEFT lets query i attend to the keys j <=
        i, LOWER_RIGHT to j <= i + skv - sq, where skv and sq are the lengths of the sequence.

        With normalization_quantize_to_type INT8 or FP8 and a scale s, the weights w become s quantized(w / s); the
        gradient of the rounding to INT8 is 0.

        With num_ranks above 1, the ranks have parts of the sequence of keys and values, and the queries of each
        attend to all of them: context parallelism, on the axis of JAX that the metadata names, as for a collective.
        Forms are padded then, without lengths, mask and causal kind.

        Args:
            query: input 0.
            key: input 1.
            value: input 2.
            norm_op: SOFTMAX or NONE.
            causal: the keys that a query may attend to.

        Further attributes of the layer, which have defaults: ``decomposable``, ``query_form``, ``key_value_form``,
        ``normalization_quantize_to_type``.
        """
        return self.add_attention_v2(query, key, value, norm_op, _causal_kind(causal))

    def add_attention_v2(
        self,
        query: ITensor,
        key: ITensor,
        value: ITensor,
        norm_op: AttentionNormalizationOp,
        causal_kind: CausalMaskKind,
    ) -> IAttention:
        """Dot-product attention: for each query, the mean of the values weighted by its products with the keys.

        ::

            scores[i, j] = query[i] . key[j] (+ mask[i, j])          -infinity where query i may not attend to key j
            output[i]    = the sum over j of softmax(scores[i])[j] value[j]

        for each sequence and head. The products are not scaled: scale the query before. With norm_op NONE the scores
        themselves are the weights, 0 where attention is forbidden. A query that may attend to no key gives 0.

        ===========  ================================================================================================
        PADDED_BHND  query [B, Hq, Sq, D]; key and value [B, Hkv, Skv, D], and key_value_lengths [B] if some are shorter
        PACKED_NHD   query [Tq, Hq, D], key and value [Tkv, Hkv, D], and cumulative lengths [B + 1], from 0 to Tq or Tkv
        ===========  ================================================================================================

        The form of the query is independent of that of key and value; the output has the shape and type of the
        query. Hq is a multiple of Hkv, and Hq / Hkv consecutive heads share keys and values. All three are floating-
        point, of one type; for half types, softmax and sums are computed in float32.

        The mask [B, Hq, Sq, Skv], any of them 1, is for padded forms: bool, true where i may attend to key j, or of
        the type of the query and added. A causal kind excludes a mask: UPPER_LEFT lets query i attend to the keys j <=
        i, LOWER_RIGHT to j <= i + skv - sq, where skv and sq are the lengths of the sequence.

        With normalization_quantize_to_type INT8 or FP8 and a scale s, the weights w become s quantized(w / s); the
        gradient of the rounding to INT8 is 0.

        With num_ranks above 1, the ranks have parts of the sequence of keys and values, and the queries of each
        attend to all of them: context parallelism, on the axis of JAX that the metadata names, as for a collective.
        Forms are padded then, without lengths, mask and causal kind.

        Args:
            query: input 0.
            key: input 1.
            value: input 2.
            norm_op: SOFTMAX or NONE.
            causal_kind: the keys that a query may attend to.

        Further attributes of the layer, which have defaults: ``decomposable``, ``query_form``, ``key_value_form``,
        ``normalization_quantize_to_type``.
        """
        result = IAttentionOutputLayer(norm_op=norm_op, causal_kind=causal_kind)
        tensors = [check_tensor(query, "query"), check_tensor(key, "key"), check_tensor(value, "value")]
        source = self.add(IAttentionInputLayer(), tensors)
        return IAttention(self.add(result, source.outputs))

    def add_rotary_embedding(
        self, input: ITensor, cos_cache: ITensor, sin_cache: ITensor, interleaved: bool, rotary_embedding_dim: int
    ) -> IRotaryEmbeddingLayer:
        """Rotate pairs of elements of each token of ``input`` by the angles of the caches.

        output = (a cos - b sin, a sin + b cos) for each pair (a, b) of the first R elements of a token; the rest is
        unchanged. Pair p is elements p and p + R / 2, or 2 p and 2 p + 1 if interleaved, and its angle is number p of a
        row of the caches: row [b, s] for token s of sequence b, or row position_ids[b, s].

        Input [B, H, S, D]; cosines and sines [B, S, R / 2]. With input 3, position_ids [B, S], int32 or int64, they
        are [P, R / 2]; a position out of range is an error in the reference; a compiled network uses the nearest row.
        Floating-point, all of one type; half types are computed in float32.

        Args:
            input: input 0.
            cos_cache: input 1.
            sin_cache: input 2.
            interleaved: whether adjacent elements form a pair.
            rotary_embedding_dim: R, even; 0 for all D.
        """
        result = IRotaryEmbeddingLayer(interleaved=interleaved, rotary_embedding_dim=rotary_embedding_dim)
        tensors = [check_tensor(input, "input"), check_tensor(cos_cache, "cos_cache")]
        return self.add(result, [*tensors, check_tensor(sin_cache, "sin_cache")])

    def add_kv_cache_update(
        self, cache: ITensor, update: ITensor, write_indices: ITensor, cache_mode: KVCacheMode
    ) -> IKVCacheUpdateLayer:
        """``cache`` with the tokens of ``update`` written from the positions ``write_indices`` on.

        output[i, :, write_indices[i] + s, :] = update[i, :, s, :], and the cache elsewhere.

        Cache [B, H, Smax, D]; update [B, H, S, D], or packed [T, H, D] with the B + 1 cumulative lengths as input 3;
        write_indices [B]. Indices and lengths are int32 or int64; cache and update are floating-point, of one type. A
        token outside of the cache is not written.

        TensorRT writes in place: the cache must be an input of the network, and the output an output of it. In
        netloop the cache may be any tensor, and keeps its value.

        Args:
            cache: input 0.
            update: input 1.
            write_indices: input 2.
            cache_mode: how the cache is written.

        Further attributes of the layer, which have defaults: ``update_form``, ``update_lengths``.
        """
        tensors = [check_tensor(cache, "cache"), check_tensor(update, "update")]
        result = IKVCacheUpdateLayer(cache_mode=cache_mode)
        return self.add(result, [*tensors, check_tensor(write_indices, "write_indices")])
