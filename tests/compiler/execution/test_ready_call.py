"""Calls like the one before, which look nothing up: they take exactly what a first call takes."""

from collections import OrderedDict

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.execution.executable import Executable
from netloop.process.forked import FORK
from tests.support.networks import F, combine, mark

MAKERS = [np.asarray, jnp.asarray]


def difference(dtype=trt.float32, length=2):
    network = trt.INetworkDefinition()
    a, b = (network.add_input(name, dtype, (length,)) for name in "ab")
    return mark(network, y=combine(network, a, b, trt.ElementWiseOperation.SUB))


def called(engine, make, dtype=F):
    """An engine after two calls, of which the second looked nothing up."""
    given = {"a": make(dtype([5, 7])), "b": make(dtype([1, 2]))}
    for _ in range(2):
        assert engine(given)["y"].tolist() == [4, 5]
    return given


@pytest.fixture(params=MAKERS, ids=["numpy", "jax"])
def make(request):
    return request.param


@pytest.fixture
def engine():
    return trt.compile(difference())


def test_call_like_the_one_before_enters_no_settings(engine, make, monkeypatch):
    given = called(engine, make)
    monkeypatch.setattr("netloop.compiler.placement.pinned_settings", None)

    assert engine(given)["y"].tolist() == [4, 5]


def test_lists_are_read_and_nothing_is_looked_up(engine, monkeypatch):
    inputs = called(engine, list)
    monkeypatch.setattr(Executable, "_found", None)

    assert engine(inputs)["y"].tolist() == [4, 5]
    assert engine({"a": F([1, 1]), "b": [F(1), F(0)]})["y"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (np.zeros(2), r"float32\[2\], and its value is float64\[2\]"),
        (np.zeros(2, ">f4"), "input 'b'"),
        (np.zeros(2, np.int32), r"its value is int32\[2\]"),
        (np.zeros(3, F), r"its value is float32\[3\]"),
        (np.zeros((2, 1), F), r"its value is float32\[2,1\]"),
        (jax.device_put(np.zeros(3, F)), r"its value is float32\[3\]"),
        (jax.device_put(np.zeros(2, np.int32)), r"its value is int32\[2\]"),
        (jax.device_put(np.zeros(2, jnp.bfloat16)), r"its value is bfloat16\[2\]"),
        (1.5, r"its value is float64\[\]"),
        (True, r"its value is bool\[\]"),
        (None, "input 'b'"),
        ("text", "input 'b'"),
        (np.array(["a", "b"]), "input 'b'"),
    ],
    ids=repr,
)
def test_value_that_does_not_fit_is_refused(engine, make, value, what):
    given = called(engine, make)
    with pytest.raises(trt.InputError, match=what):
        engine({**given, "b": value})

    assert engine(given)["y"].tolist() == [4, 5]


def test_wrong_names_are_refused(engine, make):
    given = called(engine, make)
    with pytest.raises(trt.InputError, match="no input 'c'"):
        engine({**given, "c": given["a"]})
    with pytest.raises(trt.InputError, match="input 'b' is missing"):
        engine({"a": given["a"]})
    with pytest.raises(trt.InputError, match="no input 'B'"):
        engine({"a": given["a"], "B": given["b"]})
    with pytest.raises(TypeError, match="inputs must be a dict"):
        engine([given["a"], given["b"]])


@pytest.mark.parametrize(
    "value",
    [
        F([3, 0, 4, 0])[::2],
        F([4, 3])[::-1],
        np.asfortranarray(F([3, 4])),
        np.float32([3, 4]).view(np.recarray),
        [F(3), F(4)],
        (np.float32(3), np.float32(4)),
        jnp.asarray([3.0, 4.0]) * 1,
        jnp.full(2, 3.0) + jnp.arange(2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_value_of_any_layout_and_kind_is_taken(engine, make, value):
    given = called(engine, make)

    assert engine({**given, "b": value})["y"].tolist() == [2, 3]
    assert engine({**given, "b": value})["y"].tolist() == [2, 3]


def test_any_mapping_is_taken(engine, make):
    given = called(engine, make)

    assert engine(OrderedDict(reversed(given.items())))["y"].tolist() == [4, 5]


@pytest.mark.parametrize("dtype", [trt.int64, trt.float64])
@pytest.mark.parametrize("x64", [False, True])
def test_wide_types_are_real_in_each_call(make, dtype, x64):
    engine = trt.compile(difference(dtype))
    big = np.array([2**40, 3], trt.nptype(dtype))
    with jax.enable_x64(x64):
        outputs = [engine({"a": big, "b": big[::-1].copy()})["y"] for _ in range(3)]
        outputs += [engine({"a": tensor, "b": tensor})["y"] for tensor in outputs]

    assert [tensor.tolist() for tensor in outputs] == [[2**40 - 3, 3 - 2**40]] * 3 + [[0, 0]] * 3
    assert {tensor.dtype for tensor in outputs} == {big.dtype}


@pytest.mark.parametrize(
    "setting",
    [
        jax.disable_jit,
        lambda: jax.debug_nans(True),
        lambda: jax.numpy_dtype_promotion("strict"),
        lambda: jax.enable_x64(True),
    ],
    ids=["jit", "nans", "types", "x64"],
)
def test_settings_that_change_between_calls_do_not_reach_engines(engine, make, setting):
    given = called(engine, make)
    nothing = make(F([np.nan, 1]))
    with setting():
        outputs = [engine(entry)["y"] for entry in [given, {"a": nothing, "b": nothing}] * 2]

    np.testing.assert_array_equal(np.asarray(outputs), [[4, 5], [np.nan, 0]] * 2)


def test_array_that_is_traced_is_refused(engine, make):
    given = called(engine, make)
    with pytest.raises(trt.InputError, match="NL607: JAX is tracing input 'a'"):
        jax.jit(lambda a: engine({**given, "a": a}))(given["a"])


@pytest.mark.parametrize("before", [0, 1, 2], ids="after {} calls".format)
def test_array_that_was_donated_is_refused(before):
    engine = trt.compile(difference(), donate=["a"])
    for _ in range(before):
        engine({"a": jnp.asarray(F([5, 7])), "b": jnp.asarray(F([1, 2]))})
    given = {"a": jnp.asarray(F([5, 7])), "b": jnp.asarray(F([1, 2]))}
    assert engine(given)["y"].tolist() == [4, 5]
    with pytest.raises(trt.InputError, match="NL626: the array of input 'a' is deleted"):
        engine(given)

    assert engine({**given, "a": jnp.asarray(F([5, 7]))})["y"].tolist() == [4, 5]


def test_call_after_a_refit_has_the_new_weights(network, make):
    x, weights = network.add_input("x", trt.float32, (2,)), network.add_constant((2,), F([1, 2]))
    weights.name = "weights"
    engine = trt.compile(mark(network, y=combine(network, x, weights.get_output(0))))
    given = {"x": make(F([1, 1]))}
    assert [engine(given)["y"].tolist() for _ in range(3)] == [[2, 3]] * 3
    refitter = trt.Refitter(engine, trt.Logger(trt.Logger.ERROR))
    refitter.set_named_weights("weights", F([5, 6]))
    refitter.refit_cuda_engine()

    assert [engine(given)["y"].tolist() for _ in range(3)] == [[6, 7]] * 3


def test_call_in_a_process_that_lost_jax_is_refused(engine, make, monkeypatch):
    given = called(engine, make)
    monkeypatch.setattr(FORK, "lost_jax", True)
    with pytest.raises(trt.ExecutionError, match="NL612"):
        engine(given)


def test_shapes_and_their_reports_may_take_turns(make):
    engine = trt.compile(difference(length=-1))
    for length in (1, 1, 2, 2, 1, 2):
        given = {"a": make(np.full(length, 3, F)), "b": make(np.ones(length, F))}
        assert engine(given)["y"].tolist() == [2] * length

    assert engine.program_count == 2
