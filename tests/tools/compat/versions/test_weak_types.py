"""Layers that mix floating-point types, in the versions of TensorRT whose networks are weakly typed."""

import numpy as np
import pytest

import netloop
from netloop.tools.compat.versions import module_of
from tests.support.log import Log

WEAK = pytest.mark.parametrize("version", [7, 8, 9, 10])


def strongly_typed(trt):
    flags = trt.NetworkDefinitionCreationFlag
    return 1 << int(flags.EXPLICIT_BATCH) | 1 << int(flags.STRONGLY_TYPED)


def sum_of(trt, builder, flags):
    network = builder.create_network(flags)
    x, y = network.add_input("x", trt.float16, (2,)), network.add_input("y", trt.float32, (2,))
    layer = network.add_elementwise(x, y, trt.ElementWiseOperation.SUM)
    layer.get_output(0).name = "z"
    network.mark_output(layer.get_output(0))
    return network


def built(builder, network):
    log = builder.logger
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    assert plan is not None, log.lines
    return netloop.Runtime(log).deserialize_cuda_engine(plan)


@WEAK
def test_sum_of_half_and_float_is_float(version):
    trt = module_of(version)
    builder = trt.Builder(Log())
    network = sum_of(trt, builder, 1)

    assert [network.get_output(0).dtype, network.num_layers] == [trt.float32, 1]
    engine = built(builder, network)
    z = engine({"x": np.float16([1, 2]), "y": np.float32([1e-6, 1e6])})["z"]
    np.testing.assert_array_equal(z, np.float32([1, 2]) + np.float32([1e-6, 1e6]))


@WEAK
def test_network_can_be_built_again(version):
    trt = module_of(version)
    builder = trt.Builder(Log())
    network = sum_of(trt, builder, 1)
    built(builder, network)
    count = network.num_layers
    built(builder, network)

    assert [count, network.num_layers] == [2, 2]


@WEAK
def test_strongly_typed_network_mixes_nothing(version):
    trt, log = module_of(version), Log()
    builder = trt.Builder(log)
    network = sum_of(trt, builder, strongly_typed(trt))

    assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    assert "NL401" in str(log.lines)
    assert network.get_flag(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)


@WEAK
def test_strongly_typed_network_can_be_built(version):
    trt = module_of(version)
    builder = trt.Builder(Log())
    network = builder.create_network(strongly_typed(trt))
    x = network.add_input("x", trt.float16, (2,))
    network.mark_output(network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0))

    assert built(builder, network).num_io_tensors == 2


def test_network_of_version_11_mixes_nothing():
    with pytest.raises(netloop.NetloopError, match="NL401: SUM takes two inputs of the same element type"):
        assert sum_of(netloop, netloop.Builder(Log()), 1).get_output(0).dtype


def test_half_and_bfloat16_are_float_too():
    trt = module_of(10)
    network = trt.Builder(Log()).create_network()
    inputs = [network.add_input(name, dtype, (2, 2)) for name, dtype in (("x", trt.float16), ("y", trt.bfloat16))]

    assert network.add_concatenation(inputs).get_output(0).dtype is trt.float32


def test_types_that_are_no_floats_stay_as_they_are():
    trt = module_of(10)
    network = trt.Builder(Log()).create_network()
    condition, x = network.add_input("condition", trt.bool, (2,)), network.add_input("x", trt.float16, (2,))
    number = network.add_input("n", trt.int32, (2,))

    assert network.add_select(condition, x, x).get_output(0).dtype is trt.float16
    with pytest.raises(netloop.NetloopError, match="NL401"):
        assert network.add_elementwise(x, number, trt.ElementWiseOperation.SUM).get_output(0).dtype


def test_known_numbers_are_converted_too():
    trt = module_of(10)
    builder = trt.Builder(Log())
    network = builder.create_network()
    half = network.add_constant((2,), np.float16([1, 2])).get_output(0)
    total = network.add_elementwise(
        half, network.add_constant((2,), np.float32([0.5, 0.1])).get_output(0), trt.ElementWiseOperation.PROD
    ).get_output(0)
    total.name = "total"
    network.mark_output(total)

    np.testing.assert_array_equal(built(builder, network)({})["total"], np.float32([0.5, 0.2]))


def test_examples_of_an_implicit_batch_mix_types():
    trt = module_of(8)
    builder = trt.Builder(Log())
    engine = built(builder, sum_of(trt, builder, 0))

    x, y = np.float16([[1, 2], [3, 4]]), np.float32([[5, 6], [7, 8]])
    np.testing.assert_array_equal(engine({"x": x, "y": y})["z"], np.float32([[6, 8], [10, 12]]))


@WEAK
@pytest.mark.parametrize("kind", ["convolution", "scale"])
def test_weights_of_a_layer_may_be_wider_than_its_input(version, kind):
    trt = module_of(version)
    builder = trt.Builder(Log())
    network = builder.create_network(1)
    x, three = network.add_input("x", trt.float16, (1, 1, 2, 2)), trt.Weights(np.float32([3]))
    if kind == "scale":
        layer = network.add_scale(x, trt.ScaleMode.UNIFORM, trt.Weights(), three, trt.Weights())
    else:
        layer = network.add_convolution_nd(x, 1, (1, 1), three, trt.Weights())
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))

    assert network.get_output(0).dtype is trt.float32
    y = built(builder, network)({"x": np.full((1, 1, 2, 2), 0.1, np.float16)})["y"]
    np.testing.assert_array_equal(y, np.full((1, 1, 2, 2), np.float32(np.float16(0.1)) * 3))


@WEAK
def test_states_that_begin_as_halves_go_on_as_floats(version):
    trt = module_of(version)
    builder = trt.Builder(Log())
    network = builder.create_network(1)
    first, factor = network.add_input("x", trt.float16, (2,)), np.float32([0.1, 3])
    loop = network.add_loop()
    loop.add_trip_limit(network.add_constant((), np.int32([2])).get_output(0), trt.TripLimit.COUNT)
    states = [loop.add_recurrence(first) for _ in range(2)]
    one, other = (state.get_output(0) for state in states)
    scaled = network.add_elementwise(
        other, network.add_constant((2,), factor).get_output(0), trt.ElementWiseOperation.PROD
    )
    # the second state mixes only once the first one is float
    for state, following in zip(states, (scaled.get_output(0), one), strict=True):
        state.set_input(1, following)
    network.mark_output(loop.add_loop_output(one, trt.LoopOutput.LAST_VALUE).get_output(0))

    (last,) = built(builder, network)({"x": np.float16([1, 2])}).values()

    np.testing.assert_array_equal(last, np.float32([1, 2]) * factor)


@WEAK
@pytest.mark.parametrize("flag", [True, False])
def test_branches_may_give_halves_and_floats(version, flag):
    trt = module_of(version)
    builder = trt.Builder(Log())
    network = builder.create_network(1)
    x, condition = network.add_input("x", trt.float16, (2,)), network.add_input("c", trt.bool, ())
    conditional = network.add_if_conditional()
    conditional.set_condition(condition)
    half = conditional.add_input(x).get_output(0)
    third = network.add_constant((2,), np.float32([1 / 3] * 2)).get_output(0)
    sum_ = network.add_elementwise(half, third, trt.ElementWiseOperation.SUM).get_output(0)
    network.mark_output(conditional.add_output(sum_, half).get_output(0))

    (y,) = built(builder, network)({"x": np.float16([1, 2]), "c": np.bool_(flag)}).values()

    np.testing.assert_array_equal(y, np.float32([1, 2]) + np.float32(1 / 3 if flag else 0))


def quantizing(trt, builder, flags):
    network = builder.create_network(flags)
    x = network.add_input("x", trt.float32, (1, 16))
    layer = network.add_dynamic_quantize(x, 1, 16, trt.DataType.FP8, trt.DataType.FLOAT)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    return network


def test_output_of_a_dynamic_quantize_is_float():
    trt = module_of(10)
    builder, x = trt.Builder(Log()), np.arange(16, dtype=np.float32).reshape(1, 16)
    engine = built(builder, quantizing(trt, builder, 0))
    y = engine({"x": x})["y"]

    assert engine.get_tensor_dtype("y") is trt.float32
    np.testing.assert_array_equal(y[0, [0, 1, 8, 15]], [0, 30, 240, 448])


def test_output_of_a_dynamic_quantize_is_fp8_if_that_was_said():
    trt = module_of(10)
    builder = trt.Builder(Log())
    strict, typed = (quantizing(trt, builder, flags) for flags in (strongly_typed(trt), 0))
    typed.get_output(0).dtype = trt.DataType.FP8

    for network in (strict, typed):
        assert built(builder, network).get_tensor_dtype("y") is trt.DataType.FP8
