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


@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_operations_have_the_results_of_xla(dtype):
    cases, operands = cases_of(dtype), operands_of(dtype)
    loop = loop_of(cases)
    with jax.enable_x64(True), quick_programs():
        results = jax.jit(lambda *arrays: LoopKernel(loop, arrays).called())(*operands)
        expected = jax.jit(loop)(*operands)

    for case, result, wanted in zip(cases, results, expected, strict=True):
        assert_alike(case, result, wanted)
