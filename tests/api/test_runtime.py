"""A runtime reads plans, and records settings that have no effect."""

import numpy as np
import pytest

import netloop as trt
from tests.support.builds import config_with_profile, doubling_network, swap_engine
from tests.support.log import Log


@pytest.mark.parametrize("flags", [1, trt.TempfileControlFlag.ALLOW_TEMPORARY_FILES, np.int32(1)])
def test_flags_of_temporary_files_are_a_number_or_a_member(flags):
    runtime = trt.Runtime(Log())
    assert runtime.tempfile_control_flags == 3
    runtime.tempfile_control_flags = flags

    assert runtime.tempfile_control_flags == 1
    assert type(runtime.tempfile_control_flags) is int
    with pytest.raises(TypeError, match="tempfile_control_flags must be an int"):
        runtime.tempfile_control_flags = "all"


def test_settings_of_a_runtime_are_logged_once():
    runtime = trt.Runtime(log := Log())
    runtime.DLA_core, runtime.gpu_allocator, runtime.temporary_directory = 1, trt.IGpuAllocator(), "/tmp"
    runtime.engine_host_code_allowed = True
    runtime.tempfile_control_flags = 1 << int(trt.TempfileControlFlag.ALLOW_IN_MEMORY_FILES)
    runtime.dla_workspace_allocation_strategy = trt.DLAWorkspaceAllocationStrategy.SHARED_STATIC
    plan = swap_engine().serialize()
    runtime.deserialize_cuda_engine(plan)
    runtime.deserialize_cuda_engine(plan)

    assert len(log.infos()) == 1
    assert all(name in log.infos()[0] for name in runtime.changed())
    assert (runtime.num_DLA_cores, runtime.DLA_core) == (0, 1)


def test_runtime_of_a_library_is_the_same_runtime():
    runtime = trt.Runtime(log := Log())

    assert runtime.load_runtime("libnvinfer_lean.so") is runtime
    assert "libnvinfer_lean.so" in log.infos()[0]


def test_runtime_reports_to_its_error_recorder():
    class Recorder(trt.IErrorRecorder):
        def report_error(self, arg0, arg1):
            reported.append(arg1)
            return False

    reported = []
    runtime = trt.Runtime(Log())
    runtime.error_recorder = Recorder()

    assert runtime.deserialize_cuda_engine(b"no plan") is None
    assert reported[0].startswith("NL711")


def test_damaged_plan_gives_none_with_the_reason_in_the_log(log, engine):
    plan = bytearray(engine.serialize())
    plan[len(plan) // 2] ^= 1

    assert trt.Runtime(log).deserialize_cuda_engine(plan) is None
    assert len(log.errors()) == 1


def test_engine_serializes_to_the_plan_that_it_came_from(log):
    builder = trt.Builder(log)
    plan = builder.build_serialized_network(doubling_network(builder), config_with_profile(builder))

    assert trt.Runtime(log).deserialize_cuda_engine(plan).serialize() == plan


def test_plan_may_be_an_array_of_bytes(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (2,))).get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())

    assert trt.Runtime(log).deserialize_cuda_engine(np.frombuffer(plan, np.uint8)) is not None


def test_plan_of_a_build_that_failed_is_a_type_error_that_says_so(log):
    with pytest.raises(TypeError, match="not NoneType: the build returned None, and logged why"):
        trt.Runtime(log).deserialize_cuda_engine(None)


def test_there_are_no_plugins_to_register():
    assert trt.init_libnvinfer_plugins(trt.Logger(), "") is True
    assert trt.init_libnvinfer_plugins(None, namespace="mine") is True


@pytest.mark.parametrize(("logger", "namespace"), [("", trt.Logger()), (trt.Logger(), None)])
def test_plugins_are_registered_with_a_logger_and_a_name(logger, namespace):
    with pytest.raises(TypeError):
        trt.init_libnvinfer_plugins(logger, namespace)


def test_error_recorder_is_that_of_engines_contexts_and_networks_too(log):
    class Recorder(trt.IErrorRecorder):
        count = 0

        def report_error(self, arg0, arg1):
            self.count += 1
            return False

    builder, runtime = trt.Builder(log), trt.Runtime(log)
    builder.error_recorder = runtime.error_recorder = recorder = Recorder()
    network = builder.create_network()
    network.mark_output(network.add_input("x", trt.float32, (2,)))
    engine = runtime.deserialize_cuda_engine(builder.build_serialized_network(network, builder.create_builder_config()))
    context = engine.create_execution_context()

    assert all(thing.error_recorder is recorder for thing in (network, engine, context))
    assert [context.execute_v2([]), recorder.count] == [False, 1]


@pytest.mark.parametrize(
    "kind",
    [
        *(trt.Builder, trt.IBuilderConfig, trt.ICudaEngine, trt.IExecutionContext, trt.IHostMemory),
        *(trt.INetworkDefinition, trt.OnnxParser, trt.Refitter, trt.Runtime),
    ],
)
def test_scripts_may_end_an_object_themselves(kind):
    assert kind.__del__(None) is None
