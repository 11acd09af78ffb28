"""TensorRT's own strategy: builder, config, profile, plan, runtime, context, addresses."""

import numpy as np
import pytest

import netloop as trt


class Log(trt.ILogger):
    """A logger that keeps what it is told."""

    def __init__(self):
        super().__init__()
        self.lines: list[tuple[trt.ILogger.Severity, str]] = []

    def log(self, severity, msg):
        self.lines.append((severity, msg))

    def errors(self):
        return [msg for severity, msg in self.lines if severity <= trt.Logger.ERROR]


@pytest.fixture
def log():
    return Log()


def doubling_network(builder, shape=(-1, 3)):
    network = builder.create_network(0)
    network.name = "doubling"
    x = network.add_input("x", trt.float32, shape)
    y = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network


def config_with_profile(builder, least=(1, 3), usual=(2, 3), most=(4, 3)):
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("x", least, usual, most)
    assert config.add_optimization_profile(profile) == 0
    return config


@pytest.fixture
def engine(log):
    builder = trt.Builder(log)
    plan = builder.build_serialized_network(doubling_network(builder), config_with_profile(builder))
    return trt.Runtime(log).deserialize_cuda_engine(plan)


@pytest.fixture
def context(engine):
    return engine.create_execution_context()


# ---------------------------------------------------------------------- building


def test_plan_is_bytes_that_a_file_takes(log, tmp_path):
    builder = trt.Builder(log)
    plan = builder.build_serialized_network(doubling_network(builder), builder.create_builder_config())
    (tmp_path / "engine.plan").write_bytes(plan)

    assert plan.nbytes == (tmp_path / "engine.plan").stat().st_size
    assert plan.dtype is trt.int8


def test_network_with_errors_gives_none_with_all_reasons_in_the_log(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (3,))
    network.add_loop().add_recurrence(x)

    assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    assert [msg[:5] for msg in log.errors()] == ["NL105", "NL201", "NL203"]


def test_settings_without_meaning_are_told_of_in_one_line(log):
    builder = trt.Builder(log)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 30)
    config.builder_optimization_level = 5
    builder.build_engine_with_config(doubling_network(builder), config)
    told = [msg for severity, msg in log.lines if severity is trt.Logger.INFO]

    assert len(told) == 1
    assert all(name in told[0] for name in ("FP16", "WORKSPACE", "builder_optimization_level"))


def test_setting_of_no_name_is_refused():
    config = trt.Builder(trt.Logger()).create_builder_config()

    with pytest.raises(AttributeError, match="did you mean 'max_aux_streams'"):
        config.max_aux_stream = 3


def test_setting_of_the_wrong_type_is_refused():
    config = trt.Builder(trt.Logger()).create_builder_config()

    with pytest.raises(TypeError, match="max_aux_streams"):
        config.max_aux_streams = "many"


def test_reset_brings_defaults_back():
    config = trt.Builder(trt.Logger()).create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    config.builder_optimization_level = 5
    config.reset()

    assert config.changed() == {}


class Monitor(trt.IProgressMonitor):
    def __init__(self, ends_at=None):
        super().__init__()
        self.told = []
        self.ends_at = ends_at

    def phase_start(self, phase_name, parent_phase, num_steps):
        self.told.append(("start", phase_name, parent_phase))

    def step_complete(self, phase_name, step):
        return phase_name != self.ends_at

    def phase_finish(self, phase_name):
        self.told.append(("finish", phase_name))


def test_progress_monitor_is_told_of_every_phase(log):
    builder = trt.Builder(log)
    config = builder.create_builder_config()
    config.progress_monitor = monitor = Monitor()
    builder.build_serialized_network(doubling_network(builder), config)
    whole = "Building engine"

    assert monitor.told == [
        ("start", whole, None),
        ("start", "Check", whole),
        ("finish", "Check"),
        ("start", "Compile", whole),
        ("finish", "Compile"),
        ("start", "Serialize", whole),
        ("finish", "Serialize"),
        ("finish", whole),
    ]


@pytest.mark.parametrize("phase", ["Check", "Compile"])
def test_progress_monitor_ends_the_build(log, phase):
    builder = trt.Builder(log)
    config = builder.create_builder_config()
    config.progress_monitor = monitor = Monitor(ends_at=phase)

    assert builder.build_serialized_network(doubling_network(builder), config) is None
    assert monitor.told[-2:] == [("finish", phase), ("finish", "Building engine")]


@pytest.mark.parametrize(
    ("least", "usual", "most", "said"),
    [((1,), (1, 2), (1,), "1, 2 and 1 numbers"), ((3,), (2,), (4,), "not in order")],
)
def test_profile_out_of_order_is_refused(least, usual, most, said):
    with pytest.raises(ValueError, match=said):
        trt.IOptimizationProfile().set_shape("x", least, usual, most)


# ---------------------------------------------------------------------- engine


def test_engine_tells_of_its_tensors(engine):
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]

    assert names == ["x", "y"] == [engine[0], engine[1]]
    assert engine.name == "doubling"
    assert engine.get_tensor_mode("x") is trt.TensorIOMode.INPUT
    assert engine.get_tensor_mode("y") is trt.TensorIOMode.OUTPUT
    assert engine.get_tensor_mode("z") is trt.TensorIOMode.NONE
    assert engine.get_tensor_dtype("y") is trt.float32
    assert engine.get_tensor_shape("y") == (-1, 3)
    assert engine.get_tensor_location("x") is trt.TensorLocation.DEVICE
    assert engine.get_tensor_format_desc("x") == "Row major linear FP32 format (kLINEAR)"


def test_profiles_are_in_the_plan(engine):
    assert engine.num_optimization_profiles == 1
    assert engine.get_tensor_profile_shape("x", 0) == [(1, 3), (2, 3), (4, 3)]


def test_damaged_plan_gives_none_with_the_reason_in_the_log(log, engine):
    plan = bytearray(engine.serialize())
    plan[len(plan) // 2] ^= 1

    assert trt.Runtime(log).deserialize_cuda_engine(plan) is None
    assert len(log.errors()) == 1


def test_engine_serializes_to_the_plan_that_it_came_from(log):
    builder = trt.Builder(log)
    plan = builder.build_serialized_network(doubling_network(builder), config_with_profile(builder))

    assert trt.Runtime(log).deserialize_cuda_engine(plan).serialize() == plan


# ---------------------------------------------------------------------- context


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


def test_address_that_is_not_set_is_told(context, log):
    context.set_input_shape("x", (1, 3))

    assert context.get_tensor_address("x") == 0
    assert not context.execute_async_v3(0)
    assert "address of 'x' is not set" in log.errors()[-1]


@pytest.mark.parametrize(
    ("shape", "said"), [((5, 3), "outside of its profile"), ((2, 4), "cannot have the shape"), ((2,), "cannot have")]
)
def test_shape_that_does_not_fit_is_refused(context, log, shape, said):
    assert not context.set_input_shape("x", shape)
    assert said in log.errors()[-1]


def test_shape_of_nine_axes_is_a_runtime_error(context):
    with pytest.raises(RuntimeError, match="at most 8 axes"):
        context.set_input_shape("x", (1,) * 9)


def test_output_allocator_is_asked_for_memory_and_told_the_shape(context):
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


def test_profiler_is_told_the_time_of_a_run(context):
    class Times(trt.IProfiler):
        def report_layer_time(self, layer_name, ms):
            self.told = layer_name, ms

    x = np.ones((1, 3), np.float32)
    context.profiler = times = Times()
    context.set_input_shape("x", (1, 3))
    context.execute_v2([x.ctypes.data, x.ctypes.data])

    assert times.told[0] == "doubling"
    assert times.told[1] > 0


def test_strides_are_row_major(context):
    context.set_input_shape("x", (2, 3))

    assert context.get_tensor_strides("y") == (3, 1)


def length_by_value(builder):
    """A loop whose stacked output has as many rows as an input says."""
    network = builder.create_network()
    n = network.add_input("n", trt.int32, ())
    loop = network.add_loop()
    loop.add_trip_limit(n, trt.TripLimit.COUNT)
    state = loop.add_recurrence(network.add_constant((), np.ones(1, np.int32)).get_output(0))
    now = state.get_output(0)
    state.set_input(1, network.add_elementwise(now, now, trt.ElementWiseOperation.SUM).get_output(0))
    rows = loop.add_loop_output(now, trt.LoopOutput.CONCATENATE)
    rows.set_input(1, n)
    rows.get_output(0).name = "powers"
    network.mark_output(rows.get_output(0))
    return network


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


# ---------------------------------------------------------------------- refitting and inspecting


def scaling_engine(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (2,))
    scale = network.add_constant((2,), np.array([2, 3], np.float32))
    scale.name = "scale"
    y = network.add_elementwise(x, scale.get_output(0), trt.ElementWiseOperation.PROD).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return builder.build_engine_with_config(network, builder.create_builder_config())


def test_refitted_engine_has_new_weights_and_the_same_program(log):
    engine = scaling_engine(log)
    before = engine.program_count
    refitter = trt.Refitter(engine, log)
    x = {"x": np.ones(2, np.float32)}

    assert refitter.get_all_weights() == ["scale"]
    assert refitter.set_named_weights("scale", np.array([5, 7], np.float32))
    np.testing.assert_array_equal(engine(x)["y"], [2, 3])
    assert refitter.refit_cuda_engine()
    np.testing.assert_array_equal(engine(x)["y"], [5, 7])
    assert engine.program_count == before == 1


@pytest.mark.parametrize(
    ("name", "weights", "said"),
    [
        ("scales", np.ones(2, np.float32), "no weights 'scales'"),
        ("scale", np.ones(3, np.float32), "2 of float32, and were given 3 of float32"),
        ("scale", np.ones(2, np.float64), "given 2 of float64"),
    ],
)
def test_weights_that_do_not_fit_are_refused(log, name, weights, said):
    assert not trt.Refitter(scaling_engine(log), log).set_named_weights(name, weights)
    assert said in log.errors()[-1]


def test_refitted_engine_serializes_its_new_weights(log):
    engine = scaling_engine(log)
    refitter = trt.Refitter(engine, log)
    refitter.set_named_weights("scale", np.array([5, 7], np.float32))
    refitter.refit_cuda_engine()
    loaded = trt.Runtime(log).deserialize_cuda_engine(engine.serialize())

    np.testing.assert_array_equal(loaded({"x": np.ones(2, np.float32)})["y"], [5, 7])


def test_inspector_tells_of_layers_and_loops(log):
    import json

    builder = trt.Builder(log)
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = builder.build_engine_with_config(length_by_value(builder), config)
    engine({"n": np.array(3, np.int32)})
    told = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))

    assert [each["LoopStrategy"] for each in told["Loops"]] == ["scan"]
    assert told["Bindings"] == ["n", "powers"]
    assert {"Name", "LayerType", "Inputs", "Outputs"} <= set(told["Layers"][0])
    assert told["Layers"][0]["LayerType"] == "TripLimit"
    assert told["Layers"][0]["Loop"] == "(Unnamed Loop* 0)"


def test_inspector_tells_names_alone_by_default(engine):
    told = engine.create_engine_inspector().get_layer_information(0, trt.LayerInformationFormat.ONELINE)

    assert told == "(Unnamed Layer* 0) [ElementWise]"


# ---------------------------------------------------------------------------- names


def test_wrong_names_bring_the_nearest_ones():
    log = Log()
    network = trt.INetworkDefinition()
    weights = network.add_constant((2,), np.ones(2, np.float32))
    weights.name = "scales"
    x = network.add_input("tokens", trt.float32, (2,))
    product = network.add_elementwise(x, weights.get_output(0), trt.ElementWiseOperation.PROD).get_output(0)
    product.name = "scaled"
    network.mark_output(product)
    engine = trt.Builder(log).build_engine_with_config(network, trt.Builder(log).create_builder_config())
    context, refitter = engine.create_execution_context(), trt.Refitter(engine, log)

    assert not context.set_input_shape("token", (2,))
    assert not context.set_tensor_address("scale", 0)
    assert not refitter.set_named_weights("scale", np.ones(2, np.float32))
    assert refitter.get_weights_prototype("scale").size == 0
    assert [each.rpartition("; ")[2] for each in log.errors()] == [
        "did you mean 'tokens'?",
        "did you mean 'scaled'?",
        "did you mean 'scales'?",
        "did you mean 'scales'?",
    ]
