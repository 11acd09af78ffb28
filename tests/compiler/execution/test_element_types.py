"""Element types that TensorRT lacks, in networks, engines and plans."""

import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.element_conversion import convert, lower_conversion
from netloop.model.layers.pointwise import ICastLayer
from netloop.values.types import NUMPY_TYPES, TINY
from tests.support.examples import mostly_slow
from tests.support.laws import Case, check_laws
from tests.support.networks import cast, constant, counted, last, mark, stacked

OWN = [dtype for dtype in trt.DataType if int(dtype) >= int(trt.DataType.DOUBLE) and dtype is not trt.string]
TENSORRTS = [dtype for dtype in trt.DataType if dtype not in (*OWN, trt.string)]


def moving(dtype: trt.DataType) -> trt.INetworkDefinition:
    """A network of all kinds of layers that only move elements, for tensors of a type."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", dtype, (2, 3))
    swapped = network.add_slice(x, (1, 0), (2, 3), (-1, 1)).get_output(0)
    joined = network.add_concatenation([x, swapped])
    joined.axis = 1
    padded = network.add_slice(joined.get_output(0), (0, -1), (2, 8), (1, 1))
    padded.mode = trt.SampleMode.FILL
    turned = network.add_shuffle(padded.get_output(0))
    turned.first_transpose = (1, 0)
    rows = network.add_gather(turned.get_output(0), constant(network, [7, 2, -3], np.int32), 0).get_output(0)
    same = network.add_elementwise(x, swapped, trt.ElementWiseOperation.EQUAL).get_output(0)
    chosen = network.add_select(same, x, swapped).get_output(0)
    places = constant(network, [[0, 1]], np.int32)
    one = constant(network, np.ones(1), NUMPY_TYPES[dtype])
    written = network.add_scatter(x, places, one, trt.ScatterMode.ND).get_output(0)
    loop = counted(network, 2)
    state = loop.add_recurrence(x)
    row = loop.add_iterator(swapped).get_output(0)
    state.set_input(1, written)
    kept = stacked(loop, row, constant(network, 3, np.int32))
    return mark(network, rows=rows, chosen=chosen, last=last(loop, state.get_output(0)), kept=kept)


def numbers(dtype: trt.DataType) -> np.ndarray:
    given = [[1, 0, 1], [1, 1, 0]] if NUMPY_TYPES[dtype] in TINY else [[1, 0, 4], [2, 1, 8]]
    return np.array(given).astype(NUMPY_TYPES[dtype])


@pytest.mark.parametrize("dtype", OWN, ids=str)
def test_own_type_is_moved_alike_by_engine_and_reference(dtype):
    network = moving(dtype)
    inputs = {"x": numbers(dtype)}
    expected = trt.evaluate(network, inputs)

    found = trt.compile(network)(inputs)
    assert {name: np.asarray(value).tolist() for name, value in found.items()} == {
        name: array.tolist() for name, array in expected.items()
    }
    assert expected["rows"].astype(int).tolist() == [[0, 0], inputs["x"][:, 1].tolist(), expected["rows"][2].tolist()]
    assert expected["rows"][2].tolist() == inputs["x"][::-1, 1].tolist()
    assert expected["kept"].tolist() == [*inputs["x"][::-1].tolist(), [0, 0, 0]]


@pytest.mark.parametrize("dtype", OWN, ids=str)
def test_own_type_goes_through_a_plan(dtype):
    network = trt.INetworkDefinition()
    x = numbers(dtype)
    mark(network, y=network.add_identity(constant(network, x, x.dtype)).get_output(0))

    again = trt.plan.loads(trt.plan.dumps(network))
    assert trt.evaluate(again, {})["y"].tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", OWN, ids=str)
def test_own_type_is_reported_where_it_enters(dtype):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    mark(network, y=cast(network, cast(network, x, dtype), trt.float32))

    (found,) = trt.check(network)
    assert (found.code, found.at) == ("NL402", network[0])


# ---------------------------------------------------------------------------- casts

EIGHT_BITS = [trt.fp8, trt.e5m2, trt.e4m3fnuz, trt.e5m2fnuz]


@pytest.mark.parametrize("to_type", EIGHT_BITS, ids=str)
@pytest.mark.parametrize("from_type", [trt.float64, trt.float32, trt.bfloat16], ids=str)
def test_cast_to_eight_bits_takes_the_nearest(from_type, to_type):
    """The expected number is found by a search over all numbers of the type; ties go to the even code."""
    info = ml_dtypes.finfo(NUMPY_TYPES[to_type])
    codes = np.arange(256, dtype=np.uint8)
    table = {int(code): float(value) for code, value in zip(codes, codes.view(NUMPY_TYPES[to_type]), strict=True)}
    finite = {code: value for code, value in table.items() if math.isfinite(value) and (value or not code)}
    points = np.geomspace(float(info.smallest_subnormal) / 3, float(info.max), 40)
    between = (np.array(sorted(finite.values()))[:-1] + np.array(sorted(finite.values()))[1:]) / 2
    x = np.concatenate([points, -points, between]).astype(NUMPY_TYPES[from_type])
    nearest = [min(finite, key=lambda code: (abs(finite[code] - value), code % 2)) for value in x.astype(float)]

    check_laws(Case("nearest", ICastLayer(to_type=to_type), (x,), np.array([finite[code] for code in nearest]), 0))


@pytest.mark.parametrize(
    ("to_type", "beyond"),
    [(trt.fp8, math.nan), (trt.e5m2, math.inf), (trt.e4m3fnuz, math.nan), (trt.e5m2fnuz, math.nan)],
)
def test_cast_beyond_the_largest_is_infinite_or_nan(to_type, beyond):
    x = np.array([1e6, -1e6, math.inf, math.nan], np.float32)

    check_laws(Case("beyond", ICastLayer(to_type=to_type), (x,), [beyond, -beyond, beyond, math.nan]))


@pytest.mark.parametrize("to_type", EIGHT_BITS, ids=str)
def test_clip_before_a_cast_saturates(to_type):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (3,))
    clip = network.add_activation(x, trt.ActivationType.CLIP)
    most = float(ml_dtypes.finfo(NUMPY_TYPES[to_type]).max)
    clip.alpha, clip.beta = -most, most
    mark(network, y=cast(network, clip.get_output(0), to_type))

    y = np.asarray(trt.compile(network)({"x": np.array([1e6, -math.inf, math.nan], np.float32)})["y"])
    np.testing.assert_array_equal(y.astype(float), [most, -most, math.nan])


UNSIGNED = {trt.uint16: 16, trt.uint32: 32, trt.uint64: 64, trt.uint2: 2, trt.uint4: 4}
SIGNED = {trt.int16: 16, trt.int2: 2}


@pytest.mark.parametrize("dtype", [trt.float32, trt.float64, trt.float16, trt.e5m2], ids=str)
@pytest.mark.parametrize("to_type", [*UNSIGNED, *SIGNED], ids=str)
def test_cast_to_an_integer_ends_at_the_ends(dtype, to_type):
    ends = (0, 2 ** UNSIGNED[to_type] - 1) if to_type in UNSIGNED else (-(2 ** (SIGNED[to_type] - 1)), None)
    least, most = ends[0], ends[1] or -ends[0] - 1
    x = np.array([math.inf, -math.inf, 1.75, -0.75, math.nan]).astype(NUMPY_TYPES[dtype])

    expected = np.array([most, least, 1, 0, 0], object).astype(NUMPY_TYPES[to_type])
    check_laws(Case("ends", ICastLayer(to_type=to_type), (x,), expected))


@pytest.mark.parametrize("to_type", [*UNSIGNED, *SIGNED], ids=str)
def test_cast_from_integer_to_integer_keeps_the_lowest_bits(to_type):
    x = [-1, 5, 2**33 + 7, -(2**63)]
    bits = (UNSIGNED | SIGNED)[to_type]
    low = [number % 2**bits for number in x]
    expected = low if to_type in UNSIGNED else [value - 2**bits * (value >> (bits - 1)) for value in low]

    made = np.array(expected, object).astype(NUMPY_TYPES[to_type])
    check_laws(Case("wraps", ICastLayer(to_type=to_type), (np.array(x),), made))


@pytest.mark.parametrize("from_type", list(trt.DataType), ids=str)
def test_every_type_is_cast_to_every_type(from_type):
    x = np.array([0, 1, 1]).astype(NUMPY_TYPES[from_type])
    for to_type in trt.DataType:
        made = ICastLayer(to_type=to_type).evaluate(x)
        assert made[1:].tolist() == np.array([1, 1]).astype(NUMPY_TYPES[to_type]).tolist()


@pytest.mark.parametrize("dtype", [trt.DataType.INT2, trt.DataType.UINT2, trt.int4, trt.fp4], ids=str)
@pytest.mark.parametrize("trips", mostly_slow(1, [9, 8, 17]))
def test_small_loops_stack_sub_byte_types(trips, dtype):
    """XLA ends the process when it concatenates arrays of 2 bits, as JAX does with the rows of unrolled iterations."""
    network = trt.INetworkDefinition()
    row = cast(network, network.add_input("x", trt.int32, (3,)), dtype)
    mark(network, y=stacked(counted(network, trips), row, constant(network, trips, np.int32)))

    y = np.asarray(trt.compile(network)({"x": np.array([1, 0, 1], np.int32)})["y"])
    assert y.astype(int).tolist() == [[1, 0, 1]] * trips


@pytest.mark.parametrize("dtype", trt.DataType, ids=str)
def test_input_equals_a_constant(dtype):
    network = trt.INetworkDefinition()
    values = np.array([-2, -1, 0, 1]).astype(NUMPY_TYPES[dtype])
    x = network.add_input("x", dtype, (4,))
    ones = [constant(network, values[place : place + 1], values.dtype) for place in range(4)]
    equal = [network.add_elementwise(x, one, trt.ElementWiseOperation.EQUAL).get_output(0) for one in ones]
    mark(network, **{f"y{place}": tensor for place, tensor in enumerate(equal)})

    found = trt.compile(network)({"x": values})
    for value, one in zip(found.values(), values.tolist(), strict=True):
        assert value.tolist() == [one == other for other in values.tolist()]


@pytest.mark.parametrize("way", mostly_slow(12, trt.DataType), ids=str)
def test_constant_is_cast_alike_by_compiler_and_reference(way):
    """XLA converts compile-time constants with other code than run-time values."""
    network = trt.INetworkDefinition()
    x = cast(network, constant(network, [-70000, -3, 0, 1, 6, 70000], np.int32), way)
    mark(network, **{to.name: cast(network, x, to) for to in trt.DataType})

    expected = trt.evaluate(network, {})
    found = trt.compile(network)({})
    for name, array in expected.items():
        np.testing.assert_array_equal(np.asarray(found[name]).astype(float), array.astype(float), name)


@pytest.mark.parametrize("dtype", [dtype for dtype in NUMPY_TYPES.values() if jnp.issubdtype(dtype, jnp.floating)])
def test_constant_of_a_program_is_cast_to_e8m0_as_by_the_reference(dtype):
    """Networks have few constants that XLA folds: netloop folds those that it knows."""
    values = np.array([-3, -1, 0, 0.5, 1, 2]).astype(dtype)
    e8m0 = NUMPY_TYPES[trt.DataType.E8M0]

    with jax.enable_x64(True):
        result = jax.jit(lambda: lower_conversion(jnp.asarray(values), e8m0))()
    np.testing.assert_array_equal(np.asarray(result).astype(float), convert(values, e8m0).astype(float))


@pytest.mark.parametrize("dtype", [*TENSORRTS, *OWN], ids=str)
def test_constant_is_stacked(dtype):
    """XLA turns the constant 0, 1 into an iota, and cannot emit one of float8."""
    network = trt.INetworkDefinition()
    values = np.array([0, 1]).astype(NUMPY_TYPES[dtype])
    mark(
        network, y=stacked(counted(network, 3), constant(network, values, values.dtype), constant(network, 3, np.int32))
    )

    y = np.asarray(trt.compile(network, passes=[])({})["y"])
    assert y.tobytes() == np.stack([values] * 3).tobytes()


@pytest.mark.parametrize(("to_type", "bits"), [(trt.bfloat16, 8), (trt.float32, 24), (trt.float64, 53)])
@pytest.mark.parametrize(("from_type", "first"), [(trt.uint64, 63), (trt.int64, 62), (trt.uint32, 31), (trt.int32, 30)])
def test_integer_is_rounded_once(from_type, first, to_type, bits):
    step = 2 ** max(first + 1 - bits, 0)
    x = np.array([2**first + step // 2 + 1, 2**first + 3 * step // 2, 5], NUMPY_TYPES[from_type])
    network = trt.INetworkDefinition()
    mark(network, y=cast(network, network.add_input("x", from_type, (3,)), to_type))

    rounded = [2**first + step, 2**first + 2 * step, 5] if step > 1 else x.tolist()
    for run in (trt.compile(network), lambda inputs: trt.evaluate(network, inputs)):
        assert np.asarray(run({"x": x})["y"]).astype(float).tolist() == rounded


WHOLE = [trt.int32, trt.uint32, trt.int64, trt.uint64]


# all floating-point types are converted by the same instructions
FLOATS = mostly_slow(1, [trt.float32, trt.float64, trt.bfloat16])


@pytest.mark.parametrize("way", ["add_cast", "add_bit_cast"])
@pytest.mark.parametrize("first", WHOLE, ids=str)
@pytest.mark.parametrize("from_type", FLOATS, ids=str)
def test_sign_that_is_read_as_a_bit_stays_one(from_type, first, way):
    """LLVM simplifies a conversion to an integer, to one of other signedness, and back, to a truncation."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", from_type, (6,))
    second = {
        dtype: getattr(network, way)(cast(network, x, first), dtype) for dtype in WHOLE if fits(way, first, dtype)
    }
    targets = [trt.float32, trt.float64, trt.bfloat16, trt.float16]
    mark(
        network,
        **{
            f"{key.name}_{to}": cast(network, layer.get_output(0), to)
            for key, layer in second.items()
            for to in targets
        },
    )
    given = {"x": np.array([-2, -7.5, 3e9, 1e19, -1e19, math.nan]).astype(NUMPY_TYPES[from_type])}

    found, expected = trt.compile(network)(given), trt.evaluate(network, given)
    for name, array in expected.items():
        np.testing.assert_array_equal(np.asarray(found[name]).astype(float), array.astype(float), name)


def fits(way, first, second):
    return way == "add_cast" or NUMPY_TYPES[first].itemsize == NUMPY_TYPES[second].itemsize
