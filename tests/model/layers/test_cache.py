import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop
from netloop.model.layers.cache import IKVCacheUpdateLayer
from netloop.model.network import INetworkDefinition
from netloop.values.enums import AttentionIOForm, DataType, KVCacheMode
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.laws import Case, check_laws, refuses

PADDED, PACKED = AttentionIOForm.PADDED_BHND, AttentionIOForm.PACKED_NHD


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


def index(*shape):
    return TensorType(np.dtype(np.int32), shape)


def i32(*numbers):
    return np.array(numbers, np.int32)


def slope(function, x):
    return jax.jit(jax.grad(function))(x)


def network_of(**shapes):
    network = INetworkDefinition()
    tensors = {name: network.add_input(name, DataType.FLOAT, shape) for name, shape in shapes.items()}
    return network, tensors


def both_ways(network, **feed):
    """Return the output, after checking that the reference and the engine agree."""
    evaluated, compiled = netloop.evaluate(network, feed)["y"], netloop.compile(network)(feed)["y"]
    assert_allclose(compiled, evaluated, rtol=1e-5, atol=1e-6)
    return evaluated


CACHE = np.arange(12, dtype=np.float32).reshape(2, 1, 3, 2)
NEW = -np.arange(1, 9, dtype=np.float32).reshape(2, 1, 2, 2)


def writing(**named):
    return IKVCacheUpdateLayer(cache_mode=KVCacheMode.LINEAR, **named)


def rows(*pairs):
    return np.float32(pairs).reshape(2, 1, 3, 2)


WRITES = [
    Case(
        "from two places",
        writing(),
        (CACHE, NEW, i32(0, 1)),
        rows((-1, -2), (-3, -4), (4, 5), (6, 7), (-5, -6), (-7, -8)),
    ),
    Case(
        "what is beyond is not written",
        writing(),
        (CACHE, NEW, np.array([2, -1])),
        rows((0, 1), (2, 3), (-1, -2), (-7, -8), (8, 9), (10, 11)),
    ),
    Case("all beyond", writing(), (CACHE, NEW, i32(3, -2)), CACHE),
    Case(
        "packed",
        writing(update_form=PACKED),
        (CACHE, NEW.reshape(4, 1, 2), i32(2, 0), i32(0, 1, 4)),
        rows((0, 1), (2, 3), (-1, -2), (-3, -4), (-5, -6), (-7, -8)),
    ),
    Case(
        "packed, and beyond",
        writing(update_form=PACKED),
        (CACHE, NEW.reshape(4, 1, 2), i32(2, -1), np.array([0, 3, 4])),
        rows((0, 1), (2, 3), (-1, -2), (6, 7), (8, 9), (10, 11)),
    ),
    Case(
        "packed, one empty",
        writing(update_form=PACKED),
        (CACHE, NEW.reshape(4, 1, 2)[:1], i32(2, 1), i32(0, 0, 1)),
        rows((0, 1), (2, 3), (4, 5), (6, 7), (-1, -2), (10, 11)),
    ),
    Case("nothing new", writing(), (CACHE, NEW[:, :, :0], i32(0, 0)), CACHE),
    Case("an empty batch", writing(), (CACHE[:0], NEW[:0], i32()), CACHE[:0]),
    Case(
        "an empty packed batch",
        writing(update_form=PACKED),
        (CACHE[:0], np.zeros((0, 1, 2), np.float32), i32(), i32(0)),
    ),
    *(
        Case(f"{np.dtype(dtype)}", writing(), (CACHE.astype(dtype), NEW.astype(dtype), i32(0, 1)))
        for dtype in (np.float16, jnp.bfloat16, np.float64)
    ),
]


@pytest.mark.parametrize("case", WRITES, ids=str)
def test_laws_of_cache_updates(case):
    check_laws(case)


def one_sequence(tokens, place):
    new = -np.arange(1, 2 * tokens + 1, dtype=np.float32).reshape(1, 1, tokens, 2)
    return Case(f"{tokens} tokens at {place}", writing(), (CACHE[:1], new, i32(place)))


PLACES = [-(2**31), -3, -2, -1, 0, 1, 2, 3, 2**31 - 1]


@pytest.mark.parametrize("case", [one_sequence(tokens, place) for tokens in (1, 2, 3, 4) for place in PLACES], ids=str)
def test_laws_of_an_update_of_one_sequence(case):
    check_laws(case)


def decoder(trips):
    """A cache of one sequence, written and read head by head in a loop."""
    network, x = network_of(tokens=(trips, 1, 2, 1, 3), cache=(1, 2, 5, 3))
    loop = network.add_loop()
    loop.add_trip_limit(network.add_constant((), i32(trips)).get_output(0), netloop.TripLimit.COUNT)
    token = loop.add_iterator(x["tokens"]).get_output(0)
    place = loop.add_recurrence(network.add_constant((1,), i32(0)).get_output(0))
    one = network.add_constant((1,), i32(1)).get_output(0)
    following = network.add_elementwise(place.get_output(0), one, netloop.ElementWiseOperation.SUM).get_output(0)
    place.set_input(1, following)
    cache = loop.add_recurrence(x["cache"])
    layer = network.add_kv_cache_update(cache.get_output(0), token, place.get_output(0), KVCacheMode.LINEAR)
    cache.set_input(1, layer.get_output(0))
    heads = network.add_shuffle(layer.get_output(0))
    heads.reshape_dims = (2, 5, 3)
    none, transpose = netloop.MatrixOperation.NONE, netloop.MatrixOperation.TRANSPOSE
    query = network.add_shuffle(token)
    query.reshape_dims = (2, 1, 3)
    product = network.add_matrix_multiply(query.get_output(0), none, heads.get_output(0), transpose)
    made = loop.add_loop_output(product.get_output(0), netloop.LoopOutput.CONCATENATE)
    made.set_input(1, network.add_constant((), i32(trips)).get_output(0))
    made.get_output(0).name = "y"
    network.mark_output(made.get_output(0))
    return network


def test_cache_in_a_loop_is_not_copied_from_trip_to_trip():
    text = netloop.compile(decoder(5)).executable._programs.latest.compiled.as_text()
    inside, _ = text.split("ENTRY")

    assert "dynamic-update-slice" in inside
    assert not re.search(r"f32\[[\d,]*5,3\]\S* copy\(", inside)


def test_unknown_lengths_of_a_cache():
    assert writing().infer(f32(-1, 2, 8, 4), f32(3, 2, -1, -1), index(-1)).shape == (-1, 2, 8, 4)


def test_unknown_lengths_of_a_packed_update():
    assert writing(update_form=PACKED).infer(f32(2, 2, 8, 4), f32(-1, -1, 4), index(2), index(-1)).shape == (2, 2, 8, 4)


@pytest.mark.parametrize(
    ("form", "inputs", "match"),
    [
        (PADDED, (f32(2, 3, 4), NEW, index(2)), "the cache is float32[2,3,4], but must have 4 axes"),
        (PADDED, (index(2, 1, 3, 2), NEW, index(2)), "the cache must be floating-point, not int32[2,1,3,2]"),
        (PADDED, (CACHE, NEW[0], index(2)), "the update is float32[1,2,2], but must be float32[2,1,-1,2]"),
        (PADDED, (CACHE, NEW.astype(np.float16), index(2)), "the update is float16[2,1,2,2], but must be float32"),
        (PACKED, (CACHE, NEW, index(2), index(3)), "the update is float32[2,1,2,2], but must be float32[-1,1,2]"),
        (PADDED, (CACHE, NEW, f32(2)), "the write_indices are float32[2], but must be int32[2]"),
        (PADDED, (CACHE, NEW, index(3)), "the write_indices are int32[3], but must be int32[2]"),
        (PADDED, (CACHE, NEW, index(2), index(3)), "there are update_lengths, int32[3], but update_form is PADDED"),
        (PACKED, (CACHE, f32(4, 1, 2), index(2)), "there are no update_lengths"),
        (
            PACKED,
            (CACHE, f32(4, 1, 2), index(2), index(2)),
            "the update_lengths are of 1 sequences, but the cache has 2",
        ),
        (PACKED, (CACHE, f32(4, 1, 2), index(2), f32(3)), "the update_lengths are float32[3], but must be B + 1"),
    ],
)
def test_cache_update_refuses(form, inputs, match):
    refuses(writing(update_form=form), *inputs, match=match)


def test_cache_keeps_its_value():
    before = CACHE.copy()
    writing().evaluate(CACHE, NEW, i32(0, 0))

    np.testing.assert_array_equal(CACHE, before)


def test_gradient_of_a_cache_is_zero_where_it_was_overwritten():
    found = slope(lambda cache: writing().lower(cache, NEW, i32(0, 1)).sum(), jnp.asarray(CACHE))

    np.testing.assert_array_equal(found[..., 0].ravel(), [0, 0, 1, 1, 0, 0])


def test_network_updates_a_cache():
    network, x = network_of(cache=CACHE.shape, update=NEW.shape)
    places = network.add_input("places", DataType.INT32, (2,))
    layer = network.add_kv_cache_update(x["cache"], x["update"], places, KVCacheMode.LINEAR)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))

    assert (layer.cache_mode, layer.update_form, layer.update_lengths) == (KVCacheMode.LINEAR, PADDED, None)
    found = both_ways(network, cache=CACHE, update=NEW, places=i32(0, 1))
    np.testing.assert_array_equal(found, WRITES[0].expected)


def test_update_lengths_are_input_3():
    network, x = network_of(cache=CACHE.shape, update=(4, 1, 2))
    places, lengths = (
        network.add_input(name, DataType.INT32, (size,)) for name, size in (("places", 2), ("lengths", 3))
    )
    layer = network.add_kv_cache_update(x["cache"], x["update"], places, KVCacheMode.LINEAR)
    layer.update_lengths = None
    layer.update_form = PACKED
    layer.update_lengths = lengths
    assert layer.update_lengths is layer.get_input(3) is lengths
    assert layer.get_output(0).shape == CACHE.shape

    layer.update_lengths = None
    assert layer.get_input(3) is None
    with pytest.raises(TypeError, match="tensor must be an ITensor, not int"):
        layer.update_lengths = 3
    with pytest.raises(AttributeError, match="did you mean 'update_form'"):
        layer.update_forms = PACKED


def test_cache_with_more_tokens_than_int32_counts_is_refused():
    inputs = f32(1, 1, 2**31, 1), f32(1, 1, 2, 1), index(1)

    refuses(writing(), *inputs, match="axis 2 of float32[1,1,2147483648,1] is indexed by int32")
