"""Networks with an implicit batch, against numpy on each example."""

import numpy as np
import pytest

from netloop.tools.compat.versions import module_of
from tests.support.log import Log

trt = module_of(7)


def engine_of(fill, most=4, log=None):
    builder = trt.Builder(log or Log())
    network = builder.create_network()
    for name, tensor in fill(network).items():
        tensor.name = name
        network.mark_output(tensor)
    builder.max_batch_size = most
    return builder.build_cuda_engine(network)


def ran(engine, batch, *arrays):
    """The outputs of a batch through addresses; None if the run is refused."""
    context = engine.create_execution_context()
    shapes = (engine.get_binding_shape(index) for index in range(len(arrays), engine.num_bindings))
    outputs = [np.zeros((batch, *shape), np.float32) for shape in shapes]
    addresses = [array.ctypes.data for array in (*arrays, *outputs)]
    return outputs if context.execute(batch, addresses) else None


def softmax_and_sum(network):
    x = network.add_input("x", trt.float32, (2, 3))
    rows = network.add_softmax(x)
    rows.axes = 1 << 1
    sums = network.add_reduce(x, trt.ReduceOperation.SUM, 1 << 0, False)
    return {"rows": rows.get_output(0), "sums": sums.get_output(0)}


X = np.linspace(-1, 1, 18, dtype=np.float32).reshape(3, 2, 3)


def test_axes_count_without_the_batch():
    engine = engine_of(softmax_and_sum)
    rows, sums = ran(engine, 3, X)

    assert [engine.has_implicit_batch_dimension, engine.max_batch_size] == [True, 4]
    assert [engine.get_binding_shape(index) for index in range(3)] == [(2, 3), (2, 3), (3,)]
    np.testing.assert_allclose(rows, np.exp(X) / np.exp(X).sum(2, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(sums, X.sum(1), atol=1e-6)


def test_order_of_the_outputs_is_that_of_the_marks():
    engine = engine_of(lambda network: dict(reversed(softmax_and_sum(network).items())))

    assert [*engine] == ["x", "sums", "rows"]


@pytest.mark.parametrize("batch", [0, 5])
def test_batch_outside_of_the_largest_is_refused(batch):
    log = Log()

    assert ran(engine_of(softmax_and_sum, log=log), batch, np.zeros((5, 2, 3), np.float32)) is None
    assert log.errors() == [f"the batch is {batch}, and may be 1 to 4"]


@pytest.mark.parametrize("run", ["execute_v2", "execute_async_v2"])
def test_run_without_a_batch_says_which_networks_have_one(run):
    log = Log()
    context = engine_of(softmax_and_sum, log=log).create_execution_context()

    assert not getattr(context, run)([X.ctypes.data] * 3)
    assert "created with an implicit batch, and its length is not set" in log.errors()[-1]
    assert "EXPLICIT_BATCH" in log.errors()[-1]
    outputs = np.zeros(6, np.float32), np.zeros(3, np.float32)
    assert context.execute(1, [array.ctypes.data for array in (X, *outputs)])


def test_plan_keeps_the_implicit_batch():
    plan = engine_of(softmax_and_sum, most=7).serialize()
    engine = trt.Runtime(Log()).deserialize_cuda_engine(plan, None)

    assert [engine.has_implicit_batch_dimension, engine.max_batch_size, engine.get_binding_shape("x")] == [
        True,
        7,
        (2, 3),
    ]


def images(network):
    x = network.add_input("x", trt.float32, (2, 4, 4))
    kernel, bias = np.arange(24, dtype=np.float32).reshape(3, 2, 2, 2) / 24, np.float32([0, 1, -1])
    convolved = network.add_convolution(x, 3, (2, 2), kernel, bias)
    convolved.stride = (2, 2)
    pooled = network.add_pooling(convolved.get_output(0), trt.PoolingType.MAX, (2, 2))
    full = network.add_fully_connected(pooled.get_output(0), 2, np.float32([1, 2, 3, -1, 0, 1]), np.float32([0.5, 0]))
    assert [convolved.kernel_size, pooled.window_size, full.num_output_channels] == [(2, 2), (2, 2), 2]
    assert [tensor.get_output(0).shape for tensor in (convolved, pooled, full)] == [(3, 2, 2), (3, 1, 1), (2, 1, 1)]
    assert convolved.get_input(0) is x
    return {"y": full.get_output(0)}


def test_layers_of_images_take_examples():
    x = np.random.default_rng(0).standard_normal((3, 2, 4, 4)).astype(np.float32)
    (y,) = ran(engine_of(images), 3, x)

    kernel, windows = np.arange(24).reshape(3, 8) / 24, x.reshape(3, 2, 2, 2, 2, 2).transpose(0, 2, 4, 1, 3, 5)
    convolved = windows.reshape(3, 2, 2, 8) @ kernel.T + [0, 1, -1]
    np.testing.assert_allclose(
        y[..., 0, 0], convolved.max((1, 2)) @ np.array([[1, -1], [2, 0], [3, 1]]) + [0.5, 0], rtol=1e-5
    )


def test_network_of_constants_has_no_batch():
    log = Log()

    assert (
        engine_of(lambda network: {"y": network.add_constant((1,), np.ones(1, np.float32)).get_output(0)}, log=log)
        is None
    )
    assert log.errors()[0].startswith("NL678: the network has an implicit batch and no input")


def test_network_of_examples_stays_as_it_is():
    builder = trt.Builder(Log())
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (2,))
    network.mark_output(network.add_identity(x).get_output(0))

    config = builder.create_builder_config()
    assert all(builder.build_engine(network, config) is not None for _ in range(2))
    assert config.num_optimization_profiles == 0
    assert [network.has_implicit_batch_dimension, x.shape, len(network)] == [True, (2,), 1]
