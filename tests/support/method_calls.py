"""A good call of every method that adds a layer, to be poisoned in one place at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import netloop as trt
from netloop.graph.network_base import LayerAdder
from netloop.graph.tensor import ITensor

F, H, I, L, B = trt.float32, trt.float16, trt.int32, trt.int64, trt.bool  # noqa: E741
NONE = trt.MatrixOperation.NONE


class Tensors:
    """Makes inputs and constants of a network."""

    def __init__(self, network: trt.INetworkDefinition) -> None:
        self._network = network

    def __call__(self, dtype: trt.DataType, *shape: int) -> ITensor:
        return self._network.add_input(f"input {self._network.num_inputs}", dtype, shape)

    def sequence(self) -> ITensor:
        return self._network.add_sequence_input(f"input {self._network.num_inputs}", F, (2,))

    def optional(self) -> ITensor:
        return self._network.add_optional_input(f"input {self._network.num_inputs}", F, (2,))

    def constant(self, value: Any, dtype: Any = np.int32) -> ITensor:
        return self._network.add_constant(np.shape(value), np.ascontiguousarray(value, dtype)).get_output(0)


Arguments = Callable[[Tensors], dict[str, Any]]

WEIGHTS = np.ones(9, np.float32)

# fmt: off
OF_NETWORK: dict[str, Arguments] = {
    "add_activation": lambda t: {"input": t(F, 2, 3), "type": trt.ActivationType.RELU},
    "add_assertion": lambda t: {"condition": t(B, 2), "message": "no"},
    "add_attention": lambda t: {
        **{each: t(F, 1, 2, 3, 4) for each in ("query", "key", "value")},
        "norm_op": trt.AttentionNormalizationOp.SOFTMAX, "causal": False,
    },
    "add_attention_v2": lambda t: {
        **{each: t(F, 1, 2, 3, 4) for each in ("query", "key", "value")},
        "norm_op": trt.AttentionNormalizationOp.SOFTMAX, "causal_kind": trt.CausalMaskKind.NONE,
    },
    "add_bit_cast": lambda t: {"input": t(F, 2, 3), "to_type": I},
    "add_cast": lambda t: {"input": t(F, 2), "to_type": I},
    "add_concatenation": lambda t: {"inputs": [t(F, 2, 3), t(F, 2, 3)]},
    "add_constant": lambda t: {"shape": (3, 3), "weights": WEIGHTS},
    "add_convolution_nd": lambda t: {
        "input": t(F, 1, 1, 5, 5), "num_output_maps": 1, "kernel_shape": (3, 3), "kernel": WEIGHTS, "bias": WEIGHTS[:1],
    },
    "add_cumulative": lambda t: {
        "input": t(F, 2, 3), "axis": t.constant(1), "op": trt.CumulativeOperation.SUM, "exclusive": False,
        "reverse": False,
    },
    "add_deconvolution_nd": lambda t: {
        "input": t(F, 1, 1, 5, 5), "num_output_maps": 1, "kernel_shape": (3, 3), "kernel": WEIGHTS, "bias": WEIGHTS[:1],
    },
    "add_dequantize": lambda t: {"input": t(trt.int8, 2, 3), "scale": t(F), "output_type": F},
    "add_determinant": lambda t: {"input": t(F, 2, 3, 3)},
    "add_dft": lambda t: {"input": t(F, 3, 2), "axis": -2, "inverse": False, "onesided": False},
    "add_dist_collective": lambda t: {
        "input": t(F, 2), "dist_collective_op": trt.CollectiveOperation.ALL_REDUCE,
        "reduce_op": trt.ReduceOperation.SUM, "root": -1, "groups": [],
    },
    "add_dynamic_quantize": lambda t: {
        "input": t(F, 2, 32), "axis": 1, "block_size": 16, "output_type": trt.fp8, "scale_type": F,
    },
    "add_dynamic_quantize_v2": lambda t: {
        "input": t(F, 2, 32), "block_shape": (1, 16), "output_type": trt.fp8, "scale_type": F,
    },
    "add_einsum": lambda t: {"inputs": [t(F, 2, 3), t(F, 3, 4)], "equation": "ij,jk->ik"},
    "add_elementwise": lambda t: {"input1": t(F, 2, 3), "input2": t(F, 2, 3), "op": trt.ElementWiseOperation.SUM},
    "add_fill": lambda t: {"shape": (3,), "op": trt.FillOperation.LINSPACE, "output_type": F},
    "add_gather": lambda t: {"input": t(F, 2, 3), "indices": t(I, 4), "axis": 0},
    "add_gather_v2": lambda t: {"input": t(F, 2, 3), "indices": t(I, 2, 3), "mode": trt.GatherMode.ELEMENT},
    "add_grid_sample": lambda t: {"input": t(F, 1, 1, 4, 4), "grid": t(F, 1, 3, 3, 2)},
    "add_identity": lambda t: {"input": t(F, 2)},
    "add_kv_cache_update": lambda t: {
        "cache": t(F, 2, 1, 5, 3), "update": t(F, 2, 1, 2, 3), "write_indices": t(I, 2),
        "cache_mode": trt.KVCacheMode.LINEAR,
    },
    "add_lrn": lambda t: {"input": t(F, 1, 3, 2), "window": 3, "alpha": 1.0, "beta": 0.75, "k": 1.0},
    "add_matrix_multiply": lambda t: {"input0": t(F, 2, 3), "op0": NONE, "input1": t(F, 3, 4), "op1": NONE},
    "add_moe": lambda t: {
        "hidden_states": t(F, 1, 2, 3), "selected_experts_for_tokens": t(I, 1, 2, 1),
        "scores_for_selected_experts": t(F, 1, 2, 1),
    },
    "add_nms": lambda t: {
        "boxes": t(F, 1, 3, 4), "scores": t(F, 1, 3, 2), "max_output_boxes_per_class": t(I), "indices_type": I,
    },
    "add_non_zero": lambda t: {"input": t(F, 2, 3), "indices_type": I},
    "add_normalization": lambda t: {
        "input": t(F, 1, 2, 3), "scale": t(F, 1, 2, 1), "bias": t(F, 1, 2, 1), "axesMask": 4,
    },
    "add_normalization_v2": lambda t: {
        "input": t(F, 1, 2, 3), "scale": t(F, 1, 2, 1), "bias": t(F, 1, 2, 1), "axesMask": 4,
    },
    "add_one_hot": lambda t: {"indices": t(I, 3), "values": t(F, 2), "depth": t.constant(4), "axis": -1},
    "add_padding_nd": lambda t: {"input": t(F, 1, 1, 2, 2), "pre_padding": (1, 1), "post_padding": (0, 0)},
    "add_parametric_relu": lambda t: {"input": t(F, 2, 3), "slopes": t(F, 1, 3)},
    "add_plugin_v3": lambda t: {
        "inputs": [t(F, 2, 3)], "shape_inputs": [t(I)], "plugin": trt.JaxPlugin(lambda x, n: x * 2),
    },
    "add_pooling_indices": lambda t: {"input": t(F, 1, 1, 4, 4), "window_size": (2, 2), "indices_type": I},
    "add_pooling_nd": lambda t: {"input": t(F, 1, 1, 4, 4), "type": trt.PoolingType.MAX, "window_size": (2, 2)},
    "add_quantize": lambda t: {"input": t(F, 2, 3), "scale": t(F), "output_type": trt.int8},
    "add_ragged_softmax": lambda t: {"input": t(F, 1, 2, 3), "bounds": t(I, 1, 2, 1)},
    "add_reduce": lambda t: {"input": t(F, 2, 3), "op": trt.ReduceOperation.SUM, "axes": 2, "keep_dims": False},
    "add_resize": lambda t: {"input": t(F, 2, 3)},
    "add_reverse_sequence": lambda t: {"input": t(F, 3, 2), "sequence_lens": t(I, 2)},
    "add_rotary_embedding": lambda t: {
        "input": t(F, 1, 2, 3, 4), "cos_cache": t(F, 1, 3, 2), "sin_cache": t(F, 1, 3, 2), "interleaved": False,
        "rotary_embedding_dim": 0,
    },
    "add_optional": lambda t: {"input": t(F, 2)},
    "add_optional_get": lambda t: {"input": t.optional()},
    "add_optional_has": lambda t: {"input": t.optional()},
    "add_scale": lambda t: {
        "input": t(F, 1, 1, 2, 2), "mode": trt.ScaleMode.UNIFORM,
        **dict.fromkeys(("shift", "scale", "power"), WEIGHTS[:1]),
    },
    "add_scale_nd": lambda t: {
        "input": t(F, 1, 1, 2, 2), "mode": trt.ScaleMode.UNIFORM,
        **dict.fromkeys(("shift", "scale", "power"), WEIGHTS[:1]), "channel_axis": 1,
    },
    "add_scatter": lambda t: {
        "data": t(F, 2, 3), "indices": t(I, 2, 3), "updates": t(F, 2, 3), "mode": trt.ScatterMode.ELEMENT,
    },
    "add_select": lambda t: {"condition": t(B, 2, 3), "then_input": t(F, 2, 3), "else_input": t(F, 2, 3)},
    "add_sequence": lambda t: {"inputs": [t(F, 2), t(F, 3)], "dtype": F},
    "add_sequence_at": lambda t: {"input": t.sequence(), "position": t(L)},
    "add_sequence_concatenation": lambda t: {"input": t.sequence(), "axis": 0, "new_axis": False},
    "add_sequence_erase": lambda t: {"input": t.sequence(), "position": t(L)},
    "add_sequence_insert": lambda t: {"input": t.sequence(), "tensor": t(F, 2), "position": t(L)},
    "add_sequence_length": lambda t: {"input": t.sequence()},
    "add_sequence_split": lambda t: {"input": t(F, 4), "split": t.constant([1, 3]), "axis": 0, "keep_axis": True},
    "add_shape": lambda t: {"input": t(F, 2, 3)},
    "add_shuffle": lambda t: {"input": t(F, 2, 3)},
    "add_slice": lambda t: {"input": t(F, 4, 4), "start": (0, 0), "shape": (2, 2), "stride": (1, 1)},
    "add_softmax": lambda t: {"input": t(F, 2, 3)},
    "add_squeeze": lambda t: {"input": t(F, 2, 1), "axes": t.constant([1])},
    "add_topk": lambda t: {"input": t(F, 2, 3), "op": trt.TopKOperation.MAX, "k": 2, "axes": 2, "indices_type": I},
    "add_unary": lambda t: {"input": t(F, 2, 3), "op": trt.UnaryOperation.NEG},
    "add_unique": lambda t: {"input": t(F, 2, 3), "axis": 1, "sorted": True, "indices_type": I},
    "add_unsqueeze": lambda t: {"input": t(F, 2, 3), "axes": t.constant([0])},
}
OF_LOOP: dict[str, Arguments] = {
    "add_trip_limit": lambda t: {"tensor": t(I), "kind": trt.TripLimit.COUNT},
    "add_iterator": lambda t: {"tensor": t(F, 2, 3), "axis": 0, "reverse": False},
    "add_recurrence": lambda t: {"initial_value": t(F, 2)},
    "add_loop_output": lambda t: {"tensor": t(F, 2), "kind": trt.LoopOutput.LAST_VALUE, "axis": 0},
}
OF_CONDITIONAL: dict[str, Arguments] = {
    "set_condition": lambda t: {"condition": t(B)},
    "add_input": lambda t: {"input": t(F, 2)},
    "add_output": lambda t: {"true_subgraph_output": t(F, 2), "false_subgraph_output": t(F, 2)},
}
# fmt: on
NOT_LAYERS = {"add_input", "add_sequence_input", "add_optional_input", "add_loop", "add_if_conditional"}
"""The methods of a network that add something else."""

RECEIVERS: dict[type, tuple[Callable[[trt.INetworkDefinition], Any], dict[str, Arguments]]] = {
    trt.INetworkDefinition: (lambda network: network, OF_NETWORK),
    trt.ILoop: (lambda network: network.add_loop(), OF_LOOP),
    trt.IIfConditional: (lambda network: network.add_if_conditional(), OF_CONDITIONAL),
}


@dataclass(frozen=True)
class Method:
    """A method that adds a layer."""

    cls: type
    name: str

    def __str__(self) -> str:
        return f"{self.cls.__name__}.{self.name}"

    def prepare(self) -> tuple[trt.INetworkDefinition, dict[str, Any], Callable[..., Any]]:
        """A network with what the call needs, good arguments, and the bound method."""
        network = trt.INetworkDefinition()
        receiver, arguments = RECEIVERS[self.cls]
        return network, arguments[self.name](Tensors(network)), getattr(receiver(network), self.name)


def methods_of(cls: type) -> Iterator[str]:
    """The methods of a class that add layers."""
    skipped = NOT_LAYERS if cls is trt.INetworkDefinition else frozenset[str]()
    return (name for name in dir(cls) if name.startswith(LayerAdder.PREFIXES) and name not in skipped)


METHODS = [Method(cls, name) for cls, (_, arguments) in RECEIVERS.items() for name in arguments]
