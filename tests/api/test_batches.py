"""Any number of rows by programs of a few batch sizes."""

import numpy as np
import pytest

import netloop as trt
from tests.support.networks import constant, mark

SIZES = (2, 8)
WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4) / 10


def products(network):
    """Products of rows [3] with a matrix."""
    x = network.add_input("x", trt.float32, (-1, 3))
    none = trt.MatrixOperation.NONE
    made = network.add_matrix_multiply(x, none, constant(network, WEIGHTS), none).get_output(0)
    return mark(network, y=network.add_activation(made, trt.ActivationType.TANH).get_output(0))


def centred(network):
    """Rows [3] less the mean of all rows."""
    x = network.add_input("x", trt.float32, (-1, 3))
    mean = network.add_reduce(x, trt.ReduceOperation.AVG, 1 << 0, True).get_output(0)
    return mark(network, y=network.add_elementwise(x, mean, trt.ElementWiseOperation.SUB).get_output(0))


def scaled(network):
    """Rows [] times a number that they share, and the square of each."""
    x, scale = network.add_input("x", trt.float32, (-1,)), network.add_input("scale", trt.float32, (1,))
    y = network.add_elementwise(x, scale, trt.ElementWiseOperation.PROD).get_output(0)
    return mark(network, y=y, z=network.add_elementwise(x, x, trt.ElementWiseOperation.PROD).get_output(0))


def rows(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9, 25])
def test_any_number_of_rows_gives_what_numpy_does(network, count):
    batches = trt.Batches(trt.compile(products(network)), SIZES)
    x = rows(count)

    found = batches({"x": x})

    np.testing.assert_allclose(found["y"], np.tanh(x @ WEIGHTS), rtol=1e-5)
    assert isinstance(found["y"], np.ndarray)


def test_there_are_programs_of_the_sizes_only(network):
    engine = trt.compile(products(network))
    batches = trt.Batches(engine, SIZES)
    for count in (5, 1, 2, 9, 6, 30):
        batches({"x": rows(count)})

    assert engine.program_count == len(SIZES)


def test_programs_are_compiled_ahead(network):
    engine = trt.compile(products(network))
    trt.Batches(engine, [8, 2, 2, 4]).compile({"x": rows(1)})

    assert engine.program_count == 3


def test_input_that_rows_share_is_not_padded(network):
    batches = trt.Batches(trt.compile(scaled(network)), SIZES, shared=["scale"])

    found = batches({"x": np.float32([1, 2, 3]), "scale": np.float32([10])})

    assert [found["y"].tolist(), found["z"].tolist()] == [[10, 20, 30], [1, 4, 9]]


def test_rows_that_depend_on_each_other_are_refused(network):
    batches = trt.Batches(trt.compile(centred(network)), SIZES)

    with pytest.raises(trt.NetworkError, match="NL615: rows of output 'y' change with rows that are none of theirs"):
        batches({"x": rows(3)})


def test_output_without_rows_is_refused(network):
    x = network.add_input("x", trt.float32, (-1, 3))
    total = network.add_reduce(x, trt.ReduceOperation.SUM, 1 << 0, False).get_output(0)

    with pytest.raises(trt.NetworkError, match=r"NL615: 'y' is float32\[3\], whose first axis"):
        trt.Batches(trt.compile(mark(network, y=total)), SIZES)


def test_output_of_another_length_is_refused(network):
    x = network.add_input("x", trt.float32, (-1, 3))
    flat = network.add_shuffle(x)
    flat.reshape_dims = (-1,)
    batches = trt.Batches(trt.compile(mark(network, y=flat.get_output(0))), SIZES)

    with pytest.raises(trt.NetworkError, match="output 'y' has 6 rows for inputs of 2"):
        batches({"x": rows(1)})


def test_input_of_a_fixed_length_is_refused(network):
    with pytest.raises(trt.NetworkError, match=r"NL615: 'scale' is float32\[1\]"):
        trt.Batches(trt.compile(scaled(network)), SIZES)


def test_inputs_of_different_numbers_of_rows_are_told(network):
    network.add_input("other", trt.float32, (-1,))
    batches = trt.Batches(trt.compile(products(network)), SIZES)

    with pytest.raises(trt.InputError, match="NL615: inputs have different numbers of rows: 'x' has 3, 'other' has 2"):
        batches({"x": rows(3), "other": np.float32([1, 2])})


def test_inputs_that_the_engine_refuses_are_told_as_it_does(network):
    batches = trt.Batches(trt.compile(products(network)), SIZES)

    with pytest.raises(trt.InputError, match="NL603"):
        batches({"x": np.zeros((3, 3))})
    with pytest.raises(trt.InputError, match="NL602"):
        batches({})


def test_failure_of_a_row_is_told(network):
    x = network.add_input("x", trt.float32, (-1,))
    zero = constant(network, [0], np.float32)
    above = network.add_elementwise(x, zero, trt.ElementWiseOperation.GREATER).get_output(0)
    network.add_assertion(above, "positive")
    batches = trt.Batches(trt.compile(mark(network, y=network.add_identity(x).get_output(0))), SIZES)

    assert batches({"x": np.float32([1, 2, 3])})["y"].tolist() == [1, 2, 3]
    with pytest.raises(trt.ExecutionError, match="positive"):
        batches({"x": np.float32([1, 2, -3])})


@pytest.mark.parametrize(
    ("sizes", "shared", "message"),
    [((), (), "positive"), ((0, 2), (), "positive"), ((2,), ["X"], "no input 'X'")],
)
def test_wrong_arguments_are_refused(network, sizes, shared, message):
    with pytest.raises(ValueError, match=message):
        trt.Batches(trt.compile(products(network)), sizes, shared=shared)
