"""Several equations that are one layer of TensorRT, and others that nearly are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from netloop.model.layers.attention import IAttentionOutputLayer
from netloop.model.layers.normalization import INormalizationLayer
from tests.support.jax_functions import check_same
from tests.support.onnx_runtime import export, run

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


X, G, B = normal(2, 5, 6), normal(6), normal(6)
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def layers(network, kind):
    return [layer for layer in network.layers if isinstance(layer, kind)]


# ---------------------------------------------------------------------- normalization


def by_root(x, g, b):
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-3) * g + b


def by_inverse_root(x, g, b):
    mean, variance = jnp.mean(x, -1), jnp.mean(x * x, -1)
    variance = jnp.maximum(variance - mean * mean, 0)
    factor = lax.rsqrt(variance[..., None] + 1e-3) * g
    return (x - mean[..., None]) * factor + b


def as_equinox(x, g, b):
    mean = jnp.mean(x, -1, keepdims=True)
    variance = jnp.maximum(jnp.var(x, -1, keepdims=True), 0.0)
    return g * ((x - mean) * lax.rsqrt(variance + 1e-3)) + b


def along_two_axes(x, g, b):
    mean, variance = jnp.mean(x, (1, 2), keepdims=True), jnp.var(x, (1, 2), keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-3)


def twice(x, g, b):
    mean = jnp.mean(x, 0)
    return (x - mean) / jnp.sqrt(jnp.mean((x - mean) ** 2, 0) + 1e-3)


@pytest.mark.parametrize("function", [by_root, by_inverse_root, as_equinox, along_two_axes])
def test_normalization_is_one_layer(function):
    network = check_same(function, X, G, B, **CLOSE)

    (layer,) = layers(network, INormalizationLayer)
    assert np.float32(layer.epsilon) == np.float32(1e-3)
    assert all(layer.type.name in ("NORMALIZATION", "UNSQUEEZE", "CONSTANT") for layer in network.layers)


def test_normalization_of_an_open_batch_is_one_layer():
    (batch,) = jax.export.symbolic_shape("batch")
    example = jax.ShapeDtypeStruct((batch, 5, 6), np.float32)
    network = trt.from_jax(lambda x: by_root(x, G, B), example)

    assert len(layers(network, INormalizationLayer)) == 1
    np.testing.assert_allclose(trt.compile(network)({"x": X})["output"], by_root(X, G, B), **CLOSE)


def test_onnx_has_the_operator_for_it():
    model = export(trt.from_jax(by_root, X, G, B))

    assert [attribute.op_type for attribute in model.graph.node][-1] == "LayerNormalization"
    np.testing.assert_allclose(run(model, {"x": X, "g": G, "b": B})["output"], by_root(X, G, B), **CLOSE)


def with_mean_of_another_axis(x):
    return (x - jnp.mean(x, 1, keepdims=True)) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-3)


def with_epsilon_outside(x):
    return (x - jnp.mean(x, -1, keepdims=True)) / (jnp.sqrt(jnp.var(x, -1, keepdims=True)) + 1e-3)


def with_unbiased_variance(x):
    return (x - jnp.mean(x, -1, keepdims=True)) / jnp.sqrt(jnp.var(x, -1, keepdims=True, ddof=1) + 1e-3)


def with_variance_of_others(x):
    return (x - jnp.mean(x, -1, keepdims=True)) / jnp.sqrt(jnp.var(2 * x, -1, keepdims=True) + 1e-3)


def with_difference_from_others(x):
    return (x - jnp.mean(2 * x, -1, keepdims=True)) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-3)


def with_sum_of_squares(x):
    away = x - jnp.mean(x, -1, keepdims=True)
    return away / jnp.sqrt(jnp.sum(away * away, -1, keepdims=True) + 1e-3)


def with_negative_epsilon(x):
    return (x - jnp.mean(x, -1, keepdims=True)) / jnp.sqrt(jnp.var(x, -1, keepdims=True) - 1e-3)


def with_mean_of_squares_only(x):
    return (x - jnp.mean(x, -1, keepdims=True)) * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-3)


@pytest.mark.parametrize(
    "function",
    [
        with_mean_of_another_axis, with_epsilon_outside, with_unbiased_variance, with_variance_of_others,
        with_difference_from_others, with_sum_of_squares, with_negative_epsilon, with_mean_of_squares_only,
    ],
)  # fmt: skip
def test_quotient_that_is_nearly_a_normalization_is_none(function):
    assert layers(check_same(function, X, **CLOSE), INormalizationLayer) == []


def test_factor_of_another_axis_stays_a_product():
    def function(x):
        return by_root(x, 1.0, 0.0) * jnp.arange(5, dtype=np.float32)[:, None]

    network = check_same(function, X, **CLOSE)

    assert len(layers(network, INormalizationLayer)) == 1
    assert network.layers[-1].type.name == "ELEMENTWISE"


def test_normalization_that_others_read_keeps_its_scale():
    def function(x):
        made = by_root(x, 1.0, 0.0)
        return made * G + B, jnp.tanh(made)

    check_same(function, X, **CLOSE)


# ---------------------------------------------------------------------- attention

Q, K, V, BIAS = normal(2, 5, 3, 4), normal(2, 6, 3, 4), normal(2, 6, 3, 4), normal(3, 5, 6)


def heads_last(q, k, v):
    shares = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) / 2)
    return jnp.einsum("bhts,bshd->bthd", shares, v)


def heads_first(q, k, v):
    q, k, v = (jnp.swapaxes(value, 1, 2) for value in (q, k, v))
    return jax.nn.softmax(0.3 * (q @ jnp.swapaxes(k, -1, -2))) @ v


def keys_first(q, k, v):
    shares = jax.nn.softmax(jnp.einsum("bshd,bthd->bhst", k, q), 2)
    return jnp.einsum("bshd,bhst->bhdt", v, shares)


def of_jax(q, k, v):
    return jax.nn.dot_product_attention(q, k, v)


def under_vmap(q, k, v):
    return jax.vmap(lambda q, k, v: jax.nn.softmax(q @ k.T) @ v)(q[:, :, 0], k[:, :, 0], v[:, :, 0])


def of_one_head(q, k, v):
    return jax.nn.softmax(q[0, :, 0] @ k[0, :, 0].T) @ v[0, :, 0]


def with_a_bias(q, k, v):
    shares = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) + 0.1 * jnp.asarray(BIAS))
    return jnp.einsum("bhts,bshd->bthd", shares, v)


def with_a_window(q, k, v):
    places = jnp.arange(5)[:, None] - jnp.arange(6)
    scores = jnp.where(abs(places) < 2, jnp.einsum("bthd,bshd->bhts", q, k), -jnp.inf)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)


def causal(q, k, v):
    scores = jnp.einsum("bthd,bshd->bhts", q, k)
    scores = jnp.where(jnp.tril(jnp.ones((5, 6), bool)), scores, jnp.finfo(np.float32).min)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)


def causal_of_jax(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize(
    "function",
    [heads_last, heads_first, keys_first, of_jax, under_vmap, of_one_head, with_a_bias, with_a_window],
)
def test_attention_is_one_layer(function):
    network = check_same(function, Q, K, V, **CLOSE)

    (layer,) = layers(network, IAttentionOutputLayer)
    assert layer.causal_kind is trt.CausalMaskKind.NONE
    assert not any(layer.type.name in ("SOFTMAX", "MATRIX_MULTIPLY", "EINSUM") for layer in network.layers)


@pytest.mark.parametrize("function", [causal, causal_of_jax])
def test_causal_mask_is_a_kind(function):
    (layer,) = layers(check_same(function, Q, K, V, **CLOSE), IAttentionOutputLayer)

    assert layer.causal_kind is trt.CausalMaskKind.UPPER_LEFT
    assert layer.num_inputs == 3


def test_onnxruntime_computes_the_attention():
    network = trt.from_jax(causal_of_jax, Q, K, V)

    found = run(export(network), {"q": Q, "k": K, "v": V})
    np.testing.assert_allclose(found["output"], causal_of_jax(Q, K, V), **CLOSE)


def along_the_queries(q, k, v):
    shares = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k), 2)
    return jnp.einsum("bhts,bshd->bthd", shares, v)


def over_the_queries(q, k, v):
    shares = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k))
    return jnp.einsum("bhts,bthd->bshd", shares, v[:, :5])


def with_other_widths(q, k, v):
    shares = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k))
    return jnp.einsum("bhts,bshd->bthd", shares, v[..., :3])


def with_a_mask_that_may_count(q, k, v):
    scores = jnp.where(jnp.tril(jnp.ones((5, 6), bool)), jnp.einsum("bthd,bshd->bhts", q, k), -1e3)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)


def with_a_row_without_keys(q, k, v):
    mask = jnp.arange(5)[:, None] > jnp.arange(6)
    scores = jnp.where(mask, jnp.einsum("bthd,bshd->bhts", q, k), jnp.finfo(np.float32).min)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)


def with_a_mask_of_inputs(q, k, v):
    scores = jnp.where(k[:, None, None, :, 0, 0] > 0, jnp.einsum("bthd,bshd->bhts", q, k), -jnp.inf)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)


def with_a_scale_of_inputs(q, k, v):
    shares = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) * v[0, 0, 0, 0])
    return jnp.einsum("bhts,bshd->bthd", shares, v)


def with_shares_returned(q, k, v):
    shares = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k))
    return jnp.einsum("bhts,bshd->bthd", shares, v), shares


def with_shares_of_all_heads(q, k, v):
    shares = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k))
    return jnp.einsum("bhts,bsd->bthd", shares, v[:, :, 0])


@pytest.mark.parametrize(
    "function",
    [
        along_the_queries, over_the_queries, with_other_widths, with_a_mask_that_may_count, with_a_row_without_keys,
        with_a_mask_of_inputs, with_a_scale_of_inputs, with_shares_returned, with_shares_of_all_heads,
    ],
)  # fmt: skip
def test_products_that_are_nearly_an_attention_are_none(function):
    assert layers(check_same(function, Q, K, V, **CLOSE), IAttentionOutputLayer) == []


# ---------------------------------------------------------------------- others


def test_product_and_sum_of_a_layer_keep_the_weights_names():
    network = check_same(lambda p, x: x @ p["w"] + p["b"], {"w": normal(6, 3), "b": normal(3)}, X[0], **CLOSE)

    assert [tensor.name for tensor in network.inputs] == ["p.b", "p.w", "x"]
    assert [layer.type.name for layer in network.layers if layer.type.name != "CONSTANT"] == [
        "MATRIX_MULTIPLY", "UNSQUEEZE", "ELEMENTWISE",
    ]  # fmt: skip


def test_transposes_one_after_the_other_are_one():
    network = check_same(lambda x: x.transpose(1, 2, 0).transpose(1, 0, 2), X)

    assert [layer.type.name for layer in network.layers] == ["SHUFFLE"]


def test_numbers_that_constants_make_are_constants():
    network = check_same(lambda x: x / jnp.sqrt(jnp.float32(8.0) - 4.0), X)

    assert [layer.type.name for layer in network.layers] == ["CONSTANT", "ELEMENTWISE"]
