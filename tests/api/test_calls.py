"""Inputs reach a program in their order, and are checked wherever they are not like those of an earlier call."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.execution import executable
from tests.support.networks import combine, length_is_an_input, mark

F = np.float32


@pytest.fixture
def engine():
    return trt.compile(difference())


def difference(length=2):
    """Three inputs, and three outputs of which the first tells them apart."""
    network = trt.INetworkDefinition()
    a, b, c = (network.add_input(name, trt.float32, (length,)) for name in "abc")
    product = combine(network, b, c, trt.ElementWiseOperation.PROD)
    return mark(
        network, y=combine(network, a, product, trt.ElementWiseOperation.SUB), p=product, q=combine(network, a, c)
    )


def arrays(a, b, c, make=np.asarray):
    return {name: make(np.full(2, each, F)) for name, each in zip("abc", (a, b, c), strict=True)}


@pytest.mark.parametrize("donated", [["a"], ["b"], ["a", "c"], ["c", "b", "a"]], ids="".join)
def test_inputs_keep_their_order_whichever_are_donated(donated):
    given = arrays(1, 2, 3, jnp.asarray)
    got = trt.compile(difference(), donate=donated)(given)["y"]

    assert got.tolist() == [-5, -5]
    assert [name for name, each in given.items() if each.is_deleted()] == sorted(donated)


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
def test_inputs_like_those_of_an_earlier_call_are_not_checked_again(engine, monkeypatch, make):
    engine(arrays(1, 2, 3))
    monkeypatch.setattr(executable, "check_values", None)

    assert engine(arrays(10, 2, 3, make))["y"].tolist() == [4, 4]


def test_inputs_in_another_order_are_those_of_their_names(engine):
    given = arrays(1, 2, 3)

    assert engine(dict(reversed(given.items())))["y"].tolist() == engine(given)["y"].tolist() == [-5, -5]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"b": np.zeros(2)}, r"input 'b' is float32\[2\], and its value is float64\[2\]"),
        ({"b": np.zeros(2, ">f4")}, "input 'b'"),
        ({"b": np.zeros((1, 2), F)}, r"input 'b' is float32\[2\], and its value is float32\[1,2\]"),
        ({"b": jnp.zeros(2, jnp.int32)}, r"input 'b' is float32\[2\], and its value is int32\[2\]"),
        ({"b": None}, "input 'b' is"),
        ({"d": np.zeros(2, F)}, "no input 'd'"),
    ],
)
def test_inputs_unlike_those_of_an_earlier_call_are_checked(engine, change, what):
    engine(arrays(1, 2, 3))
    with pytest.raises(trt.InputError, match=what):
        engine({**arrays(1, 2, 3), **change})


def test_missing_input_is_told_after_an_earlier_call(engine):
    engine(arrays(1, 2, 3))
    with pytest.raises(trt.InputError, match="input 'b' is missing"):
        engine({name: array for name, array in arrays(1, 2, 3).items() if name != "b"})


def test_input_that_jax_traces_is_told_after_an_earlier_call(engine):
    engine(arrays(1, 2, 3))
    with pytest.raises(trt.InputError, match="JAX is tracing input 'a'"):
        jax.jit(engine)(arrays(1, 2, 3))


def test_lists_are_inputs_after_arrays_too(engine):
    engine(arrays(1, 2, 3))

    assert engine({**arrays(1, 2, 3), "b": [F(4), F(5)]})["y"].tolist() == [-11, -14]


def test_programs_for_several_shapes_are_told_apart():
    engine = trt.compile(difference(-1))
    got = [engine({name: np.full(length, 2, F) for name in "abc"})["y"].tolist() for length in (1, 2, 1, 2)]

    assert got == [[-2], [-2, -2]] * 2
    assert engine.program_count == 2


def test_value_that_decides_a_shape_is_read_in_each_call():
    engine = trt.compile(length_is_an_input())

    assert [engine({"n": np.array(n, np.int32)})["y"].tolist() for n in (2, 1, 2)] == [[0, 1], [0], [0, 1]]
