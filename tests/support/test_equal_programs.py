import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import compiler

from tests.support.equal_programs import equal_programs_share_executables


@pytest.fixture
def compiled(monkeypatch):
    """The names of the programs that XLA compiles."""
    names = []
    compile_of_jax = compiler.backend_compile_and_load

    def compile_and_load(backend, module, *more):
        names.append(module.operation.attributes["sym_name"].value)
        return compile_of_jax(backend, module, *more)

    monkeypatch.setattr(compiler, "backend_compile_and_load", compile_and_load)
    with equal_programs_share_executables():
        yield names


def program(number, **options):
    """A program of its own function, compiled with options."""
    return jax.jit(lambda x: x * number).lower(np.arange(3.0)).compile(compiler_options=options)


def test_equal_program_is_compiled_once(compiled):
    results = [program(0.1875)(np.arange(3.0)).tolist() for _ in range(2)]

    assert results == [[0, 0.1875, 0.375]] * 2
    assert compiled == ["jit__lambda"]


def test_program_of_another_text_or_other_options_is_another_one(compiled):
    program(0.3125), program(0.4375), program(0.4375, xla_backend_optimization_level=1)

    assert len(compiled) == 3


def test_program_that_calls_python_is_compiled_each_time(compiled):
    shape = jax.ShapeDtypeStruct((), np.float32)
    calls = [jax.jit(lambda x, n=n: jax.pure_callback(lambda y: y + np.float32(n), shape, x)) for n in range(2)]

    assert [float(call(jnp.float32(1))) for call in calls] == [1, 2]


def test_program_that_was_last_used_long_ago_is_compiled_again(compiled, monkeypatch):
    monkeypatch.setattr("tests.support.equal_programs.KEPT", 2)
    monkeypatch.setattr("tests.support.equal_programs._executables", {})
    for number in (0.25, 0.75, 0.25, 1.25, 0.25, 0.75):
        program(number)

    assert len(compiled) == 4
