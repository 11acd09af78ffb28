import jax
import jax.extend.core.primitives
import jax.lax.linalg
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback

import netloop as trt
from netloop.formats.from_jax.rule_table import COMPLEX
from netloop.formats.from_jax.rules import REFUSED, TABLE
from tests.support.jax_functions import check_same

X = np.arange(12, dtype=np.float32).reshape(3, 4)
EVERY = {
    getattr(module, name).name
    for module in (lax, jax.lax.linalg, jax.extend.core.primitives)
    for name in dir(module)
    if name.endswith("_p")
} - {"xla_pmap"}  # of old versions of JAX, which divide a function among devices by it


def test_every_primitive_has_a_rule_or_a_reason():
    assert sorted(name for name in EVERY if not {name} & {*TABLE, *COMPLEX, *REFUSED}) == []


def test_no_primitive_has_both():
    assert sorted({*TABLE, *COMPLEX} & {*REFUSED}) == []


def raised_by(function, *examples, **given):
    with pytest.raises(trt.ModelError) as raised:
        trt.from_jax(function, *examples, **given)
    return raised.value.findings


def of_python(x, callback=jax.pure_callback):
    return callback(np.tanh, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def test_all_unknown_primitives_are_reported_at_their_lines():
    def function(x):
        values = jax.pure_callback(np.sin, X, x)
        return lax.cond(x[0, 0] > 0, lambda: io_callback(np.sin, X, x).sum(), lambda: values.sum())

    found = raised_by(function, X)

    assert sorted(finding.what for finding in found) == [
        "netloop has no rule for the primitive 'io_callback'",
        "netloop has no rule for the primitive 'pure_callback'",
    ]
    line = function.__code__.co_firstlineno
    assert sorted(finding.where for finding in found) == [f"{__file__}:{line + 1}", f"{__file__}:{line + 2}"]
    assert found[0].code == "NL744"
    assert "it calls Python" in found[0].why
    assert found[0].fix.startswith("pass a rule of your own, rules={'")


def test_number_of_equations_is_reported():
    (found,) = raised_by(lambda x: of_python(x) + of_python(x * 2), X)

    assert found.what == "netloop has no rule for the primitive 'pure_callback', in 2 equations"


def test_primitive_without_a_rule_for_complex_numbers_says_what_to_do():
    (found,) = raised_by(lambda x: lax.clamp_p.bind(x, x, x) + lax.clamp_p.bind(x, x, 2 * x), X.astype(np.complex64))

    assert (found.code, found.fix) == (
        "NL746",
        "compute with real and imaginary parts, as two arrays or along an axis of length 2",
    )
    assert found.what == "'clamp' takes or returns complex64[3,4], in 2 equations"


def test_keys_of_other_generators_are_refused():
    (found, *_) = raised_by(lambda key: jax.random.bits(key), jax.random.key(0, impl="rbg"))

    assert (found.code, found.fix) == ("NL746", "use keys of JAX's default generator, threefry2x32")


def test_function_of_its_own_for_a_scatter_is_refused_at_its_line():
    def function(x):
        return x.at[0].apply(jnp.tanh)

    (found, *_) = raised_by(function, X)

    assert found.what == "a scatter with a function of its own"
    assert found.where == f"{__file__}:{function.__code__.co_firstlineno + 1}, scatter"


def test_primitive_that_no_result_needs_is_no_error():
    def function(x):
        of_python(x)
        return x + 1

    check_same(function, X)


# ---------------------------------------------------------------------- rules of one's own


def test_rule_of_ones_own_adds_the_layers():
    def rule(network, operands, params):
        assert params["sharding"] is None
        return network.add_activation(operands[0], trt.ActivationType.TANH).get_output(0)

    network = trt.from_jax(lambda x: of_python(x), X, rules={"pure_callback": rule})

    np.testing.assert_allclose(trt.compile(network)({"x": X})["output"], np.tanh(X), rtol=1e-4)


def test_rule_of_ones_own_replaces_that_of_netloop():
    def rule(network, operands, params):
        return network.add_unary(operands[0], trt.UnaryOperation.COS).get_output(0)

    network = trt.from_jax(lambda x: jnp.sin(x), X, rules={"sin": rule})

    np.testing.assert_allclose(trt.compile(network)({"x": X})["output"], np.cos(X), rtol=1e-4, atol=1e-6)


def test_exception_in_a_rule_of_ones_own_is_a_finding():
    (found,) = raised_by(lambda x: jnp.sin(x), X, rules={"sin": lambda *_: 1 / 0})

    assert (found.code, found.what) == ("NL411", "the function for 'sin' raised ZeroDivisionError: division by zero")
    assert found.where.endswith(", sin")


@pytest.mark.parametrize("made", [lambda x: x.add_constant((1,), np.float64([1])).get_output(0), lambda x: []])
def test_result_of_another_type_is_a_finding(made):
    (found,) = raised_by(lambda x: jnp.sin(x), X, rules={"sin": lambda network, *_: made(network)})

    assert found.code == "NL401"


def test_rules_are_a_dict():
    with pytest.raises(TypeError, match="dict from names to functions"):
        trt.from_jax(lambda x: x, X, rules=[])
