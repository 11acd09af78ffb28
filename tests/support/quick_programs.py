"""Programs that compile in a quarter of the time: without LLVM's optimizations, and in one part.

Most tests ask what a network means, and not how fast XLA makes it. The HLO of a program, in which netloop's forms are,
XLA's rewriting of it, and the text of kernels stay the same; only the machine code is written otherwise. But XLA has
had faults in optimized code too, so what is about machine code is compiled as users compile it: the tests of
``AS_USERS_COMPILE``, among them the laws of an example of every kind of layer, all slow tests, and in the nightly
profile every test.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import jax
import pytest
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

from netloop.compiler.machine_code import compilation
from tests.support.examples import IS_NIGHTLY

QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
"""The options of XLA's compiler for CPUs, of which each takes a part of the time."""

IN_ONE_PART = {"xla_cpu_parallel_codegen_split_count": 1}
"""The options of what is compiled as users compile: parts are optimized alike, but each costs time of its own."""

AS_USERS_COMPILE = (
    "tests/compiler/convolution/test_kernel.py::test_extreme_numbers",
    "tests/compiler/convolution/test_kernel.py::test_kernels_stay",
    "tests/compiler/execution/test_compiler_faults.py",
    "tests/compiler/execution/test_denormals.py",
    "tests/compiler/execution/test_element_types.py::test_cast",
    "tests/compiler/execution/test_element_types.py::test_constant_is_stacked",
    "tests/compiler/execution/test_element_types.py::test_sign",
    "tests/compiler/execution/test_element_types.py::test_small_loops",
    "tests/compiler/execution/test_fusions.py",
    "tests/compiler/execution/test_golden.py",
    "tests/compiler/lower/loop/test_prefix_scan.py::test_values",
    "tests/compiler/lower/loop/test_rows.py",
    "tests/compiler/recurrent/test_kernel.py::test_extreme_numbers",
    "tests/compiler/recurrent/test_kernel.py::test_functions",
    "tests/compiler/recurrent/test_kernel.py::test_kernels_stay",
    "tests/compiler/recurrent/test_kernel.py::test_tanh",
    "tests/compiler/xla_faults/",
    "tests/formats/onnx/test_backend.py::OnnxBackendNodeModelTest::test_cast",
    "tests/model/layers/test_example_calls.py::test_layer_obeys_the_laws",
    "tests/model/layers/test_pointwise.py::test_cast",
)
"""The tests of numbers that optimizations of machine code have changed, or may."""

PROGRAMS_OF_A_CONTEXT = 100
"""A context keeps the constants of its programs."""

OPTIMIZATION_LEVELS = {True: 0, False: compilation.OPTIMIZATION_LEVEL}
"""The levels at which kernels are compiled quickly, and as users compile them."""

_options_of_jax = compiler.get_compile_options
_context_of_jax = mlir.make_ir_context


def _is_lowering() -> bool:
    try:
        return ir.Context.current is not None
    except ValueError:
        return False


class _Contexts(threading.local):
    """MLIR's contexts, each for many programs: JAX makes one for each, in most of the time of its lowering."""

    used = 0

    def __call__(self) -> Any:
        if _is_lowering():  # a module that is made while another one is would become a part of it
            return _context_of_jax()
        if self.used % PROGRAMS_OF_A_CONTEXT == 0:
            self.present = _context_of_jax()
        self.used += 1
        return self.present


_CONTEXTS = _Contexts()


def is_quick(item: pytest.Item) -> bool:
    """Whether the programs of a test are compiled quickly."""
    is_slow = item.get_closest_marker("slow") is not None
    return not (IS_NIGHTLY or is_slow or item.nodeid.startswith(AS_USERS_COMPILE))


@contextmanager
def quick_programs(quick: bool = True) -> Iterator[None]:
    """Have JAX and XLA compile quickly, or as users compile; JAX has no public setting for all of its programs."""
    wanted = QUICK if quick else {} if IS_NIGHTLY else IN_ONE_PART
    options = partial(_with_options, {name: value for name, value in known_options().items() if name in wanted})
    with (
        patch.object(compiler, "get_compile_options", options),
        patch.object(mlir, "make_ir_context", _CONTEXTS),
        patch.object(compilation, "OPTIMIZATION_LEVEL", OPTIMIZATION_LEVELS[quick]),
    ):
        yield


def _with_options(more: dict[str, Any], *arguments: Any, **named: Any) -> Any:
    """The options of a compilation, with those of quick programs where the compilation has none of its own."""
    overrides = more | (named.get("env_options_overrides") or {})
    return _options_of_jax(*arguments, **named | {"env_options_overrides": overrides})


@cache
def known_options() -> dict[str, Any]:
    """The options that this release of XLA has; none on other devices than CPUs."""
    return {name: value for name, value in QUICK.items() if jax.default_backend() == "cpu" and _is_known(name, value)}


def _is_known(name: str, value: Any) -> bool:
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options={name: value})
    except jax.errors.JaxRuntimeError:
        return False
    return True
