"""An execution context runs an engine on shapes and addresses."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

import netloop as trt
from tests.support.builds import doubling, length_by_value, swap_engine
from tests.support.log import Log

# ---------------------------------------------------------------------- shapes and addresses


def test_context_runs_on_addresses(context):
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.empty((2, 3), np.float32)
    assert context.set_input_shape("x", (2, 3))
    assert context.infer_shapes() == []
    assert context.get_tensor_shape("y") == (2, 3)
    assert context.set_tensor_address("x", x.ctypes.data)
    assert context.set_tensor_address("y", y.ctypes.data)
    assert context.execute_async_v3(0)

    np.testing.assert_array_equal(y, 2 * x)


def test_execute_v2_takes_addresses_in_the_order_of_the_tensors(context):
    x, y = np.ones((1, 3), np.float32), np.empty((1, 3), np.float32)
    context.set_input_shape("x", [1, 3])

    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    np.testing.assert_array_equal(y, 2 * x)


def test_input_and_output_may_share_memory(context):
    x = np.ones((4, 3), np.float32)
    context.set_input_shape("x", (4, 3))

    assert context.execute_v2([x.ctypes.data, x.ctypes.data])
    np.testing.assert_array_equal(x, np.full((4, 3), 2))


def test_shape_that_is_not_set_is_missing(context, log):
    assert context.infer_shapes() == ["x"]
    assert not context.all_binding_shapes_specified
    assert not context.execute_v2([1, 1])
    assert "set_input_shape('x', ...)" in log.errors()[-1]


def test_address_that_is_not_set_is_reported(context, log):
    context.set_input_shape("x", (1, 3))

    assert context.get_tensor_address("x") == 0
    assert not context.execute_async_v3(0)
    assert "address of 'x' is not set" in log.errors()[-1]


@pytest.mark.parametrize(
    ("shape", "said"), [((5, 3), "outside its profile"), ((2, 4), "cannot have the shape"), ((2,), "cannot have")]
)
def test_shape_that_does_not_fit_is_refused(context, log, shape, said):
    assert not context.set_input_shape("x", shape)
    assert said in log.errors()[-1]


def test_shape_of_an_output_cannot_be_set(context, log):
    assert not context.set_input_shape("y", (1, 3))
    assert "'y' is an output, whose shape follows from those of the inputs" in log.errors()[-1]


@pytest.mark.parametrize("handle", [None, object()])
def test_stream_is_an_int(context, handle):
    with pytest.raises(TypeError, match="stream_handle is the int of a stream"):
        context.execute_async_v3(handle)


def test_allocator_without_memory_is_reported(context, log):
    class Empty(trt.IOutputAllocator):
        def reallocate_output(self, tensor_name, memory, size, alignment):
            return 0

    x = np.ones((1, 3), np.float32)
    context.set_input_shape("x", (1, 3))
    context.set_tensor_address("x", x.ctypes.data)
    context.set_output_allocator("y", Empty())

    assert not context.execute_async_v3(0)
    assert "the output allocator of 'y' returned 0 for 12 bytes" in log.errors()[-1]


def test_shape_of_nine_axes_is_a_runtime_error(context):
    with pytest.raises(RuntimeError, match="at most 8 axes"):
        context.set_input_shape("x", (1,) * 9)


def identity_context(log, shape):
    builder = trt.Builder(log)
    network = builder.create_network()
    y = network.add_identity(network.add_input("x", trt.float32, shape)).get_output(0)
    y.name = "y"
    network.mark_output(y)
    engine = builder.build_engine_with_config(network, builder.create_builder_config())
    return engine.create_execution_context()


@pytest.mark.parametrize("length", [-1, -2])
def test_shape_with_a_negative_length_is_refused(log, length):
    context = identity_context(log, (-1, 3))

    assert not context.set_input_shape("x", (length, 3))
    assert "cannot have the shape" in log.errors()[-1]
    assert context.infer_shapes() == ["x"]


def test_context_that_runs_is_of_one_thread(context, log):
    begun, ends = Event(), Event()

    class Waiting(trt.IOutputAllocator):
        def reallocate_output(self, tensor_name, memory, size, alignment):
            begun.set()
            assert ends.wait(60)
            return y.ctypes.data

    x, y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    context.set_input_shape("x", x.shape)
    context.set_tensor_address("x", x.ctypes.data)
    context.set_output_allocator("y", Waiting())
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(context.execute_async_v3, 0)
        assert begun.wait(60)
        answers = [
            context.execute_async_v3(0),
            context.set_input_shape("x", (4, 3)),
            context.set_tensor_address("y", x.ctypes.data),
        ]
        ends.set()
        assert run.result()

    assert answers == [False] * 3
    assert [line.partition(":")[0] for line in log.errors()] == ["NL680"] * 3
    np.testing.assert_array_equal(y, 2 * x)
    assert context.set_input_shape("x", (4, 3))


def test_address_0_is_unset(log):
    context, y = identity_context(log, (3,)), np.zeros(3, np.float32)

    assert not context.execute_v2([0, y.ctypes.data])
    assert "address of 'x' is not set" in log.errors()[-1]


def test_tensor_without_elements_needs_no_address(network):
    y = network.add_identity(network.add_input("x", trt.float32, (0, 3))).get_output(0)
    network.mark_output(y)

    assert trt.compile(network).create_execution_context().execute_v2([0, 0])


def test_shape_from_the_values_of_a_tensor_of_unknown_length_is_known_after_the_run(log):
    """As in the log of a run on a GPU: k of a TopK is the sum of a vector of dynamic length."""

    class Allocator(trt.IOutputAllocator):
        def reallocate_output_async(self, tensor_name, memory, size, alignment, stream):
            self.array = np.empty(size // 4, np.float32)
            return self.array.ctypes.data

        def notify_shape(self, tensor_name, shape):
            self.shape = shape

    builder = trt.Builder(log)
    network, config, profile = (
        builder.create_network(),
        builder.create_builder_config(),
        builder.create_optimization_profile(),
    )
    x, parts = network.add_input("x", trt.float32, (3, 4, 5)), network.add_input("parts", trt.int32, (-1,))
    profile.set_shape("parts", (1,), (2,), (2,))
    config.add_optimization_profile(profile)
    layer = network.add_topk(x, trt.TopKOperation.MAX, 1, 1 << 1)
    layer.set_input(1, network.add_reduce(parts, trt.ReduceOperation.SUM, 1, False).get_output(0))
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    engine = builder.build_engine_with_config(network, config)
    context, allocator = engine.create_execution_context(), Allocator()
    array, counts = np.random.default_rng(0).permutation(60).astype(np.float32).reshape(3, 4, 5), np.int32([3, -1])
    context.set_input_shape("parts", (2,))
    context.set_output_allocator("y", allocator)
    for name, other in {"x": array, "parts": counts}.items():
        context.set_tensor_address(name, other.ctypes.data)

    assert engine.get_tensor_location("parts") is trt.TensorLocation.DEVICE
    assert not engine.is_shape_inference_io("parts")
    assert context.infer_shapes() == []
    assert context.execute_async_v3(0)
    assert context.get_tensor_shape("y") == (3, -1, 5)
    assert allocator.shape == (3, 2, 5)
    np.testing.assert_array_equal(allocator.array.reshape(3, 2, 5), -np.sort(-array, axis=1)[:, :2])


def test_shape_that_a_context_returns_is_a_copy(context):
    context.set_input_shape("x", (2, 3))
    for shape in (context.get_tensor_shape("x"), context.engine.get_tensor_profile_shape("x", 0)[1]):
        shape[0] = 4

    assert context.get_tensor_shape("x") == (2, 3)
    assert context.engine.get_tensor_profile_shape("x", 0)[1] == (2, 3)


def test_assertion_that_shapes_violate_is_reported_by_infer_shapes(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (-1,))
    two = network.add_constant((1,), np.array([2], np.int64)).get_output(0)
    even = network.add_elementwise(network.add_shape(x).get_output(0), two, trt.ElementWiseOperation.EQUAL)
    network.add_assertion(even.get_output(0), "x has two elements")
    network.mark_output(network.add_identity(x).get_output(0))
    context = builder.build_engine_with_config(network, builder.create_builder_config()).create_execution_context()

    context.set_input_shape("x", (2,))
    assert context.infer_shapes() == []
    context.set_input_shape("x", (3,))
    with pytest.raises(RuntimeError, match="x has two elements"):
        context.infer_shapes()


@pytest.mark.parametrize(
    ("address", "error"), [(1.5, TypeError), ("1", TypeError), (-1, ValueError), (2**70, ValueError)]
)
def test_address_is_a_number_of_a_pointer(network, address, error):
    context = trt.compile(doubling(network)).create_execution_context()

    with pytest.raises(error):
        context.set_tensor_address("x", address)


def test_strides_are_row_major(context):
    context.set_input_shape("x", (2, 3))

    assert context.get_tensor_strides("y") == (3, 1)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("wanted", [True, False])
def test_channels_are_last_at_the_address_of_a_tensor_that_allows_only_that(log, given, wanted):
    builder = trt.Builder(log)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (2, 3, -1, 5))
    network.mark_output(network.add_identity(x).get_output(0))
    network.get_output(0).name = "y"
    for tensor, is_last in ((x, given), (network.get_output(0), wanted)):
        if is_last:
            tensor.allowed_formats = 1 << int(trt.TensorFormat.HWC)
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    engine = trt.Runtime(log).deserialize_cuda_engine(plan)
    context, array = engine.create_execution_context(), np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    source = np.ascontiguousarray(array.transpose(0, 2, 3, 1)) if given else array
    made = np.empty_like(array.transpose(0, 2, 3, 1) if wanted else array, order="C")
    context.set_input_shape("x", array.shape)

    assert context.execute_v2([source.ctypes.data, made.ctypes.data])
    np.testing.assert_array_equal(made.transpose(0, 3, 1, 2) if wanted else made, array)
    assert (engine.get_tensor_format("x") is trt.TensorFormat.HWC) is given
    assert context.get_tensor_strides("y") == ((60, 1, 15, 3) if wanted else (60, 20, 5, 1))
    assert engine.get_tensor_format_desc("y").endswith("(kHWC)" if wanted else "(kLINEAR)")
    np.testing.assert_array_equal(engine({"x": array})["y"], array)


def test_value_of_a_shape_input_is_read_from_its_address(log):
    builder = trt.Builder(log)
    engine = builder.build_engine_with_config(length_by_value(builder), builder.create_builder_config())
    context = engine.create_execution_context()
    n = np.array(5, np.int32)

    assert engine.get_tensor_location("n") is trt.TensorLocation.HOST
    assert context.infer_shapes() == ["n"]
    context.set_tensor_address("n", n.ctypes.data)
    assert context.infer_shapes() == []
    assert context.get_tensor_shape("powers") == (5,)
    powers = np.empty(5, np.int32)
    assert context.execute_v2([n.ctypes.data, powers.ctypes.data])
    np.testing.assert_array_equal(powers, [1, 2, 4, 8, 16])


# ---------------------------------------------------------------------- runs


def test_output_allocator_gives_memory_and_receives_the_shape(context):
    class Allocator(trt.IOutputAllocator):
        def reallocate_output(self, tensor_name, memory, size, alignment):
            self.buffer = np.empty(size // 4, np.float32)
            return self.buffer.ctypes.data

        def notify_shape(self, tensor_name, shape):
            self.shape = shape

    x, allocator = np.ones((2, 3), np.float32), Allocator()
    context.set_input_shape("x", (2, 3))
    context.set_tensor_address("x", x.ctypes.data)
    context.set_output_allocator("y", allocator)

    assert context.execute_async_v3(0)
    assert allocator.shape == (2, 3)
    np.testing.assert_array_equal(allocator.buffer, np.full(6, 2))


def test_profiler_receives_the_time_of_a_run(context):
    class Times(trt.IProfiler):
        def report_layer_time(self, layer_name, ms):
            self.reported = layer_name, ms

    x = np.ones((1, 3), np.float32)
    context.profiler = times = Times()
    context.set_input_shape("x", (1, 3))
    context.execute_v2([x.ctypes.data, x.ctypes.data])

    assert times.reported[0] == "doubling"
    assert times.reported[1] > 0


def test_allocator_is_an_allocator(network):
    with pytest.raises(TypeError, match="IOutputAllocator"):
        trt.compile(doubling(network)).create_execution_context().set_output_allocator("y", 3)


def test_run_that_fails_is_false_with_layer_and_line_in_the_log(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    ok = network.add_input("ok", trt.bool, ())
    network.add_assertion(ok, "not ok")
    network.mark_output(network.add_identity(ok).get_output(0))
    context = builder.build_engine_with_config(network, builder.create_builder_config()).create_execution_context()
    given, made = np.array(False), np.array(True)

    assert not context.execute_v2([given.ctypes.data, made.ctypes.data])
    assert "not ok" in log.errors()[-1]
    assert made


# ---------------------------------------------------------------------- outputs for shapes


def with_shape_output():
    """``n``: twice the shape of x, marked for shapes; ``y``: x itself."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 2))
    shape = network.add_shape(x).get_output(0)
    doubled = network.add_elementwise(shape, shape, trt.ElementWiseOperation.SUM).get_output(0)
    doubled.name = "n"
    y = network.add_identity(x).get_output(0)
    y.name = "y"
    network.mark_output(y)
    assert network.mark_output_for_shapes(doubled)
    return network, doubled


def test_value_marked_for_shapes_is_there_before_the_run():
    made = trt.Runtime(Log()).deserialize_cuda_engine(trt.compile(with_shape_output()[0]).serialize())
    context, n = made.create_execution_context(), np.zeros(2, np.int64)
    context.set_input_shape("x", (5, 2))
    context.set_tensor_address("n", n.ctypes.data)

    assert made.is_shape_inference_io("n")
    assert made.get_tensor_location("n") is trt.TensorLocation.HOST
    assert not made.is_shape_inference_io("y")
    assert context.infer_shapes() == []
    assert n.tolist() == [10, 4]


def test_value_marked_for_shapes_is_an_output_of_the_run_too():
    made = trt.compile(with_shape_output()[0])

    assert made({"x": np.ones((3, 2), np.float32)})["n"].tolist() == [6, 4]


def test_mark_for_shapes_can_be_taken_back():
    network, doubled = with_shape_output()

    assert not network.mark_output_for_shapes(doubled)
    assert network.unmark_output_for_shapes(doubled)
    assert not network.unmark_output_for_shapes(doubled)
    assert not doubled.is_network_output


def test_only_small_integers_are_marked_for_shapes():
    network, _ = with_shape_output()
    table = network.add_constant((1, 1), np.ones((1, 1), np.int64)).get_output(0)

    assert not network.mark_output_for_shapes(network.get_input(0))
    assert not network.mark_output_for_shapes(table)
    assert not network.unmark_output_for_shapes(network.get_output(0))


# ---------------------------------------------------------------------- settings without effect


@pytest.mark.parametrize("way", ["strategy", "config", "keyword"])
def test_context_returns_its_allocation_strategy(way):
    made, wanted = swap_engine(), trt.ExecutionContextAllocationStrategy.USER_MANAGED
    config = made.create_runtime_config()
    config.set_execution_context_allocation_strategy(wanted)
    context = {
        "strategy": lambda: made.create_execution_context(wanted),
        "config": lambda: made.create_execution_context(config),
        "keyword": lambda: made.create_execution_context(runtime_config=config),
    }[way]()

    assert context.get_runtime_config().get_execution_context_allocation_strategy() is wanted


@pytest.mark.parametrize("given", [3, "STATIC", None])
def test_other_objects_than_strategies_are_refused(given):
    with pytest.raises(TypeError, match="strategy"):
        swap_engine().create_execution_context(given)


@pytest.mark.parametrize("communicator", [None, object()])
def test_communicator_of_one_rank_has_no_effect(communicator):
    context = swap_engine(log := Log()).create_execution_context()

    assert context.set_communicator(communicator)
    assert "set_communicator" in log.infos()[0]


def test_communicator_of_several_ranks_is_refused(network):
    x = network.add_input("x", trt.float32, (-1,))
    layer = network.add_dist_collective(x, trt.CollectiveOperation.ALL_REDUCE, trt.ReduceOperation.SUM, -1, [])
    layer.num_ranks = 8
    network.mark_output(layer.get_output(0))
    builder = trt.Builder(log := Log())
    engine = builder.build_engine_with_config(network, builder.create_builder_config())
    context = engine.create_execution_context()

    assert context.set_communicator(None)
    assert not context.set_communicator(object())
    assert log.errors()[0].startswith("NL616: the network has layers of 8 ranks")
    assert "netloop.shard(network, mesh) with a mesh of 8 devices" in log.errors()[0]


@pytest.mark.parametrize(("most", "limit", "rows"), [(3, 5000, 12), (9, 5000, 20), (9, 7, 14), (-1, 7, 0)])
def test_output_of_a_suppression_has_at_most_the_boxes_of_each_class(log, most, limit, rows):
    builder = trt.Builder(log)
    network = builder.create_network()
    boxes, scores = (network.add_input(name, trt.float32, (2, 5, n)) for name, n in (("boxes", 4), ("scores", 2)))
    layer = network.add_nms(boxes, scores, network.add_constant((), np.array(most, np.int32)).get_output(0))
    layer.topk_box_limit = limit
    for index, name in enumerate(("rows", "count")):
        layer.get_output(index).name = name
        network.mark_output(layer.get_output(index))
    context = builder.build_engine_with_config(network, builder.create_builder_config()).create_execution_context()

    assert [context.get_tensor_shape("rows"), context.get_max_output_size("count")] == [(-1, 3), 4]
    assert context.get_max_output_size("rows") == rows * 3 * 4


def test_output_that_keeps_the_elements_of_another_is_as_large(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    indices = network.add_non_zero(network.add_input("x", trt.float32, (-1, 3))).get_output(0)
    turned = network.add_shuffle(network.add_cast(indices, trt.int64).get_output(0))
    turned.first_transpose = (1, 0)
    turned.get_output(0).name = "indices"
    network.mark_output(turned.get_output(0))
    context = builder.build_engine_with_config(network, builder.create_builder_config()).create_execution_context()

    assert context.get_max_output_size("indices") == -1
    context.set_input_shape("x", (4, 3))
    assert context.get_max_output_size("indices") == 4 * 3 * 2 * 8
