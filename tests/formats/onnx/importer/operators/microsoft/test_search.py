"""Search of onnxruntime, with tiny decoders of random weights."""

from types import SimpleNamespace

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

import netloop
from netloop.formats.onnx.importer.search.sampling import Sampling
from netloop.model.formulas import FormulaBuilder
from tests.support.examples import mostly_slow
from tests.support.microsoft import as_constants, slow
from tests.support.onnx_models import runs, session_gives

# exporters call an input of the decoder as that of the search, attention_mask, which ONNX does not allow
pytestmark = pytest.mark.filterwarnings("ignore:NL749:netloop.ModelWarning")

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
        {
    EMBED.replace(
        "words = Gather (table, input_ids)",
        '''
            bare = Gather (table, input_ids)
            places = Gather (positions, position_ids)
            words = Add (bare, places)
        ''',
    )
}
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
    {ATTEND.format("").replace("seen =", "there_seen =")}
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
    arrays |= {name: np.array(entry, np.int64) for name, entry in numbers.items()}
    arrays |= {"true": np.float32(1), "large": np.float32(1e4), "none": np.float32(0)}
    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def search(op, inputs, outputs=1, seed=1, graphs=None, constants=(), **attributes):
    """A model of a search, and its inputs by position."""
    given = {name: tensor for name, tensor in inputs.items() if tensor is not None}
    names = [name if tensor is not None else "" for name, tensor in inputs.items()]
    results = [f"y{number}" for number in range(outputs)]
    graphs = graphs or {"decoder": graph(GPT.format(name="decoder"))}
    node = helper.make_node(op, names, results, domain="com.microsoft", pad_token_id=PAD, **graphs, **attributes)
    ends = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    untyped = [onnx.ValueInfoProto(name=result) for result in results]
    made = helper.make_model(
        helper.make_graph([node], op, ends, untyped, initializers(seed)),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)],
        ir_version=8,
    )
    as_constants(made, given, constants)
    return made, given


def number(value, dtype=np.int32):
    return None if value is None else np.array([value], dtype)


def greedy(
    most=6, least=None, repetition=None, words=None, first=None, mask=None, op="GreedySearch", rest=None,
    constants=("max_length",), prompts=PROMPTS, **options
):  # fmt: skip
    inputs = {
        "prompts": prompts, "max_length": number(most), "min_length": number(least),
        "repetition_penalty": number(repetition, np.float32), "vocab_mask": words, "prefix_vocab_mask": first,
        "attention_mask": mask, **(rest or {}),
    }  # fmt: skip
    return search(op, inputs, constants=constants, **options)


BEAMS = ("max_length", "num_beams", "num_return_sequences")


def beams(
    most=6, least=0, penalty=1.0, repetition=None, words=None, first=None, mask=None, kept=2, constants=BEAMS, **options
):
    inputs = {
        "prompts": PROMPTS, "max_length": number(most), "min_length": number(least), "num_beams": number(3),
        "num_return_sequences": number(kept), "length_penalty": number(penalty, np.float32),
        "repetition_penalty": number(repetition, np.float32), "vocab_mask": words, "prefix_vocab_mask": first,
        "attention_mask": mask,
    }  # fmt: skip
    return search("BeamSearch", inputs, outputs=3, constants=constants, **options)


def evaluates(made, given):
    """The outputs of the reference."""
    return [np.asarray(array) for array in netloop.evaluate(netloop.onnx.load(made), given).values()]


# XLA takes a second or more for a search: what options mean, the reference shows too
each_way = pytest.mark.parametrize("run", [evaluates, pytest.param(runs, marks=pytest.mark.slow)])


def check_greedy(made, given, run=evaluates):
    (found,), (expected,) = run(made, given), session_gives(made, given).values()
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    # onnxruntime stops when all texts have ended, and leaves the tokens after that undefined
    ended = np.cumsum(found[:, PROMPTS.shape[1] :] == PAD, 1).min(0) > 1
    count = PROMPTS.shape[1] + int(np.sum(~ended))
    np.testing.assert_array_equal(found[:, :count], expected[:, :count])
    assert (found[:, count:] == PAD).all()
    return found


def check_beams(made, given, run=evaluates):
    found, expected = run(made, given), [*session_gives(made, given).values()]
    assert [(array.dtype, array.shape) for array in found] == [(array.dtype, array.shape) for array in expected]
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-5)
    steps = np.flatnonzero(np.any(found[2], (1, 2, 3)))  # those after the end are undefined
    np.testing.assert_allclose(found[2][steps], expected[2][steps], rtol=1e-4, atol=1e-4)
    return found


# ---------------------------------------------------------------------------- greedy search


FEW = np.int32([1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 0])
SIX = np.int32([1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0])
FIRST = np.int32([[1, 1] + [0] * 10, [0, 0, 1, 1] + [0] * 8])
HALF = np.int32([[1, 1, 1], [0, 1, 1]])


@each_way
@pytest.mark.parametrize(
    "options",
    [
        {"eos_token_id": 5, "constants": []},
        {"eos_token_id": 0, "least": 5},
        {"eos_token_id": 5, "repetition": 1.7, "no_repeat_ngram_size": 2, "most": 7},
        {"eos_token_id": 11, "no_repeat_ngram_size": 1, "words": SIX, "most": 7},
        {"eos_token_id": 0, "words": FEW, "first": FIRST},
        {"eos_token_id": 11, "mask": HALF},
        {"eos_token_id": 11, "mask": np.ones_like(HALF), "prompts": np.int32([[3, 4, 5], [7, PAD, 3]])},
    ],
    ids=["most is an input", "least", "repetition", "words only once", "words", "mask", "padding in a text"],
)
def test_greedy_search_is_that_of_onnxruntime(options, run):
    check_greedy(*greedy(**options), run)


def test_first_step_may_have_a_graph_of_its_own():
    other = GPT.replace("kept = ", "flipped = Neg (y) kept = ").replace("(y, one)", "(flipped, one)")
    graphs = {"decoder": graph(GPT.format(name="decoder")), "init_decoder": graph(other.format(name="init"))}

    first = check_greedy(*greedy(5, graphs=graphs, eos_token_id=11))
    same = check_greedy(*greedy(5, eos_token_id=11))

    assert first[:, 3].tolist() != same[:, 3].tolist()


@pytest.mark.parametrize("make", mostly_slow(1, [greedy, beams]))
def test_engine_and_reference_search_alike(make):
    made, given = make(eos_token_id=5)

    for found, expected in zip(runs(made, given), evaluates(made, given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_prompt_that_fills_the_texts_is_an_error_of_the_run():
    made, given = greedy(3, eos_token_id=5)

    with pytest.raises(netloop.NetloopError, match="max_length is greater than the length of the prompts"):
        runs(made, given)


# ---------------------------------------------------------------------------- sampling


PRESENT = np.int32([[0, 1] * 6, [1, 0] * 6])


def sampled(seed=None, present=None, **options):
    rest = {"presence_mask": present, "seed": number(seed)}
    return greedy(6, op="Sampling", rest=rest, eos_token_id=11, **options)


@each_way
@pytest.mark.parametrize("custom", [0, 1])
def test_sampling_of_the_most_probable_token_is_that_of_onnxruntime(custom, run):
    check_greedy(
        *sampled(
            seed=3, present=PRESENT, custom=custom, top_p=1e-6, min_tokens_to_keep=1, temperature=0.7,
            presence_penalty=2.0,
        ),
        run,
    )  # fmt: skip


@pytest.mark.slow
def test_texts_depend_on_the_seed():
    made, given = sampled(seed=3, custom=1, top_p=0.95, temperature=3.0)
    engine = netloop.compile(netloop.onnx.load(made))
    texts = [np.asarray(engine({**given, "seed": number(seed)})["y0"]).tolist() for seed in (3, 3, 4, 5)]

    assert texts[0] == texts[1]
    assert texts[0] != texts[2] != texts[3]


@pytest.mark.parametrize(
    ("top", "custom", "least", "kept"),
    # the probabilities of tokens 0 to 3 are 0.1, 0.4, 0.3 and 0.2
    [(0.5, 1, 0, [1, 2]), (0.35, 1, 0, [1]), (0.85, 1, 0, [1, 2, 3]), (0.5, 0, 0, [1, 2]), (0.1, 0, 2, [1, 2])],
)
def test_tokens_with_most_of_the_probability_are_kept(top, custom, least, kept):
    network = netloop.INetworkDefinition()
    scores = network.add_input("scores", netloop.float32, (1, 4))
    attributes = {"top_p": top, "custom": custom, "min_tokens_to_keep": least, "filter_value": -1e20}
    call = SimpleNamespace(make=FormulaBuilder(network), attribute=attributes.get)
    found = Sampling(call, penalties=None).filtered(scores)
    network.mark_output(found)
    (made,) = netloop.compile(network)({"scores": np.log(np.float32([[0.1, 0.4, 0.3, 0.2]]))}).values()

    assert np.flatnonzero(np.asarray(made)[0] > -1e19).tolist() == kept


# ---------------------------------------------------------------------------- beam search


@each_way
@pytest.mark.parametrize(
    "options",
    [
        {"seed": 19, "most": 8, "eos_token_id": 8, "penalty": 2.0},
        {"least": 5, "kept": 1},
        {"early_stopping": 1, "penalty": 2.0},
        {"constants": ["max_length"]},
        slow({"repetition": 1.4, "no_repeat_ngram_size": 2, "kept": 3}),
        slow({"words": FEW, "first": FIRST, "mask": HALF}),
    ],
    ids=["one prompt is done first", "least", "early stopping", "number of beams is an input", "repetition", "words"],
)
def test_beam_search_is_that_of_onnxruntime(options, run):
    check_beams(*beams(**{"eos_token_id": 9, **options}), run)


STATES = "float[n, s, 8] encoder_hidden_states,"


@each_way
@pytest.mark.parametrize(
    ("encoder", "decoder"),
    [
        (OLD_ENCODER, DECODER.format(length="1", states=STATES)),
        slow(OLD_ENCODER, DECODER.format(length="1", states="")),
        (NEW_ENCODER, DECODER.format(length="1", states="")),
    ],
    ids=["older form", "older form without states", "newer form"],
)
def test_search_with_an_encoder_is_that_of_onnxruntime(encoder, decoder, run):
    graphs = {"encoder": graph(encoder), "decoder": graph(decoder)}

    check_beams(*beams(6, graphs=graphs, model_type=1, decoder_start_token_id=2, eos_token_id=4), run)


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"model_type": 2}, "model_type is 2, and netloop supports 0, a decoder, and 1, an encoder-decoder"),
        ({"model_type": 1}, "decoder_start_token_id is missing"),
        ({"model_type": 1, "decoder_start_token_id": 2}, "the graph of the encoder is missing"),
        ({"kept": 4}, "num_return_sequences is 4, and there are 3 beams"),
        ({"kept": 0}, "num_return_sequences is 0, but must be from 1 to 128"),
        ({"most": 5000}, "max_length is 5000, but must be from 1 to 4096"),
        ({"no_repeat_ngram_size": 1 << 40}, "no_repeat_ngram_size is 1099511627776, but may be 4096"),
        (
            {"graphs": {"decoder": graph(GPT.format(name="d").replace("1, p, 8", "h, p, 8"))}},
            "declares the input 'past_0'",
        ),
        (
            {"graphs": {"decoder": graph(GPT.format(name="d").replace(" past_0)", " past_0, int32[1] length)"))}},
            "has 5 inputs and 2 outputs, but must have 2 inputs more",
        ),
    ],
)
def test_other_searches_are_refused(options, what):
    made, _ = beams(eos_token_id=9, **options)

    with pytest.raises(netloop.ModelError) as caught:
        netloop.onnx.load(made)

    assert what in caught.value.findings[0].what
