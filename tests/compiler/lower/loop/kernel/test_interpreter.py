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


IN_FAST_TESTS = {"bool": 2, "int32": 2, "float32": 1, "bfloat16": 8}
"""A type of each kind, and the steps from one of its operations to the next, as all of a type take three seconds or
more: other types, and the other operations of these, have the rules of one of these."""


def types_and_steps():
    fast = [pytest.param(dtype, IN_FAST_TESTS[str(dtype)]) for dtype in EVERY if str(dtype) in IN_FAST_TESTS]
    slow = [pytest.param(dtype, 1, marks=pytest.mark.slow) for dtype in EVERY if IN_FAST_TESTS.get(str(dtype)) != 1]
    return [*fast, *slow]


@pytest.mark.parametrize(("dtype", "step"), types_and_steps(), ids=str)
def test_operations_have_the_results_of_xla(dtype, step):
    cases, operands = cases_of(dtype)[::step], operands_of(dtype)
    loop = loop_of(cases)
    with jax.enable_x64(True), quick_programs():
        results = jax.jit(lambda *arrays: LoopKernel(loop, arrays).called())(*operands)
        expected = jax.jit(loop)(*operands)

    for case, result, wanted in zip(cases, results, expected, strict=True):
        assert_alike(case, result, wanted)
