"""Weight folding: layers that are computed once, at load time."""

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.lower.weight_folding import SMALLEST, find_weight_folding
from netloop.model.nest import Scopes, nest
from tests.support.devices import assert_allclose
from tests.support.networks import combine, constant, mark

Op = trt.ElementWiseOperation
LENGTH = SMALLEST // 4


@pytest.fixture
def weights(network):
    return constant(network, np.ones(LENGTH, np.float32))


def folding(network, is_on_host=False):
    return find_weight_folding(nest(network, Scopes(network)), network.outputs, network.types, is_on_host)


def repeated(network, tensor, times):
    layer = network.add_slice(tensor, (0,), (times * LENGTH,), (1,))
    layer.mode = trt.SampleMode.WRAP
    return layer.get_output(0)


def test_output_that_depends_on_weights_only_is_folded(network, weights):
    y = network.add_unary(weights, trt.UnaryOperation.NEG).get_output(0)
    mark(network, y=y)

    assert folding(network).tensors == [y]


def test_only_tensors_that_the_rest_reads_are_kept(network, weights):
    x = network.add_input("x", trt.float32, (LENGTH,))
    once = network.add_unary(weights, trt.UnaryOperation.NEG).get_output(0)
    twice = network.add_unary(once, trt.UnaryOperation.ABS).get_output(0)
    mark(network, y=combine(network, x, twice))

    assert folding(network).tensors == [twice]


@pytest.mark.parametrize(("times", "is_folded"), [(4, True), (5, False)])
def test_result_of_more_than_four_times_its_inputs_is_left_to_the_call(network, weights, times, is_folded):
    y = repeated(network, weights, times)
    mark(network, y=y)

    assert folding(network).tensors == [y] * is_folded


@pytest.mark.parametrize("transposes", [False, True])
def test_reshapes_at_the_end_are_left_to_the_call_and_transposes_are_not(network, weights, transposes):
    negative = network.add_unary(weights, trt.UnaryOperation.NEG).get_output(0)
    shuffled = network.add_shuffle(negative)
    shuffled.reshape_dims = (2, LENGTH // 2)
    shuffled.second_transpose = trt.Permutation([1, 0]) if transposes else None
    mark(network, y=shuffled.get_output(0))

    assert folding(network).tensors == [shuffled.get_output(0) if transposes else negative]


def test_small_weights_are_folded_where_the_host_calls(network):
    y = network.add_unary(constant(network, [1], np.float32), trt.UnaryOperation.NEG).get_output(0)
    row = network.add_shuffle(y)
    row.reshape_dims = (1, 1)
    mark(network, y=row.get_output(0))

    assert folding(network, is_on_host=True).tensors == [row.get_output(0)]


def test_small_weights_are_left_to_the_call(network):
    y = network.add_unary(constant(network, np.ones(LENGTH - 1, np.float32)), trt.UnaryOperation.NEG).get_output(0)
    mark(network, y=y)

    assert folding(network).steps == []


def put_together(network, weights):
    """Two rows of weights, concatenated and transposed."""
    rows = network.add_concatenation([weights, weights])
    shuffled = network.add_shuffle(rows.get_output(0))
    shuffled.reshape_dims = (2, LENGTH)
    shuffled.second_transpose = trt.Permutation([1, 0])
    return shuffled.get_output(0)


@pytest.mark.parametrize("computes", [False, True])
def test_moves_of_weights_are_computed_by_numpy(network, weights, computes):
    y = put_together(network, weights)
    y = combine(network, y, y) if computes else y
    mark(network, y=y)

    assert not folding(network).others
    assert trt.compile(network)({})["y"].tolist() == trt.evaluate(network, {})["y"].tolist()


def test_numpy_converts_and_dequantizes_weights(network):
    small = network.add_cast(constant(network, np.arange(LENGTH, dtype=np.int32) % 100), trt.int8).get_output(0)
    large = network.add_dequantize(small, constant(network, np.float32(0.5)), trt.float32).get_output(0)
    mark(network, y=large)

    assert not folding(network).others
    assert trt.compile(network)({})["y"].tolist() == [index % 100 / 2 for index in range(LENGTH)]


@pytest.mark.parametrize("row", [-1, 1, 2, -3])
def test_numpy_gathers_rows_and_zeros_where_there_is_none(network, row):
    table = constant(network, np.arange(2 * LENGTH, dtype=np.float32).reshape(2, LENGTH))
    mark(network, y=network.add_gather(table, constant(network, np.array([0, row])), 0).get_output(0))
    (first, found) = trt.compile(network)({})["y"].tolist()

    assert not folding(network).others
    assert first == [*range(LENGTH)]
    assert found == ([*range(LENGTH, 2 * LENGTH)] if row in (-1, 1) else [0] * LENGTH)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("mode", [trt.GatherMode.DEFAULT, trt.GatherMode.ELEMENT])
@pytest.mark.parametrize("length", [3, 0])
def test_gather_by_numpy_is_that_of_a_program(network, axis, mode, length):
    data = np.arange(length * 4 * 5, dtype=np.float32).reshape(length, 4, 5)
    indices = np.random.default_rng(0).integers(-7, 7, (length, 3, 2))
    layer = network.add_gather(constant(network, data), constant(network, indices), axis)
    layer.mode = mode
    made = layer.zero_filled(data, indices)

    assert made.dtype == data.dtype
    assert made.tolist() == layer.lower(data, indices).tolist()


@pytest.mark.parametrize("runs_on_host", [False, True])
@pytest.mark.parametrize("op", [Op.DIV, Op.FLOOR_DIV, Op.MOD, Op.FMOD, Op.POW])
def test_only_the_quotient_of_a_zero_among_weights_is_undefined(network, op, runs_on_host):
    dividend = constant(network, np.full(LENGTH, -1 if op is Op.POW else 7, np.int32))
    divisor = constant(network, np.arange(LENGTH), np.int32)
    if op is Op.POW:  # 0 to the power of -1
        dividend, divisor = divisor, dividend
    mark(network, y=combine(network, dividend, divisor, op))
    if runs_on_host:
        mark(network, places=network.add_non_zero(network.add_input("x", trt.int32, (2,))).get_output(0))

    y = np.asarray(trt.compile(network)({tensor.name: np.ones(2, np.int32) for tensor in network.inputs})["y"])

    expected = {Op.POW: [1, 0, 0], Op.MOD: [0, 1, 1], Op.FMOD: [0, 1, 1]}.get(op, [7, 3, 2])
    np.testing.assert_array_equal(y[1:4], expected)


@pytest.mark.parametrize(("index", "expected"), [(2, 2), (-1, LENGTH - 1), (LENGTH, 0), (-LENGTH - 1, 0)])
def test_numpy_gathers_single_elements_of_weights(network, index, expected):
    numbers = constant(network, np.arange(LENGTH, dtype=np.int32))
    place = constant(network, np.array(index, np.int32))
    mark(network, y=network.add_gather(numbers, place, 0).get_output(0))

    assert not folding(network).others
    assert trt.compile(network)({})["y"].tolist() == expected


def test_results_of_rank_0_that_numpy_folds_are_arrays(network, weights):
    number = network.add_gather(weights, constant(network, np.array(0)), 0).get_output(0)
    for op in (trt.UnaryOperation.NEG, trt.UnaryOperation.EXP):
        number = network.add_unary(number, op).get_output(0)
    mark(network, y=network.add_cast(number, trt.int32).get_output(0))
    folded = folding(network).by_numpy({weights: np.ones(LENGTH, np.float32)}, network.types)

    assert {type(value) for value in folded.values()} == {np.ndarray}


def test_gather_by_other_than_one_axis_is_not_by_numpy(network, weights):
    rows = constant(network, np.zeros((1, 1), np.int32))
    mark(network, y=network.add_gather_v2(weights, rows, trt.GatherMode.ND).get_output(0))

    assert folding(network).others


@pytest.mark.parametrize("computes", [False, True])
def test_weights_are_folded_while_jax_is_tracing(network, weights, computes):
    y = put_together(network, weights)
    mark(network, y=combine(network, y, y) if computes else y)

    assert jax.jit(lambda: trt.compile(network)({})["y"])().tolist() == trt.evaluate(network, {})["y"].tolist()


def test_moves_of_weights_are_computed_anew_in_a_refit(network, weights):
    weights.producer.name = "rows"
    mark(network, y=put_together(network, weights))
    engine = trt.compile(network)
    refitter = trt.Refitter(engine, trt.Logger(trt.Logger.ERROR))
    refitter.set_named_weights("rows", np.arange(LENGTH, dtype=np.float32))
    refitter.refit_cuda_engine()

    assert engine({})["y"].tolist() == [[index, index] for index in range(LENGTH)]


def test_steps_after_one_that_numpy_does_not_compute_are_part_of_the_program(network, weights):
    vector = trt.MatrixOperation.VECTOR
    total = network.add_matrix_multiply(weights, vector, put_together(network, weights), trt.MatrixOperation.NONE)
    mark(network, y=network.add_unary(total.get_output(0), trt.UnaryOperation.NEG).get_output(0))
    others = [type(other.layer) for other in folding(network).others]

    assert others == [trt.IMatrixMultiplyLayer, trt.IUnaryLayer]
    assert_allclose(trt.compile(network)({})["y"], trt.evaluate(network, {})["y"], rtol=1e-6)


def test_strings_are_no_weights_of_a_device(network):
    numbers = constant(network, np.arange(LENGTH, dtype=np.int32))
    mark(network, y=network.add_cast(numbers, trt.string).get_output(0))

    assert not folding(network).steps
    assert trt.compile(network)({})["y"].tolist() == [str(index) for index in range(LENGTH)]


def test_layers_with_a_result_that_is_kept_give_those_that_folded_layers_read(network):
    x, table = network.add_input("x", trt.float32, (1, 64)), np.arange(4096, dtype=np.float32).reshape(64, 64) % 101
    top = network.add_topk(constant(network, table), trt.TopKOperation.MAX, 64, 1 << 1)
    values, indices = top.get_output(0), network.add_cast(top.get_output(1), trt.int64).get_output(0)
    other = network.add_gather_v2(constant(network, -table), indices, trt.GatherMode.ELEMENT)
    other.axis = 1
    mark(network, y=combine(network, x, values), z=combine(network, x, other.get_output(0)))
    inputs = {"x": np.ones((1, 64), np.float32)}
    function, weights = trt.to_jax(network, load=True)

    assert folding(network).tensors == [values, top.get_output(1), other.get_output(0)]
    for outputs in (trt.compile(network)(inputs), function(weights, inputs)):
        for name, array in trt.evaluate(network, inputs).items():
            np.testing.assert_array_equal(outputs[name], array, err_msg=name)
