"""Attention of onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import netloop
from tests.support.microsoft import MICROSOFT, bytes_of, floats, slow
from tests.support.onnx_models import check_node, of_node, runs, session_gives

BATCH, NEW, HEADS, WIDTH = 2, 3, 2, 4
ALL = HEADS * WIDTH


def ints(*numbers):
    return np.array(numbers, np.int32)


def mask(*shape):
    return np.random.default_rng(0).integers(0, 2, shape).astype(np.int32)


# ---------------------------------------------------------------------------- with projections

X, WEIGHTS, BIAS = floats(BATCH, NEW, 5), floats(5, 3 * ALL), floats(3 * ALL)
ROWS = ints([0, 1, 0], [0, 1, 1])
PAST = floats(2, BATCH, HEADS, 4, WIDTH)


def check_attention(*inputs, **attributes):
    check_node("Attention", *inputs, num_heads=HEADS, rtol=1e-4, atol=1e-5, **attributes, **MICROSOFT)


@pytest.mark.slow
@pytest.mark.parametrize("attributes", [{}, {"scale": 0.3}, {"unidirectional": 1}])
@pytest.mark.parametrize("bias", [None, BIAS])
def test_attention_is_that_of_onnxruntime(bias, attributes):
    check_attention(X, WEIGHTS, bias, **attributes)


@pytest.mark.parametrize(
    "chosen",
    [ints(2, 3), ints(2, 3, 1, 0), ints(2, 3, 0, 3, 6, 0, 2, 5), ROWS, 0 * ROWS, ints([1], [1]), mask(2, 3, 3)],
    ids=["ends", "ends and starts", "ends and totals", "keys", "none", "all", "pairs"],
)
def test_mask_of_each_form_is_that_of_onnxruntime(chosen):
    check_attention(X, WEIGHTS, BIAS, chosen, mask_filter_value=-1000.0)


@pytest.mark.slow
@pytest.mark.parametrize(("chosen", "value"), [(ROWS, -10000.0), (ROWS, -3.0), (ints(2, 3), -10000.0)])
def test_mask_and_unidirectional_go_together(chosen, value):
    check_attention(X, WEIGHTS, BIAS, chosen, unidirectional=1, mask_filter_value=value)


@pytest.mark.parametrize(
    ("chosen", "unidirectional"), [(None, 0), (None, 1), (mask(2, 7), 1), (ints(7, 5), 0)], ids=str
)
def test_attention_with_past_returns_present(chosen, unidirectional):
    check_attention(X, WEIGHTS, BIAS, chosen, PAST, outputs=2, unidirectional=unidirectional)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 2, 3, 3), (1, 1, 3, 3)])
def test_bias_of_scores_is_that_of_onnxruntime(shape):
    check_attention(X, WEIGHTS, BIAS, None, None, floats(*shape))


@pytest.mark.slow
def test_values_may_have_another_size_than_keys():
    check_attention(X, floats(5, 28), floats(28), qkv_hidden_sizes=[8, 8, 12])


def test_attention_of_open_lengths_is_that_of_onnxruntime():
    check_attention(X, WEIGHTS, BIAS, mask(2, 7), PAST, outputs=2, unidirectional=1, open_lengths=True)


@pytest.mark.slow
def test_attention_of_halves_is_near_that_of_floats():
    """onnxruntime has no kernel for it on CPUs."""
    given = X, WEIGHTS, BIAS, mask(BATCH, 7), PAST
    halves = [array if array.dtype == np.int32 else array.astype(np.float16) for array in given]
    found, expected = (
        runs(*of_node("Attention", *entry, outputs=2, num_heads=HEADS, **MICROSOFT)) for entry in (halves, given)
    )

    assert {array.dtype for array in found} == {np.dtype(np.float16)}
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-2, atol=2e-2)


@pytest.mark.slow
def test_mask_of_four_axes_has_rows_of_the_whole_sequence():
    """onnxruntime has no kernel for it on CPUs."""
    whole = mask(BATCH, 1, 9, 9)
    given = [X, WEIGHTS, BIAS, None, PAST]
    square = whole[:, 0, 4:7, :7]
    found, expected = (
        runs(*of_node("Attention", *given[:3], array, PAST, num_heads=HEADS, **MICROSOFT)) for array in (whole, square)
    )

    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)


def test_buffer_of_past_and_present_is_refused():
    made, _ = of_node("Attention", X, WEIGHTS, BIAS, num_heads=HEADS, past_present_share_buffer=1, **MICROSOFT)

    with pytest.raises(netloop.ModelError, match="share a buffer"):
        netloop.onnx.load(made)


def test_number_of_lengths_must_fit_the_batch():
    made, _ = of_node("Attention", X, WEIGHTS, BIAS, ints(1, 2, 3), num_heads=HEADS, **MICROSOFT)

    with pytest.raises(netloop.ModelError, match="the mask has 3 numbers, but must have 2, 4 or 8"):
        netloop.onnx.load(made)


# ---------------------------------------------------------------------------- several heads

KEYS = 5
QUERY, KEY, VALUE = floats(BATCH, NEW, ALL), floats(BATCH, KEYS, ALL), floats(BATCH, KEYS, ALL + 4)
SELF = floats(3, BATCH, NEW, ALL)
PASTS = floats(2, BATCH, HEADS, 4, WIDTH)


def check_heads(*inputs, **attributes):
    check_node("MultiHeadAttention", *inputs, num_heads=HEADS, rtol=1e-4, atol=1e-5, **attributes, **MICROSOFT)


@pytest.mark.parametrize("attributes", [slow({}), {"scale": 0.2}])
@pytest.mark.parametrize("bias", [None, floats(3 * ALL + 4)])
def test_multi_head_attention_is_that_of_onnxruntime(bias, attributes):
    check_heads(QUERY, KEY, VALUE, bias, **attributes)


@pytest.mark.parametrize(
    "chosen", [ints(5, 3), ints(5, 3, 0, 3, 6, 0, 5, 8), mask(BATCH, KEYS), mask(BATCH, NEW, KEYS)], ids=str
)
@pytest.mark.parametrize("open_lengths", [False, slow(True)])
def test_mask_of_keys_is_that_of_onnxruntime(chosen, open_lengths):
    check_heads(QUERY, KEY, VALUE, None, chosen, open_lengths=open_lengths and chosen.size != 8)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 2, 3, 5), (1, 2, 3, 5), (1, 1, 3, 5)])
def test_bias_of_scores_goes_with_a_mask(shape):
    check_heads(QUERY, KEY, VALUE, None, mask(BATCH, KEYS), floats(*shape))


@pytest.mark.slow
@pytest.mark.parametrize("bias", [None, floats(3 * ALL)])
def test_keys_and_values_may_be_those_of_heads(bias):
    check_heads(QUERY, *floats(2, BATCH, HEADS, KEYS, WIDTH), bias)


@pytest.mark.parametrize("past", [slow(0), 4])
@pytest.mark.parametrize("unidirectional", [slow(0), 1])
def test_heads_with_past_return_present(past, unidirectional):
    pasts = PASTS[:, :, :, :past]
    check_heads(*SELF, floats(3 * ALL), None, None, *pasts, outputs=3, unidirectional=unidirectional)


def test_mask_is_of_past_and_present_keys():
    check_heads(*SELF, None, mask(BATCH, 7), None, *PASTS, outputs=3, unidirectional=1)


@pytest.mark.slow
def test_scores_are_those_of_onnxruntime():
    made, given = of_node(
        "MultiHeadAttention", *SELF, None, mask(BATCH, NEW), outputs=4, num_heads=HEADS, **MICROSOFT
    )  # fmt: skip
    for number, info in enumerate(made.graph.output):
        info.CopyFrom(helper.make_tensor_value_info(f"y{number}", TensorProto.FLOAT, None))

    np.testing.assert_allclose(runs(made, given)[3], session_gives(made, given)["y3"], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_queries_keys_and_values_may_be_packed():
    """onnxruntime has no kernel for it on CPUs."""
    whole = floats(BATCH, NEW, HEADS, 3, WIDTH)
    parts = [whole[..., at, :].reshape(BATCH, NEW, ALL) for at in range(3)]
    forms = [parts, [parts[0], whole[..., 1:, :]], [whole]]
    found = [runs(*of_node("MultiHeadAttention", *form, num_heads=HEADS, **MICROSOFT))[0] for form in forms]

    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-6)


# ---------------------------------------------------------------------------- queries that share keys

QUERIES, SHARED, ELEMENTS, LONGEST = 4, 2, 16, 10
COS, SIN = (nout1(floats(LONGEST, ELEMENTS // 2)) for nout1 in (np.cos, np.sin))
PROMPT = floats(BATCH, 3, QUERIES * ELEMENTS), *floats(2, BATCH, 3, SHARED * ELEMENTS)
STEP = floats(BATCH, 1, QUERIES * ELEMENTS), *floats(2, BATCH, 1, SHARED * ELEMENTS)
WHOLE = ints(2, 2), np.int32(3)


def cache(length, batch=BATCH):
    return [*floats(2, batch, SHARED, length, ELEMENTS)]


def check_shared(*inputs, rtol=1e-4, **attributes):
    check_node(
        "GroupQueryAttention", *inputs, outputs=3, num_heads=QUERIES, kv_num_heads=SHARED, rtol=rtol, atol=1e-5,
        **attributes, **MICROSOFT
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "attributes",
    [{}, {"local_window_size": 2}, {"local_window_size": 1}, {"softcap": 0.5}, {"smooth_softmax": 1}, {"scale": 0.5},
     {"causal": 0}],
    ids=str,
)  # fmt: skip
def test_group_query_attention_is_that_of_onnxruntime(attributes):
    check_shared(*PROMPT, None, None, *WHOLE, **attributes)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_prompt_is_rotated_like_that_of_onnxruntime(interleaved):
    check_shared(*PROMPT, None, None, *WHOLE, COS, SIN, do_rotary=1, rotary_interleaved=interleaved)


@pytest.mark.slow
def test_queries_keys_and_values_may_be_packed_by_head():
    packed = floats(BATCH, 3, (QUERIES + 2 * SHARED) * ELEMENTS)
    check_shared(packed, None, None, None, None, *WHOLE, COS, SIN, do_rotary=1)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 4, 3, 3), (1, 1, 3, 3)])
def test_bias_is_added_to_capped_scores(shape):
    check_shared(*PROMPT, None, None, *WHOLE, None, None, None, floats(*shape), softcap=0.5)


@pytest.mark.slow
def test_sinks_of_heads_are_those_of_onnxruntime():
    check_shared(*PROMPT, None, None, *WHOLE, None, None, None, None, floats(QUERIES))


@pytest.mark.parametrize(
    ("length", "lengths", "attributes"),
    [(4, (4, 4), {}), (4, (4, 2), {}), (9, (4, 2), {}), (9, (4, 2), {"local_window_size": 2})],
    ids=str,
)
@pytest.mark.parametrize("open_lengths", [False, slow(True)])
def test_cache_grows_like_that_of_onnxruntime(length, lengths, attributes, open_lengths):
    check_shared(
        *STEP, *cache(length), ints(*lengths), np.int32(5), COS, SIN, do_rotary=1, open_lengths=open_lengths,
        **attributes
    )  # fmt: skip


@pytest.mark.slow
def test_positions_may_be_given():
    check_shared(*STEP, *cache(4), ints(4, 4), np.int32(5), COS, SIN, np.array([[3], [1]]), do_rotary=1)


@pytest.mark.slow
@pytest.mark.parametrize("length", [4, 9])
def test_several_tokens_may_follow_a_prompt(length):
    tokens = [array[:1] for array in PROMPT]
    check_shared(*tokens, *cache(length, 1), ints(6), np.int32(7), COS, SIN, do_rotary=1)


@pytest.mark.slow
@pytest.mark.parametrize("length", [0, 9])
def test_prompt_may_have_an_empty_cache(length):
    check_shared(*PROMPT, *cache(length), *WHOLE, COS, SIN, do_rotary=1)


@pytest.mark.slow
def test_group_query_attention_of_halves_is_that_of_onnxruntime():
    tensors, angles = ([array.astype(np.float16) for array in given] for given in ([*STEP, *cache(4)], [COS, SIN]))
    check_shared(*tensors, ints(4, 4), np.int32(5), *angles, do_rotary=1, rtol=2e-2)


@pytest.mark.slow
def test_queries_and_keys_are_normalized_before_they_are_rotated():
    """onnxruntime has no kernel for it on CPUs."""
    scales = floats(2, ELEMENTS)
    lead = [None, None, *WHOLE, COS, SIN, *[None] * 5]

    def output(query, key, *rest):
        made = of_node(
            "GroupQueryAttention", query, key, PROMPT[2], *lead, *rest, do_rotary=1, num_heads=QUERIES,
            kv_num_heads=SHARED, **MICROSOFT
        )  # fmt: skip
        return runs(*made)[0]

    def normal(x, scale):
        heads = x.reshape(BATCH, 3, -1, ELEMENTS)
        return (heads / np.sqrt((heads**2).mean(-1, keepdims=True) + 1e-6) * scale).reshape(x.shape)

    expected = output(*map(normal, PROMPT[:2], scales))
    np.testing.assert_allclose(output(*PROMPT[:2], *scales), expected, rtol=1e-4, atol=1e-5)


def test_quantized_cache_is_refused():
    made, _ = of_node(
        "GroupQueryAttention", *STEP, *cache(4), ints(4, 4), np.int32(5), num_heads=QUERIES, kv_num_heads=SHARED,
        k_quant_type="PER_TENSOR", **MICROSOFT
    )  # fmt: skip

    with pytest.raises(netloop.ModelError, match="PER_TENSOR"):
        netloop.onnx.load(made)


# ---------------------------------------------------------------------------- quantized


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("per_column", [slow(False), True])
def test_quantized_attention_is_that_of_onnxruntime(per_column, dtype):
    weights = bytes_of(5, 3 * ALL, dtype=dtype)
    scale = np.abs(floats(3 * ALL)) / 100 if per_column else np.float32(0.01)
    zero = bytes_of(3 * ALL, dtype=dtype, most=9) if per_column else dtype(9)
    check_node(
        "QAttention", bytes_of(BATCH, NEW, 5), weights, BIAS, np.float32(0.02), scale, mask(BATCH, 7), np.uint8(99),
        zero, PAST, outputs=2, num_heads=HEADS, unidirectional=1, rtol=1e-4, atol=1e-5, **MICROSOFT
    )  # fmt: skip


# ---------------------------------------------------------------------------- positions


def bucket(after, both, buckets, most):
    """The row of T5's table for a key that is ``after`` a query."""
    first = 0
    if both:
        buckets //= 2
        first, away = (buckets if after > 0 else 0), abs(after)
    else:
        away = max(-after, 0)
    exact = buckets // 2
    if away < exact:
        return first + away
    far = exact + int(np.log(away / exact) / np.log(most / exact) * (buckets - exact))
    return first + min(far, buckets - 1)


@pytest.mark.parametrize("both", [0, 1])
def test_bias_of_distances_is_that_of_t5(both):
    """onnxruntime has no kernel for it on CPUs."""
    table, (queries, keys) = floats(8, 3), (21, 30)
    made = of_node(
        "RelativePositionBias", table, np.array([queries]), np.array([keys]), max_distance=19, is_bidirectional=both,
        **MICROSOFT
    )  # fmt: skip
    rows = [[bucket(key - query, both, 8, 19) for key in range(keys)] for query in range(queries)]

    np.testing.assert_array_equal(runs(*made)[0], table[rows].transpose(2, 0, 1)[None])


def test_gated_bias_by_relative_positions_is_that_of_the_schema():
    # the code in onnxruntime's schema, in numpy; its kernel is for GPUs
    query, bias, places, scale = floats(2, 3, 8), floats(8), floats(1, 2, 3, 3), floats(1, 2, 1, 1)
    weight, gate_bias = floats(4, 6), floats(6)
    heads = (query + bias).reshape(2, 3, 2, 4).transpose(0, 2, 1, 3)
    gates = 1 / (1 + np.exp(-(heads @ weight + gate_bias).reshape(2, 2, 3, 2, 3).sum(-1)))
    expected = (gates[..., :1] * (gates[..., 1:] * scale - 1) + 2) * places
    made, given = of_node(
        "GatedRelativePositionBias", query, bias, places, weight, gate_bias, scale, num_heads=2, **MICROSOFT
    )

    np.testing.assert_allclose(runs(made, given)[0], expected, rtol=1e-5)
