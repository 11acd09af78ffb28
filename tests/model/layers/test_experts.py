import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop
from netloop.model.layers.experts import IMoELayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError
from netloop.values.enums import DataType, MoEActType
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.examples import mostly_slow
from tests.support.laws import Case, check_laws, refuses

NONE, SILU = MoEActType.NONE, MoEActType.SILU
FLOAT, FP8 = DataType.FLOAT, DataType.FP8
RANDOM = np.random.default_rng(0)


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


def i32(*shape):
    return TensorType(np.dtype(np.int32), shape)


def mixture(activation=SILU, limit=math.inf, alpha=1.0, beta=0.0, **named):
    parameters = {"swiglu_param_limit": limit, "swiglu_param_alpha": alpha, "swiglu_param_beta": beta}
    return IMoELayer(activation_type=activation, **parameters, **named)


def numbers(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def random_inputs(b, s, k, e=3, h=4, i=5):
    """Random hidden states, experts, scores, weights and biases."""
    tokens = [numbers(b, s, h), RANDOM.integers(0, e, (b, s, k)).astype(np.int32), numbers(b, s, k)]
    weights = [numbers(e, h, i), numbers(e, h, i), numbers(e, i, h)]
    return [*tokens, *weights, numbers(e, i), numbers(e, i), numbers(e, h)]


def dense(inputs, activate, quantise=lambda h: h):
    """The output of a mixture, by running all experts on all tokens."""
    x, experts, scores, gate, up, down, *biases = inputs
    bg, bu, bd = biases or (0, 0, np.zeros((len(gate), x.shape[-1])))
    g = np.einsum("bsh,ehi->bsei", x, gate) + bg
    u = np.einsum("bsh,ehi->bsei", x, up) + bu
    made = np.einsum("bsei,eih->bseh", quantise(activate(g, u)), down) + bd
    chosen = np.eye(len(gate))[experts] * scores[..., None]
    return np.einsum("bske,bseh->bsh", chosen, made).astype(x.dtype)


def silu(g, u):
    return u * g / (1 + np.exp(-g))


def oai(g, u):
    g, u = np.minimum(g, 0.7), np.clip(u, -0.7, 0.7)
    return (u + 1) * g / (1 + np.exp(-1.702 * g))


FEW, MANY = random_inputs(1, 1, 2), random_inputs(2, 9, 2)
ONE_EXPERT = random_inputs(2, 12, 1, e=1)
LONG = random_inputs(1, 150, 2, e=2, h=3, i=2)
DOUBLE = [array if array.dtype == np.int32 else array.astype(np.float64) for array in MANY]

# One token, two experts of one hidden element each, by hand.
HAND = [
    np.float32([[[3]]]),
    np.int64([[[1, 0]]]),
    np.float32([[[0.5, 2]]]),
    np.float32([[[1]], [[2]]]),
    np.float32([[[-1]], [[4]]]),
    np.float32([[[10]], [[100]]]),
]

CASES = [
    Case("by hand", mixture(NONE), tuple(HAND), np.float32([[[0.5 * 100 * (6 * 12) + 2 * 10 * (3 * -3)]]])),
    Case("few rows", mixture(), tuple(FEW), dense(FEW, silu), rtol=1e-5),
    Case("many rows", mixture(), tuple(MANY), dense(MANY, silu), rtol=1e-5),
    Case("many rows without biases", mixture(), tuple(MANY[:6]), dense(MANY[:6], silu), rtol=1e-5),
    Case("parameters", mixture(SILU, 0.7, 1.702, 1), tuple(MANY), dense(MANY, oai), rtol=1e-5),
    Case("one expert", mixture(), tuple(ONE_EXPERT), dense(ONE_EXPERT, silu), rtol=1e-5),
    Case("blocks that are full", mixture(), tuple(LONG), dense(LONG, silu), rtol=1e-5),
    Case("double", mixture(), tuple(DOUBLE), dense(DOUBLE, silu), rtol=1e-12),
    Case("no tokens", mixture(), tuple(random_inputs(2, 0, 2)), np.zeros((2, 0, 4), np.float32)),
    Case("no experts of a token", mixture(), tuple(random_inputs(2, 3, 0)), np.zeros((2, 3, 4), np.float32)),
    *(
        Case(
            f"{np.dtype(dtype)}",
            mixture(),
            tuple(array if array.dtype == np.int32 else array.astype(dtype) for array in inputs),
            dense(inputs, silu),
            rtol=5e-2,
        )
        for dtype, inputs in ((np.float16, FEW), (jnp.bfloat16, MANY))
    ),
]


def static(h, scale):
    """Quantize numbers with a fixed scale and dequantize them."""
    return np.clip(h / scale, -448, 448).astype(jnp.float8_e4m3fn).astype(np.float64) * scale


BY_EXPERT = np.float32([0.01, 0.02, 0.03])
STATIC = [
    Case(
        f"{name}, {'few' if inputs is FEW else 'many'} rows",
        mixture(quantization_to_type=FP8),
        (*inputs, scale),
        dense(inputs, silu, lambda h, scale=scale: static(h, scale[:, None] if scale.ndim else scale)),
        rtol=1e-4,
    )
    for inputs in (FEW, MANY)
    for name, scale in (("one scale", np.array(0.02, np.float32)), ("a scale an expert", BY_EXPERT))
]


@pytest.mark.parametrize("case", mostly_slow(8, [*CASES, *STATIC]), ids=str)
def test_laws(case):
    check_laws(case)


def test_expert_out_of_range_is_an_error_of_the_reference():
    with pytest.raises(LayerError, match="expert 3 is selected, but there are only 3"):
        mixture().evaluate(FEW[0], np.full_like(FEW[1], 3), *FEW[2:])


# ---------------------------------------------------------------------------- types

X, CHOICE, SCORE = f32(2, 3, 4), i32(2, 3, 2), f32(2, 3, 2)
WEIGHTS = f32(6, 4, 5), f32(6, 4, 5), f32(6, 5, 4)
BIASES = f32(6, 5), f32(6, 5), f32(6, 4)
F16 = TensorType(np.dtype(np.float16), (2, 3, 2))


@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        ([X, CHOICE, SCORE], "the experts have no weights"),
        ([X, CHOICE, SCORE, *WEIGHTS[:2]], "the experts have no weights"),
        ([X, CHOICE, SCORE, *WEIGHTS, BIASES[0]], "some biases are missing"),
        ([i32(2, 3, 4), CHOICE, SCORE, *WEIGHTS], "the hidden_states must be floating-point, not int32[2,3,4]"),
        ([X, SCORE, SCORE, *WEIGHTS], "the selected experts must be int32 or int64, not float32[2,3,2]"),
        ([X, CHOICE, F16, *WEIGHTS], "scores_for_selected_experts is float16, but hidden_states float32"),
        ([f32(3, 4), CHOICE, SCORE, *WEIGHTS], "hidden_states is float32[3,4], but must have 3 axes: [B, S, H]"),
        (
            [X, i32(2, 4, 2), SCORE, *WEIGHTS],
            "selected_experts_for_tokens is int32[2,4,2] with the axes [B, S, K], but S is 3 elsewhere",
        ),
        ([X, CHOICE, f32(2, 3, 1), *WEIGHTS], "but K is 2 elsewhere"),
        ([X, CHOICE, SCORE, f32(6, 3, 5), *WEIGHTS[1:]], "fc_gate_weights is float32[6,3,5]"),
        ([X, CHOICE, SCORE, *WEIGHTS[:2], f32(6, 4, 5)], "fc_down_weights is float32[6,4,5]"),
        ([X, CHOICE, SCORE, *WEIGHTS, *BIASES[:2], f32(6, 5)], "fc_down_biases is float32[6,5]"),
        ([X, CHOICE, SCORE, f32(0, 4, 5), f32(0, 4, 5), f32(0, 5, 4)], "the number of experts is 0"),
        ([X, CHOICE, SCORE, *WEIGHTS, None, None, None, f32()], "quantization_to_type is FLOAT, but there is a scale"),
    ],
)
def test_what_makes_no_mixture_is_refused(inputs, match):
    refuses(mixture(), *inputs, match=match)


@pytest.mark.parametrize(
    ("named", "match"),
    [
        ({"limit": 0}, "swiglu_param_limit is 0.0, but must be positive"),
        ({"limit": math.nan}, "swiglu_param_limit is nan, but must be positive"),
        ({"alpha": math.inf}, "swiglu_param_alpha is inf, but must be finite"),
        ({"beta": math.nan}, "swiglu_param_beta is nan, but must be finite"),
        ({"quantization_to_type": FP8}, "quantization_to_type is FP8, but there is no scale"),
        ({"quantization_block_shape": (1, 16)}, "netloop does not support the dynamic quantization"),
    ],
)
def test_parameters_without_a_meaning_are_refused(named, match):
    refuses(mixture(**named), X, CHOICE, SCORE, *WEIGHTS, match=match)


@pytest.mark.parametrize(
    ("scale", "kind", "match"),
    [
        (f32(5), FP8, "the scale is float32[5], but must be floating-point, [] or [6]"),
        (f32(1, 6), FP8, "the scale is float32[1,6]"),
        (i32(), FP8, "the scale is int32[]"),
        (f32(), DataType.INT8, "quantization_to_type is INT8, but there is a scale"),
        (np.array(0, np.float32), FP8, "the scale has an element that is not positive"),
    ],
)
def test_scales_without_a_meaning_are_refused(scale, kind, match):
    refuses(mixture(quantization_to_type=kind), X, CHOICE, SCORE, *WEIGHTS, None, None, None, scale, match=match)


def test_unknown_lengths_are_learned_from_other_inputs():
    unknown = f32(-1, -1, -1)

    assert mixture().infer(unknown, i32(2, -1, -1), f32(-1, 3, 2), unknown, unknown, f32(-1, -1, 4)) == f32(2, 3, 4)
    assert mixture().infer(unknown, i32(-1, -1, -1), unknown, unknown, unknown, unknown) == unknown


# ---------------------------------------------------------------------------- networks


def network_of(inputs):
    """A network with a mixture of random experts, and its inputs."""
    network = INetworkDefinition()
    names = ["hidden", "experts", "scores"]
    feed = dict(zip(names, inputs[:3], strict=True))
    tensors = [
        network.add_input(name, DataType.INT32 if name == "experts" else FLOAT, array.shape)
        for name, array in feed.items()
    ]
    constants = [network.add_constant(tensor.shape, tensor).get_output(0) for tensor in inputs[3:]]
    layer = network.add_moe(*tensors)
    layer.set_gated_weights(*constants[:3], SILU)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    return network, layer, constants, feed


def both_ways(network, feed):
    """Return the output, after checking that the reference and the engine agree."""
    evaluated, compiled = netloop.evaluate(network, feed)["y"], netloop.compile(network)(feed)["y"]
    assert_allclose(compiled, evaluated, rtol=1e-4, atol=1e-5)
    return evaluated


def test_network_reads_weights_and_biases_from_tensors():
    network, layer, constants, feed = network_of(MANY)
    without = both_ways(network, feed)

    layer.set_gated_biases(*constants[3:])
    layer.set_swiglu_params(0.7, 1.702, 1)

    assert_allclose(without, dense(MANY[:6], silu), rtol=1e-4, atol=1e-5)
    assert_allclose(both_ways(network, feed), dense(MANY, oai), rtol=1e-4, atol=1e-5)


def test_network_quantises_what_goes_into_down():
    network, layer, _, feed = network_of(MANY)
    scale = network.add_constant((), np.array(0.02, np.float32)).get_output(0)

    layer.set_quantization_static(scale, FP8)

    expected = dense(MANY[:6], silu, lambda h: static(h, np.float32(0.02)))
    assert_allclose(both_ways(network, feed), expected, rtol=1e-4, atol=1e-4)


def test_dynamic_quantisation_is_recorded_until_static_takes_its_place():
    network, layer, _, _ = network_of(MANY)
    scale = network.add_constant((), np.array(0.02, np.float32)).get_output(0)

    layer.set_quantization_dynamic_dbl_q(scale, DataType.FP4, (1, 1, 16), FP8)
    recorded = layer.quantization_to_type, layer.quantization_block_shape, layer.dyn_q_output_scale_type
    found = netloop.check(network)
    layer.set_quantization_static(scale, FP8)

    assert recorded == (DataType.FP4, (1, 1, 16), FP8)
    assert [finding.what for finding in found] == [
        "netloop does not support the dynamic quantization of set_quantization_dynamic_dbl_q"
    ]
    assert netloop.check(network) == []


def test_mixture_without_weights_is_found():
    network = INetworkDefinition()
    x, experts = network.add_input("x", FLOAT, (1, 2, 4)), network.add_input("experts", DataType.INT32, (1, 2, 1))
    layer = network.add_moe(x, experts, network.add_input("scores", FLOAT, (1, 2, 1)))
    network.mark_output(layer.get_output(0))

    assert [finding.what for finding in netloop.check(network)] == ["the experts have no weights"]


# ---------------------------------------------------------------------------- JAX


@pytest.mark.parametrize("inputs", [FEW, MANY], ids=["few", "many"])
def test_derivatives_are_those_of_the_dense_formula(inputs):
    floats = [tensor for position, tensor in enumerate(inputs) if position != 1]

    def sparse(x, scores, *parts):
        return jnp.sum(mixture().lower(x, inputs[1], scores, *parts) ** 2)

    def full(x, scores, gate, up, down, bg, bu, bd):
        g, u = jnp.einsum("bsh,ehi->bsei", x, gate) + bg, jnp.einsum("bsh,ehi->bsei", x, up) + bu
        made = jnp.einsum("bsei,eih->bseh", u * jax.nn.silu(g), down) + bd
        return jnp.sum(jnp.einsum("bske,bsk,bseh->bsh", jnp.eye(len(gate))[inputs[1]], scores, made) ** 2)

    every = tuple(range(len(floats)))
    slopes = [jax.jit(jax.grad(array, every))(*floats) for array in (sparse, full)]
    for got, wanted in zip(*slopes, strict=True):
        assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("inputs", [FEW, MANY], ids=["few", "many"])
def test_mixture_maps_over_inputs(inputs):
    x, experts, scores, *parts = inputs
    other = (experts + 1) % 3

    mapped = jax.vmap(lambda x, experts: mixture().lower(x, experts, scores, *parts))
    made = jax.jit(mapped)(np.stack([x, -x]), np.stack([experts, other]))

    assert_allclose(made[0], dense(inputs, silu), rtol=1e-4, atol=1e-5)
    assert_allclose(made[1], dense([-x, other, *inputs[2:]], silu), rtol=1e-4, atol=1e-5)
