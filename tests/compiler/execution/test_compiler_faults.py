"""Faults of XLA's CPU compiler: which of them this JAX has, and that netloop's own forms do not meet them."""

import platform
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from tests.support.networks import CONCATENATE, combine, constant, counted, last, mark, stacked
from tests.support.onnx_models import model

F = np.float32
NONE, CLAMP = trt.MatrixOperation.NONE, trt.SampleMode.CLAMP
DRAW = np.random.default_rng(0)


class Fault(NamedTuple):
    """A fault of XLA.

    Attributes:
        is_there: a program that says whether this JAX has it.
        seen: the versions of JAX in which it was seen.
        gone: the versions in which it was looked for and not seen.
        guard: what netloop does because of it.
    """

    is_there: Callable[[], bool]
    seen: tuple[str, ...]
    gone: tuple[str, ...] = ()
    guard: str = ""


def compiled(function, *arguments):
    """The result of a program that is compiled anew."""
    return np.asarray(jax.jit(lambda *arrays: function(*arrays)).lower(*arguments).compile()(*arguments))


def is_product_by_one_number_wrong():
    """A sum over the rows of a product by one number throughout: of several compilations, most are wrong."""
    x = DRAW.normal(size=(256, 64)).astype(F)
    meant = (x.astype(np.float64) @ np.full((64, 64), 0.01)).sum(0)
    sums = [compiled(lambda x: (x @ jnp.full((64, 64), 0.01, F)).sum(0), x) for _ in range(10)]
    return any(not np.allclose(sum_, meant, rtol=0, atol=1e-3) for sum_ in sums)


def is_nan_lost():
    """The larger of NaN and 0, in a sum."""
    x = np.ones((64, 64), F)
    x[3, 5] = np.nan
    return not np.isnan(compiled(lambda x: jnp.maximum(x, 0).sum(1), x)[3])


def are_many_rows_of_three_wrong():
    """Squares of 40,000 vectors of three numbers, each multiplied by a matrix (jax 39103)."""
    x = np.zeros((40_000, 3), F)
    x[:, 0] = np.arange(40_000)
    got = compiled(jax.vmap(lambda row: jnp.sum((jnp.eye(3, dtype=F) @ row) ** 2)), x)
    return not np.allclose(got, x[:, 0].astype(np.float64) ** 2, rtol=1e-5)


def is_slice_of_a_slice_wrong():
    """A slice of a rolled array that begins after the last place at which it fits (xla 49121)."""
    x = np.arange(0, 90, 10, dtype=np.int32)
    got = compiled(lambda x, n, start: lax.dynamic_slice(jnp.roll(x, n), [start], [4]), x, np.int32(4), np.int32(12))
    return got.tolist() != [10, 20, 30, 40]


def is_shifted_update_wrong():
    """An update by the updated array itself, shifted by a row, in another shape (xla 49176)."""

    def shifted(x):
        base = x + 1
        return base.at[1:].set(base[:-1]).reshape(1, *base.shape)

    x = np.arange(128, dtype=np.int32).reshape(8, 16)
    return not np.array_equal(compiled(shifted, x)[0], np.concatenate([x[:1], x[:-1]]) + 1)


def is_dilated_window_wrong():
    """The largest numbers of windows of 2 x 1, over numbers that are spread along the second axis (xla 48714)."""
    x = DRAW.normal(size=(64, 128)).astype(F)
    return not np.array_equal(compiled(spread_windows, x), spread_maxima(x))


def spread_windows(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (2, 1), ((0, 0), (0, 0)), base_dilation=(1, 2))


def spread_maxima(x):
    """``spread_windows`` by hand."""
    wide = np.full((x.shape[0] // 2, 2 * x.shape[1] - 1), -np.inf, x.dtype)
    wide[:, ::2] = np.maximum(x[::2], x[1::2])
    return wide


def does_nan_spread_between_channels():
    """A convolution of each channel by itself, in float64, of which one channel has NaN."""
    with jax.enable_x64(True):
        x, kernel = np.ones((1, 16, 4, 4)), np.ones((16, 1, 1, 1))
        x[0, 0] = np.nan
        got = compiled(
            lambda x, kernel: lax.conv_general_dilated(x, kernel, (1, 1), "VALID", feature_group_count=16), x, kernel
        )
    return bool(np.isnan(got[:, 1:]).any())


def is_eight_bit_arithmetic_saturated():
    """Squares of int8 in a maximum: 16 * 16 is 0, and 11 * 11 is 121."""
    x = np.full((64, 64), 16, np.int8)
    x[:, 0] = 11
    return not np.array_equal(compiled(lambda x: (x * x).max(1), x), np.full(64, 121))


def do_extremes_of_half_types_lose_nan():
    """The smallest number of a row with NaN, and the largest of one with NaN whose sign is set."""
    x = np.ones((64, 64), np.float16)
    x[3, 5] = np.nan
    got = compiled(lambda x: jnp.stack([x.min(1), (x * 0 - x).max(1)]), x)
    return not np.isnan(got[:, 3]).all()


SEEN = ("0.10.2", "0.11.2")
FAULTS = {
    "product by one number, then a reduction": Fault(
        is_product_by_one_number_wrong,
        (*SEEN, "0.12.0", "0.12.0.1"),
        guard="operands that XLA cannot fold, recompilation",
    ),
    "maximum loses NaN before a sum": Fault(
        is_nan_lost, (*SEEN, "0.12.0", "0.12.0.1"), guard="maximum and minimum of lax_forms, recompilation"
    ),
    "jax 39103": Fault(are_many_rows_of_three_wrong, ("0.10.2",), ("0.11.2",), guard="recompilation"),
    "xla 49121": Fault(is_slice_of_a_slice_wrong, SEEN, guard="starts of slices are clipped first"),
    "xla 49176": Fault(is_shifted_update_wrong, SEEN, guard="updates by indices, and a barrier in key-value caches"),
    "xla 48714": Fault(is_dilated_window_wrong, SEEN, guard="windows over spread numbers are not reduced by XLA"),
    "NaN in extremes of half types": Fault(do_extremes_of_half_types_lose_nan, ("0.10.2",), guard="folded extremes"),
    "arithmetic of 8 bits, then a reduction": Fault(
        is_eight_bit_arithmetic_saturated, ("0.10.2",), guard="folded extremes"
    ),
    "NaN between channels": Fault(
        does_nan_spread_between_channels, ("0.10.2",), guard="sums of products for single channels of float64"
    ),
}
"""The faults, with the versions of JAX in which they were seen on x86-64."""

on_x86_cpus = pytest.mark.skipif(
    jax.default_backend() != "cpu" or platform.machine() not in ("x86_64", "AMD64"),
    reason="the faults were seen on x86-64",
)


@on_x86_cpus
@pytest.mark.parametrize("name", FAULTS)
def test_fault_of_xla_is_in_the_versions_in_which_it_was_seen(name):
    """If this fails, the fault is mended in that version: what netloop does because of it may go some day."""
    fault, version = FAULTS[name], jax.__version__
    is_there = fault.is_there()
    if version not in fault.seen + fault.gone:
        pytest.skip(f"JAX {version} {'has' if is_there else 'does not have'} this fault; add it to the table")

    assert is_there == (version in fault.seen), f"no longer needed from this version on: {fault.guard}"


# ---------------------------------------------------------------------------- what netloop makes


def agrees(network, inputs, **expected):
    """Require that the engine, with and without passes, gives what the reference does and what is expected."""
    meant = trt.evaluate(network, inputs)
    for name, value in expected.items():
        np.testing.assert_array_equal(meant[name], value)
    for options in ({}, {"passes": ()}):
        got = trt.compile(network, **options)(inputs)
        for name, value in meant.items():
            np.testing.assert_array_equal(np.asarray(got[name]), value)


TENS = np.arange(0, 90, 10, dtype=np.int32)
STARTS = [-20, 0, 2, 6, 100]


def the_first_fast(names, number):
    """Names as parameters, of which all but the first few are slow."""
    return [name if at < number else pytest.param(name, marks=pytest.mark.slow) for at, name in enumerate(names)]


def sliced(network, tensor, start, length, mode):
    """A slice whose start is a tensor."""
    layer = network.add_slice(tensor, (0,), (length,), (1,))
    layer.set_input(1, start)
    layer.mode = mode
    return layer.get_output(0)


@pytest.mark.parametrize(
    "mode", the_first_fast([CLAMP, trt.SampleMode.FILL, trt.SampleMode.WRAP, trt.SampleMode.REFLECT], 2)
)
def test_slices_of_slices_may_begin_anywhere(network, mode):
    x = network.add_input("x", trt.int32, (9,))
    starts = [network.add_input(name, trt.int32, (1,)) for name in ("a", "b")]
    inner = sliced(network, x, starts[0], 5, mode)
    mark(network, y=sliced(network, inner, starts[1], 2, mode), once=inner)
    engine = trt.compile(network)
    for a in STARTS:
        for b in STARTS:
            inputs = {"x": TENS, "a": np.int32([a]), "b": np.int32([b])}
            np.testing.assert_array_equal(np.asarray(engine(inputs)["y"]), trt.evaluate(network, inputs)["y"])


SLICES_OF_SLICES = {
    "a slice of a slice": lambda x, a, b: lax.dynamic_slice(lax.dynamic_slice(x, [a], [5]), [b], [2]),
    "a slice of a rolled array": lambda x, a, b: lax.dynamic_slice(jnp.roll(x, a), [b], [4]),
    "a row of a slice": lambda x, a, b: lax.dynamic_index_in_dim(lax.dynamic_slice(x, [a], [5]), b, keepdims=False),
    "a slice of a slice in a loop": lambda x, a, b: lax.fori_loop(
        0, 3, lambda i, y: y + lax.dynamic_slice(lax.dynamic_slice(x, [a + i], [5]), [b], [2]), jnp.zeros(2, np.int32)
    ),
    "slices of slices, mapped": lambda x, a, b: jax.vmap(
        lambda n: lax.dynamic_slice(lax.dynamic_slice(x, [n], [5]), [b], [2])
    )(jnp.stack([a, a + 1])),
    "an update of a slice": lambda x, a, b: lax.dynamic_update_slice(
        lax.dynamic_slice(x, [a], [5]), jnp.full(2, 7, np.int32), [b]
    ),
    "an update by an updated slice": lambda x, a, b: lax.dynamic_update_slice(
        x, lax.dynamic_update_slice(lax.dynamic_slice(x, [a], [5]), jnp.full(2, 7, np.int32), [b]), [a]
    ),
}


def starts_of(start, length, size):
    return min(max(start, 0), size - length)


@pytest.mark.parametrize("name", the_first_fast(SLICES_OF_SLICES, 3))
def test_slices_of_slices_of_jax_may_begin_anywhere(name):
    network = trt.from_jax(SLICES_OF_SLICES[name], TENS, np.int32(1), np.int32(1))
    engine, names = trt.compile(network), [tensor.name for tensor in network.inputs]
    for a in STARTS:
        for b in STARTS:
            inputs = dict(zip(names, (TENS, np.int32(a), np.int32(b)), strict=True))
            got, meant = np.asarray(engine(inputs)["output"]), trt.evaluate(network, inputs)["output"]
            np.testing.assert_array_equal(got, meant)
            if name == "a slice of a slice" and min(a, b) >= 0:
                inner = TENS[starts_of(a, 5, 9) :][:5]
                np.testing.assert_array_equal(got, inner[starts_of(b, 2, 5) :][:2])


def test_slices_of_slices_of_onnx_may_begin_anywhere():
    network = trt.onnx.load(
        model("""
        agraph (int32[9] x, int64[1] a, int64[1] b) => (int32[n] y)
        <int64[1] five = {5}, int64[1] two = {2}>
        {
            enda = Add(a, five)
            endb = Add(b, two)
            inner = Slice(x, a, enda)
            y = Slice(inner, b, endb)
        }""")
    )
    engine = trt.compile(network)
    for a in (2, 6, 12):
        for b in (1, 4, 9):
            got = np.asarray(engine({"x": TENS, "a": np.int64([a]), "b": np.int64([b])})["y"])

            np.testing.assert_array_equal(got, TENS[a : a + 5][b : b + 2])


# ---------------------------------------------------------------------------- shift registers

ROWS = np.arange(128, dtype=np.int32).reshape(8, 16)
SHIFTED = np.concatenate([ROWS[:1], ROWS[:-1]])


def reshaped(network, tensor, *shape):
    layer = network.add_shuffle(tensor)
    layer.reshape_dims = shape
    return layer.get_output(0)


def part(network, tensor, start, length):
    """Rows of a matrix of 16 columns."""
    return network.add_slice(tensor, (start, 0), (length, 16), (1, 1)).get_output(0)


def joined(network, *tensors):
    layer = network.add_concatenation(tensors)
    layer.axis = 0
    return layer.get_output(0)


@pytest.mark.parametrize("is_down", [True, False])
@pytest.mark.parametrize("dtype", the_first_fast([trt.int32, trt.float32], 1))
def test_shift_registers_of_loops_move_each_row_once(network, is_down, dtype):
    x, rows = network.add_input("x", dtype, (8, 16)), network.add_input("rows", dtype, (5, 16))
    loop = counted(network, 5)
    row = reshaped(network, loop.add_iterator(rows).get_output(0), 1, 16)
    state = loop.add_recurrence(combine(network, x, 1))
    now = state.get_output(0)
    moved = (row, part(network, now, 0, 7)) if is_down else (part(network, now, 1, 7), row)
    state.set_input(1, joined(network, *moved))
    every = stacked(loop, reshaped(network, now, 1, 8, 16), constant(network, 5, np.int32), CONCATENATE)
    mark(network, y=reshaped(network, last(loop, now), 1, 8, 16), every=every)
    added = 1000 + ROWS[:5].astype(trt.nptype(dtype))
    expected = [added[::-1], (ROWS + 1)[:3]] if is_down else [(ROWS + 1)[5:], added]

    agrees(network, {"x": ROWS.astype(trt.nptype(dtype)), "rows": added}, y=np.concatenate(expected)[None])


def test_update_by_shifted_rows_of_itself_moves_each_row_once(network):
    base = combine(network, network.add_input("x", trt.int32, (8, 16)), 1)
    layer = network.add_scatter(
        base, constant(network, np.arange(1, 8).reshape(7, 1), np.int32), part(network, base, 0, 7), trt.ScatterMode.ND
    )
    mark(network, y=reshaped(network, layer.get_output(0), 1, 8, 16))

    agrees(network, {"x": ROWS}, y=(SHIFTED + 1)[None])


def test_concatenation_of_shifted_rows_moves_each_row_once(network):
    base = combine(network, network.add_input("x", trt.int32, (8, 16)), 1)
    mark(network, y=reshaped(network, joined(network, part(network, base, 0, 1), part(network, base, 0, 7)), 1, 8, 16))

    agrees(network, {"x": ROWS}, y=(SHIFTED + 1)[None])


def moved_cache(network, cache, start):
    """The cache with seven of its eight tokens from ``start`` on written one place further."""
    shape = (*cache.shape[:2], 7, cache.shape[3])
    tokens = network.add_slice(cache, (0, 0, start, 0), shape, (1,) * 4).get_output(0)
    place = constant(network, np.full(cache.shape[0], 1 - start), np.int32)
    return network.add_kv_cache_update(cache, tokens, place, trt.KVCacheMode.LINEAR).get_output(0)


@pytest.mark.parametrize("start", the_first_fast([0, 1], 1))
@pytest.mark.parametrize("rows", the_first_fast([(1, 1, 8), (1, 8), (1, 2, 4), (2, 1, 4)], 2))
@pytest.mark.parametrize("is_in_loop", the_first_fast([False, True], 1))
@pytest.mark.parametrize("batch", the_first_fast([1, 2], 1))
def test_key_value_cache_may_be_updated_by_its_own_tokens(network, start, rows, is_in_loop, batch):
    cache = combine(network, network.add_input("x", trt.float32, (batch, 1, 8, 16)), 1)
    if is_in_loop:
        loop = counted(network, 3)
        state = loop.add_recurrence(cache)
        state.set_input(1, moved_cache(network, state.get_output(0), start))
        moved = last(loop, state.get_output(0))
    else:
        moved = moved_cache(network, cache, start)
    mark(network, y=reshaped(network, moved, batch, *rows, -1))

    agrees(network, {"x": np.arange(batch * 128, dtype=F).reshape(batch, 1, 8, 16)})


def test_key_value_cache_that_loses_its_batch_axis_may_be_updated_by_its_own_tokens(network):
    cache = combine(network, network.add_input("x", trt.float32, (1, 1, 8, 16)), 1)
    mark(network, y=reshaped(network, moved_cache(network, cache, 0), 1, 8, 16))

    agrees(network, {"x": np.arange(128, dtype=F).reshape(1, 1, 8, 16)})


SHIFTS = {
    "an update by indices": lambda x: (x + 1).at[1:].set((x + 1)[:-1]),
    "an update of a slice": lambda x: lax.dynamic_update_slice(x + 1, (x + 1)[:-1], (1, 0)),
    "a concatenation": lambda x: jnp.concatenate([(x + 1)[:1], (x + 1)[:-1]]),
    "a roll": lambda x: jnp.roll(x + 1, 1, 0).at[0].set(x[0] + 1),
    "a loop of one iteration": lambda x: lax.fori_loop(0, 1, lambda _, y: y.at[1:].set(y[:-1]), x + 1),
    "a scan of one row": lambda x: lax.scan(
        lambda y, row: (lax.dynamic_update_slice(y, y[:-1], (1, 0)), row), x + 1, x[:1]
    )[0],
    "a while loop": lambda x: lax.while_loop(
        lambda state: state[0] < 1, lambda state: (state[0] + 1, state[1].at[1:].set(state[1][:-1])), (0, x + 1)
    )[1],
    "a branch": lambda x: lax.cond(x[0, 0] < 1, lambda y: y.at[1:].set(y[:-1]), lambda y: y, x + 1),
}


@pytest.mark.parametrize("name", the_first_fast(SHIFTS, 3))
def test_updates_of_jax_by_shifted_rows_of_themselves_move_each_row_once(name):
    network = trt.from_jax(lambda x: SHIFTS[name](x).reshape(1, *x.shape), ROWS)

    agrees(network, {network.inputs[0].name: ROWS}, output=(SHIFTED + 1)[None])


def test_update_of_onnx_by_shifted_rows_of_itself_moves_each_row_once():
    network = trt.onnx.load(
        model("""
        agraph (int32[8, 16] x) => (int32[1, 8, 16] y)
        <int32 one = {1}, int64[1] zero = {0}, int64[1] seven = {7}, int64[7, 1] at = {1, 2, 3, 4, 5, 6, 7},
         int64[3] shape = {1, 8, 16}>
        {
            base = Add(x, one)
            rows = Slice(base, zero, seven)
            moved = ScatterND(base, at, rows)
            y = Reshape(moved, shape)
        }""")
    )

    agrees(network, {"x": ROWS}, y=(SHIFTED + 1)[None])


# ---------------------------------------------------------------------------- windows over spread numbers

NUMBERS = DRAW.integers(-9, 10, (64, 128)).astype(F)


def spread(x, shape):
    """The array with zeros between its elements, so many that it has a shape."""
    wide = np.zeros(shape, x.dtype)
    wide[tuple(slice(None, None, -(-length // n)) for length, n in zip(shape, x.shape, strict=True))] = x
    return wide


def windows(kind, first, window, dilation):
    """A reduction of windows over spread numbers; they step by their length."""
    return lambda x: lax.reduce_window(x, F(first), kind, window, window, ((0, 0), (0, 0)), base_dilation=dilation)


WINDOWS = {
    "maxima": (spread_windows, spread_maxima(NUMBERS)),
    "minima": (windows(lax.min, np.inf, (2, 1), (1, 2)), -spread_maxima(-NUMBERS)),
    "sums": (windows(lax.add, 0, (2, 1), (1, 2)), spread(NUMBERS[::2] + NUMBERS[1::2], (32, 255))),
    "sums of one": (windows(lax.add, 0, (1, 1), (1, 2)), spread(NUMBERS, (64, 255))),
    "sums along the other axis": (
        windows(lax.add, 0, (1, 2), (2, 1)), spread(NUMBERS[:, ::2] + NUMBERS[:, 1::2], (127, 64)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", the_first_fast(WINDOWS, 2))
def test_windows_of_jax_over_spread_numbers_are_right(name):
    function, expected = WINDOWS[name]
    network = trt.from_jax(function, NUMBERS)

    agrees(network, {network.inputs[0].name: NUMBERS}, output=expected)


@pytest.mark.parametrize("window", the_first_fast([(2, 1), (1, 1), (1, 2)], 1))
@pytest.mark.parametrize("stride", the_first_fast([(1, 2), (2, 1), (2, 2)], 1))
def test_deconvolutions_with_windows_of_one_are_right(network, window, stride):
    x = network.add_input("x", trt.float32, (1, 1, 64, 128))
    layer = network.add_deconvolution_nd(x, 1, window, np.full(window, 2, F))
    layer.stride_nd = stride
    relu = network.add_activation(layer.get_output(0), trt.ActivationType.RELU).get_output(0)
    mark(network, y=layer.get_output(0), sums=network.add_reduce(relu, trt.ReduceOperation.SUM, 4, False).get_output(0))

    agrees(network, {"x": NUMBERS.reshape(1, 1, 64, 128)})


def test_deconvolution_of_onnx_with_a_window_of_one_is_right():
    network = trt.onnx.load(
        model("""
        agraph (float[1, 1, 64, 128] x) => (float[1, 1, 64, 255] y)
        <float[1, 1, 1, 1] w = {2}>
        {
            y = ConvTranspose <strides = [1, 2]> (x, w)
        }""")
    )

    agrees(network, {"x": NUMBERS.reshape(1, 1, 64, 128)}, y=2 * spread(NUMBERS, (64, 255))[None, None])


# ---------------------------------------------------------------------------- channels by themselves


@pytest.mark.parametrize("dtype", the_first_fast([trt.float64, trt.float32, trt.float16], 1))
@pytest.mark.parametrize("method", ["add_convolution_nd", "add_deconvolution_nd"])
@pytest.mark.parametrize("window", the_first_fast([(1,), (3, 3)], 1))
@pytest.mark.parametrize("maps", the_first_fast([4, 8], 1))
def test_nan_stays_in_its_channel(network, dtype, method, window, maps):
    numbers = np.ones((2, 4, *(6 for _ in window)), trt.nptype(dtype))
    numbers[0, 2, 2], numbers[1, 3] = np.nan, np.inf
    x = network.add_input("x", dtype, numbers.shape)
    layer = getattr(network, method)(x, maps, window, np.ones((maps, *window), numbers.dtype))
    layer.num_groups = 4
    mark(network, y=layer.get_output(0))
    share = maps // 4

    agrees(network, {"x": numbers})
    assert np.isfinite(trt.evaluate(network, {"x": numbers})["y"][0, : 2 * share]).all()


def test_nan_of_jax_stays_in_its_channel():
    with jax.enable_x64(True):
        x, kernel = np.ones((1, 4, 6)), np.ones((4, 1, 3))
        x[0, 2, 2] = np.nan
        network = trt.from_jax(
            lambda x, kernel: lax.conv_general_dilated(x, kernel, (1,), "SAME", feature_group_count=4), x, kernel
        )

    agrees(network, dict(zip([tensor.name for tensor in network.inputs], (x, kernel), strict=True)))
