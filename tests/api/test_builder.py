"""What older scripts say on TensorRT's strategy, and what it refuses on the way."""

import numpy as np
import pytest

import netloop as trt


class Log(trt.ILogger):
    """A logger that keeps its errors."""

    def __init__(self):
        super().__init__()
        self.errors: list[str] = []

    def log(self, severity, msg):
        if severity <= trt.Logger.ERROR:
            self.errors.append(msg)


@pytest.fixture
def log():
    return Log()


# ---------------------------------------------------------------------- what older scripts say


def test_there_are_no_plugins_to_register():
    assert trt.init_libnvinfer_plugins(trt.Logger(), "") is True
    assert trt.init_libnvinfer_plugins(None, namespace="mine") is True


@pytest.mark.parametrize(("logger", "namespace"), [("", trt.Logger()), (trt.Logger(), None)])
def test_plugins_are_registered_with_a_logger_and_a_name(logger, namespace):
    with pytest.raises(TypeError):
        trt.init_libnvinfer_plugins(logger, namespace)


def test_explicit_batch_is_the_flag_that_changes_nothing():
    flags = trt.NetworkDefinitionCreationFlag

    assert int(flags.EXPLICIT_BATCH) == 0
    assert flags(0) is flags.STRONGLY_TYPED
    assert trt.Builder(trt.Logger()).create_network(1 << int(flags.EXPLICIT_BATCH)).get_flag(flags.STRONGLY_TYPED)


def test_a_with_statement_opens_what_it_is_given(log):
    with trt.Builder(log) as builder, builder.create_network() as network, builder.create_builder_config() as config:
        network.mark_output(network.add_identity(network.add_input("x", trt.int32, ())).get_output(0))
        plan = builder.build_serialized_network(network, config)
    with (
        trt.Runtime(log) as runtime,
        runtime.deserialize_cuda_engine(plan) as engine,
        engine.create_execution_context() as context,
    ):
        assert context.engine is engine


def test_plan_is_printed_as_its_size():
    assert repr(trt.IHostMemory(b"plan")) == "<IHostMemory of 4 bytes>"


# ---------------------------------------------------------------------- what is refused


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
    assert "cannot have the shape" in log.errors[-1]
    assert context.infer_shapes() == ["x"]


def test_address_0_is_none(log):
    context, y = identity_context(log, (3,)), np.zeros(3, np.float32)

    assert not context.execute_v2([0, y.ctypes.data])
    assert "address of 'x' is not set" in log.errors[-1]


def test_engine_keeps_its_profiles_whatever_becomes_of_them(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (-1,))).get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("x", (1,), (2,), (3,))
    config.add_optimization_profile(profile)
    engine = builder.build_engine_with_config(network, config)
    profile.set_shape("x", (4,), (5,), (6,))

    assert engine.get_tensor_profile_shape("x", 0) == [(1,), (2,), (3,)]


def filled_context(log):
    """The context of a network that makes a tensor of a shape that its input says, within a profile."""
    builder = trt.Builder(log)
    network = builder.create_network()
    shape = network.add_input("shape", trt.int32, (2,))
    fill = network.add_fill((2,), trt.FillOperation.LINSPACE, trt.float32)
    fill.set_input(0, shape)
    fill.set_input(1, network.add_constant((), np.array(1, np.float32)).get_output(0))
    fill.set_input(2, network.add_constant((2,), np.zeros(2, np.float32)).get_output(0))
    fill.get_output(0).name = "ones"
    network.mark_output(fill.get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape_input("shape", [1, 1], [2, 2], [3, 3])
    config.add_optimization_profile(profile)
    return builder.build_engine_with_config(network, config).create_execution_context()


def test_value_inside_of_its_profile_runs(log):
    context, shape, ones = filled_context(log), np.array([2, 3], np.int32), np.zeros((2, 3), np.float32)

    assert context.execute_v2([shape.ctypes.data, ones.ctypes.data])
    np.testing.assert_array_equal(ones, np.ones((2, 3)))


def test_value_outside_of_its_profile_is_refused(log):
    context, shape, ones = filled_context(log), np.array([2, 4], np.int32), np.zeros((2, 4), np.float32)

    assert not context.execute_v2([shape.ctypes.data, ones.ctypes.data])
    assert "the value [2, 4] of 'shape' is outside of its profile, (1, 1) to (3, 3)" in log.errors[-1]
    with pytest.raises(RuntimeError, match="outside of its profile"):
        context.infer_shapes()


# ---------------------------------------------------------------------- what does not fit


@pytest.mark.parametrize(
    ("name", "lengths", "said"),
    [("xx", (1, 3), "no such input"), ("x", (3,), "has 1 lengths for 'x', which has 2 axes")],
)
def test_profile_that_fits_no_input_is_refused(log, name, lengths, said):
    builder = trt.Builder(log)
    network = builder.create_network()
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (-1, 3))).get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape(name, lengths, lengths, lengths)
    config.add_optimization_profile(profile)

    assert builder.build_engine_with_config(network, config) is None
    assert said in log.errors[-1]


def test_assertion_that_shapes_break_is_told_with_the_shapes(log):
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


def test_plan_may_be_an_array_of_bytes(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (2,))).get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())

    assert trt.Runtime(log).deserialize_cuda_engine(np.frombuffer(plan, np.uint8)) is not None
