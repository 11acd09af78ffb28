import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop
from netloop.model.layers.attention import (
    IAttention,
    IAttentionBoundaryLayer,
    IAttentionInputLayer,
    IAttentionOutputLayer,
)
from netloop.model.layers.attention_formula import QUANTIZED
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError, NetworkError
from netloop.values.enums import (
    AttentionIOForm,
    AttentionNormalizationOp,
    CausalMaskKind,
    DataType,
    KVCacheMode,
    LayerType,
)
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.laws import Case, check_laws, refuses

PADDED, PACKED = AttentionIOForm.PADDED_BHND, AttentionIOForm.PACKED_NHD
NONE, UPPER_LEFT, LOWER_RIGHT = CausalMaskKind
SOFTMAX = AttentionNormalizationOp.SOFTMAX


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


def index(*shape):
    return TensorType(np.dtype(np.int32), shape)


def i32(*numbers):
    return np.array(numbers, np.int32)


def slope(function, x):
    return jax.jit(jax.grad(function))(x)


def drawn(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def attending(**named):
    return IAttentionOutputLayer(**{"norm_op": SOFTMAX, **named})


# ---------------------------------------------------------------------------- attention

Q = np.float32([[[[1, 0], [0, 1], [1, -1]], [[0.5, 2], [-1, 0], [2, 1]]]])
K = np.float32([[[[1, 0], [0, 1], [1, 1], [-1, 2]]]])
V = np.float32([[[[1, 2], [3, 4], [5, -6], [7, 8]]]])
ALLOWED = np.array([[[[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]]]], np.bool_)
ADDED = np.float32([[[[0, 1, -1, 2], [0.5, 0, 0, -9], [1, 2, 3, 4]]]])

# PyTorch's scaled_dot_product_attention with scale 1; two heads of queries share one of keys
FREE = [3.216259, -0.5775773, 5.386352, 4.027009, 2.217249, 0.3158592]
FREE += [5.82557, 4.135076, 5.441183, 5.450048, 3.942297, -2.784674]
UPPER = [1, 2, 2.462117, 3.462117, 2.158975, 0.2222333, 1, 2, 2.462117, 3.462117, 3.841025, -3.141866]
LOWER = [1.537883, 2.537883, 3.533913, -0.5339128, 2.217249, 0.3158592]
LOWER += [2.635149, 3.635149, 3, 1.456701, 3.942297, -2.784674]
MASKED = [3, -2, 2.462117, 3.462117, 7, 8, 4.523188, -5.046377, 2.462117, 3.462117, 7, 8]
RAISED = [3.812309, 3.501528, 3.302386, -0.300842, 4.101939, -2.221609]
RAISED += [6.633832, 7.435313, 2.758977, 1.523471, 4.977284, -3.740028]
FIRST_TWO = [1.537883, 2.537883, 2.462117, 3.462117, 1.238406, 2.238406]
FIRST_TWO += [2.635149, 3.635149, 2.462117, 3.462117, 1.537883, 2.537883]


def result(numbers):
    return np.float32(numbers).reshape(1, 2, 3, 2)


BY_PYTORCH = [
    Case("no mask", attending(), (Q, K, V), result(FREE), 3e-6),
    Case("upper left", attending(causal_kind=UPPER_LEFT), (Q, K, V), result(UPPER), 3e-6),
    Case("lower right", attending(causal_kind=LOWER_RIGHT), (Q, K, V), result(LOWER), 3e-6),
    Case("a mask that forbids", attending(), (Q, K, V, ALLOWED), result(MASKED), 3e-6),
    Case("a mask that is added", attending(), (Q, K, V, ADDED), result(RAISED), 3e-6),
    Case("a mask for each head", attending(), (Q, K, V, ALLOWED.repeat(2, 1)), result(MASKED), 3e-6),
    Case("a mask of keys", attending(), (Q, K, V, np.array([[[[1, 1, 0, 0]]]], np.bool_)), result(FIRST_TWO), 3e-6),
    Case("a mask of queries adds one number to all keys", attending(), (Q, K, V, ADDED[..., 1:2]), result(FREE), 3e-6),
    Case("two keys of four", attending(), (Q, K, V, None, None, i32(2)), result(FIRST_TWO), 3e-6),
    Case(
        "a batch, with a mask for all",
        attending(),
        (*(other.repeat(2, 0) for other in (Q, K, V)), ADDED),
        result(RAISED).repeat(2, 0),
        3e-6,
    ),
    Case("float64", attending(), tuple(other.astype(np.float64) for other in (Q, K, V)), result(FREE), 3e-6),
    *(
        Case(
            f"{np.dtype(dtype)}", attending(), tuple(other.astype(dtype) for other in (Q, K, V, ADDED)), result(RAISED)
        )
        for dtype in (np.float16, jnp.bfloat16)
    ),
]


def one_head(q, k, v, allowed, softmax=True):
    """Attention of one head of one sequence, written with matrices."""
    weights = np.where(allowed, np.exp(q @ k.T), 0) if softmax else np.where(allowed, q @ k.T, 0)
    totals = weights.sum(1, keepdims=True)
    return (weights / np.where(totals == 0, 1, totals) if softmax else weights) @ v


def causal(kind, queries, keys):
    offset = {NONE: keys, UPPER_LEFT: 0, LOWER_RIGHT: keys - queries}[kind]
    return np.tri(queries, keys, offset, dtype=np.bool_)


def by_sequence(kind, queries, keys, values):
    """The outputs for sequences [head, token, element], two heads of queries for each of keys."""
    return [
        np.stack(
            [one_head(q[h], k[h // 2], v[h // 2], causal(kind, q.shape[1], k.shape[1])) for h in range(q.shape[0])]
        )
        for q, k, v in zip(queries, keys, values, strict=True)
    ]


def packed(sequences):
    return np.concatenate([sequence.swapaxes(0, 1) for sequence in sequences])


def lengths_of(sequences):
    return i32(*np.cumsum([0, *(sequence.shape[1] for sequence in sequences)]))


def padded(sequences, length):
    return np.stack(
        [
            np.pad(sequence, ((0, 0), (0, length - sequence.shape[1]), (0, 0)), constant_values=9)
            for sequence in sequences
        ]
    )


QUERIES = [drawn(4, 2, 3), drawn(4, 0, 3), drawn(4, 3, 3), drawn(4, 1, 3)]
KEYS = [drawn(2, 3, 3), drawn(2, 2, 3), drawn(2, 2, 3), drawn(2, 0, 3)]
VALUES = [2 * key + 1 for key in KEYS]
EQUAL = [drawn(4, 2, 3) + i for i in range(4)]


def packed_cases(kind):
    keys = (packed(KEYS), packed(VALUES))
    beginnings, counts = lengths_of(KEYS), np.diff(lengths_of(KEYS))
    wanted = packed(by_sequence(kind, QUERIES, KEYS, VALUES))
    of_equal = np.stack(by_sequence(kind, EQUAL, KEYS, VALUES))
    both = {"query_form": PACKED, "key_value_form": PACKED, "causal_kind": kind}
    inputs = (packed(QUERIES), *keys, None, lengths_of(QUERIES), beginnings)
    room = (padded(KEYS, 5), padded(VALUES, 5))
    return [
        Case(f"packed {kind.name}", attending(**both), inputs, wanted, 3e-6),
        Case(
            f"packed queries {kind.name}",
            attending(query_form=PACKED, causal_kind=kind),
            (packed(QUERIES), *room, None, lengths_of(QUERIES), counts),
            wanted,
            3e-6,
        ),
        Case(
            f"packed keys {kind.name}",
            attending(key_value_form=PACKED, causal_kind=kind),
            (np.stack(EQUAL), *keys, None, None, beginnings),
            of_equal,
            3e-6,
        ),
        Case(
            f"padded keys {kind.name}",
            attending(causal_kind=kind),
            (np.stack(EQUAL), *room, None, None, counts),
            of_equal,
            3e-6,
        ),
    ]


OTHERS = [
    *packed_cases(NONE)[:1],
    *packed_cases(UPPER_LEFT),
    *packed_cases(LOWER_RIGHT),
    Case(
        "packed queries, whole keys",
        attending(query_form=PACKED, causal_kind=LOWER_RIGHT),
        (packed(QUERIES), drawn(4, 2, 5, 3), drawn(4, 2, 5, 3), None, lengths_of(QUERIES)),
        packed(by_sequence(LOWER_RIGHT, QUERIES, drawn(4, 2, 5, 3), drawn(4, 2, 5, 3))),
        3e-6,
    ),
    Case(
        "scores are the weights without softmax",
        attending(norm_op=AttentionNormalizationOp.NONE),
        (Q, K, V, ALLOWED),
        result([one_head(q, K[0, 0], V[0, 0], ALLOWED[0, 0], softmax=False) for q in Q[0]]),
    ),
    Case(
        "half scores without softmax",
        attending(norm_op=AttentionNormalizationOp.NONE, causal_kind=UPPER_LEFT),
        tuple(other.astype(np.float16) for other in (Q, K, V)),
    ),
    Case("no key allowed gives 0", attending(), (Q, K, V, np.zeros((1, 1, 3, 4), np.bool_)), np.zeros_like(Q)),
    Case(
        "minus infinity forbids",
        attending(),
        (Q, K, V, np.where(ALLOWED, 0, -np.inf).astype(np.float32)),
        result(MASKED),
        3e-6,
    ),
    Case("no keys give 0", attending(), (Q, K[:, :, :0], V[:, :, :0]), np.zeros_like(Q)),
    Case("no queries", attending(), (Q[:, :, :0], K, V), Q[:, :, :0]),
    Case("an empty batch", attending(causal_kind=LOWER_RIGHT), (Q[:0], K[:0], V[:0]), Q[:0]),
    Case(
        "an empty packed batch",
        attending(query_form=PACKED, key_value_form=PACKED),
        (zeros(0, 4, 3), *[zeros(0, 2, 3)] * 2, None, i32(0), i32(0)),
        zeros(0, 4, 3),
    ),
    Case("large scores do not overflow", attending(), (100 * Q, K, V)),
    Case("scores beyond float16", attending(), tuple((other * 300).astype(np.float16) for other in (Q, K, V))),
    Case(
        "weights in steps of a quarter",
        attending(normalization_quantize_to_type=DataType.INT8),
        (zeros(1, 1, 1, 2), zeros(1, 1, 3, 2), 1 + zeros(1, 1, 3, 2), None, None, None, np.float32(0.25)),
        np.full((1, 1, 1, 2), 0.75),
    ),
    Case(
        "weights of eight bits",
        attending(normalization_quantize_to_type=DataType.FP8),
        (Q[:, :1, :1] * 0, K[:, :, :1], np.float32([[[[1, 2]]]]), None, None, None, np.float32([1 / 256])),
        np.float32([[[[1, 2]]]]),
    ),
    Case(
        "weights beyond the largest of eight bits",
        attending(normalization_quantize_to_type=DataType.FP8),
        (Q[:, :1, :1] * 0, K[:, :, :1], np.float32([[[[1, 2]]]]), None, None, None, np.float32(1 / 896)),
        np.float32([[[[0.5, 1]]]]),
    ),
]


@pytest.mark.parametrize("case", BY_PYTORCH + OTHERS, ids=str)
def test_laws_of_attention(case):
    check_laws(case)


def test_laws_of_the_input_layer():
    check_laws(Case("as they are", IAttentionInputLayer(), (Q, K, V), (Q, K, V)))


def test_unknown_lengths_of_attention():
    assert attending().infer(f32(-1, 4, -1, 8), f32(2, -1, 5, -1), f32(2, 2, -1, 8)).shape == (-1, 4, -1, 8)


def test_mask_of_unknown_lengths_is_no_error():
    layer = attending()

    assert layer.infer(f32(-1, 4, 3, 8), f32(-1, 2, -1, 8), f32(-1, 2, -1, 8), f32(1, -1, 3, 7)).shape == (-1, 4, 3, 8)


def test_packed_attention_of_unknown_lengths():
    layer = attending(query_form=PACKED, key_value_form=PACKED)
    inputs = (f32(-1, 4, 8), f32(-1, 2, 8), f32(-1, 2, 8), None, index(-1), index(3))

    assert layer.infer(*inputs).shape == (-1, 4, 8)


@pytest.mark.parametrize(
    ("form", "shape", "match"),
    [
        (PADDED, (2, 3, 4), "the query is float32[2,3,4], but must be [batch, head, token, element]"),
        (PACKED, (2, 3, 4, 5), "the query is float32[2,3,4,5], but must be [token, head, element]"),
    ],
)
def test_query_of_the_other_form_is_refused(form, shape, match):
    refuses(attending(query_form=form), f32(*shape), f32(1, 1, 1, 1), f32(1, 1, 1, 1), match=match)


def test_key_of_the_other_form_is_refused():
    refuses(attending(key_value_form=PACKED), Q, K, V, match="the key is float32[1,1,4,2], but must be [token, head,")


def test_attention_of_integers_is_refused():
    refuses(
        attending(),
        *(other.astype(np.int32) for other in (Q, K, V)),
        match="the query must be floating-point, not int32",
    )


def test_attention_of_several_types_is_refused():
    refuses(attending(), Q, K.astype(np.float16), V, match="query, key and value are float32, float16 and float32")


def test_value_of_another_shape_is_refused():
    refuses(attending(), Q, K, V[..., :1], match="but must be of one shape")


def test_heads_that_cannot_share_are_refused():
    refuses(
        attending(), f32(1, 3, 2, 2), f32(1, 2, 2, 2), f32(1, 2, 2, 2), match="the query has 3 heads, but the key 2"
    )


def test_keys_of_other_elements_are_refused():
    refuses(attending(), Q, K[..., :1], V[..., :1], match="differ in their last axis")


def test_keys_of_another_batch_are_refused():
    refuses(attending(), Q, K.repeat(2, 0), V.repeat(2, 0), match="the query has 1 sequences, but the key 2")


def test_packed_queries_without_lengths_are_refused():
    refuses(attending(query_form=PACKED), f32(5, 2, 2), K, V, match="there are no query_lengths")


def test_packed_keys_without_lengths_are_refused():
    refuses(attending(key_value_form=PACKED), Q, f32(5, 2, 2), f32(5, 2, 2), match="there are no key_value_lengths")


@pytest.mark.parametrize("lengths", [f32(2), index(2, 1), index(0)])
def test_cumulative_lengths_of_another_type_are_refused(lengths):
    layer = attending(query_form=PACKED)
    refuses(layer, f32(5, 2, 2), K, V, None, lengths, match=f"the query_lengths are {lengths}, but must be B + 1")


def test_packed_queries_of_another_batch_are_refused():
    layer = attending(query_form=PACKED)
    refuses(layer, f32(5, 2, 2), K, V, None, index(3), match="the query has 2 sequences, but the key 1")


def test_lengths_of_padded_queries_are_refused():
    refuses(attending(), Q, K, V, None, index(1), match="there are query_lengths, int32[1], but query_form is PADDED")


@pytest.mark.parametrize("lengths", [index(2), f32(1), index()])
def test_lengths_of_padded_keys_are_one_for_each_sequence(lengths):
    refuses(
        attending(), Q, K, V, None, None, lengths, match=f"the key_value_lengths are {lengths}, but must be int32[1]"
    )


def test_mask_beside_a_causal_kind_is_refused():
    refuses(attending(causal_kind=UPPER_LEFT), Q, K, V, ALLOWED, match="there is a mask, but causal_kind is UPPER_LEFT")


def test_mask_of_packed_sequences_is_refused():
    layer = attending(query_form=PACKED)
    refuses(layer, f32(5, 2, 2), K, V, ALLOWED, index(2), match="packed sequences have no common length for it")


@pytest.mark.parametrize("dtype", [np.float16, np.int32])
def test_mask_of_another_type_is_refused(dtype):
    refuses(attending(), Q, K, V, ADDED.astype(dtype), match="but must be bool or float32")


@pytest.mark.parametrize("shape", [(3, 4), (1, 1, 2, 4), (1, 1, 3, 2), (2, 1, 3, 4), (1, 1, 1, 3, 4)])
def test_mask_of_another_shape_is_refused(shape):
    refuses(attending(), Q, K, V, f32(*shape), match="; each dim may be 1")


def test_quantisation_to_another_type_is_refused():
    layer = attending(normalization_quantize_to_type=DataType.INT4)
    refuses(layer, Q, K, V, match="normalization_quantize_to_type is INT4")


def test_quantisation_without_scale_is_refused():
    layer = attending(normalization_quantize_to_type=DataType.INT8)
    refuses(layer, Q, K, V, match="normalization_quantize_to_type is INT8, but there is no")


def test_scale_without_quantisation_is_refused():
    refuses(
        attending(), Q, K, V, None, None, None, f32(), match="normalization_quantize_to_type is FLOAT, but there is a"
    )


@pytest.mark.parametrize("scale", [index(), f32(2), f32(1, 1)])
def test_scale_that_is_not_one_number_is_refused(scale):
    layer = attending(normalization_quantize_to_type=DataType.INT8)
    refuses(layer, Q, K, V, None, None, None, scale, match=f"the normalization_quantize_scale is {scale}")


def test_padded_lengths_beyond_the_keys_are_an_error():
    with pytest.raises(LayerError, match=r"the key_value_lengths are \[5\], but must go from 0 to 4"):
        attending().evaluate(Q, K, V, None, None, i32(5))


@pytest.mark.parametrize("lengths", [(0, 4), (1, 5), (0, 3, 2, 5), (0, 6)])
def test_cumulative_lengths_that_do_not_rise_to_the_end_are_an_error(lengths):
    q = np.zeros((5, 2, 2), np.float32)
    k = np.zeros((len(lengths) - 1, 1, 4, 2), np.float32)
    with pytest.raises(LayerError, match="and there are 5 tokens"):
        attending(query_form=PACKED).evaluate(q, k, k, None, i32(*lengths))


def test_gradient_of_values_is_the_sum_of_weights():
    layer = attending(causal_kind=UPPER_LEFT)
    found = slope(
        lambda v: layer.lower(jnp.zeros((1, 1, 2, 1)), jnp.zeros((1, 1, 2, 1)), v).sum(), jnp.zeros((1, 1, 2, 1))
    )

    assert_allclose(found.ravel(), [1.5, 0.5])


def test_gradient_stays_finite_where_nothing_is_allowed():
    layer = attending(causal_kind=LOWER_RIGHT)
    found = slope(lambda q: layer.lower(q, K[:, :, :2], V[:, :, :2]).sum(), jnp.asarray(Q))

    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:, :, 0], np.zeros((1, 2, 2)))


def test_every_quantised_type_is_a_type_of_arrays():
    assert set(QUANTIZED) == {DataType.INT8, DataType.FP8}


# ---------------------------------------------------------------------------- attention in a network


def network_of(**shapes):
    network = INetworkDefinition()
    tensors = {name: network.add_input(name, DataType.FLOAT, shape) for name, shape in shapes.items()}
    return network, tensors


def small():
    network, x = network_of(q=Q.shape, k=K.shape, v=V.shape)
    attention = network.add_attention_v2(x["q"], x["k"], x["v"], SOFTMAX, NONE)
    attention.get_output(0).name = "y"
    network.mark_output(attention.get_output(0))
    return network, attention


FEED = {"q": Q, "k": K, "v": V}


def both_ways(network, **feed):
    """Return the output, after checking that the reference and the engine agree."""
    evaluated, compiled = netloop.evaluate(network, feed)["y"], netloop.compile(network)(feed)["y"]
    assert_allclose(compiled, evaluated, rtol=1e-5, atol=1e-6)
    return evaluated


def test_attention_is_two_layers_of_the_network():
    network, attention = small()

    assert [type(layer) for layer in network] == [IAttentionInputLayer, IAttentionOutputLayer]
    assert [layer.type for layer in network] == [LayerType.ATTENTION_INPUT, LayerType.ATTENTION_OUTPUT]
    assert all(isinstance(layer, IAttentionBoundaryLayer) and layer.attention == attention for layer in network)
    assert network[1].get_output(0).producer.name == "(Unnamed Layer* 1) [AttentionOutput]"


def test_attention_computes_in_a_network():
    network, _ = small()

    assert_allclose(both_ways(network, **FEED), result(FREE), rtol=1e-5)


def test_attention_has_the_inputs_of_its_input_layer():
    network, attention = small()

    assert (attention.num_inputs, attention.num_outputs) == (3, 1)
    assert [attention.get_input(number).name for number in range(3)] == ["q", "k", "v"]
    assert attention.get_input(3) is None
    assert attention.get_output(1) is None
    assert attention.set_input(0, network.add_input("p", DataType.FLOAT, (1, 2, 5, 2))) is True
    assert attention.get_output(0).shape == (1, 2, 5, 2)
    with pytest.raises(IndexError):
        attention.set_input(3, attention.get_input(0))


def test_mask_and_scale_count_as_inputs():
    network, attention = small()

    attention.mask = mask = network.add_input("mask", DataType.BOOL, (1, 1, 1, 1))
    assert (attention.num_inputs, attention.get_input(3)) == (4, mask)
    attention.mask, attention.normalization_quantize_scale = None, network.add_input("scale", DataType.FLOAT, ())
    assert attention.num_inputs == 5
    assert [attention.get_input(number) for number in (3, 4)] == [None, attention.normalization_quantize_scale]


def test_attention_has_the_defaults_of_tensorrt():
    _, attention = small()

    assert (attention.norm_op, attention.causal, attention.causal_kind) == (SOFTMAX, False, NONE)
    assert (attention.mask, attention.query_lengths, attention.key_value_lengths) == (None, None, None)
    assert (attention.query_form, attention.key_value_form, attention.decomposable) == (PADDED, PADDED, False)
    assert (attention.normalization_quantize_scale, attention.num_ranks, attention.metadata) == (None, 1, "")


@pytest.mark.parametrize(("is_causal", "kind"), [(True, UPPER_LEFT), (False, NONE)])
def test_causal_is_upper_left(is_causal, kind):
    network, x = network_of(q=Q.shape, k=K.shape, v=V.shape)
    attention = network.add_attention(x["q"], x["k"], x["v"], SOFTMAX, is_causal)
    assert (attention.causal, attention.causal_kind) == (is_causal, kind)

    attention.causal = not is_causal
    assert attention.causal_kind is (NONE if is_causal else UPPER_LEFT)


def test_causal_is_a_bool():
    network, x = network_of(q=Q.shape, k=K.shape, v=V.shape)
    with pytest.raises(TypeError, match="causal must be bool, not"):
        network.add_attention(x["q"], x["k"], x["v"], SOFTMAX, UPPER_LEFT)


def test_attributes_of_the_attention_are_those_of_its_output_layer():
    network, attention = small()
    attention.causal_kind = LOWER_RIGHT
    attention.name = "look"
    attention.decomposable = True

    assert (network[1].causal_kind, network[1].name, network[1].decomposable) == (LOWER_RIGHT, "look", True)
    assert repr(attention) == "<IAttention 'look'>"
    assert_allclose(both_ways(network, **FEED), result(LOWER), rtol=1e-5)
    with pytest.raises(TypeError, match="norm_op must be a member of AttentionNormalizationOp"):
        attention.norm_op = 1


def test_mask_in_a_network():
    network, attention = small()
    attention.mask = network.add_input("mask", DataType.BOOL, (1, 1, 3, 4))
    assert attention.mask.name == "mask"

    assert_allclose(both_ways(network, **FEED, mask=ALLOWED), result(MASKED), rtol=1e-5)


def test_mask_can_be_taken_away():
    network, attention = small()
    attention.mask = None
    attention.mask = network.add_constant((1, 1, 3, 4), ALLOWED).get_output(0)
    attention.mask = None

    assert_allclose(both_ways(network, **FEED), result(FREE), rtol=1e-5)


def test_complaints_about_attention_name_its_output_layer():
    network, attention = small()
    attention.mask = network.add_input("mask", DataType.BOOL, (1, 1, 3, 4))
    attention.causal = True

    (finding,) = netloop.check(network)
    assert finding.at is network[1]
    with pytest.raises(NetworkError, match="there is a mask, but causal_kind is UPPER_LEFT"):
        _ = attention.get_output(0).shape


def test_packed_attention_in_a_network():
    network, x = network_of(q=(-1, 4, 3), k=(-1, 2, 3), v=(-1, 2, 3))
    attention = network.add_attention_v2(x["q"], x["k"], x["v"], SOFTMAX, LOWER_RIGHT)
    attention.query_form = attention.key_value_form = PACKED
    attention.query_lengths = network.add_input("ql", DataType.INT32, (5,))
    attention.key_value_lengths = network.add_constant((5,), lengths_of(KEYS)).get_output(0)
    attention.get_output(0).name = "y"
    network.mark_output(attention.get_output(0))

    found = both_ways(network, q=packed(QUERIES), k=packed(KEYS), v=packed(VALUES), ql=lengths_of(QUERIES))
    assert_allclose(found, packed(by_sequence(LOWER_RIGHT, QUERIES, KEYS, VALUES)), rtol=1e-5)


def test_quantised_attention_in_a_network():
    network, attention = small()
    attention.normalization_quantize_to_type = DataType.INT8
    attention.normalization_quantize_scale = network.add_constant((), np.float32([1 / 127])).get_output(0)

    assert_allclose(both_ways(network, **FEED), result(FREE), atol=0.1)


def test_copy_of_a_network_has_an_attention_of_its_own():
    network, attention = small()
    twin = network.copy()
    attention.causal = True

    assert twin[0].attention == twin[1].attention != attention
    assert twin[1].attention.get_input(0) is twin.get_input(0)
    assert not twin[1].attention.causal
    assert len({twin[0].attention, twin[1].attention, attention}) == 2
    assert isinstance(twin[0].attention, IAttention)


def test_attention_in_a_loop_attends_to_a_growing_cache():
    network, x = network_of(tokens=(3, 1, 1, 1, 2), cache=(1, 1, 3, 2))
    loop = network.add_loop()
    loop.add_trip_limit(network.add_constant((), i32(3)).get_output(0), netloop.TripLimit.COUNT)
    token = loop.add_iterator(x["tokens"]).get_output(0)
    place = loop.add_recurrence(network.add_constant((1,), i32(0)).get_output(0))
    cache = loop.add_recurrence(x["cache"])
    written = network.add_kv_cache_update(cache.get_output(0), token, place.get_output(0), KVCacheMode.LINEAR)
    cache.set_input(1, written.get_output(0))
    one = network.add_constant((1,), i32(1)).get_output(0)
    count = network.add_elementwise(place.get_output(0), one, netloop.ElementWiseOperation.SUM).get_output(0)
    place.set_input(1, count)
    attention = network.add_attention_v2(token, written.get_output(0), written.get_output(0), SOFTMAX, LOWER_RIGHT)
    attention.key_value_lengths = count
    made = loop.add_loop_output(attention.get_output(0), netloop.LoopOutput.CONCATENATE)
    made.set_input(1, network.add_constant((), i32(3)).get_output(0))
    made.get_output(0).name = "y"
    network.mark_output(made.get_output(0))
    tokens = drawn(3, 2)

    found = both_ways(network, tokens=tokens.reshape(3, 1, 1, 1, 2), cache=np.full((1, 1, 3, 2), 9, np.float32))
    assert_allclose(found.reshape(3, 2), one_head(tokens, tokens, tokens, np.tri(3, dtype=bool)), rtol=1e-5)


@pytest.mark.parametrize("forms", [{}, {"query_form": AttentionIOForm.PACKED_NHD}])
def test_products_larger_than_any_tensor_are_refused(forms):
    """XLA ends the process where sizes overflow."""
    query = f32(2**33, 1, 1) if forms else f32(1, 1, 2**33, 1)
    lengths = (None, index(2)) if forms else ()

    refuses(attending(**forms), query, *[f32(1, 1, 2**33, 1)] * 2, *lengths, match="the product of the query float32[")
