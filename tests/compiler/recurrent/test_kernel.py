"""The machine code of kernels, called without XLA: memory, threads, extreme numbers, and what it refuses."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from netloop.compiler.machine_code.processor import BFLOAT16, FLOAT32, PROCESSORS, processor
from netloop.compiler.passes.kernel_functions import FUNCTIONS
from netloop.compiler.recurrent.cell import (
    COLUMN,
    ITERATOR,
    NUMBER,
    PRODUCT,
    ROW,
    STATE,
    WHOLE,
    CellValue,
    Iterated,
    ProductSource,
    RecurrentCell,
)
from netloop.compiler.recurrent.machine_code import machine_code
from tests.support.ffi_frames import Api, call, guarded, refused

pytestmark = pytest.mark.skipif(processor() is None, reason="the extra is not installed, or there are no kernels")


@pytest.fixture(params=list(PROCESSORS), scope="module")
def vectors(request):
    """The vectors of this processor, of each length."""
    import llvmlite.binding as llvm

    if not llvm.get_host_cpu_features().get(request.param):
        pytest.skip(f"the processor has no {request.param}")
    return PROCESSORS[request.param]


def cell(rows=3, units=32, width=5, reverse=False, ahead=1):
    """h = tanh(x W + h R + (s * h) Q + b + p * w) where h > m: products of an iterator, a state and, later, a value."""
    values = (
        CellValue(STATE, (0,)), CellValue(NUMBER, (0, 0)), CellValue("prod", (0, 1)), CellValue(PRODUCT, (0,)),
        CellValue(ROW, (1, 1)), CellValue(WHOLE, (2, 0)), CellValue(ITERATOR, (1, 1)), CellValue("prod", (5, 6)),
        CellValue("sum", (3, 4, 7)), CellValue("tanh", (8,)), CellValue("sigmoid", (0,)),
        CellValue(COLUMN, (2, 0)), CellValue("greater", (0, 11)), CellValue("select", (12, 9, 0)),
    )  # fmt: skip
    sources = (
        ProductSource(ITERATOR, 0, width, (0,)),
        ProductSource(STATE, 0, units, (0,)),
        ProductSource("", 2, units, (0,)),
    )
    iterators = Iterated(width, reverse), Iterated(2 * units, not reverse), Iterated(1, reverse)
    invariants = (NUMBER, 1), (ROW, 2 * units), (WHOLE, units)
    stacked = (13, reverse), (10, not reverse)
    return RecurrentCell(rows, units, values, iterators, invariants, sources, (13,), stacked, ahead)


def arrays_of(own, trips):
    """Random arrays: iterators, invariants, weights [depth, n, units] and states."""
    random = np.random.default_rng(0)
    shapes = [(trips, own.rows, width) for width, _ in own.iterators]
    sizes = {NUMBER: (), ROW: (1,), WHOLE: (own.rows,)}
    shapes += [(*sizes[kind], width) if kind != NUMBER else () for kind, width in own.invariants]
    shapes += [(source.depth, len(source.products), own.units) for source in own.sources]
    shapes += [(own.rows, own.units)] * len(own.states)
    # small weights, as rounding grows from iteration to iteration with large ones
    arrays = [np.asarray(random.standard_normal(shape) / (4 + own.units / 8), np.float32) for shape in shapes]
    first = len(own.iterators) + len(own.invariants)
    for place in range(first, first + len(own.sources)):
        arrays[place] = arrays[place].astype(own.weight_type)
    return arrays


def packed(own, arrays, lanes):
    """The arrays with weights [blocks, depth, n, lanes]."""
    first = len(own.iterators) + len(own.invariants)
    result = list(arrays)
    for place, source in enumerate(own.sources, first):
        whole = np.zeros((source.depth, len(source.products), own.blocks(lanes) * lanes), own.weight_type)
        whole[:, :, : own.units] = arrays[place]
        blocks = whole.reshape(source.depth, len(source.products), own.blocks(lanes), lanes)
        result[place] = np.ascontiguousarray(blocks.transpose(2, 0, 1, 3))
    return result


def results_of(own, trips, lanes):
    shape = own.rows, own.units
    shapes = [(trips, *shape)] * len(own.stacked) + [(2, *shape)] * len(own.states)
    shapes += [(len(own.kept), *shape), (own.numbers_ahead(lanes),)]
    return [np.full(own_shape, 7, np.float32) for own_shape in shapes]


def run(own, vectors, arrays, trips, api=None, at_end=True):
    """The results of a kernel whose arrays touch guard pages, and whose arguments cannot be written."""
    arguments = [np.full(1, trips, np.int32), *packed(own, arrays, vectors.lanes)]
    results = [guarded(array, at_end) for array in results_of(own, trips, vectors.lanes)]
    api = api or Api()
    error = call(
        machine_code(own, vectors).handler,
        api,
        [guarded(array, at_end, writable=False) for array in arguments],
        results,
    )
    assert not error, api.messages
    count = len(own.stacked)
    return [*results[:count], *(pair[trips % 2] for pair in results[count : count + len(own.states)])]


def assert_right(own, vectors, arrays, trips, **named):
    with np.errstate(all="ignore"):
        wanted = own.evaluate(FUNCTIONS, trips, arrays)
    for got, array in zip(run(own, vectors, arrays, trips, **named), wanted, strict=True):
        np.testing.assert_allclose(got, array, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("weight_type", [FLOAT32, BFLOAT16], ids=str)
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize(("rows", "width", "more"), [(1, 1, -7), (3, 4, 0), (6, 7, 1), (7, 16, 0), (25, 5, -1)])
def test_kernels_stay_inside_their_arrays_and_agree_with_numpy(vectors, rows, width, more, at_end, weight_type):
    own = replace(cell(rows, 2 * vectors.lanes + more, width, rows % 2 == 0), weight_type=weight_type)

    assert_right(own, vectors, arrays_of(own, 3), 3, at_end=at_end)


def test_bfloat16_weights_have_all_their_numbers(vectors):
    weights = np.arange(1 << 16, dtype=np.uint16).view(BFLOAT16).reshape(1, 1, -1)
    values, sources = (CellValue(PRODUCT, (0,)),), (ProductSource(ITERATOR, 0, 1, (0,)),)
    iterators, stacked = (Iterated(1, False),), ((0, False),)
    own = RecurrentCell(1, 1 << 16, values, iterators, (), sources, (), stacked, weight_type=BFLOAT16)

    (got,) = run(own, vectors, [np.ones((1, 1, 1), np.float32), weights], 1)

    np.testing.assert_array_equal(got[0], weights[0].astype(np.float32))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("rows", "trips", "ahead"), [(3, 7, 3), (1, 6, 3), (7, 2, 5), (25, 5, 5)])
def test_products_of_iterators_are_computed_for_several_iterations(vectors, rows, trips, ahead, reverse):
    own = cell(rows, 3 * vectors.lanes - 1, reverse=reverse, ahead=ahead)

    assert_right(own, vectors, arrays_of(own, trips), trips)
    assert own.numbers_ahead(vectors.lanes) == 3 * vectors.lanes * rows * ahead


def test_what_is_computed_ahead_belongs_to_its_product(vectors):
    # two phases, whose products have parts of iterators in another order than their numbers, and one that has none
    values = (
        CellValue(STATE, (0,)), CellValue(PRODUCT, (1,)), CellValue(PRODUCT, (2,)), CellValue("tanh", (1,)),
        CellValue("prod", (2, 3)), CellValue(PRODUCT, (0,)), CellValue("sum", (4, 5)), CellValue("tanh", (6,)),
    )  # fmt: skip
    sources = (
        ProductSource(ITERATOR, 0, 4, (1,)),
        ProductSource(ITERATOR, 1, 6, (0,)),
        ProductSource(STATE, 0, 24, (2, 1)),
        ProductSource("", 4, 24, (0,)),
    )
    iterators = Iterated(4, False), Iterated(6, True)
    own = RecurrentCell(9, 24, values, iterators, (), sources, (7,), ((7, False),), 2)

    assert own.number_of_phases == 2
    assert own.products_ahead == [0, 1]
    assert_right(own, vectors, arrays_of(own, 5), 5)


@pytest.mark.parametrize("trips", [0, 1, 2, 9])
def test_any_number_of_iterations(vectors, trips):
    own = cell()

    assert_right(own, vectors, arrays_of(own, trips), trips)


@pytest.fixture
def many_threads(monkeypatch):
    from netloop.compiler.recurrent import kernel

    monkeypatch.setattr(kernel, "WORK_OF_THREAD", 1)
    monkeypatch.setattr(kernel, "WORK_OF_CALL", 1)


@pytest.mark.usefixtures("many_threads")
@pytest.mark.parametrize(
    "pool", [{"comes": True}, {"refuses": True}, {"refuses": False}], ids=["comes", "refuses", "forgets"]
)
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_share_a_call_that_needs_none_of_them(vectors, pool, threads):
    # of another number of rows than elsewhere, as a kernel is compiled once
    own, api = cell(rows=4, units=64 if threads < 8 else 160), Api(threads, **{"refuses": False, **pool})

    assert_right(own, vectors, arrays_of(own, 40), 40, api=api)
    assert api.scheduled == min(threads, own.units // vectors.lanes, 8) - 1


@pytest.mark.usefixtures("many_threads")
def test_threads_share_the_stripes_of_cells_without_products(vectors):
    units = 37 * vectors.lanes + 3
    values = (
        CellValue(STATE, (0,)), CellValue(STATE, (1,)), CellValue(ITERATOR, (0, 0)), CellValue(COLUMN, (1, 0)),
        CellValue("prod", (0, 3)), CellValue("sum", (4, 2)), CellValue("max", (1, 5)),
    )  # fmt: skip
    iterators = Iterated(units, False), Iterated(1, True)
    own = RecurrentCell(3, units, values, iterators, (), (), (5, 6), ((5, True), (6, False)))
    arrays, api = arrays_of(own, 20), Api(3, comes=True)

    assert_right(own, vectors, arrays, 20, api=api)
    assert api.scheduled == 2


@pytest.mark.usefixtures("many_threads")
@pytest.mark.parametrize("times", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_threads_never_read_a_state_too_early(vectors, times):
    own = cell(rows=2, units=96)
    arrays = arrays_of(own, 300)
    wanted = own.evaluate(FUNCTIONS, 300, arrays)
    for _ in range(times):
        for got, array in zip(run(own, vectors, arrays, 300, Api(3, comes=True)), wanted, strict=True):
            np.testing.assert_allclose(got, array, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e-40, -1e38])
def test_extreme_numbers_reach_the_results_that_they_reach_in_numpy(vectors, number):
    own = cell()
    arrays = arrays_of(own, 4)
    arrays[0][1, 0, 2] = arrays[1][2, 1, 40] = number
    arrays[-1][2] = number

    assert_right(own, vectors, arrays, 4)


FEW = np.array([0, -0.0, 1e-45, -1e-40, 1e-7, 0.3, -0.6, 1, -2, 4.7, 8.9, 9.1, -20, 1e30, np.inf, -np.inf, np.nan])

TWO = "sum", "sub", "prod", "div", "max", "min", "less", "greater", "equal"


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [("sum", ()), ("sub", ()), ("prod", ()), ("div", ()), ("max", ()), ("min", ()), ("neg", ()), ("abs", ()),
     ("sqrt", ()), ("recip", ()), ("less", ()), ("greater", ()), ("equal", ()),
     ("tanh", ()), ("sigmoid", ()), ("relu", ()), ("leaky_relu", (0.5,)), ("thresholded_relu", (0.25,)),
     ("clip", (-0.5, 2.0)), ("hard_sigmoid", (0.25, 0.5)), ("softsign", ()), ("scaled_tanh", (2.0, 0.5))],
)  # fmt: skip
def test_functions_of_extreme_numbers(vectors, kind, numbers):
    units, operands = 304, 2 if kind in TWO else 1
    pairs = np.array(np.meshgrid(FEW, FEW)).reshape(2, -1).astype(np.float32)
    rows = np.zeros((2, 1, units), np.float32)
    rows[:, 0, : pairs.shape[1]] = pairs
    values = (
        *(CellValue(ITERATOR, (at, 0)) for at in range(operands)),
        CellValue(kind, tuple(range(operands)), numbers),
    )
    own = RecurrentCell(1, units, values, (Iterated(units, False),) * operands, (), (), (), ((operands, False),))

    (got,) = run(own, vectors, list(rows[:operands, None]), 1)

    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[kind](*rows[:operands].astype(np.float64), *numbers).astype(np.float32)
    np.testing.assert_allclose(got[0], wanted, rtol=4e-7, atol=1.2e-7 if kind == "sigmoid" else 2e-45)


def test_tanh_is_within_six_units_in_the_last_place_and_never_beyond_one(vectors):
    numbers = np.concatenate([np.linspace(-10, 10, 1 << 16), np.geomspace(1e-38, 10, 1 << 15)]).astype(np.float32)
    values = CellValue(ITERATOR, (0, 0)), CellValue("tanh", (0,))
    own = RecurrentCell(1, numbers.size, values, (Iterated(numbers.size, False),), (), (), (), ((1, False),))

    (got,) = run(own, vectors, [numbers[None, None]], 1)

    wanted = np.tanh(numbers.astype(np.float64))
    assert (np.abs(got[0, 0] - wanted) <= 6 * np.spacing(np.abs(wanted).astype(np.float32))).all()
    assert np.abs(got).max() == 1


def misaligned(array):
    memory = np.zeros(array.nbytes + 1, np.uint8)
    return np.frombuffer(memory.data, array.dtype, array.size, 1).reshape(array.shape)


def test_other_arrays_are_refused_and_nothing_is_written(vectors):
    own = cell()
    trips, *arrays = [np.full(1, 2, np.int32), *packed(own, arrays_of(own, 2), vectors.lanes)]
    results = results_of(own, 2, vectors.lanes)

    def answer(arguments=None, returned=None):
        return refused(machine_code(own, vectors).handler, arguments or [trips, *arrays], returned or results)

    assert answer([trips]) == f"there are not {len(arrays) + 1} arguments"
    assert answer(returned=results[1:]) == f"there are not {len(results)} results"
    assert answer([trips, None, *arrays[1:]]) == "argument 1 is no array"
    assert answer([trips, arrays[0].astype(np.float64), *arrays[1:]]) == "argument 1 is not of its element type"
    assert answer([trips.astype(np.float32), *arrays]) == "argument 0 is not of its element type"
    assert answer([trips, misaligned(arrays[0]), *arrays[1:]]) == "argument 1 is not aligned"
    assert answer([trips, *arrays[:-1], arrays[-1][1:]]) == f"argument {len(arrays)} is too small"
    assert answer([trips + 1, *arrays]) == "there are more iterations than elements"
    assert answer([-trips, *arrays]) == "there are fewer than 0 iterations"
    assert answer(returned=[results[0][1:], *results[1:]]) == "there are more iterations than elements"


def test_weights_of_the_other_type_are_refused(vectors):
    half = replace(cell(), weight_type=BFLOAT16)
    arrays = {own.weight_type: [np.full(1, 2, np.int32), *packed(own, arrays_of(own, 2), vectors.lanes)]
              for own in (cell(), half)}  # fmt: skip
    results, first = results_of(half, 2, vectors.lanes), 1 + len(half.iterators) + len(half.invariants)

    def answer(own, weights, arguments):
        return refused(
            machine_code(own, vectors).handler, [*arguments[:first], weights, *arguments[first + 1 :]], results
        )

    halves, floats = arrays[BFLOAT16], arrays[FLOAT32]
    assert answer(half, floats[first], halves) == f"argument {first} is not of its element type"
    assert answer(cell(), halves[first], floats) == f"argument {first} is not of its element type"
    assert answer(half, misaligned(halves[first]), halves) == f"argument {first} is not aligned"
    assert answer(half, halves[first].reshape(-1)[1:], halves) == f"argument {first} is too small"


def test_other_stages_do_nothing(vectors):
    own, results = cell(), [np.zeros(1, np.float32)]

    assert not call(machine_code(own, vectors).handler, Api(), [], results, stage=0)


@pytest.mark.slow
def test_nobody_needs_the_extra_to_import_netloop():
    code = "import sys, netloop, netloop.compiler.passes; assert 'llvmlite' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True)
