"""Published uses of loops in C++ become Python by the table of the page for users of TensorRT, call by call.

The comments are the calls in C++; the numbers to compare with are numpy's.
"""

import numpy as np
import pytest

import netloop as trt

SUM, LESS, AND = trt.ElementWiseOperation.SUM, trt.ElementWiseOperation.LESS, trt.ElementWiseOperation.AND


@pytest.fixture
def strict_network():
    """A network whose methods return None where C++ returns a null pointer."""
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    builder.none_on_error = True
    yield builder.create_network(0)
    MEMORY.clear()


MEMORY = []
"""The numbers of constants, which have to live until the network is built, as in C++."""


def constant(network, values, dims):
    """A constant of Weights at an address, as in C++."""
    array = np.ascontiguousarray(values)
    MEMORY.append(array)
    dtype = {np.dtype(np.float32): trt.float32, np.dtype(np.int32): trt.int32}[array.dtype]
    # network->addConstant(dims, Weights{type, values, count})
    layer = network.add_constant(dims, trt.Weights(dtype, array.ctypes.data, array.size))
    assert layer is not None
    return layer.get_output(0)


def axis_length(network, tensor, axis):
    """The length of an axis as a scalar."""
    shape = network.add_shape(tensor).get_output(0)
    index = constant(network, np.int32([axis]), trt.Dims())  # Dims{0, {}}: a scalar
    return network.add_gather(shape, index, 0).get_output(0)


def outputs_of(network, inputs, **outputs):
    for name, tensor in outputs.items():
        tensor.name = name
        network.mark_output(tensor)
    return trt.compile(network)(inputs)


@pytest.mark.parametrize(("dims", "axis"), [((3, 4), 0), ((3, 4), -1), ((-1, 4), 0), ((3, -1), 1), ((2, 3, 4), 1)])
def test_sum_along_an_axis(strict_network, dims, axis):
    """The converter of ``aten::cumsum`` of Torch-TensorRT: an iterator, a recurrence and a stacked output."""
    network = strict_network
    given = network.add_input("x", trt.float32, dims)
    input_dims = given.shape  # in->getDimensions()
    axis = axis + len(input_dims) if axis < 0 else axis  # input_dims.nbDims

    loop = network.add_loop()  # net->addLoop()
    if input_dims[axis] > 0:  # input_dims.d[dim]
        trip_limit = constant(network, np.int32([input_dims[axis]]), trt.Dims())
    else:
        trip_limit = axis_length(network, given, axis)
    loop.add_trip_limit(trip_limit, trt.TripLimit.COUNT)  # loop->addTripLimit(*tripLimit, TripLimit::kCOUNT)

    data = loop.add_iterator(given, axis, False).get_output(0)  # loop->addIterator(*in, dim, false)->getOutput(0)
    rest = data.shape  # data->getDimensions()
    running = loop.add_recurrence(constant(network, np.zeros(rest, np.float32), rest))
    total = network.add_elementwise(data, running.get_output(0), SUM)
    running.set_input(1, total.get_output(0))  # runningSum->setInput(1, ...)

    output = loop.add_loop_output(total.get_output(0), trt.LoopOutput.CONCATENATE, axis)
    output.set_input(1, trip_limit)  # loopOut->setInput(1, *tripLimit)
    x = np.arange(24 if len(dims) == 3 else 12, dtype=np.float32).reshape(dims)
    y = outputs_of(network, {"x": x}, y=output.get_output(0))["y"]

    assert np.array_equal(y, np.cumsum(x, axis))


def test_recurrent_layer_of_both_directions(strict_network):
    """The importer of RNN of onnx-tensorrt: two iterators, one of them reversed, and one hidden state for both."""
    network, (steps, batch, size, hidden) = strict_network, (4, 2, 3, 5)
    random = np.random.default_rng(0)
    weights, recurrent, biases = (
        random.uniform(-1, 1, dims).astype(np.float32)
        for dims in ((2, hidden, size), (2, hidden, hidden), (2, 2 * hidden))
    )
    given = network.add_input("x", trt.float32, (-1, batch, size))

    pairs = network.add_shuffle(constant(network, biases, trt.Dims2(2, 2 * hidden)))
    pairs.reshape_dims = trt.Dims3(2, 2, hidden)  # setReshapeDimensions(Dims3{2, 2, hiddenSize})
    pairs.zero_is_placeholder = False  # setZeroIsPlaceholder(false)
    bias = network.add_reduce(pairs.get_output(0), trt.ReduceOperation.SUM, 0b010, True).get_output(0)

    loop = network.add_loop()
    trip_limit = axis_length(network, given, 0)
    loop.add_trip_limit(trip_limit, trt.TripLimit.COUNT)
    rows = []
    for is_reversed in (False, True):
        iterator = loop.add_iterator(given)
        iterator.reverse = is_reversed  # setReverse(true)
        row = network.add_shuffle(iterator.get_output(0))
        row.reshape_dims = trt.Dims3(1, batch, size)
        rows.append(row.get_output(0))
    both = network.add_concatenation(rows)  # addConcatenation(tensors.data(), 2)
    both.axis = 0  # setAxis(0)

    state = loop.add_recurrence(
        constant(network, np.zeros((2, batch, hidden), np.float32), trt.Dims3(2, batch, hidden))
    )
    none, transposed = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE
    w = constant(network, weights, trt.Dims3(2, hidden, size))
    r = constant(network, recurrent, trt.Dims3(2, hidden, hidden))
    product = network.add_matrix_multiply(both.get_output(0), none, w, transposed).get_output(0)
    carried = network.add_matrix_multiply(state.get_output(0), none, r, transposed).get_output(0)
    total = network.add_elementwise(product, carried, SUM).get_output(0)
    total = network.add_elementwise(total, bias, SUM).get_output(0)
    activation = network.add_activation(total, trt.ActivationType.TANH)
    activation.alpha, activation.beta = 1.0, 0.0  # setAlpha, setBeta
    state.set_input(1, activation.get_output(0))

    stacked = loop.add_loop_output(activation.get_output(0), trt.LoopOutput.CONCATENATE, 0)
    backwards = loop.add_loop_output(activation.get_output(0), trt.LoopOutput.REVERSE, 0)
    for output in (stacked, backwards):
        output.set_input(1, trip_limit)
    last = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE)
    x = random.uniform(-1, 1, (steps, batch, size)).astype(np.float32)
    found = outputs_of(
        network, {"x": x}, rows=stacked.get_output(0), back=backwards.get_output(0), last=last.get_output(0)
    )

    h, expected = np.zeros((2, batch, hidden), np.float32), []
    for step in range(steps):
        inputs = np.stack([x[step], x[steps - 1 - step]])
        sums = biases.reshape(2, 2, hidden).sum(1, keepdims=True)
        h = np.tanh(inputs @ weights.swapaxes(1, 2) + h @ recurrent.swapaxes(1, 2) + sums)
        expected.append(h)
    np.testing.assert_allclose(found["rows"], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["back"], expected[::-1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["last"], h, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("most", "bound", "values"), [(10, 20, [1, 2, 4, 8, 16]), (3, 1000, [1, 2, 4]), (5, 0, [])])
def test_loop_with_a_count_and_a_condition(strict_network, most, bound, values):
    """The importer of Loop of onnx-tensorrt: two trip limits, a condition that is carried, and a stacked output."""
    network = strict_network
    limit, start, end = (network.add_input(name, trt.int32, ()) for name in ("limit", "start", "end"))

    loop = network.add_loop()
    loop.name = "doubling"  # setName
    loop.add_trip_limit(limit, trt.TripLimit.COUNT)
    state = loop.add_recurrence(start)
    value = state.get_output(0)
    doubled = network.add_elementwise(value, value, SUM).get_output(0)
    first = network.add_elementwise(start, end, LESS).get_output(0)
    condition = loop.add_recurrence(first)
    condition.set_input(1, network.add_elementwise(doubled, end, LESS).get_output(0))
    loop.add_trip_limit(condition.get_output(0), trt.TripLimit.WHILE)  # addTripLimit(*out, TripLimit::kWHILE)
    state.set_input(1, doubled)

    last = loop.add_loop_output(value, trt.LoopOutput.LAST_VALUE)
    rows = loop.add_loop_output(value, trt.LoopOutput.CONCATENATE, 0)
    rows.set_input(1, limit)
    inputs = {"limit": np.int32(most), "start": np.int32(1), "end": np.int32(bound)}
    found = outputs_of(network, inputs, last=last.get_output(0), rows=rows.get_output(0))

    assert found["last"] == 2 ** len(values)
    assert found["rows"].tolist() == values + [0] * (most - len(values))


def test_null_checks_are_of_none(strict_network):
    network = strict_network
    x, y = network.add_input("x", trt.float32, (2,)), network.add_input("y", trt.int32, (2,))

    assert network.add_elementwise(x, y, SUM) is None  # if (!layer)
    assert network.add_elementwise(x, x, SUM) is not None


def test_dims_and_weights_are_made_as_in_cpp():
    values = np.float32([1, 2, 3])
    weights = trt.Weights(trt.float32, values.ctypes.data, 3)  # Weights{DataType::kFLOAT, values, 3}

    assert trt.Dims() == ()  # Dims{}
    assert trt.Dims3() == (0, 0, 0)  # Dims3{}
    assert trt.Dims((3, 4)) == (3, 4) == trt.Dims2(3, 4) == trt.DimsHW(3, 4)  # Dims{2, {3, 4}}
    assert weights.numpy().tolist() == [1, 2, 3]
    assert trt.Weights().size == 0  # Weights{DataType::kFLOAT, nullptr, 0}
