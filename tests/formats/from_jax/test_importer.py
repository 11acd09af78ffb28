"""Random functions as networks, the names of their layers, and errors: all of them, each at its line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from jax.export import symbolic_shape

import netloop as trt
from netloop.formats.from_jax import importer
from tests.support.jax_functions import check_same
from tests.support.jax_programs import arguments, random_function


@pytest.mark.slow
@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 16), st.integers(0, 2), st.integers(1, 6))
def test_network_of_a_random_function_computes_what_it_does(seed, depth, most):
    check_same(random_function(seed, depth, most), *arguments(seed), rtol=2e-4, atol=2e-5)


# ---------------------------------------------------------------------- errors

X = np.ones((3, 4), np.float32)


def errors_of(function, *examples):
    with pytest.raises(trt.ModelError) as raised:
        trt.from_jax(function, *examples)
    return raised.value.findings


def test_errors_of_several_equations_are_reported_those_in_bodies_too():
    def function(x):
        first = x.at[0].apply(jnp.tanh)
        rows = lax.scan(lambda _, row: (None, row.at[0].apply(jnp.sin)), None, first * x)[1]
        other = lax.scan(lambda _, row: (None, row.at[0].apply(jnp.cos)), None, x)[1]
        return rows, other + 1, lax.reduce(x, np.float32(0), lambda a, b: a - b, (0,))

    line = function.__code__.co_firstlineno
    assert [finding.where.removeprefix(f"{__file__}:") for finding in errors_of(function, X)] == [
        f"{line + 1}, scatter", f"{line + 3}, scatter", f"{line + 4}, reduce",
    ]  # fmt: skip


def test_error_of_a_function_that_is_called_twice_is_reported_once():
    @jax.jit
    def called(x):
        return x.at[0].apply(jnp.tanh)

    assert len(errors_of(lambda x: called(x) + called(x + 1), X)) == 1


def test_error_has_the_line_and_the_scopes_of_its_equation():
    def function(x):
        with jax.named_scope("head"):
            return x.at[0].apply(jnp.tanh)

    (finding,) = errors_of(function, X)

    line = function.__code__.co_firstlineno + 2
    assert finding.as_json()["where"] == {"file": __file__, "line": line, "layer": "head/scatter"}


def test_output_whose_length_is_that_of_no_input_is_an_error():
    (length,) = symbolic_shape("n")

    (finding,) = errors_of(lambda x: jnp.ones((length,)), jax.ShapeDtypeStruct((2 * length,), np.float32))

    assert finding.what == "no input has an axis of the symbolic length n"
    assert finding.where == "<lambda>, output 'output'"


def test_exception_of_a_rule_is_a_fault_of_netloop(monkeypatch):
    def fail(*_):
        raise ValueError("of numpy")

    monkeypatch.setattr(importer, "EquationCall", fail)
    (finding,) = errors_of(jnp.sin, X)

    assert (finding.code, finding.what) == ("NL754", "netloop cannot import it: ValueError: of numpy")
    assert finding.fix == "report it, with the function"


# ---------------------------------------------------------------------- names


def test_layers_have_the_names_of_primitives_and_scopes():
    def function(x, w):
        with jax.named_scope("cell"):
            return {"h": jnp.tanh(x @ w) @ w, "w": w}

    network = trt.from_jax(function, X, np.eye(4, dtype=np.float32), weights="w")

    assert [(layer.name, layer.metadata) for layer in network] == [
        ("w", ""),
        ("cell/dot_general", "[JAX Layer: cell/dot_general]"),
        ("cell/tanh", "[JAX Layer: cell/tanh]"),
        ("cell/dot_general_1", "[JAX Layer: cell/dot_general]"),
        ("w_1", "[JAX Layer: w]"),
    ]


def test_results_without_elements_need_no_rule():
    def function(x):
        pooled = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 1, 1), "VALID")
        return pooled, lax.conv(x, jnp.ones((0, 3, 1, 1), np.float32), (1, 1), "SAME"), jnp.fft.fft(x[:0]).real

    network = check_same(function, np.ones((2, 3, 2, 4), np.float32))

    assert {layer.type for layer in network.layers} == {trt.LayerType.CONSTANT}
