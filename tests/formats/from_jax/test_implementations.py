"""Primitives that other libraries define."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.interpreters import mlir

import netloop as trt
from tests.support.jax_functions import check_same

X = np.float32([[1, -2], [3, 4]])


def defined(name, implementation, result):
    """A primitive as libraries define one: by a function of arrays, and the type of its result."""
    primitive = Primitive(name)
    primitive.def_impl(implementation)
    primitive.def_abstract_eval(lambda *given, **params: jax.core.ShapedArray(*result))
    mlir.register_lowering(primitive, mlir.lower_fun(implementation, multiple_results=False))
    return primitive


def test_primitive_of_a_library_becomes_its_implementation():
    scaled_sum = defined("scaled_sum", lambda x, *, scale: jnp.sum(x) * scale, ((), np.float32))

    check_same(lambda x: jax.lax.cond(x[0, 0] > 0, lambda: scaled_sum.bind(x, scale=2.0), lambda: x[0, 1]), X)


def test_primitive_of_a_library_inside_another():
    inner = defined("inner", jnp.tanh, ((2, 2), np.float32))
    outer = defined("outer", lambda x: inner.bind(x) + 1, ((2, 2), np.float32))

    check_same(lambda x: outer.bind(x), X)


@pytest.mark.parametrize(
    ("implementation", "missing"),
    [
        (lambda x: np.linalg.svd(x)[0], "of_a_library"),
        (lambda x: jax.pure_callback(np.tanh, x, x), "pure_callback"),
        (lambda x: (x, x), "of_a_library"),
    ],
    ids=["no function of arrays", "an unknown primitive in it", "other results"],
)
def test_implementation_without_layers_is_refused(implementation, missing):
    primitive = defined("of_a_library", implementation, ((2, 2), np.float32))

    with pytest.raises(trt.ModelError, match=f"NL744: netloop has no rule for the primitive '{missing}'"):
        trt.from_jax(lambda x: primitive.bind(x), X)


def test_implementations_that_use_each_other_are_refused():
    one = defined("one", lambda x: other.bind(x), ((2, 2), np.float32))
    other = defined("other", lambda x: one.bind(x) + 1, ((2, 2), np.float32))

    with pytest.raises(trt.ModelError, match="NL744: netloop has no rule for the primitive 'one'"):
        trt.from_jax(lambda x: one.bind(x), X)
