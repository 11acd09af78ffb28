"""Inputs and outputs in memory of a GPU, in the order of a CUDA stream: on a runtime that records what it is asked."""

import gc

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.api.transfers import HostTransfers, StreamTransfers, transfers
from netloop.process.cuda_runtime import LEGACY
from netloop.values.types import numpy_type
from tests.support import fake_cuda, networks
from tests.support.builds import doubling, doubling_network, length_by_value
from tests.support.fake_cuda import DEVICE, HOST, MANAGED
from tests.support.log import Log

X = np.arange(6, dtype=np.float32).reshape(2, 3)
FLOAT = np.float32


@pytest.fixture
def cuda(monkeypatch):
    """The fake runtime."""
    return fake_cuda.install(monkeypatch)


def contexts(build, log=None):
    """A context of the engine of the network that a function builds."""
    builder = trt.Builder(log or Log())
    network = builder.create_network()
    build(network)
    return builder.build_engine_with_config(network, builder.create_builder_config()).create_execution_context()


def double(shape=(2, 3), dtype=trt.float32):
    def build(network):
        x = network.add_input("x", dtype, shape)
        networks.mark(network, y=networks.combine(network, x, x))

    return build


def same(dtype, shape=(2, 3)):
    def build(network):
        x = network.add_input("x", dtype, shape)
        networks.mark(network, y=network.add_shuffle(x).get_output(0))

    return build


def two(network):
    """``a = x + y`` and ``b = x * y``."""
    x, y = (network.add_input(name, trt.float32, (2, 3)) for name in "xy")
    networks.mark(
        network, a=networks.combine(network, x, y), b=networks.combine(network, x, y, trt.ElementWiseOperation.PROD)
    )


def bind(context, **addresses):
    for name, address in addresses.items():
        assert context.set_tensor_address(name, address)


# ---------------------------------------------------------------------------- copies


def test_aligned_inputs_are_not_copied_and_each_output_is_copied_once(cuda):
    context, stream = contexts(two), cuda.stream()
    x, y, a, b = cuda.put(X), cuda.put(X + 1), cuda.allocate(X.nbytes), cuda.allocate(X.nbytes)
    bind(context, x=x, y=y, a=a, b=b)

    assert context.execute_async_v3(stream)
    assert cuda.gpu.views == [(x, x), (y, y)]
    assert [(dst, size, on) for dst, _, size, on in cuda.copies] == [(a, 24, stream), (b, 24, stream)]
    assert cuda.synchronized == []
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(a, FLOAT, (2, 3)), 2 * X + 1)
    np.testing.assert_array_equal(cuda.get(b, FLOAT, (2, 3)), X * (X + 1))


@pytest.mark.parametrize("where", ["unaligned", "other device", "other context", "pinned"])
def test_input_that_a_program_cannot_read_where_it_is_is_copied_on_the_stream(cuda, where):
    context, stream, y = contexts(double()), cuda.stream(), cuda.allocate(X.nbytes)
    how = {"unaligned": {"offset": 4}, "other device": {"device": 1}, "pinned": {"kind": HOST}}.get(where, {})
    cuda.context += where == "other context"
    x = cuda.put(0 * X, **how)
    cuda.fill(stream, x, X)
    bind(context, x=x, y=y)
    before = len(cuda.blocks)

    assert context.execute_async_v3(stream)
    assert [source for _, source, _, _ in cuda.copies][:1] == [x]
    assert len(cuda.copies) == 2
    assert cuda.synchronized == []
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(y, FLOAT, (2, 3)), 2 * X)
    assert len(cuda.blocks) == before  # the copy is freed


def test_managed_memory_is_read_where_it_is(cuda):
    context, stream = contexts(double()), cuda.stream()
    x, y = cuda.put(X, MANAGED), cuda.allocate(X.nbytes, MANAGED)
    bind(context, x=x, y=y)

    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    assert cuda.gpu.views == [(x, x)]
    np.testing.assert_array_equal(cuda.get(y, FLOAT, (2, 3)), 2 * X)


def test_memory_of_a_donated_input_stays_as_it_is(cuda):
    network = trt.INetworkDefinition()
    double()(network)
    context, stream = trt.compile(network, donate=["x"]).create_execution_context(), cuda.stream()
    x, y = cuda.put(X), cuda.allocate(X.nbytes)
    bind(context, x=x, y=y)

    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    assert cuda.gpu.views[0][0] != x
    np.testing.assert_array_equal(cuda.get(x, FLOAT, (2, 3)), X)
    np.testing.assert_array_equal(cuda.get(y, FLOAT, (2, 3)), 2 * X)


def test_place_of_memory_is_decided_for_each_address(cuda):
    context, stream = contexts(two), cuda.stream()
    x, y, a, b = cuda.put(X), X + 1, np.zeros_like(X), cuda.allocate(X.nbytes, HOST)
    bind(context, x=x, y=y.ctypes.data, a=a.ctypes.data, b=b)

    assert context.execute_async_v3(stream)
    np.testing.assert_array_equal(a, 2 * X + 1)  # the host has written it
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(b, FLOAT, (2, 3)), X * (X + 1))


def test_engine_on_the_host_takes_memory_of_a_device_too(cuda, monkeypatch):
    monkeypatch.setattr(fake_cuda.CudaDevice, "of", lambda device: None)
    context, stream = contexts(double()), cuda.stream()
    x, y = cuda.put(0 * X), cuda.allocate(X.nbytes)
    cuda.fill(stream, x, X)
    bind(context, x=x, y=y)

    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(y, FLOAT, (2, 3)), 2 * X)


@pytest.mark.parametrize(
    "dtype", [trt.float16, trt.bfloat16, trt.bool, trt.int64, trt.uint8, trt.fp8, trt.int4, trt.DataType.FP4]
)
def test_elements_of_every_size_come_and_go(cuda, dtype):
    context, stream = contexts(same(dtype, (4,))), cuda.stream()
    values = np.array([0, 1, 1, 0]).astype(numpy_type(dtype))
    x, y = cuda.put(values.view(np.uint8)), cuda.allocate(values.nbytes)
    bind(context, x=x, y=y)

    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(y, values.dtype, (4,)), values)


@pytest.mark.parametrize("is_last", [False, True])
def test_stream_waits_for_the_very_array_that_it_copies(cuda, is_last):
    """An array with another order of axes is the result of one more program."""

    def build(network):
        x = network.add_input("x", trt.float32, (2, 3, 4))
        y = networks.combine(network, x, x)
        networks.mark(network, y=y)
        y.allowed_formats = 1 << int(trt.TensorFormat.HWC if is_last else trt.TensorFormat.LINEAR)

    context, stream, waited, real = contexts(build), cuda.stream(), [], cuda.gpu.wait
    cuda.gpu.wait = lambda array, handle: [waited.append(array.unsafe_buffer_pointer()), real(array, handle)]
    bind(context, x=cuda.put(np.zeros((2, 3, 4), FLOAT)), y=cuda.allocate(96))

    assert context.execute_async_v3(stream)
    assert [source for _, source, _, _ in cuda.copies] == waited


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_scalars_and_empty_tensors_come_and_go(cuda, shape):
    context, stream = contexts(double(shape)), cuda.stream()
    value = np.full(shape, 3, FLOAT)
    x, y = cuda.put(value), cuda.allocate(value.nbytes)
    bind(context, x=x, y=y)

    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(y, FLOAT, shape), 2 * value)


def test_inputs_and_outputs_may_share_memory(cuda):
    context, stream = trt.compile(networks.swap()).create_execution_context(), cuda.stream()
    names = context.engine.tensor_names
    inputs = [name for name in names if context.engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT]
    outputs = [name for name in names if name not in inputs]
    arrays = [np.arange(8, dtype=trt.nptype(context.engine.get_tensor_dtype(name)))[:6] for name in inputs]
    shapes = [tuple(context.get_tensor_shape(name)) for name in inputs]
    arrays = [
        np.resize(array, shape).astype(array.dtype) + number
        for number, (array, shape) in enumerate(zip(arrays, shapes, strict=True))
    ]
    expected = context.engine.executable(dict(zip(inputs, arrays, strict=True)))
    places = [cuda.put(array) for array in arrays]
    bind(context, **dict(zip(inputs, places, strict=True)), **dict(zip(outputs, places, strict=False)))

    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    for name, place in zip(outputs, places, strict=False):
        result = np.asarray(expected[name])
        np.testing.assert_array_equal(cuda.get(place, result.dtype, result.shape), result)


def test_output_that_is_an_input_is_copied_before_its_memory_is_written(cuda):
    """XLA copies such an output today; a runtime that passes it on would hand out the caller's memory."""
    stream, y = cuda.stream(), cuda.allocate(X.nbytes)
    with StreamTransfers(cuda.runtime, stream, cuda.gpu) as run:
        view = run.read(cuda.put(X), np.dtype(FLOAT), X.shape)
        for array in run.computed({"y": view}).values():
            run.write(y, array)

    assert len(cuda.copies) == 2
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(y, FLOAT, X.shape), X)


def test_channels_are_last_in_memory_of_a_device(cuda):
    builder = trt.Builder(Log())
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (2, 3, 4, 5))
    networks.mark(network, y=networks.combine(network, x, x))
    for tensor in (x, network.get_output(0)):
        tensor.allowed_formats = 1 << int(trt.TensorFormat.HWC)
    engine = builder.build_engine_with_config(network, builder.create_builder_config())
    context, stream = engine.create_execution_context(), cuda.stream()
    array = np.arange(120, dtype=FLOAT).reshape(2, 4, 5, 3)
    place, y = cuda.put(array), cuda.allocate(array.nbytes)
    bind(context, x=place, y=y)

    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(y, FLOAT, array.shape), 2 * array)


# ---------------------------------------------------------------------------- order


def test_program_starts_after_the_work_that_is_on_the_stream(cuda):
    context, stream = contexts(double()), cuda.stream()
    x, y = cuda.put(0 * X), cuda.allocate(X.nbytes)
    bind(context, x=x, y=y)
    cuda.fill(stream, x, X)

    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(y, FLOAT, (2, 3)), 2 * X)


def test_program_waits_for_the_copy_of_its_second_input_too(cuda):
    context, stream = contexts(two), cuda.stream()
    x, y, a = cuda.put(X), cuda.put(0 * X, offset=4), cuda.allocate(X.nbytes)
    cuda.fill(stream, y, X)
    bind(context, x=x, y=y, a=a, b=cuda.allocate(X.nbytes))

    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(a, FLOAT, (2, 3)), 2 * X)


def test_work_that_is_enqueued_next_finds_the_outputs_and_may_change_the_inputs(cuda):
    context, stream = contexts(double()), cuda.stream()
    x, y, copy = cuda.put(X), cuda.allocate(X.nbytes), cuda.allocate(X.nbytes)
    bind(context, x=x, y=y)

    assert context.execute_async_v3(stream)
    cuda.fill(stream, x, -X)
    cuda.cudaMemcpyAsync(copy, y, X.nbytes, fake_cuda.Kind.cudaMemcpyDefault, stream)
    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(copy, FLOAT, (2, 3)), 2 * X)
    np.testing.assert_array_equal(cuda.get(y, FLOAT, (2, 3)), -2 * X)


def test_host_reads_pageable_memory_after_the_work_that_is_on_the_stream(cuda):
    context, stream, x, y = contexts(double()), cuda.stream(), 0 * X, np.zeros_like(X)
    cuda.fill(stream, x.ctypes.data, X)
    bind(context, x=x.ctypes.data, y=y.ctypes.data)

    assert context.execute_async_v3(stream)
    assert cuda.synchronized == [stream]
    np.testing.assert_array_equal(y, 2 * X)


def test_other_streams_are_not_waited_for(cuda):
    context, stream, other = contexts(double()), cuda.stream(), cuda.stream()
    x, y = cuda.put(X), cuda.allocate(X.nbytes)
    cuda.fill(other, x, -X)
    bind(context, x=x, y=y)

    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(y, FLOAT, (2, 3)), 2 * X)


@pytest.mark.parametrize("stream", [0, LEGACY])
def test_default_stream_has_two_handles(cuda, stream):
    context = contexts(double())
    x, y = cuda.put(X), cuda.allocate(X.nbytes)
    bind(context, x=x, y=y)

    assert context.execute_async_v3(stream)
    assert [copy[-1] for copy in cuda.copies] == [LEGACY]


@pytest.mark.parametrize("stream", [0, LEGACY])
def test_default_stream_of_another_context_waits_for_the_outputs(cuda, stream):
    """As ``pycuda.autoinit`` makes a context, whose default stream has the same handle as that of XLA's context."""
    waits, real = [], cuda.gpu.wait
    cuda.gpu.wait = lambda array, handle: [waits.append(handle), real(array, handle)]
    cuda.context += 1
    context = contexts(double())
    x, y = cuda.put(X), cuda.allocate(X.nbytes)
    bind(context, x=x, y=y)

    assert context.execute_async_v3(stream)
    assert LEGACY not in waits
    assert [copy[-1] for copy in cuda.copies] == [LEGACY, LEGACY]
    cuda.advance(LEGACY)
    assert cuda.streams[waits[0]].done == len(cuda.streams[waits[0]].work) == 1
    np.testing.assert_array_equal(cuda.get(y, FLOAT, (2, 3)), 2 * X)


def test_execute_v2_waits(cuda):
    context = contexts(double())
    x, y = cuda.put(X), cuda.allocate(X.nbytes)

    assert context.execute_v2([x, y])
    np.testing.assert_array_equal(cuda.get(y, FLOAT, (2, 3)), 2 * X)


def test_profiler_waits(cuda):
    class Times(trt.IProfiler):
        def report_layer_time(self, layer_name, ms):
            self.result = cuda.get(y, FLOAT, (2, 3))

    context = contexts(double())
    x, y = cuda.put(X), cuda.allocate(X.nbytes)
    bind(context, x=x, y=y)
    context.profiler = Times()

    assert context.execute_async_v3(cuda.stream())
    np.testing.assert_array_equal(context.profiler.result, 2 * X)


def test_event_of_consumed_inputs_is_recorded_after_the_program_and_before_the_copies(cuda):
    context, stream = contexts(double()), cuda.stream()
    event = cuda.cudaEventCreateWithFlags(0)[1]
    bind(context, x=cuda.put(X), y=cuda.allocate(X.nbytes))

    assert context.get_input_consumed_event() == 0
    assert context.set_input_consumed_event(event)
    assert context.get_input_consumed_event() == event
    assert context.execute_async_v3(stream)
    assert cuda.cudaEventQuery(event) == (fake_cuda.NOT_READY,)
    assert cuda.events[event] == (stream, len(cuda.streams[stream].work) - len(cuda.copies))


# ---------------------------------------------------------------------------- lifetime


def test_output_stays_until_the_stream_has_copied_it(cuda):
    context, stream = contexts(double()), cuda.stream()
    bind(context, x=cuda.put(X), y=cuda.allocate(X.nbytes))
    assert context.execute_async_v3(stream)
    first = cuda.gpu.outputs[0]
    del context
    gc.collect()

    assert first() is not None
    cuda.advance(stream)
    cuda.runtime.keep(None, cuda.runtime.recorded(stream))  # as the next run does
    gc.collect()
    assert first() is None


def test_events_are_destroyed(cuda):
    context, stream = contexts(double()), cuda.stream()
    bind(context, x=cuda.put(X, offset=4), y=cuda.allocate(X.nbytes))
    for _ in range(3):
        assert context.execute_async_v3(stream)
        cuda.advance(stream)

    assert len(cuda.events) == 1  # of the last run


# ---------------------------------------------------------------------------- all that takes an address


def test_output_allocator_gives_memory_of_a_device(cuda):
    class Allocator(trt.IOutputAllocator):
        def reallocate_output_async(self, tensor_name, memory, size, alignment, stream):
            self.asked, self.address = (tensor_name, size, stream), cuda.allocate(size)
            return self.address

        def notify_shape(self, tensor_name, shape):
            self.shape = tuple(shape)

    builder = trt.Builder(Log())
    engine = builder.build_engine_with_config(doubling_network(builder), builder.create_builder_config())
    context, stream, allocator = engine.create_execution_context(), cuda.stream(), Allocator()
    bind(context, x=cuda.put(X))
    context.set_input_shape("x", (2, 3))
    context.set_output_allocator("y", allocator)

    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    assert (allocator.asked, allocator.shape) == (("y", 24, stream), (2, 3))
    assert context.get_tensor_address("y") == allocator.address
    np.testing.assert_array_equal(cuda.get(allocator.address, FLOAT, (2, 3)), 2 * X)


@pytest.mark.parametrize("kind", [HOST, DEVICE, MANAGED])
def test_value_that_decides_a_shape_is_read_from_any_memory(cuda, kind):
    builder = trt.Builder(Log())
    engine = builder.build_engine_with_config(length_by_value(builder), builder.create_builder_config())
    context, stream = engine.create_execution_context(), cuda.stream()
    n, powers = cuda.put(np.int32(5), kind), cuda.allocate(20)
    bind(context, n=n, powers=powers)

    assert context.infer_shapes() == []
    assert context.get_tensor_shape("powers") == (5,)
    assert context.execute_async_v3(stream)
    cuda.advance(stream)
    assert cuda.get(powers, np.int32, (5,)).tolist() == [1, 2, 4, 8, 16]


def test_value_marked_for_shapes_is_written_to_memory_of_a_device(cuda):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 2))
    shape = network.add_shape(x).get_output(0)
    shape.name = "n"
    network.mark_output(networks.combine(network, x, x))
    assert network.mark_output_for_shapes(shape)
    context, n = trt.compile(network).create_execution_context(), cuda.allocate(16)
    context.set_input_shape("x", (5, 2))
    bind(context, n=n)

    assert context.infer_shapes() == []
    assert cuda.get(n, np.int64, (2,)).tolist() == [5, 2]


def test_debug_listener_gets_an_address_in_the_memory_where_the_value_is(cuda):
    class Listener(trt.IDebugListener):
        def process_debug_tensor(self, addr, location, type, shape, name, stream):
            self.seen = location, cuda.get(addr, FLOAT, tuple(shape)), stream

    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2, 3))
    doubled = networks.combine(network, x, x)
    networks.mark(network, y=networks.combine(network, doubled, x))
    network.mark_debug(doubled)
    context, stream, listener = trt.compile(network).create_execution_context(), cuda.stream(), Listener()
    context.set_debug_listener(listener)
    context.set_all_tensors_debug_state(True)
    y = cuda.allocate(X.nbytes)
    bind(context, x=cuda.put(X), y=y)

    assert context.execute_async_v3(stream)
    location, value, given = listener.seen
    assert given == stream
    assert location in (trt.TensorLocation.HOST, trt.TensorLocation.DEVICE)
    np.testing.assert_array_equal(value, 2 * X)
    cuda.advance(stream)
    np.testing.assert_array_equal(cuda.get(y, FLOAT, (2, 3)), 3 * X)


@pytest.mark.parametrize("location", [trt.TensorLocation.HOST, trt.TensorLocation.DEVICE])
def test_weights_are_read_from_memory_of_a_device(cuda, location):
    network = trt.INetworkDefinition()
    constant = network.add_constant((2, 3), X)
    x = network.add_input("x", trt.float32, (2, 3))
    networks.mark(network, y=networks.combine(network, x, constant.get_output(0)))
    engine, stream = trt.compile(network), cuda.stream()
    name, place = trt.Refitter(engine, Log()).get_all_weights()[0], cuda.put(0 * X)
    refitter = trt.Refitter(engine, Log())
    weights = trt.Weights(trt.float32, place, 6)
    assert refitter.set_named_weights(name, weights, location)
    cuda.fill(stream, place, 5 * X)

    assert refitter.refit_cuda_engine_async(stream)
    expected = X + (5 * X if location is trt.TensorLocation.DEVICE else 0)
    np.testing.assert_array_equal(engine({"x": X})["y"], expected)
    assert weights.numpy().tolist() == (5 * X).reshape(-1).tolist()


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize("what", ["too small", "freed", "null", "wild"])
def test_bad_address_is_an_error_with_the_name_of_the_tensor(cuda, name, what):
    context, stream = contexts(double(), log := Log()), cuda.stream()
    places = {"x": cuda.put(X), "y": cuda.allocate(X.nbytes)}
    if what == "freed":
        cuda.free(places[name])
    elif what == "too small":
        places[name] = cuda.put(X[:1])
    else:
        places[name] = {"null": 0, "wild": 2**47 - 4096}[what]
    bind(context, **places)

    assert not context.execute_async_v3(stream)
    code = "NL606: the address of" if what == "null" else "NL629: the address of"
    assert log.errors()[-1].startswith(f"{code} '{name}' is ")
    if what == "too small":
        assert "24 bytes are wanted" in log.errors()[-1]
        assert "where 12 bytes of CUDA's memory are" in log.errors()[-1]


@pytest.mark.parametrize(("piece", "is_enough"), [(1 << 16, True), (1 << 12, False)])
def test_memory_may_go_on_in_another_piece_but_not_in_another_block(cuda, monkeypatch, piece, is_enough):
    shape = (2 * piece // 4,)
    context, stream = contexts(double(shape)), cuda.stream()
    block = cuda.allocate(4 * piece + (1 << 16))
    x = -(-block // (1 << 16)) * (1 << 16)
    y = cuda.allocate(2 * piece)
    ranges = {x: (x, piece), x + piece: (x + piece, piece), y: (y, 2 * piece)}
    monkeypatch.setattr(
        cuda.driver, "cuMemGetAddressRange", lambda place: (0, *ranges[place]) if place in ranges else (1, 0, 0)
    )
    bind(context, x=x, y=y)

    assert context.execute_async_v3(stream) is is_enough


def test_stream_that_is_none_is_an_error(cuda):
    context = contexts(double(), log := Log())
    bind(context, x=cuda.put(X), y=cuda.allocate(X.nbytes))

    assert not context.execute_async_v3(12345)
    assert log.errors()[-1].startswith("NL628: CUDA's cudaEventRecord failed: cudaErrorInvalidResourceHandle: a text")


def test_failed_run_leaves_nothing_behind(cuda):
    context, stream = contexts(two), cuda.stream()
    bind(context, x=cuda.put(X, offset=4), y=0, a=1, b=1)
    before = len(cuda.blocks)

    assert not context.execute_async_v3(stream)
    assert cuda.device_synchronized == 1
    cuda.advance(stream)
    assert len(cuda.blocks) == before


def test_failure_of_xla_is_an_error_in_the_log(cuda):
    def fail(array, stream):
        raise jax.errors.JaxRuntimeError("INTERNAL: the GPU has fallen off the bus")

    context, stream = contexts(double(), log := Log()), cuda.stream()
    bind(context, x=cuda.put(X), y=cuda.allocate(X.nbytes))
    cuda.gpu.wait = fail

    assert not context.execute_async_v3(stream)
    assert log.errors()[-1].startswith("NL608: ")
    assert "fallen off the bus" in log.errors()[-1]


def test_memory_of_a_device_without_a_gpu_is_an_error(context, log):
    context.set_input_shape("x", (2, 3))
    bind(context, x=0x7F0000000000 ^ 0x55, y=X.ctypes.data)

    assert type(transfers(0, context.engine)) is HostTransfers
    assert not context.execute_async_v3(0)
    assert log.errors()[-1].startswith("NL629: the address of 'x' is wrong: the 24 bytes at 0x7f0000000055 are not")


def test_recorder_gets_the_error_of_an_address(network):
    class Recorder(trt.IErrorRecorder):
        def report_error(self, arg0, arg1):
            self.reported = arg0, arg1

    context = trt.compile(doubling(network)).create_execution_context()
    context.error_recorder = Recorder()

    assert not context.execute_v2([8, 8])
    assert context.error_recorder.reported[0] is trt.ErrorCodeTRT.FAILED_EXECUTION
    assert context.error_recorder.reported[1].startswith("NL629")
