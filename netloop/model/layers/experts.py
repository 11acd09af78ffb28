"""Mixtures of experts: many small networks, a few of which are applied to each token."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.graph import ITensor, NetworkBase, Operation, layer
from netloop.model.layers.lax_forms import maximum, minimum, quotient, sigmoid
from netloop.model.layers.low_bit import lower_quantized, quantized
from netloop.values.diagnostics import require
from netloop.values.dims import Dims, DimsLike
from netloop.values.enums import DataType, LayerType, MoEActType
from netloop.values.types import UNKNOWN, Array, TensorType, wide

LEAST_ROWS, MOST_ROWS = 8, 128
"""The bounds of the number of rows in a block that one expert is applied to."""


class _ExpertWeights(NamedTuple):
    """The weights, biases and scale of the experts, inputs 3 to 9; None for a missing one."""

    gate: Any = None
    up: Any = None
    down: Any = None
    gate_bias: Any = None
    up_bias: Any = None
    down_bias: Any = None
    scale: Any = None

    @property
    def weights(self) -> tuple[Any, Any, Any]:
        return self.gate, self.up, self.down

    @property
    def biases(self) -> tuple[Any, Any, Any]:
        return self.gate_bias, self.up_bias, self.down_bias

    def of(self, expert: Any) -> "_ExpertWeights":
        """The weights, biases and scale of one expert."""
        return _ExpertWeights(*(None if array is None else array[expert] if array.ndim else array for array in self))


FIRST_PART = 3
BIASES, SCALE = FIRST_PART + 3, FIRST_PART + 6
"""The indices of the inputs with the first bias and with the scale."""

# fmt: off
AXES = {
    "hidden_states":               "BSH",
    "selected_experts_for_tokens": "BSK",
    "scores_for_selected_experts": "BSK",
    "fc_gate_weights":             "EHI",
    "fc_up_weights":               "EHI",
    "fc_down_weights":             "EIH",
    "fc_gate_biases":              "EI",
    "fc_up_biases":                "EI",
    "fc_down_biases":              "EH",
}
# fmt: on
"""The axes of the inputs: Batch, Sequence, Hidden, Expert, Inner dim of an expert, and the K experts of a token."""


@layer(LayerType.MOE, "MoE")
class IMoELayer(Operation):
    """Mixture of experts: the sum over the selected experts of a token, each applied to it and weighted by its score.

    ::

        output[b, s] = sum over k of scores[b, s, k] expert(hidden_states[b, s]; e = selected_experts[b, s, k])

        expert(x; e) = h @ down[e] + down_bias[e]
        g, u = x @ gate[e] + gate_bias[e], x @ up[e] + up_bias[e]
        NONE   h = u g
        SILU   h = (u' + beta) g' / (1 + exp(-alpha g'))
               g', u' = min(g, limit), max(-limit, min(u, limit))

    hidden_states and output [B, S, H]; selected experts, int32 or int64, and their scores [B, S, K]; weights gate and
    up [E, H, I], down [E, I, H]; biases, all or none, gate and up [E, I], down [E, H]. All inputs except the selected
    experts are floating-point, of one type; half types are summed in float32, and h is rounded to the half type.

    The weights, the biases and the scale of h are inputs 3 to 9, set by the methods below. Static quantization
    replaces h by s FP8(h / s), with a scale s for all experts, 0-D, or one for each, [E]. An expert out of range is an
    error in the reference; a compiled network uses an arbitrary expert.

    Attributes:
        activation_type: the activation of g.
        swiglu_param_limit, swiglu_param_alpha, swiglu_param_beta: limit, alpha and beta.
        quantization_to_type: the type that h is quantized to, FP8; FLOAT for none.
        quantization_block_shape, dyn_q_output_scale_type: for dynamic quantization, which netloop does not support.
    """

    HAS_PRODUCTS = True
    REQUIRED_INPUTS = 3
    MAX_INPUTS = 10

    activation_type: MoEActType = MoEActType.NONE
    swiglu_param_limit: float = math.inf
    swiglu_param_alpha: float = 1.0
    swiglu_param_beta: float = 0.0
    quantization_to_type: DataType = DataType.FLOAT
    quantization_block_shape: DimsLike = ()
    dyn_q_output_scale_type: DataType = DataType.FLOAT

    # ------------------------------------------------------------------ setting

    def set_gated_weights(
        self, fc_gate_weights: ITensor, fc_up_weights: ITensor, fc_down_weights: ITensor, activation_type: MoEActType
    ) -> None:
        """Set the weights of the experts and the activation."""
        self.activation_type = activation_type
        for index, tensor in enumerate((fc_gate_weights, fc_up_weights, fc_down_weights), FIRST_PART):
            self.set_input(index, tensor)

    def set_gated_biases(self, fc_gate_biases: ITensor, fc_up_biases: ITensor, fc_down_biases: ITensor) -> None:
        """Set the biases of the experts."""
        for index, tensor in enumerate((fc_gate_biases, fc_up_biases, fc_down_biases), BIASES):
            self.set_input(index, tensor)

    def set_quantization_static(self, fc_down_activation_scale: ITensor, data_type: DataType) -> None:
        """Quantize h, the operand of down, by a fixed scale."""
        self.quantization_to_type = data_type
        self.quantization_block_shape = ()
        self.set_input(SCALE, fc_down_activation_scale)

    def set_quantization_dynamic_dbl_q(
        self,
        fc_down_activation_dbl_q_scale: ITensor,
        data_type: DataType,
        block_shape: Dims,
        dyn_q_output_scale_type: DataType,
    ) -> None:
        """Quantize h by scales computed from it; netloop refuses a network with such a layer."""
        self.quantization_to_type = data_type
        self.quantization_block_shape = block_shape
        self.dyn_q_output_scale_type = dyn_q_output_scale_type
        self.set_input(SCALE, fc_down_activation_dbl_q_scale)

    def set_swiglu_params(self, limit: float, alpha: float, beta: float) -> None:
        """Set the parameters of SILU."""
        self.swiglu_param_limit, self.swiglu_param_alpha, self.swiglu_param_beta = limit, alpha, beta

    # ------------------------------------------------------------------ types

    def infer(
        self, hidden: TensorType, experts: TensorType, scores: TensorType, *rest: TensorType | None
    ) -> TensorType:
        parts = _ExpertWeights(*rest)
        require(
            None not in parts.weights,
            "the experts have no weights",
            fix="set them with set_gated_weights(gate, up, down, activation_type)",
            why="each expert computes a product with its own weights",
        )
        require(parts.biases.count(None) in (0, 3), "some biases are missing", "all three must be set, or none")
        require(
            hidden.is_float, f"the hidden_states must be floating-point, not {hidden}", fix="convert them with add_cast"
        )
        require(
            experts.is_index,
            f"the selected experts must be int32 or int64, not {experts}",
            why="an expert is selected by its number",
        )
        lengths: dict[str, int] = {}
        for name, type in zip(AXES, (hidden, experts, scores, *parts[:-1]), strict=True):
            if type is not None:
                same = name == "selected_experts_for_tokens" or type.dtype == hidden.dtype
                require(same, f"{name} is {type.dtype}, but hidden_states {hidden.dtype}", fix="convert one of them")
                _match_axes(lengths, name, type)
        require(lengths["E"] != 0, "the number of experts is 0", why="tokens are sent to experts")
        self._check_parameters()
        self._check_quantization(parts.scale, lengths["E"])
        return hidden.with_shape(lengths[name] for name in "BSH")

    def _check_parameters(self) -> None:
        for name in ("alpha", "beta"):
            value = getattr(self, f"swiglu_param_{name}")
            require(
                math.isfinite(value),
                f"swiglu_param_{name} is {value}, but must be finite",
                why="the activation is not defined for it",
            )
        limit = self.swiglu_param_limit
        require(limit > 0, f"swiglu_param_limit is {limit}, but must be positive", why="values are cut to it")

    def _check_quantization(self, scale: TensorType | None, experts: int) -> None:
        kind = self.quantization_to_type
        require(
            not self.quantization_block_shape,
            "netloop does not support the dynamic quantization of set_quantization_dynamic_dbl_q",
            fix="omit it, or call set_quantization_static",
            why="it quantizes with scales that depend on the data",
        )
        if scale is None:
            require(
                kind is DataType.FLOAT,
                f"quantization_to_type is {kind.name}, but there is no scale",
                why="quantized weights need a scale",
            )
            return
        require(
            kind is DataType.FP8,
            f"quantization_to_type is {kind.name}, but there is a scale",
            why="the operand of down can only be quantized to FP8",
        )
        fits = scale.rank == 0 or (scale.rank == 1 and UNKNOWN in (*scale.shape, experts)) or scale.shape == (experts,)
        require(
            scale.is_float and fits,
            f"the scale is {scale}, but must be floating-point, [] or [{experts}]",
            why="there is one scale, or one for each expert",
        )
        positive = scale.value is None or bool((scale.value > 0).all())
        require(positive, "the scale has an element that is not positive", why="values are divided by it")

    # ------------------------------------------------------------------ values

    def _activated(self, xp: Any, g: Any, u: Any) -> Any:
        if self.activation_type is MoEActType.NONE:
            return u * g
        limit = self.swiglu_param_limit
        g, u = minimum(xp, g, limit), maximum(xp, -limit, minimum(xp, limit, u))
        return (u + self.swiglu_param_beta) * g * sigmoid(xp, self.swiglu_param_alpha * g)

    def evaluate(self, hidden: Array, experts: Array, scores: Array, *rest: Array | None) -> Array:
        parts = _ExpertWeights(*rest)
        array = np.zeros(hidden.shape, wide(hidden).dtype)
        for b, s, k in np.ndindex(*experts.shape):
            expert, count = int(experts[b, s, k]), len(parts.gate)
            require(
                0 <= expert < count,
                f"expert {expert} is selected, but there are only {count}",
                why="a number stands for an expert",
            )
            array[b, s] += wide(scores[b, s, k]) * self._expert(hidden[b, s], parts.of(expert))
        return array.astype(hidden.dtype)

    def _expert(self, x: Array, part: _ExpertWeights) -> Array:
        """Apply one expert to one token."""
        biases = [0 if bias is None else wide(bias) for bias in part.biases]
        g, u = (wide(x) @ wide(w) + bias for w, bias in zip(part.weights[:2], biases[:2], strict=True))
        h = self._activated(np, g, u)
        if part.scale is not None:
            h = quantized(h / part.scale.astype(h.dtype), DataType.FP8).astype(h.dtype) * part.scale.astype(h.dtype)
        return wide(h.astype(x.dtype)) @ wide(part.down) + biases[2]

    def lower(self, hidden: Any, experts: Any, scores: Any, *rest: Any) -> Any:
        hidden, parts = (
            jnp.asarray(hidden),
            _ExpertWeights(*(None if operand is None else jnp.asarray(operand) for operand in rest)),
        )
        tokens = hidden.reshape(math.prod(hidden.shape[:2]), hidden.shape[2])
        chosen = jnp.clip(jnp.asarray(experts).reshape(-1).astype(np.int32), 0, len(parts.gate) - 1)
        owners = np.repeat(np.arange(len(tokens), dtype=np.int32), experts.shape[2])

        def run(rows: Any, expert: Any) -> Any:
            return self._lower_expert(rows, parts.of(expert))

        rows = _routed(run, tokens[owners], chosen, len(parts.gate))
        weighted = rows * wide(jnp.asarray(scores)).reshape(-1, 1)
        return weighted.reshape(*experts.shape, hidden.shape[2]).sum(2).astype(hidden.dtype)

    def _lower_expert(self, rows: Any, part: _ExpertWeights) -> Any:
        """Apply one expert to several tokens."""
        g, u = (_product(rows, weight, bias) for weight, bias in zip(part.weights[:2], part.biases[:2], strict=True))
        h = self._activated(jnp, g, u)
        if part.scale is not None:
            scale = part.scale.astype(h.dtype)
            h = lower_quantized(quotient(jnp, h, scale), DataType.FP8).astype(h.dtype) * scale
        return _product(h.astype(rows.dtype), part.down, part.down_bias)


def _match_axes(lengths: dict[str, int], name: str, type: TensorType) -> None:
    """Check the dims of an input against those known so far, and add the new ones to ``lengths``."""
    axes = AXES[name]
    shown = ", ".join(axes)
    require(
        type.rank == len(axes),
        f"{name} is {type}, but must have {len(axes)} axes: [{shown}]",
        why="the weights of all experts are one tensor",
    )
    for axis, length in zip(axes, type.shape, strict=True):
        common = lengths.get(axis, UNKNOWN)
        require(
            UNKNOWN in (common, length) or common == length,
            f"{name} is {type} with the axes [{shown}], but {axis} is {common} elsewhere",
            why="axes of the same name have the same length",
        )
        lengths[axis] = length if common == UNKNOWN else common


def _product(rows: Any, weights: Any, bias: Any) -> Any:
    array = jnp.matmul(rows, weights, preferred_element_type=wide(rows[:0]).dtype)
    return array if bias is None else array + wide(bias)


def _routed(run: Callable[[Any, Any], Any], rows: Any, chosen: Any, experts: int) -> Any:
    """Apply to each row the expert chosen for it, by ``run``.

    For few rows, the weights of their experts are gathered. Many rows are sorted into blocks of one expert each, padded
    to a common size, and the experts are applied block by block.
    """
    if len(rows) <= experts:
        return jax.vmap(run)(rows[:, None], chosen)[:, 0]
    size = min(MOST_ROWS, max(LEAST_ROWS, 1 << (len(rows) // experts).bit_length()))
    blocks = len(rows) // size + experts
    counts = jnp.zeros(experts, np.int32).at[chosen].add(1)
    filled = -(-counts // size)
    ends = jnp.cumsum(filled)
    order = jnp.argsort(chosen, stable=True)
    ranks = jnp.zeros(len(rows), np.int32).at[order].set(np.arange(len(rows), dtype=np.int32))
    within = ranks - (jnp.cumsum(counts) - counts)[chosen]
    places = ((ends - filled) * size)[chosen] + within
    laid = jnp.zeros((blocks * size, rows.shape[1]), rows.dtype).at[places].set(rows)
    expert_of = jnp.searchsorted(ends, np.arange(blocks, dtype=np.int32), side="right").clip(0, experts - 1)
    result = lax.map(lambda block: run(*block), (laid.reshape(blocks, size, rows.shape[1]), expert_of))
    return result.reshape(blocks * size, rows.shape[1])[places]


class ExpertMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "transformers"

    def add_moe(
        self, hidden_states: ITensor, selected_experts_for_tokens: ITensor, scores_for_selected_experts: ITensor
    ) -> IMoELayer:
        """A mixture of experts; set its weights with ``set_gated_weights`` of the layer.

        ::

            output[b, s] = sum over k of scores[b, s, k] expert(hidden_states[b, s]; e = selected_experts[b, s, k])

            expert(x; e) = h @ down[e] + down_bias[e]
            g, u = x @ gate[e] + gate_bias[e], x @ up[e] + up_bias[e]
            NONE   h = u g
            SILU   h = (u' + beta) g' / (1 + exp(-alpha g'))
                   g', u' = min(g, limit), max(-limit, min(u, limit))

        hidden_states and output [B, S, H]; selected experts, int32 or int64, and their scores [B, S, K]; weights
        gate and up [E, H, I], down [E, I, H]; biases, all or none, gate and up [E, I], down [E, H]. All inputs except
        the selected experts are floating-point, of one type; half types are summed in float32, and h is rounded to the
        half type.

        The weights, the biases and the scale of h are inputs 3 to 9, set by the methods below. Static quantization
        replaces h by s FP8(h / s), with a scale s for all experts, 0-D, or one for each, [E]. An expert out of range is
        an error in the reference; a compiled network uses an arbitrary expert.

        Args:
            hidden_states: input 0.
            selected_experts_for_tokens: input 1.
            scores_for_selected_experts: input 2.

        Further attributes of the layer, which have defaults: ``activation_type``, ``swiglu_param_limit``,
        ``swiglu_param_alpha``, ``swiglu_param_beta``, ``quantization_to_type``, ``quantization_block_shape``,
        ``dyn_q_output_scale_type``.
        """
        return self.add(
            IMoELayer(),
            hidden_states=hidden_states,
            selected_experts_for_tokens=selected_experts_for_tokens,
            scores_for_selected_experts=scores_for_selected_experts,
        )
