"""Scripts for TensorRT 10 run unchanged and compute the right numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

import netloop as trt
from netloop import plan
from netloop.compiler.placement import Placement
from tests.support.builds import swap_engine
from tests.support.networks import Op, combine, constant, mark

HALF_STEP = np.float32(1 + 2**-12)
"""A number that a half cannot hold: it becomes 1."""


class Log(trt.ILogger):
    """A logger that keeps its warnings and errors."""

    def __init__(self):
        super().__init__()
        self.lines: list[str] = []

    def log(self, severity, msg):
        if severity <= trt.Logger.WARNING:
            self.lines.append(msg)


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def builder(log):
    return trt.Builder(log)


@pytest.fixture
def network(builder):
    return builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))


@pytest.fixture
def x(network):
    return network.add_input("x", trt.float32, (2,))


def run(network, **inputs):
    """The outputs, on which the engine, the reference and a deserialized plan agree."""
    engine = trt.compile(network)
    made = {name: np.asarray(array) for name, array in engine(inputs).items()}
    for other in (
        trt.evaluate(network, inputs),
        trt.Runtime(Log()).deserialize_cuda_engine(engine.serialize())(inputs),
    ):
        for name, array in made.items():
            assert other[name].dtype == array.dtype
            np.testing.assert_array_equal(other[name], array)
    return made


# ---------------------------------------------------------------------------- precisions of layers


def test_loop_over_all_layers_that_asks_for_halves_changes_no_number(network, x, log):
    twice = combine(network, combine(network, x, 2, Op.PROD), constant(network, [1, 1], np.float32))
    mark(network, y=twice)
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        layer.precision = trt.float16
        for output in range(layer.num_outputs):
            layer.set_output_type(output, trt.float16)

    made = run(network, x=np.full(2, HALF_STEP))["y"]

    assert made.dtype == np.float32
    assert made.tolist() == [3 + 2**-11] * 2
    assert len(log.lines) == 2
    assert log.lines[0].startswith("precision has no effect")


def test_int8_in_all_layers_changes_no_number(network, x):
    mark(network, y=combine(network, x, 0.5, Op.PROD))
    for layer in network:
        layer.precision = trt.int8
        layer.set_output_type(0, trt.int8)
        layer.get_output(0).dynamic_range = (-4, 4)

    assert run(network, x=np.array([1, 3], np.float32))["y"].tolist() == [0.5, 1.5]


def test_precision_is_returned(network, x):
    layer = network.add_identity(x)
    assert (layer.precision, layer.precision_is_set) == (trt.float32, False)

    layer.precision = trt.int8
    assert (layer.precision, layer.precision_is_set) == (trt.int8, True)

    layer.reset_precision()
    assert not layer.precision_is_set


def test_output_type_is_returned(network, x):
    layer = network.add_unary(x, trt.UnaryOperation.NEG)
    assert (layer.get_output_type(0), layer.output_type_is_set(0)) == (trt.float32, False)

    layer.set_output_type(0, trt.float16)
    assert (layer.get_output_type(0), layer.output_type_is_set(0)) == (trt.float16, True)
    assert layer.get_output(0).dtype is trt.float32

    layer.reset_output_type(0)
    assert (layer.get_output_type(0), layer.output_type_is_set(0)) == (trt.float32, False)


def test_output_type_that_the_layer_cannot_make_is_not_taken(network, x, log):
    layer = network.add_shape(x)
    layer.get_output(0).name = "lengths"
    layer.set_output_type(0, trt.float16)

    assert not layer.output_type_is_set(0)
    assert log.lines == ["'lengths' stays INT64, since its layer does not convert to HALF: use add_cast"]


def test_copy_of_a_network_keeps_hints_of_its_own(network, x):
    layer = network.add_identity(x)
    layer.precision = trt.int8
    network.copy()[0].reset_precision()

    assert layer.precision_is_set


def test_normalization_has_a_precision_to_compute_in(network):
    x = network.add_input("x", trt.float32, (1, 2, 2))
    ones = constant(network, np.ones((1, 2, 1), np.float32))
    layer = network.add_normalization(x, ones, ones, 0b100)
    layer.compute_precision = trt.float16

    assert layer.compute_precision is trt.float16


@pytest.mark.parametrize("value", ["HALF", None, 1, np.float16])
def test_precision_is_an_element_type(network, x, value):
    layer = network.add_identity(x)
    with pytest.raises(TypeError, match=r"IIdentityLayer.precision must be a member of DataType"):
        layer.precision = value
    with pytest.raises(TypeError, match=r"dtype must be a member of DataType"):
        layer.set_output_type(0, value)
    with pytest.raises(TypeError, match=r"the dtype of a tensor must be a member of DataType"):
        x.dtype = value


@pytest.mark.parametrize("index", [1, -1, 2**63])
def test_output_type_is_of_an_output_that_is_there(network, x, index):
    layer = network.add_identity(x)
    for ask in (
        lambda: layer.set_output_type(index, trt.float16),
        lambda: layer.get_output_type(index),
        lambda: layer.output_type_is_set(index),
        lambda: layer.reset_output_type(index),
    ):
        with pytest.raises(IndexError, match=f"IIdentityLayer has no output {index}"):
            ask()


# ---------------------------------------------------------------------------- layers that convert


@pytest.mark.parametrize(
    ("dtype", "made"),
    [(trt.int32, [0, -2]), (trt.bool, [True, True]), (trt.float16, [0.5, -2.5]), (trt.uint8, [0, 0])],
)
def test_identity_converts(network, x, dtype, made):
    layer = network.add_identity(x)
    layer.set_output_type(0, dtype)
    mark(network, y=layer.get_output(0))

    found = run(network, x=np.array([0.5, -2.5], np.float32))["y"]

    assert layer.get_output(0).dtype is dtype
    assert found.dtype == trt.nptype(dtype)
    assert found.tolist() == made


def test_identity_makes_the_condition_of_a_select(network, x):
    flags = network.add_input("flags", trt.int32, (2,))
    condition = network.add_identity(flags)
    condition.set_output_type(0, trt.bool)
    zeros = constant(network, np.zeros(2, np.float32))
    mark(network, y=network.add_select(condition.get_output(0), x, zeros).get_output(0))

    assert run(network, flags=np.array([0, 7], np.int32), x=np.array([1, 2], np.float32))["y"].tolist() == [0, 2]


def test_identity_that_forgets_its_type_gives_what_it_gets(network, x):
    layer = network.add_identity(x)
    layer.set_output_type(0, trt.bool)
    layer.reset_output_type(0)

    assert layer.get_output(0).dtype is trt.float32


def test_fill_counts_in_integers(network):
    layer = network.add_fill((3,), trt.FillOperation.LINSPACE)
    layer.set_output_type(0, trt.int32)
    mark(network, y=layer.get_output(0))

    assert run(network)["y"].tolist() == [0, 1, 2]


def test_quantize_and_dequantize_take_their_types(network, x):
    scale = constant(network, np.float32(0.5))
    quantize = network.add_quantize(x, scale)
    quantize.set_output_type(0, trt.fp8)
    dequantize = network.add_dequantize(quantize.get_output(0), scale)
    dequantize.set_output_type(0, trt.float32)
    mark(network, y=dequantize.get_output(0))

    assert quantize.get_output(0).dtype is trt.fp8
    assert run(network, x=np.array([1.25, 101], np.float32))["y"].tolist() == [1.25, 104]


# ---------------------------------------------------------------------------- types of inputs and outputs


def test_halves_go_in_where_layers_compute_in_float32(network, x):
    mark(network, y=combine(network, x, HALF_STEP, Op.SUM))
    network.get_input(0).dtype = trt.float16

    made = run(network, x=np.array([1, 2], np.float16))["y"]

    assert (x.dtype, made.dtype) == (trt.float16, np.float32)
    assert made.tolist() == [2 + 2**-12, 3 + 2**-12]


def test_halves_come_out_where_layers_compute_in_float32(network, x):
    mark(network, y=combine(network, x, 1, Op.SUM))
    network.get_output(0).dtype = trt.float16

    engine = trt.compile(network)
    made = run(network, x=np.full(2, HALF_STEP))["y"]

    assert engine.get_tensor_dtype("y") is trt.float16
    assert made.dtype == np.float16
    assert made.tolist() == [2, 2]


def test_input_in_use_may_be_given_in_narrower_integers(network):
    lengths = network.add_input("lengths", trt.int64, (2,))
    mark(network, y=combine(network, lengths, 2**40, Op.PROD))
    lengths.dtype = trt.int32

    assert run(network, lengths=np.array([1, 3], np.int32))["y"].tolist() == [2**40, 3 * 2**40]


def test_input_that_nothing_reads_changes_only_its_type(network, x):
    x.dtype = trt.float16

    assert (x.dtype, network.num_layers) == (trt.float16, 0)


def test_layers_that_read_an_output_keep_its_numbers(network, x):
    y = combine(network, x, 1, Op.SUM)
    mark(network, y=y, z=combine(network, y, 2, Op.PROD))
    network.get_output(0).dtype = trt.float16

    made = run(network, x=np.full(2, HALF_STEP))

    assert made["y"].tolist() == [2, 2]
    assert made["z"].tolist() == [4 + 2**-11] * 2


@pytest.mark.parametrize("copied", [False, True])
def test_type_of_an_output_that_was_set_twice_is_the_latter(network, x, copied):
    mark(network, y=combine(network, x, 1, Op.SUM))
    network.get_output(0).dtype = trt.float16
    network = network.copy() if copied else network
    network.get_output(0).dtype = trt.float32

    assert run(network, x=np.full(2, HALF_STEP))["y"].tolist() == [2 + 2**-12] * 2


def test_plan_knows_what_a_layer_gives_converted(network, x):
    layer = network.add_elementwise(x, constant(network, np.ones(2, np.float32)), Op.SUM)
    mark(network, y=layer.get_output(0))
    network.get_output(0).dtype = trt.float16
    loaded = plan.loads(plan.dumps(network))
    again = loaded.get_layer(layer.index)

    assert again.get_output(0) is loaded.get_output(0)
    assert again.get_output(0).dtype is trt.float16
    loaded.get_output(0).dtype = trt.float32
    assert run(loaded, x=np.full(2, HALF_STEP))["y"].tolist() == [2 + 2**-12] * 2


def test_type_of_an_input_that_was_set_twice_is_the_latter(network, x):
    mark(network, y=combine(network, x, 1, Op.SUM))
    x.dtype = trt.float16
    x.dtype = trt.float32

    assert run(network, x=np.full(2, HALF_STEP))["y"].tolist() == [2 + 2**-12] * 2


def test_output_of_a_loop_is_converted_after_it(network, x):
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, 3, np.int32), trt.TripLimit.COUNT)
    state = loop.add_recurrence(x)
    state.set_input(1, combine(network, state.get_output(0), 2, Op.PROD))
    mark(network, y=loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    network.get_output(0).dtype = trt.int32

    assert run(network, x=np.array([0.25, 1], np.float32))["y"].tolist() == [2, 8]


def test_tensor_inside_of_a_network_keeps_its_type(network, x, log):
    y = combine(network, x, 1)
    y.name = "y"
    y.dtype = trt.float16

    assert y.dtype is trt.float32
    assert log.lines == ["'y' stays FLOAT until it is marked as an output"]


@pytest.mark.parametrize("copied", [False, True])
def test_type_that_was_set_before_an_output_was_marked_is_that_of_the_output(network, x, copied):
    layer = network.add_elementwise(x, constant(network, np.ones(2, np.float32)), Op.SUM)
    layer.get_output(0).dtype = trt.float16
    network = network.copy() if copied else network
    mark(network, y=network[-1].get_output(0))

    assert run(network, x=np.full(2, HALF_STEP))["y"].dtype == np.float16


@pytest.mark.parametrize("copied", [False, True])
def test_layer_has_the_output_that_was_marked(network, x, copied):
    layer = network.add_elementwise(x, constant(network, np.ones(2, np.float32)), Op.SUM)
    network.mark_output(layer.get_output(0))
    layer.get_output(0).dtype = trt.float16
    if copied:
        network = network.copy()
        layer = next(layer for layer in network if isinstance(layer, trt.IElementWiseLayer))
    layer.get_output(0).name = "y"

    assert layer.get_output(0) is network.get_output(0)
    assert run(network, x=np.full(2, HALF_STEP))["y"].dtype == np.float16
    network.unmark_output(layer.get_output(0))
    assert network.num_outputs == 0


def test_int8_of_an_input_needs_a_scale(network, x, log):
    x.dtype = trt.int8

    assert x.dtype is trt.float32
    assert log.lines == ["'x' stays FLOAT: a conversion to INT8 needs a scale; use add_quantize or add_dequantize"]


def test_range_of_a_tensor_is_returned(x, log):
    assert x.dynamic_range is None
    x.dynamic_range = (-1, 2.5)
    assert x.set_dynamic_range(-1, 2.5) is True
    assert x.set_dynamic_range(2, 1) is False
    assert x.dynamic_range == (-1, 2.5)
    x.reset_dynamic_range()

    assert x.dynamic_range is None
    assert len(log.lines) == 1


@pytest.mark.parametrize("given", [5, None, (1,), ("a", "b"), (1, None)])
def test_range_is_two_numbers(x, given):
    with pytest.raises(TypeError, match="a dynamic range must be two numbers"):
        x.dynamic_range = given


# ---------------------------------------------------------------------------- builder, config, engine, context


class Calibrator(trt.IInt8EntropyCalibrator2):
    """A calibrator as scripts write them; it counts its calls."""

    def __init__(self):
        trt.IInt8EntropyCalibrator2.__init__(self)
        self.asked = 0

    def get_batch_size(self):
        return 1

    def get_batch(self, names):
        self.asked += 1

    def read_calibration_cache(self):
        self.asked += 1


def test_calibrator_is_recorded_but_never_asked(builder, network, x):
    mark(network, y=combine(network, x, 1))
    config, calibrator = builder.create_builder_config(), Calibrator()
    config.set_flag(trt.BuilderFlag.INT8)
    config.int8_calibrator = calibrator
    config.set_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    profile = builder.create_optimization_profile()

    assert config.set_calibration_profile(profile)
    assert builder.build_serialized_network(network, config) is not None
    assert (calibrator.asked, config.int8_calibrator, config.get_calibration_profile()) == (0, calibrator, profile)
    assert config.get_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    assert {"int8_calibrator", "quantization_flags", "flag INT8"} <= set(config.ignored())


def test_flag_of_quantization_is_cleared(builder):
    config = builder.create_builder_config()
    config.set_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    config.clear_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)

    assert not config.get_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)


@pytest.mark.parametrize(
    ("capability", "fp16", "int8", "tf32"),
    [
        ("5.2", False, False, False),
        ("6.1", False, True, False),
        ("6.2", True, False, False),
        ("7.5", True, True, False),
        ("8.0", True, True, True),
        ("12.0", True, True, True),
        ("gfx942", True, True, True),
    ],
)
def test_platform_has_what_its_gpu_has(builder, monkeypatch, capability, fp16, int8, tf32):
    gpu = SimpleNamespace(platform="gpu", compute_capability=capability)
    monkeypatch.setattr(Placement, "default", lambda: Placement.on(gpu))

    assert (builder.platform_has_fast_fp16, builder.platform_has_fast_int8) == (fp16, int8)
    assert builder.platform_has_tf32 == tf32


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        (trt.IInt8LegacyCalibrator, 0),
        (trt.IInt8EntropyCalibrator, 1),
        (trt.IInt8EntropyCalibrator2, 2),
        (trt.IInt8MinMaxCalibrator, 3),
    ],
)
def test_calibrators_have_their_algorithms(kind, algorithm):
    assert int(kind().get_algorithm()) == algorithm
    assert isinstance(kind(), trt.IInt8Calibrator)


def test_platform_takes_every_precision(builder):
    assert builder.platform_has_fast_fp16
    assert builder.platform_has_fast_int8
    assert builder.platform_has_tf32


def test_engine_answers_what_it_was_asked_in_tensorrt_10(network, x):
    mark(network, y=combine(network, x, 1))
    engine = trt.compile(network)
    context = engine.create_execution_context_without_device_memory()

    assert (engine.device_memory_size, engine.get_device_memory_size_for_profile(0)) == (0, 0)
    assert engine.has_implicit_batch_dimension is False
    assert context.all_shape_inputs_specified
    assert context.all_binding_shapes_specified


def test_shape_input_without_an_address_is_not_specified(network):
    length = network.add_input("length", trt.int32, (1,))
    layer = network.add_fill((1,), trt.FillOperation.LINSPACE)
    layer.set_input(0, length)
    mark(network, y=layer.get_output(0))
    context = trt.compile(network).create_execution_context()
    array = np.array([3], np.int32)

    assert not context.all_shape_inputs_specified
    context.set_tensor_address("length", array.ctypes.data)
    assert context.all_shape_inputs_specified


def test_script_that_asks_for_fp16_from_end_to_end(builder, network):
    """A network with float32 weights and float16 inputs and outputs, run on addresses."""
    x = network.add_input("x", trt.float32, (-1, 2))
    weights = constant(network, np.array([[1, 2], [3, 4]], np.float32))
    none = trt.MatrixOperation.NONE
    mark(network, y=network.add_matrix_multiply(x, none, weights, none).get_output(0))
    config = builder.create_builder_config()
    if builder.platform_has_fast_fp16:
        config.set_flag(trt.BuilderFlag.FP16)
        config.set_flag(trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
        network.get_input(0).dtype = network.get_output(0).dtype = trt.float16
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 2), (1, 2), (4, 2))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(builder.logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    context = engine.create_execution_context()
    context.set_input_shape("x", (1, 2))
    host = {
        name: np.ones(tuple(context.get_tensor_shape(name)), trt.nptype(engine.get_tensor_dtype(name)))
        for name in engine
    }

    assert context.execute_v2([array.ctypes.data for array in host.values()])
    assert {name: array.dtype for name, array in host.items()} == {"x": np.float16, "y": np.float16}
    assert host["y"].tolist() == [[4, 6]]


# ---------------------------------------------------------------------------- classes of layers


def test_layers_are_found_by_kind_and_distinguished_by_type(network):
    image = network.add_input("image", trt.float32, (1, 1, 4, 4))
    for type in (trt.ActivationType.RELU, trt.ActivationType.SIGMOID):
        network.add_activation(image, type)
    network.add_pooling_nd(image, trt.PoolingType.MAX, (2, 2))
    activations = [layer for layer in network if layer.type == trt.LayerType.ACTIVATION]
    sigmoids = []
    for layer in activations:
        layer.__class__ = trt.IActivationLayer
        sigmoids += [layer] if layer.type == trt.ActivationType.SIGMOID else []

    assert (activations, sigmoids) == ([network[0], network[1]], [network[1]])
    assert network[2].type in {trt.LayerType.POOLING}
    assert network[2].type not in (trt.LayerType.ACTIVATION, trt.ActivationType.RELU)
    assert network[2].type != trt.LayerType.SCALE


def test_explicit_batch_has_no_effect():
    flags = trt.NetworkDefinitionCreationFlag

    assert int(flags.EXPLICIT_BATCH) == 0
    assert flags(0) is flags.STRONGLY_TYPED
    assert trt.Builder(trt.Logger()).create_network(1 << int(flags.EXPLICIT_BATCH)).get_flag(flags.STRONGLY_TYPED)


@pytest.mark.parametrize(
    "make",
    [
        lambda: trt.Logger(),
        lambda: Log(),
        lambda: trt.OnnxParser(trt.INetworkDefinition(), trt.Logger()),
        lambda: swap_engine().serialize(),
        lambda: swap_engine(),
        lambda: swap_engine().create_execution_context(),
    ],
)
def test_tools_enter_whatever_tensorrt_lets_them_enter(make):
    with (made := make()) as entered:
        assert entered is made
    with pytest.raises(ZeroDivisionError), made:
        _ = 1 / 0


def test_with_statements_return_their_objects(log):
    with trt.Builder(log) as builder, builder.create_network() as network, builder.create_builder_config() as config:
        network.mark_output(network.add_identity(network.add_input("x", trt.int32, ())).get_output(0))
        plan = builder.build_serialized_network(network, config)
    with (
        trt.Runtime(log) as runtime,
        runtime.deserialize_cuda_engine(plan) as engine,
        engine.create_execution_context() as context,
    ):
        assert context.engine is engine
