"""What is accepted, told back, and said in the log, as it has no meaning on XLA."""

import math

import numpy as np
import pytest

import netloop as trt
from tests.support import networks
from tests.support.log import Log


def engine(log=None):
    builder = trt.Builder(log or Log())
    return builder.build_engine_with_config(networks.swap(), builder.create_builder_config())


# ---------------------------------------------------------------------- runtimes and builders


def test_settings_of_a_runtime_are_told_of_once():
    runtime = trt.Runtime(log := Log())
    runtime.DLA_core, runtime.gpu_allocator, runtime.temporary_directory = 1, trt.IGpuAllocator(), "/tmp"
    runtime.engine_host_code_allowed = True
    runtime.tempfile_control_flags = 1 << int(trt.TempfileControlFlag.ALLOW_IN_MEMORY_FILES)
    runtime.dla_workspace_allocation_strategy = trt.DLAWorkspaceAllocationStrategy.SHARED_STATIC
    plan = engine().serialize()
    runtime.deserialize_cuda_engine(plan)
    runtime.deserialize_cuda_engine(plan)

    assert len(log.told()) == 1
    assert all(name in log.told()[0] for name in runtime.changed())
    assert (runtime.num_DLA_cores, runtime.DLA_core) == (0, 1)


def test_runtime_of_a_library_is_the_same_runtime():
    runtime = trt.Runtime(log := Log())

    assert runtime.load_runtime("libnvinfer_lean.so") is runtime
    assert "libnvinfer_lean.so" in log.told()[0]


def test_runtime_tells_its_error_recorder():
    class Recorder(trt.IErrorRecorder):
        def report_error(self, arg0, arg1):
            told.append(arg1)
            return False

    told = []
    runtime = trt.Runtime(Log())
    runtime.error_recorder = Recorder()

    assert runtime.deserialize_cuda_engine(b"no plan") is None
    assert told[0].startswith("NL711")


def test_allocator_of_a_builder_is_never_asked():
    class Allocator(trt.IGpuAsyncAllocator):
        def allocate_async(self, size, alignment, flags, stream):
            raise AssertionError

    builder = trt.Builder(log := Log())
    builder.gpu_allocator = allocator = Allocator()

    assert builder.build_engine_with_config(networks.swap(), builder.create_builder_config()) is not None
    assert builder.gpu_allocator is allocator
    assert log.told() == ["of no effect here, as XLA chooses: gpu_allocator"]
    with pytest.raises(TypeError, match="gpu_allocator must be None or IGpuAllocator"):
        builder.gpu_allocator = 3


def test_allocator_has_no_memory_by_itself():
    allocator = trt.IGpuAllocator()

    assert allocator.allocate_async(8, 0, 0, 0) == allocator.reallocate(1, 0, 8) == 0
    assert allocator.deallocate_async(1, 0) is False
    assert allocator.api_language is trt.APILanguage.PYTHON
    assert allocator.interface_info.kind == "IGpuAllocator"


# ---------------------------------------------------------------------- engines and contexts


def test_weights_are_not_streamed():
    made = engine(log := Log())
    made.weight_streaming_budget_v2 = 1 << 20

    assert made.weight_streaming_budget_v2 == 1 << 20
    assert (made.streamable_weights_size, made.get_weight_streaming_automatic_budget()) == (0, 0)
    assert made.weight_streaming_scratch_memory_size == 0
    assert "weight_streaming_budget_v2" in log.told()[0]
    with pytest.raises(ValueError, match="at least 0"):
        made.weight_streaming_budget_v2 = -1


def test_tactic_sources_are_told_back_from_the_plan():
    builder = trt.Builder(Log())
    config = builder.create_builder_config()
    config.set_tactic_sources(1 << int(trt.TacticSource.JIT_CONVOLUTIONS))
    plan = builder.build_serialized_network(networks.swap(), config)

    assert engine().tactic_sources == 3
    assert trt.Runtime(Log()).deserialize_cuda_engine(plan).tactic_sources == 2


def test_memory_is_what_xla_tells_of_the_latest_program():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 64))
    plain, transposed = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE
    product = network.add_matrix_multiply(x, transposed, x, plain).get_output(0)
    network.mark_output(network.add_matrix_multiply(product, plain, product, plain).get_output(0))
    made = trt.compile(network)
    before = made.device_memory_size_v2
    made({"x": np.ones((8, 64), np.float32)})
    between_the_products = 64 * 64 * 4

    assert before == 0
    assert made.device_memory_size_v2 >= between_the_products
    assert made.get_device_memory_size_for_profile_v2(0) == made.device_memory_size_v2
    assert made.create_execution_context().update_device_memory_size_for_shapes() == made.device_memory_size_v2


@pytest.mark.parametrize("way", ["strategy", "config", "keyword"])
def test_context_tells_how_it_was_to_take_its_memory(way):
    made, wanted = engine(), trt.ExecutionContextAllocationStrategy.USER_MANAGED
    config = made.create_runtime_config()
    config.set_execution_context_allocation_strategy(wanted)
    context = {
        "strategy": lambda: made.create_execution_context(wanted),
        "config": lambda: made.create_execution_context(config),
        "keyword": lambda: made.create_execution_context(runtime_config=config),
    }[way]()

    assert context.get_runtime_config().get_execution_context_allocation_strategy() is wanted


@pytest.mark.parametrize("given", [3, "STATIC", None])
def test_what_is_no_strategy_is_refused(given):
    with pytest.raises(TypeError, match="strategy"):
        engine().create_execution_context(given)


def test_communicator_is_taken_and_told_of():
    context = engine(log := Log()).create_execution_context()

    assert context.set_communicator(None)
    assert "set_communicator" in log.told()[0]


# ---------------------------------------------------------------------- outputs for shapes


def with_shape_output():
    """``n``: the number of rows of x, twice; ``y``: x itself."""
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


# ---------------------------------------------------------------------- timing caches

KEY = trt.TimingCacheKey.parse("0x" + "0123456789abcdef" * 2)


def config():
    return trt.Builder(Log()).create_builder_config()


def test_timing_cache_goes_through_a_file():
    cache = config().create_timing_cache(b"")
    assert cache.update(KEY, trt.TimingCacheValue(2**64 - 1, 0.25))
    again = config().create_timing_cache(cache.serialize())

    assert again.queryKeys() == [KEY]
    assert again.query(KEY) == trt.TimingCacheValue(2**64 - 1, 0.25)
    assert again.serialize() == cache.serialize()


def test_timing_cache_of_others_is_none():
    assert config().create_timing_cache(b"\0" * 64) is None
    assert config().create_timing_cache(b'{"format":"netloop timing cache","entries":[["0x","1","1"]]}') is None


def test_key_that_is_not_there_has_no_time():
    value = config().create_timing_cache(b"").query(KEY)

    assert value.tacticHash == 0
    assert math.isnan(value.timingMSec)


def test_caches_are_combined_and_reset():
    one, other = config().create_timing_cache(b""), config().create_timing_cache(b"")
    other.update(KEY, trt.TimingCacheValue(1, 2.0))

    assert one.combine(other, ignore_mismatch=False)
    assert one.queryKeys() == [KEY]
    assert one.reset()
    assert (one.queryKeys(), other.queryKeys()) == ([], [KEY])


@pytest.mark.parametrize("text", ["", "0x12", "g" * 32])
def test_key_of_another_form_is_refused(text):
    with pytest.raises(ValueError, match="hex"):
        trt.TimingCacheKey.parse(text)


def test_key_is_printed_as_it_is_parsed():
    assert trt.TimingCacheKey.parse(str(KEY)) == KEY


def test_build_leaves_a_timing_cache_as_it_is():
    builder = trt.Builder(log := Log())
    settings = builder.create_builder_config()
    cache = settings.create_timing_cache(b"")
    assert settings.get_timing_cache() is None
    assert settings.set_timing_cache(cache, ignore_mismatch=False)
    builder.build_serialized_network(networks.swap(), settings)

    assert settings.get_timing_cache() is cache
    assert cache.queryKeys() == []
    assert log.told() == ["of no effect here, as XLA chooses: timing cache"]


def test_there_is_one_build_route():
    settings = config()
    settings.build_route = "any"

    assert settings.all_build_routes == []
    assert settings.without_meaning() == ["build_route"]
