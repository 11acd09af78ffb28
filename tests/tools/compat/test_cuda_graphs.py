"""Graphs of CUDA's runtime on the host: captured work runs at each launch."""

import numpy as np
import pytest

import netloop.tensorrt as trt
from netloop.tools.compat import cuda_runtime as cudart
from netloop.tools.compat.status import cudaError_t
from tests.support.log import Log
from tests.tools.compat.test_cuda_runtime import results

X = np.arange(3, dtype=np.float32)
TO_DEVICE, TO_HOST = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
ILLEGAL, UNSUPPORTED = cudaError_t.cudaErrorIllegalState, cudaError_t.cudaErrorStreamCaptureUnsupported


@pytest.fixture
def stream():
    return results(cudart.cudaStreamCreate())


def doubling(log=None):
    """A context that doubles a vector of any length."""
    builder = trt.Builder(log or Log())
    network, config, profile = builder.create_network(), builder.create_builder_config(), trt.IOptimizationProfile()
    x = network.add_input("x", trt.float32, (-1,))
    y = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)
    profile.set_shape("x", (1,), (3,), (5,))
    config.add_optimization_profile(profile)
    return builder.build_engine_with_config(network, config).create_execution_context()


def captured(stream, *calls):
    """An instance of the graph of calls on a stream."""
    results(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    for call in calls:
        call()
    graph = results(cudart.cudaStreamEndCapture(stream))
    instance = results(cudart.cudaGraphInstantiate(graph, 0))
    results(cudart.cudaGraphDestroy(graph))
    return instance


def test_captured_work_is_done_at_each_launch_and_not_before(stream):
    context, x, y = doubling(), X.copy(), np.zeros_like(X)
    addresses = [results(cudart.cudaMalloc(X.nbytes)) for _ in "xy"]
    context.set_input_shape("x", (3,))
    for name, address in zip("xy", addresses, strict=True):
        context.set_tensor_address(name, address)
    instance = captured(
        stream,
        lambda: results(cudart.cudaMemcpyAsync(addresses[0], x.ctypes.data, x.nbytes, TO_DEVICE, stream)),
        lambda: context.execute_async_v3(stream),
        lambda: results(cudart.cudaMemcpyAsync(y.ctypes.data, addresses[1], y.nbytes, TO_HOST, stream)),
    )
    before = y.copy()
    results(cudart.cudaGraphLaunch(instance, stream))
    once = y.copy()
    x += 10
    results(cudart.cudaGraphLaunch(instance, stream))

    np.testing.assert_array_equal([before, once, y], [0 * X, 2 * X, 2 * (X + 10)])


def test_graph_keeps_the_addresses_and_shapes_of_its_capture(stream):
    context, y, other = doubling(), np.zeros_like(X), np.zeros(1, np.float32)
    context.set_input_shape("x", (3,))
    context.set_tensor_address("x", X.ctypes.data)
    context.set_tensor_address("y", y.ctypes.data)
    instance = captured(stream, lambda: context.execute_async_v3(stream))
    context.set_input_shape("x", (1,))
    context.set_tensor_address("y", other.ctypes.data)
    results(cudart.cudaGraphLaunch(instance, stream))

    np.testing.assert_array_equal(y, 2 * X)
    assert [context.get_tensor_shape("x"), context.get_tensor_address("y"), other[0]] == [(1,), other.ctypes.data, 0]


def test_launch_can_be_captured_and_fills_are(stream):
    y = results(cudart.cudaMalloc(2))
    inner = captured(stream, lambda: results(cudart.cudaMemsetAsync(y, 7, 1, stream)))
    outer = captured(
        stream,
        lambda: results(cudart.cudaGraphLaunch(inner, stream)),
        lambda: results(cudart.cudaMemcpy2DAsync(y + 1, 1, y, 1, 1, 1, cudart.cudaMemcpyKind(3), stream)),
    )
    results(cudart.cudaGraphUpload(outer, stream))
    results(cudart.cudaGraphLaunch(outer, stream))
    bytes_ = np.zeros(2, np.uint8)
    results(cudart.cudaMemcpy(bytes_, y, 2, TO_HOST))

    np.testing.assert_array_equal(bytes_, [7, 7])


def test_run_that_fails_fails_the_launch(stream):
    log = Log()
    context = doubling(log)
    instance = captured(stream, lambda: context.execute_async_v3(stream))

    assert cudart.cudaGraphLaunch(instance, stream) == (cudaError_t.cudaErrorLaunchFailure,)
    assert "x" in log.errors()[-1]


def test_what_a_capture_forbids_is_a_status(stream):
    status = cudart.cudaStreamCaptureStatus
    none = results(cudart.cudaStreamIsCapturing(stream))
    results(cudart.cudaStreamBeginCapture(stream, GLOBAL))

    assert [none, results(cudart.cudaStreamIsCapturing(stream))] == [*status][:2]
    assert cudart.cudaStreamBeginCapture(stream, GLOBAL) == (ILLEGAL,)
    assert cudart.cudaStreamSynchronize(stream) == cudart.cudaStreamQuery(stream) == (UNSUPPORTED,)
    results(cudart.cudaStreamEndCapture(stream))
    assert cudart.cudaStreamEndCapture(stream) == (ILLEGAL, None)
    assert cudart.cudaStreamBeginCapture(0, GLOBAL) == (UNSUPPORTED,)
    results(cudart.cudaStreamSynchronize(stream))


def test_instance_that_was_destroyed_cannot_be_launched(stream):
    instance = captured(stream)
    results(cudart.cudaGraphExecDestroy(instance))

    assert cudart.cudaGraphLaunch(instance, stream) == (cudaError_t.cudaErrorInvalidResourceHandle,)
