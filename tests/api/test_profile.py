"""Optimization profiles limit the shapes and values of inputs."""

import numpy as np
import pytest

import netloop as trt


@pytest.mark.parametrize(
    ("least", "usual", "most", "said"),
    [((1,), (1, 2), (1,), "1, 2 and 1 numbers"), ((3,), (2,), (4,), "not in order")],
)
def test_profile_out_of_order_is_refused(least, usual, most, said):
    with pytest.raises(RuntimeError, match=said):
        trt.IOptimizationProfile().set_shape("x", least, usual, most)


def test_profile_is_true():
    profile = trt.IOptimizationProfile()

    assert (bool(profile), profile.__nonzero__()) == (True, True)


def test_value_of_many_elements_has_a_range(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    lengths = network.add_input("lengths", trt.int64, (10,))
    length = network.add_reduce(lengths, trt.ReduceOperation.SUM, 1, True).get_output(0)
    fill = network.add_fill((1,), trt.FillOperation.LINSPACE, trt.int64)
    fill.set_input(0, length)
    fill.set_input(1, network.add_constant((), np.array(0, np.int64)).get_output(0))
    fill.set_input(2, network.add_constant((1,), np.array([1], np.int64)).get_output(0))
    fill.get_output(0).name = "y"
    network.mark_output(fill.get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape_input("lengths", [0] * 10, [1] * 10, [2] * 10)
    config.add_optimization_profile(profile)
    engine = trt.Runtime(log).deserialize_cuda_engine(builder.build_serialized_network(network, config))

    assert engine.get_tensor_profile_values(0, "lengths") == [[0] * 10, [1] * 10, [2] * 10]
    assert engine({"lengths": np.full(10, 1)})["y"].tolist() == [*range(10)]


def test_range_of_another_number_of_values_is_refused(log):
    builder, network, config = filled_network(log)
    profile = builder.create_optimization_profile()
    profile.set_shape_input("shape", [1], [2], [3])
    config.add_optimization_profile(profile)

    assert builder.build_engine_with_config(network, config) is None
    assert "NL109: an optimization profile has 1 values for 'shape', which has 2 elements" in log.errors()[-1]


def filled_network(log):
    """A network that fills a tensor of the shape in its input."""
    builder = trt.Builder(log)
    network = builder.create_network()
    shape = network.add_input("shape", trt.int32, (2,))
    fill = network.add_fill((2,), trt.FillOperation.LINSPACE, trt.float32)
    fill.set_input(0, shape)
    fill.set_input(1, network.add_constant((), np.array(1, np.float32)).get_output(0))
    fill.set_input(2, network.add_constant((2,), np.zeros(2, np.float32)).get_output(0))
    fill.get_output(0).name = "ones"
    network.mark_output(fill.get_output(0))
    return builder, network, builder.create_builder_config()


def filled_context(log):
    """A context of ``filled_network``, with a profile for the input."""
    builder, network, config = filled_network(log)
    profile = builder.create_optimization_profile()
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
    assert "the value [2, 4] of 'shape' is outside its profile, (1, 1) to (3, 3)" in log.errors()[-1]
    with pytest.raises(RuntimeError, match="outside its profile"):
        context.infer_shapes()
