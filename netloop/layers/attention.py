"""Attention, and the layers at its boundary.

An ``IAttention`` is no layer: it is the view of the two layers that stand for it in the network. The input layer gives
out query, key and value as they are; the output layer computes from them, and has all attributes and the other inputs.
So each is an ordinary operation, which types, reference and lowering need not know to be half of something.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from netloop.diagnostics import require
from netloop.enums import AttentionIOForm, AttentionNormalizationOp, CausalMaskKind, DataType, KVCacheMode, LayerType
from netloop.graph.adding import AddsLayers
from netloop.graph.layer import Operation, check_instance, check_tensor, layer
from netloop.graph.tensor import ITensor
from netloop.layers.attention_formula import PACKED, PADDED, QUANTISED, Attending, Extras
from netloop.layers.cache import IKVCacheUpdateLayer
from netloop.layers.packed_sequences import batch_of
from netloop.layers.rotary import IRotaryEmbeddingLayer
from netloop.types import UNKNOWN, Array, TensorType, agree

MASK, QUERY_LENGTHS, KEY_VALUE_LENGTHS, QUANTIZE_SCALE = 3, 4, 5, 6
"""The numbers of the inputs of the output layer after query, key and value."""


class IAttentionBoundaryLayer(Operation):
    """A layer at the boundary of an attention."""

    @property
    def attention(self) -> IAttention:
        """The attention."""
        return IAttention(self._output_layer())

    def _output_layer(self) -> IAttentionOutputLayer:
        readers = (reader for tensor in self.outputs for reader, _ in tensor.uses)
        return next(reader for reader in readers if isinstance(reader, IAttentionOutputLayer))


@layer(LayerType.ATTENTION_INPUT, "AttentionInput")
class IAttentionInputLayer(IAttentionBoundaryLayer):
    """Query, key and value, as they are: where a tensor enters an attention."""

    NUM_OUTPUTS = 3
    REQUIRED_INPUTS = 3

    def infer(self, query: TensorType, key: TensorType, value: TensorType) -> tuple[TensorType, ...]:
        return query.without_value(), key.without_value(), value.without_value()

    def evaluate(self, query: Array, key: Array, value: Array) -> tuple[Array, ...]:
        return query, key, value

    def lower(self, query: Any, key: Any, value: Any) -> Any:
        return query, key, value


@layer(LayerType.ATTENTION_OUTPUT, "AttentionOutput")
class IAttentionOutputLayer(IAttentionBoundaryLayer):
    """For each query the mean of the values, weighted by the softmax of the products of the query with the keys.

    ::

        scores[i, j] = query[i] . key[j] (+ mask[i, j])          -infinity where query i may not attend to key j
        output[i]    = the sum over j of softmax(scores[i])[j] value[j]

    for each sequence and head. The products are not divided by anything: scale the query before. With norm_op NONE the
    scores themselves are the weights, 0 where attention is forbidden. A query that may attend to no key gives 0.

    ===========  ================================================================================================
    PADDED_BHND  query [B, Hq, Sq, D]; key and value [B, Hkv, Skv, D], and key_value_lengths [B] if some are shorter
    PACKED_NHD   query [Tq, Hq, D]; key and value [Tkv, Hkv, D]; with cumulative lengths [B + 1], from 0 to Tq or Tkv
    ===========  ================================================================================================

    Query on one hand, key and value on the other may have either form; the output has shape and type of the query.
    Hq is a multiple of Hkv, and Hq / Hkv heads after one another share keys and values. All three are floating-point,
    of one type; softmax and sums are formed in float32 for half types.

    The mask [B or 1, Hq or 1, Sq, Skv] is for padded forms: bool, true where query i may attend to key j, or of the
    type of the query. A causal kind takes its place: UPPER_LEFT lets query i attend to the keys j <= i, LOWER_RIGHT
    to j <= i + skv - sq, skv and sq being the lengths of the sequence.

    With normalization_quantize_to_type INT8 or FP8 and a scale s, the weights w become s quantised(w / s); nothing
    flows back through the rounding of INT8.

    Attributes:
        norm_op: SOFTMAX or NONE.
        causal_kind: which keys a query may attend to.
        decomposable: whether TensorRT may use several kernels; here it makes no difference.
        query_form: the form of query and output.
        key_value_form: the form of key and value.
        normalization_quantize_to_type: the type that the weights are quantised to; FLOAT for none.
    """

    REQUIRED_INPUTS = 3
    MAX_INPUTS = 7

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
        """Read ``tensor`` as input number ``index``, or nothing."""
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
        require(query.is_float, f"the query is floating-point, not {query}", fix="convert it with add_cast")
        require(
            query.dtype == key.dtype == value.dtype,
            f"query, key and value are {query.dtype}, {key.dtype} and {value.dtype}, but must be of one type",
            why="TensorRT's networks are strongly typed: nothing is converted silently",
            fix="convert them with add_cast",
        )
        _check_form("query", query, self.query_form)
        _check_form("key", key, self.key_value_form)
        require(agree(key.shape, value.shape), f"the key is {key}, the value {value}, but must be of one shape")
        _check_heads(query, key)
        queries = self._batch("query", query, self.query_form, query_lengths)
        keys = self._batch("key_value", key, self.key_value_form, key_value_lengths)
        require(agree((queries,), (keys,)), f"there are queries of {queries} sequences, and keys of {keys}")
        if mask is not None:
            self._check_mask(mask, query, key)
        self._check_quantisation(quantize_scale)
        return query.without_value()

    @staticmethod
    def _batch(name: str, x: TensorType, form: AttentionIOForm, lengths: TensorType | None) -> int:
        """The number of sequences, -1 if it is unknown."""
        if form is PACKED:
            return batch_of(f"{name}_lengths", lengths)
        require(
            lengths is None or name == "key_value",
            f"there are {name}_lengths, {lengths}, and {name}_form is PADDED_BHND",
            why="every padded query is computed; what is too much may be left unread",
            fix="set query_form to PACKED_NHD, or query_lengths to None",
        )
        require(
            lengths is None or (lengths.is_index and agree(lengths.shape, x.shape[:1])),
            f"the {name}_lengths are {lengths}, but must be int32[{x.shape[0]}]",
            why=f"each padded sequence of {x} has a length",
        )
        return x.shape[0]

    def _check_mask(self, mask: TensorType, query: TensorType, key: TensorType) -> None:
        require(
            self.causal_kind is CausalMaskKind.NONE,
            f"there is a mask, and causal_kind is {self.causal_kind.name}",
            why="TensorRT takes one or the other",
            fix="set causal_kind to NONE, and make the mask forbid what comes later",
        )
        forms = (self.query_form, self.key_value_form)
        require(PACKED not in forms, "there is a mask, and packed sequences have no common length for it")
        require(
            mask.is_bool or mask.dtype == query.dtype,
            f"the mask is {mask}, but must be bool or {query.dtype}",
            fix="convert it with add_cast",
        )
        wanted = (*query.shape[:3], key.shape[2])
        stretched = tuple(1 if own == 1 and axis < 2 else wanted[axis] for axis, own in enumerate(mask.shape[:4]))
        require(
            mask.rank == 4 and agree(mask.shape, stretched),
            f"the mask is {mask}, but must be {mask.with_shape(wanted)}; its first two lengths may be 1",
            why=f"it is added to, or forbids, products of the query {query} with the key {key}",
        )

    def _check_quantisation(self, scale: TensorType | None) -> None:
        kind = self.normalization_quantize_to_type
        require(
            kind in QUANTISED or kind is DataType.FLOAT,
            f"normalization_quantize_to_type is {kind.name}",
            why="the weights can be quantised to INT8 or FP8; FLOAT leaves them as they are",
        )
        require(
            (scale is not None) == (kind in QUANTISED),
            f"normalization_quantize_to_type is {kind.name}, and there is "
            f"{'no ' if scale is None else 'a '}normalization_quantize_scale",
            why="quantisation needs both a type and a scale",
        )
        require(
            scale is None or (scale.is_float and scale.rank <= 1 and scale.volume in (1, UNKNOWN)),
            f"the normalization_quantize_scale is {scale}, but must be one floating-point number",
        )

    # ------------------------------------------------------------------ values

    def evaluate(self, query: Array, key: Array, value: Array, *extras: Array | None) -> Array:
        return self._attending.evaluate(query, key, value, Extras(*extras))

    def lower(self, query: Any, key: Any, value: Any, *extras: Any) -> Any:
        return self._attending.lower(jnp.asarray(query), jnp.asarray(key), jnp.asarray(value), Extras(*extras))


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
        f"the query has {heads} heads, and the key {groups}",
        why="the heads of the query share those of the key evenly",
    )
    require(
        agree(query.shape[-1:], key.shape[-1:]),
        f"the query {query} and the key {key} differ in their last axis",
        why="their products are formed along it",
    )


# ---------------------------------------------------------------------------- the view


def _attribute(name: str) -> Any:
    """A property that is an attribute of the output layer."""

    def read(self: IAttention) -> Any:
        return getattr(self.output_layer, name)

    def write(self: IAttention, value: Any) -> None:
        setattr(self.output_layer, name, value)

    return property(read, write)


def _optional_input(index: int) -> Any:
    """A property that is an input of the output layer."""

    def read(self: IAttention) -> ITensor | None:
        return self.output_layer.get_input(index)

    def write(self: IAttention, tensor: ITensor | None) -> None:
        self.output_layer.place_input(index, tensor)

    return property(read, write)


class IAttention:
    """An attention: for each query the mean of the values, weighted by the softmax of its products with the keys.

    It is a view of two layers of the network, ``IAttentionInputLayer`` and ``IAttentionOutputLayer``; the latter says
    what is computed. Two views of one attention are equal.

    Attributes:
        norm_op: what turns the products into weights.
        causal: whether causal_kind is UPPER_LEFT.
        causal_kind: which keys a query may attend to.
        mask: which keys a query may attend to, or what is added to the products; None for neither.
        decomposable: whether TensorRT may use several kernels; here it makes no difference.
        query_form: the form of query and output, padded or packed.
        key_value_form: the form of key and value, padded or packed.
        query_lengths: the cumulative lengths of packed queries; None for padded ones.
        key_value_lengths: the cumulative lengths of packed keys, or the lengths of padded ones; None for whole ones.
        normalization_quantize_to_type: the type that the weights are quantised to; FLOAT for none.
        normalization_quantize_scale: the scale of that; None for none.
        name: that of the output layer, as are metadata and num_ranks.
        output_layer: the layer that computes.
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
        """The layer that query, key and value go through."""
        tensor = self.output_layer.inputs[0]
        assert tensor is not None
        assert isinstance(tensor.producer, IAttentionInputLayer), f"{self.name!r} has lost its input layer"
        return tensor.producer

    @property
    def causal(self) -> bool:
        """Whether a query attends only to the keys at or before its own place; setting it sets causal_kind."""
        return self.causal_kind is CausalMaskKind.UPPER_LEFT

    @causal.setter
    def causal(self, causal: bool) -> None:
        self.causal_kind = _causal_kind(causal)

    @property
    def num_inputs(self) -> int:
        """3: query, key and value."""
        return self.input_layer.num_inputs

    @property
    def num_outputs(self) -> int:
        """1."""
        return self.output_layer.num_outputs

    def get_input(self, index: int) -> ITensor | None:
        """Query, key or value: input 0, 1 or 2; None if there is none of this number."""
        return self.input_layer.get_input(index)

    def get_output(self, index: int) -> ITensor | None:
        """The result, output 0; None if there is none of this number."""
        return self.output_layer.get_output(index)

    def set_input(self, index: int, tensor: ITensor) -> bool:
        """Read ``tensor`` as query, key or value from now on: input 0, 1 or 2.

        Raises:
            TypeError: it is no tensor.
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


class AttentionMethods(AddsLayers):
    """The ``add_`` methods of this family."""

    FAMILY = "transformers"

    def add_attention(
        self, query: ITensor, key: ITensor, value: ITensor, norm_op: AttentionNormalizationOp, causal: bool
    ) -> IAttention:
        """The mean of the values for each query, weighted by its products with the keys; causal is UPPER_LEFT."""
        return self.add_attention_v2(query, key, value, norm_op, _causal_kind(causal))

    def add_attention_v2(
        self,
        query: ITensor,
        key: ITensor,
        value: ITensor,
        norm_op: AttentionNormalizationOp,
        causal_kind: CausalMaskKind,
    ) -> IAttention:
        """The mean of the values for each query, weighted by its products with the keys."""
        made = IAttentionOutputLayer(norm_op=norm_op, causal_kind=causal_kind)
        tensors = [check_tensor(query, "query"), check_tensor(key, "key"), check_tensor(value, "value")]
        source = self.add(IAttentionInputLayer(), tensors)
        return IAttention(self.add(made, source.outputs))

    def add_rotary_embedding(
        self, input: ITensor, cos_cache: ITensor, sin_cache: ITensor, interleaved: bool, rotary_embedding_dim: int
    ) -> IRotaryEmbeddingLayer:
        """Pairs of elements of each token of ``input`` turned by the angles of the caches."""
        made = IRotaryEmbeddingLayer(interleaved=interleaved, rotary_embedding_dim=rotary_embedding_dim)
        tensors = [check_tensor(input, "input"), check_tensor(cos_cache, "cos_cache")]
        return self.add(made, [*tensors, check_tensor(sin_cache, "sin_cache")])

    def add_kv_cache_update(
        self, cache: ITensor, update: ITensor, write_indices: ITensor, cache_mode: KVCacheMode
    ) -> IKVCacheUpdateLayer:
        """``cache`` with the tokens of ``update`` written from the places ``write_indices`` on."""
        tensors = [check_tensor(cache, "cache"), check_tensor(update, "update")]
        made = IKVCacheUpdateLayer(cache_mode=cache_mode)
        return self.add(made, [*tensors, check_tensor(write_indices, "write_indices")])
