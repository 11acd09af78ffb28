"""Mixtures of experts of onnxruntime."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, as_constants, bytes_of, check_like_onnxruntime, floats, slow
from tests.support.onnx_models import of_node, runs

TOKENS, HIDDEN, INNER, EXPERTS = 5, 32, 16, 4
X, SCORES = floats(TOKENS, HIDDEN), floats(TOKENS, EXPERTS)


def weights(rows, columns, bias=True):
    return floats(EXPERTS, rows, columns), floats(EXPERTS, rows) if bias else None


def check(op, x, *inputs, rtol=1e-4, atol=1e-4, **attributes):
    made, given = of_node(op, x, SCORES, *inputs, **attributes, **MICROSOFT)
    as_constants(made, given, [*given][2:])
    check_like_onnxruntime(made, given, rtol, atol)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("normal", [0, 1])
@pytest.mark.parametrize("activation", ["relu", "silu", "gelu", "identity"])
def test_experts_are_those_of_onnxruntime(activation, normal, count):
    inputs = *weights(INNER, HIDDEN), *weights(HIDDEN, INNER)
    check("MoE", X, *inputs, k=count, activation_type=activation, normalize_routing_weights=normal)


@pytest.mark.slow
def test_experts_may_have_no_bias_and_batches_of_sequences():
    inputs = *weights(INNER, HIDDEN, bias=False), *weights(HIDDEN, INNER, bias=False)
    check("MoE", X[None], *inputs, k=2, activation_type="relu")


@pytest.mark.parametrize("limits", [slow({}), {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 1.0}])
@pytest.mark.parametrize("bias", [slow(False), True])
def test_gated_experts_are_those_of_onnxruntime(bias, limits):
    inputs = *weights(2 * INNER, HIDDEN, bias), *weights(HIDDEN, INNER, bias)
    check("MoE", X, *inputs, k=2, activation_type="swiglu", swiglu_fusion=1, normalize_routing_weights=1, **limits)


@pytest.mark.slow
def test_gates_may_be_before_the_other_rows_or_apart():
    """onnxruntime has no kernel for it on CPUs."""
    gate, up = floats(2, EXPERTS, INNER, HIDDEN)
    last = weights(HIDDEN, INNER, bias=False)[0]
    pairs = np.stack([gate, up], 2).reshape(EXPERTS, 2 * INNER, HIDDEN)
    forms = [
        ([pairs, None, last], {"activation_type": "swiglu", "swiglu_fusion": 1}),
        ([np.concatenate([gate, up], 1), None, last], {"activation_type": "swiglu", "swiglu_fusion": 2}),
        ([gate, None, last, None, up], {"activation_type": "silu"}),
    ]
    found = [runs(*of_node("MoE", X, SCORES, *inputs, k=2, **by, **MICROSOFT))[0] for inputs, by in forms]

    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("with_zeros", [slow(False), True])
@pytest.mark.parametrize("bits", [4, slow(8)])
@pytest.mark.parametrize("block", [slow(0), 16])
def test_quantized_experts_are_those_of_onnxruntime(block, bits, with_zeros):
    per_byte = 8 // bits

    def quantized(rows, columns):
        blocks = columns // (block or columns)
        scales = np.abs(floats(EXPERTS, rows, blocks)) / (16 << bits)
        of = (rows, -(-blocks // per_byte)) if block else (rows // per_byte,)
        return bytes_of(EXPERTS, rows, columns // per_byte), scales if block else scales[..., 0], bytes_of(EXPERTS, *of)

    (first, scale, zero), (last, last_scale, last_zero) = quantized(2 * INNER, HIDDEN), quantized(HIDDEN, INNER)
    zeros = [None, None, None, zero, last_zero] if with_zeros else []
    sizes = {"block_size": block} if block else {}
    near = 1e-2 if block and bits == 8 else 1e-5  # onnxruntime rounds the tokens to 8 bits too
    check(
        "QMoE", X, first, scale, floats(EXPERTS, 2 * INNER), last, last_scale, floats(EXPERTS, HIDDEN), *zeros, k=2,
        activation_type="swiglu", swiglu_fusion=1, normalize_routing_weights=1, expert_weight_bits=bits,
        rtol=1e-3, atol=near, **sizes
    )  # fmt: skip
