from pathlib import Path

import jax
import pytest
from jax._src import compiler
from jax._src.interpreters import mlir

from netloop.compiler.machine_code import compilation
from tests.support.examples import IS_NIGHTLY
from tests.support.quick_programs import (
    AS_USERS_COMPILE,
    IN_ONE_PART,
    PROGRAMS_OF_A_CONTEXT,
    QUICK,
    known_options,
    quick_programs,
)

ROOT = Path(__file__).parents[2]
DROPPED = {"xla_cpu_use_fusion_emitters"} if jax.__version_info__ >= (0, 11) else set()
"""The options that a later release of XLA no longer has."""


def options_of_jax(**more):
    return dict(compiler.get_compile_options(1, 1, **more).env_option_overrides)


@pytest.mark.parametrize("path", AS_USERS_COMPILE)
def test_tests_that_compile_as_for_users_are_there(path):
    assert (ROOT / path.partition("::")[0]).exists()


def test_programs_are_compiled_quickly_or_as_for_users():
    with quick_programs():
        quick, other = options_of_jax(), options_of_jax(env_options_overrides={"xla_backend_optimization_level": 1})
        with quick_programs(False):
            of_users = options_of_jax()

    assert quick == {name: value for name, value in QUICK.items() if name not in DROPPED or name in known_options()}
    assert other == quick | {"xla_backend_optimization_level": 1}
    assert of_users == ({} if IS_NIGHTLY else IN_ONE_PART)


def test_kernels_are_compiled_quickly_or_as_for_users():
    with quick_programs():
        quick = compilation.OPTIMIZATION_LEVEL
        with quick_programs(False):
            of_users = compilation.OPTIMIZATION_LEVEL

    assert (quick, of_users) == (0, 3)


REUSED = mlir.make_ir_context() is mlir.make_ir_context()
"""Whether JAX makes a context for several programs itself, as 0.12 does."""


@pytest.mark.skipif(REUSED, reason="JAX does so itself")
def test_contexts_are_for_many_programs_each():
    with quick_programs():
        contexts = [mlir.make_ir_context() for _ in range(PROGRAMS_OF_A_CONTEXT + 1)]

    assert 2 <= len(set(map(id, contexts))) <= 3


@pytest.mark.skipif(REUSED, reason="JAX has one context for both itself")
def test_context_of_a_program_that_is_lowered_is_not_that_of_another_one():
    with quick_programs(), mlir.make_ir_context() as outer:
        assert mlir.make_ir_context() is not outer
