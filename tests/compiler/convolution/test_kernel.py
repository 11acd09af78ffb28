"""The machine code of convolutions, called without XLA: memory, threads, extreme numbers, and what it refuses."""

import ctypes
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netloop.compiler.convolution import convolve, division, kernel
from netloop.compiler.convolution.convolution import NUMBER, ROW, SUM, WHOLE, Convolution, OutputValue, WindowAxis
from netloop.compiler.convolution.convolve import machine_code, packed, unpacked
from netloop.compiler.machine_code import compilation, jobs
from netloop.compiler.machine_code.processor import PROCESSORS, processor
from netloop.compiler.passes.kernel_functions import FUNCTIONS
from tests.support.examples import examples, mostly_slow
from tests.support.ffi_frames import Api, call, guarded, refused

pytestmark = pytest.mark.skipif(processor() is None, reason="the extra is not installed, or there are no kernels")

PLAIN = (OutputValue(SUM, ()),)
FOLLOWED = (
    OutputValue(SUM, ()), OutputValue(ROW, (0,)), OutputValue("sum", (0, 1)), OutputValue(WHOLE, (1,)),
    OutputValue("sub", (2, 3)), OutputValue("hard_sigmoid", (4,), (0.25, 0.5)), OutputValue("prod", (4, 5)),
    OutputValue(NUMBER, (2,)), OutputValue("max", (6, 7)),
)  # fmt: skip
"""A bias, another array, an activation of two reads of one value, and a limit."""
KINDS = ROW, WHOLE, NUMBER


@pytest.fixture(params=PROCESSORS, ids=str)
def vectors(request):
    features = list(PROCESSORS)
    own = processor()
    if own is None or features.index(request.param) < features.index(
        next(name for name, value in PROCESSORS.items() if value == own)
    ):
        pytest.skip("the processor has no such vectors")
    return PROCESSORS[request.param]


def axis(length, size=1, step=1, spread=1, before=0, after=0):
    return WindowAxis(length, size, step, spread, before, after)


def convolution(rows, columns, channels=3, maps=5, *, batch=1, groups=1, is_depthwise=False, is_followed=True):
    maps, groups = (channels, channels) if is_depthwise else (maps, groups)
    values, kinds = (FOLLOWED, KINDS) if is_followed else (PLAIN, ())
    return Convolution(batch, channels, maps, rows, columns, groups, values, kinds)


def arrays_of(own, seed=0):
    """Random arrays: x, the kernel [rows, columns, channels, maps], and the arrays of the values."""
    random = np.random.default_rng(seed)
    shapes = [
        (own.batch, own.rows.length, own.columns.length, own.channels),
        (own.rows.size, own.columns.size, own.channels_of_group, own.maps),
        *((own.array_size(kind),) for kind in own.arrays),
    ]
    return [np.asarray(random.standard_normal(shape), np.float32) for shape in shapes]


def run(own, vectors, arrays, api=None, at_end=True):
    """The output of a kernel whose arrays touch guard pages, and whose arguments cannot be written."""
    x, weights, *others = arrays
    arguments = [x, packed(np, weights, own, vectors), *others]
    result = guarded(np.full((own.batch, own.rows.count, own.columns.count, own.maps), 7, np.float32), at_end)
    api = api or Api()
    inputs = [guarded(array, at_end, writable=False) for array in arguments]
    assert not call(machine_code(own, vectors).handler, api, inputs, [result]), api.messages
    return result


def assert_right(own, vectors, arrays=None, **named):
    arrays = arrays or arrays_of(own)
    with np.errstate(all="ignore"):
        wanted = own.evaluate(FUNCTIONS, arrays[0], arrays[1], arrays[2:])
    np.testing.assert_allclose(run(own, vectors, arrays, **named), wanted, rtol=2e-5, atol=2e-6 * own.depth**0.5 + 1e-5)


SHAPES = {
    "3 x 3": (axis(9, 3, 1, 1, 1, 1), axis(11, 3, 1, 1, 1, 1)),
    "dilated": (axis(9, 3, 1, 2, 2, 2), axis(9, 3, 1, 3, 3, 2)),
    "padding only": (axis(2, 5, 1, 1, 2, 2), axis(3, 5, 1, 1, 2, 2)),
    "line with a stride": (axis(1), axis(40, 5, 3, 1, 2, 2)),
    "flat": (axis(5), axis(7)),
    "one position": (axis(1), axis(1)),
    "line": (axis(1), axis(29, 3, 1, 1, 1, 1)),
    "stride": (axis(9, 3, 2, 1, 1, 1), axis(14, 3, 2, 1, 1, 0)),
    "flat with a stride": (axis(9, 1, 2), axis(8, 1, 3)),
    "one side": (axis(6, 2, 1, 1, 0, 1), axis(6, 4, 1, 1, 3, 0)),
    "wide": (axis(1), axis(64, 7, 2, 1, 3, 3)),
    "dilated further than it is long": (axis(9, 3, 1, 6, 6, 6), axis(40, 3, 1, 17, 17, 17)),
    "a long line": (axis(1), axis(997, 3, 1, 1, 1, 1)),
    "two images": (axis(4, 3, 1, 1, 1, 1), axis(5, 2)),
}


@pytest.mark.parametrize("at_end", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_depthwise", [False, True], ids=["all channels", "depthwise"])
@pytest.mark.parametrize("shape", mostly_slow(5, SHAPES))
def test_kernels_stay_inside_their_arrays_and_agree_with_numpy(vectors, shape, is_depthwise, at_end):
    channels = 3 * vectors.lanes - 1 if is_depthwise else 6
    batch = 2 if shape == "two images" else 1
    own = convolution(*SHAPES[shape], channels, 5 * vectors.lanes + 3, batch=batch, is_depthwise=is_depthwise)

    assert_right(own, vectors, at_end=at_end)


@pytest.mark.parametrize("shape", mostly_slow(1, ["3 x 3", "flat", "dilated"]))
@pytest.mark.parametrize(("groups", "channels", "maps"), [(2, 6, 10), (3, 2, 48), (5, 1, 8), (2, 16, 100)])
def test_groups_of_channels(vectors, shape, groups, channels, maps):
    own = convolution(*SHAPES[shape], groups * channels, groups * maps, groups=groups)
    weights = arrays_of(own)[1]

    assert_right(own, vectors)
    np.testing.assert_array_equal(unpacked(packed(np, weights, own, vectors), own, vectors), weights)


@pytest.mark.parametrize("maps", mostly_slow(4, [1, 80, 145, 64, 8, 16, 17, 48]))
def test_any_number_of_maps(vectors, maps):
    own = convolution(axis(3, 2), axis(9, 2), 4, maps)
    weights = arrays_of(own)[1]

    assert_right(own, vectors)
    np.testing.assert_array_equal(unpacked(packed(np, weights, own, vectors), own, vectors), weights)


def test_long_axes_have_few_runs_of_windows():
    long = axis(10**9, 7, 1, 1, 3, 3)

    assert len(long.runs) == 7
    assert len(long.whole) == 10**9 - 6
    assert long.never_misses


@pytest.mark.parametrize("length", range(1, 40))
def test_runs_have_each_window_once(length):
    own = axis(length, 5, 2, 3, 7, 9)
    inside = {position: run.inside for run in own.runs for position in run.positions}

    assert sum(len(run.positions) for run in own.runs) == own.count
    assert inside == {position: own.inside(position) for position in range(own.count)}


def test_threads_share_long_lines_too():
    line = convolution(axis(1), axis(100_000, 7, 1, 1, 3, 3), 16, 32)

    assert division.divided(line, processor()).parts >= 4
    assert division.divided(convolution(*SHAPES["3 x 3"], 16, 32), processor()).stripes == 1


def axes():
    return st.builds(
        axis, st.integers(6, 20), st.integers(1, 4), st.integers(1, 3), st.integers(1, 2), st.integers(0, 2),
        st.integers(0, 2),
    ).filter(lambda own: own.count > 0 and own.never_misses)  # fmt: skip


@examples(6, nightly=300)
@given(axes(), axes(), st.integers(1, 40), st.integers(1, 150), st.integers(1, 2), st.booleans(), st.booleans())
def test_random_convolutions(rows, columns, channels, maps, batch, is_depthwise, is_followed):
    own = convolution(rows, columns, channels, maps, batch=batch, is_depthwise=is_depthwise, is_followed=is_followed)

    assert_right(own, processor())


def waiting_places():
    """The places in which threads wait for jobs, int64."""
    start, _ = compilation._waiting_places(jobs.WAITING_SIZE, jobs.LINE)
    memory = (ctypes.c_int64 * (jobs.WAITING_SIZE // 8)).from_address(start)
    return np.ctypeslib.as_array(memory)[:: jobs.LINE // 8]


def until(condition):
    """Wait for a condition, though not for long."""
    end = time.monotonic() + 0.2
    while not condition() and time.monotonic() < end:
        time.sleep(1e-4)


@pytest.fixture
def in_small_parts(monkeypatch):
    """A division in which few weights and positions are many, and threads that are worth any work."""
    monkeypatch.setattr(kernel, "WORK_OF_THREAD", 1)
    monkeypatch.setattr(division, "STRIPE", 256)
    machine_code.cache_clear()
    yield
    machine_code.cache_clear()


@pytest.mark.usefixtures("in_small_parts")
@pytest.mark.parametrize("is_by_panel", [True, False], ids=["by panel", "by line"])
@pytest.mark.parametrize(
    "pool", [{"comes": True}, {"refuses": True}, {"refuses": False}], ids=["comes", "refuses", "forgets"]
)
@pytest.mark.parametrize("threads", mostly_slow(1, [3, 2, 8]))
@pytest.mark.parametrize("shape", ["flat", "3 x 3"])
def test_threads_share_a_call_that_needs_none_of_them(vectors, shape, pool, threads, is_by_panel, monkeypatch):
    monkeypatch.setattr(division, "CACHED", 0 if is_by_panel else 1 << 30)
    own = convolution(*SHAPES[shape], 4, (23 if is_by_panel else 6) * vectors.lanes)
    api = Api(threads, **{"refuses": False, **pool})
    parts = division.divided(own.flat, vectors).parts

    assert division.divided(own.flat, vectors).is_by_panel == is_by_panel
    assert_right(own, vectors, api=api)
    # a thread that has helped before may still wait, and is not asked for
    assert api.scheduled <= min(threads, parts) - 1
    assert api.scheduled or pool == {"comes": True}


@pytest.mark.usefixtures("in_small_parts")
@pytest.mark.parametrize("times", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_calls_that_follow_each_other_are_helped_by_threads_that_wait(times, monkeypatch):
    monkeypatch.setattr(jobs, "PATIENCE", 1 << 31)
    own, api = convolution(*SHAPES["3 x 3"], 4, 80), Api(3, comes=True, stays=True)
    arrays, places = arrays_of(own), waiting_places()
    wanted = run(own, processor(), arrays)
    for _ in range(times):
        np.testing.assert_array_equal(run(own, processor(), arrays, api=api), wanted)
        until(lambda: all(place == jobs.WAITING for place in places[:2]))
    api.join()

    # the first call asked for both, and others only if a busy machine kept them from waiting
    assert api.scheduled < times


@pytest.mark.usefixtures("in_small_parts")
def test_threads_that_have_waited_in_vain_are_not_counted_on():
    own, api = convolution(*SHAPES["3 x 3"], 4, 80), Api(3, comes=True)
    for calls in (1, 2, 3):
        run(own, processor(), arrays_of(own), api=api)
        # by then, both have left their places
        assert api.scheduled == 2 * calls


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e-40, -1e38])
@pytest.mark.parametrize("is_depthwise", [False, True])
def test_extreme_numbers_reach_the_results_that_they_reach_in_numpy(vectors, number, is_depthwise):
    own = convolution(*SHAPES["3 x 3"], 20, 20, is_depthwise=is_depthwise, is_followed=False)
    arrays = arrays_of(own)
    arrays[0][0, 4, 5, 7] = number

    assert_right(own, vectors, arrays)


def test_other_arrays_are_refused_and_nothing_is_written(vectors):
    own = convolution(*SHAPES["3 x 3"])
    x, weights, *others = arrays_of(own)
    arguments = [x, packed(np, weights, own, vectors), *others]
    results = [np.zeros(own.positions * own.maps, np.float32)]

    handler = machine_code(own, vectors).handler

    assert "there are not 5 arguments" in refused(handler, arguments[:-1], results)
    assert "argument 1 is too small" in refused(handler, [x, arguments[1][1:], *others], results)
    assert "argument 3 is too small" in refused(handler, [*arguments[:3], others[1][1:], others[2]], results)
    assert "argument 0 is not of its" in refused(handler, [x.astype(np.float64), *arguments[1:]], results)
    assert "result 0 is too small" in refused(handler, arguments, [results[0][1:]])


def test_equal_code_is_one_kernel():
    own = convolution(*SHAPES["flat"])
    first = machine_code(own, processor())
    convolve.machine_code.cache_clear()

    assert machine_code(replace(own), processor()) is first
