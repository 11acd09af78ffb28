"""Values of which some elements are known: of what layers make of the lengths of a tensor."""

import numpy as np
import pytest

import netloop as trt
from netloop.values.enums import DataType, ElementWiseOperation, FillOperation, SampleMode
from netloop.values.types import TensorType

OPEN = (-1, 5, -1, 3)
UNKNOWN = None


@pytest.fixture
def x(network):
    return network.add_input("x", DataType.FLOAT, OPEN)


@pytest.fixture
def lengths(network, x):
    return network.add_shape(x).get_output(0)


def constant(network, numbers):
    array = np.asarray(numbers, np.int64)
    return network.add_constant(array.shape, array).get_output(0)


def known(tensor):
    """The known elements of a tensor, and None for the others."""
    elements = tensor.type.elements()
    return [] if elements is None else elements.tolist()


def test_lengths_are_known_one_by_one(lengths):
    assert known(lengths) == [UNKNOWN, 5, UNKNOWN, 3]
    assert lengths.type.value is None


@pytest.mark.parametrize(("index", "length"), [(1, 5), (-1, 3), (0, UNKNOWN)])
def test_gather_of_a_length(network, lengths, index, length):
    gathered = network.add_gather(lengths, constant(network, index), 0).get_output(0)

    assert known(gathered) == length
    assert (gathered.type.value is None) == (length is UNKNOWN)


def test_elements_move(network, lengths):
    part = network.add_slice(lengths, (3,), (3,), (-1,)).get_output(0)
    joined = network.add_concatenation([part, constant(network, [7])]).get_output(0)
    column = network.add_unsqueeze(joined, constant(network, [1])).get_output(0)
    shuffle = network.add_shuffle(column)
    shuffle.reshape_dims = (2, 2)
    shuffle.second_transpose = (1, 0)

    assert known(shuffle.get_output(0)) == [[3, 5], [UNKNOWN, 7]]


def test_numbers_that_a_run_reads_are_unknown_beside_known_ones(network):
    number = network.add_input("number", DataType.INT64, (1,))
    joined = network.add_concatenation([number, constant(network, [12])]).get_output(0)

    assert known(joined) == [UNKNOWN, 12]


def test_element_wise_results_need_the_elements_of_all_inputs(network, lengths):
    two = constant(network, [2, 2, 2, 2])
    double = network.add_elementwise(lengths, two, ElementWiseOperation.PROD).get_output(0)

    assert known(double) == [UNKNOWN, 10, UNKNOWN, 6]


def test_selection_needs_only_the_elements_that_it_selects(network, lengths):
    is_five = network.add_elementwise(lengths, constant(network, [5] * 4), ElementWiseOperation.EQUAL).get_output(0)
    length = network.add_gather(lengths, constant(network, [0]), 0).get_output(0)
    selected = network.add_select(is_five, lengths, length).get_output(0)

    assert known(selected) == [UNKNOWN, 5, UNKNOWN, UNKNOWN]


def test_shapes_of_known_and_unknown_lengths(network, x, lengths):
    batch = network.add_gather(lengths, constant(network, [0]), 0).get_output(0)
    shape = network.add_concatenation([batch, constant(network, [12])]).get_output(0)
    fill = network.add_fill((), FillOperation.LINSPACE, DataType.INT64)
    fill.set_input(0, shape)
    fill.set_input(1, constant(network, 0))
    fill.set_input(2, constant(network, [1, 1]))
    reshaped = network.add_shuffle(x)
    reshaped.set_input(1, shape)
    part = network.add_slice(fill.get_output(0), (0, 0), (1, 1), (1, 1))
    part.set_input(2, shape)

    assert fill.get_output(0).shape == (-1, 12)
    assert reshaped.get_output(0).shape == (-1, 12)
    assert part.get_output(0).shape == (-1, 12)


@pytest.mark.parametrize(("zeros_copy", "shape"), [(True, (-1, 5)), (False, (-1, 0))])
def test_zero_in_a_partly_known_shape(network, x, lengths, zeros_copy, shape):
    batch = network.add_gather(lengths, constant(network, [2]), 0).get_output(0)
    shuffle = network.add_shuffle(x)
    shuffle.zero_is_placeholder = zeros_copy
    shuffle.set_input(1, network.add_concatenation([batch, constant(network, [0])]).get_output(0))

    assert shuffle.get_output(0).shape == shape


def test_numbers_that_are_no_lengths_are_left_to_the_run(network):
    number = network.add_input("number", DataType.INT64, (1,))
    fill = network.add_fill((), FillOperation.RANDOM_UNIFORM)
    fill.set_input(0, network.add_concatenation([number, constant(network, [-4])]).get_output(0))

    assert fill.get_output(0).shape == (-1, -1)


def test_states_of_loops_have_no_known_elements(network, lengths):
    loop = network.add_loop()
    state = loop.add_recurrence(lengths)
    state.set_input(1, network.add_elementwise(state.get_output(0), lengths, ElementWiseOperation.SUM).get_output(0))

    assert known(state.get_output(0)) == [UNKNOWN] * 4


def test_types_with_other_known_elements_are_equal():
    elements = np.ma.MaskedArray(np.array([3, -1]), [False, True])

    assert TensorType(np.dtype(np.int64), (2,), partial=elements) == TensorType(np.dtype(np.int64), (2,))


# ---------------------------------------------------------------------------- soundness


class Lengths:
    """A random network over the lengths of its input."""

    OPERATIONS = (
        ElementWiseOperation.SUM,
        ElementWiseOperation.SUB,
        ElementWiseOperation.PROD,
        ElementWiseOperation.MAX,
        ElementWiseOperation.FLOOR_DIV,
    )

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.network = trt.Builder(trt.Logger()).create_network()
        x = self.network.add_input("x", DataType.FLOAT, OPEN)
        self.tensors = [self.network.add_shape(x).get_output(0), constant(self.network, [1, 2])]
        for _ in range(12):
            self.tensors.append(self._next())

    def _next(self):
        tensor, other = (self._vector() for _ in range(2))
        length = tensor.shape[0]
        match self.random.integers(6):
            case 0:
                indices = self.random.integers(-length, length, self.random.integers(1, 5))
                return self.network.add_gather(tensor, constant(self.network, indices), 0).get_output(0)
            case 1:
                return self.network.add_concatenation([tensor, other]).get_output(0)
            case 2:
                layer = self.network.add_slice(tensor, (int(self.random.integers(-3, 4)),), (4,), (-1,))
                layer.mode = self.random.choice([SampleMode.WRAP, SampleMode.FILL, SampleMode.REFLECT])
                return layer.get_output(0)
            case 3:
                narrow = self.network.add_cast(tensor, DataType.INT32 if length % 2 else DataType.FLOAT).get_output(0)
                return self.network.add_cast(narrow, DataType.INT64).get_output(0)
            case 4:
                condition = self._with_constant(tensor, ElementWiseOperation.GREATER)
                return self.network.add_select(condition, tensor, self._constant(length)).get_output(0)
            case _:
                return self._with_constant(tensor, self.random.choice(self.OPERATIONS))

    def _vector(self):
        return self.tensors[self.random.integers(len(self.tensors))]

    def _constant(self, length):
        return constant(self.network, self.random.integers(1, 5, length))

    def _with_constant(self, tensor, operation):
        return self.network.add_elementwise(tensor, self._constant(tensor.shape[0]), operation).get_output(0)


@pytest.mark.parametrize("seed", range(60))
def test_known_elements_are_those_of_every_run(seed):
    lengths = Lengths(seed)
    for tensor in lengths.tensors:
        lengths.network.mark_output(tensor)
    assert any(tensor.type.partial is not None for tensor in lengths.tensors)
    for open_lengths in ((1, 1), (4, 2), (0, 3)):
        x = np.zeros((open_lengths[0], 5, open_lengths[1], 3), np.float32)
        values = trt.evaluate(lengths.network, {"x": x})
        for tensor in lengths.tensors:
            elements = tensor.type.elements()
            unknown = np.ma.getmaskarray(elements)
            np.testing.assert_array_equal(values[tensor.name][~unknown], elements.data[~unknown], tensor.name)
