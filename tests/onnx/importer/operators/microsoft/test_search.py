"""Search of onnxruntime, with tiny decoders of random weights."""

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

import netloop
from tests.support.microsoft import as_constants
from tests.support.onnx_models import runs, session_gives

WORDS, SIZE, PAD = 12, 8, 1
PROMPTS = np.int32([[3, 4, 5], [1, 1, 7]])
HEADER = '<ir_version: 8, opset_import: ["" : 18]>'

ATTEND = """
    {0}t = Transpose <perm = [0, 1, 3, 2]> ({0}keys)
    {0}raw = MatMul (x, {0}t)
    {0}scores = Add ({0}raw, {0}bias)
    {0}shares = Softmax <axis = -1> ({0}scores)
    {0}seen = MatMul ({0}shares, {0}values)
"""
"""Attention of ``x``, [texts, 1, tokens, size], to keys and values."""

EMBED = """
    words = Gather (table, input_ids)
    x = Unsqueeze (words, one)
    k = MatMul (x, to_keys)
    v = MatMul (x, to_values)
"""
BIAS = """
    mask = Cast <to = 1> ({mask})
    absent = Sub (mask, true)
    flat = Mul (absent, large)
    {name}bias = Unsqueeze (flat, middle)
"""
ENDS = "y = Add (x, seen) kept = Squeeze (y, one) logits = MatMul (kept, to_words)"

GPT = f"""
    {{name}} (int32[n, s] input_ids, int32[n, s] position_ids, int32[n, t] attention_mask, float[2, n, 1, p, 8] past_0)
    => (float[n, s, 12] logits, float[2, n, 1, t, 8] present_0)
    {{{{
        {EMBED.replace("words = Gather (table, input_ids)", '''
            bare = Gather (table, input_ids)
            places = Gather (positions, position_ids)
            words = Add (bare, places)
        ''')}
        k5 = Unsqueeze (k, zero)
        v5 = Unsqueeze (v, zero)
        now = Concat <axis = 0> (k5, v5)
        present_0 = Concat <axis = 3> (past_0, now)
        keys5, values5 = Split <axis = 0, num_outputs = 2> (present_0)
        keys = Squeeze (keys5, zero)
        values = Squeeze (values5, zero)
        {BIAS.format(mask="attention_mask", name="")}
        {ATTEND.format("")}
        {ENDS}
    }}}}
"""

NEW_ENCODER = """
    encoder (int32[b, s] encoder_input_ids, int32[b, s] encoder_attention_mask)
    => (float[b, 1, s, 8] present_key_cross_0, float[b, 1, s, 8] present_value_cross_0)
    {
        prompt = Gather (table, encoder_input_ids)
        p4 = Unsqueeze (prompt, one)
        present_key_cross_0 = MatMul (p4, to_values)
        present_value_cross_0 = MatMul (p4, to_keys)
    }
"""

DECODE = f"""
    {EMBED}
    present_key_self_0 = Concat <axis = 2> (past_key_self_0, k)
    present_value_self_0 = Concat <axis = 2> (past_value_self_0, v)
    own_keys = Identity (present_key_self_0)
    own_values = Identity (present_value_self_0)
    own_bias = Identity (none)
    {ATTEND.format("own_")}
    keys = Identity (past_key_cross_0)
    values = Identity (past_value_cross_0)
    {BIAS.format(mask="encoder_attention_mask", name="")}
    {ATTEND.format("there_").replace("there_keys", "keys").replace("there_values", "values").replace("there_bias", "bias")}
    seen = Add (own_seen, there_seen)
    {ENDS}
"""

DECODER = f"""
    decoder (int32[n, {{length}}] input_ids, int32[n, s] encoder_attention_mask, {{states}}
        float[n, 1, p, 8] past_key_self_0, float[n, 1, p, 8] past_value_self_0,
        float[n, 1, s, 8] past_key_cross_0, float[n, 1, s, 8] past_value_cross_0)
    => (float[n, 1, 12] logits, float[n, 1, t, 8] present_key_self_0, float[n, 1, t, 8] present_value_self_0)
    {{{{ {DECODE} }}}}
"""

OLD_ENCODER = f"""
    encoder (int32[b, s] encoder_input_ids, int32[b, s] encoder_attention_mask, int32[b, 1] decoder_input_ids)
    => (float[b, 1, 12] logits, float[b, s, 8] encoder_hidden_states,
        float[b, 1, 1, 8] present_key_self_0, float[b, 1, 1, 8] present_value_self_0,
        float[b, 1, s, 8] present_key_cross_0, float[b, 1, s, 8] present_value_cross_0)
    {{
        encoder_hidden_states = Gather (table, encoder_input_ids)
        p4 = Unsqueeze (encoder_hidden_states, one)
        present_key_cross_0 = MatMul (p4, to_values)
        present_value_cross_0 = MatMul (p4, to_keys)
        input_ids = Identity (decoder_input_ids)
        past_key_cross_0 = Identity (present_key_cross_0)
        past_value_cross_0 = Identity (present_value_cross_0)
        past_key_self_0 = Slice (present_key_cross_0, zero, zero, two)
        past_value_self_0 = Slice (present_value_cross_0, zero, zero, two)
        {DECODE}
    }}
"""


def graph(text):
    return onnx.parser.parse_model(HEADER + text).graph


def initializers(seed):
    rng = np.random.default_rng(seed)
    shapes = {"table": (WORDS, SIZE), "positions": (16, SIZE), "to_keys": (SIZE, SIZE), "to_values": (SIZE, SIZE)}
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    arrays["to_words"] = rng.normal(size=(SIZE, WORDS)).astype(np.float32)
    numbers = {"zero": [0], "one": [1], "two": [2], "middle": [1, 2]}
    arrays |= {name: np.array(each, np.int64) for name, each in numbers.items()}
    arrays |= {"true": np.float32(1), "large": np.float32(1e4), "none": np.float32(0)}
    return [numpy_helper.from_array(each, name) for name, each in arrays.items()]


def search(op, inputs, outputs=1, seed=1, graphs=None, constants=(), **attributes):
    """A model of a search, and its inputs by position."""
    given = {name: each for name, each in inputs.items() if each is not None}
    names = [name if each is not None else "" for name, each in inputs.items()]
    results = [f"y{number}" for number in range(outputs)]
    graphs = graphs or {"decoder": graph(GPT.format(name="decoder"))}
    node = helper.make_node(
        op, names, results, domain="com.microsoft", pad_token_id=PAD, **graphs, **attributes
    )
    ends = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in given.items()
    ]
    untyped = [onnx.ValueInfoProto(name=each) for each in results]
    made = helper.make_model(
        helper.make_graph([node], op, ends, untyped, initializers(seed)),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)],
        ir_version=8,
    )
    as_constants(made, given, constants)
    return made, given


def number(value, dtype=np.int32):
    return None if value is None else np.array([value], dtype)


def greedy(most=8, least=None, repetition=None, words=None, first=None, mask=None, op="GreedySearch", rest=None, **options):
    inputs = {
        "prompts": PROMPTS, "max_length": number(most), "min_length": number(least),
        "repetition_penalty": number(repetition, np.float32), "vocab_mask": words, "prefix_vocab_mask": first,
        "attention_mask": mask, **(rest or {}),
    }  # fmt: skip
    return search(op, inputs, constants=["max_length"], **options)


BEAMS = ["max_length", "num_beams", "num_return_sequences"]


def beams(most=7, least=0, penalty=1.0, repetition=None, words=None, first=None, mask=None, kept=2, constants=BEAMS, **options):
    inputs = {
        "prompts": PROMPTS, "max_length": number(most), "min_length": number(least), "num_beams": number(3),
        "num_return_sequences": number(kept), "length_penalty": number(penalty, np.float32),
        "repetition_penalty": number(repetition, np.float32), "vocab_mask": words, "prefix_vocab_mask": first,
        "attention_mask": mask,
    }  # fmt: skip
    return search("BeamSearch", inputs, outputs=3, constants=constants, **options)


def written(tokens, ids):
    """Which tokens a greedy search of onnxruntime writes: it leaves those after the end of the last text undefined."""
    ended = np.cumsum(np.any(tokens[:, PROMPTS.shape[1] :] == PAD, 0) & np.all(ids, 0)) > 0
    return np.concatenate([np.ones(PROMPTS.shape[1], bool), ~ended])


def check_greedy(made, given):
    (found,), (expected,) = runs(made, given), session_gives(made, given).values()
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    # onnxruntime stops when all texts have ended, and leaves the tokens after that undefined
    ended = np.cumsum(found[:, PROMPTS.shape[1] :] == PAD, 1).min(0) > 1
    count = PROMPTS.shape[1] + int(np.sum(~ended))
    np.testing.assert_array_equal(found[:, :count], expected[:, :count])
    assert (found[:, count:] == PAD).all()
    return found


def check_beams(made, given):
    found, expected = runs(made, given), [*session_gives(made, given).values()]
    assert [(each.dtype, each.shape) for each in found] == [(each.dtype, each.shape) for each in expected]
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-5)
    steps = np.flatnonzero(np.any(found[2], (1, 2, 3)))  # those after the end are undefined
    np.testing.assert_allclose(found[2][steps], expected[2][steps], rtol=1e-4, atol=1e-4)
    return found
