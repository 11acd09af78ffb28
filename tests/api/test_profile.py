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


def filled_context(log):
    """A context of a network that fills a tensor of the shape in its input, with a profile for the input."""
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
    assert "the value [2, 4] of 'shape' is outside its profile, (1, 1) to (3, 3)" in log.errors()[-1]
    with pytest.raises(RuntimeError, match="outside its profile"):
        context.infer_shapes()
