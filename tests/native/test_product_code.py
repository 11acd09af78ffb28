"""The machine code of the product: what it computes, what it refuses, and which memory it touches."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from netloop.native import machine_code
from netloop.native.machine_code import KERNELS, compile_product
from tests.support.ffi_frames import Api, call, guarded

FEATURES = machine_code.llvm.get_host_cpu_features()


@pytest.fixture(scope="module", params=list(KERNELS))
def code(request):
    """The product for each kind of vectors that this processor has."""
    if not FEATURES.get(request.param):
        pytest.skip(f"the processor has no {request.param}")
    return compile_product(*KERNELS[request.param])


def packed(matrix: np.ndarray, width: int) -> np.ndarray:
    length, columns = matrix.shape
    panels = -(-columns // width)
    made = np.zeros((length, panels * width), np.float32)
    made[:, :columns] = matrix
    return np.ascontiguousarray(made.reshape(length, panels, width).transpose(1, 0, 2))


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def multiplied(code, rows: np.ndarray, matrix: np.ndarray, api: Api | None = None) -> np.ndarray:
    """The product in memory between guard pages, before and after which nothing may be read or written."""
    panels = packed(matrix, code.width)
    empty = np.full((rows.shape[0], matrix.shape[1]), 7, np.float32)
    made = []
    for at_end in (True, False):
        out = guarded(empty, at_end)
        assert call(code.handler, api or Api(), [guarded(rows, at_end), guarded(panels, at_end)], [out]) == 0
        made.append(out.copy())
    np.testing.assert_array_equal(*made)
    return made[0]


SIZES = [1, 2, 3, 5, 8, 13, 97], [1, 3, 4, 7, 64], [1, 15, 16, 17, 32, 33, 100]


@pytest.mark.parametrize(("count", "length", "columns"), [*itertools.product(*SIZES)])
def test_product_of_any_size_agrees_with_numpy_and_stays_inside_its_arrays(code, count, length, columns):
    rows, matrix = drawn(count, length), drawn(length, columns)

    wanted = rows.astype(np.float64) @ matrix.astype(np.float64)
    np.testing.assert_allclose(multiplied(code, rows, matrix), wanted, rtol=1e-5, atol=1e-5)


def test_product_of_several_tasks_is_whole_although_no_helper_comes(code):
    rows, matrix, api = drawn(200, 300), drawn(300, 500), Api(threads=3)

    wanted = rows.astype(np.float64) @ matrix.astype(np.float64)
    np.testing.assert_allclose(multiplied(code, rows, matrix, api), wanted, rtol=1e-4, atol=1e-4)
    assert api.scheduled == 4  # two helpers in each of two calls


@pytest.mark.parametrize("empty", [(0, 4, 5), (2, 0, 5), (2, 4, 0)])
def test_product_without_elements_is_empty_or_zero(code, empty):
    count, length, columns = empty
    rows, panels = np.zeros((count, length), np.float32), packed(np.zeros((length, columns), np.float32), code.width)
    out = np.full((count, columns), 7, np.float32)

    assert call(code.handler, Api(), [rows, panels], [out]) == 0
    assert not out.any()


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_reach_the_results_that_they_reach_in_numpy(code, number):
    rows, matrix = drawn(3, 6), drawn(6, 40)
    rows[1, 2] = matrix[4, 33] = number
    rows[0, 4] = 0

    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(multiplied(code, rows, matrix), rows @ matrix, rtol=1e-5, atol=1e-5)


def refused(code, arguments: list[np.ndarray], results: list[np.ndarray]) -> str:
    """The error of a call, which must leave the results as they are."""
    before, api = [each.copy() for each in results], Api()
    assert call(code.handler, api, arguments, results) == 1
    for each, kept in zip(results, before, strict=True):
        np.testing.assert_array_equal(each, kept)
    (message,) = api.messages
    return message.removeprefix("netloop's native product: ")


def misaligned(array: np.ndarray) -> np.ndarray:
    memory = np.zeros(array.nbytes + 1, np.uint8)
    return np.frombuffer(memory.data, np.float32, array.size, 1).reshape(array.shape)


def test_handler_refuses_what_is_no_product_and_writes_nothing(code):
    rows, panels, out = drawn(2, 4), packed(drawn(4, 5), code.width), drawn(2, 5)

    assert refused(code, [rows], [out]) == "there are not 2 arguments"
    assert refused(code, [rows, panels], []) == "there are not 1 results"
    assert refused(code, [rows.astype(np.float64), panels], [out]) == "argument 0 is no array of float32"
    assert refused(code, [rows, panels], [out.astype(np.float64)]) == "result 0 is no array of float32"
    assert refused(code, [rows[None], panels], [out]) == "argument 0 has not 2 axes"
    assert refused(code, [rows, panels[0]], [out]) == "argument 1 has not 3 axes"
    assert refused(code, [misaligned(rows), panels], [out]) == "argument 0 is not aligned"
    assert refused(code, [drawn(2, 3), panels], [out]) == "a panel has not the length of a row"
    assert refused(code, [rows, panels[..., 1:].copy()], [out]) == f"a panel has not {code.width} columns"
    assert refused(code, [rows, panels], [drawn(3, 5)]) == "there is not one row of results for each row"
    assert refused(code, [rows, panels], [drawn(2, 33)]) == "the panels have not the results' columns"


def test_handler_computes_nothing_in_the_stages_before_execution(code):
    rows, panels, out = drawn(2, 4), packed(drawn(4, 5), code.width), np.zeros((2, 5), np.float32)

    assert call(code.handler, Api(), [rows, panels], [out], stage=0) == 0
    assert not out.any()


def test_guard_page_ends_a_process_that_writes_past_an_end():
    script = (
        "import numpy as np\nfrom tests.support.ffi_frames import guarded\n"
        "array = guarded(np.zeros(3, np.float32))\nnp.ctypeslib.as_array(array.ctypes.data_as("
        "__import__('ctypes').POINTER(__import__('ctypes').c_float)), (4,))[3] = 1"
    )

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode < 0
