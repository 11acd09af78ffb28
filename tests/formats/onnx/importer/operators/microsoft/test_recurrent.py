"""Recurrent networks of onnxruntime."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, as_constants, bytes_of, check_like_onnxruntime, floats, slow
from tests.support.onnx_models import check_node, of_node

TIME, FEATURES, HIDDEN = 4, 3, 5
COLUMNS = 4 * HIDDEN


def check(batch, directions, dtype, *middle, per_column=False, rtol=1e-4, atol=1e-5, **attributes):
    """Compare with onnxruntime; ``middle`` are the inputs from the bias to the peepholes."""
    of = (directions, COLUMNS) if per_column else (directions,)
    zero = np.full(of, 130 if dtype is np.uint8 else 0, dtype)  # onnxruntime wants 0 for int8
    weights, recurrent = (bytes_of(directions, rows, COLUMNS, dtype=dtype) for rows in (FEATURES, HIDDEN))
    numbers = [zero, np.abs(floats(*of)) / 100 + 0.002]
    made, given = of_node(
        "DynamicQuantizeLSTM", floats(TIME, batch, FEATURES), weights, recurrent, *middle, *(numbers[::-1] * 2),
        outputs=3, hidden_size=HIDDEN, **attributes, **MICROSOFT
    )  # fmt: skip
    as_constants(made, given, [*given][1:])
    check_like_onnxruntime(made, given, rtol, atol)


@pytest.mark.parametrize("direction", [slow("forward"), slow("reverse"), "bidirectional"])
@pytest.mark.parametrize(("dtype", "per_column"), [(np.uint8, False), slow(np.int8, False), (np.int8, True)])
def test_dynamic_quantize_lstm_is_that_of_onnxruntime(direction, dtype, per_column):
    count = 2 if direction == "bidirectional" else 1
    bias, (first, cell) = floats(count, 2 * COLUMNS), floats(2, count, 1, HIDDEN)
    check(1, count, dtype, bias, None, first, cell, None, per_column=per_column, direction=direction)


@pytest.mark.slow
def test_dynamic_quantize_lstm_may_have_peepholes_and_lengths():
    lengths, peepholes = np.array([3], np.int32), floats(1, 3 * HIDDEN)
    check(1, 1, np.int8, None, lengths, None, None, peepholes, activations=["Sigmoid", "Relu", "Tanh"], clip=2.0)


@pytest.mark.slow
def test_sequences_of_a_batch_differ_by_little_from_those_of_onnxruntime():
    """Its threads share the sequences of a batch, and round the states of one share together."""
    check(3, 1, np.int8, floats(1, 2 * COLUMNS), None, None, None, None, rtol=0.05, atol=0.02)


# ---------------------------------------------------------------------------- linear attention

BATCH, HEADS, SHARED, KEY, VALUE = 2, 4, 2, 4, 6
QUERIES, KEYS, VALUES = (floats(BATCH, TIME, width) for width in (HEADS * KEY, SHARED * KEY, SHARED * VALUE))
STATE, DECAY = floats(BATCH, SHARED, KEY, VALUE), -np.abs(floats(BATCH, TIME, SHARED))
BETA = 1 / (1 + np.exp(-floats(BATCH, TIME, SHARED, seed=1)))


def check_linear(*inputs, **attributes):
    check_node(
        "LinearAttention", *inputs, outputs=2, q_num_heads=HEADS, kv_num_heads=SHARED, rtol=1e-4, atol=1e-5,
        **attributes, **MICROSOFT
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "rest"),
    [slow("linear", ()), slow("gated", (DECAY,)), slow("delta", (None, BETA)), ("gated_delta", (DECAY, BETA))],
)
@pytest.mark.parametrize("state", [None, STATE], ids=["new", "past"])
def test_linear_attention_is_that_of_onnxruntime(state, rule, rest):
    check_linear(QUERIES, KEYS, VALUES, state, *rest, update_rule=rule)


@pytest.mark.slow
def test_each_element_of_a_key_may_decay():
    decay = -np.abs(floats(BATCH, TIME, SHARED * KEY))
    check_linear(QUERIES, KEYS, VALUES, STATE, decay, BETA, update_rule="gated_delta", scale=0.3, open_lengths=True)
