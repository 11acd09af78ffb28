"""Each operation of a kernel, interpreted on a CPU, has the results that XLA gives it in a loop, also at edges."""

import jax
import pytest

from netloop.compiler.lower.loop.kernel import control, conversion
from netloop.compiler.lower.loop.kernel.conversion import LoopKernel
from tests.support.kernel_cases import EVERY, assert_alike, cases_of, loop_of, operands_of
from tests.support.quick_programs import quick_programs


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch):
    # copies of a body take XLA's CPU long to compile
    monkeypatch.setattr(control, "AHEAD", 2)
    monkeypatch.setattr(conversion, "MOST_EQUATIONS", 10_000)


IN_FAST_TESTS = {"bool", "int32", "float32", "bfloat16"}
"""A type of each kind, as a type takes three seconds: the others have the rules of one of these."""


def with_others_slow(dtype):
    marks = () if str(dtype) in IN_FAST_TESTS else pytest.mark.slow
    return pytest.param(dtype, marks=marks, id=str(dtype))


@pytest.mark.parametrize("dtype", [with_others_slow(dtype) for dtype in EVERY])
def test_operations_have_the_results_of_xla(dtype):
    cases, operands = cases_of(dtype), operands_of(dtype)
    loop = loop_of(cases)
    with jax.enable_x64(True), quick_programs():
        results = jax.jit(lambda *arrays: LoopKernel(loop, arrays).called())(*operands)
        expected = jax.jit(loop)(*operands)

    for case, result, wanted in zip(cases, results, expected, strict=True):
        assert_alike(case, result, wanted)
