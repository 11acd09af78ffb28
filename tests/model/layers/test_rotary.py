import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop
from netloop.model.layers.rotary import IRotaryEmbeddingLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import ExecutionError, LayerError
from netloop.values.enums import DataType
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.laws import Case, check_laws, refuses


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


def network_of(**shapes):
    network = INetworkDefinition()
    tensors = {name: network.add_input(name, DataType.FLOAT, shape) for name, shape in shapes.items()}
    return network, tensors


def both_ways(network, **feed):
    """Return the output, after checking that the reference and the engine agree."""
    evaluated, compiled = netloop.evaluate(network, feed)["y"], netloop.compile(network)(feed)["y"]
    assert_allclose(compiled, evaluated, rtol=1e-5, atol=1e-6)
    return evaluated


def turning(interleaved=False, dim=0):
    return IRotaryEmbeddingLayer(interleaved=interleaved, rotary_embedding_dim=dim)


TOKENS = drawn(2, 3, 4, 6)
ANGLES = drawn(2, 4, 3)
IDS = np.array([[4, 0, 1, 1], [2, 3, 0, 4]])
TABLE = drawn(5, 3)


def turned(x, angles, interleaved=False):
    """Rotate pairs by complex multiplication."""
    half = x.shape[3] // 2
    pairs = x[..., ::2] + 1j * x[..., 1::2] if interleaved else x[..., :half] + 1j * x[..., half:]
    pairs = pairs * np.exp(1j * angles[:, None])
    parts = [pairs.real, pairs.imag]
    return np.stack(parts, -1).reshape(x.shape) if interleaved else np.concatenate(parts, -1)


def caches(angles):
    return np.cos(angles), np.sin(angles)


ROTARIES = [
    Case("halves", turning(), (TOKENS, *caches(ANGLES)), turned(TOKENS, ANGLES), 3e-6),
    Case("neighbours", turning(True), (TOKENS, *caches(ANGLES)), turned(TOKENS, ANGLES, True), 3e-6),
    Case("by position", turning(dim=6), (TOKENS, *caches(TABLE), IDS), turned(TOKENS, TABLE[IDS]), 3e-6),
    Case(
        "neighbours by position",
        turning(True),
        (TOKENS, *caches(TABLE), IDS.astype(np.int32)),
        turned(TOKENS, TABLE[IDS], True),
        3e-6,
    ),
    *(
        Case(
            f"the first four elements, {interleaved}",
            turning(interleaved, 4),
            (TOKENS, *caches(ANGLES[..., :2])),
            np.concatenate([turned(TOKENS[..., :4], ANGLES[..., :2], interleaved), TOKENS[..., 4:]], -1),
            3e-6,
        )
        for interleaved in (False, True)
    ),
    Case("an empty batch", turning(), (TOKENS[:0], *caches(ANGLES[:0])), TOKENS[:0]),
    Case("no tokens by position", turning(), (TOKENS[:, :, :0], *caches(TABLE), IDS[:, :0]), TOKENS[:, :, :0]),
    *(
        Case(f"{np.dtype(dtype)}", turning(), tuple(cach.astype(dtype) for cach in (TOKENS, *caches(ANGLES))))
        for dtype in (np.float16, jnp.bfloat16, np.float64)
    ),
]


@pytest.mark.parametrize("case", ROTARIES, ids=str)
def test_laws_of_rotary_embedding(case):
    check_laws(case)


def test_unknown_lengths_of_rotary_embedding():
    inputs = (f32(-1, 2, -1, -1), f32(3, -1, 4), f32(-1, 5, -1))

    assert turning().infer(*inputs).shape == (-1, 2, -1, -1)


def test_rotary_embedding_by_unknown_positions():
    assert turning().infer(f32(1, 2, 3, 4), f32(-1, 2), f32(9, -1), index(-1, 3)).shape == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("layer", "inputs", "match"),
    [
        (turning(), (f32(2, 3, 4), f32(2, 3, 2), f32(2, 3, 2)), "the input is float32[2,3,4], but must have 4 axes"),
        (turning(), (index(1, 1, 1, 2), f32(1, 1, 1), f32(1, 1, 1)), "the input is floating-point, not int32"),
        (turning(), (f32(1, 1, 1, 3), f32(1, 1, 1), f32(1, 1, 1)), "3 elements of each token are to be rotated"),
        (turning(dim=-2), (f32(1, 1, 1, 4), f32(1, 1, 1), f32(1, 1, 1)), "-2 elements of each token are to be rotated"),
        (turning(dim=-1), (f32(1, 1, 1, 4), f32(1, 1, 1), f32(1, 1, 1)), "-1 elements of each token are to be rotated"),
        (turning(dim=6), (f32(1, 1, 1, 4), f32(1, 1, 3), f32(1, 1, 3)), "is 6, and a token has 4 elements"),
        (
            turning(),
            (f32(1, 1, 1, 4), f32(1, 1, 4), f32(1, 1, 2)),
            "the cos_cache is float32[1,1,4], but must be float32[1,1,2]",
        ),
        (
            turning(),
            (f32(1, 1, 1, 4), f32(1, 1, 2), f32(7, 2)),
            "the sin_cache is float32[7,2], but must be float32[1,1,2]",
        ),
        (
            turning(),
            (f32(1, 1, 1, 4), f32(7, 2), f32(8, 2), index(1, 1)),
            "the caches are float32[7,2] and float32[8,2]",
        ),
        (turning(), (f32(1, 1, 1, 4), f32(7, 2), f32(7, 2), f32(1, 1)), "the position_ids are int32 or int64"),
        (
            turning(),
            (f32(1, 1, 3, 4), f32(7, 2), f32(7, 2), index(1, 2)),
            "the position_ids are int32[1,2], but must be",
        ),
    ],
)
def test_rotary_embedding_refuses(layer, inputs, match):
    refuses(layer, *inputs, match=match)


def test_cache_of_another_type_is_refused():
    c, s = caches(ANGLES)
    refuses(
        turning(), TOKENS, c.astype(np.float16), s, match="the cos_cache is float16[2,4,3], but must be float32[2,4,3]"
    )


@pytest.mark.parametrize("position", [-1, 5])
def test_position_out_of_range_is_an_error(position):
    with pytest.raises(LayerError, match=f"position {position} is out of range: there are 5"):
        turning().evaluate(TOKENS, *caches(TABLE), np.full((2, 4), position))


@pytest.mark.parametrize(("position", "nearest"), [(-1, 0), (5, 4)])
def test_compiled_position_out_of_range_is_the_nearest(position, nearest):
    found, wanted = (turning().lower(TOKENS, *caches(TABLE), np.full((2, 4), value)) for value in (position, nearest))

    np.testing.assert_array_equal(found, wanted)


def test_gradient_of_a_turn_is_the_turn_back():
    c, s = caches(np.full((1, 1, 1), np.pi / 6, np.float32))
    found = slope(lambda x: turning().lower(x, c, s)[..., 0].sum(), jnp.ones((1, 1, 1, 2)))

    assert_allclose(found.ravel(), [np.sqrt(0.75), -0.5], rtol=1e-6)


def test_network_turns():
    network, x = network_of(x=TOKENS.shape, c=TABLE.shape, s=TABLE.shape)
    layer = network.add_rotary_embedding(x["x"], x["c"], x["s"], True, 0)
    layer.set_input(3, network.add_input("ids", DataType.INT64, (2, 4)))
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    c, s = caches(TABLE)

    assert (layer.interleaved, layer.rotary_embedding_dim) == (True, 0)
    found = both_ways(network, x=TOKENS, c=c, s=s, ids=IDS)
    assert_allclose(found, turned(TOKENS, TABLE[IDS], True), rtol=1e-5, atol=1e-6)


def test_network_tells_of_a_position_out_of_range():
    network, x = network_of(x=TOKENS.shape, c=TABLE.shape, s=TABLE.shape)
    layer = network.add_rotary_embedding(x["x"], x["c"], x["s"], False, 0)
    layer.set_input(3, network.add_input("ids", DataType.INT64, (2, 4)))
    network.mark_output(layer.get_output(0))
    c, s = caches(TABLE)

    with pytest.raises(ExecutionError, match="position 9 is out of range"):
        netloop.evaluate(network, {"x": TOKENS, "c": c, "s": s, "ids": np.full((2, 4), 9)})
